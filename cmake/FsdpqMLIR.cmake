# Targets of the MLIR part: dialects, compiler, tools.
#
# Debian's LLVM and MLIR are used as the two dylibs. Naming any MLIR component
# library beside them would bring a second copy of every TypeID, so all targets
# here link `MLIR` and `LLVM` and nothing else of theirs.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(fsdpq_mlir_options INTERFACE)
target_link_libraries(fsdpq_mlir_options INTERFACE fsdpq_options)
target_include_directories(fsdpq_mlir_options SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_options(fsdpq_mlir_options INTERFACE -fno-exceptions)

# What nearly every file of dialects/ and compiler/ includes; see the header.
add_library(fsdpq_mlir_pch OBJECT ${CMAKE_SOURCE_DIR}/dialects/Support/Precompiled.cpp)
target_link_libraries(fsdpq_mlir_pch PUBLIC fsdpq_mlir_options)
target_precompile_headers(fsdpq_mlir_pch PRIVATE ${CMAKE_SOURCE_DIR}/dialects/Support/Precompiled.h)

# fsdpq_tablegen(TARGET FILE.td GENERATOR OUTPUT [GENERATOR OUTPUT ...])
# OUTPUTs land beside the .td's place in the build tree.
function(fsdpq_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest generator output)
    string(REPLACE " " ";" generator "${generator}")
    mlir_tablegen(${output} ${generator} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

# fsdpq_add_doc(NAME FILE.td GENERATOR): one Markdown page of `ninja fsdpq-doc`.
add_custom_target(fsdpq-doc)
function(fsdpq_add_doc name td generator)
  set(LLVM_TARGET_DEFINITIONS ${td})
  string(REPLACE " " ";" generator "${generator}")
  mlir_tablegen(${name}.md ${generator} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  add_custom_target(fsdpq-doc-${name}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${name}.md ${CMAKE_BINARY_DIR}/doc/${name}.md
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${name}.md)
  add_dependencies(fsdpq-doc fsdpq-doc-${name})
endfunction()

# fsdpq_add_compiler_library(NAME SOURCES file... LIBS target... DEPENDS tablegen-target... [HEAVY])
# HEAVY: the files include linalg, vector or LLVM-dialect headers; they gain
# little from the light precompiled header.
function(fsdpq_add_compiler_library name)
  cmake_parse_arguments(ARG "HEAVY" "" "SOURCES;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC fsdpq_mlir_options ${ARG_LIBS})
  if(NOT ARG_HEAVY)
    target_precompile_headers(${name} REUSE_FROM fsdpq_mlir_pch)
  endif()
  add_dependencies(${name} fsdpq_dialects_headers ${ARG_DEPENDS})
endfunction()

# fsdpq_add_phase(NAME SOURCES file...)
# The passes of compiler/<NAME>: declared in its Passes.td, one pass a file.
function(fsdpq_add_phase name)
  cmake_parse_arguments(ARG "HEAVY" "" "SOURCES;LIBS" ${ARGN})
  fsdpq_tablegen(fsdpq_${name}_passes Passes.td
    "-gen-pass-decls -name=Fsdpq${name}" Passes.h.inc)
  if(ARG_HEAVY)
    set(heavy HEAVY)
  endif()
  fsdpq_add_doc(Passes${name} Passes.td "-gen-pass-doc")
  fsdpq_add_compiler_library(Fsdpq${name} SOURCES ${ARG_SOURCES} LIBS ${ARG_LIBS}
    DEPENDS fsdpq_${name}_passes ${heavy})
endfunction()

# fsdpq_add_tool(NAME SOURCES file... LIBS target...)
# A program with the whole compiler in it.
function(fsdpq_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE FsdpqPipelines ${ARG_LIBS} fsdpq_dialects MLIR LLVM)
endfunction()

# fsdpq_add_carried(NAME OF target)
# NAME is the program OF once more, with MLIR and LLVM inside: for machines that
# have neither. CMake's targets for their archives would bring some of them in
# twice, so all are named in one group. `ninja NAME`; see tools/carry.sh.
find_program(FSDPQ_LLVM_CONFIG llvm-config HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
execute_process(COMMAND ${FSDPQ_LLVM_CONFIG} --system-libs --link-static
                OUTPUT_VARIABLE FSDPQ_LLVM_SYSTEM_LIBS OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(FSDPQ_LLVM_SYSTEM_LIBS)
file(GLOB FSDPQ_LLVM_ARCHIVES ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
list(FILTER FSDPQ_LLVM_ARCHIVES EXCLUDE REGEX "Exegesis|_shlib|libMLIR_|libLLVMTestingSupport")
function(fsdpq_add_carried name target)
  # What takes the dylibs' place on the linker's command line.
  set(instead ${CMAKE_BINARY_DIR}/${name}.txt)
  string(REPLACE ";" "\n" archives
    "-Wl,--start-group;${FSDPQ_LLVM_ARCHIVES};-Wl,--end-group;${FSDPQ_LLVM_SYSTEM_LIBS}")
  file(GENERATE OUTPUT ${instead}
    CONTENT "$<JOIN:$<TARGET_OBJECTS:fsdpq_dialects_objects>,\n>\n${archives}\n")
  add_custom_target(${name}
    COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DNINJA=${CMAKE_MAKE_PROGRAM}
            -DPROGRAM=$<TARGET_FILE:${target}> -DINSTEAD=${instead}
            -DOUTPUT=${CMAKE_BINARY_DIR}/carried/${target}
            -P ${CMAKE_SOURCE_DIR}/cmake/LinkCarried.cmake
    DEPENDS ${target} VERBATIM)
endfunction()
