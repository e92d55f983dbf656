# SPDX-License-Identifier: Apache-2.0
# The audit: every recipe and delta in table and report; what is not supported is "-" with its reason.
if ! "$octavo" backends | grep -q '^reference compiled=yes'; then
  expect 3 'backend reference is not compiled' audit --backend "$backend" "${qkv[@]}" --dout do.npy --out a
  return 0
fi
expect 2 '--dout is required' audit "${qkv[@]}" --out a
expect 2 'unknown option --save-payloads' audit "${qkv[@]}" --dout do.npy --out a --save-payloads
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
[ "$(sed '1d; /^$/,$d' stdout.txt | awk '{ print length }' | sort -u | wc -l)" = 1 ] || fail "the table is not aligned: $(cat stdout.txt)"
has a/report.json 'power-of-two scales'
has a/report.json '"row_sum_over_l1": [0-9]'
has a/report.json '"supported": false'
has stdout.txt '; bf16, causal mask top-left, keys not centred$'
# The reasons of the refused cells stand under the table.
has stdout.txt '^not measured:$'
has stdout.txt '^  tensor consistent: delta consistent needs power-of-two scales'
has stdout.txt '^  bf16 consistent: '

expect 0 '; f32, no mask, keys centred by their mean$' audit --backend "$backend" "${qkv[@]}" --dout do.npy --recipe token \
  --delta matched --key-centring batch --out n
has stdout.txt '^token +matched'
grep -q '^mx32' stdout.txt && fail '--recipe does not select'
grep -q 'not measured' stdout.txt && fail 'there is nothing that was not measured'
expect 0 '; f32, causal mask bottom-right, window 3,-1, keys not' audit --backend "$backend" "${qkv[@]}" --dout do.npy \
  --recipe token --delta matched --causal=bottom-right --window 3,-1 --out n

# Where nothing can be measured there is no audit: the reasons, and no files.
for filter in '' '--recipe token' '--recipe token --delta matched'; do
  expect 3 'nothing to measure: key centring' audit --backend "$backend" "${qkv[@]}" --dout do.npy --key-centring batch \
    --softcap 5 --out none $filter
  has stdout.txt '^  .*token .*matched.*: key centring relies on'
  [ ! -e none ] || fail 'an audit of nothing leaves a folder'
done
expect 3 'power-of-two scales' audit --backend "$backend" "${qkv[@]}" --dout do.npy --recipe tensor --delta consistent --out none
# Results of an earlier audit do not stay beside a new report.
: >n/audit.png
PATH=/nowhere "$(readlink -f "$octavo")" audit --backend "$backend" "${qkv[@]}" --dout do.npy --recipe token --out n >stdout.txt 2>&1
holds n report.json
