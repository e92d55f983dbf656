# SPDX-License-Identifier: Apache-2.0
# octavo::kokkos, what a program links that calls the backend: find_package(octavo COMPONENTS kokkos) or octavo_add_engines
# bring it in. Where it cannot be had, octavo_kokkos_UNAVAILABLE says why.
set(octavo_kokkos_UNAVAILABLE "")
if(TARGET octavo::kokkos)
  return()
endif()

find_package(Kokkos QUIET)
if(NOT Kokkos_FOUND)
  set(octavo_kokkos_UNAVAILABLE "no Kokkos was found (libtrilinos-kokkos-dev, or set Kokkos_ROOT)")
  return()
endif()
if(Kokkos_VERSION VERSION_LESS 3.4)
  set(octavo_kokkos_UNAVAILABLE "Kokkos ${Kokkos_VERSION} is older than 3.4")
  return()
endif()

# Debian's package names an include directory that does not exist, which CMake takes for an error, and keeps the headers
# elsewhere.
get_target_property(octavo_kokkos_include Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
foreach(directory IN LISTS octavo_kokkos_include)
  if(NOT directory MATCHES "\\$<" AND NOT EXISTS "${directory}" AND Kokkos_INCLUDE_DIRS)
    set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Kokkos_INCLUDE_DIRS}")
  endif()
endforeach()

add_library(octavo::kokkos INTERFACE IMPORTED)
target_link_libraries(octavo::kokkos INTERFACE octavo::octavo Kokkos::kokkos)
