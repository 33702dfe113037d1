# A room is one folder of src/: one static library, and one test program made
# of the x_test.cc files that stand beside their x.cc.
#
#   foliot_room(NAME worker PUBLIC core device PRIVATE PkgConfig::X)
#
# PUBLIC: rooms and libraries whose headers this room's headers include.
# PRIVATE: libraries that only its .cc files include.
# TEST: what only its tests need.
function(foliot_room)
  cmake_parse_arguments(ROOM "" "NAME" "PUBLIC;PRIVATE;TEST" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB headers CONFIGURE_DEPENDS *.h)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  set(target foliot_${ROOM_NAME})
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources} ${headers})
    foliot_compile_options(${target})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/src)
  foreach(dependency IN LISTS ROOM_PUBLIC)
    foliot_resolve(${dependency} resolved)
    target_link_libraries(${target} ${scope} ${resolved})
  endforeach()
  if(sources AND ROOM_PRIVATE)
    foreach(dependency IN LISTS ROOM_PRIVATE)
      foliot_resolve(${dependency} resolved)
      target_link_libraries(${target} PRIVATE ${resolved})
    endforeach()
  endif()

  if(FOLIOT_BUILD_TESTS AND tests)
    add_executable(${ROOM_NAME}_test ${tests})
    foliot_compile_options(${ROOM_NAME}_test)
    target_link_libraries(${ROOM_NAME}_test PRIVATE ${target} GTest::gtest GTest::gmock GTest::gtest_main)
    foreach(dependency IN LISTS ROOM_TEST ROOM_PRIVATE)
      foliot_resolve(${dependency} resolved)
      target_link_libraries(${ROOM_NAME}_test PRIVATE ${resolved})
    endforeach()
    gtest_discover_tests(${ROOM_NAME}_test TEST_PREFIX "${ROOM_NAME}/" DISCOVERY_TIMEOUT 60
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()

  # The link test: every symbol that this room needs is in the rooms it may use.
  if(FOLIOT_BUILD_TESTS AND sources)
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${ROOM_NAME}_link.cc CONTENT "int main() { return 0; }\n")
    add_executable(${ROOM_NAME}_link EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${ROOM_NAME}_link.cc)
    foliot_compile_options(${ROOM_NAME}_link)
    target_link_libraries(${ROOM_NAME}_link PRIVATE
      -Wl,--whole-archive $<TARGET_FILE:${target}> -Wl,--no-whole-archive ${target})
    add_dependencies(foliot_link_tests ${ROOM_NAME}_link)
  endif()
endfunction()

add_custom_target(foliot_link_tests)

# A bare word that names a room means that room's library.
function(foliot_resolve name out)
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/src/${name})
    string(REPLACE "/" "_" name ${name})
    set(${out} foliot_${name} PARENT_SCOPE)
  else()
    set(${out} ${name} PARENT_SCOPE)
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
      -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
  if(FOLIOT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FOLIOT_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${FOLIOT_SANITIZE})
  endif()
endfunction()
