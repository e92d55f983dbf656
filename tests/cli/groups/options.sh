# SPDX-License-Identifier: Apache-2.0
# The option parser: what it takes, what it refuses, and that a refusal is exit code 2 and one line.
expect 0 'attention' --help
expect 0 '--key-centring' attention --help
expect 0 'octavo [0-9]+\.[0-9]+\.[0-9]+' --version
expect 0 "^$backend compiled=yes runnable=yes .*; is: .*; recipes: .*; features: " backends
# What a backend is does not depend on whether it is compiled.
expect 0 "^cuda-hopper compiled=(yes|no) runnable=(yes|no) .+; is: FP8 on Hopper's wgmma \(sm_90a\)[^;]*; recipes: " backends
expect 0 '^sim-hip-cdna4 .*; is: the kernels of hip-cdna4 on a host, ' backends
grep -vE '; is: [^;]{10,}; recipes: ' stdout.txt && fail "a backend does not say what it is"
expect 2 'allowed: attention, audit, bench, backends'
expect 2 'allowed: attention, audit, bench, backends' nonsense
expect 2 '' attention bench
expect 2 'unknown option --nonsense' "${attention[@]}" --out o --nonsense
expect 2 'unexpected argument stray' "${attention[@]}" --out o stray
expect 2 '--out is required' "${attention[@]}"
expect 2 '--q is required' attention --out o
expect 2 '--q is given more than once' "${attention[@]}" --out o --q q.npy
expect 2 '--causal is given more than once' "${attention[@]}" --out o --causal --causal=bottom-right
expect 2 '--deterministic' "${attention[@]}" --out o --deterministic --deterministic
expect 2 '--scale' "${attention[@]}" --out o --scale 1 --scale 1

expect 2 'allowed: .*cpu.*cuda-hopper' attention --backend gpu "${qkv[@]}" --out o
expect 2 'allowed: mx32, token, tile, tensor, bf16, exact' "${attention[@]}" --recipe fp8 --out o
expect 2 'allowed: stale, matched, consistent' "${attention[@]}" --delta fresh --out o
expect 2 'allowed: f32, f16, bf16' "${attention[@]}" --dtype float --out o
expect 2 'bottom-right' "${attention[@]}" --causal=upper --out o
expect 2 '' "${attention[@]}" --causal bottom-right --out o
for number in nan inf -inf 1e99 '' 1x x '1 2' 0x1p; do
  expect 2 '' "${attention[@]}" --scale "$number" --out o
  expect 2 '' "${attention[@]}" --softcap "$number" --out o
done
expect 2 '--softcap' "${attention[@]}" --softcap -1 --out o
for window in 1 1, ,1 1,2,3 -2,0 0,-2 a,b 1.5,2 99999999999999999999,0 ''; do
  expect 2 'window' "${attention[@]}" --window "$window" --out o
done
expect 2 'cu-seqlens' "${attention[@]}" --cu-seqlens-q q.npy --out o
expect 2 'cu-seqlens' "${attention[@]}" --cu-seqlens-kv q.npy --out o
absent o

# --causal leaves the argument after it alone, and negative numbers are values.
expect 0 '' "${attention[@]}" --causal --window -1,0 --scale -0.5 --out o1
has o1/report.json '"causal": "top-left"'
has o1/report.json '"scale": -0.5'
expect 0 '' "${attention[@]}" --causal=bottom-right --out o2
has o2/report.json '"causal": "bottom-right"'
expect 0 '' attention --causal --q=q.npy --k=k.npy --v=v.npy --backend="$backend" --out=o3

# A result that could not be printed is a failure.
if [ -w /dev/full ]; then
  for arguments in backends --help 'bench --help' "bench --backend $backend --shape 1,1,1,8,8,32 --repeat 1"; do
    "$octavo" $arguments >/dev/full 2>stderr.txt
    code=$?
    [ $code = 1 ] || fail "octavo $arguments >/dev/full: exit code $code, not 1"
    has stderr.txt '^octavo: standard output cannot be written'
    [ "$(wc -l <stderr.txt)" = 1 ] || fail "octavo $arguments >/dev/full: $(cat stderr.txt)"
  done
fi
