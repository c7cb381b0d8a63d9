# The files below conf/ in the program itself. Included, it adds a generated source with
#
#     const struct lab_config_file lab_config_files[] = {{"experiment/numa_study.yaml", "…", 1234}, …};
#
# to the library's sources; run as a script (-P), it writes that source. A YAML file that is new,
# changed or gone is noticed by the next build.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    file(GLOB_RECURSE config_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/conf/*.yaml)
    set(path ${CMAKE_BINARY_DIR}/generated/config_files.c)
    # the list is an input as well, so that a removed file is noticed
    set(list ${CMAKE_BINARY_DIR}/generated/config_files.txt)
    file(CONFIGURE OUTPUT ${list} CONTENT "${config_files}\n" @ONLY)
    add_custom_command(OUTPUT ${path} VERBATIM
        DEPENDS ${config_files} ${list} ${CMAKE_CURRENT_LIST_FILE}
        COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/conf -DOUTPUT=${path}
                -P ${CMAKE_CURRENT_LIST_FILE}
        COMMENT "Embedding conf/")
    set_property(GLOBAL APPEND PROPERTY lab_generated ${path})
    return()
endif()

cmake_minimum_required(VERSION 3.22)
file(GLOB_RECURSE names RELATIVE ${ROOT} ${ROOT}/*.yaml)
list(SORT names)
set(source "/* Generated from the files in conf. */\n#include \"study/config.h\"\n\n")
string(APPEND source "const struct lab_config_file lab_config_files[] = {\n")
foreach(name IN LISTS names)
    file(READ ${ROOT}/${name} text)
    file(SIZE ${ROOT}/${name} size)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}") # no trigraphs
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND source "    {\"${name}\",\n     \"${text}\",\n     ${size}},\n")
endforeach()
string(APPEND source "    {0},\n};\n")
file(WRITE ${OUTPUT} "${source}")
