# SPDX-License-Identifier: Apache-2.0
# The machine code that report.cmake left, disassembled and judged by loops.awk.
# cmake -D DISASSEMBLER=nvdisasm -D CUBIN=file -D SM=100a -D KERNELS=20 -D UNIT=tcgen05 -P loops.cmake
include("${CMAKE_CURRENT_LIST_DIR}/judge.cmake")

execute_process(COMMAND "${DISASSEMBLER}" -c "${CUBIN}" RESULT_VARIABLE failed OUTPUT_FILE "${CUBIN}.sass"
  ERROR_VARIABLE errors)
if(failed)
  message(FATAL_ERROR "the disassembler fails: ${errors}")
endif()
judge(loops.awk "${CUBIN}.sass" -v sm=${SM} -v kernels=${KERNELS} -v unit=${UNIT})
