# SPDX-License-Identifier: Apache-2.0
# Which files a run leaves, their shapes, the report, and numbers that follow from the mathematics.
gradients=(dq.npy dk.npy dv.npy delta.npy rowsum.npy l1.npy)
npy sink.npy f32 4 5
expect 0 '' "${attention[@]}" --out f
holds f o.npy lse.npy report.json
expect 0 '' "${attention[@]}" --dout do.npy --out b
holds b o.npy lse.npy report.json "${gradients[@]}"
expect 0 '' "${attention[@]}" --dout do.npy --sink sink.npy --out s
holds s o.npy lse.npy report.json "${gradients[@]}" dsink.npy
shows s/o.npy 'float32 ?2, 12, 4, 32? 0 not finite'
shows s/lse.npy 'float32 ?2, 4, 12? 0 not finite'
shows s/dq.npy 'float32 ?2, 12, 4, 32? 0 not finite'
shows s/dk.npy 'float32 ?2, 20, 2, 32? 0 not finite'
shows s/dv.npy 'float32 ?2, 20, 2, 32? 0 not finite'
shows s/delta.npy 'float32 ?2, 4, 12? 0 not finite'
shows s/rowsum.npy 'float32 ?2, 4, 12? 0 not finite'
shows s/l1.npy 'float32 ?2, 4, 12? 0 not finite'
shows s/dsink.npy 'float32 ?4? 0 not finite'
expect 0 '' "${attention[@]}" --dout do.npy --dtype bf16 --delta consistent --o-residual --save-payloads --out p
holds p o.npy lse.npy report.json "${gradients[@]}" o_residual.npy \
  {q,k,v,do}8.npy {q,k,v,do}_scale.npy
shows p/o_residual.npy 'float32 ?2, 12, 4, 32? 0 not finite'
shows p/k8.npy 'uint8 ?2, 20, 2, 32?'
shows p/k_scale.npy 'float32 ?2, 2, 20? 0 not finite'
expect 0 '' "${attention[@]}" --recipe mx32 --save-payloads --out m
shows m/k_scale.npy 'float32 ?2, 2, 20, 1? 0 not finite'
shows m/k_scale_columnwise.npy 'float32 ?2, 2, 1, 32? 0 not finite'
expect 0 '' "${attention[@]}" --recipe tile --save-payloads --out m
shows m/q_scale.npy 'float32 ?2, 4, 1? 0 not finite'
expect 0 '' "${attention[@]}" --recipe tensor --save-payloads --out m
shows m/q_scale.npy 'float32 ?2, 4? 0 not finite'

has b/report.json "\"backend\": \"$backend\""
has b/report.json '"device": ".+"'
has b/report.json '"recipe": "token"'
has b/report.json '"delta": "matched"'
has b/report.json '"element_type": "f32"'
has b/report.json '"forward_ms": [0-9]'
has b/report.json '"backward_ms": [0-9]'
has f/report.json '"backward_ms": null'
tr -d '\n' <b/report.json >line
has line '"main_loops": \[ +"'
expect 0 '' "${attention[@]}" --causal --key-centring batch --out c
has c/report.json 'future keys reach the rounding'
expect 0 '' "${attention[@]}" --key-centring batch --out c
tr -d '\n' <c/report.json >line
has line '"notes": \[\]'

# Twice the same is the same.
expect 0 '' "${attention[@]}" --dout do.npy --deterministic --out d1
expect 0 '' "${attention[@]}" --dout do.npy --deterministic --out d2
for name in o lse dq dk dv; do cmp -s d1/$name.npy d2/$name.npy || fail "--deterministic: two $name.npy differ"; done

# near LEFT RIGHT BOUND: the largest difference of two files.
near() {
  local difference
  difference=$("$make_npy" differ "$1" "$2")
  awk -v d="$difference" -v bound="$3" 'BEGIN { exit !(d <= bound) }' || fail "$1 and $2 differ by $difference, not <= $3"
}
# A window that reaches back over every key is the causal mask; the default scale is 1/sqrt(d).
expect 0 '' "${attention[@]}" --dout do.npy --causal --out w1
expect 0 '' "${attention[@]}" --dout do.npy --window 11,0 --out w2
expect 0 '' "${attention[@]}" --dout do.npy --causal --scale 0.17677669 --out w3
for name in o lse dq dk dv; do
  near w1/$name.npy w2/$name.npy 1e-5
  near w1/$name.npy w3/$name.npy 1e-5
done
# Rows of a causal mask with more queries than keys see nothing at first under bottom-right.
npy long.npy f32 1,5,1,32 1; npy short.npy f32 1,2,1,32 2
expect 0 '' attention --backend "$backend" --q long.npy --k short.npy --v short.npy --dout long.npy --causal=bottom-right --out z
shows z/lse.npy 'float32 ?1, 1, 5? 3 not finite'
shows z/dq.npy 'float32 ?1, 5, 1, 32? 0 not finite'
# A row with a single key has no gradient to pass on to scores.
npy one.npy f32 1,1,1,32 3
expect 0 '' attention --backend "$backend" --q one.npy --k one.npy --v one.npy --dout one.npy --out one
shows one/dq.npy '*zeros'
shows one/dk.npy '*zeros'
