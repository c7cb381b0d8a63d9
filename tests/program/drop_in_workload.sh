#!/usr/bin/env bash
# A workload is added by adding one file: dropped into src/workload, it appears in the help and runs
# after `make`, with no other edit. So is a command, and removing the file takes it away again.
# label: build
#
#   drop_in_workload.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "drop_in_workload: $*" >&2
    exit 1
}
# a step's output matters only if it fails
quietly() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 50 "$work/log"
        fail "failed: $*"
    }
}

# given a tree that was built
mkdir "$work/tree"
tar -C "$source_dir" --exclude=./build --exclude=./.git --exclude=./outputs -cf - . | tar -C "$work/tree" -xf -
cd "$work/tree"
# without optimisation and tests it takes a third of the time, and the mechanism is the same
quietly cmake --preset release -DCMAKE_BUILD_TYPE=Debug -DGPULAB_TESTS=OFF
quietly make
[[ $(build/gpulab help bench) != *dropped_in* ]] || fail "it is there before it was added"

# when a copy of the skeleton and a new command are dropped in
sed 's/skeleton/dropped_in/g' docs/skeleton_workload.c >src/workload/dropped_in.c
cat >src/command/greet.c <<'END'
#include "command/command.h"

static int run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status, (void)err;
    lab_console_write(call->console, "good day\n", 9);
    return 0;
}

const struct lab_command lab_command_greet = {
    .name = "greet", .summary = "say good day", .usage = "", .run = run};
END
quietly make

# then help knows it and it runs
help=$(build/gpulab help bench)
[[ $help == *dropped_in* ]] || fail "gpulab help bench does not list it: $help"
quietly build/gpulab bench dropped_in --limit 1s
grep . "$work/log" || fail "gpulab bench dropped_in printed nothing"
grep -q 'Verification *passed' "$work/log" || fail "its results were not verified"
[[ $(build/gpulab help) == *greet*"say good day"* ]] || fail "gpulab help does not list the command"
[ "$(build/gpulab greet)" = "good day" ] || fail "the command does not run"

# and when they are removed, then they are gone
rm src/workload/dropped_in.c src/command/greet.c
quietly make
[[ $(build/gpulab help bench) != *dropped_in* ]] || fail "the workload is still there"
if build/gpulab greet >"$work/log" 2>&1; then
    fail "the command still runs"
fi

# a file whose name can't be a member's is refused, by its name
cp docs/skeleton_workload.c src/workload/dropped-in.c
if make >"$work/log" 2>&1; then
    fail "dropped-in.c was accepted"
fi
for words in 'src/workload/dropped-in.c: ' 'small letters, digits'; do
    grep -q "$words" "$work/log" || fail "no '$words' in: $(tail -n 20 "$work/log")"
done
rm src/workload/dropped-in.c
quietly make
