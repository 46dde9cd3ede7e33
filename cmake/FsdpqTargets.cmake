# Targets of the MLIR-free part: the runtime and its unit tests.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # The sloppiness lets ccache work beside a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
  add_compile_options(-fpch-preprocess)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

add_library(fsdpq_options INTERFACE)
target_include_directories(fsdpq_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_options(fsdpq_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(FSDPQ_SANITIZE)
  target_compile_options(fsdpq_options INTERFACE -fsanitize=${FSDPQ_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(fsdpq_options INTERFACE -fsanitize=${FSDPQ_SANITIZE})
endif()

# fsdpq_add_runtime_library(NAME SOURCES file... LIBS target...)
# A static library of the runtime. It may throw and must not include MLIR.
function(fsdpq_add_runtime_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC fsdpq_options ${ARG_LIBS})
endfunction()

# fsdpq_add_unit_test(NAME SOURCES file... LIBS target...)
# A GoogleTest program, registered with ctest under its own name.
# Tests find data below test/Inputs through the macro FSDPQ_TEST_INPUTS.
function(fsdpq_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE FSDPQ_TEST_INPUTS="${CMAKE_SOURCE_DIR}/test/Inputs")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
  add_test(NAME unit/${name} COMMAND ${name})
endfunction()
