# Benchmarks: each x_bench.cc of a room becomes one executable over Google
# Benchmark, linked with its room. Not part of the default build; `make bench-x`
# builds and runs the one of x_bench.cc.
find_package(benchmark QUIET)
if(NOT benchmark_FOUND)
  return()
endif()
file(GLOB_RECURSE benchmarks CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*_bench.cc)
foreach(source IN LISTS benchmarks)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(room ${source} DIRECTORY)
  file(RELATIVE_PATH room ${CMAKE_SOURCE_DIR}/src ${room})
  string(REPLACE "/" "_" room ${room})
  if(TARGET foliot_${room})
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    foliot_compile_options(${name})
    target_link_libraries(${name} PRIVATE foliot_${room} benchmark::benchmark_main)
  endif()
endforeach()
