# dtrain_library(name DIR folder... [DEPS library...] [LINK target...] [PRECOMPILED set] [PRECOMPILE header...] [ALONE])
#
# Makes an OBJECT library of every .cc directly in the folders: a static one would drop the objects that
# register themselves.  main.cc, *_cases.cc (tests) and *_cuda.cc, *_cuda.cu (the CUDA module) are left out.  An _isa.cc
# is compiled once per instruction set (framework/core/isa.h), an _amx_isa.cc for AMX alone; tests also get a copy that
# emulates AMX's registers in memory, dtrain_<name>_emulated, which the program does not link.
#
# PRECOMPILED names a set of slow headers of other libraries that is compiled once for many folders, with OpenMP and the
# set's level of optimising (dtrain_precompiled), PRECOMPILE headers of the library's own.  The files still include what
# they use, as a build with -DDTRAIN_PRECOMPILE=OFF (preset dev) checks.  With ALONE the folders must not include each other
# (tests/tidy), but names of unnamed namespaces must differ over all of them.
function(dtrain_library name)
  cmake_parse_arguments(ARG "ALONE" "PRECOMPILED" "DIR;DEPS;LINK;PRECOMPILE" ${ARGN})
  set(sources)
  foreach(dir ${ARG_DIR})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$|_cases\\.cc$|_cuda\\.cc$")
  set(isa_sources ${sources})
  list(FILTER isa_sources INCLUDE REGEX "_isa\\.cc$")
  set(amx_sources ${isa_sources})
  list(FILTER amx_sources INCLUDE REGEX "_amx_isa\\.cc$")
  list(FILTER isa_sources EXCLUDE REGEX "_amx_isa\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_isa\\.cc$")
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty.cc "")
    set(sources ${CMAKE_BINARY_DIR}/empty.cc)
  endif()
  add_library(dtrain_${name} OBJECT ${sources})
  if(ARG_ALONE)
    # Small units: a change to one folder compiles only twelve files again.
    set_target_properties(dtrain_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  endif()
  dtrain_compile_options(dtrain_${name})
  target_include_directories(dtrain_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  set(link ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    list(APPEND link dtrain_${dep})
  endforeach()
  target_link_libraries(dtrain_${name} PUBLIC ${link})
  if(ARG_PRECOMPILED)
    dtrain_use_precompiled(dtrain_${name} ${ARG_PRECOMPILED})
  elseif(ARG_PRECOMPILE AND DTRAIN_PRECOMPILE)
    target_precompile_headers(dtrain_${name} PRIVATE ${ARG_PRECOMPILE})
  endif()
  set_property(TARGET dtrain_${name} PROPERTY DTRAIN_DEPS ${ARG_DEPS})
  set_property(TARGET dtrain_${name} PROPERTY DTRAIN_ISA_LIBRARIES "")
  if(isa_sources)
    dtrain_isa_library(${name} baseline "-O3" "${isa_sources}" "${ARG_LINK}")
    dtrain_isa_library(${name} avx "-O3;-mavx" "${isa_sources}" "${ARG_LINK}")
    dtrain_isa_library(${name} avx2 "-O3;-mavx2;-mfma" "${isa_sources}" "${ARG_LINK}")
    dtrain_isa_library(${name} avx512
      "-O3;-mavx512f;-mavx512vl;-mavx512dq;-mavx512bw;-mfma;-mprefer-vector-width=512"
      "${isa_sources}" "${ARG_LINK}")
  endif()
  if(amx_sources)
    dtrain_isa_library(${name} amx
      "-O3;-mavx512f;-mavx512vl;-mavx512dq;-mavx512bw;-mavx512bf16;-mfma;-mamx-tile;-mamx-bf16;-mprefer-vector-width=512"
      "${amx_sources}" "${ARG_LINK}")
    if(DTRAIN_TESTS)
      dtrain_isa_objects(${name} emulated "-O1" "${amx_sources}" "${ARG_LINK}")
    endif()
  endif()
endfunction()

# dtrain_precompiled(name [LIKE set] [OPTIMISE level] HEADERS header... LINK target...): makes a set for targets with the
# same compiler flags, which include OpenMP's and the level of dtrain_optimise.  Under a sanitizer the level is the
# preset's, and the set is that of LIKE.
function(dtrain_precompiled name)
  cmake_parse_arguments(ARG "" "LIKE;OPTIMISE" "HEADERS;LINK" ${ARGN})
  set(set ${name})
  if(ARG_LIKE AND DTRAIN_SANITIZE)
    set(set ${ARG_LIKE})
  endif()
  set_property(GLOBAL PROPERTY DTRAIN_SET_${name} ${set})
  set_property(GLOBAL PROPERTY DTRAIN_OPTIMISE_${name} ${ARG_OPTIMISE})
  if(NOT DTRAIN_PRECOMPILE OR NOT set STREQUAL name)
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cc "")
  add_library(dtrain_precompiled_${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  dtrain_compile_options(dtrain_precompiled_${name})
  dtrain_optimise(dtrain_precompiled_${name} "${ARG_OPTIMISE}")
  target_precompile_headers(dtrain_precompiled_${name} PRIVATE ${ARG_HEADERS})
  target_link_libraries(dtrain_precompiled_${name} PRIVATE ${ARG_LINK} OpenMP::OpenMP_CXX)
endfunction()

# Compiles a target with a set of dtrain_precompiled.
function(dtrain_use_precompiled target name)
  get_property(set GLOBAL PROPERTY DTRAIN_SET_${name})
  get_property(level GLOBAL PROPERTY DTRAIN_OPTIMISE_${name})
  dtrain_optimise(${target} "${level}")
  target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  if(DTRAIN_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM dtrain_precompiled_${set})
  endif()
endfunction()

# Compiles them the same way, and links them wherever the library is linked.
function(dtrain_isa_library name isa flags sources link)
  dtrain_isa_objects(${name} ${isa} "${flags}" "${sources}" "${link}")
  set_property(TARGET dtrain_${name} APPEND PROPERTY DTRAIN_ISA_LIBRARIES dtrain_${name}_${isa})
endfunction()

# Compiles a library's _isa.cc sources for one instruction set, with DTRAIN_ISA_NS = isa_<set>.
function(dtrain_isa_objects name isa flags sources link)
  set(target dtrain_${name}_${isa})
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # hot loops are optimised file by file
  dtrain_compile_options(${target})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  list(LENGTH sources count)
  if(DTRAIN_PRECOMPILE AND flags MATCHES "-m" AND count GREATER 2)
    # Reading the compiler's own header of intrinsics takes longer than compiling most of these files.  A precompiled
    # header forgets which warnings it has turned off; the objects of the baseline, without it, have them.
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/framework/device/cpu/intrinsics.h)
    target_compile_options(${target} PRIVATE -Wno-uninitialized $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
  # Without errno, square roots become vector instructions; their bits are the same.
  target_compile_options(${target} PRIVATE -fno-math-errno ${flags})
  string(TOUPPER ${isa} upper)
  target_compile_definitions(${target} PRIVATE DTRAIN_ISA_NS=isa_${isa} DTRAIN_ISA_${upper}=1)
  target_link_libraries(${target} PUBLIC ${link})
endfunction()

# For code whose speed does not matter: level g for commands, 1 for tests that compute, 0 for other tests.  -O1 compiles in
# two thirds of the time of -O3, -Og in two thirds of that.  Presets with sanitizers have no more than -O1 anyway.
function(dtrain_optimise target level)
  if(NOT level STREQUAL "" AND NOT DTRAIN_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<OR:$<CONFIG:Release>,$<STREQUAL:${level},0>>:-O${level}>)
  endif()
endfunction()

# A g++ that may use more memory before it looks for what it can free takes a tenth less time.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR memory_of_job "${memory} / (${cores} + 1)")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND memory_of_job GREATER 2000)
  set(DTRAIN_COMPILER_MEMORY $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)  # KiB
endif()

function(dtrain_compile_options target)
  # Products and sums are never contracted into FMA by the compiler: elementwise code then gives the
  # same bits under every instruction set.  Kernels that want FMA ask for it.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-restrict -ffp-contract=off
    ${DTRAIN_COMPILER_MEMORY}
    $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-pragmas>)  # `GCC ivdep`; -Wall turns the warning on again
  if(DTRAIN_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${DTRAIN_SANITIZE}
      -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${target} PRIVATE ${DTRAIN_SANITIZE_LESS})
    target_link_options(${target} PUBLIC -fsanitize=${DTRAIN_SANITIZE})
  endif()
endfunction()

# dtrain_executable(name SOURCES file... DEPS library... [LINK target...]): links the DEPS and all
# libraries that they need, object by object.
function(dtrain_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK" ${ARGN})
  set(closure)
  set(queue ${ARG_DEPS})
  while(queue)
    list(POP_FRONT queue dep)
    if(NOT dep IN_LIST closure)
      list(APPEND closure ${dep})
      get_property(more TARGET dtrain_${dep} PROPERTY DTRAIN_DEPS)
      list(APPEND queue ${more})
    endif()
  endwhile()
  add_executable(${name} ${ARG_SOURCES})
  dtrain_compile_options(${name})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if("device_cuda" IN_LIST closure)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)  # for the CUDA module
  endif()
  foreach(dep ${closure})
    get_property(isa TARGET dtrain_${dep} PROPERTY DTRAIN_ISA_LIBRARIES)
    target_link_libraries(${name} PRIVATE dtrain_${dep} ${isa})
  endforeach()
endfunction()
