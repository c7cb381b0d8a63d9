#!/usr/bin/env bash
# Lines of advice are pasted, and PROGRAM says where it came to run: GPU, cores and memory, by whatever
# starts it.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
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
    while [ "$1" = --bind-to ] || [ "$1" = -n ]; do shift 2; done
    "$@"
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
tool nvidia-cuda-mps-control <<'EOF'
echo "daemon: ${CUDA_DEVICE_ORDER-any order}, $CUDA_VISIBLE_DEVICES"
EOF

# line TOOL: of the JSON document in the output, the line that this tool has
line() {
    python3 -c 'import json, sys
lines = json.load(open(sys.argv[1]))["models"][0]["lines"]
print([l["line"] for l in lines if l["tool"] == sys.argv[2]][0])' "$work/out" "$1"
}

# paste TOOL EXPECTED: what PROGRAM says, and the tools before it
paste() {
    local said
    said=$(PATH=$work/bin:$PATH sh -c "$(line "$1")" 2>&1)
    [ "$said" = "$2" ] || fail "$what: $1: pasted, it says '$said' instead of '$2'"
}

# paste_all GPU PLACE COUNT: so many lines for PROGRAM on the terminal, and each comes to run there
paste_all() {
    local printed count=0 said
    while read -r printed; do
        count=$((count + 1))
        said=$(PATH=$work/bin:$PATH sh -c "$printed" 2>&1)
        case $said in
        *"$1"*"; $2") ;;
        *) fail "$what: '$printed' says '$said' instead of '$1; $2'" ;;
        esac
    done < <(grep -E '^  [^ ].* PROGRAM' "$work/out" | sed 's/^  //')
    [ "$count" = "$3" ] || fail "$what: $count lines for PROGRAM instead of $3: $(cat "$work/out")"
}

# --- device 8 from node 3, by its number: without the variable it would run on GPU 0 ---

study() { # study GPUS NODES [WORDS]: simulated, of copies alone, which feel where they come from
    run run numa_study --device "${machine-sim:l40s-10}" "experiment.hardware.gpu_ids=$1" \
        "experiment.hardware.numa_nodes=$2" 'experiment.vit_configs=[{patch_size:32,depth:0}]' \
        experiment.trace=false experiment.repeat=1 -q "${@:3}"
    expect_status 0
}
study '[8]' '[0,3]' experiment.repeat=16
run advise
expect_status 0
expect_out '^vit0x0x0: device 8 from node 3$'
expect_out '^Study: outputs/numa_locality_study/[0-9/_-]* \(simulated\)$'
paste_all 'PCI_BUS_ID, 8' 'cores of 3, memory of 3' 4
run advise --json
number='PCI_BUS_ID, 8; cores of 3, memory of 3'
paste numactl "$number"
paste slurm "$number"
paste openmpi "$number"
paste mps "daemon: PCI_BUS_ID, 8
any order, 0; cores of 3, memory of 3"
json '(d["simulated"] and d["study"].startswith("outputs/numa_locality_study/")
      and d["study"] == d["models"][0]["study"] and d["models"][0]["no_line"] is None)'

# ranks on several nodes: each process has its own
study '[[0,8]]' '[[0,3],[3,0]]' experiment.repeat=5
run advise --json
both='PCI_BUS_ID, 0; cores of 0, memory of 0
PCI_BUS_ID, 8; cores of 3, memory of 3'
paste mpirun "$both"
paste slurm "$both"

# a machine of one's own, in a file whose name a shell would take apart
cp "$source_dir/conf/machine/l40s-10.yaml" "it's \$(my) machine.yaml"
machine="sim:./it's \$(my) machine.yaml"
study '[2,8]' '[0,3]'
tool gpulab <<EOF
exec "$gpulab" "\$@" --dry-run --json
EOF
run advise
expect_out '^To be surer of'
PATH=$work/bin:$PATH sh -c "$(sed -n '$s/^  //p' "$work/out")" >"$work/plan" 2>&1 ||
    fail "$what: its last line can't be pasted: $(cat "$work/plan")"
cp "$work/plan" "$work/out"
json 'all("(my) machine.yaml" in r["ranks"][0]["device"] for r in d["runs"])'

# --- GPUs of a driver (tests/fake), called by their UUIDs ---

[ -e "$build_dir/fake/libcuda.so.1" ] || { echo "no fake driver in $build_dir/fake"; exit 1; }
cuda() { # cuda DEVICE: two batches, copies alone, on GPUs that need no kernels for it
    LD_LIBRARY_PATH=$build_dir/fake run run quick_test -m --device "$1" 'experiment.vit_configs=[{depth:0}]' \
        'experiment.test.tensor_shape=[3,64,64]' experiment.test.batch_size=1,16 experiment.repeat=2 \
        experiment.test.num_samples=64 experiment.test.warmup_samples=16 experiment.trace=false \
        experiment.test.memory_size_mb=8 -q "${@:2}"
    expect_status 0
    LD_LIBRARY_PATH=$build_dir/fake run advise --json
    expect_status 0
}
# `cuda:0` of a study that saw one GPU of two is the second one of the machine
export CUDA_VISIBLE_DEVICES=1
cuda cuda:0
second=GPU-00000001-0000-0000-0000-0000000000ab
unset CUDA_VISIBLE_DEVICES
grep -q '"tool": "taskset"' "$work/out" && plain=taskset || plain=numactl # a kernel without NUMA
for form in $plain openmp mps; do
    said=$(PATH=$work/bin:$PATH sh -c "$(line "$form")" 2>&1 | tail -1)
    [[ $said == "any order, $second; cores "* ]] || fail "$what: $form: pasted, it says '$said'"
done
cuda cuda:0 experiment.monitor=false # the runs themselves know it, too
json '"GPU-00000000-0000-0000-0000-0000000000ab" in d["models"][0]["lines"][0]["line"]'
mig=MIG-00000010-0000-0000-0000-0000000000cd
FAKE_CUDA_MIG=1 cuda cuda:$mig
json '("CUDA_VISIBLE_DEVICES='$mig' " in d["models"][0]["lines"][0]["line"]
      and not any("nvidia-smi" in l["line"] for l in d["models"][0]["lines"]))'
cuda cuda:0/4.2
json '(d["models"][0]["lines"] and all(l["line"] is None for l in d["models"][0]["lines"])
      and "cuda:0/4.2 is a slice of a GPU" in d["models"][0]["no_line"])'
finish
