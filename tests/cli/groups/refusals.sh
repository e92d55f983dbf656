# SPDX-License-Identifier: Apache-2.0
# Exit code 3: a sound problem that is not computed here, with the reason.
refuse() { # TEXT ARGUMENT...
  local text=$1
  shift
  expect 3 "$text" "$@" --out o
  [ ! -e o ] || fail "a refused run leaves the folder behind: $*"
}
refuse 'power-of-two scales' "${attention[@]}" --recipe tensor --delta consistent
refuse 'power-of-two scales' "${attention[@]}" --recipe bf16 --delta consistent
refuse 'softcap' "${attention[@]}" --softcap 5 --key-centring batch
refuse '16-bit' "${attention[@]}" --o-residual
refuse 'FP8 payloads' "${attention[@]}" --recipe bf16 --save-payloads
refuse 'E5M2|E4M3' "${attention[@]}" --recipe bf16 --e5m2-gradients

# An extent of zero is bad input, one that is not computed is not supported; either says what is.
npy a.npy f32 1,4,2,0 1
expect 2 'd must not be 0; allowed: 32, 64, 96, 128, 192, 256' attention --backend "$backend" --q a.npy --k a.npy --v a.npy --out o
for d in 1 31 33 80 257; do
  npy a.npy f32 1,4,2,$d 1
  refuse "must be 32, 64, 96, 128, 192 or 256, not $d" attention --backend "$backend" --q a.npy --k a.npy --v a.npy
done

for name in $("$octavo" backends | sed -n 's/^\([^ ]*\) compiled=no.*/\1/p'); do
  refuse "backend $name is not compiled: ." attention --backend "$name" "${qkv[@]}"
  expect 3 "backend $name is not compiled: ." audit --backend "$name" "${qkv[@]}" --dout do.npy --out o
  expect 3 "backend $name is not compiled: ." bench --backend "$name" --shape 1,1,1,8,8,32 --repeat 1
done
for name in $("$octavo" backends | sed -n 's/^\([^ ]*\) compiled=yes runnable=no.*/\1/p'); do
  refuse "backend $name cannot run here: ." attention --backend "$name" "${qkv[@]}"
done
