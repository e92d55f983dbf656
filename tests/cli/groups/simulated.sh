# SPDX-License-Identifier: Apache-2.0
# Simulated devices: --accumulator, and the counts of what their kernels did.
case $backend in
  sim-cuda-hopper) recipe=tile forward='hopper forward' product='wgmma m64n128k32' ;;
  sim-cuda-blackwell) recipe=mx32 forward='blackwell forward' product='tcgen05 mxf8f6f4 m128n128k32' ;;
  sim-cuda-simt) recipe=tile forward='simt forward' product='mma m16n8k32' ;;
  sim-hip-cdna3) recipe=tile forward='simt forward' product='v_mfma_f32_32x32x16_fp8_fp8' ;;
  sim-hip-cdna4) recipe=tile forward='simt forward' product='v_mfma_scale_f32_32x32x64_f8f6f4' ;;
esac
npy q64.npy f32 1,140,1,64 1
npy kv64.npy f32 1,130,1,64 2
simulated=(attention --backend "$backend" --recipe $recipe --q q64.npy --k kv64.npy --v kv64.npy --dout q64.npy --dtype bf16)
expect 2 'allowed: ideal, model' "${simulated[@]}" --accumulator best --out o
expect 2 '--accumulator: backend cpu simulates no device' attention "${qkv[@]}" --accumulator ideal --out o
expect 2 '--accumulator: backend reference simulates' bench --backend reference --accumulator model
case $backend in
  sim-hip-cdna3) expect 0 '' "${simulated[@]}" --e5m2-gradients --out e5m2 ;;
  *) expect 3 "backend $backend has no E5M2 gradients here; leave" "${simulated[@]}" --e5m2-gradients --out o ;;
esac
scaled=("${simulated[@]:0:3}" --recipe mx32 "${simulated[@]:5}")
case $backend in
  sim-hip-cdna4 | sim-cuda-blackwell) expect 0 '' "${scaled[@]}" --out mx32 ;;
  *) expect 3 "does not compute recipe mx32 .*; recipes with these: token, tile" "${scaled[@]}" --out o ;;
esac
absent o

expect 0 '' "${simulated[@]}" --out plain
expect 0 '' "${simulated[@]}" --accumulator ideal --out ideal
expect 0 '' "${simulated[@]}" --accumulator model --out model
cmp -s plain/o.npy ideal/o.npy || fail "the accumulator is not ideal where none is asked for"
[[ $backend != sim-cuda-hopper ]] || ! cmp -s ideal/o.npy model/o.npy || fail "the modelled accumulator changes nothing"
has model/report.json '"accumulator": "model"'
has plain/report.json "\"name\": \"$forward\""
has plain/report.json '"name": "quantise_kernel"'
has plain/report.json "\"$product\": [1-9]"
has plain/report.json '"barriers": [1-9]'
has plain/report.json '"shared_bytes": [1-9]'
has plain/report.json '"notes": \[\]'
# What no schedule takes, the generic loops compute: nothing is simulated, and the report says so.
expect 0 '' "${simulated[@]}" --scale -1 --accumulator model --out generic
has generic/report.json '"kernels": \[\]'
has generic/report.json 'nothing was simulated'
has plain/report.json '"races_checked": false'

expect 0 '' attention "${qkv[@]}" --out cpu
grep -q '"kernels"' cpu/report.json && fail "a backend that simulates nothing counts kernels"
