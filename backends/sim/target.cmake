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
