# SPDX-License-Identifier: Apache-2.0
# A source is compiled and assembled for each of some architectures, without spills. Needs no GPU.
# cmake -D COMPILER=nvcc -D INCLUDE=dir -D SOURCE=file -D "ARCHITECTURES=100a,103a" -D OUT=file -P assembles.cmake
string(REPLACE "," ";" architectures "${ARCHITECTURES}")
foreach(architecture IN LISTS architectures)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -O3 "-gencode=arch=compute_${architecture},code=sm_${architecture}"
    "-I${INCLUDE}" -Xptxas -v -cubin -o "${OUT}" "${SOURCE}" RESULT_VARIABLE failed OUTPUT_VARIABLE report
    ERROR_VARIABLE report)
  if(failed)
    message(SEND_ERROR "sm_${architecture}:\n${report}")
  elseif(NOT report MATCHES "0 bytes spill stores, 0 bytes spill loads")
    message(SEND_ERROR "sm_${architecture} spills:\n${report}")
  else()
    string(REGEX MATCH "Used [0-9]+ registers" used "${report}")
    message(STATUS "sm_${architecture}: ${used}")
  endif()
endforeach()
