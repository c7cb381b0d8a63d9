# Run by CPack on the staged files: Debian keeps man pages and changelogs compressed, and the licence
# under a name of its own.
file(GLOB stage ${CPACK_TEMPORARY_DIRECTORY}/usr ${CPACK_TEMPORARY_DIRECTORY}/*/usr)
file(RENAME ${stage}/share/doc/gpulab/LICENSE ${stage}/share/doc/gpulab/copyright)
file(RENAME ${stage}/share/doc/gpulab/CHANGELOG.md ${stage}/share/doc/gpulab/changelog)
file(GLOB pages ${stage}/share/man/man1/*.1)
# -n: neither name nor time, so that two builds are the same
execute_process(COMMAND gzip -9n ${pages} ${stage}/share/doc/gpulab/changelog
                COMMAND_ERROR_IS_FATAL ANY)
