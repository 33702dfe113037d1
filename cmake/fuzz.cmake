# Fuzzing: each x_fuzz.cc of a room becomes one executable, linked with its room.
#
# x_fuzz: over libFuzzer. Wants clang, and every room instrumented: the preset "fuzz"
# sets FOLIOT_FUZZ and FOLIOT_SANITIZE=fuzzer-no-link,address,undefined. `make fuzz`
# runs them with the corpora in tests/corpus/<name>/.
#
# x_fuzz_replay: a unit test, in every build with tests: the inputs in
# tests/corpus/<name>/, once each.
option(FOLIOT_FUZZ "Build the fuzzers (clang only)" OFF)
if(FOLIOT_FUZZ AND (NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT FOLIOT_SANITIZE MATCHES "fuzzer-no-link"))
  message(FATAL_ERROR "The fuzzers need clang++ and FOLIOT_SANITIZE=fuzzer-no-link,...: use the preset fuzz")
endif()

add_custom_target(foliot_fuzzers)
file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_fuzz.cc)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(room ${source} DIRECTORY)
  file(RELATIVE_PATH room ${CMAKE_SOURCE_DIR}/src ${room})
  string(REPLACE "/" "_" tests ${room})
  set(target foliot_${tests})
  if(NOT TARGET ${target})
    continue()
  endif()
  foliot_targets_of(${room} tests_may_include tests_include)
  foreach(library IN LISTS tests_include)
    if(NOT TARGET ${library})  # for tests only, and this build has none
      list(REMOVE_ITEM tests_include ${library})
    endif()
  endforeach()
  if(FOLIOT_FUZZ)
    add_executable(${name} ${source})
    foliot_compile_options(${name})
    target_link_libraries(${name} PRIVATE ${target} ${tests_include})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(foliot_fuzzers ${name})
  endif()
  set(corpus ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
  if(FOLIOT_BUILD_TESTS)
    add_executable(${name}_replay ${source} ${CMAKE_SOURCE_DIR}/tests/corpus/replay.cc)
    foliot_compile_options(${name}_replay)
    target_link_libraries(${name}_replay PRIVATE ${target} ${tests_include})
    set(seconds)
    if(name STREQUAL compiler_fuzz)
      set(seconds 5)  # a file is read once, by a process that is confined and has --compile-time
    endif()
    add_test(NAME ${tests}/${name}_corpus COMMAND ${name}_replay ${corpus} ${seconds})
  endif()
endforeach()
