# SPDX-License-Identifier: Apache-2.0
# The code that clang makes of the kernels for CDNA3, judged by code.awk: of each recipe and head dimension assembler,
# RECIPE_D.s, the code object, RECIPE_D.hsaco, and beside it what says of it the disassembler (.asm) and its notes. (Shared
# memory is checked while compiling: see code_object.cpp.) Needs no GPU.
# cmake -D COMPILER=clang++ -D "FLAGS=..." -D OBJDUMP=llvm-objdump -D READELF=llvm-readelf -D INCLUDE=dir -D SOURCE=file
#       -D OUT=folder -P code_objects.cmake
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY "${OUT}")
separate_arguments(FLAGS)

# step(what output command...)
function(step what output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_FILE "${output}" ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "${what} fails:\n${errors}")
  endif()
endfunction()

foreach(recipe IN ITEMS tile token)
  foreach(d IN ITEMS 64 128)
    set(name "${OUT}/${recipe}_${d}")
    step("compiling ${recipe} at d ${d}" "${name}.txt"
      "${COMPILER}" -x hip --offload-arch=gfx942 --offload-device-only --no-gpu-bundle-output ${FLAGS} -std=c++20 -O3
      -ffp-contract=on "-I${INCLUDE}" -DOCTAVO_RECIPE=${recipe} -DOCTAVO_D=${d} -S "${SOURCE}" -o "${name}.s")
    step("assembling" "${name}.txt" "${COMPILER}" -target amdgcn-amd-amdhsa -mcpu=gfx942 "${name}.s" -o "${name}.hsaco")
    step("reading notes" "${name}.txt" "${READELF}" -n "${name}.hsaco")
    step("disassembling" "${name}.asm" "${OBJDUMP}" -d --mcpu=gfx942 "${name}.hsaco")
    set(here "${CMAKE_CURRENT_LIST_DIR}")
    execute_process(COMMAND awk -f "${here}/../cuda/kernels.awk" -f "${here}/code.awk" -v sm=gfx942 -v kernels=12
      "${here}/spills.txt" "${name}.txt" "${name}.asm" RESULT_VARIABLE failed)
    if(failed)
      message(SEND_ERROR "the code of ${recipe} at d ${d} is not as it should be (errors above)")
    endif()
  endforeach()
endforeach()
