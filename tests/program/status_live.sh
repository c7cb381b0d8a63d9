#!/usr/bin/env bash
# gpulab status and estimate beside a study that really runs: while it does, when its runner is killed,
# when it is taken up again, when it has ended. Whatever is waited for is waited for by looking.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" GPULAB_LOCK_DIR="$work"
cd "$work" || exit 1
words=(quick_test device=cpu experiment.test.memory_size_mb=8 experiment.order=as_given)

# await STATE: until the newest study that isn't finished is so
await() {
    local i
    for ((i = 0; i < 300; i++)); do
        run status --json
        grep -q "\"state\": \"$1\"" "$work/out" && return
        sleep 0.1
    done
    fail "no study becomes $1: $(cat "$work/out")"
}

# --- a run that lasts longer than this test, so that what is seen doesn't depend on speed ---
"$gpulab" run "${words[@]}" experiment.test.num_samples=50000000 >"$work/run" 2>&1 </dev/null &
runner=$!
await running
json 'd["studies"][0]["holder"]["pid"] == '"$runner"
json 'd["studies"][0]["runs"]["total"] == 3'
json 'd["studies"][0]["study"] == "quick_test"'
for ((i = 0; i < 300; i++)); do
    run status --json
    grep -q '"total": 10000000' "$work/out" && break # it measures, and has said how far it is
    sleep 0.1
done
json 'd["studies"][0]["progress"][0]["phase"] == "measuring"'
json 'd["studies"][0]["progress"][0]["run_id"] == "gpu0_numa0_vit0x0x0"'
json 'd["studies"][0]["progress"][0]["total"] == 10000000'
run status
expect_status 0
expect_out "process $runner on "
expect_out ' vit0x0x0 +measuring +[0-9]+ of 10000000'
run estimate
expect_status 0
expect_out '^quick_test: running, 0 of 3 runs done'
expect_out '^  vit0x0x0 +measuring +[0-9]+/10000000'

# --- killed: whoever follows it is told ---
"$gpulab" status --follow --json --interval 0.1 >"$work/followed.json" 2>/dev/null </dev/null &
counter=$!
"$gpulab" status --follow --interval 0.1 >"$work/followed" 2>&1 </dev/null &
follower=$!
for ((i = 0; i < 300; i++)); do
    grep -q "running" "$work/followed" && break
    sleep 0.1
done
for ((i = 0; i < 300; i++)); do
    [ "$(wc -l <"$work/followed.json")" -ge 3 ] && break
    sleep 0.1
done
kill -9 "$runner"
wait "$runner" 2>/dev/null
wait "$follower"
[ $? = 1 ] || fail "following a study that was killed: not status 1"
tail -1 "$work/followed" | grep -q '^quick_test: interrupted, 0 of 3 done$' ||
    fail "following a study that was killed: $(cat "$work/followed")"
wait "$counter"
python3 - "$work/followed.json" <<'CHECK' || fail "elapsed_s of --follow --json: $(tail -2 "$work/followed.json")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
running = [(d["studies"][0]["elapsed_s"], d["time_unix_s"], d["studies"][0]["holder"]["since_unix_s"])
           for d in lines if d["studies"][0]["state"] == "running"]
assert len(running) >= 2 and running[0][0] < running[-1][0]
assert all(0 < s < 600 and abs(s - (now - since)) < 1 for s, now, since in running)
CHECK
run status
expect_out 'gpulab run quick_test device=cpu'
run estimate --json
json 'd["estimates"][0]["state"] == "interrupted"'
json '[r["state"] for r in d["estimates"][0]["runs"]] == ["interrupted", "planned", "planned"]'

# --- one that ends, and what it teaches about the next ---
"$gpulab" run "${words[@]}" experiment.test.num_samples=10 >"$work/run" 2>&1 </dev/null &
runner=$!
wait "$runner" || fail "the study fails: $(cat "$work/run")"
run status --follow quick_test
expect_status 0
expect_out '^quick_test: ended, 3 of 3 done$'
run estimate "${words[@]}" experiment.test.num_samples=10 --json
json 'all(r["basis"] == "same run" for r in d["estimates"][0]["runs"])'
json 'd["estimates"][0]["unknown"] == 0'
run estimate "${words[@]}" experiment.test.num_samples=20 --json
json 'all(r["basis"] == "scaled" for r in d["estimates"][0]["runs"])'
run run "${words[@]}" experiment.test.num_samples=10 --dry-run
expect_out 'takes about .* \(from earlier runs here\)'
finish
