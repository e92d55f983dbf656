# SPDX-License-Identifier: Apache-2.0
# The benchmark: its options, its figures, and that the baseline computes the same thing.
for shape in 1 1,2,3,4,5 1,2,3,4,5,6,7 0,1,1,8,8,32 1,1,1,8,8,-32 a,b,c,d,e,f 99999999999,99999999999,1,1,1,32; do
  expect 2 '' bench --backend "$backend" --shape "$shape"
done
expect 2 'multiple' bench --backend "$backend" --shape 1,3,2,8,8,32
expect 3 'must be 32' bench --backend "$backend" --shape 1,1,1,8,8,48
expect 2 'forward, backward' bench --backend "$backend" --pass both
expect 2 '--repeat' bench --backend "$backend" --repeat 0
expect 2 '--json' bench --backend "$backend" --shape 1,1,1,8,8,32 --json q.npy/f.json

small=(bench --backend "$backend" --shape 2,4,2,40,56,32 --repeat 2)
expect 0 '^forward .*[0-9]' "${small[@]}"
has stdout.txt '^backward .*[0-9]'
has stdout.txt 'peak memory [0-9]+ MiB'
expect 0 '^forward' "${small[@]}" --pass forward --json f.json
grep -q '^backward' stdout.txt && fail '--pass forward runs the backward'
has f.json '"tflops": [0-9]'
has f.json '"flops": 2293760[,]?$'
expect 0 '' "${small[@]}" --pass forward --causal --json f.json
has f.json '"flops": 1146880[,]?$'
for mask in '' --causal --causal=bottom-right; do
  expect 0 'ratio' "${small[@]}" --recipe bf16 --baseline --json f.json $mask
  difference=$(sed -n 's/.*"baseline_difference": \([0-9.e+-]*\).*/\1/p' f.json)
  awk -v d="${difference:-1}" 'BEGIN { exit !(d < 0.02) }' || fail "the baseline differs by '$difference' with '$mask'"
done

# Each side has its own peak memory. The baseline's scores alone are 64 MiB a head and thread here; the library has none.
expect 0 'baseline: .* peak memory [0-9]+ MiB' bench --backend "$backend" --shape 1,2,2,4096,4096,32 --repeat 1 --pass forward \
  --baseline --json f.json
own=$(sed -n 's/.*"peak_memory_mib": \([0-9]*\).*/\1/p' f.json)
theirs=$(sed -n 's/.*"baseline_peak_memory_mib": \([0-9]*\).*/\1/p' f.json)
[ "${theirs:-0}" -ge 64 ] || fail "the baseline's peak memory is '$theirs' MiB"
[ "${own:-999999}" -lt "${theirs:-0}" ] || fail "the library's peak memory is '$own' MiB, the baseline's '$theirs'"
