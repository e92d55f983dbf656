# SPDX-License-Identifier: Apache-2.0
# find_package(octavo), for the installed library and for the build tree.
#
# An installation is  include/octavo/**            headers, the backends' beside the others
#                     share/octavo/cmake/          the package, octavo_add_engines
#                     share/octavo/backends/       the backends' descriptions
# so that OctavoEngines.cmake finds the descriptions under ../backends there as well as here.
include(CMakePackageConfigHelpers)

# In the build tree: the examples of this project say find_package(octavo) as they would anywhere else.
set(octavo_DIR "${PROJECT_BINARY_DIR}")
set(engines_dir "${PROJECT_SOURCE_DIR}/cmake")
configure_file(cmake/octavoConfig.cmake.in octavoConfig.cmake @ONLY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/octavoConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(TARGETS octavo EXPORT octavoTargets)
export(EXPORT octavoTargets NAMESPACE octavo:: FILE octavoTargets.cmake)

if(NOT OCTAVO_INSTALL)
  return()
endif()
set(engines_dir "\${CMAKE_CURRENT_LIST_DIR}")
configure_file(cmake/octavoConfig.cmake.in install/octavoConfig.cmake @ONLY)

# include/octavo/backends is a link: it is left out here and its files are copied from where they are.
set(headers FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.h")
install(DIRECTORY include/octavo DESTINATION include ${headers} PATTERN backends EXCLUDE)
install(DIRECTORY backends/ DESTINATION include/octavo/backends ${headers})

install(EXPORT octavoTargets NAMESPACE octavo:: DESTINATION share/octavo/cmake)
install(DIRECTORY cmake/engines DESTINATION share/octavo/cmake)
install(DIRECTORY backends/ DESTINATION share/octavo/backends FILES_MATCHING PATTERN "*.cmake")
install(FILES
  cmake/OctavoEngines.cmake
  cmake/OctavoHip.cmake
  "${PROJECT_BINARY_DIR}/install/octavoConfig.cmake"
  "${PROJECT_BINARY_DIR}/octavoConfigVersion.cmake"
  DESTINATION share/octavo/cmake)
