#!/usr/bin/env bash
# Which study advice comes from: the newest below the working directory, else the newest of this machine; it
# is named. A simulated one counts where it was just run.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
mkdir "$work/here" "$work/there" "$work/nowhere"
cd "$work/here" || exit 1

cpu() { # of the cores that are here; later than the study before, by the second that names it
    sleep 1
    run run quick_test -m --device cpu experiment.test.batch_size=1,16 experiment.test.num_samples=64 \
        'experiment.vit_configs=[{patch_size:16,depth:1,heads:1,dim:64,mlp_dim:0}]' experiment.repeat=2 \
        'experiment.test.tensor_shape=[3,64,64]' experiment.test.warmup_samples=16 \
        experiment.test.memory_size_mb=8 experiment.trace=false -q
    expect_status 0
    made=$(sed -n 's|^ *Report *\(.*\)/report/.*|\1|p' "$work/out")
}
# used FOLDER: the study that advise goes by, and names
used() {
    run advise
    grep -qxF "Study: $1" "$work/out" || fail "$what: not from $1: $(cat "$work/out")"
    run advise --json
    json 'd["study"] == "'"$1"'".removesuffix(" (simulated)")'
    json 'd["simulated"] == ("'"$1"'".endswith("(simulated)"))'
}
cpu
own=$made
cd "$work/there" || exit 1
cpu
newer=$made
used "$newer"
cd "$work/here" || exit 1
used "$own" # although the other one is newer
cd "$work/nowhere" || exit 1
used "$work/there/$newer"
cd "$work/here" || exit 1
sleep 1
run run numa_study --device sim:l40s-10 'experiment.hardware.gpu_ids=[0]' \
    'experiment.hardware.numa_nodes=[0,2]' 'experiment.vit_configs=[{patch_size:32,depth:0}]' \
    experiment.trace=false experiment.repeat=1 -q
expect_status 0
used "$(sed -n 's|^ *Report *\(.*\)/report/.*|\1|p' "$work/out") (simulated)" # it was just run here
cd "$work/there" || exit 1
used "$newer" # a simulated one elsewhere isn't asked
cd "$work/here" || exit 1
run advise --workload vit patch_size=16 # what the simulated one can't answer
expect_out "^Study: $own$"
cpu
used "$made"
finish
