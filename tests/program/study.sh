#!/usr/bin/env bash
# A whole study, as its user meets it: run, looked at, interrupted, taken up again, held by another.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
small=(experiment.test.memory_size_mb=16 'experiment.test.tensor_shape=[3,64,64]')

# expect FILE...: they exist below $folder
expect_files() {
    for file in "$@"; do [ -e "$folder/$file" ] || fail "$what: no $file in $folder"; done
}

# --- the first thing that anybody runs ---
run run quick_test "${small[@]}" experiment.test.num_samples=20
expect_status 0
folder=$(ls -d outputs/quick_test/*/*)
expect_out "3 of 3 runs"
expect_out "vit32x4x512"
expect_out "$folder"
[ "$(grep -c '^\[[123]/3\] vit.*samples/s' "$work/err")" = 3 ] ||
    fail "not a line for each run: $(cat "$work/err")"
expect_files config.yaml overrides.yaml machine.json study.db results.json experiment_summary.json \
    logs/experiment.log report/report.md
for run in vit0x0x0 vit32x2x256 vit32x4x512; do
    expect_files "logs/gpu0_numa0_$run.stdout" "logs/gpu0_numa0_$run.stderr"
done
[ -z "$(find "$folder" -name '.*' ! -name .gpulab.manifest)" ] || fail "left behind: $(find "$folder" -name '.*' ! -name .gpulab.manifest)"
[ ! -e "$folder/study.db-wal" ] || fail "the database is more than one file"
grep -q 'num_samples: 20' "$folder/config.yaml" || fail "config.yaml isn't what was asked for"
grep -q 'experiment.test.num_samples=20' "$folder/overrides.yaml" || fail "overrides.yaml"
cp "$folder/results.json" out
json 'len(d) == 3 and all(r["success"] and r["exit_code"] == 0 for r in d)'
json 'all(r["samples_per_second"] > 0 and r["validity"]["valid"] for r in d)'
json '{r["vit_config"]["name"] for r in d} == {"vit0x0x0", "vit32x2x256", "vit32x4x512"}'
json 'all(r["gpu_id"] == 0 and r["numa_node"] == 0 for r in d)'
json 'all(r["test_config"]["num_samples"] == 20 for r in d)'
cp "$folder/experiment_summary.json" out
json 'd["total_runs"] == 3 == d["successful_runs"] and d["failed_runs"] == 0'
json 'd["gpu_ids_tested"] == [0] == d["numa_nodes_tested"]'

# finished: the same command begins another folder; --json says where
run run quick_test "${small[@]}" experiment.test.num_samples=20 --json
expect_status 0
json 'd["summary"]["successful_runs"] == 3 and not d["resumed"] and len(d["runs"]) == 3'
[ "$(find outputs/quick_test -name study.db | wc -l)" = 2 ] || fail "no second folder"

# --- looked at ---
run list
expect_status 0
[ "$(grep -c quick_test "$work/out")" = 2 ] || fail "list: $(cat "$work/out")"
run show quick_test --runs
expect_status 0
expect_out "gpu0_numa0_vit32x4x512"
run show "$folder" --run gpu0_numa0_vit32x2x256
expect_out "vit32x2x256"
run export "$folder" --format csv
[ "$(wc -l <"$work/out")" = 4 ] || fail "$what: $(cat "$work/out")"
run export "$folder" --format json
json '"runs" in d'
run status
expect_status 0

# --- two devices, two nodes' worth of places, a gang ---
run run numa_study device=cpu:0/2 'experiment.hardware.gpu_ids=[0,[0,1]]' \
    'experiment.hardware.numa_nodes=[0]' experiment.repeat=1 experiment.test.num_samples=4000 "${small[@]}" \
    'experiment.vit_configs=[{depth:1,dim:64,heads:1,patch_size:32}]' --json
if [ "$status" = 2 ] && grep -q "at most 1 slice" "$work/err"; then
    echo "one core only: no gang"
else
    expect_status 0
    json 'sorted(len(r["gpu_ids"]) for r in d["runs"]) == [1, 2]'
    json '[r for r in d["runs"] if len(r["gpu_ids"]) == 2][0]["gang_overlap"] > 0'
fi

# --- interrupted: Ctrl-C once finishes the run under way, and the same command goes on ---
long=(scaling_study "${small[@]}" experiment.test.num_samples=40 experiment.order=as_given
    output_dir=interrupted experiment.repeat=1)
# (a shell's background job would ignore it)
env --default-signal=INT "$gpulab" run "${long[@]}" >"$work/out" 2>"$work/err" </dev/null &
runner=$!
until grep -q '^\[1/8\].*samples/s' "$work/err"; do sleep 0.02; done
kill -INT $runner
wait $runner
status=$?
what="gpulab run, interrupted"
expect_status 130
expect_err "Ctrl-C again"
expect_out "gpulab run scaling_study"
folder=$(ls -d interrupted/model_scaling_study/*/*)
run status "$folder"
expect_out "gpulab run scaling_study"
run run "${long[@]}"
expect_status 0
expect_err "resuming .*$folder: [1-7] of 8 runs are done"
expect_out "8 of 8 runs"
[ "$(find interrupted -name study.db | wc -l)" = 1 ] || fail "went on elsewhere"

# --- a second runner on one folder is told who holds it ---
slow=(quick_test "${small[@]}" experiment.test.num_samples=40 experiment.cooldown=30s
    output_dir=held)
"$gpulab" run "${slow[@]}" >"$work/first.out" 2>"$work/first.err" </dev/null &
runner=$!
until grep -q '^\[1/3\].*samples/s' "$work/first.err"; do sleep 0.02; done
run run "${slow[@]}"
expect_status 2
expect_err "process $runner"
expect_err "experiment.resume=false"
run status
expect_out "quick_test"
expect_out "1 of 3|1/3"
kill -TERM $runner
wait $runner
status=$?
what="gpulab run, ended by TERM"
expect_status 143

# --- runs that fail are marked, have their reason and hint, and don't stop the others ---
run run quick_test "${small[@]}" experiment.test.timeout_s=0.001 experiment.max_retries=0 \
    output_dir=failing
expect_status 1
expect_out "none of 3 runs"
expect_err "timed out"
expect_err "experiment.test.timeout_s"
run run quick_test "${small[@]}" output_dir="$work/err"
expect_status 2
expect_one_line
expect_err "output_dir"
finish
