#!/usr/bin/env bash
# Campaigns: listed, scheduled, carried out; conditions, gates and budgets; what can't be done.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
cd "$work" || exit 1
export HOME=$work/home XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work/locks
unset XDG_CONFIG_HOME
mkdir -p "$HOME" conf/campaign
sim=device=sim:l40s-10

run campaign
expect_status 0
expect_out '^ +numa_plan +A plan of six phases'
expect_out '^ +contention_plan +A plan of three phases'
run campaign show numa_plan
cmp -s "$source_dir/conf/campaign/numa_plan.yaml" "$work/out" || fail "$what isn't the file"
run campaign run numa_plan $sim --dry-run --json
expect_status 0
json 'd["runs"] <= d["replaced_runs"] and len(d["schedule"]) == 14 and not any(s["dropped"] for s in d["schedule"])'
json 'd["energy_j"] is None and all(s["energy_j"] is None for s in d["schedule"])' # no earlier run measured it
json 'd["unknown"] == 9 and d["expected_s"] is None and all(s["start_s"] is None for s in d["schedule"])' # nor its time

run campaign run contention_plan device=sim:g5.12xlarge --dry-run --quiet
expect_status 0
expect_out '^ +0 .* Runs +Time +Energy +Disk'
expect_out 'energy unknown: the machine is'
expect_out '^ +contention +[█ ]+ 105 .* \? +[0-9.]+ MiB'
[ "$(awk '{ print length }' "$work/out" | sort -n | tail -1)" -le 100 ] || fail "$what is wider than 100 columns"

# one model each: a second or two in all
small='quick_test experiment.vit_configs=[{patch_size:32,depth:2,heads:4,dim:256,mlp_dim:0}]'
places='experiment.hardware.numa_nodes=[0,2]'
file() { # NAME: the file on stdin
    cat >"conf/campaign/$1.yaml"
}
file small <<END
questions:
  - {name: sensitivity, ask: 'How much is lost?', analysis: numa, phases: [a]}
phases:
  - {name: a, priority: high, studies: ['$small $places repeat=5 experiment.test.d2h=input']}
  - {name: b, after: [a], when: numa.penalty > 1%, studies: ['$small repeat=2']}
  - {name: c, after: [a], when: numa.penalty < 1%, studies: ['$small repeat=2']}
END
run campaign run small $sim --config-dir conf --quiet
expect_status 0
expect_out '^1 of 1 questions answered by 12 runs in 3 phases \(simulated\)'
expect_out '^ +Tested: GPU 0. Not tested: GPUs 1–9\.'
expect_out '^1. How much is lost'
expect_out '^ +a +high +done +10 +0 +10'
expect_out '^ +b +medium +done +2 +0 +2'
expect_out '^ +c +medium +skipped'
expect_out "^ +c +'numa.penalty < 1%' doesn't hold"
folder=$(echo outputs/campaign/small/*/*)
for file in campaign.yaml campaign.json machine.json report/index.html report/report.md; do
    [ -f "$folder/$file" ] || fail "$folder/$file is missing"
done
compgen -G "$folder/a/quick_test/quick_test/*/*/study.db" >/dev/null || fail "no study of phase a is below $folder"
run campaign status small $sim --config-dir conf --json
expect_status 0
json '[p["state"] for p in d["phases"]] == ["done", "done", "skipped"]'
json '0 < d["phases"][0]["taken_s"] < 300' # seconds
json 'all(p["energy_kj"] is None or 0 < p["energy_runs"] <= p["done"] for p in d["phases"])'
run campaign status small $sim experiment.repeat=2 --config-dir conf # which wasn't run
expect_status 2
expect_err "^gpulab: no folder of this campaign with these words; give those of its 'run', or a folder: the newest is $folder$"
run campaign report "$folder" --json
expect_status 0
json 'd["questions"][0]["claim"]["kind"].startswith("numa.") and d["questions"][0]["claim"]["verdict"] == "yes"'

# phases on other devices run at the same time; killed in either of them, both go on
file beside <<END
phases:
  - {name: a, studies: ['$small experiment.hardware.gpu_ids=[0] repeat=5']}
  - {name: b, studies: ['$small experiment.hardware.gpu_ids=[5] repeat=5']}
  - {name: c, after: [b], studies: ['$small experiment.hardware.gpu_ids=[0]']}
END
(GPULAB_FAILPOINT=after-commit:2 "$gpulab" campaign run beside $sim --config-dir conf --quiet) >/dev/null 2>&1
run campaign run beside $sim --config-dir conf
expect_status 0
expect_err '^gpulab: phase b, at the same time as phase a: '
expect_out '^ +a +medium +done +5 +0 +5'
expect_out '^ +b +medium +done +5 +0 +5'
[ "$(find outputs/campaign/beside -name study.db | wc -l)" = 3 ] || fail "$what: not one folder of each study"
for key in true:2 false:1; do
    run campaign run beside $sim --config-dir conf --dry-run "campaign.side_by_side=${key%:*}"
    [ "$(grep -cE '^  quick_test {20}█' "$work/out")" = "${key#*:}" ] || fail "$what: $(cat "$work/out")"
done

# a crossover is bisected between the two models around it, until one is near enough; a step that was
# killed is the same step again
file cross <<END
questions:
  - {name: crossover, ask: 'From which size on?', analysis: crossover, phases: [a, b]}
phases:
  - name: a
    studies: ['numa_study experiment.hardware.gpu_ids=[0] experiment.hardware.numa_nodes=[0] experiment.vit_configs=[{patch_size:32,depth:2,heads:4,dim:128,mlp_dim:0},{patch_size:32,depth:6,heads:8,dim:512,mlp_dim:0}]']
  - {name: b, after: [a], studies: [{refine: bisect, claim: crossover.model, study: numa_study}]}
END
(GPULAB_FAILPOINT=after-commit:30 "$gpulab" campaign run cross $sim --config-dir conf --quiet) >/dev/null 2>&1
run campaign report cross $sim --config-dir conf
expect_out '^Unfinished: 0 of 1 questions answered'
expect_out '1 of 2 phases are not done'
run campaign run cross $sim --config-dir conf --quiet
expect_status 0
expect_out '^1 of 1 questions answered'
expect_out '^ +b +crossover between vit32x2x128 and vit32x6x512: next is vit32x3x224'
expect_out '^ +b +crossover between vit32x3x224 and vit32x6x512: next is vit32x4x320'
expect_out '^ +b +crossover within [0-4]\.[0-9]% of vit32x4x320, 5% asked for'
expect_out '(^| )0\.5[0-9][0-9]( GFLOP/sample|$)' # 0.619 between the first two models
find outputs/campaign/cross -name results.json -exec grep -ho '"rate": [0-9.]*' {} + >rates
if [ ! -s rates ] || sort rates | uniq -c | awk '$1 > 2' | grep -q .; then # a run has its own twice
    fail "a point that ran before has the same values again"
fi
run campaign run cross $sim --config-dir conf --quiet --dry-run
expect_out '^ +numa_study +█ +at most 200 runs by what is found'

# nor has one that two studies share
file shared <<END
questions: [{name: q, ask: 'What is lost?', analysis: numa, phases: [a]}]
phases: [{name: a, studies: ['$small repeat=2', '$small repeat=2', '$small repeat=2 seed=7']}]
END
run campaign run shared $sim --config-dir conf --quiet
expect_status 0
find outputs/campaign/shared -name results.json -exec grep -ho '"rate": [0-9.]*' {} + | sort | uniq -c >rates
[ "$(wc -l <rates)" = 6 ] || fail "studies of a phase have the same values: $(cat rates)"
grep -rq '^seed: 7$' outputs/campaign/shared/*/*/a/quick_test_3 || fail "a seed of its own was replaced"

# a hot GPU is waited for, and a busy one: others go first
if [ -e "$build_dir/fake/libnvidia-ml.so.1" ]; then
    file hot <<END
risks: {temperature: 80, wait: 1min}
phases: [{name: a, studies: [[test_matrix, 'experiment.command="true"', repeat=1]]}]
END
    while IFS='|' read -r degrees wait message; do
        env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=gpus=2; temperature=60,$degrees" "$gpulab" campaign run \
            hot device=cpu --config-dir conf "campaign.risks.wait=$wait" >"$work/out" 2>"$work/err" ||
            fail "hot: $(cat "$work/err")"
        expect_err "$message"
        expect_out '^ +a +medium +done +1'
    done <<'END'
90@0:70@3|1min|waiting until all GPUs are below 80 °C: one has 90 °C
90|100ms|a GPU still has 90 °C, starting all the same
END
fi
file busy <<END
phases:
  - {name: a, priority: high, studies: [[test_matrix, 'experiment.command="true"', repeat=1, device=cpu]]}
  - {name: b, studies: ['$small repeat=1 $sim']}
END
mkdir -p "$GPULAB_LOCK_DIR"
exec 9>"$GPULAB_LOCK_DIR/gpulab-cpu:0.lock"
flock 9
"$gpulab" campaign run busy --config-dir conf >"$work/out" 2>"$work/err" 9>&- &
busy=$!
for ((i = 0; i < 300; i++)); do
    grep -q 'waiting for cpu:0' "$work/err" && break
    sleep 0.1
done
exec 9>&-
wait $busy || fail "busy: $(cat "$work/err")"
[ "$(grep -o 'phase [ab]:\|another study goes first\|waiting for cpu:0' "$work/err" | tr '\n' ' ')" = \
    'phase a: another study goes first phase b: phase a: waiting for cpu:0 ' ] || fail "busy: $(cat "$work/err")"

# packed, it can be looked at and run elsewhere
mkdir conf/machine && cp "$source_dir/conf/machine/h200-8.yaml" conf/machine/mine.yaml
run campaign pack "$folder" -o packed.tar.gz --config-dir conf --json
expect_status 0
json 'd["archive"] == "packed.tar.gz"'
mkdir elsewhere && tar -xzf packed.tar.gz -C elsewhere
set -- elsewhere/small-*
if [ ! -f "$1/conf/campaign/small.yaml" ] || [ ! -f "$1/conf/machine/mine.yaml" ] || [ -e "$1/lock" ]; then
    fail "the archive holds $(find elsewhere | head -20)"
fi
"$gpulab" campaign report "$folder" --json | grep -v '"page"\|"folder"' >before.json
"$gpulab" campaign report "$1" --json | grep -v '"page"\|"folder"' >after.json
cmp -s before.json after.json || fail "a packed campaign has other answers: $(diff before.json after.json | head -5)"
(cd "$1" && eval "set -- $(grep '^gpulab campaign run ' README.md)" && shift && # as it is pasted
    "$gpulab" "$@" --dry-run --quiet) >"$work/out" 2>&1 || fail "$(cat "$work/out")"
grep -q "^small: small" "$work/out" || fail "the archive's line shows $(head -3 "$work/out")"
cp "$source_dir/conf/machine/h200-8.yaml" own.yaml # a machine that a path names, and --device: both in the line
file one <<END
phases: [{name: a, studies: ['$small repeat=1']}]
END
run campaign run one --device sim:./own.yaml:2 --config-dir conf --quiet
expect_status 0
run campaign pack outputs/campaign/one/*/* -o one.tar.gz --config-dir conf
expect_status 0
mkdir own && tar -xzf one.tar.gz -C own
grep -q '^gpulab campaign run one --config-dir conf --device sim:own:2 ' own/one-*/README.md || fail "$(cat own/one-*/README.md)"
cmp -s own.yaml own/one-*/conf/machine/own.yaml || fail 'the archive lacks the machine that a path names'
run campaign run small $sim --config-dir conf --quiet # it was finished: a new one
expect_status 0
[ "$(echo outputs/campaign/small/*/* | wc -w)" = 2 ] || fail "a finished campaign is no new folder"

# killed at each step, the same command goes on and ends with the same runs
whole=$(find "$folder" -name results.json -exec grep -ho '"run_id": "[^"]*"' {} + | sort)
kills=0
for point in before-campaign:2 after-commit:4 after-campaign:2 after-commit:1 before-campaign:2; do
    GPULAB_FAILPOINT=$point "$gpulab" campaign run small $sim --config-dir conf --quiet \
        output_dir=killed >/dev/null 2>&1
    [ $? -gt 128 ] && kills=$((kills + 1))
done
[ $kills = 5 ] || fail "only $kills of 5 kills hit"
run campaign run small $sim --config-dir conf --quiet output_dir=killed
expect_status 0
set -- killed/campaign/small/*/*
[ $# = 1 ] || fail "a killed campaign left $# folders"
[ "$(find killed -name results.json -exec grep -ho '"run_id": "[^"]*"' {} + | sort)" = "$whole" ] ||
    fail "a killed campaign ends with other runs"

# too many failures stop a phase, and what depends on it
file command <<END
questions: [{name: q, ask: 'What is best?', analysis: metrics, phases: [a]}]
risks: {failures: 20%}
phases:
  - name: a
    studies: [[test_matrix, 'experiment.command="false"', repeat=10, experiment.max_retries=0]]
  - {name: b, after: [a], studies: ['$small $sim']}
  - {name: c, studies: [[test_matrix, 'experiment.command="true"', repeat=1]]} # runs all the same
END
run campaign run command device=cpu --config-dir conf --quiet
expect_status 1
expect_out '^ +c +medium +done +1 +0 +1'
expect_out '^  Phase a was stopped: [34] of 10 runs failed'
expect_out '! Not answered: all [34] runs of its phases failed, the first: '
expect_out '^ +a +[34] of 10 runs failed' # one more may be under way
expect_out '^ +b +medium +blocked'
expect_out '^ +b +phase a was stopped'

# another machine in between
GPULAB_FAILPOINT=after-commit:3 "$gpulab" campaign run small $sim --config-dir conf --quiet \
    output_dir=moved >/dev/null 2>&1
kept=$(echo moved/campaign/small/*/*)
sed -i 's/"machine_identity": "[0-9a-f]*"/"machine_identity": "0000000000000001"/' "$kept/campaign.json"
run campaign run small $sim --config-dir conf --quiet output_dir=moved
expect_status 2
expect_one_line
expect_err 'the machine is not the one that it began on .*--accept-machine'
run campaign run small $sim --config-dir conf --quiet output_dir=moved --accept-machine
expect_status 0
expect_out '^  the machine is not the one that it began on'

# whose runs are left out of the answers
file two <<END
questions: [{name: q, ask: 'What is lost?', analysis: numa, phases: [a, b]}]
phases:
  - {name: a, studies: ['$small experiment.hardware.gpu_ids=[0] repeat=2']}
  - {name: b, after: [a], studies: ['$small experiment.hardware.gpu_ids=[1] repeat=2']}
END
GPULAB_FAILPOINT=after-commit:3 "$gpulab" campaign run two device=sim:./own.yaml --config-dir conf --quiet >/dev/null 2>&1
sed -i 's/tflops: {fp32: [0-9]*/tflops: {fp32: 40/' own.yaml
run campaign run two device=sim:./own.yaml --config-dir conf --quiet --accept-machine
expect_status 0
expect_out 'answers leave out what ran before'
grep -q 'Left out: 1 study of another machine' outputs/campaign/two/*/*/report/report.md ||
    fail "the page doesn't say what is left out"

# one line each
file cycle <<END
phases: [{name: a, after: [b], studies: [s]}, {name: b, after: [a], studies: [s]}]
END
file nostudy <<END
phases: [{name: a, studies: [quikc_test]}]
END
file poor <<END
budget: {disk: 1KiB}
phases: [{name: a, studies: ['$small']}]
END
file hasty <<END
phases: [{name: a, studies: ['$small']}]
END
file undecidable <<END
phases: [{name: a, studies: ['$small']}, {name: b, after: [a], when: numa.penalty >, studies: ['$small']}]
END
while IFS='|' read -r words message; do
    # shellcheck disable=SC2086 # words
    run campaign run $words $sim --config-dir conf --quiet
    expect_status 2
    expect_one_line
    expect_err "$message"
done <<'END'
cycle|phases wait for each other: a after b after a
nostudy|nostudy: phase a: there is no study 'quikc_test' \(did you mean 'quick_test'
poor|the budget is too small for the first phase, a: .* expected, budget.disk has 1.00 KiB
hasty campaign.budget.time=1ms|the budget is too small for the first phase, a: .* expected, budget.time has 1.00 ms
hasty campaign.budgett.time=1s|unknown key 'budgett'; did you mean 'budget'
hasty campaign.budget.tiem=1s|unknown key 'tiem'; did you mean 'time'
undecidable|condition 'numa.penalty >': a number, such as 5%, expected
numa_plam|there is no campaign 'numa_plam' \(did you mean 'numa_plan'
END
for name in poor hasty; do
    [ ! -e outputs/campaign/$name ] || fail "a campaign that was refused left $(find outputs/campaign/$name)"
done
echo 'phases: [{name: a, studies: ["-m"]}]' >conf/campaign/flag.yaml # as `gpulab run -m`: the default study
run campaign run flag $sim --config-dir conf --quiet --dry-run
expect_status 0
expect_out '240 runs'
run campaign fly small
expect_status 2
expect_one_line
finish
