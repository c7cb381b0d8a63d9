#!/usr/bin/env bash
# tune.sh: `gpulab tune` finds, keeps and shares configurations; bench and run use them; what was begun
# goes on; what can't be is refused.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash"

export XDG_CACHE_HOME=$work/cache
small=(flash_attention_v2 batch=1 heads=1 seq=48)

# the kernels there are
run tune
expect_status 0
expect_out 'flash_attention_v2'
expect_out 'gemm'
expect_out 'softmax'
run tune --json
json '{k["kernel"] for k in d["kernels"]} == {"flash_attention_v2", "gemm", "softmax"}'

# a tuning, as JSON with the published fields
run tune "${small[@]}" --device cpu:0 --budget 0.5s --json
expect_status 0
json 'd["kernel_name"] == "flash_attention_v2" and d["gpu"] == "cpu:0"'
json 'set(d["best_config"]) == {"block_q", "block_k"} and d["best_time_ms"] > 0'
# how many of them the budget is enough for depends on what else the machine does
json 'len(d["configurations"]) == 3 and 1 <= d["num_configs_tested"] <= 3'
json 'len(d["all_benchmark_times"]) == sum(c["state"] == "measured" for c in d["configurations"])'
json 'all(t["timestamp"] > 1.6e9 and t["time_ms"] > 0 for t in d["detailed_timings"])'
json 'd["autotune_duration_seconds"] > 0 and d["from_cache"] is False'
json 'd["winner_is_certain"] == (len(d["indistinguishable"]) == 1)'
[ "$(stat -c %a "$work/cache" "$work/cache/gpulab" | uniq)" = 700 ] || fail "others can read the cache"
best=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["best_config_text"])' "$work/out")

# the same command answers from the cache; so does bench, which says so
run tune "${small[@]}" --device cpu:0 --json
json "d['from_cache'] and d['best_config_text'] == '$best'"
run tune "${small[@]}" --device cpu:0
expect_out 'was tuned on'
run cache list tuning
expect_out "$best"
run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits
expect_status 0
expect_out "Configuration +$best, as tuned"
run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits config=default --json
json 'd["config"]["config"] == "default"'
run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits 'config="block_q=32,block_k=64"' --json
json 'd["config"]["config"] == "block_q=32,block_k=64"'

# shared with another user
run cache export tuning "$work/tuned.json"
expect_out 'Wrote 1 tuning'
run cache clear tuning
expect_out 'Removed 1 tuning'
run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits
expect_out 'Configuration +the default'
run cache import tuning "$work/tuned.json"
expect_out 'Imported 1 of 1'
run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits
expect_out "Configuration +$best, as tuned"
# the published fields are there, though the other machine's times are not
run tune "${small[@]}" --device cpu:0 --json
json 'd["from_cache"] and d["gpu"] == "cpu:0" and set(d["best_config"]) == {"block_q", "block_k"}'
json '{"all_benchmark_times", "detailed_timings", "num_configs_tested", "autotune_duration_seconds"} <= set(d)'

# a cache that can't be written answers all the same
mkdir "$XDG_CACHE_HOME/gpulab/tuning.db.lock.folder"
mv "$XDG_CACHE_HOME/gpulab/tuning.db.lock" "$work/lock"
mv "$XDG_CACHE_HOME/gpulab/tuning.db.lock.folder" "$XDG_CACHE_HOME/gpulab/tuning.db.lock"
run tune "${small[@]}" --device cpu:0 --json
json 'd["from_cache"] and d["lookup_ms"] > 0'
rmdir "$XDG_CACHE_HOME/gpulab/tuning.db.lock"

# one that can't be read: nothing is known of what was tuned, which is said
mkdir -p "$work/folder/gpulab/tuning.db"
XDG_CACHE_HOME=$work/folder run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits
expect_status 0
expect_out "Configuration +the default, since the cache of tuned ones can't be read"

# what was tuned for another shape of the class and can't do this one is no answer
python3 - "$XDG_CACHE_HOME/gpulab/tuning.db" <<'EOF'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE entry SET config = 'block_q=512,block_k=64'")
db.commit()
EOF
run tune "${small[@]}" --device cpu:0 --budget 0.1s --warm --json
json 'not d["from_cache"] and d["warm"] and d["best_config"]["block_q"] < 512'

# nor is one with warm caches where empty ones are asked for
run tune "${small[@]}" --device cpu:0 --budget 0.1s --json
json 'not d["from_cache"] and not d["warm"]'

# a cache of another version is set aside with a note, and the tuning goes on
python3 - "$XDG_CACHE_HOME/gpulab/tuning.db" <<'EOF'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('PRAGMA user_version = 9')
db.commit()
EOF
run bench "${small[@]}" --device cpu:0 --iterations 5 --no-limits
expect_out 'Warning: .*of version 9'
run tune "${small[@]}" --device cpu:0 --budget 0.3s
expect_status 0
expect_err 'version 9.*set aside as'
[ -f "$XDG_CACHE_HOME/gpulab/tuning.db.old" ] || fail "nothing was set aside"

# Ctrl-C keeps what is known, and the same command goes on
trials() {
    python3 - "$XDG_CACHE_HOME/gpulab/tuning.db" <<'EOF'
import sqlite3, sys
print(sqlite3.connect(sys.argv[1], timeout=5).execute('SELECT count(*) FROM trial').fetchone()[0])
EOF
}
env --default-signal=INT "$gpulab" tune softmax rows=300 columns=100 --device cpu:0 --budget 60s \
    >"$work/out" 2>"$work/err" </dev/null &
pid=$!
for _ in $(seq 100); do
    [ "$(trials)" -ge 3 ] && break
done
kill -INT "$pid"
wait "$pid"
status=$?
what='gpulab tune, interrupted'
expect_status 130
[ "$(trials)" -ge 3 ] || fail "nothing was kept of an interrupted tuning"
run tune softmax rows=300 columns=100 --device cpu:0 --budget 0.5s
expect_status 0
[ "$(trials)" = 0 ] || fail "a tuning that came to its end left $(trials) trials"

# two tuners of the same at once: one waits for the other and takes its answer
"$gpulab" tune "${small[@]}" causal=true --device cpu:0 --budget 0.5s --json >"$work/first" &
pid=$!
run tune "${small[@]}" causal=true --device cpu:0 --budget 0.5s --json
expect_status 0
wait "$pid" || fail "the first of two tuners failed: $(cat "$work/first")"
json "d['from_cache'] != json.load(open('$work/first'))['from_cache']"
run cache list tuning --json
json 'len(d["tunings"]) >= 3'

# what can't be
refuse() { # PATTERN ARGS...
    local pattern=$1
    shift
    run "$@"
    expect_status 2
    expect_err "$pattern"
    expect_one_line
}
refuse "unknown kernel 'softmx' \(did you mean 'softmax'\?\)" tune softmx
refuse 'memcpy has nothing to tune; the kernels are' tune memcpy
refuse 'strategy' tune softmax --strategy greedy
refuse 'budget' tune softmax --budget 0
refuse 'must be 64, 96, 128 or 256' tune flash_attention_v2 head_dim=80
refuse 'not a multiple' tune flash_attention_v2 heads=3 kv_heads=2
refuse 'the tuner itself chooses' tune softmax config=default
refuse 'rows' tune softmax rows=0
refuse 'there is no NUMA node 7' tune softmax --device cpu:7
run tune softmax dtype=bf16 --device cpu:0
expect_status 1
expect_err 'no configurations of softmax in bf16'
expect_one_line
run bench softmax rows=8 columns=8 'config="rows=1024"' --device cpu:0
expect_status 1
expect_err 'there are only 8 rows'
run bench softmax 'config="block=3"' --device cpu:0
expect_status 2
expect_err "'block' is not a parameter of cpu softmax, which has rows, stream and part"
finish
