# SPDX-License-Identifier: Apache-2.0
# audit.png, with gnuplot, without it, and with one that fails.
if ! "$octavo" backends | grep -q '^reference compiled=yes'; then
  echo 'skipped: the audit needs the reference'
  exit 77
fi
audit=(audit --backend "$backend" "${qkv[@]}" --dout do.npy)
draws() { # FOLDER ARGUMENT...: there is a picture, and no word of complaint
  expect 0 '' "${audit[@]}" "${@:2}" --out "$1"
  holds "$1" report.json audit.png
  head -c 4 "$1"/audit.png | grep -q PNG || fail "$1/audit.png is no PNG"
  [ ! -s stderr.txt ] || fail "octavo audit ${*:2}: $(cat stderr.txt)"
}
if command -v gnuplot >/dev/null; then
  draws all --dtype bf16 --causal
  # Policies without a single value are left out, and so are panels without one.
  for delta in stale matched consistent; do draws $delta --delta $delta; done
  draws one --recipe tile --delta matched
  draws zero --recipe token --window 0,0
fi

# fake NAME: a gnuplot that runs the script on standard input, alone in a folder of that name.
fake() {
  mkdir "$1"
  { printf '#!%s\n' "$(command -v bash)"; cat; } >"$1/gnuplot"
  chmod +x "$1/gnuplot"
}
with() { # FOLDER: the audit into kept, with no other program to be found than those of FOLDER
  PATH=$PWD/$1 "$(readlink -f "$octavo")" "${audit[@]}" --recipe token --delta matched --out kept >stdout.txt 2>stderr.txt ||
    fail "$1: the audit fails"
}
mkdir none kept && : >kept/audit.png
with none
has stderr.txt 'warning: no picture: gnuplot is not installed'
holds kept report.json  # the old picture is not of these numbers
fake broken <<'END'
printf '\nset junk\n         ^\n"%s" line 7: warning: odd\n"%s" line 9: unrecognized option\n' "$1" "$1" >&2
exit 1
END
with broken
has stderr.txt '^octavo: warning: no picture: gnuplot failed on kept/audit.png: line 9: unrecognized option$'
holds kept report.json
has stdout.txt '^token +matched'
# What is drawn: two panels on logarithmic axes, a figure on every bar, and a word where there is none.
fake listener <<'END'
while IFS= read -r line; do printf '%s\n' "$line"; done <"$1" >drawn.txt
END
PATH=$PWD/listener "$(readlink -f "$octavo")" "${audit[@]}" --dtype bf16 --recipe tensor --out seen >stdout.txt 2>stderr.txt
has drawn.txt 'set multiplot layout 2,1'
has drawn.txt 'set logscale y'
has drawn.txt 'keys not centred'
has drawn.txt '^plot \$dq_stale .*\$dq_matched'
has drawn.txt '^plot \$row_sum_stale .*with labels'
grep -q 'dq_consistent' drawn.txt && fail 'a policy without a value is plotted'
[ "$(grep -c 'set label "not computed"' drawn.txt)" = 2 ] || fail 'a missing bar has no reason'
has drawn.txt '^set xtics \("tensor" 2\)'
