# The libraries that gpulab is built on, as imported targets under `lab_dependencies`. The portable
# build takes the archives instead, and runs on any Linux with glibc ≥ 2.28 (tools/link-glibc).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(lab_dependencies INTERFACE)

# lab_dependency(<pkg-config name> <archives to link in the portable build…>)
function(lab_dependency package)
    string(MAKE_C_IDENTIFIER "dep_${package}" prefix)
    pkg_check_modules(${prefix} REQUIRED ${package})
    target_include_directories(lab_dependencies SYSTEM INTERFACE ${${prefix}_INCLUDE_DIRS})
    if(NOT GPULAB_PORTABLE)
        # gslcblas would shadow OpenBLAS's cblas (100 → 6 GFLOP/s)
        set(libraries ${${prefix}_LINK_LIBRARIES})
        list(FILTER libraries EXCLUDE REGEX "gslcblas")
        target_link_libraries(lab_dependencies INTERFACE ${libraries})
        return()
    endif()
    foreach(archive ${ARGN})
        find_library(${prefix}_${archive} NAMES lib${archive}.a REQUIRED
                     HINTS ${${prefix}_LIBRARY_DIRS} ${${prefix}_LIBDIR})
        target_link_libraries(lab_dependencies INTERFACE ${${prefix}_${archive}})
    endforeach()
endfunction()

lab_dependency(hwloc hwloc)
lab_dependency(jansson jansson)
lab_dependency(yaml-0.1 yaml)
lab_dependency(gsl gsl)
lab_dependency(sqlite3 sqlite3)
lab_dependency(ncursesw ncursesw tinfo)
lab_dependency(libmicrohttpd microhttpd)

# The serial OpenBLAS, whatever the system's alternative for libopenblas points to: the threaded one
# starts threads of its own before main, and those can't be kept on a slice's cores.
set(openblas_hints /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial
                   /usr/lib/x86_64-linux-gnu/openblas-serial
                   /usr/lib/aarch64-linux-gnu/openblas-serial)
find_path(OPENBLAS_INCLUDE cblas.h REQUIRED NO_DEFAULT_PATH
          HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial
                /usr/include/x86_64-linux-gnu/openblas-serial
                /usr/include/aarch64-linux-gnu/openblas-serial)
if(GPULAB_PORTABLE)
    find_library(OPENBLAS_LIBRARY NAMES libopenblas.a REQUIRED NO_DEFAULT_PATH
                 HINTS ${openblas_hints})
else()
    find_library(OPENBLAS_LIBRARY NAMES openblas REQUIRED NO_DEFAULT_PATH HINTS ${openblas_hints})
endif()
target_include_directories(lab_dependencies SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(lab_dependencies INTERFACE ${OPENBLAS_LIBRARY})

if(GPULAB_PORTABLE)
    add_library(lab_absent STATIC ${CMAKE_SOURCE_DIR}/cmake/absent.c)
    target_link_libraries(lab_dependencies INTERFACE lab_absent)
endif()

# last: the archives need them
target_link_libraries(lab_dependencies INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
