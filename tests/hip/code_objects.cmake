# SPDX-License-Identifier: Apache-2.0
# The code that clang makes of the main kernels for CDNA3: each is compiled to NAME.hsaco in OUT and disassembled there.
# FP8 products in its main loop and none of wider types anywhere, no scratch memory, no more registers than leave room
# for the waves that backends/hip/README.md plans. (LDS is checked while compiling: see code_object.cpp.) Needs no GPU.
# cmake -D COMPILER=clang++ -D "FLAGS=..." -D OBJDUMP=llvm-objdump -D READELF=llvm-readelf -D INCLUDE=dir -D SOURCE=file
#       -D OUT=folder -P code_objects.cmake
cmake_minimum_required(VERSION 3.25)
set(registers_of_a_lane 512)  # of a SIMD, vector and accumulation registers together: for all its waves
file(MAKE_DIRECTORY "${OUT}")
separate_arguments(FLAGS)

# check(NAME BLOCKS KERNEL): BLOCKS blocks of four waves on a compute unit's four SIMDs.
function(check name blocks kernel)
  set(object "${OUT}/${name}.hsaco")
  execute_process(
    COMMAND "${COMPILER}" -x hip --offload-arch=gfx942 --offload-device-only --no-gpu-bundle-output ${FLAGS} -std=c++20 -O3
      -ffp-contract=on "-I${INCLUDE}" "-DOCTAVO_KERNEL=${kernel}" -DOCTAVO_BLOCKS=${blocks} "${SOURCE}" -o "${object}"
    RESULT_VARIABLE failed ERROR_VARIABLE errors)
  if(failed)
    message(SEND_ERROR "${name} does not compile:\n${errors}")
    return()
  endif()
  execute_process(COMMAND "${READELF}" -n "${object}" OUTPUT_VARIABLE notes)
  execute_process(COMMAND "${OBJDUMP}" -d --mcpu=gfx942 "${object}" OUTPUT_FILE "${object}.s")
  file(READ "${object}.s" code)

  foreach(field IN ITEMS vgpr_count agpr_count private_segment_fixed_size)
    string(REGEX MATCH "\\.${field}: +([0-9]+)" found "${notes}")
    set(${field} "${CMAKE_MATCH_1}")
  endforeach()
  # vgpr_count is that of both kinds.
  math(EXPR room "${registers_of_a_lane} / ${blocks}")
  if(vgpr_count GREATER room OR vgpr_count EQUAL 0)
    message(SEND_ERROR "${name}: ${vgpr_count} registers leave no room for ${blocks} waves on a SIMD (${room} each)")
  endif()
  if(NOT private_segment_fixed_size EQUAL 0 OR code MATCHES "scratch_(load|store)|buffer_(load|store)")
    message(SEND_ERROR "${name}: ${private_segment_fixed_size} bytes of scratch memory a lane")
  endif()

  # Branches back end loops; products stand between a branch's destination and itself.
  string(REGEX MATCHALL "(s_cbranch_[a-z0-9]+|s_branch) [0-9]+ +// [0-9A-F]+|v_s?mfma[a-z0-9_]+[^\n/]*// [0-9A-F]+" marks "${code}")
  set(products "")
  set(others "")
  set(loops 0)
  foreach(mark IN LISTS marks)
    string(REGEX MATCH "// ([0-9A-F]+)$" _ "${mark}")
    math(EXPR address "0x${CMAKE_MATCH_1}")
    if(mark MATCHES "^v_mfma_f32_(16x16x32|32x32x16)_(fp8|bf8)_(fp8|bf8) ")
      list(APPEND products ${address})
    elseif(mark MATCHES "^v_")
      list(APPEND others "${mark}")
    elseif(mark MATCHES " ([0-9]+) +//" AND CMAKE_MATCH_1 GREATER 32767)  # words back, of 16 bits
      math(EXPR destination "${address} + 4 + 4 * (${CMAKE_MATCH_1} - 65536)")
      set(inside 0)
      foreach(product IN LISTS products)
        if(product GREATER destination)
          math(EXPR inside "${inside} + 1")
        endif()
      endforeach()
      if(inside GREATER loops)
        set(loops ${inside})
      endif()
    endif()
  endforeach()
  list(LENGTH products count)
  if(count EQUAL 0 OR NOT loops EQUAL count)
    message(SEND_ERROR "${name}: ${loops} of ${count} FP8 products stand in the main loop")
  endif()
  if(others)
    message(SEND_ERROR "${name}: products that are not FP8: ${others}")
  endif()
  message(STATUS "${name}: ${count} FP8 products in the main loop, ${vgpr_count} registers (${agpr_count} for accumulation), "
    "room for ${blocks} waves on a SIMD")
endfunction()

foreach(recipe IN ITEMS tile token)
  foreach(d IN ITEMS 64 128)
    set(arguments "cdna3::machine,recipe::${recipe}")
    check(forward_${recipe}_${d} 2 "forward_kernel<${arguments},delta::matched,${d}>")
    check(delta_sums_${recipe}_${d} 2 "delta_sums_kernel<${arguments},${d}>")
    check(dq_${recipe}_${d} 2 "dq_kernel<${arguments},delta::matched,${d}>")
    check(dkv_${recipe}_${d} 1 "dkv_kernel<${arguments},delta::matched,${d}>")
  endforeach()
endforeach()
