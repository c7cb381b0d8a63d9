#!/usr/bin/env bash
# The runner of the tests that need a GPU (tests/gpu/run), with stand-ins for them: what it says of each
# is what the test said.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
folder=$work/tests
mkdir "$folder"
stand_in() { # stand_in NAME STATUS [LINE]
    printf '#!/bin/sh\necho "[ RUN      ] it"\n[ -z "%s" ] || echo "%s"\nexit %d\n' "${3-}" "${3-}" "$2" \
        >"$folder/test_$1"
    chmod +x "$folder/test_$1"
}
run_tests() {
    what="tests/gpu/run"
    "$source_dir/tests/gpu/run" "$folder" >"$work/out" 2>"$work/err"
    status=$?
}

stand_in select 77 "skipped: these tests are of made-up machines"
stand_in silent 77
run_tests
expect_status 77
expect_out '^test_select +[0-9]+ s  skipped: these tests are of made-up machines$'
expect_out "^test_silent +[0-9]+ s  skipped, and doesn't say why\$" # above all, no reason is made up
expect_out '^0 passed, 0 failed$'

stand_in good 0
run_tests
expect_status 0
expect_out '^test_good +[0-9]+ s  passed$'
expect_out '^1 passed, 0 failed$'

stand_in bad 3 "[  ERROR   ] --- relative error 0.3"
run_tests
expect_status 1
expect_out '^test_bad +[0-9]+ s  FAILED \(status 3\)$'
expect_out 'relative error 0.3'

finish
