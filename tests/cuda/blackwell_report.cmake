# SPDX-License-Identifier: Apache-2.0
# What ptxas makes of the Blackwell kernels: no spills, registers taken over as asked (C7508 says they are not). (The source
# holds shared memory to a multiprocessor's 227 KB.) With a disassembler: every product of the loops is a block-scaled one on tensor
# memory, scales come there by copies, and there is no product of registers. Needs no GPU.
# cmake -D COMPILER=nvcc -D ARCHITECTURE=100a -D INCLUDE=dir -D SOURCE=file -D OUT=file [-D DISASSEMBLER=nvdisasm]
#   -P blackwell_report.cmake
set(row_registers 208)  # row_registers of products.hpp: what the groups of rows run with

execute_process(COMMAND "${COMPILER}" -std=c++20 -O3 "-gencode=arch=compute_${ARCHITECTURE},code=sm_${ARCHITECTURE}"
  "-I${INCLUDE}" -Xptxas -v -cubin -o "${OUT}" "${SOURCE}" RESULT_VARIABLE failed OUTPUT_VARIABLE report
  ERROR_VARIABLE report)
if(failed)
  message(FATAL_ERROR "the kernels do not compile for sm_${ARCHITECTURE}:\n${report}")
endif()
string(REGEX MATCHALL "\\(C75[0-9][0-9]\\)[^\n]*" complaints "${report}")
if(complaints)
  list(JOIN complaints "\n" complaints)
  message(SEND_ERROR "ptxas complains:\n${complaints}")
endif()

# name_of(SYMBOL): the kernel's name, policy and d in words, or nothing.
function(name_of symbol)
  set(name "")
  string(REGEX MATCH "(quantise|forward|delta_sums|dq|dkv)_kernel" _ "${symbol}")
  set(kernel "${CMAKE_MATCH_1}")
  string(REGEX MATCH "delta[0-9]*(matched|consistent)" _ "${symbol}")
  set(policy "${CMAKE_MATCH_1}")
  string(REGEX MATCH "Li(64|128)E" _ "${symbol}")
  if(kernel)
    set(name "${kernel} ${policy} d ${CMAKE_MATCH_1}")
  endif()
  set(name "${name}" PARENT_SCOPE)
endfunction()

set(seen 0)
string(REGEX MATCHALL "Function properties for [^\n]*\n[^\n]*\n[^\n]*Used[^\n]*" kernels "${report}")
foreach(kernel IN LISTS kernels)
  name_of("${kernel}")
  if(NOT name)
    continue()
  endif()
  math(EXPR seen "${seen} + 1")
  string(REGEX MATCH "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads" spills "${kernel}")
  set(stack "${CMAKE_MATCH_1}")
  set(stored "${CMAKE_MATCH_2}")
  string(REGEX MATCH "Used ([0-9]+) registers" registers "${kernel}")
  message(STATUS "sm_${ARCHITECTURE} ${name}: ${registers} at launch, ${spills}")
  if(stored GREATER 0 OR stack GREATER 0)
    message(SEND_ERROR "${name} keeps ${stack} bytes in local memory and spills ${stored}")
  endif()
endforeach()
if(NOT seen EQUAL 14)
  message(SEND_ERROR "the report names ${seen} kernels, not 14:\n${report}")
endif()

if(NOT DISASSEMBLER)
  message(STATUS "skipped: the disassembly, since no nvdisasm was found (PyPI: nvidia-cuda-nvdisasm)")
  return()
endif()
execute_process(COMMAND "${DISASSEMBLER}" -c "${OUT}" RESULT_VARIABLE failed OUTPUT_VARIABLE code ERROR_VARIABLE complaint)
if(failed)
  message(FATAL_ERROR "the disassembler fails: ${complaint}")
endif()
string(REPLACE ";" " " code "${code}")  # not a list, which brackets would join
string(REPLACE "[" "(" code "${code}")
string(REPLACE "]" ")" code "${code}")
string(REGEX REPLACE "\n[ \t]*\\.section[ \t]+\\.text\\." ";" functions "${code}")
list(POP_FRONT functions)
set(seen 0)
foreach(function IN LISTS functions)
  string(REGEX MATCH "^[^\n]*" symbol "${function}")
  name_of("${symbol}")
  if(NOT name)
    continue()
  endif()
  math(EXPR seen "${seen} + 1")
  foreach(instruction IN ITEMS UTCQMMA UTCCP HMMA QMMA OMMA IMMA "USETMAXREG.TRY_ALLOC" MUFU.EX2 FFMA)
    string(REGEX MATCHALL "[ \t]${instruction}[^\n]*" found "${function}")
    list(LENGTH found "n_${instruction}")
  endforeach()
  message(STATUS "sm_${ARCHITECTURE} ${name}: ${n_UTCQMMA} block-scaled products, ${n_UTCCP} copies of scales, "
    "${n_MUFU.EX2} EX2, ${n_FFMA} FFMA")
  foreach(other IN ITEMS HMMA QMMA OMMA IMMA)
    if(n_${other} GREATER 0)
      message(SEND_ERROR "${name} has ${n_${other}} ${other}")
    endif()
  endforeach()
  if(name MATCHES "quantise")
    continue()
  endif()
  # A product without scales names no tensor memory between its operands and the descriptor of the instruction.
  string(REGEX MATCHALL "UTCQMMA (gdesc|tmem)[^,]*, gdesc[^,]*, tmem[^,]*, tmem[^,]*, idesc[^,]*, tmem" scaled
    "${function}")
  list(LENGTH scaled n_scaled)
  # Of the loops: a product per 32 channels or tokens, unrolled.
  string(REGEX MATCH "d (64|128)$" _ "${name}")
  math(EXPR deep "${CMAKE_MATCH_1} / 32")
  if(name MATCHES "forward")
    math(EXPR least "2 * (${deep} + 4)")  # S and P V of two groups
  elseif(name MATCHES "delta_sums")
    math(EXPR least "2 * ${deep}")  # S and dP of a half
  elseif(name MATCHES "dq")
    math(EXPR least "2 * ${deep} + 2")  # and dS K
  else()
    math(EXPR least "2 * ${deep} + 4")  # and P^T dO, dS^T Q
  endif()
  if(NOT n_scaled EQUAL n_UTCQMMA OR n_scaled LESS least OR n_UTCCP EQUAL 0)
    message(SEND_ERROR "${name}: of ${n_UTCQMMA} products ${n_scaled} are block-scaled, where its loop has at least "
      "${least}; ${n_UTCCP} copies of scales")
  endif()
  if(NOT n_USETMAXREG.TRY_ALLOC EQUAL 1)
    message(SEND_ERROR "${name} does not raise its registers to ${row_registers}")
  endif()
endforeach()
if(NOT seen EQUAL 14)
  message(SEND_ERROR "the disassembly names ${seen} kernels, not 14")
endif()
