# A driver's NVML without a driver: plays a machine with GPUs (tests/fake/fake_nvml.h). build/fake in
# LD_LIBRARY_PATH shows it to the tests; installed, it serves `gpulab top --demo`.
file(GLOB demo_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fake/libnvidia_ml.c
     ${CMAKE_SOURCE_DIR}/tests/fake/libnvidia_ml_*.c)
add_library(fake_nvidia_ml SHARED ${demo_sources} ${CMAKE_SOURCE_DIR}/tests/fake/fake_env.c)
target_link_libraries(fake_nvidia_ml PRIVATE lab_flags Threads::Threads m)
target_include_directories(fake_nvidia_ml PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_compile_options(fake_nvidia_ml PRIVATE -fvisibility=hidden)
set_target_properties(fake_nvidia_ml PROPERTIES OUTPUT_NAME nvidia-ml SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)

# not the library folder of the system's architecture: the program looks for ../lib/gpulab/demo
install(FILES ${CMAKE_BINARY_DIR}/fake/libnvidia-ml.so.1 DESTINATION lib/gpulab/demo
        PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
