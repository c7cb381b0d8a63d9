# The tests that need a GPU, from the portable build: a folder that can be taken to a machine which has
# one and nothing else (`make test-gpu`; tests/gpu/run), with the program in the folder above, which the
# studies among them run. cmocka has no archive, so it goes along; and so do the programs and the fake
# driver that `bench/monitor FOLDER` measures with there, and `bench/kernels`' own.
include(cmake/test_main.cmake)
if(NOT CMOCKA_FOUND)
    return()
endif()
set(folder ${CMAKE_BINARY_DIR}/gpu-tests)
set(targets "")
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/gpu/test_*.c
     ${CMAKE_SOURCE_DIR}/tests/unit/device/test_cuda_*.c)
foreach(source ${sources} ${CMAKE_SOURCE_DIR}/tests/conformance/test_ops.c)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE test_main)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder}
                          BUILD_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH OFF)
    list(APPEND targets ${name})
endforeach()
find_library(CMOCKA_SHARED NAMES libcmocka.so.0 REQUIRED HINTS ${CMOCKA_LIBRARY_DIRS} ${CMOCKA_LIBDIR})
set(bench_programs bench_reading bench_sampler bench_recording bench_launch bench_waits)
set_target_properties(${bench_programs} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder})
add_custom_target(gpu_tests
    COMMAND ${CMAKE_COMMAND} -E copy ${CMOCKA_SHARED} ${folder}/libcmocka.so.0
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/tests/gpu/run
            ${CMAKE_SOURCE_DIR}/tests/gpu/test_gpu_studies.sh ${CMAKE_SOURCE_DIR}/tests/gpu/check_study.py ${folder}
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:fake_nvidia_ml> ${folder}/fake/libnvidia-ml.so.1
    DEPENDS ${targets} ${bench_programs} fake_nvidia_ml gpulab)
