# The Debian package of the portable build (tools/dist): what `make install` puts below /usr, with
# Debian's forms of man pages, changelog and licence.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gpulab)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "gpulab maintainers <maintainers@gpulab.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "laboratory for multi-GPU machines")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Shows a machine's NUMA nodes, GPUs and links, watches them, runs workloads
and whole studies, and reports with intervals where to put work.

NVIDIA's libraries are loaded at run time; without a GPU it measures the
CPUs, or simulates a machine.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${GPULAB_GLIBC})")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS gnuplot-nox)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_debian.cmake)
include(CPack)
