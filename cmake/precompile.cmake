# Most of the time of compiling a unit goes into headers that nearly all units include: those
# are compiled once for each optimisation, and once more for tests. A compiler reads what was
# precompiled only with the options that it was precompiled with.

option(FOLIOT_PRECOMPILE "Compile the headers that nearly all sources include once (under FOLIOT_UNITY)" ON)

# ccache keeps what was compiled with precompiled headers only if it may take two facts on trust:
# that their macros are as they were, and that no time of day is in them.
if(FOLIOT_PRECOMPILE AND FOLIOT_UNITY AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

set(FOLIOT_PRECOMPILED
  <algorithm> <array> <atomic> <bit> <cstdint> <cstdio> <cstring> <deque> <filesystem> <fstream> <functional>
  <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view> <thread>
  <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(FOLIOT_PRECOMPILED_OF_TESTS <gmock/gmock.h> <gtest/gtest.h>)

# What lets ccache see which precompiled headers a unit reads, and equal headers be equal files.
function(foliot_precompiled_options target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# Lets `target`, which is optimised by `level` ("": the build type's), read the precompiled headers, and
# if TESTS is given, those of tests too. Not what links with OpenMP, which changes the
# language, and not under sanitizers, whose macros some headers of others must not see (src/foundation/protocol).
function(foliot_precompile target level)
  cmake_parse_arguments(PRECOMPILE "TESTS" "" "LIBRARIES" ${ARGN})
  if(NOT FOLIOT_PRECOMPILE OR NOT FOLIOT_UNITY OR FOLIOT_SANITIZE OR "OpenMP::OpenMP_CXX" IN_LIST PRECOMPILE_LIBRARIES)
    return()
  endif()
  set(headers ${FOLIOT_PRECOMPILED})
  set(owner foliot_headers${level})
  if(PRECOMPILE_TESTS)
    list(APPEND headers ${FOLIOT_PRECOMPILED_OF_TESTS})
    string(APPEND owner _tests)
  endif()
  if(NOT TARGET ${owner})
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${owner}.cc CONTENT "")
    add_library(${owner} OBJECT ${CMAKE_BINARY_DIR}/${owner}.cc)
    foliot_compile_options(${owner})
    foliot_optimize(${owner} "${level}")
    target_link_libraries(${owner} PRIVATE fmt::fmt)
    if(PRECOMPILE_TESTS)
      target_link_libraries(${owner} PRIVATE GTest::gtest GTest::gmock)
    endif()
    target_precompile_headers(${owner} PRIVATE ${headers})
    foliot_precompiled_options(${owner})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  foliot_precompiled_options(${target})
endfunction()
