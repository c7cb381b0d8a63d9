#!/usr/bin/env bash
# Calls into the system that fail, one at a time: a sample of `make test-torture`. Many wait more than they compute.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
case ${ASAN_OPTIONS:-}$3 in */asan | */tsan) echo "skipped: sanitizers have their own malloc" && exit 77 ;; esac
python3 "$source_dir/tests/torture/torture.py" --gpulab "$gpulab" --library "$3/fake/libtorture.so" \
    --jobs 6 --points "${GPULAB_TEST_POINTS:-1}" --commands run,resume,record,export,report,top >"$work/out" ||
    fail "$(grep -v '^[a-z]* *\(main\|worker\)' "$work/out")"
grep -Eq '^[0-9]+ points in .* 0 problems$' "$work/out" || fail "no count: $(tail -1 "$work/out")"
finish
