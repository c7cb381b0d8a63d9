#!/usr/bin/env bash
# What `make run` prints: three measurements and, at the end, their three answers.
# label: build
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"

"$source_dir/tools/quick-demo" "$gpulab" --limit 200ms >"$work/out" 2>"$work/err" </dev/null
status=$?
what="tools/quick-demo"
expect_status 0
for heading in 'no model' 'a small model' 'a larger model'; do
    expect_out "^\[[1-3] of 3\] $heading"
done
for answer in 'copies alone' 'small model' 'larger model'; do
    expect_out "^  $answer +[0-9.]+ samples/s$"
done
[ "$(grep -c '^ *Verification *passed' "$work/out")" = 3 ] || fail "$what: not all three were verified"
expect_out '^In short, on cpu:[0-9]+ \('
expect_out 'help bench '

# a measurement that fails ends it, without an answer
"$source_dir/tools/quick-demo" "$gpulab" --device cpu:99 >"$work/out" 2>"$work/err" </dev/null
status=$?
expect_status 2
! grep -q 'In short' "$work/out" || fail "$what: an answer without a measurement"

finish
