#!/usr/bin/env bash
# Points spread over devices: each runs once, where there is room; its place is recorded, no part of
# its identity, and no factor of an analysis.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work/locks HOME=$work
mkdir -p "$work/locks"
cd "$work" || exit 1
sim=(quick_test device=sim:l40s-10 repeat=2 spread=true)

# the plan shows where it may run, and each device's node
run run "${sim[@]}" 'gpu_ids=[0,9]' --dry-run
expect_status 0
expect_out '^quick_test: 3 points × 2 repeats = 6 runs'
expect_out '9 is sim:l40s-10:9'
expect_out 'vit0x0x0_r0 +any of 2 +local '
run run "${sim[@]}" 'gpu_ids=[0,9]' --dry-run --json
json 'd["runs"][0]["rank_count"] == 1 and [s["gpu_id"] for s in d["runs"][0]["slots"]] == [0, 9]'

# killed in the middle, it goes on with other devices: what was done stays where it was
GPULAB_FAILPOINT=after-commit:3 run run "${sim[@]}" 'gpu_ids=[0,9]' --no-report
run run "${sim[@]}" gpu_ids=5 --json
expect_status 0
json 'd["summary"]["successful_runs"] == 6 and d["summary"]["gpu_ids_tested"] == [0, 5, 9]'
json 'all(r["devices"] == ["sim:l40s-10:%d" % r["gpu_id"]] for r in d["runs"])'
json 'len({r["numa_node"] for r in d["runs"]}) > 1'
[ "$(echo outputs/quick_test/*/*)" = "$(echo outputs/quick_test/*/*-*)" ] || fail "two folders"

# repeats of a point are one row, wherever they ran, and a run says where it did
run show quick_test
expect_out '^  vit0x0x0 .*[0-9]%'
[ "$(grep -c '^  vit' "$work/out")" = 3 ] || fail "$what: a row for each device: $(cat "$work/out")"
expect_out 'GPUs 0, 5 and 9 of 10'
run show quick_test --run vit0x0x0_r0
expect_out 'Device +Node'
expect_out 'sim:l40s-10:[059] +[0-9]'

head -n 1 outputs/quick_test/*/*/report/runs.csv | grep -q ',device,numa_node,rate,' || fail "runs.csv: no device"
grep -Eq '^vit0x0x0_r0,.*,sim:l40s-10:[059],[0-9]+,' outputs/quick_test/*/*/report/runs.csv ||
    fail "runs.csv: $(cat outputs/quick_test/*/*/report/runs.csv)"

# no analysis takes the device for a cause
run analyze numa quick_test
expect_out 'ran once, on whichever device was free'
run analyze peers quick_test --json
json '"sim:l40s-10" not in json.dumps(d) and "any GPU" in json.dumps(d)'
run analyze recommend quick_test
expect_out 'vit0x0x0 +any GPU  '
grep -q 'node -1' "$work/out" && fail "$what: node -1"

# programs at the same time, one on each device, each with its device's cores
cat >program <<'PROGRAM'
#!/bin/sh
touch "met.$1"
for i in 1 2 3 4 5 6 7 8 9 10; do [ -e "met.$2" ] && break; sleep 0.2; done
[ -e "met.$2" ] && echo "{\"met\": 1}"
PROGRAM
chmod +x program
run run test_matrix device=cpu:0/2 gpu_ids=all spread=true experiment.matrix.optimizer=x \
    'experiment.command=["./program","{a}","{b}"]' \
    '+experiment.matrix.p=[{a:1,b:2},{a:2,b:1}]' --no-report --json
expect_status 0
json 'd["summary"]["successful_runs"] == 2 and all(r["concurrent"] for r in d["runs"])'
json '{r["devices"][0] for r in d["runs"]} == {"cpu:0/2.0", "cpu:0/2.1"}'
json 'all(r["run_id"].startswith("a") for r in d["runs"])'
spread=$(echo outputs/test_matrix/*/*)
run run test_matrix device=cpu experiment.matrix.optimizer=x experiment.name=crossed --no-report -q \
    'experiment.command=["echo","step 1 met={a}"]' '+experiment.matrix.p=[{a:1,b:2},{a:2,b:1}]'
expect_status 0
run analyze metrics "$spread" crossed objective=met:max
expect_status 0
expect_out 'any device'
expect_out 'NUMA (node )?0'
grep -qE 'NUMA (node )?-1' "$work/out" && fail "$what: NUMA node -1"
finish
