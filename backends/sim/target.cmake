# SPDX-License-Identifier: Apache-2.0
# octavo::sim, what a program links that runs GPU kernels on the host: Boost.Context for the threads of a block. Where it
# cannot be had, octavo_sim_UNAVAILABLE says why.
set(octavo_sim_UNAVAILABLE "")
if(TARGET octavo::sim)
  return()
endif()

find_package(Boost 1.65 CONFIG QUIET COMPONENTS context)
if(NOT TARGET Boost::context)
  set(octavo_sim_UNAVAILABLE "no Boost.Context was found (libboost-context-dev, or set Boost_ROOT)")
  return()
endif()
add_library(octavo::sim INTERFACE IMPORTED)
target_link_libraries(octavo::sim INTERFACE octavo::octavo Boost::context)

# octavo::sim_checked in its place: every access to memory of the program's kernels is looked at (checks/interface.hpp).
# All sources of a program that name the simulator must be compiled for it, so it is for programs of their own. The
# compiler calls a function before each access, as for ThreadSanitizer, whose library is not linked: one source that is
# not compiled so has functions of its own.
if(NOT TARGET octavo_sim_checks)
  set(octavo_sim_checks "${CMAKE_CURRENT_BINARY_DIR}/octavo_sim_checks.cpp")
  file(CONFIGURE OUTPUT "${octavo_sim_checks}" CONTENT "#include <octavo/backends/sim/checks/compiler_calls.hpp>\n")
  add_library(octavo_sim_checks STATIC EXCLUDE_FROM_ALL "${octavo_sim_checks}")
  target_link_libraries(octavo_sim_checks PRIVATE octavo::octavo)
  target_compile_options(octavo_sim_checks PRIVATE -O3)
endif()
add_library(octavo::sim_checked INTERFACE IMPORTED)
target_link_libraries(octavo::sim_checked INTERFACE octavo::sim octavo_sim_checks ${CMAKE_DL_LIBS})
target_compile_definitions(octavo::sim_checked INTERFACE OCTAVO_SIM_CHECKED)
target_compile_options(octavo::sim_checked INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread> -g)
