# SPDX-License-Identifier: Apache-2.0
# Compiles and runs the first C++ block of ROOT/README.md as a reader would.
cmake_minimum_required(VERSION 3.25)

file(READ "${ROOT}/README.md" readme)
string(FIND "${readme}" "```cpp" begin)
string(SUBSTRING "${readme}" ${begin} -1 readme)
string(FIND "${readme}" "\n" begin)
string(SUBSTRING "${readme}" ${begin} -1 readme)
string(FIND "${readme}" "```" end)
string(SUBSTRING "${readme}" 0 ${end} program)
file(WRITE "${OUT}/program.cpp" "${program}")

execute_process(COMMAND "${COMPILER}" -std=c++20 -O1 -Wall -Wextra -Werror "-I${ROOT}/include" "${OUT}/program.cpp"
  -o "${OUT}/program" -pthread COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${OUT}/program" OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "O = 0\\.[0-9]+, LSE of the last row = [0-9]+\\.[0-9]+")
  message(FATAL_ERROR "the README's program printed: ${printed}")
endif()
