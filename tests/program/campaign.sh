#!/usr/bin/env bash
# Campaigns: listed, scheduled, carried out; conditions, gates and budgets; what can't be done.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
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
json 'd["runs"] <= d["replaced_runs"] and len(d["schedule"]) == 9 and not any(s["dropped"] for s in d["schedule"])'

run campaign run contention_plan device=sim:g5.12xlarge --dry-run --quiet
expect_status 0
expect_out '^ +Runs +Time +Energy +Disk'
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
run campaign report "$folder" --json
expect_status 0
json 'd["questions"][0]["claim"]["kind"].startswith("numa.") and d["questions"][0]["claim"]["verdict"] == "yes"'

# packed, it can be looked at and run elsewhere
run campaign pack "$folder" -o packed.tar.gz --json
expect_status 0
json 'd["archive"] == "packed.tar.gz"'
mkdir elsewhere && tar -xzf packed.tar.gz -C elsewhere
set -- elsewhere/small-*
if [ ! -f "$1/conf/campaign/small.yaml" ] || [ -e "$1/lock" ]; then
    fail "the archive holds $(find elsewhere | head -20)"
fi
"$gpulab" campaign report "$folder" --json | grep -v '"page"\|"folder"' >before.json
"$gpulab" campaign report "$1" --json | grep -v '"page"\|"folder"' >after.json
cmp -s before.json after.json || fail "a packed campaign has other answers: $(diff before.json after.json | head -5)"
(cd "$1" && eval "$(sed -n 's/^\(gpulab campaign run .*[^ ]\)      all of it.*/\1/p' README.md |
    sed "s,^gpulab,'$gpulab',") --dry-run --quiet") >"$work/out" 2>&1 || fail "$(cat "$work/out")"
grep -q "^small: small" "$work/out" || fail "the archive's line shows $(head -3 "$work/out")"
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
risks: {failures: 20%}
phases:
  - name: a
    studies: [[test_matrix, 'experiment.command="false"', repeat=10, experiment.max_retries=0]]
  - {name: b, after: [a], studies: ['$small $sim']}
END
run campaign run command device=cpu --config-dir conf --quiet
expect_status 1
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
while IFS='|' read -r name message; do
    run campaign run "$name" $sim --config-dir conf --quiet
    expect_status 2
    expect_one_line
    expect_err "$message"
done <<'END'
cycle|phases wait for each other: a after b after a
nostudy|there is no study 'quikc_test' \(did you mean 'quick_test'
poor|the budget is too small for the first phase, a: .* expected, budget.disk has 1.00 KiB
numa_plam|there is no campaign 'numa_plam' \(did you mean 'numa_plan'
END
echo 'phases: [{name: a, studies: ["-m"]}]' >conf/campaign/flag.yaml # as `gpulab run -m`: the default study
run campaign run flag $sim --config-dir conf --quiet --dry-run
expect_status 0
expect_out 'In all +240 runs'
run campaign fly small
expect_status 2
expect_one_line
finish
