# SPDX-License-Identifier: Apache-2.0
# The audit: every recipe and delta in table, report and picture; what is not supported is "-" with its reason.
if ! "$octavo" backends | grep -q '^reference compiled=yes'; then
  expect 3 'backend reference is not compiled' audit --backend "$backend" "${qkv[@]}" --dout do.npy --out a
  return 0
fi
expect 2 '--dout is required' audit "${qkv[@]}" --out a
expect 2 'not expected' audit "${qkv[@]}" --dout do.npy --out a --save-payloads
absent a
expect 0 '' audit --backend "$backend" "${qkv[@]}" --dout do.npy --dtype bf16 --causal --out a
for recipe in mx32 token tile; do
  for delta in stale matched consistent; do
    has stdout.txt "^$recipe +$delta +[0-9]"
  done
done
has stdout.txt '^tensor +consistent +- +- +- +- +- +-$'
has stdout.txt '^bf16 +consistent +-'
has stdout.txt '^token \+ key centring +matched +[0-9]'
has stdout.txt '^token \+ O residual +consistent +[0-9]'
[ "$(sed 1d stdout.txt | awk '{ print length }' | sort -u | wc -l)" = 1 ] || fail "the table is not aligned: $(cat stdout.txt)"
has a/report.json 'power-of-two scales'
has a/report.json '"row_sum_over_l1": [0-9]'
has a/report.json '"supported": false'
if command -v gnuplot >/dev/null; then
  holds a report.json audit.png
  head -c 4 a/audit.png | grep -q PNG || fail 'audit.png is no PNG'
fi
# Without gnuplot: a warning.
mkdir empty
octavo_path=$(readlink -f "$octavo")
PATH=$PWD/empty "$octavo_path" audit --backend "$backend" "${qkv[@]}" --dout do.npy --recipe token --delta matched --out n \
  >stdout.txt 2>stderr.txt || fail 'without gnuplot the audit fails'
has stderr.txt 'warning: no picture: gnuplot is not installed'
holds n report.json
has stdout.txt '^token +matched'
grep -q '^mx32' stdout.txt && fail '--recipe does not select'
