# SPDX-License-Identifier: Apache-2.0
# A source is compiled and assembled for each of some architectures, without spills. Needs no GPU.
# cmake -D COMPILER=nvcc -D INCLUDE=dir -D SOURCE=file -D "ARCHITECTURES=100a,103a" -D OUT=file -P assembles.cmake
string(REPLACE "," ";" architectures "${ARCHITECTURES}")
foreach(architecture IN LISTS architectures)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -O3 "-gencode=arch=compute_${architecture},code=sm_${architecture}"
    "-I${INCLUDE}" "-I${INCLUDE}/../tests" -Xptxas -v -cubin -o "${OUT}" "${SOURCE}" RESULT_VARIABLE failed OUTPUT_VARIABLE report
    ERROR_VARIABLE report)
  if(failed)
    message(SEND_ERROR "sm_${architecture}:\n${report}")
  elseif(report MATCHES "[1-9][0-9]* bytes spill" OR NOT report MATCHES "0 bytes spill stores")
    message(SEND_ERROR "sm_${architecture} spills:\n${report}")
  else()
    string(REGEX MATCHALL "Used [0-9]+ registers" used "${report}")
    message(STATUS "sm_${architecture}: ${used}")
  endif()
endforeach()
