#!/usr/bin/env bash
# Recordings of this machine and of four fake GPUs: around commands, ended in every way, as JSON and CSV
# at the same time, and what is refused before a command is started.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export TZ=UTC
build_dir=$(realpath "$3")
cd "$work" || exit 1
fast=(--interval 20ms)
host=(--device cpu "${fast[@]}" -q)
fake=(env "LD_LIBRARY_PATH=$build_dir/fake"
    "GPULAB_FAKE_NVML=gpus=4; memory_total=24576; memory=12800,12750,12825,12780; utilization=85; reasons=0,4")

# What takes longer than a second goes on beside the rest.
"${fake[@]}" "$gpulab" record "${fast[@]}" -q -o killed.db --stats-file killed 2>killed.err &
killed=$!
(
    trap '' XFSZ # a limit of a file's size shows what a full disk does
    ulimit -f 40
    exec "$gpulab" record --interval 1ms --device cpu -o full.db -- sh -c 'sleep 2.2; exit 5' 2>full.err
) &
full=$!
env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=gpus=2; power=100; lost=1@1.2" \
    "$gpulab" record "${fast[@]}" --json -t 2.6s -o lost.db >lost.json 2>lost.err &
lost=$!
# a kernel module that is loaded while we wait: two openings, each with a vain first try
env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=gpus=2; fail=nvmlInit_v2:9@1x3" \
    "$gpulab" record "${fast[@]}" -q -t 2.4s -o module.db 2>module.err &
module=$!
began=$(date +%s%N)

# an interval that the driver can't keep up with is told, with what it gives
env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=hang=nvmlDeviceGetUtilizationRates:0.03@1x900" \
    "$gpulab" record -q --device cuda:0 -i 5ms -t 300ms -o pace.db 2>err || fail "pace: $(cat err)"
grep -q '5.00 ms is too short here: a sample of GPU 0 .* comes each' err || fail "pace: $(cat err)"

# rows FILE EXPRESSION: evaluates a Python expression over the lines `d` of a recording
rows() {
    "$gpulab" export "$1" -f csv >rows 2>rows.err
    python3 -c '
import csv, sys
d = list(csv.DictReader(open("rows", newline="")))
sys.exit(0 if eval(sys.argv[1]) else 1)' "$2" || fail "$1: not so: $2
$(cat rows.err; head -3 rows | cut -c1-200)"
}

# alone, and around a command; without a GPU it says so in one line
run record "${fast[@]}" --duration 100ms -o alone.db
expect_status 0
expect_err '^recording into alone.db each 20.0 ms$'
expect_err '^alone.db: [0-9.]+ s, [0-9]+ samples'
rows alone.db '{r["kind"] for r in d} >= {"cpu", "memory"} and len(d) > 5'
if [ ! -e /dev/nvidia0 ]; then
    [ "$(grep -c '^gpulab: no GPU is recorded, only the host' err)" = 1 ] ||
        fail "no word of the missing GPU: $(cat err)"
fi
run record "${host[@]}" -o streams.db -- sh -c 'echo out; echo err >&2; exit 7'
expect_status 7
[ "$(cat out err)" = $'out\nerr' ] || fail "$what: $(cat out err)"
[ "$(echo word | "$gpulab" record "${host[@]}" -o stdin.db -- cat 2>err)" = word ] ||
    fail "the command didn't get standard input: $(cat err)"
run record "${host[@]}" -o signal.db -- sh -c 'kill -KILL $$'
expect_status 137
run record "${host[@]}" --json -o summary.db -- sleep 0.1
expect_status 0
json '(d["recording"] == "summary.db" and d["duration_s"] >= 0.1 and d["samples"] > 3 and d["gpus"] == [] and
  0 <= d["mean_cpu_percent"] <= 100 and d["command"]["exit_status"] == 0)'
"$gpulab" export summary.db --json >out
json '[e["text"] for e in d["events"] if e["kind"] == "mark"] == ["command began", "command ended"]'

# a name of its own, never one that is taken
run record "${fast[@]}" --device cpu --duration 1ms
expect_err 'recording into recording-[0-9]{4}(-[0-9]{2}){5}(_[0-9]+)?.db'
[ "$(find . -name 'recording-*.db' | wc -l)" = 1 ] || fail "no recording-….db"

# the time is up before the command: it goes on, and its status counts
run record "${host[@]}" --duration 20ms -o short.db -- sh -c 'sleep 0.1; exit 3'
expect_status 3

# --- four GPUs ---
"${fake[@]}" "$gpulab" record "${fast[@]}" -o four.db --stats-file gpu_monitoring.json -- sleep 0.4 >out 2>err
status=$? what="gpulab record -- sleep 0.4"
expect_status 0
expect_err '^    0  Fake 90 +85% +12.5 GiB +100 W +[0-9.]+ J +40 °C +0%$'
expect_err '^    1  Fake 90 .* 100%$'
expect_err '^  GPU 1 was throttled: power limit$'
expect_err '^  These are simulated devices'
expect_err '^  See it again: gpulab top four.db$'
for command in "analyze summary" top; do # cut off before its first ticks, it says so
    head -c 9000 four.db >cut.db
    # shellcheck disable=SC2086 # several words
    run $command cut.db
    expect_status 2
    expect_err 'cut.db:? holds no samples: the file is cut off: 8.8 of '
done
cp gpu_monitoring_multi_gpu.json out
json '(len(d) > 3 and all(len(r["multi_gpu_data"]) == r["aggregate_stats"]["gpu_count"] for r in d) and
  {"gpu_index", "gpu_name", "utilization", "memory_used", "memory_total", "power"} <= set(d[0]["multi_gpu_data"][0]) and
  set(d[0]["aggregate_stats"]) == {"total_memory_used", "total_memory_total", "total_memory_percent",
    "average_utilization", "total_power", "max_temperature", "gpu_count"})'
json '(any([g["memory_used"] for g in r["multi_gpu_data"]] == [12800, 12750, 12825, 12780] and
  r["aggregate_stats"]["total_memory_used"] == 51155 and r["aggregate_stats"]["total_memory_total"] == 98304 for r in d))'
"$gpulab" export four.db --format multi >out
json 'any(r["aggregate_stats"]["total_memory_used"] == 51155 for r in d)'
"${fake[@]}" "$gpulab" record "${fast[@]}" -q -o more.db --stats-file gpu_monitoring -t 100ms --device cuda:2,cuda:3 2>err
cp gpu_monitoring.json out
json '([g for i, g in enumerate(r["gpu_index"] for r in d) if i == 0 or g != d[i - 1]["gpu_index"]] == [0, 2] and
  d[0]["memory_used"] == 12800 and "T" in d[0]["timestamp"])'
rows more.db '{r["index"] for r in d if r["kind"] == "gpu"} == {"2", "3"}'
env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=gpus=2; mig=1:2; sm=40" FAKE_CUDA_GPUS=2 \
    "$gpulab" record "${fast[@]}" --json -t 100ms -o mig.db >out 2>err \
    --device cuda:MIG-00000010-0000-0000-0000-0000000000cd
json '[(g["gpu_index"], g["instance"], g["ticks"] > 0) for g in d["mig_instances"]] == [(1, 0, True), (1, 1, True)]'
json '[g["gpu_index"] for g in d["gpus"]] == [1]'
run record "${fast[@]}" --demo --device cuda:1,3 -t 50ms -o demo.db
expect_status 0
expect_err '^    3  H200 '
expect_err '^  These are simulated devices'

# --- how it may end ---
"$gpulab" record "${host[@]}" -o term.db 2>err &
alone=$!
"$gpulab" record "${host[@]}" -o handed.db -- sleep 9 2>handed.err &
around=$!
until [ -s term.db ] && [ -s handed.db ] && pgrep -P $around >/dev/null; do sleep 0.02; done
sleep 0.1
kill -TERM $alone $around
wait $alone || fail "TERM: status $?: $(cat err)"
wait $around
[ $? = 143 ] || fail "TERM did not reach the command: $(cat handed.err)"
rows term.db 'len(d) > 1'
[ ! -e term.db-wal ] || fail "TERM: left term.db-wal"

# one that runs, or was killed, keeps its name, and what holds its samples is not to be removed
"$gpulab" record "${host[@]}" -o live.db 2>err &
live=$!
until [ "$("$gpulab" export live.db 2>/dev/null | wc -l)" -gt 1 ]; do sleep 0.05; done # samples are in it
run record "${host[@]}" -o live.db -t 50ms
expect_status 2
expect_err "live.db exists already, and process $live has it open: name another file"
kill -KILL $live
wait $live 2>/dev/null
run record "${host[@]}" -o live.db -t 50ms
expect_status 2
expect_err 'live.db exists already, and live.db-wal holds samples of it: name another file, and keep both'
run top live.db --once --summary live.db-wal
expect_status 2
expect_err 'live.db-wal is a database, .* never overwritten'
rows live.db 'len(d) > 0'
python3 -c 'import sqlite3; sqlite3.connect("none.db").execute("PRAGMA journal_mode = wal")' # killed at once
run export none.db
expect_status 2
expect_err 'none.db is not a recording: it is empty'

# a terminal's Ctrl-C: alone it ends the recording, a command decides for itself
python3 - "$gpulab" <<'END' || fail "Ctrl-C in a terminal"
import os, pty, sys
def begin(words):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1], "record", "--device", "cpu", "-i", "20ms"] + words)
    return pid, terminal
def press(pid, terminal, ready):
    seen = b""
    try:
        while ready not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
a = begin(["-o", "a.db"])
b = begin(["-o", "b.db", "--", "sh", "-c", "echo ready; exec sleep 9"])
c = begin(["-o", "c.db", "--", "sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done"])
results = [press(*a, b"recording into a.db"), press(*b, b"ready\r"), press(*c, b"ready\r")]
if results != [0, 130, 9]:
    print(results)
    sys.exit(1)
END

# --- CSV ---
"$gpulab" record "${host[@]}" --csv - -t 100ms -o csv.db >out 2>err || fail "--csv -: $(cat err)"
head -1 out | grep -q '^timestamp,elapsed_s,kind,index,' || fail "--csv -: no header line"
[ "$(wc -l <out)" -gt 3 ] || fail "--csv -: $(wc -l <out) lines"
"$gpulab" record "${host[@]}" --csv - -o piped.db 2>err | head -3 >out
[ "$(wc -l <out)" = 3 ] || fail "--csv - | head -3: $(cat out)"
# a busy machine is told that it takes samples of processes less often
if grep -v 'an interval of .* is too short here' err; then fail "--csv - | head -3: $(cat err)"; fi
"$gpulab" record "${host[@]}" --csv - -o left.db -- sh -c 'sleep 0.1; echo 1 >finished' 2>err | head -1 >out
[ -e finished ] || fail "the reader of the CSV took the command with it"
run record "${host[@]}" --csv lines.csv -t 50ms -o lines.db
expect_status 0
[ "$(wc -l <lines.csv)" -gt 3 ] || fail "--csv FILE: $(wc -l <lines.csv) lines"

# --- what is refused leaves nothing behind, and starts nothing ---
echo '{"foreign": true}' >foreign.json
mkdir clean && cd clean || exit 1
refuse() { # PATTERN ARGS...
    local pattern=$1
    shift
    run record "$@" -- touch ran
    expect_status 2
    expect_err "$pattern"
    [ -z "$(ls)" ] || { fail "$what: left $(ls)"; rm -f ./*; }
}
refuse 'interval=0: must be 1ms to 1h' --interval 0
refuse 'interval=10us: must be 1ms' --interval 10us
refuse 'no/such' -o no/such/x.db
refuse 'alone.db' -o ../alone.db
refuse 'no/such.json' --stats-file no/such -o x.db
refuse 'is not a list of records' --stats-file ../foreign -o x.db
refuse 'exists already' --csv ../alone.db -o x.db
refuse 'no/such.csv' --csv no/such.csv -o x.db --stats-file y
refuse 'both write to standard output' --csv - --json
refuse "unknown device 'nonsense'" --device cuda:0,nonsense
refuse "needs a file's name" -o ''
run record -o x.db --
expect_status 2
expect_err "no command follows"
run record sleep 1
expect_status 2
expect_err "put the command after '--': gpulab record -- sleep"
for words in "127 no-such-command" "127 ./no-such" "126 /etc/passwd" "126 /"; do
    run record -o x.db --stats-file y -- "${words#* }"
    expect_status "${words%% *}"
    expect_err "can't start '${words#* }'"
    [ -z "$(ls)" ] || { fail "$what: left $(ls)"; rm -f ./*; }
done
"${fake[@]}" "$gpulab" record -o x.db --device cuda:1,7 -- touch ran >"$work/out" 2>"$work/err"
status=$? what="gpulab record --device cuda:1,7"
expect_status 2
expect_err 'no GPU 7.*0, 1, 2 and 3'
[ -z "$(ls)" ] || fail "$what: left $(ls)"
cd ..

# --- what went on beside it ---

# killed: what is older than a second is there, and the JSON is whole
while [ $(($(date +%s%N) - began)) -lt 1500000000 ]; do sleep 0.05; done
kill -KILL $killed
wait $killed 2>/dev/null
rows killed.db 'len({r["elapsed_s"] for r in d}) > 5'
cp killed_multi_gpu.json out
json 'len(d) > 5'

# a full disk: told once, the command's status passed on, and the recording is one
wait $full
status=$? what="gpulab record on a full disk"
[ $status = 5 ] || fail "$what: status $status: $(cat full.err)"
[ "$(grep -c 'sampling continues' full.err)" = 1 ] || fail "$what: not told once: $(cat full.err)"
"$gpulab" export full.db >rows 2>full.err || grep -q 'full.db holds no samples' full.err ||
    fail "$what: $(cat full.err)"

# a driver that failed at first was asked again
wait $module || fail "module.db: $(cat module.err)"
grep -q 'no GPU is recorded yet: the NVIDIA driver is not loaded .*; retrying' module.err ||
    fail "module.db: $(cat module.err)"
rows module.db '{r["index"] for r in d if r["kind"] == "gpu"} == {"0", "1"}'
env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=fail=nvmlInit_v2:18" \
    "$gpulab" record "${fast[@]}" -q -t 50ms -o mismatch.db 2>err
grep -q 'only the host: NVML and the kernel.s driver differ in version' err || fail "mismatch: $(cat err)"

# a GPU that was lost has the energy of the time before, and 'analyze' says the same
wait $lost || fail "lost.db: $(cat lost.err)"
"$gpulab" analyze summary lost.db --json >lost_summary.json
python3 - lost.json lost_summary.json <<'PY' || fail "energy of a lost GPU"
import json, sys
recorded, analysed = (json.load(open(path)) for path in sys.argv[1:])
def find(value, key):
    if isinstance(value, dict):
        if isinstance(value.get(key), list) and value[key] and "energy_j" in value[key][0]:
            return value[key]
        value = list(value.values())
    for item in value if isinstance(value, list) else []:
        if found := find(item, key):
            return found
gpus = recorded["gpus"]
assert 60 < gpus[1]["energy_j"] < 150 < gpus[0]["energy_j"], gpus
assert gpus[1]["energy_estimated"], gpus
table = find(analysed, "gpus")
assert [round(g["energy_j"], 6) for g in gpus] == [round(g["energy_j"], 6) for g in table], (gpus, table)
PY
finish
