# Texts in the program itself: the files below conf/, the kernels and parts of completions. Included, it
# adds for each set a generated source to the library's, such as
#
#     const struct lab_config_file lab_config_files[] = {{"experiment/numa_study.yaml", "…", 1234}, …};
#
# run as a script (-P), it writes one of them. A file that is new, changed or gone is noticed by the
# next build.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    # lab_embed(NAME FOLDER ENDINGS HEADER TYPE [EXCEPT]): lab_NAME[] of `const struct TYPE`, from FOLDER,
    # less the files whose names in it match EXCEPT
    function(lab_embed name folder endings header type)
        set(files "")
        foreach(ending ${endings})
            file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.${ending})
            list(APPEND files ${found})
        endforeach()
        set(path ${CMAKE_BINARY_DIR}/generated/${name}.c)
        # the list is an input as well, so that a removed file is noticed
        set(list ${CMAKE_BINARY_DIR}/generated/${name}.txt)
        file(CONFIGURE OUTPUT ${list} CONTENT "${files}\n" @ONLY)
        string(REPLACE ";" "," endings "${endings}")
        add_custom_command(OUTPUT ${path} VERBATIM
            DEPENDS ${files} ${list} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
            COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/${folder} -DENDINGS=${endings}
                    -DARRAY=lab_${name} -DHEADER=${header} -DTYPE=${type} -DOUTPUT=${path}
                    "-DEXCEPT=${ARGN}"
                    -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
            COMMENT "Embedding ${folder}/")
        set_property(GLOBAL APPEND PROPERTY lab_generated ${path})
    endfunction()
    lab_embed(config_files conf yaml compose/config.h lab_config_file ^machine/)
    lab_embed(machine_files conf/machine yaml device/sim/find.h sim_file)
    lab_embed(kernel_files kernels "cu;cuh" device/cuda/compile.h lab_kernel_file)
    lab_embed(manual_files src/command/manual "bash;fish" command/manual/manual_text.h lab_manual_file)
    return()
endif()

cmake_minimum_required(VERSION 3.22)
string(REPLACE "," ";" ENDINGS "${ENDINGS}")
list(TRANSFORM ENDINGS PREPEND ${ROOT}/*. OUTPUT_VARIABLE patterns)
file(GLOB_RECURSE names RELATIVE ${ROOT} ${patterns})
if(EXCEPT)
    list(FILTER names EXCLUDE REGEX ${EXCEPT})
endif()
list(SORT names)
set(source "/* Generated from the files in ${ROOT}. */\n#include \"${HEADER}\"\n\n")
string(APPEND source "const struct ${TYPE} ${ARRAY}[] = {\n")
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
