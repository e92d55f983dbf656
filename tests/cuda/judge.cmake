# SPDX-License-Identifier: Apache-2.0
# judge(PROGRAM FILE option...): the awk program prints what it finds in the file, and fails after "error: ..." lines.
function(judge program file)
  set(here "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  execute_process(COMMAND awk -f "${here}/kernels.awk" -f "${here}/${program}" ${ARGN} "${here}/spills.txt" "${file}"
    RESULT_VARIABLE failed)
  if(failed)
    message(SEND_ERROR "${program}: ${file} is not as it should be (errors above): ${failed}")
  endif()
endfunction()
