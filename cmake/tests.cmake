# Every tests/unit/**/test_*.c and tests/conformance/test_*.c is a program of its own under CTest.
pkg_check_modules(CMOCKA REQUIRED cmocka)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/test_*.c
     ${CMAKE_SOURCE_DIR}/tests/conformance/test_*.c)
foreach(source ${test_sources})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${name})
    add_executable(test_${name} ${source})
    target_link_libraries(test_${name} PRIVATE lab ${CMOCKA_LINK_LIBRARIES})
    target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests
                               SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIRS})
    target_compile_definitions(test_${name} PRIVATE
        LAB_TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LAB_TEST_BINARY_DIR="${CMAKE_BINARY_DIR}")
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 60)
endforeach()

# Every tests/program/<name>.sh runs the built program as a user would.
file(GLOB program_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/program/*.sh)
foreach(script ${program_tests})
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME program_${name} COMMAND bash ${script} $<TARGET_FILE:gpulab> ${CMAKE_SOURCE_DIR}
             ${CMAKE_BINARY_DIR})
    set_tests_properties(program_${name} PROPERTIES TIMEOUT 120)
endforeach()
