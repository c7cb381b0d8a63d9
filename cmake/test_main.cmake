# What every test program links: cmocka, and the main that runs the tests of its one source
# (tests/test.h).
pkg_check_modules(CMOCKA cmocka)
if(NOT CMOCKA_FOUND)
    return()
endif()
add_library(test_main OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/test.c)
target_link_libraries(test_main PUBLIC lab ${CMOCKA_LINK_LIBRARIES})
target_include_directories(test_main PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_include_directories(test_main SYSTEM PUBLIC ${CMOCKA_INCLUDE_DIRS})
target_compile_definitions(test_main PUBLIC
    LAB_TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LAB_TEST_BINARY_DIR="${CMAKE_BINARY_DIR}")
