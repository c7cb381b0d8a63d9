#!/usr/bin/env bash
# Studies: listed, shown, composed, planned; and what is said about those that can't run here.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$source_dir" || exit 1
export HOME=$work/home
unset XDG_CONFIG_HOME
mkdir -p "$HOME"
four=tests/fixtures/4node-10gpu.xml
one=tests/fixtures/1node-nogpu.xml

# nothing at all lists the studies, and none of those that others build on
for line in "run" "run --list"; do
    # shellcheck disable=SC2086
    run $line
    expect_status 0
    for study in quick_test numa_study scaling_study scaling_extended transfer_study compile_study \
        throughput_study stability test_matrix train_scaling nccl_settings; do
        expect_out "^ +$study +[A-Za-z]"
    done
    expect_out "^  ddp=4gpus +Data-parallel training"
    expect_out "^  matrix=quick +[A-Za-z]"
    grep -q "_base" "$work/out" && fail "$what lists _base"
done
run run --list --json
json '"Which NUMA node should each device use?" in [s["summary"] for s in d["studies"]]'

# a study's file, to the byte
for file in conf/experiment/[a-z]*.yaml; do
    run run --show "$(basename "$file" .yaml)"
    expect_status 0
    cmp -s "$file" "$work/out" || fail "$what isn't $file"
done
run run --show nmua_study
expect_status 2
expect_err "did you mean 'numa_study'"
# a preset's, by any of its names; those of a folder of one's own, too
for name in experiment/ddp=4gpus experiment/ddp/4gpus ddp=4gpus ddp/4gpus 4gpus; do
    run run --show $name
    expect_status 0
    cmp -s conf/experiment/ddp/4gpus.yaml "$work/out" || fail "$what isn't the preset"
done
mkdir -p "$work/own/experiment/net" "$work/own/experiment/ddp"
echo '# Wide.' | tee "$work/own/experiment/net/wide.yaml" >"$work/own/experiment/ddp/wide.yaml"
run run --list --config-dir "$work/own"
expect_out "^  ddp=wide +Wide$"
expect_out "^  net=wide +Wide$"
run run --show wide --config-dir "$work/own"
expect_status 2
expect_err "more than one preset 'wide'; there are ddp=1gpu, "
run run --show ddp=5gpus
expect_err "there is no preset 'ddp=5gpus'; there are ddp=1gpu, "
run run 4gpus
expect_status 2
expect_err "'4gpus' is a preset: gpulab run STUDY experiment/ddp=4gpus"

# the plan, on a machine that is elsewhere
run run numa_study --dry-run --topology $four
expect_status 0
expect_out "^numa_study: 48 points × 5 repeats = 240 runs$"
expect_out "3 is cpu:3"
expect_out "random, seed 42"
expect_out "at most 3.33 days by their time-outs and retries; no comparable run$"
expect_out "and 220 more"
expect_out "numa_locality_study/<date>/<time>"
run run --dry-run --topology $four --json experiment.test.num_samples=995
json 'd["point_count"] == 48 and d["repeat"] == 5 and d["run_count"] == 240 == len(d["runs"])'
run run --dry-run --topology $four --json experiment.test.num_samples=995 --quick
json 'd["study"] == "numa_study" and d["run_count"] == 48 == len(d["runs"])'
json 'all(r["iterations"] == 100 for r in d["runs"])'
json 'len({r["run_id"] for r in d["runs"]}) == 48 == len({r["identity"] for r in d["runs"]})'
json '"gpu3_numa2_vit16x12x1024" in [r["run_id"] for r in d["runs"]]'
run run -m scaling_study experiment.test.compile_model=true,false --dry-run --topology $four
expect_out "^scaling_study: 18 points, 16 distinct × 5 repeats = 80 runs$"
run run experiment=numa_study --info plan --topology $four repeat=2 --device cpu:0,cpu:1,cpu:2,cpu:3
expect_out "^numa_study: 48 points × 2 repeats = 96 runs$"
expect_out "in 2 blocks of all 48 points"
run run numa_study --quick repeat=3 --dry-run --topology $four
expect_status 2
expect_err "--quick is one run of each point: leave it or repeat=3 out"

# narrow, and in ASCII
COLUMNS=60 LC_ALL=C run run throughput_study --dry-run --topology $four
expect_status 0
widest=$(wc -L <"$work/out")
[ "$widest" -le 60 ] || fail "COLUMNS=60, but a line of $widest columns"
if LC_ALL=C grep -q '[^ -~]' "$work/out"; then
    fail "LC_ALL=C, but: $(LC_ALL=C grep -m1 '[^ -~]' "$work/out")"
fi

# the config and where it comes from
run run quick_test experiment.test.num_samples=7 --cfg job
expect_status 0
expect_out "^    num_samples: 7$"
run run quick_test --cfg job --json
json 'd["experiment"]["name"] == "quick_test" and d["device"] == "auto"'
run run scaling_extended --info defaults
expect_out "experiment/scaling_study .*experiment/scaling_extended"
expect_out "experiment/scaling_extended .*command line"
run run --info searchpath --config-dir "$work"
expect_out "^  $work$"
expect_out "^  built-in$"

# a study of one's own, in the user's folder and in one that is named
mkdir -p "$HOME/.config/gpulab/experiment" "$work/conf/experiment"
printf '# What I want to know.\ndefaults: [quick_test, _self_]\nname: mine\n' \
    >"$HOME/.config/gpulab/experiment/mine.yaml"
sed 's/^name: mine/name: named/' "$HOME/.config/gpulab/experiment/mine.yaml" \
    >"$work/conf/experiment/mine.yaml"
run run
expect_out "^ +mine +What I want to know$"
run run mine --dry-run --topology $one
expect_out "outputs/mine/"
run run mine --dry-run --topology $one --config-dir "$work/conf"
expect_out "outputs/named/"
run run mine --config-dir "$work/nowhere" --dry-run
expect_status 2
expect_err "nowhere"
echo 'test: {batch_size: many}' >>"$work/conf/experiment/mine.yaml"
run run mine --dry-run --topology $one --config-dir "$work/conf"
expect_status 2
expect_err "mine\.yaml:4: batch_size=many: must be a whole number"

# what isn't here: the way out is printed, and is one
run run numa_study --topology $one
expect_status 2
expect_err "asks for devices 1, 2 and 3"
expect_err "to run it here, add: experiment.hardware.gpu_ids=\[0\] experiment.hardware.numa_nodes=\[0\]$"
run run numa_study --topology $one --dry-run experiment.hardware.gpu_ids=[0] \
    experiment.hardware.numa_nodes=[0]
expect_status 0
expect_out "^numa_study: 6 points × 5 repeats = 30 runs$"

# another machine's plan can't be carried out here
run run quick_test --topology $one
expect_status 2
expect_one_line
expect_err "--dry-run"

# mistakes
run run quick_tets
expect_status 2
expect_err "did you mean 'quick_test'"
run run quick_test numa_study
expect_status 2
expect_err "one study at a time"
run run experiment.test.num_samples
expect_status 2
expect_err "key=value"
run run quick_test experiment.test.batch_size=1,2
expect_status 2
expect_err "-m"
run run quick_test --list --dry-run
expect_status 2
expect_err "give one of"
run run quick_test --json experiment.test.batch_size=x
expect_status 2
json '"must be a whole number" in d["error"]["message"]'
run help run numa_study
expect_out "Which NUMA node"
run help run
expect_out "experiment.hardware.gpu_ids"

finish
