# SPDX-License-Identifier: Apache-2.0
# Run-time choice of backend, recipe and delta:
#
#     octavo_add_engines(TARGET [BACKENDS name...])
#
# makes TARGET, a static library that defines octavo::all_backends() of <octavo/engines.hpp>: every known backend, with
# one octavo::engine per recipe and delta where it is compiled. BACKENDS is OCTAVO_BACKENDS or else auto: each backend
# whose toolchain is found. In a list, a backend that is not available is an error. If TARGET exists, it is left as it
# is, so that several programs of one build can ask for it and share it.
#
# A backend folder describes itself in its backend.cmake, by one call per backend:
#
#     octavo_backend(NAME
#       DESCRIPTION phrase       what it is, as `octavo backends` says it: which units compute what; no ; and no "
#       TYPE type                the backend class, octavo::backends::NAME
#       HEADER path              what to include for it, as users do
#       RECIPES recipe...        what it computes, by the names in octavo::recipe
#       [WITHOUT_E5M2]           no engines for E5M2 gradients, which double the time that a backend takes to compile
#       [LANGUAGE language]      of the generated sources, CXX unless given; a project must have enabled it
#       [ARCHITECTURES arch...]  of generated sources in CUDA or HIP, as CMAKE_CUDA_ARCHITECTURES takes them; or one family,
#                                as 100f, for whose members the code is (CMake 3.25 knows no families)
#       [LINK target...]         what its engines link beside octavo::octavo
#       [ENTRY template]         octavo::host_entry unless given: ENTRY<TYPE>(engines) makes the octavo::backend_entry
#       [UNAVAILABLE reason])    why it cannot be compiled here; absent or empty if it can
#
# A backend that needs more than headers and threads has a target of its own, octavo::NAME, for programs that name it in
# their sources: its target.cmake makes it, or sets octavo_NAME_UNAVAILABLE to the reason why not. An installed package
# offers it as a component, find_package(octavo COMPONENTS NAME), and looks for nothing unless it is asked to.
cmake_minimum_required(VERSION 3.25)
include_guard(GLOBAL)

# octavo::NAME in this directory; `reason` is empty, or says why it cannot be had.
function(octavo_backend_target name reason)
  set(description "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../backends/${name}/target.cmake")
  if(EXISTS "${description}")
    include("${description}")
  else()
    set(octavo_${name}_UNAVAILABLE "no backend of this name has a target of its own")
  endif()
  set(${reason} "${octavo_${name}_UNAVAILABLE}" PARENT_SCOPE)
endfunction()

function(octavo_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 backend WITHOUT_E5M2 "DESCRIPTION;TYPE;HEADER;LANGUAGE;ENTRY;UNAVAILABLE" "RECIPES;ARCHITECTURES;LINK")
  if(DEFINED backend_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "octavo_backend(${name}): unknown arguments: ${backend_UNPARSED_ARGUMENTS}")
  endif()
  if(backend_TYPE AND NOT backend_DESCRIPTION)
    message(FATAL_ERROR "octavo_backend(${name}): DESCRIPTION is missing: what it is, in a phrase")
  endif()
  if(NOT backend_LANGUAGE)
    set(backend_LANGUAGE CXX)
  endif()
  if(NOT backend_ENTRY)
    set(backend_ENTRY octavo::host_entry)
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT backend_UNAVAILABLE AND NOT backend_LANGUAGE IN_LIST languages)
    set(backend_UNAVAILABLE "language ${backend_LANGUAGE} is not enabled")
  endif()
  foreach(field IN ITEMS DESCRIPTION TYPE HEADER RECIPES WITHOUT_E5M2 LANGUAGE ARCHITECTURES LINK ENTRY UNAVAILABLE)
    set_property(GLOBAL PROPERTY OCTAVO_BACKEND_${name}_${field} "${backend_${field}}")
  endforeach()
  set_property(GLOBAL APPEND PROPERTY OCTAVO_BACKENDS_DESCRIBED ${name})
endfunction()

# Reads every description; the names go to `names`.
function(octavo_describe_backends names)
  set_property(GLOBAL PROPERTY OCTAVO_BACKENDS_DESCRIBED "")
  file(GLOB descriptions CONFIGURE_DEPENDS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../backends/*/backend.cmake")
  foreach(description IN LISTS descriptions)
    include("${description}")
  endforeach()
  include("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../backends/planned.cmake")  # octavo_planned_backends
  get_property(described GLOBAL PROPERTY OCTAVO_BACKENDS_DESCRIBED)
  foreach(name IN LISTS octavo_planned_backends)
    if(NOT name IN_LIST described)
      octavo_backend(${name} DESCRIPTION "planned" UNAVAILABLE "not part of this version")
      list(APPEND described ${name})
    endif()
  endforeach()
  set(${names} "${described}" PARENT_SCOPE)
endfunction()

function(octavo_add_engines target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "BACKENDS")
  if(TARGET ${target})
    return()
  endif()
  octavo_describe_backends(known)

  set(wanted "${arg_BACKENDS}")
  if(NOT wanted)
    set(wanted "${OCTAVO_BACKENDS}")
  endif()
  if(NOT wanted)
    set(wanted auto)
  endif()
  if(NOT wanted STREQUAL "auto")
    set(unknown ${wanted})
    list(REMOVE_ITEM unknown ${known})
    if(unknown)
      list(JOIN known " " known)
      message(FATAL_ERROR "Octavo: unknown backends: ${unknown}. There are: auto, or a list of ${known}")
    endif()
  endif()

  set(templates "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/engines")
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  add_library(${target} STATIC)
  target_link_libraries(${target} PUBLIC octavo::octavo)
  target_include_directories(${target} PUBLIC "${generated}/include")
  configure_file("${templates}/engines.hpp" "${generated}/include/octavo/engines.hpp" COPYONLY)

  set(declarations "")
  set(entries "")
  foreach(name IN LISTS known)
    foreach(field IN ITEMS DESCRIPTION TYPE HEADER RECIPES WITHOUT_E5M2 LANGUAGE ARCHITECTURES LINK ENTRY UNAVAILABLE)
      get_property(${field} GLOBAL PROPERTY OCTAVO_BACKEND_${name}_${field})
    endforeach()
    if(NOT wanted STREQUAL "auto")
      if(NOT name IN_LIST wanted)
        set(UNAVAILABLE "not among the backends that were asked for (OCTAVO_BACKENDS)")
      elseif(UNAVAILABLE)
        message(FATAL_ERROR "Octavo: backend ${name} is asked for but not available: ${UNAVAILABLE}")
      endif()
    endif()
    if(UNAVAILABLE)
      if(TYPE)  # a planned backend has none, and is listed by programs only
        message(STATUS "Octavo: backend ${name} is not compiled: ${UNAVAILABLE}")
      endif()
      string(APPEND entries "      not_compiled(\"${name}\", \"${DESCRIPTION}\", \"${UNAVAILABLE}\"),\n")
      continue()
    endif()

    octavo_generate_backend()
    string(APPEND declarations "backend_entry ${identifier}();\n")
    string(APPEND entries "      ${identifier}(),\n")
    set_source_files_properties(${sources} PROPERTIES LANGUAGE ${LANGUAGE})
    if(LANGUAGE MATCHES "^(CUDA|HIP)$")  # a library of its own, since architectures belong to targets
      add_library(${target}_${identifier} OBJECT ${sources})
      if(LANGUAGE STREQUAL "CUDA" AND ARCHITECTURES MATCHES "^[0-9]+f$")
        target_compile_options(${target}_${identifier} PRIVATE
          "$<$<COMPILE_LANGUAGE:CUDA>:--generate-code=arch=compute_${ARCHITECTURES},code=[sm_${ARCHITECTURES}]>")
        set(ARCHITECTURES OFF)
      endif()
      set_target_properties(${target}_${identifier} PROPERTIES ${LANGUAGE}_ARCHITECTURES "${ARCHITECTURES}")
      target_compile_options(${target}_${identifier} PRIVATE $<$<COMPILE_LANGUAGE:${LANGUAGE}>:-std=c++20>)
      target_link_libraries(${target}_${identifier} PRIVATE octavo::octavo ${LINK})
      # Linked as files, which leaves the choice of the program's linker to its own language.
      target_link_libraries(${target} PUBLIC $<TARGET_OBJECTS:${target}_${identifier}>)
    else()
      target_sources(${target} PRIVATE ${sources})
    endif()
    target_link_libraries(${target} PUBLIC ${LINK})
    list(JOIN RECIPES ", " recipes)
    message(STATUS "Octavo: backend ${name} with ${recipes}")
  endforeach()
  configure_file("${templates}/all_backends.cpp.in" "${generated}/all_backends.cpp" @ONLY)
  target_sources(${target} PRIVATE "${generated}/all_backends.cpp")
endfunction()

# The sources of one backend: one per recipe, so that they compile in parallel and a change of recipe rebuilds one.
macro(octavo_generate_backend)
  string(MAKE_C_IDENTIFIER ${name} identifier)
  set(sources "${generated}/${identifier}.cpp")
  set(lists "")
  foreach(recipe IN LISTS RECIPES)
    set(variants "${recipe}:octavo::recipe::${recipe}")
    if(NOT recipe MATCHES "^(bf16|exact)$" AND NOT WITHOUT_E5M2)
      list(APPEND variants "${recipe}_e5m2:octavo::recipe::e5m2_gradients<octavo::recipe::${recipe}>")
    endif()
    foreach(variant IN LISTS variants)
      string(REGEX MATCH "^([a-z0-9_]+):(.*)$" _ "${variant}")
      set(symbol "${identifier}_${CMAKE_MATCH_1}")
      set(recipe_type "${CMAKE_MATCH_2}")
      configure_file("${templates}/recipe.cpp.in" "${generated}/${symbol}.cpp" @ONLY)
      list(APPEND sources "${generated}/${symbol}.cpp")
      list(APPEND lists "${symbol}()")
    endforeach()
  endforeach()
  list(JOIN lists ", " lists)
  configure_file("${templates}/backend.cpp.in" "${generated}/${identifier}.cpp" @ONLY)
endmacro()
