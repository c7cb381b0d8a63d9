# `make test-numa` boots a four-node machine and runs this program in it (tests/numa/run). Only what it
# uses is linked, so that few shared libraries have to travel into the machine's image.
add_executable(numa_proof EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/numa/proof.c
               ${CMAKE_SOURCE_DIR}/tests/numa/proof_monitor.c)
target_link_libraries(numa_proof PRIVATE lab)
target_link_options(numa_proof PRIVATE -Wl,--as-needed)
if(EXISTS ${CMAKE_SOURCE_DIR}/src/device/cpu/cpu.c)
    target_sources(numa_proof PRIVATE ${CMAKE_SOURCE_DIR}/tests/numa/proof_device.c
                   ${CMAKE_SOURCE_DIR}/tests/numa/proof_bench.c
                   ${CMAKE_SOURCE_DIR}/tests/numa/proof_study.c)
    target_compile_definitions(numa_proof PRIVATE NUMA_PROOF_DEVICE)
endif()
