# SPDX-License-Identifier: Apache-2.0
# What ptxas says of the kernels of the schedules: registers are taken over as asked (C7508 says they are not), products are not
# waited for one by one (C7510 to C7514), and spills stay within what the kernels' comments explain. Needs no GPU.
# cmake -D COMPILER=nvcc -D ARCHITECTURE=90a -D KERNELS=24 -D INCLUDE=dir -D SOURCE=file -D OUT=file -P compiler_report.cmake
# KERNELS: that the source has.
set(most_spilled 64)  # bytes stored by one kernel

execute_process(COMMAND "${COMPILER}" -std=c++20 -O3 -gencode "arch=compute_${ARCHITECTURE},code=sm_${ARCHITECTURE}" "-I${INCLUDE}"
  -Xptxas -v -cubin -o "${OUT}" "${SOURCE}" RESULT_VARIABLE failed OUTPUT_VARIABLE report ERROR_VARIABLE report)
if(failed)
  message(FATAL_ERROR "the kernels do not compile:\n${report}")
endif()

string(REGEX MATCHALL "\\(C75[0-9][0-9]\\)[^\n]*" complaints "${report}")
if(complaints)
  list(JOIN complaints "\n" complaints)
  message(SEND_ERROR "ptxas complains:\n${complaints}")
endif()

set(seen 0)
string(REGEX MATCHALL "Function properties for [^\n]*\n[^\n]*bytes spill stores[^\n]*" kernels "${report}")
foreach(kernel IN LISTS kernels)
  string(REGEX MATCH "(forward|delta_sums|dq|dkv)_kernel" name "${kernel}")
  if(NOT name)
    continue()
  endif()
  math(EXPR seen "${seen} + 1")
  string(REGEX MATCH "recipe[0-9]*(tile|token|mx32)" recipe "${kernel}")
  set(recipe "${CMAKE_MATCH_1}")
  string(REGEX MATCH "Li(64|128)E" d "${kernel}")
  set(d "${CMAKE_MATCH_1}")
  string(REGEX MATCH "([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads" spills "${kernel}")
  set(stored "${CMAKE_MATCH_1}")
  message(STATUS "${name} ${recipe} d ${d}: ${spills}")
  if(stored GREATER most_spilled)
    message(SEND_ERROR "${name}, ${recipe}, d ${d} spills ${stored} bytes, more than ${most_spilled}")
  endif()
endforeach()
if(NOT seen EQUAL KERNELS)
  message(SEND_ERROR "the report names ${seen} kernels, not ${KERNELS}:\n${report}")
endif()
