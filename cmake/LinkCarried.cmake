# Links a program again with MLIR and LLVM inside; see fsdpq_add_carried. Takes the
# command by which ninja linked PROGRAM and names INSTEAD (a file of arguments) in
# place of the libraries of MLIR, LLVM and the dialects.
file(RELATIVE_PATH program ${BUILD} ${PROGRAM})
execute_process(COMMAND ${NINJA} -C ${BUILD} -t commands -s ${program}
                OUTPUT_VARIABLE command RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed)
  message(FATAL_ERROR "ninja does not say how ${program} is linked")
endif()
string(REGEX REPLACE "^: && " "" command "${command}")
string(REGEX REPLACE " && :$" "" command "${command}")
separate_arguments(command UNIX_COMMAND "${command}")
set(line)
foreach(word ${command})
  get_filename_component(name "${word}" NAME)
  if(word STREQUAL "${program}")
    list(APPEND line ${OUTPUT})
  elseif(NOT name MATCHES "^lib(MLIR|LLVM|fsdpq_dialects)\\.so" AND NOT word MATCHES "^-Wl,-rpath")
    list(APPEND line "${word}")
  endif()
endforeach()
get_filename_component(folder ${OUTPUT} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND ${line} @${INSTEAD} -Wl,--gc-sections -Wl,--disable-new-dtags
                        -Wl,-rpath,$ORIGIN/lib -s
                WORKING_DIRECTORY ${BUILD} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cannot link ${OUTPUT}")
endif()
