# SPDX-License-Identifier: Apache-2.0
# What ptxas makes of the kernels of a source: registers, spills and shared memory, against the bars of ptxas.awk. PTX
# is made once and assembled for each of some GPUs, to OUT_ARCHITECTURE.cubin. Needs no GPU.
# cmake -D COMPILER=nvcc -D INCLUDE=dir -D SOURCE=file -D PTX=100f -D ARCHITECTURES=100a,103a -D KERNELS=20 -D OUT=path
#       -P report.cmake
include("${CMAKE_CURRENT_LIST_DIR}/judge.cmake")

execute_process(COMMAND "${COMPILER}" -std=c++20 -O3 -arch=compute_${PTX} "-I${INCLUDE}" -ptx
  -o "${OUT}.ptx" "${SOURCE}" RESULT_VARIABLE failed ERROR_VARIABLE errors)
if(failed)
  message(FATAL_ERROR "the kernels do not compile:\n${errors}")
endif()
string(REPLACE "," ";" ARCHITECTURES "${ARCHITECTURES}")
foreach(architecture IN LISTS ARCHITECTURES)
  set(cubin "${OUT}_${architecture}.cubin")
  execute_process(COMMAND "${COMPILER}" -arch=sm_${architecture} -Xptxas -v -cubin -o "${cubin}" "${OUT}.ptx"
    RESULT_VARIABLE failed OUTPUT_FILE "${cubin}.txt" ERROR_FILE "${cubin}.txt")
  if(failed)
    file(READ "${cubin}.txt" errors)
    message(FATAL_ERROR "ptxas fails for sm_${architecture}:\n${errors}")
  endif()
  judge(ptxas.awk "${cubin}.txt" -v sm=${architecture} -v kernels=${KERNELS})
endforeach()
