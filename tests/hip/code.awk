# SPDX-License-Identifier: Apache-2.0
# The code that clang makes of the kernels for CDNA3: FP8 products in one main loop, as many as a turn has, and none of
# wider types anywhere; no more registers than leave room for the waves that backends/hip/README.md plans; and nothing
# spilled but what spills.txt names.
# awk -f ../cuda/kernels.awk -f code.awk -v sm=gfx942 -v kernels=12 spills.txt notes.txt code.asm
# from llvm-readelf -n and llvm-objdump -d.
BEGIN { registers_of_a_lane = 512 }  # of a SIMD, vector and accumulation registers together: for all its waves

# The notes of a kernel, its symbol among them, in alphabetical order; vgpr_count is that of both kinds.
/^ +(- )?\.agpr_count:/ { accumulation = $NF }
/^ +\.name: +_Z/ {
  noted = name_of($2)
  agprs[noted] = accumulation
}
/^ +\.private_segment_fixed_size:/ { scratch[noted] = $2 }
/^ +\.vgpr_count:/ { vgprs[noted] = $2 }
/^ +\.vgpr_spill_count:/ { spilled[noted] = $2 }

/^[0-9a-f]+ <.*>:$/ {
  end_kernel()
  name = name_of($2)
  next
}
name == "" { next }
/^\t(scratch_(load|store)|buffer_(load|store))/ { ++scratch_accesses }
/^\tv_s?mfma/ {
  if ($1 ~ /^v_mfma_f32_(16x16x32|32x32x16)_(fp8|bf8)_(fp8|bf8)$/) product[++products] = address()
  else other = $1
}
# Branches back end loops; products stand between a branch's destination and itself.
/^\ts_c?branch/ && $2 > 32767 {  # words back, of 16 bits
  here = address()
  destination = here + 4 + 4 * ($2 - 65536)
  inside = 0
  for (i = 1; i <= products; ++i) inside += product[i] > destination
  if (inside > in_loop) in_loop = inside
}
END {
  end_kernel()
  verdict(seen)
}

# Of an instruction, from "// 00000000ABCD: words" behind it.
function address(   digits, value, i) {
  match($0, /\/\/ [0-9A-F]+/)
  digits = substr($0, RSTART + 3, RLENGTH - 3)
  for (i = 1; i <= length(digits); ++i) value = 16 * value + index("123456789ABCDEF", substr(digits, i, 1))
  return value
}

# 32 x 32 x 16 products of 32 rows and a step of tokens: step * d / 512 each of S, dP, and what makes O, dQ, dK or dV;
# in tile's forward O twice, the second where V's scales are too far apart for products to go on from O, and step / 16
# for l, where it sums rounded P.
function products_of_turn(kernel, d,   step, of_each) {
  step = kernel ~ /^forward/ && d == 64 ? 64 : 32
  of_each = step * d / 512
  if (kernel ~ /^quantise/) return 0
  if (kernel ~ /^dkv/) return 4 * of_each
  if (kernel ~ /^forward tile/) return 3 * of_each + (kernel ~ /matched/ ? step / 16 : 0)
  return (kernel ~ /^dq/ ? 3 : 2) * of_each
}
function waves_on_a_simd(kernel, d) { return kernel ~ /^dkv/ ? 1 : kernel ~ /^quantise/ && d == 64 ? 4 : 2 }

function end_kernel(   part, n, d, waves, wanted) {
  if (name != "") {
    ++seen
    n = split(name, part, " ")
    d = part[n]
    waves = waves_on_a_simd(name, d)
    wanted = products_of_turn(name, d)
    printf "%s: %d FP8 products in the main loop, %d registers (%d for accumulation), room for %d waves on a SIMD\n", name,
           in_loop, vgprs[name], agprs[name], waves
    if (other != "") error(name ": products that are not FP8: " other)
    if (products != wanted || in_loop != wanted)
      error(name ": " in_loop + 0 " of " products + 0 " FP8 products stand in the main loop, not " wanted)
    if (vgprs[name] + 0 == 0) error(name ": its registers are not known")
    if (vgprs[name] > registers_of_a_lane / waves)
      error(name ": " vgprs[name] " registers leave no room for " waves " waves on a SIMD")
    if (spilled[name] > most_stored[name] + 0)
      error(name ": " spilled[name] " registers spilled, more than " most_stored[name] + 0)
    if (scratch[name] > most_in_loop[name] + 0)
      error(name ": " scratch[name] " bytes of scratch memory a lane, more than " most_in_loop[name] + 0)
    if (scratch_accesses > 0 && scratch[name] + 0 == 0) error(name ": it reads or writes scratch memory that it has not")
  }
  products = in_loop = scratch_accesses = 0
  other = ""
}
