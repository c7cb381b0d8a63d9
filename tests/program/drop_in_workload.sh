#!/usr/bin/env bash
# A workload is added by adding one file: dropped into src/workload, it appears in the help and runs
# after `make`, with no other edit.
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

# when a copy of the skeleton is dropped in
sed 's/skeleton/dropped_in/g' docs/skeleton_workload.c >src/workload/dropped_in.c
quietly make

# then help knows it and it runs
help=$(build/gpulab help bench)
[[ $help == *dropped_in* ]] || fail "gpulab help bench does not list it: $help"
quietly build/gpulab bench dropped_in --limit 1s
grep . "$work/log" || fail "gpulab bench dropped_in printed nothing"
