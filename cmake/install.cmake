# `make install PREFIX=…`: the program, its man pages and completions, studies and documents. Man pages
# and completions are written by the program itself, from the descriptors of its commands.
include(GNUInstallDirs)

set(manual_dir ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual_dir}/done DEPENDS gpulab VERBATIM
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual_dir}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual_dir}/man1
    COMMAND gpulab help --man ${manual_dir}/man1
    COMMAND gpulab completion bash > ${manual_dir}/gpulab
    COMMAND gpulab completion zsh > ${manual_dir}/_gpulab
    COMMAND gpulab completion fish > ${manual_dir}/gpulab.fish
    COMMAND ${CMAKE_COMMAND} -E touch ${manual_dir}/done)
add_custom_target(manual DEPENDS ${manual_dir}/done)

install(TARGETS gpulab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# the serial OpenBLAS lies in a folder of its own, where the loader would not look
set_target_properties(gpulab PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(DIRECTORY ${manual_dir}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${manual_dir}/gpulab DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manual_dir}/_gpulab DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual_dir}/gpulab.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
file(GLOB documents ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
     ${CMAKE_SOURCE_DIR}/docs/*.md ${CMAKE_SOURCE_DIR}/LICENSE)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR})
# the program has them in it; these are to copy from
install(DIRECTORY ${CMAKE_SOURCE_DIR}/conf DESTINATION ${CMAKE_INSTALL_DOCDIR})
