# SPDX-License-Identifier: Apache-2.0
# Shapes and element types that do not fit together, and extents of zero.
pair() { # TEXT Q-SHAPE K-SHAPE V-SHAPE
  npy a.npy f32 "$2" 1; npy b.npy f32 "$3" 2; npy c.npy f32 "$4" 3
  expect 2 "$1" attention --backend "$backend" --q a.npy --k b.npy --v c.npy --out o
  absent o
}
pair 'q \[2, 12, 4\] must be \[b, s, h, d\]' 2,12,4 2,20,2,32 2,20,2,32
pair 'q \[2, 12, 4, 32\] and k \[3, 20, 2, 32\] must have the same b' 2,12,4,32 3,20,2,32 3,20,2,32
pair 'same d_qk' 2,12,4,32 2,20,2,64 2,20,2,64
pair 'k \[2, 20, 2, 32\] and v \[2, 21, 2, 32\]' 2,12,4,32 2,20,2,32 2,21,2,32
pair 'k .* and v .* must agree' 2,12,4,32 2,20,2,32 2,20,4,32
pair 'multiple of h_kv' 2,12,3,32 2,20,2,32 2,20,2,32
pair 'multiple of h_kv' 2,12,4,32 2,20,0,32 2,20,0,32
pair 'multiple of h_kv' 2,12,0,32 2,20,2,32 2,20,2,32
pair 'd must not be 0' 2,12,4,0 2,20,2,0 2,20,2,32
pair 'd must not be 0' 2,12,4,32 2,20,2,32 2,20,2,0

npy x.npy f32 2,12,4,64 4
expect 2 'dout \[2, 12, 4, 64\] must be \[2, 12, 4, 32\]' "${attention[@]}" --dout x.npy --out o
npy x.npy f32 3 4
expect 2 'sink \[3\] must be \[4\]' "${attention[@]}" --sink x.npy --out o
expect 2 'key-centring .* must be \[2, 2, 32\]' "${attention[@]}" --key-centring x.npy --out o
npy x.npy f16 4 4
expect 2 'allowed: float32' "${attention[@]}" --sink x.npy --out o

# Element types.
npy h.npy f16 2,12,4,32 1; npy t.npy bf16 2,12,4,32 1; npy i.npy i32 2,12,4,32 =1
try() { expect "$1" "$2" attention --backend "$backend" --k k.npy --v v.npy --out o "${@:3}"; }
try 2 'uint16.*--dtype bf16' --q t.npy
try 2 'uint16.*--dtype bf16' --q t.npy --dtype f16
try 2 'int32; allowed: float32, float16, or uint16' --q i.npy
try 2 'one element type' --q h.npy
try 2 'float16, but --dtype is bf16' --q h.npy --dtype bf16
absent o
try 0 '' --q t.npy --dtype bf16
has o/report.json '"element_type": "bf16"'
try 0 '' --q h.npy --dtype f16
has o/report.json '"element_type": "f16"'

# A float32 file rounded to T is the file of T.
expect 0 '' "${attention[@]}" --dtype bf16 --out r1
expect 0 '' attention --backend "$backend" --q t.npy --k k.npy --v v.npy --dtype bf16 --out r2
cmp -s r1/o.npy r2/o.npy || fail 'rounding on reading differs from a file of bfloat16'

# Nothing to do is done.
empty() { # Q-SHAPE K-SHAPE O-SHAPE LSE-SHAPE
  npy a.npy f32 "$1" 1; npy b.npy f32 "$2" 2
  rm -rf o
  expect 0 '' attention --backend "$backend" --q a.npy --k b.npy --v b.npy --dout a.npy --out o
  shows o/o.npy "float32 $3*"
  shows o/lse.npy "float32 $4*"
  shows o/dk.npy "float32 ?${2//,/, }?*"
}
empty 2,0,4,32 2,20,2,32 '?2, 0, 4, 32?' '?2, 4, 0?'
shows o/dk.npy '*zeros'
shows o/dv.npy '*zeros'
empty 0,12,4,32 0,20,2,32 '?0, 12, 4, 32?' '?0, 4, 12?'
empty 2,12,4,32 2,0,2,32 '?2, 12, 4, 32?' '?2, 4, 12?'
shows o/o.npy '*zeros'
shows o/lse.npy '*96 not finite'
shows o/dq.npy '*zeros'

# NaN and Inf: a warning with the tensor and the first index, and the run goes on.
npy n.npy f32 2,12,4,32 =1,2,nan
expect 0 'warning: q has NaN at \[0, 0, 0, 2\]' attention --backend "$backend" --q n.npy --k k.npy --v v.npy --out n
shows n/o.npy 'float32 *'
npy n.npy f32 2,20,2,32 =1,2,3,4,5,-inf
expect 0 'warning: v has Inf at \[0, 0, 0, 5\]' attention --backend "$backend" --q q.npy --k k.npy --v n.npy --out n
npy n.npy f32 2,12,4,32 =1,100000
expect 0 'beyond the range of f16' attention --backend "$backend" --q n.npy --k k.npy --v v.npy --dtype f16 --out n
