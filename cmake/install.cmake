# `make install PREFIX=…`: the program, its man pages and completions.
include(GNUInstallDirs)
install(TARGETS gpulab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
