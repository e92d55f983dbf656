#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faults planted in what nvdisasm and ptxas said of Blackwell's kernels: loops.awk and ptxas.awk must find each.
# planted.sh CUBIN: beside it stand CUBIN.sass and CUBIN.txt, as loops.cmake and report.cmake left them.
# shellcheck disable=SC2016
set -uo pipefail
cubin=$1 here=$(dirname "${BASH_SOURCE[0]}") failed=0 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

judge() {  # PROGRAM KERNELS FILE
  awk -f "$here/kernels.awk" -f "$here/$1" -v kernels="$2" -v sm=100a -v unit=tcgen05 "$here/spills.txt" "$3"
}
# planted WHAT PROGRAM KERNELS FILE EXPECTED AWK: the file as AWK changes it, and what the error must say.
planted() {
  awk "$6" "$4" >"$work/planted"
  if cmp -s "$4" "$work/planted"; then
    echo "error: $1: nothing was planted"
    failed=1
  elif judge "$2" "$3" "$work/planted" >"$work/said" || ! grep -q "^error: .*$5" "$work/said"; then
    echo "error: $1 is not found:"
    cat "$work/said"
    failed=1
  else
    echo "$1: $(grep -m1 '^error' "$work/said")"
  fi
}

dq=$work/dq.sass
awk '/\.section[ \t]+\.text\./ {on = /run_blocks.*dq_kernel.*matched.*Li64E/} on' "$cubin.sass" >"$dq"
judge loops.awk 1 "$dq" || failed=1
loops() { planted "$1" loops.awk 1 "$dq" "$2" "$3"; }
loops "a product of registers" "products of another unit" \
  '{print} / UTCQMMA /&& !n++ {print "/*0*/ HMMA.16816.F32 R4, R8, R10, R4 ;"}'
loops "a product without scales" "products of another unit" \
  '/ UTCQMMA /&& !n++ {sub(/, tmem\[[^,]*\], (!?UPT|UP[0-9])/, ", UPT")} {print}'
loops "a product too few" "products in the main loop" '/ UTCQMMA /&& !n++ {next} {print}'
loops "arithmetic between products" "loop of products" '{print} / UTCQMMA / {print "/*0*/ FFMA R4, R8, R10, R4 ;"}'
loops "arithmetic between copies" "loop of products or copies" '{print} / UBLKCP/ {print "/*0*/ FMUL R4, R8, R10 ;"}'
loops "an FFMA more for each element" "FFMA for 64 elements" \
  '{print} / MUFU.EX2 / {print "/*0*/ FFMA R4, R8, R10, R4 ;"}'
loops "an FADD more for each element" "sums and factors" '{print} / MUFU.EX2 / {print "/*0*/ FADD R4, R8, R10 ;"}'
loops "an exponential more for each element" "exponentials for 64" '{print} / MUFU.EX2 / {print}'
loops "products by FFMA behind the loops" "FFMA outside" \
  '{print} /EXIT/ {for (i = 0; i < 64; ++i) print "/*0*/ FFMA R4, R8, R10, R4 ;"}'
loops "a spill in the loop" "local memory in a loop" '{print} / MUFU.EX2 / && !n++ {print "/*0*/ STL [R1], R4 ;"}'
loops "registers that are not raised" "registers are raised" '!/TRY_ALLOC/'
loops "a loop without exponentials" "0 with exponentials" '!/MUFU.EX2/'
loops "an indirect branch" "does not follow" '{print} / UTCQMMA /&& !n++ {print "/*0*/ BRX R4 -0x10 ;"}'
loops "a minimum with a predicate" "wrong on an H200" \
  '{print} / UTCQMMA /&& !n++ {print "/*0*/ VIMNMX.RELU R22, P3, P3, R22, 0x20, PT ;"}'
# The maximum of the scores stands between a BSSY and its BSYNC: no way leads around it.
forward=$work/forward.sass
awk '/\.section[ \t]+\.text\./ {on = /run_blocks.*forward_kernel.*matched.*Li64ELb1E/} on' "$cubin.sass" >"$forward"
judge loops.awk 1 "$forward" || failed=1
planted "an FADD more for each maximum" loops.awk 1 "$forward" "sums and factors" \
  '{print} / FMNMX3 / {print "/*0*/ FADD R4, R8, R10 ;"}'
planted "a kernel too few" loops.awk 2 "$dq" "1 kernels are named, not 2" '{print} END {print ""}'

ptxas() { planted "$1" ptxas.awk 24 "$cubin.txt" "$2" "$3"; }
ptxas "a spill" "spills 4 bytes" '/run_blocks/ {on = 1} on && /bytes stack frame/ && !n++ {$1 = 8; $5 = 4} {print}'
ptxas "a stack" "bytes in local memory" '/run_blocks/ {on = 1} on && /bytes stack frame/ && !n++ {$1 = 8} {print}'
ptxas "registers that are not taken over" "C7508" '{print} END {print "ptxas info : (C7508) ignored"}'
ptxas "too much shared memory" "of shared memory, more" \
  '/shared_bytes_of/ {sub(/Li[0-9]+EEEvv/, "Li232449EEEvv")} {print}'
ptxas "shared memory that is not told" "is not known" '!/shared_bytes_of/'
ptxas "a kernel too few" "not 24" '/run_blocks/ && !n++ {next} {print}'
exit $failed
