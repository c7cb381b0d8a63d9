#!/usr/bin/env bash
# What `make run` does: a study, its answer, where its report lies, what to try next.
# label: build
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export HOME=$work XDG_STATE_HOME=$work/state

first_study() { # WORD...
    what="tools/first-study"
    (cd "$work" && "$source_dir/tools/first-study" "$gpulab" "$@" >out 2>err </dev/null)
    status=$?
}

# given small numbers, when it has run, then the answer comes first and the report is where it says
first_study experiment.test.num_samples=10 experiment.test.warmup_samples=5 \
    experiment.test.memory_size_mb=8
expect_status 0
expect_out '^quick_test: 3 of 3 runs succeeded'
report=$(sed -n 's/^ *Report *//p' "$work/out")
grep -q 'All 3 runs succeeded' "$work/$report" || fail "$what: no report in '$report'"
expect_out '^Try next:$'

# what it says to try works
grep -A9 '^Try next:' "$work/out" | sed -n 's/^  \(.*[^ ]\)   *[^ ].*/\1/p' >"$work/next"
[ "$(wc -l <"$work/next")" = 4 ] || fail "$what: not four things to try: $(cat "$work/next")"
while read -r next; do
    (cd "$work" && eval "$next" >next.out 2>next.err </dev/null) ||
        fail "$next: $(cat "$work/next.err")"
done <"$work/next"

# a study that fails ends it, without further advice
first_study device=cpu:99
expect_status 2
! grep -q 'Try next' "$work/out" || fail "$what: advice behind a failure"

finish
