#!/usr/bin/env bash
# A study's data as CSV and JSON, to standard output and into files, other monitors' files in each
# other's formats, and what is refused.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state TZ=UTC
study=$work/outputs/numa_locality_study/2026-11-15/10-42-03
mkdir -p "$study/logs" "$work/empty"
cp "$source_dir/tests/fixtures/store/v2.db" "$study/study.db"
before=$(sha256sum <"$study/study.db")

# csv EXPRESSION: evaluates a Python expression over the rows `d` (maps) of the table in the output
csv() {
    python3 -c '
import csv, sys
d = list(csv.DictReader(open(sys.argv[1], newline="")))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$work/out" "$1" 2>/dev/null || fail "$what: not so: $1
$(head -5 "$work/out")"
}

# the study by its folder, by its file, and from within
for path in "$study" "$study/study.db" "$study/logs"; do
    run export "$path"
    expect_status 0
    csv 'len(d) == 3 and [r["state"] for r in d] == ["done", "failed", "running"]'
done
csv 'd[0]["rate"] == "850.5" and d[0]["rate_high"] == "" and d[0]["latency_p95_ms"] == "12.5"'
csv 'd[0]["option.dim"] == "512" and d[1]["option.dim"] == "" and d[1]["error"].endswith("or\nnode 1")'
csv 'd[0]["start_time"] == "2023-11-14T22:13:20.000001+00:00" and d[0]["devices"] == "cpu:0/2.0;cpu:0/2.1"'

run export "$study" --format csv --what iterations
expect_status 0
csv 'len(d) == 127 and d[0]["compute_ms"] == "0.799990" and d[0]["h2d_ms"] == ""'
csv '{r["rank"] for r in d} == {"0", "1"} and d[119]["iteration"] == "119"'
run export "$study" -w metrics
csv 'd == [{"run_id": d[0]["run_id"], "rank": "", "name": "loss", "unit": "1", "value": "3.25", "time_ns": "77", "step": "", "time_s": d[0]["time_s"]}]'

for words in "--format json" "-f json" "--json"; do
    # shellcheck disable=SC2086 # several words
    run export "$study" $words
    expect_status 0
    json 'd["study"]["name"] == "numa_locality_study" and d["machine"] == {"nodes": 2}'
    json '[r["success"] for r in d["runs"]] == [True, False, False]'
    json 'd["runs"][0]["validity"]["warnings"] == ["load was 1.5, \"high\""] and len(d["runs"][0]["metrics"]) == 1'
    json '"iteration_times" not in d["runs"][0] and d["summary"]["success_rate"] == 50'
done
run export "$study" --format json --what iterations
json 'len(d["runs"][0]["iteration_times"][0]["rows"]) == 120'

# into a file: new, again, with its permissions, behind a link, to a device
run export "$study" -o "$work/runs.csv"
expect_status 0
[ ! -s "$work/out" ] || fail "$what: wrote to standard output, too"
[ "$(wc -l <"$work/runs.csv")" = 5 ] || fail "$what: $(wc -l <"$work/runs.csv") lines"
run export "$study" --what iterations -o "$work/times.jsonl"
expect_status 0
python3 -c '
import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
assert len(d) == 127 and d[0]["compute_ms"] == 0.79999 and d[0]["h2d_ms"] is None, d[0]' "$work/times.jsonl" ||
    fail "$what: no JSON lines: $(head -2 "$work/times.jsonl")"
echo old >"$work/times.csv"
chmod 600 "$work/times.csv"
ln -s times.csv "$work/link.csv"
run export "$study" --what iterations --output "$work/link.csv"
expect_status 0
[ -L "$work/link.csv" ] || fail "$what: replaced the link instead of the file"
[ "$(stat -c %a "$work/times.csv")" = 600 ] || fail "$what: permissions became $(stat -c %a "$work/times.csv")"
[ "$(wc -l <"$work/times.csv")" = 128 ] || fail "$what: $(wc -l <"$work/times.csv") lines"
run export "$study" -o /dev/null
expect_status 0
[ -c /dev/null ] || fail "$what: /dev/null is no device any more"
run export "$study" -o -
csv 'len(d) == 3'

# what is refused leaves nothing behind and everything as it was
refuse() {
    local pattern=$1
    shift
    run export "$@"
    expect_status 2
    expect_one_line
    expect_err "$pattern"
}
refuse "^gpulab: .*format.*xml.*csv, json, single, .* or pcie-csv" "$study" --format xml
refuse "^gpulab: .*what.*rows.*runs, iterations, metrics or samples" "$study" --what rows
refuse "no study 'numa_locality_stud'" numa_locality_stud
refuse "no study in $work/empty" "$work/empty"
refuse "too many words" "$study" "$study"
refuse "$work/empty is a directory" "$study" -o "$work/empty"
refuse "$work/none/runs.csv can't be written.*No such file" "$study" -o "$work/none/runs.csv"
refuse "the study's own file" "$study" -o "$study/study.db"
refuse "needs a file's name" "$study" -o ''
refuse "there is no study yet" --format csv
run export "$study" --format csv --json
expect_status 2
json '"exclude each other" in d["error"]["message"]'
echo "no database" >"$work/empty/study.db"
refuse "is not a study's file" "$work/empty"
[ "$(sha256sum <"$study/study.db")" = "$before" ] || fail "an export changed the study"
[ -z "$(find "$work" -name '.gpulab-*')" ] || fail "left over: $(find "$work" -name '.gpulab-*')"

# files of other monitors: told by content, whole or cut off, into every format that fits
cat >"$work/gpus.dat" <<'END'
[{"timestamp": "2025-01-15T10:30:00", "multi_gpu_data": [
   {"gpu_index": 0, "gpu_name": "NVIDIA A10G", "utilization": 85, "memory_used": 12800, "memory_total": 24576, "power": 150},
   {"gpu_index": 1, "gpu_name": "NVIDIA A10G", "utilization": 80, "memory_used": 12750, "memory_total": 24576, "power": 151}]},
 {"timestamp": "2025-01-15T10:30:01", "multi_gpu_data": [{"gpu_index": 0, "gpu_na
END
run export "$work/gpus.dat" --format multi
expect_status 0
expect_err "gpus.dat: the file is cut off"
json 'len(d) == 1 and d[0]["timestamp"] == "2025-01-15T10:30:00.000"'
json 'd[0]["aggregate_stats"]["total_memory_used"] == 25550 and d[0]["aggregate_stats"]["gpu_count"] == 2'
json 'd[0]["multi_gpu_data"][1]["temperature"] is None'
run export "$work/gpus.dat" --format single --gpu 1 -q
json 'd[0]["gpu_index"] == 1 and d[0]["memory_used"] == 12750'
[ ! -s "$work/err" ] || fail "$what: $(cat "$work/err")"
run export "$work/gpus.dat" --format experiment
json 'd["start_time"] == "2025-01-15T10:30:00.000" and d["samples"][0]["gpus"][0]["mem_used_gb"] == 12.5'
# a GPU that gives no answer keeps its last value, and is marked after 2 s: no record is left out
python3 - >"$work/silent.dat" <<'PY'
import json
print(json.dumps([{"timestamp": "2025-01-15T10:30:%02d" % t, "multi_gpu_data": [
    {"gpu_index": i, "gpu_name": "A10G", "utilization": 50 + i, "memory_used": 1024, "power": 90}
    for i in range(2) if i == 1 or t < 2]} for t in range(10)]))
PY
run export "$work/silent.dat" --format experiment
expect_status 0
json '[s["gpus"][0]["gpu_util"] for s in d["samples"]] == [50] * 10'
json '["repeated" in s["gpus"][0] for s in d["samples"]] == [False] * 4 + [True] * 6'
json '[s["gpus"][1]["gpu_util"] for s in d["samples"]] == [51] * 10'
[ ! -s "$work/err" ] || fail "$what: $(cat "$work/err")"
run export "$work/gpus.dat"
csv 'len(d) == 2 and d[1]["memory_used_bytes"] == str(12750 * 2**20) and d[0]["kind"] == "gpu"'
run export "$work/gpus.dat" --json -o "$work/own.json"
run export "$work/own.json"
csv 'len(d) == 2 and d[0]["power_w"] == "150"'
refuse "no GPU 7, but 0, 1" "$work/gpus.dat" -q -f single --gpu 7
refuse "no CPUs, memory or NUMA nodes" "$work/gpus.dat" -q -f system
refuse "needs --format single" "$work/gpus.dat" -q --gpu 1
refuse "about the runs of a study" "$work/gpus.dat" -q --what runs
refuse "choose another name" "$work/gpus.dat" -q -o "$work/gpus.dat"

echo '{"a": 1}' >"$work/other.json"
refuse "has no known field .the first: a.; known files" "$work/other.json"
echo 'timestamp, index, utilization.gpu [%], memory.used [MiB]' >"$work/header.csv"
refuse "header.csv holds no samples" "$work/header.csv" -q

# one run, one phase: rows, and samples of that time
cp -r "$source_dir/tests/fixtures/0.1.0/contention" "$work/contention"
run export "$work/contention" --what samples
csv 'len(d) == 144'
samples=0
for phase in baseline concurrent isolated; do
    run export "$work/contention" --what samples --phase "$phase"
    expect_status 0
    samples=$((samples + $(wc -l <"$work/out") - 1))
    run export "$work/contention" --phase "$phase" --what runs
    csv 'd and all("'$phase'" in r["run_id"] for r in d)'
done
if [ "$samples" -le 30 ] || [ "$samples" -ge 145 ]; then fail "$samples samples in all phases"; fi
run export "$work/contention" --run gpu0_softmax8192x2048_baseline
csv 'len(d) == 1'
start=$(python3 -c 'import csv, sys; print(next(csv.DictReader(open(sys.argv[1])))["start_time"])' "$work/out")
run export "$work/contention" --run gpu0_softmax8192x2048_baseline --format system
json 'len(d["samples"]) > 2 and d["start_time"][:16] == "'"${start:0:16}"'"'
refuse "no run 'gpu9', but .gpu0.1_numa0" "$work/contention" --run gpu9
refuse "no phase 'concurent': did you mean 'concurrent'" "$work/contention" --phase concurent
refuse "it has no phases" "$study" --phase baseline
refuse "not both" "$work/contention" --phase baseline --run x
refuse "about a study" "$work/gpus.dat" -q --run x

# a reader that has enough
"$gpulab" export "$study" --what iterations 2>"$work/err" | head -1 >"$work/out"
[ ! -s "$work/err" ] || fail "export | head -1: $(cat "$work/err")"
if [ -w /dev/full ]; then
    "$gpulab" export "$study" >/dev/full 2>"$work/err" && fail "a full disk went unnoticed"
    expect_err 'No space left'
    "$gpulab" export "$study" -o /dev/full 2>"$work/err" && fail "a full disk went unnoticed"
    expect_err 'No space left'
fi

# what the guide's plot script takes from these files, of a study that uses GPUs 2 and 3 and of this machine
cat >"$work/plot.py" <<'PY'
import json, sys

gpu_data, system_data = (json.load(open(name)) for name in sys.argv[1:3])
timestamps = [s['timestamp'] for s in gpu_data['samples']]
for gpu_id in range(4):
    for key in 'gpu_util', 'pcie_tx_mb', 'mem_used_gb':
        values = [s['gpus'][gpu_id][key] for s in gpu_data['samples']]
        assert all(s['gpus'][gpu_id]['gpu_id'] == gpu_id for s in gpu_data['samples'])
        assert len(values) == len(timestamps) > 0
        assert (gpu_id < 2) == all(value is None for value in values), (gpu_id, key)
for data in system_data, json.load(open(sys.argv[3])):
    cpu_utils = [sum(s['cpu_percent']) / len(s['cpu_percent']) for s in data['samples']]
    assert cpu_utils
PY
run run --no-report quick_test device=sim:l40s-10 'experiment.hardware.gpu_ids=[[2,3]]' \
    'experiment.vit_configs=[{depth: 0}]' experiment.duration=0.5 experiment.trace=false
expect_status 0
for format in experiment system; do run export quick_test --format "$format" -o "$work/$format.json" -q; done
run record -t 0.5s -i 50ms -o "$work/host.db" -q
run export "$work/host.db" --format system -o "$work/host.json" -q
expect_status 0
python3 "$work/plot.py" "$work/experiment.json" "$work/system.json" "$work/host.json" 2>"$work/err" ||
    fail "the guide's script: $(cat "$work/err")"

finish
