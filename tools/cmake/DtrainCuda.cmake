# The CUDA module: libdtrain_cuda.so beside the program, which opens it at run time (framework/device/cuda/module.h).
# It is built if a toolkit with cuDNN and cudnn-frontend are found; DTRAIN_HAS_CUDA is then true.
if(DTRAIN_CUDA STREQUAL "ON")
  find_package(CUDAToolkit REQUIRED)
elseif(DTRAIN_CUDA STREQUAL "AUTO" AND NOT DTRAIN_SANITIZE)
  find_package(CUDAToolkit QUIET)
endif()
if(CUDAToolkit_FOUND)
  find_library(DTRAIN_CUDNN cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
  find_path(DTRAIN_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # launch/install-cudnn-frontend.sh puts it there: this version, since what we call is not all a stable interface.
  find_path(DTRAIN_CUDNN_FRONTEND cudnn_frontend.h HINTS ${CMAKE_SOURCE_DIR}/build/cudnn-frontend/include NO_DEFAULT_PATH)
  if(DTRAIN_CUDNN AND DTRAIN_CUDNN_INCLUDE AND DTRAIN_CUDNN_FRONTEND)
    set(DTRAIN_HAS_CUDA ON)
  elseif(NOT DTRAIN_CUDNN OR NOT DTRAIN_CUDNN_INCLUDE)
    set(missing "cuDNN was not found: cudnn.h and libcudnn.so")
  else()
    set(missing "cudnn-frontend was not found: launch/install-cudnn-frontend.sh fetches it")
  endif()
  if(missing AND DTRAIN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DTRAIN_CUDA=ON: ${missing}")
  elseif(missing)
    message(STATUS "No CUDA module: ${missing}")
  endif()
endif()

# Puts the sources of the CUDA module into `result`: *_cuda.cc, and *_cuda.cu with dtrain's own kernels.
function(dtrain_cuda_sources result)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/framework/device/cuda/*_cuda.cc
    ${CMAKE_SOURCE_DIR}/framework/kernels/cuda/*_cuda.c[cu] ${CMAKE_SOURCE_DIR}/layers/*/*_cuda.c[cu])
  list(FILTER sources EXCLUDE REGEX "/convolution_pass_cuda.cc$")
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# Settings of the module and of the fake one in the tests.  Symbols of the framework stay undefined: the program
# has them.
function(dtrain_cuda_options target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${DTRAIN_CUDNN_INCLUDE})
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  # For this source alone, so that a new revision does not recompile everything.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/framework/device/cuda/module_cuda.cc PROPERTIES
    COMPILE_DEFINITIONS "DTRAIN_BUILD=\"${PROJECT_VERSION} ${DTRAIN_REVISION}\"")
  target_link_libraries(${target} PRIVATE fmt::fmt dtrain_cudnn_passes)
  # Kernels of layers have short names for what is theirs: ten files have none twice.
  set_target_properties(${target} PROPERTIES OUTPUT_NAME dtrain_cuda UNITY_BUILD_BATCH_SIZE 10)
endfunction()

# Replaces the .cu files in `list` by files that include ten of them each, if the build is a unity build:
# CMake 3.25 has none for CUDA, and nvcc spends most of its time on headers.  They are compiled with `options`.
function(dtrain_join_cuda_sources list name files options)
  if(CMAKE_UNITY_BUILD)
    list(REMOVE_ITEM ${list} ${files})
    set(joined)
    while(files)
      list(SUBLIST files 0 10 batch)
      list(REMOVE_ITEM files ${batch})
      list(LENGTH joined number)
      set(file ${CMAKE_BINARY_DIR}/${name}_${number}.cu)
      list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN batch "" content)
      file(CONFIGURE OUTPUT ${file} CONTENT "${content}")  # not written if unchanged
      list(APPEND joined ${file})
    endwhile()
    list(APPEND ${list} ${joined})
    set(${list} ${${list}} PARENT_SCOPE)
    set(files ${joined})
  endif()
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()

if(DTRAIN_HAS_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${DTRAIN_CUDA_ARCHS})
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc supports it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  # The one source with cudnn-frontend's headers, which take longer than a dozen others.  It calls no kernel of ours, so it
  # is compiled once, for the module and for the fake one.
  add_library(dtrain_cudnn_passes OBJECT ${CMAKE_SOURCE_DIR}/layers/convolution/convolution_pass_cuda.cc)
  dtrain_compile_options(dtrain_cudnn_passes)
  target_include_directories(dtrain_cudnn_passes PRIVATE ${CMAKE_SOURCE_DIR} ${DTRAIN_CUDNN_INCLUDE})
  target_include_directories(dtrain_cudnn_passes SYSTEM PRIVATE ${DTRAIN_CUDNN_FRONTEND} ${CUDAToolkit_INCLUDE_DIRS})
  # Without its reading and writing of JSON, which we do not use, it is compiled in half the time.
  target_compile_definitions(dtrain_cudnn_passes PRIVATE CUDNN_FRONTEND_SKIP_JSON_LIB)
  target_compile_options(dtrain_cudnn_passes PRIVATE -O1)
  target_link_libraries(dtrain_cudnn_passes PRIVATE fmt::fmt)
  set_target_properties(dtrain_cudnn_passes PROPERTIES UNITY_BUILD OFF POSITION_INDEPENDENT_CODE ON)
  dtrain_cuda_sources(sources)
  # Solvers and residuals round as the CPU's do, and treat denormals as zeros; memory bandwidth limits them.
  set(exact ${CMAKE_SOURCE_DIR}/framework/kernels/cuda/solver_cuda.cu ${CMAKE_SOURCE_DIR}/framework/kernels/cuda/device_values_cuda.cu
      ${CMAKE_SOURCE_DIR}/framework/kernels/cuda/peer_sums_cuda.cu)
  set(fast ${sources})
  list(FILTER fast INCLUDE REGEX "\\.cu$")
  list(REMOVE_ITEM fast ${exact})
  dtrain_join_cuda_sources(sources exact_kernels "${exact}" "--fmad=false;--ftz=true")
  dtrain_join_cuda_sources(sources kernels "${fast}" "")
  add_library(dtrain_cuda MODULE ${sources})
  dtrain_cuda_options(dtrain_cuda)
  # nvcc calls the C++ compiler for the host code of a source.
  target_compile_options(dtrain_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall$<SEMICOLON>-Wextra$<SEMICOLON>-Wno-unused-parameter>
    $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda$<SEMICOLON>--expt-relaxed-constexpr$<SEMICOLON>-Xcompiler=-Wall>)
  set_target_properties(dtrain_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_libraries(dtrain_cuda PRIVATE CUDA::cudart_static CUDA::cublas ${DTRAIN_CUDNN})
  add_dependencies(dtrain dtrain_cuda)
  # For tests/gpu.sh; its records are those of CUDA 13.
  if(DTRAIN_TESTS AND TARGET CUDA::cupti AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
    add_library(kernel_times MODULE ${CMAKE_SOURCE_DIR}/tools/bench/kernel_times.cc)
    dtrain_compile_options(kernel_times)
    set_target_properties(kernel_times PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    target_link_libraries(kernel_times PRIVATE CUDA::cupti CUDA::cudart_static)
  endif()
endif()
