# SPDX-License-Identifier: Apache-2.0
# Simulated devices: --accumulator, and the counts of what their kernels did.
npy q64.npy f32 1,140,1,64 1
npy kv64.npy f32 1,130,1,64 2
simulated=(attention --backend "$backend" --recipe tile --q q64.npy --k kv64.npy --v kv64.npy --dout q64.npy --dtype bf16)
expect 2 'allowed: ideal, model' "${simulated[@]}" --accumulator best --out o
expect 2 '--accumulator: backend cpu simulates no device' attention "${qkv[@]}" --accumulator ideal --out o
expect 2 '--accumulator: backend reference simulates' bench --backend reference --accumulator model
absent o

expect 0 '' "${simulated[@]}" --out plain
expect 0 '' "${simulated[@]}" --accumulator ideal --out ideal
expect 0 '' "${simulated[@]}" --accumulator model --out model
cmp -s plain/o.npy ideal/o.npy || fail "the accumulator is not ideal where none is asked for"
cmp -s ideal/o.npy model/o.npy && fail "the modelled accumulator changes nothing"
has model/report.json '"accumulator": "model"'
has plain/report.json '"name": "hopper forward"'
has plain/report.json '"name": "quantise_kernel"'
has plain/report.json '"wgmma m64n128k32": [1-9]'
has plain/report.json '"barriers": [1-9]'
has plain/report.json '"shared_bytes": [1-9]'
has plain/report.json '"races_checked": false'

expect 0 '' attention "${qkv[@]}" --out cpu
grep -q '"kernels"' cpu/report.json && fail "a backend that simulates nothing counts kernels"
