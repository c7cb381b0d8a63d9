# The library: every layer's sources, the generated registries, the embedded configs, and the vector
# kernels once for each instruction set.
lab_registry(command)
lab_registry(analysis PLURAL analyses)
lab_registry(workload)
lab_registry(probe)
lab_registry(tracker DIRECTORY src/track HEADER track/tracker.h)
lab_registry(doc_format DIRECTORY src/doc/format HEADER doc/doc.h)
lab_registry(backend DIRECTORY src/device HEADER device/device.h FOLDERS)
include(cmake/embed.cmake)

file(GLOB_RECURSE lab_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.c)
list(FILTER lab_sources EXCLUDE REGEX "/src/main\\.c$")
list(FILTER lab_sources EXCLUDE REGEX "/src/device/cpu/simd/")
get_property(lab_generated GLOBAL PROPERTY lab_generated)

add_library(lab_flags INTERFACE)
target_include_directories(lab_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
target_compile_definitions(lab_flags INTERFACE _GNU_SOURCE)
target_compile_options(lab_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings
    -Wundef -Wvla -Wformat=2 -Wno-missing-field-initializers -fno-math-errno
    -include ${CMAKE_SOURCE_DIR}/src/base/banned.h)
if(GPULAB_SANITIZE)
    target_compile_options(lab_flags INTERFACE -fsanitize=${GPULAB_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(lab_flags INTERFACE -fsanitize=${GPULAB_SANITIZE})
    # some hundred programs are linked: this one takes a third of the usual linker's time
    include(CheckLinkerFlag)
    check_linker_flag(C -fuse-ld=lld GPULAB_HAS_LLD)
    if(GPULAB_HAS_LLD)
        target_link_options(lab_flags INTERFACE -fuse-ld=lld)
    endif()
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GPULAB_SANITIZE)
    # no path of the build machine in the program: builds in different folders are the same
    target_compile_options(lab_flags INTERFACE -ffile-prefix-map=${CMAKE_BINARY_DIR}=build
                           -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -fstack-protector-strong
                           -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    target_link_options(lab_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(GPULAB_WERROR)
    target_compile_options(lab_flags INTERFACE -Werror)
endif()
if(GPULAB_PORTABLE)
    target_link_options(lab_flags INTERFACE -static-libgcc -Wl,--as-needed)
endif()

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/version.h CONTENT
     "#define LAB_VERSION \"${PROJECT_VERSION}\"\n" @ONLY)

# The portable build's objects are those of a release build: where there is one, its archive saves the
# time to compile them (.ci/run).
set(GPULAB_OBJECTS "" CACHE FILEPATH "portable: liblab.a of a release build of the same sources")
if(GPULAB_OBJECTS)
    add_library(lab INTERFACE)
    target_link_libraries(lab INTERFACE lab_flags ${GPULAB_OBJECTS} lab_dependencies)
else()
    add_library(lab STATIC ${lab_sources} ${lab_generated})
    target_link_libraries(lab PUBLIC lab_flags lab_dependencies)
    target_compile_options(lab PRIVATE -fPIE)
endif()

# OpenBLAS's buffers are ours (src/device/cpu/blas.c): the shared library finds our functions by
# itself, an archive has to be told.
if(GPULAB_PORTABLE)
    target_link_options(lab INTERFACE -Wl,--wrap=blas_memory_alloc,--wrap=blas_memory_free)
endif()

# src/device/cpu/simd/*.c are compiled once for every instruction set, LAB_SIMD naming the variant,
# and the device picks one at run time.
file(GLOB simd_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cpu/simd/*.c)
set(simd_variants base)
set(simd_flags_base "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND simd_variants avx2 avx512)
    set(simd_flags_avx2 -mavx2 -mfma -mf16c)
    set(simd_flags_avx512 -mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx2 -mfma -mf16c
                          -mprefer-vector-width=512)
endif()
if(simd_sources AND NOT GPULAB_OBJECTS)
    foreach(variant ${simd_variants})
        add_library(lab_simd_${variant} OBJECT ${simd_sources})
        target_link_libraries(lab_simd_${variant} PUBLIC lab_flags)
        target_compile_definitions(lab_simd_${variant} PRIVATE LAB_SIMD=${variant})
        # No signalling lets selects become vectors; sums say so themselves (omp simd). NaN must
        # pass through and exp's two-part constants must stay two, so no -ffast-math and no
        # -fassociative-math.
        target_compile_options(lab_simd_${variant} PRIVATE ${simd_flags_${variant}} -O3
            -fPIE -fno-trapping-math -fno-signed-zeros -fopenmp-simd
            # clang warns of every `omp simd` loop that it leaves scalar, whatever the reason
            $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
        target_sources(lab PRIVATE $<TARGET_OBJECTS:lab_simd_${variant}>)
    endforeach()
endif()
