#!/usr/bin/env bash
# What commands print, to the letter: the lines `$ …` of tests/golden/printed.txt are run, of stored studies
# and simulated machines, and each has to print the lines below it and to end with that status.
# GOLDEN_UPDATE=1 writes the file anew, from its commands; GOLDEN_FIRST=1 ends at the first that differs.
# label: build
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
golden=$source_dir/tests/golden/printed.txt
# shellcheck disable=SC2034 # commands of the file use it, and those below
fake=$(realpath "$3")/fake
export HOME=$work/home XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
export XDG_DATA_HOME=$work/data GPULAB_LOCK_DIR=$work/locks TZ=UTC COLUMNS=100
unset GPULAB_FAKE_NVML CUDA_VISIBLE_DEVICES
mkdir -p "$HOME" "$work/cache/gpulab" "$work/here" && cd "$work/here" || exit 1
cp -r "$source_dir"/tests/fixtures/0.1.0/{numa,contention,training,program,recording.db} . && chmod -R u+w .
# shellcheck disable=SC2034 # commands of the file use it
sim=device=sim:l40s-10
one='experiment.vit_configs=[{patch_size:32,depth:2,heads:4,dim:256,mlp_dim:0}] experiment.test.num_samples=60'
mkdir -p conf/campaign && cat >conf/campaign/whole.yaml <<END
# A plan for a test.
title: Some of everything
questions:
  - {name: loss, ask: 'How much is lost?', analysis: numa, phases: [near]}
  - {name: penalty, ask: 'Where?', analysis: numa, claims: [numa.transfer_bound, numa.penalty], phases: [near]}
  - {name: again, ask: 'And once more?', analysis: numa, claims: [numa.local], phases: [near]}
  - {name: batch, ask: 'Which batch?', analysis: transfer, phases: [near]}
  - {name: size, ask: 'Which size?', analysis: transfer, claims: [transfer.batch], phases: [last]}
  - {name: never, ask: 'What if?', analysis: numa, phases: [never]}
replaces: ['numa_study $one', '-m quick_test $one repeat=2 experiment.test.batch_size=10,20']
budget: {time: 1h}
phases:
  - name: near
    goal: Is the near one faster?
    priority: high
    studies: ['quick_test $one experiment.hardware.numa_nodes=[0,2] repeat=3', 'quick_test $one experiment.name=other']
    gate: {success: 90%, valid: 50%}
    expect: {'It is slower.': numa.penalty > 1%, 'It is dead slow.': numa.penalty > 90%}
  - {name: never, after: [near], when: numa.penalty > 90%, studies: ['quick_test $one seed=7']}
  - {name: last, priority: low, after: [near], studies: ['-m quick_test $one repeat=2 experiment.test.batch_size=10,20']}
END
# shellcheck disable=SC2317 # called through `eval`
gpulab() {
    "$gpulab" "$@"
}
# shellcheck disable=SC2317,SC2086 # words
each() { # WORDS…: each with its exit status
    for words; do
        gpulab $words
        echo "[$?]"
    done
}
# shellcheck disable=SC2317
fields() { # PYTHON: of the JSON on stdin, d
    python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

# shellcheck disable=SC2317
digest() { # of what doesn't change with the version; the files are of 0.1.0
    local version
    version=$(<"$source_dir/VERSION")
    sed "s/${version//./\\.}/VERSION/g; s/0\.1\.0/VERSION/g" | mask | cksum
}

# Of this machine, this version and this moment.
mask() {
    sed -E "s|$work/here|HERE|g; s|$work|WORK|g; s|gpulab $(cat "$source_dir/VERSION")|gpulab VERSION|g
        s/20[0-9]{2}-[0-9]{2}-[0-9]{2}/DATE/g; s/[0-9]{2}[-:][0-9]{2}[-:][0-9]{2}(_[0-9]+)?/TIME/g
        s/DATE [0-9]{2}:[0-9]{2} /DATE TIME /; s/[0-9.]+ [KM]iB/SIZE/g; s/about [0-9.]+ (s|ms)/about SECONDS/g; s/(level [1-3], )[0-9.]+ s/\\1SECONDS/
        s/^(.*)line [0-9]+: *[0-9]+ Killed.*/Killed/; s/──+/──/g; s/█+/█/g; s/(   *|[|] )[0-9.]+ m?s(  |$| [|])/\\1SECONDS\\2/g
        s/(test_matrix-)[0-9a-f]{5}/\\1HASH/g; s/([^ ])   +/\\1  /g"
}

# shellcheck disable=SC2094 # what is printed so far is compared
while IFS= read -r line; do
    [[ $line == '$ '* ]] || continue
    printf '%s\n' "$line"
    (eval "${line#\$ }") >"$work/out" 2>"$work/err" </dev/null
    status=$?
    mask <"$work/out"
    mask <"$work/err" | sed 's/^/! /'
    [ $status = 0 ] || echo "[status $status]"
    [ -z "${GOLDEN_FIRST:-}" ] || cmp -sn "$(stat -c %s "$work/printed")" "$work/printed" "$golden" || break
done <"$golden" >"$work/printed"
if [ -n "${GOLDEN_UPDATE:-}" ]; then
    cp "$work/printed" "$golden"
elif ! diff "$golden" "$work/printed" >"$work/differs"; then
    fail "other output than tests/golden/printed.txt has: $(head -60 "$work/differs")"
fi
finish
