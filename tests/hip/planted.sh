#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faults planted in what the disassembler and the notes say of kernels for CDNA3: code.awk must find each.
# planted.sh FOLDER: where code_objects.cmake left token_128.asm and token_128.txt.
# shellcheck disable=SC2016
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}") failed=0 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One dQ, and its notes with those of the others.
awk '/^[0-9a-f]+ </ {on = /dq_kernel.*5token.*matched.*Li128E/ && !/e5m2/} on' "$1/token_128.asm" >"$work/code"
cp "$1/token_128.txt" "$work/notes"

judge() {  # NOTES CODE
  awk -f "$here/../cuda/kernels.awk" -f "$here/code.awk" -v sm=gfx942 -v kernels=1 "$here/spills.txt" "$1" "$2"
}
# planted WHAT FILE EXPECTED AWK: the file, code or notes, as AWK changes it, and what the error must say.
planted() {
  local notes=$work/notes code=$work/code
  awk "$4" "$work/$2" >"$work/planted"
  if cmp -s "$work/$2" "$work/planted"; then
    echo "error: $1: nothing was planted"
    failed=1
    return
  fi
  if [[ $2 == code ]]; then code=$work/planted; else notes=$work/planted; fi
  if judge "$notes" "$code" >"$work/said" || ! grep -q "^error: .*$3" "$work/said"; then
    echo "error: $1 is not found:"
    cat "$work/said"
    failed=1
  else
    echo "$1: $(grep -m1 '^error' "$work/said")"
  fi
}

judge "$work/notes" "$work/code" || failed=1
planted "a product of F16" code "products that are not FP8" \
  '{print} /v_mfma/ && !n++ {print "\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15] // 000000000000: 0"}'
planted "an FP8 product too few" code "23 of 23 FP8 products" '/v_mfma/ && !n++ {next} {print}'
planted "an FP8 product too many" code "25 of 25 FP8 products" '{print} /v_mfma/ && !n++ {print}'
planted "a product behind the loop" code "24 of 25 FP8 products" \
  '/v_mfma/ {product = $0} {print} END {sub(/\/\/ [0-9A-F]+/, "// 00000FFFFFFF", product); print product}'
planted "a loop that is none" code "0 of 24 FP8 products" '/s_c?branch/ && $2 > 32767 {$2 = 4; $0 = "\t" $0} {print}'
planted "a spill to memory" code "scratch memory that it has not" \
  '{print} /v_exp/ && !n++ {print "\tscratch_store_dword off, v1, off offset:4 // 000000000000: 0"}'
dq='/ \.name: / {on = /dq_kernel.*5token.*matched.*Li128E/ && !/e5m2/}'
planted "scratch memory" notes "16 bytes of scratch" \
  "$dq on && /private_segment/ {\$0 = \"    .private_segment_fixed_size: 16\"} {print}"
planted "a spilled register" notes "1 registers spilled" \
  "$dq on && /vgpr_spill/ {\$0 = \"    .vgpr_spill_count: 1\"} {print}"
planted "too many registers" notes "leave no room for 2 waves" \
  "$dq on && /\\.vgpr_count/ {\$0 = \"    .vgpr_count: 264\"} {print}"
planted "notes that are missing" notes "registers are not known" "$dq !(on && /\\.vgpr_count/)"
planted "a kernel too few" code "0 kernels are named, not 1" '/^[0-9a-f]+ </ {sub(/dq_kernel/, "other")} {print}'
exit $failed
