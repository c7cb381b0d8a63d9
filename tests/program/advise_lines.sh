#!/usr/bin/env bash
# Lines of advice are pasted, and PROGRAM says where it came to run: GPU, cores and memory, by whatever
# starts it.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache GPULAB_LOCK_DIR=$work TMPDIR=$work
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
mkdir "$work/bin"
cd "$work" || exit 1

# --- what stands in for those that start programs ---

tool() { # tool NAME: its text on standard input
    { echo '#!/usr/bin/env bash'; cat; } >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
tool PROGRAM <<'EOF'
echo "${CUDA_DEVICE_ORDER-any order}, ${CUDA_VISIBLE_DEVICES-all}; cores $cores, memory $memory"
EOF
tool numactl <<'EOF'
for word; do
    case $word in
    --cpunodebind=*) export cores="of ${word#*=}" ;;
    --membind=*) export memory="of ${word#*=}" ;;
    *) break ;;
    esac
    shift
done
exec "$@"
EOF
tool taskset <<'EOF'
[ "$1" = -c ] && export cores="$2"
shift 2
exec "$@"
EOF
tool mpirun <<'EOF' # variables that it isn't told of stay behind
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
context=()
for word in "$@" :; do
    [ "$word" = : ] || { context+=("$word"); continue; }
    set -- "${context[@]}"
    while [ "$1" = --bind-to ] || [ "$1" = -n ]; do ranks=$2; shift 2; done
    for ((i = 0; i < ranks; i++)); do "$@"; done
    context=()
done
EOF
tool srun <<'EOF' # a job's own GPUs replace whatever was exported
tasks=1
while [[ $1 == -* ]]; do
    [ "$1" = -n ] && { tasks=$2; shift; }
    shift
done
for ((i = 0; i < tasks; i++)); do
    CUDA_VISIBLE_DEVICES=0,1 SLURM_LOCALID=$i "$@"
done
EOF
tool torchrun <<'EOF'
while [[ $1 == -* ]]; do
    [ "$1" = --nproc-per-node ] && { ranks=$2; shift; }
    shift
done
for ((i = 0; i < ranks; i++)); do
    LOCAL_RANK=$i "$@"
done
EOF
tool gpulab <<'EOF' # whose own test says where it binds to (bind.sh)
[ "$1" = bind ] && shift
cores=local memory=local "$@"
EOF

# paste WHAT FORM EXPECTED: what PROGRAM says where this line is pasted, of `lines[0]` or `all`
paste() {
    local line said
    line=$(python3 -c 'import json, sys
advice = json.load(open(sys.argv[1]))["advice"][0]
print(eval("advice" + sys.argv[2])[sys.argv[3]])' "$work/out" "$1" "$2")
    said=$(PATH=$work/bin:$PATH sh -c "$line" 2>&1)
    [ "$said" = "$3" ] || fail "$what: $2: pasted, it says '$said' instead of '$3': $line"
}

# --- GPU 5 from node 2, by its number: without the variable it would run on GPU 0 ---

study() { # study GPUS NODES [WORDS]: simulated, of copies alone, which feel where they come from
    run run numa_study --device "${machine-sim:l40s-10}" "experiment.hardware.gpu_ids=$1" \
        "experiment.hardware.numa_nodes=$2" 'experiment.vit_configs=[{patch_size:32,depth:0}]' \
        experiment.trace=false experiment.repeat=5 -q "${@:3}"
    expect_status 0
    run advise --json
    expect_status 0
}
study '[5]' '[0,2]'
for form in plain torchrun mpirun srun; do
    paste '["lines"][0]' $form 'PCI_BUS_ID, 5; cores of 2, memory of 2'
done
run advise
expect_out '^Study: outputs/numa_locality_study/[0-9/_-]* \(simulated\)$'
[ "$(grep -cE '^  [^ ].* PROGRAM$' "$work/out")" = 4 ] || fail "$what: not one line of each form: $(cat "$work/out")"

# several GPUs, each bound to its local node: a process for each, all by one line
study '[0,5]' '[0,2]'
for form in torchrun mpirun srun; do
    paste '["all"]' $form 'PCI_BUS_ID, 0,5; cores local, memory local
PCI_BUS_ID, 0,5; cores local, memory local'
done
# GPU 3 is at home on node 1, which wasn't tested: its line holds until that is
study '[3,5]' '[0,2]'
json '[(line["device"], line.get("untested_local_node")) for line in d["advice"][0]["lines"]] == [
    ("GPU 3", 1), ("GPU 5", None)]'

# a machine of one's own, in a file whose name a shell would take apart; it is measured again there
cp "$source_dir/conf/machine/l40s-10.yaml" "it's \$(my) machine.yaml"
machine="sim:./it's \$(my) machine.yaml"
study '[2,5]' '[0,2]' experiment.repeat=1
tool gpulab <<EOF
exec "$gpulab" "\$@" --json
EOF
run advise
PATH=$work/bin:$PATH sh -c "$(sed -n '$s/^  //p' "$work/out")" >"$work/again" 2>&1
cp "$work/again" "$work/out"
json 'd["simulated"] and d["claims"][0]["runs"] == 5 and d["claims"][0]["verdict"] == "yes"'
finish
