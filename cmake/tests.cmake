# Every tests/unit/**/test_*.c and tests/conformance/test_*.c is a program of its own under CTest, and
# so is every tests/gpu/test_*.c, which is skipped where there is no GPU.
include(cmake/test_main.cmake)
if(NOT CMOCKA_FOUND)
    message(FATAL_ERROR "the tests need cmocka")
endif()

# What the sanitizers need to be told; harmless in the other builds. Leaks count as failures. Not
# detect_stack_use_after_return: gcc 12's fake stack isn't aligned for 64-byte vectors.
set(test_environment
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=second_deadlock_stack=1")
# Those that plan for recorded machines: hwloc looks for words in what is left of a file, which strict checks
# would read to its end each time.
string(REPLACE ":strict_string_checks=1" "" plan_environment "${test_environment}")

# Against hanging only. The longest takes seconds, but sanitizers and a loaded machine stretch that.
set(unit_timeout 300)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/test_*.c
     ${CMAKE_SOURCE_DIR}/tests/conformance/test_*.c)
file(GLOB gpu_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/gpu/test_*.c)
foreach(source ${test_sources} ${gpu_sources})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${name})
    if(GPULAB_SANITIZE AND name STREQUAL "kernel_compile")
        continue() # a minute of the vendor's compiler, in which no fault of ours can be found
    endif()
    add_executable(test_${name} ${source})
    target_link_libraries(test_${name} PRIVATE test_main)
    add_test(NAME ${name} COMMAND test_${name})
    # one that lacks what it tests says so and returns 77: seen as skipped, not as passed
    # leases of its own: tests don't wait for each other's devices
    set_tests_properties(${name} PROPERTIES TIMEOUT ${unit_timeout} SKIP_RETURN_CODE 77
                         ENVIRONMENT "${test_environment};GPULAB_LOCK_DIR=${CMAKE_BINARY_DIR}/locks/${name}")
    if(name MATCHES "^plan")
        set_tests_properties(${name} PROPERTIES ENVIRONMENT "${plan_environment}")
    endif()
    if(name MATCHES "^cuda_")
        list(APPEND cuda_tests test_${name})
    endif()
    if(name MATCHES "nvml")
        list(APPEND nvml_tests test_${name})
    endif()
    if(source IN_LIST gpu_sources)
        set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS gpu)
    endif()
endforeach()

# The same tests on the GPU that is here, if any: `make test-gpu`.
foreach(test ${cuda_tests} test_ops)
    string(REGEX REPLACE "^test_" "gpu_" name ${test})
    add_test(NAME ${name} COMMAND ${test})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${unit_timeout} LABELS gpu SKIP_RETURN_CODE 77
                         ENVIRONMENT "${test_environment};GPULAB_TEST_CUDA=real")
endforeach()

# Where a CUDA toolkit is installed, its headers check our declarations; nothing else includes them.
find_path(CUDA_HEADERS cudaTypedefs.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include
          NO_DEFAULT_PATH)

# tools/setup brings NVRTC to build/cuda where there is no toolkit.
file(GLOB cuda_packages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/build/cuda/nvidia/cu*)
if(TARGET test_kernel_compile)
    set_tests_properties(kernel_compile PROPERTIES TIMEOUT 900) # a minute and a half of NVRTC alone
endif()
if(cuda_packages AND TARGET test_kernel_compile)
    set_property(TEST kernel_compile APPEND PROPERTY ENVIRONMENT
                 "LD_LIBRARY_PATH=${cuda_packages}/lib:$ENV{LD_LIBRARY_PATH}")
endif()
if(CUDA_HEADERS)
    foreach(test test_vendor_headers test_vendor_nvtx)
        target_include_directories(${test} SYSTEM PRIVATE ${CUDA_HEADERS})
        target_compile_definitions(${test} PRIVATE LAB_TEST_CUDA_HEADERS)
    endforeach()
    if(EXISTS ${CUDA_HEADERS}/nccl.h)
        target_include_directories(test_vendor_nccl SYSTEM PRIVATE ${CUDA_HEADERS})
        target_compile_definitions(test_vendor_nccl PRIVATE LAB_TEST_NCCL_HEADER)
    endif()
endif()

# A driver without a GPU: build/fake in LD_LIBRARY_PATH shows GPUs to whoever looks (tests/fake). Its
# NVML is in demo.cmake.
set(fake_version_cuda 1)
set(fake_version_cublasLt 13)
set(fake_version_cupti 13)
foreach(library cuda cublasLt cupti)
    string(MAKE_C_IDENTIFIER ${library} name)
    file(GLOB fake_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fake/lib${name}.c
         ${CMAKE_SOURCE_DIR}/tests/fake/lib${name}_*.c)
    add_library(fake_${name} SHARED ${fake_sources} ${CMAKE_SOURCE_DIR}/tests/fake/fake_env.c)
    target_link_libraries(fake_${name} PRIVATE lab_flags Threads::Threads)
    target_include_directories(fake_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_compile_options(fake_${name} PRIVATE -fvisibility=hidden)
    set_target_properties(fake_${name} PROPERTIES OUTPUT_NAME ${library}
                          SOVERSION ${fake_version_${library}}
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
    foreach(test ${cuda_tests} test_vendor)
        add_dependencies(${test} fake_${name})
    endforeach()
endforeach()
foreach(test ${cuda_tests} ${nvml_tests} test_vendor)
    add_dependencies(${test} fake_nvidia_ml)
endforeach()

# NCCL beside it, in a folder of its own: most tests are about machines without it.
add_library(fake_nccl SHARED ${CMAKE_SOURCE_DIR}/tests/fake/libnccl.c
            ${CMAKE_SOURCE_DIR}/tests/fake/fake_env.c)
target_link_libraries(fake_nccl PRIVATE lab_flags Threads::Threads)
target_include_directories(fake_nccl PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_compile_options(fake_nccl PRIVATE -fvisibility=hidden)
set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake/nccl)
add_dependencies(test_cuda_sums fake_nccl)

# A tool that listens to ranges, as a profiler's library would be loaded (vendor/nvtx.h).
add_library(fake_nvtx SHARED ${CMAKE_SOURCE_DIR}/tests/fake/nvtx_injection.c)
target_link_libraries(fake_nvtx PRIVATE lab_flags)
target_compile_options(fake_nvtx PRIVATE -fvisibility=hidden)
set_target_properties(fake_nvtx PROPERTIES OUTPUT_NAME nvtx_injection
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
add_dependencies(test_vendor_nvtx fake_nvtx)

# Makes the program's calls into the system fail, one at a time (tests/torture).
# Sanitizers have a malloc of their own.
if(NOT GPULAB_SANITIZE)
    add_library(torture SHARED ${CMAKE_SOURCE_DIR}/tests/torture/fail_call.c)
    target_link_libraries(torture PRIVATE lab_flags ${CMAKE_DL_LIBS})
    target_compile_options(torture PRIVATE -fvisibility=hidden -U_FORTIFY_SOURCE)
    set_target_properties(torture PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
endif()

# Another machine's clocks (tests/faults), and a file system that logs (tests/power).
add_library(machine SHARED ${CMAKE_SOURCE_DIR}/tests/faults/machine.c)
target_link_libraries(machine PRIVATE lab_flags ${CMAKE_DL_LIBS})
target_compile_options(machine PRIVATE -fvisibility=hidden)
set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/faults/machine.c PROPERTIES
                            COMPILE_OPTIONS -U_FORTIFY_SOURCE) # behind the flags that set it
set_target_properties(machine PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
pkg_check_modules(FUSE3 IMPORTED_TARGET fuse3)
if(FUSE3_FOUND)
    add_executable(log_fs ${CMAKE_SOURCE_DIR}/tests/power/log_fs.c)
    target_link_libraries(log_fs PRIVATE lab_flags PkgConfig::FUSE3)
    set_target_properties(log_fs PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
endif()

# The skeleton that people copy compiles without a warning.
add_library(skeleton_workload OBJECT ${CMAKE_SOURCE_DIR}/docs/skeleton_workload.c)
target_link_libraries(skeleton_workload PRIVATE lab_flags)

# Every tests/program/<name>.sh runs the built program as a user would. A line "# label: <word>" in
# it labels the test: `build` = it compiles the tree again, measures large models or trains with
# PyTorch, which sanitized builds would only do slowly a second time; `long` = left to `make test-long`.
file(GLOB program_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/program/*.sh)
foreach(script ${program_tests})
    get_filename_component(name ${script} NAME_WE)
    file(STRINGS ${script} labels REGEX "^# label: ")
    list(TRANSFORM labels REPLACE "^# label: " "")
    if(GPULAB_SANITIZE AND "build" IN_LIST labels)
        continue()
    endif()
    set(timeout 300)
    if("long" IN_LIST labels)
        set(timeout 3600)
    elseif(labels)
        set(timeout 600)
    endif()
    add_test(NAME program_${name} COMMAND bash ${script} $<TARGET_FILE:gpulab> ${CMAKE_SOURCE_DIR}
             ${CMAKE_BINARY_DIR})
    set_tests_properties(program_${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}" SKIP_RETURN_CODE 77
                         ENVIRONMENT "${test_environment};GPULAB_LOCK_DIR=${CMAKE_BINARY_DIR}/locks/${name}")
endforeach()

# one build/portable for both
foreach(name portable_needs dist)
    if(TEST program_${name})
        set_tests_properties(program_${name} PROPERTIES RESOURCE_LOCK portable)
    endif()
endforeach()

# The fuzz targets' seeds and the inputs that once broke them, replayed in every build.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" name ${name})
    add_executable(replay_${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
    target_link_libraries(replay_${name} PRIVATE lab)
    target_include_directories(replay_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    add_test(NAME replay_${name} COMMAND replay_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(replay_${name} PROPERTIES TIMEOUT ${unit_timeout} ENVIRONMENT "${test_environment}")
endforeach()

# Proof by planted truth: a sample of it in every build, all of it with `make test-long`. tools/proof
# draws a fresh seed and writes docs/PROOF.md.
file(GLOB proof_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/long/*.c)
add_executable(proof ${proof_sources})
target_link_libraries(proof PRIVATE lab)
target_include_directories(proof PRIVATE ${CMAKE_SOURCE_DIR}/tests/long)
add_test(NAME proof_sample COMMAND ${CMAKE_SOURCE_DIR}/tools/proof --sample $<TARGET_FILE:proof>)
add_test(NAME proof COMMAND ${CMAKE_SOURCE_DIR}/tools/proof $<TARGET_FILE:proof>)
set_tests_properties(proof_sample PROPERTIES TIMEOUT 300 ENVIRONMENT "${test_environment}")
set_tests_properties(proof PROPERTIES TIMEOUT 3600 LABELS long ENVIRONMENT "${test_environment}")

# Questions of a published plan, asked by the shipped studies as a user would.
add_test(NAME questions COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/long/questions.py $<TARGET_FILE:gpulab>
         ${CMAKE_SOURCE_DIR})
add_test(NAME campaign_questions COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/long/questions.py
         $<TARGET_FILE:gpulab> ${CMAKE_SOURCE_DIR} --campaign numa_plan --seeds 10)
add_test(NAME campaign_kills COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/long/campaign_kills.py
         $<TARGET_FILE:gpulab>)
add_test(NAME campaign_bisection COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/long/bisection.py
         $<TARGET_FILE:gpulab> ${CMAKE_SOURCE_DIR})
set_tests_properties(questions campaign_questions campaign_kills campaign_bisection PROPERTIES TIMEOUT 3600 LABELS long
                     ENVIRONMENT "${test_environment}")

# What `gpulab check` finds on simulated machines, and how often it is wrong: a sample in every build. All of it
# writes the tables of docs/CHECK.md: build/check_detect docs/CHECK.md
add_executable(check_detect ${CMAKE_SOURCE_DIR}/tests/long/check/detect.c)
target_link_libraries(check_detect PRIVATE lab)
target_compile_definitions(check_detect PRIVATE GPULAB_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
add_test(NAME check_detect_sample COMMAND check_detect --sample)
add_test(NAME check_detect COMMAND check_detect)
set_tests_properties(check_detect_sample PROPERTIES TIMEOUT 300 ENVIRONMENT "${test_environment}")
set_tests_properties(check_detect PROPERTIES TIMEOUT 7200 LABELS long ENVIRONMENT "${test_environment}")
