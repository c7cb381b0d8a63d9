#!/usr/bin/env bash
# The power goes off, and what was not synced is lost: a sample of `make test-power`.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
case ${ASAN_OPTIONS:-}$3 in */asan | */tsan) echo "skipped: release builds do so" && exit 77 ;; esac
if [ ! -x "$3/fake/log_fs" ] || [ ! -w /dev/fuse ]; then
    echo "skipped: no libfuse3 or no /dev/fuse"
    exit 77
fi
python3 "$source_dir/tests/power/power.py" --gpulab "$gpulab" --tools "$3/fake" --jobs 4 --prefixes 3 --losses 10 \
    --commands run,record/network,report >"$work/out"
status=$?
[ $status != 77 ] || { cat "$work/out" && exit 77; }
grep -Eq '^[0-9]+ prefixes and [0-9]+ losses in .* 0 problems, lost: 0$' "$work/out" || fail "$(cat "$work/out")"
finish
