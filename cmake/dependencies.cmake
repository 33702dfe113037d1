# Everything comes from Debian packages; tools/install-dependencies names them.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(simdjson REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
# It defines the size of offsets in files, as it is anyway; precompiled headers forbid that.
set_target_properties(PkgConfig::HIREDIS PROPERTIES INTERFACE_COMPILE_OPTIONS "" INTERFACE_COMPILE_DEFINITIONS "")
pkg_check_modules(ROCKSDB REQUIRED IMPORTED_TARGET rocksdb)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
find_library(ONNX_PROTO_LIBRARY onnx_proto REQUIRED)

# ONNX: only its protobuf message format is used.
add_library(onnx_proto SHARED IMPORTED)
set_target_properties(onnx_proto PROPERTIES
  IMPORTED_LOCATION ${ONNX_PROTO_LIBRARY}
  INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1"
  INTERFACE_LINK_LIBRARIES protobuf::libprotobuf)

# Debian's oneDNN package asks for OpenCL in its CMake file and does without it here.
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl SHARED IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY})

# Vulkan: headers to build with, and the compiler of shaders; the loader is looked for when the program runs.
find_path(VULKAN_INCLUDE_DIR vulkan/vulkan.h REQUIRED)
find_program(GLSLC glslc REQUIRED)
add_library(vulkan_headers INTERFACE)
target_include_directories(vulkan_headers SYSTEM INTERFACE ${VULKAN_INCLUDE_DIR})

# Debian's gRPC leaves this one out of its own link line.
find_library(ABSL_SYNCHRONIZATION_LIBRARY absl_synchronization REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

if(FOLIOT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# Links in a tenth of the time of the compilers' own linker. FOLIOT_LINKER="" leaves the choice to them.
find_program(LLD ld.lld)
if(LLD)
  set(FOLIOT_LINKER lld CACHE STRING "Value of -fuse-ld=")
endif()
if(FOLIOT_LINKER)
  add_link_options(-fuse-ld=${FOLIOT_LINKER})
endif()
