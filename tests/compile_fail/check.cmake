# SPDX-License-Identifier: Apache-2.0
# Compiles SOURCE, which must fail with the text of its first line, "// expect: text".
cmake_minimum_required(VERSION 3.25)

file(STRINGS "${SOURCE}" expected LIMIT_COUNT 1)
if(NOT expected MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${SOURCE} does not begin with '// expect: text'")
endif()
set(expected "${CMAKE_MATCH_1}")
execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}" "${SOURCE}"
  RESULT_VARIABLE result ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles; it must fail with: ${expected}")
endif()
string(FIND "${output}" "${expected}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${SOURCE} fails without saying: ${expected}\n${output}")
endif()
