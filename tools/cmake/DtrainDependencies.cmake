# The libraries that dtrain needs (Debian 12 names in launch/install-packages.sh).
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(OpenSSL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(LibArchive REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(PNG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
find_path(STB_INCLUDE_DIR stb/stb_image_resize.h REQUIRED)
find_file(DTRAIN_CHART_LIBRARY chart.min.js PATHS /usr/share/javascript /usr/share/nodejs/chart.js/dist
  PATH_SUFFIXES chart.js REQUIRED)

# Debian's dnnl config requires OpenCL headers, which dtrain does not use.
find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(ONEDNN_LIBRARY dnnl REQUIRED)
add_library(dtrain::onednn UNKNOWN IMPORTED)
set_target_properties(dtrain::onednn PROPERTIES
  IMPORTED_LOCATION ${ONEDNN_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR})

add_library(dtrain::hdf5 INTERFACE IMPORTED)
target_include_directories(dtrain::hdf5 INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(dtrain::hdf5 INTERFACE ${HDF5_C_LIBRARIES})

# Optional: `dtrain export --format onnx`.  One file includes these headers (CMakeLists.txt).
find_library(ONNX_LIBRARY onnx)
find_library(ONNX_PROTO_LIBRARY onnx_proto)
find_library(PROTOBUF_LIBRARY protobuf)
find_path(ONNX_INCLUDE_DIR onnx/checker.h)
find_path(PROTOBUF_INCLUDE_DIR google/protobuf/message.h)
set(DTRAIN_ONNX_LIBRARIES)
if(ONNX_LIBRARY AND ONNX_PROTO_LIBRARY AND PROTOBUF_LIBRARY AND ONNX_INCLUDE_DIR AND PROTOBUF_INCLUDE_DIR)
  set(DTRAIN_ONNX_LIBRARIES ${ONNX_LIBRARY} ${ONNX_PROTO_LIBRARY} ${PROTOBUF_LIBRARY})
  # The library's headers do not have its version; find_package would require its maintainers' protobuf.
  set(ONNX_VERSION found)
  find_file(ONNX_VERSION_FILE ONNXConfigVersion.cmake PATHS /usr /usr/local
    PATH_SUFFIXES lib/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/cmake/ONNX lib/cmake/ONNX)
  if(ONNX_VERSION_FILE)
    file(STRINGS ${ONNX_VERSION_FILE} line REGEX "set.PACKAGE_VERSION " LIMIT_COUNT 1)
    string(REGEX REPLACE ".*\"(.+)\".*" "\\1" ONNX_VERSION "${line}")
  endif()
endif()
