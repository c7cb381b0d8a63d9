#!/usr/bin/env bash
# Recordings analysed: files of other monitors, cut off ones too, folders, labels, and what is refused.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state
cd "$work" || exit 1

# monitor FILE FACTOR: four GPUs for a minute, memory 12800, 12750, 12825, 12780 MB times a factor
monitor() {
    mkdir -p "$(dirname "$1")"
    python3 - "$1" "$2" <<'PY'
import json, sys
path, factor = sys.argv[1], float(sys.argv[2])
records = []
for t in range(60):
    gpus = [{"gpu_index": g, "gpu_name": "NVIDIA A10G", "utilization": 84 + t % 3,
             "memory_used": round(m * factor) + (45 if t % 2 else -45), "memory_total": 24576,
             "power": 150 * factor, "temperature": 60 + g}
            for g, m in enumerate((12800, 12750, 12825, 12780))]
    records.append({"timestamp": "2026-01-15T10:30:%02d" % t, "multi_gpu_data": gpus})
json.dump(records, open(path, "w"), indent=1)
PY
}

# the published example, to the letter
monitor adamw_multi_gpu.json 1
run analyze balance adamw_multi_gpu.json
expect_status 0
expect_out '^The balance of 4 GPUs is excellent: CV 0.2% in memory'
expect_out '^    GPU 0: 12800\.0 MiB \(±45\.4\)$'
expect_out '^    GPU 1: 12750\.0 MiB \(±45\.4\)$'
expect_out '^    GPU 2: 12825\.0 MiB \(±45\.4\)$'
expect_out '^    GPU 3: 12780\.0 MiB \(±45\.4\)$'
expect_out '^    Total:  51155\.0 MiB$'
expect_out '^    Balance: CV = 0\.2% \(excellent\)$'
# given names that would steer the terminal, then they don't
sed $'s/NVIDIA A10G/\\\\u001b[2J\\\\u009b31mA10G/' adamw_multi_gpu.json >$'evil\e[31m.json'
run analyze balance $'evil\e[31m.json'
expect_status 0
expect_out '^evil\?\[31m \(4 × \?\[2J\?31mA10G, '
run export $'evil\e[31m.json' --format csv
expect_out ',\?\[2J\?31mA10G,'
run analyze balance adamw_multi_gpu.json --json
json 'd["recordings"][0]["name"] == "adamw" and abs(d["recordings"][0]["memory_total_mib"] - 51155) < 1e-6'
json 'd["recordings"][0]["memory_grade"] == "excellent" and len(d["recordings"][0]["windows"]) == 10'
run analyze balance adamw_multi_gpu.json gpus=[1] --json
json '"balance needs two" in d["answer"]'
run analyze balance adamw_multi_gpu.json --markdown
expect_out '^## adamw$'

# cut off in the middle: what is there is told, and that not all is
head -c 20000 adamw_multi_gpu.json >cut_multi_gpu.json
run analyze balance cut_multi_gpu.json
expect_status 0
expect_out '^    Balance: CV = 0\.2% \(excellent\)$'
expect_out '! read in part: '
rm cut_multi_gpu.json

# of processes alone, what was read is said; what needs more refuses it
printf '# gpu pid type sm mem enc dec command\n# Idx # C/G %% %% %% %% name\n 0 445 C 60 12 - - python3\n 0 445 C 57 11 - - python3\n' >pmon.txt
run analyze summary pmon.txt
expect_out '^pmon.txt: neither memory nor load of a GPU, but processes, in 1.0 s\.$'
run analyze balance pmon.txt
expect_status 2
expect_err 'pmon.txt: neither memory nor load of a GPU was recorded, but processes$'
printf '# gpu pwr\n# Idx W\n 0 60\n 0 70\n' >dmon.txt
run analyze summary dmon.txt
expect_out '^dmon.txt: 6[05].* in 1.0 s\.$'
rm pmon.txt dmon.txt

# a matrix: folders are labels, all files of a label count, what is no recording is left out
monitor matrix/gpt2_adamw/stats_1_multi_gpu.json 1
monitor matrix/gpt2_adamw/stats_2_multi_gpu.json 1.01
monitor matrix/gpt2_prune/stats_1_multi_gpu.json 0.8
monitor matrix/gpt2_prune/stats_2_multi_gpu.json 0.81
echo '{"lr": 0.1}' >matrix/gpt2_prune/config.json
run analyze summary matrix
expect_status 0
expect_err '1 file is not a recording'
expect_out '^4 recordings of 2 labels'
run analyze summary matrix --json
json '[(l["name"], l["recordings"]) for l in d["labels"]] == [("gpt2_adamw", 2), ("gpt2_prune", 2)]'
json 'abs(d["labels"][0]["duration_s"] - 118) < 1e-6 and len(d["labels"][0]["gpus"]) == 4'
run analyze memory matrix --json
json '[l["name"] for l in d["labels"]] == ["gpt2_prune", "gpt2_adamw"] and d["labels"][0]["change_verdict"] == "yes"'
run analyze compare matrix/gpt2_adamw matrix/gpt2_prune --json
expect_status 0
json '{m["metric"]: m["change_verdict"] for m in d["comparisons"][0]["metrics"]}["memory"] == "yes"'
json '{m["metric"]: m["change_verdict"] for m in d["comparisons"][0]["metrics"]}["utilization"] == "no"'
json 'len(d["comparisons"][0]["memory_histogram"]) == 10'
a=matrix/gpt2_adamw/stats_1_multi_gpu.json b=matrix/gpt2_adamw/stats_2_multi_gpu.json
run analyze compare one=$a two=$b bins=0
expect_status 0
expect_out '^two and one: inconclusive \(1 recording each\): utilisation '

# what is refused
refuse() {
    local pattern=$1
    shift
    run analyze "$@"
    expect_status 2
    expect_err "$pattern"
    [ ! -s "$work/out" ] || fail "$what: an error, but also output"
}
mkdir empty
echo 'no recording' >text.json
refuse 'PATH is missing.*or a recording' balance
refuse 'No such file' balance nowhere.json
refuse 'gpsu=.*no such key or file; did you mean gpus=' balance adamw_multi_gpu.json 'gpsu=[1]'
refuse 'before=nowhere.json: no such key or file' balance adamw_multi_gpu.json before=nowhere.json
refuse 'no recordings in empty' summary empty
refuse 'text.json' balance text.json
refuse 'text.json' balance adamw_multi_gpu.json text.json
refuse 'none of the GPUs that gpus= names' balance adamw_multi_gpu.json 'gpus=[9]'
refuse 'only adamw is there: name two' compare adamw_multi_gpu.json
refuse 'bins=-1' compare adamw_multi_gpu.json 'bins=-1'
mkdir study
cp "$source_dir/tests/fixtures/store/v2.db" study/study.db
refuse 'study.db holds no samples: nothing was recorded' balance study

finish
