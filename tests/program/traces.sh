#!/usr/bin/env bash
# The traces that a study leaves, as whoever reads Nsight's exports meets them.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
small=(experiment.test.memory_size_mb=16 'experiment.test.tensor_shape=[3,64,64]'
    experiment.test.num_samples=50)

newest() { find outputs/quick_test -mindepth 2 -maxdepth 2 | LC_ALL=C sort | tail -1; }

# given the first study that anybody runs, then each run leaves a trace that can be asked
run run --no-report quick_test "${small[@]}" device=cpu
expect_status 0
folder=$(newest)
cp "$folder/results.json" out
json 'all(r["trace"] == "traces/pipeline_%s.sqlite" % r["run_id"] for r in d)'
# as many as half a second allows: all ten, or fewer where the machine is slow
json 'all(3 <= r["ranks"][0]["trace"]["iterations"] <= 10 for r in d)'
[ -z "$(find "$folder/traces" -type f ! -name 'pipeline_*.sqlite')" ] ||
    fail "left behind: $(ls -A "$folder/traces")"
python3 - "$folder" <<'PY' || fail "traces: see above"
import json, os, sqlite3, sys
folder = sys.argv[1]
for run in json.load(open(os.path.join(folder, "results.json"))):
    db = sqlite3.connect(os.path.join(folder, run["trace"]))
    one = lambda sql: db.execute(sql).fetchone()[0]
    name = run["vit_config"]["name"]
    begin, end = db.execute(
        "SELECT start, end FROM NVTX_EVENTS WHERE text = 'test_double_buffer'").fetchone()
    inside = f"start >= {begin} AND end <= {end}"
    copies = one(f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE {inside}")
    kernels = one(f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE {inside}")
    assert copies == 2 * run["ranks"][0]["trace"]["iterations"], (name, copies)
    assert (kernels == 0) == (name == "vit0x0x0"), (name, kernels)
    # a stream does one thing at a time
    for stream, in db.execute("SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_KERNEL"):
        rows = db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL"
                          " WHERE streamId = ? ORDER BY start", (stream,)).fetchall()
        assert all(a[1] <= b[0] for a, b in zip(rows, rows[1:])), name
    # every command has the call that asked for it, and it began later
    late = one("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY c LEFT JOIN"
               " CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"
               " WHERE r.start IS NULL OR r.start > c.start")
    assert late == 0, (name, late)
PY

# turned off, then there is none
run run --no-report quick_test "${small[@]}" device=cpu experiment.trace=false
expect_status 0
folder=$(newest)
[ ! -e "$folder/traces" ] || fail "$what: there are traces"
cp "$folder/results.json" out
json 'all(r["trace"] is None for r in d)'

# with graphs, then their operations are there one by one
run run --no-report quick_test "${small[@]}" device=cpu experiment.test.compile_model=true
expect_status 0
folder=$(newest)
python3 - "$folder"/traces/*vit32x2x256*.sqlite <<'PY' || fail "graphs: see above"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
kernels, nodes = db.execute("SELECT count(*), count(graphNodeId) FROM"
                            " CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
assert kernels == nodes > 20, (kernels, nodes)
PY

finish
