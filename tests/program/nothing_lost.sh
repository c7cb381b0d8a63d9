#!/usr/bin/env bash
# Kill it at any instant: what it acknowledged is there, and the same command goes on where it stopped.
# `make test-kills` kills more often.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
kills=${GPULAB_TEST_KILLS:-100}
case ${ASAN_OPTIONS:-}$3 in */asan | */tsan) kills=10 ;; esac
python3 "$source_dir/tests/program/nothing_lost.py" "$gpulab" "$work" "$kills" || fail "see above"
finish
