# Programs that bench/ compares with or measures by; built by `make bench`, not by default.
add_executable(bare_gemm EXCLUDE_FROM_ALL bench/peers/bare_gemm.c)
target_include_directories(bare_gemm SYSTEM PRIVATE ${OPENBLAS_INCLUDE})
target_link_libraries(bare_gemm PRIVATE ${OPENBLAS_LIBRARY} Threads::Threads)
add_executable(bare_memcpy EXCLUDE_FROM_ALL bench/peers/bare_memcpy.c)
target_link_libraries(bare_memcpy PRIVATE Threads::Threads)
foreach(peer bare_gemm bare_memcpy) # our warnings, nothing else of ours
    target_link_libraries(${peer} PRIVATE lab_flags)
endforeach()
add_executable(bench_overlap EXCLUDE_FROM_ALL bench/overlap.c)
target_link_libraries(bench_overlap PRIVATE lab)
add_executable(bench_compose EXCLUDE_FROM_ALL bench/compose.c)
target_link_libraries(bench_compose PRIVATE lab)
add_executable(bench_recording EXCLUDE_FROM_ALL bench/recording.c)
target_link_libraries(bench_recording PRIVATE lab)
add_executable(bench_sampler EXCLUDE_FROM_ALL bench/sampler.c)
target_link_libraries(bench_sampler PRIVATE lab)
add_custom_target(bench_programs DEPENDS bare_gemm bare_memcpy bench_overlap bench_compose
                  bench_recording bench_sampler gpulab)
