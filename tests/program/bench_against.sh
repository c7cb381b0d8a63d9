#!/usr/bin/env bash
# bench/against: which commit a name means, when a build is reused, what the statistics let pass, and
# that the program can do every row. No timing decides here.
# label: build
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"

refused() { # refused PATTERN WORD...: the comparison doesn't begin, and says why
    what="bench/against ${*:2}"
    "$source_dir/bench/against" "${@:2}" >"$work/out" 2>"$work/err"
    status=$?
    expect_status 2
    expect_err "$1"
    [ ! -s "$work/out" ] || fail "$what: an error, but also output: $(head -3 "$work/out")"
}
export PYTHONDONTWRITEBYTECODE=1
refused 'no version to compare with: make bench-against REF=' ""
refused '3 blocks are too few for an interval: at least 6' HEAD --blocks 3
refused "no row 'gems': there are start, sweep, .*gemm" HEAD --rows gems
if git -C "$source_dir" rev-parse --git-dir >/dev/null 2>&1; then
    refused "no version 'no-such-version': give a tag, branch, commit or release" no-such-version
    expect_err '^  releases in RELEASES.md: '
fi

PYTHONPATH=$source_dir/bench python3 "$source_dir/tests/program/bench_against.py" "$gpulab" "$work" \
    >"$work/out" 2>&1 || fail "$(cat "$work/out")"
finish
