#!/usr/bin/env bash
# gpulab status and estimate, where no study has run yet, and of studies that haven't begun.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"
cd "$work" || exit 1

# --- nothing is there ---
run status
expect_status 0
expect_out '^No study is running, and none was interrupted\.$'
expect_out 'gpulab run quick_test'
run status --quiet
grep -q "gpulab run" "$work/out" && fail "--quiet, but a hint"
run status --json
expect_status 0
json 'd["studies"] == []'
run status --follow
expect_status 0
expect_out '^No study is running'
run status --follow --json
expect_status 0
json 'd["studies"] == []'
[ "$(wc -l <"$work/out")" = 1 ] || fail "--follow --json: more than one line"
run estimate
expect_status 0
expect_out '^No study is running'

# --- words that mean nothing ---
run status quick_test
expect_status 2
expect_one_line
run status outputs/nothing/here
expect_status 2
expect_one_line
expect_err 'outputs/nothing/here'
run status "$source_dir"
expect_status 2
expect_err 'no study'
run status one two
expect_status 2
run status --interval 0
expect_status 2
expect_err 'interval'
run estimate quick_tset
expect_status 2
expect_one_line
expect_err "did you mean 'quick_test'"
run estimate outputs/nothing/here
expect_status 2
expect_err 'outputs/nothing/here'
run estimate quick_test experiment.tset.num_samples=1
expect_status 2

# --- before a study begins ---
run estimate quick_test device=cpu -q # nothing is measured for it
expect_status 0
expect_out '^quick_test: 3 points × 1 repeat = 3 runs, time unknown \(no comparable runs\)$'
expect_out '^  Model +Iterations +Per run +By$'
expect_out '^  vit32x4x512 +20 +\? +unknown'
expect_out '^  Disk +about [0-9.]+ [KM]iB$'
expect_out '^  Start +gpulab run quick_test device=cpu$'
run estimate quick_test device=cpu # short runs first
expect_status 0
expect_out '^quick_test: 3 points × 1 repeat = 3 runs, about [0-9]+ (s|min)$'
run estimate quick_test device=cpu experiment.duration=2min experiment.cooldown=10s --json
expect_status 0
json '0 < d["estimates"][0]["left_s"] - (3 * 120 + 2 * 10) < 20' # the report's time
json 'd["estimates"][0]["most_s"] == 3 * 2 * 300 + 2 * 10'
json 'd["estimates"][0]["disk_bytes"] > 50000'
json 'all(r["basis"] == "duration" for r in d["estimates"][0]["runs"])'
run estimate -m quick_test device=cpu experiment.test.batch_size=5,10 --json
expect_status 0
json 'd["estimates"][0]["run_count"] == 6'
run estimate numa_study device=sim:l40s-10 gpu_ids=all -q # a line per point, not per run
expect_out '^  GPU +NUMA node +Model +Iterations +Per run +By$'
expect_out '^ +… and [0-9]+ more \(--all\)$'
run estimate numa_study device=sim:l40s-10 gpu_ids=all -q --all
[ "$(grep -c ' vit' "$work/out")" = "$(grep -oEm1 '[0-9]+ points' "$work/out" | grep -o '[0-9]*')" ] ||
    fail "estimate --all: not all points"

# --- interrupted while it measures short runs: their folder goes ---
mkdir tmp
for signal in INT TERM; do
    TMPDIR=$work/tmp XDG_STATE_HOME=$work/none setsid python3 - "$gpulab" "$signal" <<'PY' ||
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.argv[1], "estimate", "quick_test", "device=cpu"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
while not os.listdir(os.environ["TMPDIR"]) and child.poll() is None:
    time.sleep(0.01)
child.send_signal(getattr(signal, "SIG" + sys.argv[2]))
out, err = child.communicate()
sys.exit(child.returncode != 130 or out != b"" or b"interrupted" not in err)
PY
        fail "estimate, SIG$signal: another status or text"
    [ -z "$(ls tmp)" ] || fail "estimate, SIG$signal: leaves $(ls tmp)"
done
[ ! -e outputs ] || fail "an estimate leaves files"

# --- a simulated study took what its user waited, not what it simulated: 40 s ---
begun=$(date +%s)
run run quick_test device=sim:l40s-10 experiment.test.num_samples=400000 output_dir=long --no-report -q
expect_status 0
took=$(($(date +%s) - begun + 1))
run status long/quick_test/*/* --json
json "0 < d['studies'][0]['elapsed_s'] <= $took and d['studies'][0]['left_s'] == 0"

# --- a line that goes on from another folder; without a matrix there is one setting ---
mkdir else
run run test_matrix 'experiment.command="false"' '~experiment.matrix' device=cpu output_dir=gone \
    experiment.max_retries=0 --no-report -q
run status gone/test_matrix/*/*
expect_out '^  Resume +gpulab run test_matrix'
cd else || exit 1
run status ../gone/test_matrix/*/*
expect_out "^  Resume +cd $work && gpulab run test_matrix"
finish
