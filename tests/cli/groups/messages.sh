# SPDX-License-Identifier: Apache-2.0
# Complaints name the word that is wrong, once, and what is allowed in that place.
expect 2 "there is no subcommand 'attentio'; allowed: attention, audit, bench, backends" attentio
expect 2 "there is no subcommand 'attentio'" attentio --q q.npy
expect 2 'unknown option --frobnicate; allowed: attention, audit' --frobnicate
# What is unknown comes before what is missing.
expect 2 'unknown option --recip ' attention --recip token
expect 2 'unknown option --recip ' "${attention[@]}" --recip token
expect 2 'unknown option --recip=token ' attention --recip=token
expect 2 'unexpected argument stray ' attention stray
expect 2 '--scale needs a value; allowed: X, softmax scale' "${attention[@]}" --out o --scale
expect 2 '--out needs a value; allowed: DIR' "${attention[@]}" --out
expect 2 "octavo: --causal: 'upper' is not allowed here; allowed: --causal \(top-left\)" "${attention[@]}" --causal=upper
expect 2 '--key-centring Batch: no such file; allowed: off, batch, or a float32 file' \
  "${attention[@]}" --out o --key-centring Batch

# The element types that each file may have, and no others.
raw_type() { # FILE DESCR SHAPE BYTES
  local header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
  { printf "\\x93NUMPY\\x01\\x00\\x$(printf %02x ${#header})\\x00%s" "$header"; head -c "$4" /dev/zero; } >"$1"
}
tensors='allowed: float32, float16, or uint16 holding bfloat16 with --dtype bf16( .little-endian.)?$'
raw_type d.npy '<f8' '(2, 12, 4, 32)' 24576
raw_type b.npy '>f4' '(2, 12, 4, 32)' 12288
npy i.npy i64 2,12,4,32 =1
npy u.npy u8 2,12,4,32 =1
for file in d b i u; do
  expect 2 "$tensors" attention --backend "$backend" --q $file.npy --k k.npy --v v.npy --out o
  expect 2 "$tensors" "${attention[@]}" --dout $file.npy --out o
done
raw_type d.npy '<f8' '(4,)' 32
npy h.npy f16 4 1
for file in d h; do
  expect 2 "$file.npy: .*; allowed: float32( .little-endian.)?$" "${attention[@]}" --sink $file.npy --out o
  expect 2 "$file.npy: .*; allowed: float32( .little-endian.)?$" "${attention[@]}" --key-centring $file.npy --out o
done
npy q3.npy f32 12,4,32 1; npy k3.npy f32 20,2,32 2
raw_type d.npy '<u4' '(3,)' 12
npy f.npy f32 3 =0,3,3
for file in d f; do
  expect 2 "$file.npy: .*; allowed: int32, int64( .little-endian.)?$" attention --backend "$backend" --q q3.npy --k k3.npy \
    --v k3.npy --cu-seqlens-q $file.npy --cu-seqlens-kv $file.npy --out o
done
absent o
