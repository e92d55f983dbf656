# SPDX-License-Identifier: Apache-2.0
# What may stand behind an option: nothing is taken that was not meant, nothing that was given is ignored.
# An option is never the value of the one before it.
for option in --q --k --v --dout --sink --cu-seqlens-q --cu-seqlens-kv --key-centring --out --scale --dtype; do
  expect 2 "$option: needs a value, but '--causal' stands in its place" attention "$option" --causal
done
expect 2 "allowed: DIR \(a path that begins so is written ./--causal\)" "${attention[@]}" --out --causal
expect 2 "needs a value" "${attention[@]}" --out=--causal
expect 2 "needs a value" bench --json --baseline
expect 2 "needs a value" "${attention[@]}" --out --
holds . q.npy k.npy v.npy do.npy stdout.txt stderr.txt
expect 0 '' "${attention[@]}" --out ./--x
[ -e ./--x/report.json ] || fail 'a folder ./--x was not written'

# Nor is an empty one no option at all.
for option in --q --k --v --dout --sink --cu-seqlens-q --cu-seqlens-kv --key-centring --out \
  --scale --softcap --window --dtype --backend --recipe --delta; do
  expect 2 "$option: the value is empty" attention "$option" ''
  expect 2 "$option: the value is empty" attention "$option="
done
expect 2 'dout: the value is empty' "${attention[@]}" --out o --dout ''
expect 2 'dout: the value is empty' "${attention[@]}" --out o --dout= do.npy
expect 2 'causal: the value is empty' "${attention[@]}" --out o --causal=
for option in --json --shape --pass --repeat; do expect 2 'the value is empty' bench "$option" ''; done

# Switches take no value.
for switch in deterministic=false deterministic=true o-residual=0 save-payloads=no e5m2-gradients=off deterministic=; do
  expect 2 "--${switch%%=*} takes no value" "${attention[@]}" --out o "--$switch"
done
expect 2 '--baseline takes no value' bench --baseline=no
absent o

# Numbers as people and scripts write them.
scale() { # WRITTEN REPORTED
  expect 0 '' "${attention[@]}" --out n --scale "$1"
  has n/report.json "\"scale\": $2,"
}
scale 1e-50 0; scale -1e-400 -0; scale 1e-40 9.9999.*e-41; scale +1 1; scale +1.5e+0 1.5; scale .25 0.25
for number in ++1 +-1 -+1 + - 1e39 -1e39 1e400 1,5 ' 1' 0x10; do
  expect 2 "'.*' is not allowed here; allowed: a finite number" "${attention[@]}" --out o --scale "$number"
done
for window in '3, 2' '+3,2' '+3,  +2'; do
  expect 0 '' "${attention[@]}" --out n --window "$window"
  has n/report.json '"window_left": 3'
  has n/report.json '"window_right": 2'
done
for window in '3 ,2' ' 3,2' '3,2 ' '3, ' '++3,2' '3,+-1'; do
  expect 2 'window' "${attention[@]}" --out o --window "$window"
done
expect 0 '' bench --backend "$backend" --shape '1, 1,1, +8,8,32' --repeat +1
