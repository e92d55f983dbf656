# SPDX-License-Identifier: Apache-2.0
# Packed documents: offsets that are checked, and rows past the last document.
npy q.npy f32 12,4,32 1; npy k.npy f32 20,2,32 2; npy v.npy f32 20,2,32 3; npy do.npy f32 12,4,32 4
npy cu_q.npy i32 4 =0,3,3,10
npy cu_kv.npy i64 4 =0,5,9,18
packed() { expect "$1" "$2" attention --backend "$backend" "${qkv[@]}" --dout do.npy --out "${out:-o}" "${@:3}"; }
offsets() { # TEXT DTYPE SHAPE VALUES
  npy x.npy "$2" "$3" "=$4"
  packed 2 "$1" --cu-seqlens-q x.npy --cu-seqlens-kv cu_kv.npy
  absent o
}
packed 2 'b, s, h, d.*--cu-seqlens-q'
packed 2 'requires|cu-seqlens-kv' --cu-seqlens-q cu_q.npy
offsets 'begin with 0, not 1' i32 4 1,3,3,10
offsets 'must not decrease, but goes from 5 to 3 at index 2' i32 4 0,5,3,10
offsets 'must not decrease' i64 4 0,-1,3,10
offsets 'ends at 13, beyond the 12 rows of q' i32 4 0,3,3,13
offsets 'ends at 9007199254740992, beyond' i64 4 0,3,3,9007199254740992
offsets 'same number of documents' i32 3 0,3,10
offsets 'must be \[documents \+ 1\]' i32 2,2 0,3,3,10
offsets 'must be \[documents \+ 1\]' i32 0 0
offsets 'float32; allowed: int32, int64' f32 4 0,3,3,10
offsets 'uint8; allowed: int32, int64' u8 4 0,3,3,10
npy dense.npy f32 1,12,4,32 1
expect 2 'must be \[total, h, d\]' attention --backend "$backend" --q dense.npy --k k.npy --v v.npy \
  --cu-seqlens-q cu_q.npy --cu-seqlens-kv cu_kv.npy --out o

out=p packed 0 '' --cu-seqlens-q cu_q.npy --cu-seqlens-kv cu_kv.npy --causal
shows p/o.npy 'float32 ?12, 4, 32? 0 not finite'
shows p/lse.npy 'float32 ?4, 12? 8 not finite'
shows p/dk.npy 'float32 ?20, 2, 32? 0 not finite'
shows p/rowsum.npy 'float32 ?4, 12? 0 not finite'
# Every row of the last document at its end: the last two rows of q and k belong to nobody.
tail -c $((2 * 4 * 32 * 4)) p/o.npy | cmp -s - <(head -c $((2 * 4 * 32 * 4)) /dev/zero) || fail 'o beyond the documents is not zero'
tail -c $((2 * 2 * 32 * 4)) p/dk.npy | cmp -s - <(head -c $((2 * 2 * 32 * 4)) /dev/zero) || fail 'dk beyond the documents is not zero'

# One document over all rows is a batch of one.
npy one_q.npy i64 2 =0,12; npy one_kv.npy i32 2 =0,20
out=p1 packed 0 '' --cu-seqlens-q one_q.npy --cu-seqlens-kv one_kv.npy
npy qb.npy f32 1,12,4,32 1; npy kb.npy f32 1,20,2,32 2; npy vb.npy f32 1,20,2,32 3; npy dob.npy f32 1,12,4,32 4
expect 0 '' attention --backend "$backend" --q qb.npy --k kb.npy --v vb.npy --dout dob.npy --out b1
for name in o dq dk dv; do
  size=$(($(stat -c %s b1/$name.npy) - 128))
  cmp -s <(tail -c $size b1/$name.npy) <(tail -c $size p1/$name.npy) || fail "one document and one batch: $name differs"
done

# No documents at all: everything belongs to nobody.
npy none.npy i32 1 =0
out=n packed 0 '' --cu-seqlens-q none.npy --cu-seqlens-kv none.npy
shows n/o.npy 'float32 ?12, 4, 32? zeros'
shows n/dv.npy 'float32 ?20, 2, 32? zeros'
# Payloads and a centring file per document.
npy shift.npy f32 3,2,32 6
out=s packed 0 '' --cu-seqlens-q cu_q.npy --cu-seqlens-kv cu_kv.npy --key-centring shift.npy --recipe tile --save-payloads
shows s/k8.npy 'uint8 ?20, 2, 32?'
shows s/k_scale.npy 'float32 ?2, 3? 0 not finite'
