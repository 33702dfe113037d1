# A room is a folder of src/: one static library, and one test program made
# of the x_test.cc files that stand beside their x.cc. What it links with stands in
# src/rooms.json. That of src/engine/worker is foliot_engine_worker, its tests are engine_worker_test.
#
#   foliot_room([FOLDERS folder...] [ALONE file...] [OPTIMIZE -O2] [OPTIMIZE_TESTS -O2] [APART suite...])
#
# The room is that of the folder whose CMakeLists.txt calls it.
# FOLDERS: folders in it whose sources belong to it.
# ALONE: sources that are compiled alone, because they have options of their own.
# OPTIMIZE: the optimisation of the room's own code; without it, the build type's (-O3).
# OPTIMIZE_TESTS: the same of its tests; without it, -O1.
#
# APART: suites of tests that fork, and so want a process in which no other suite has started threads.
#
# Sources of a room are compiled several to a translation unit (FOLIOT_UNITY), because
# most of the time of compiling one goes into headers. So a name in an anonymous
# namespace may stand only once in a room, and once in a room's tests.
function(foliot_room)
  cmake_parse_arguments(ROOM "" "OPTIMIZE;OPTIMIZE_TESTS" "FOLDERS;ALONE;APART" ${ARGN})
  file(RELATIVE_PATH room ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" name ${room})
  foliot_targets_of(${room} may_include includes)
  foliot_targets_of(${room} tests_may_include tests_include)
  foliot_lookup(${room} public_libraries public_libraries)
  foliot_lookup(${room} libraries libraries)
  if(NOT room STREQUAL "foundation/base")
    list(PREPEND includes foliot_foundation_base)
  endif()
  # Asio's fences, which ThreadSanitizer does not understand and does not need here.
  set(fences)
  if("Boost::headers" IN_LIST libraries AND FOLIOT_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(fences -Wno-tsan)
  endif()

  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  foreach(folder IN LISTS ROOM_FOLDERS)
    file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cc)
    list(APPEND sources ${more})
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  set(target foliot_${name})
  if(sources)
    set(scope PUBLIC)
    foreach(source IN LISTS ROOM_ALONE)
      list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    endforeach()
    foliot_sources(units ${target} 8 "${sources}")
    add_library(${target} STATIC ${units} ${ROOM_ALONE})
    foliot_compile_options(${target})
    target_compile_options(${target} PRIVATE ${fences})
    foliot_optimize(${target} "${ROOM_OPTIMIZE}")
    foliot_precompile(${target} "${ROOM_OPTIMIZE}" LIBRARIES ${libraries})
    set_source_files_properties(${ROOM_ALONE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} ${scope} ${includes} ${public_libraries})
  if(sources)
    target_link_libraries(${target} PRIVATE ${libraries})
  endif()

  if(FOLIOT_BUILD_TESTS AND tests)
    foliot_sources(units ${name}_test 8 "${tests}")
    add_executable(${name}_test ${units})
    foliot_compile_options(${name}_test)
    target_compile_options(${name}_test PRIVATE ${fences})
    if(NOT ROOM_OPTIMIZE_TESTS)
      set(ROOM_OPTIMIZE_TESTS -O1)
    endif()
    foliot_optimize(${name}_test ${ROOM_OPTIMIZE_TESTS})
    foliot_precompile(${name}_test ${ROOM_OPTIMIZE_TESTS} TESTS LIBRARIES ${libraries})
    target_link_libraries(${name}_test PRIVATE ${target} ${tests_include} ${libraries}
      GTest::gtest GTest::gmock GTest::gtest_main)
    foliot_unit_test(${name} ${ROOM_APART})
  endif()

  # The link test: every symbol that this room needs is in the rooms it may use.
  if(FOLIOT_BUILD_TESTS AND sources)
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_link.cc CONTENT "int main() { return 0; }\n")
    add_executable(${name}_link EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${name}_link.cc)
    foliot_compile_options(${name}_link)
    target_link_libraries(${name}_link PRIVATE
      -Wl,--whole-archive $<TARGET_FILE:${target}> -Wl,--no-whole-archive ${target})
    add_dependencies(foliot_link_tests ${name}_link)
  endif()
endfunction()

# Adds the test program of a room, ${name}_test, to ctest: as one test, and one for each suite that is to run
# apart, since a process for each of thousands of cases costs more than most cases do. googletest writes what
# each case said to reports/unit.
function(foliot_unit_test name)
  list(TRANSFORM ARGN APPEND ".*" OUTPUT_VARIABLE apart)
  list(JOIN apart ":" filter)
  foreach(suites IN ITEMS "-${filter}" ${apart})
    string(REGEX REPLACE "^-.*|[.][*]$" "" suite ${suites})
    string(JOIN "-" test ${name} ${suite})
    add_test(NAME ${test} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMAND ${name}_test --gtest_brief=1
      --gtest_filter=${suites} --gtest_output=xml:${CMAKE_BINARY_DIR}/reports/unit/${test}.xml)
  endforeach()
endfunction()

add_custom_target(foliot_link_tests)

file(READ ${CMAKE_SOURCE_DIR}/src/rooms.json FOLIOT_TABLE)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/rooms.json)
set(FOLIOT_TABLE_WINGS)
string(JSON count LENGTH ${FOLIOT_TABLE} wings)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON wing MEMBER ${FOLIOT_TABLE} wings ${i})
  list(APPEND FOLIOT_TABLE_WINGS ${wing})
endforeach()
set(FOLIOT_TABLE_ROOMS)
string(JSON count LENGTH ${FOLIOT_TABLE} rooms)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON room GET ${FOLIOT_TABLE} rooms ${i} room)
  list(APPEND FOLIOT_TABLE_ROOMS ${room})
endforeach()

# Sets `out` to the list that stands under `key` in the entry of `room`.
function(foliot_lookup room key out)
  list(FIND FOLIOT_TABLE_ROOMS ${room} index)
  if(index EQUAL -1)
    get_filename_component(folder ${room} DIRECTORY)
    list(FIND FOLIOT_TABLE_ROOMS "${folder}/*" index)
  endif()
  if(index EQUAL -1)
    message(FATAL_ERROR "The room ${room} is not in src/rooms.json")
  endif()
  set(values)
  string(JSON count ERROR_VARIABLE missing LENGTH ${FOLIOT_TABLE} rooms ${index} ${key})
  if(NOT missing AND count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(i RANGE ${last})
      string(JSON value GET ${FOLIOT_TABLE} rooms ${index} ${key} ${i})
      list(APPEND values ${value})
    endforeach()
  endif()
  set(${out} ${values} PARENT_SCOPE)
endfunction()

# Sets `out` to the rooms that `names` stands for: NAME/* is every room in the folder NAME, the name of a
# wing every room of it, * every room. Rooms that are for tests only must be named.
function(foliot_expand names out)
  set(rooms)
  foreach(name IN LISTS names)
    if(name MATCHES "^(.*)/\\*$")
      file(GLOB folders CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/${name}/CMakeLists.txt)
      list(TRANSFORM folders REPLACE "/CMakeLists.txt$" "")
      list(APPEND rooms ${folders})
    elseif(name STREQUAL "*" OR (name IN_LIST FOLIOT_TABLE_WINGS AND NOT name IN_LIST FOLIOT_TABLE_ROOMS))
      set(of_wing ${FOLIOT_TABLE_ROOMS})
      if(NOT name STREQUAL "*")
        list(FILTER of_wing INCLUDE REGEX "^${name}/")
      endif()
      list(FILTER of_wing EXCLUDE REGEX "/conformance$")
      foliot_expand("${of_wing}" expanded)
      list(APPEND rooms ${expanded})
    else()
      list(APPEND rooms ${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  set(${out} ${rooms} PARENT_SCOPE)
endfunction()

# Sets `out` to the targets of the rooms that stand under `key` in the entry of `room`.
function(foliot_targets_of room key out)
  foliot_lookup(${room} ${key} names)
  foliot_expand("${names}" targets)
  list(TRANSFORM targets REPLACE "/" "_")
  list(TRANSFORM targets PREPEND "foliot_")
  set(${out} ${targets} PARENT_SCOPE)
endfunction()

# Sets `out` to what is compiled of `sources` for `target`: under FOLIOT_UNITY, files that
# include up to `batch` of them each. They name them relative to src/, so that a compiler
# cache serves every checkout.
function(foliot_sources out target batch sources)
  set(${out} ${sources} PARENT_SCOPE)
  if(NOT FOLIOT_UNITY)
    return()
  endif()
  set(result)
  list(LENGTH sources count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST sources ${first} ${batch} group)
    math(EXPR number "${first} / ${batch}")
    math(EXPR first "${first} + ${batch}")
    list(TRANSFORM group REPLACE "^${CMAKE_SOURCE_DIR}/src/(.*)$" "#include \"\\1\"\n")
    list(JOIN group "" content)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/${target}_${number}.cc)
    file(GENERATE OUTPUT ${unit} CONTENT "${content}")
    list(APPEND result ${unit})
  endwhile()
  set(${out} ${result} PARENT_SCOPE)
endfunction()

# Sets the optimisation of an optimised build for `target`; nothing in a debug build.
function(foliot_optimize target level)
  if(level)
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:${level}>)
  endif()
endfunction()

function(foliot_compile_options target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wold-style-cast -Wcast-qual -Werror
    # Designated initialisers leave members at their defaults on purpose.
    -Wno-missing-field-initializers -fno-math-errno -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports these inside the standard library's own templates, where nothing is
    # wrong. What is not initialised is found by clang, with -Wall and in tools/lint.
    target_compile_options(${target} PRIVATE
      -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # What foundation/base/thread_annotations.h says of locks; -Werror stands above.
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  if(FOLIOT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FOLIOT_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${FOLIOT_SANITIZE})
  endif()
endfunction()
