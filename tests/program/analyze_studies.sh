#!/usr/bin/env bash
# Studies analysed: by folder, by name, several at once; what they lack is said.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
small=(device=cpu:0 experiment.trace=false experiment.test.memory_size_mb=16 experiment.test.warmup_samples=5
    'experiment.test.tensor_shape=[3,32,32]' experiment.test.num_samples=50)

run run quick_test "${small[@]}" experiment.repeat=2
expect_status 0
folder=$(ls -d outputs/quick_test/*/*)

# one device, one node: nothing to compare, but the rest is told
run analyze numa "$folder"
expect_status 0
expect_out '^Not tested: (each device was bound to|this machine has) one NUMA node'
expect_out 'vit32x4x512 .* 2 +reference'
run analyze numa quick_test --json
expect_status 0
json 'd["analysis"] == "numa" and len(d["devices"]) == 1 and d["devices"][0]["name"] == "cpu:0"'
json 'len(d["devices"][0]["penalties"]) == 3 and d["devices"][0]["device_node"] == 0'
json 'all(p["distance"] == 10 and p["runs"] == 2 and p["change_verdict"] == "not_tested" for p in d["devices"][0]["penalties"])'
json '[p["model"] for p in d["devices"][0]["penalties"]] == ["vit0x0x0", "vit32x2x256", "vit32x4x512"]'

# stages are read: the model that only copies is transfer-bound
run analyze crossover "$folder" --json
expect_status 0
json 'd["groups"][0]["name"] == "cpu:0, NUMA node 0"'
json '{m["model"]: m["bound_by"] for m in d["groups"][0]["models"]}["vit0x0x0"] == "transfer"'
json 'all(m["runs"] == 2 and m["transfer_ms"] > 0 for m in d["groups"][0]["models"])'
json 'all(m["compute_ms"] > 0 for m in d["groups"][0]["models"] if m["model"] != "vit0x0x0")'
run analyze crossover "$folder/study.db" --markdown
expect_status 0
expect_out '^# Crossover'
expect_out '^\| vit32x4x512 \|'

# studies of one kind and machine are pooled; a folder above means all below; the same one twice is one
run run quick_test "${small[@]}" experiment.repeat=1
expect_status 0
run analyze numa outputs --json
expect_status 0
json 'len(d["devices"]) == 1 and all(p["runs"] == 3 for p in d["devices"][0]["penalties"])'
run analyze numa "$folder" "$folder/" --json
json 'len(d["devices"]) == 1'

# copies of a study count once, under any name; a label makes no study of its own of one
cp -r "$folder" copy
for words in "$folder copy" "before=$folder after=copy"; do
    # shellcheck disable=SC2086
    run analyze numa $words --json
    expect_status 0
    json 'len(d["devices"]) == 1 and all(p["runs"] == 2 for p in d["devices"][0]["penalties"])'
    json 'any("copy holds copies of 6 runs" in n and n.startswith("Warning: ") for n in d["notes"])'
done

# a recording of another time, laid beside: it is said, and the rest is done
printf 'timestamp,gpu,pcie_rx_mb,pcie_tx_mb\n1763200000.1,0,5,6\n1763200000.2,0,7,8\n' >pcie.log
run analyze correlate "$folder" pcie.log --json
expect_status 0
json 'any("pcie.log was recorded from" in n and "none of the runs" in n for n in d["notes"])'
run analyze numa pcie.log
expect_status 2
expect_one_line

# what tuners left, held against each other
for phase in baseline concurrent; do
    printf '{"kernel_name": "gemm", "best_time_ms": %s, "best_config": {"tile": %s}}' \
        $((${#phase} - 6)) $((${#phase} * 8)) >${phase}_gpu1.json
done
run analyze variance baseline_gpu1.json concurrent_gpu1.json --json
expect_status 0
json 'd["phases"][0]["comparisons"][0]["device"] == "GPU 1" and d["phases"][0]["comparisons"][0]["chosen"] == "other"'
json 'any("no single timings" in n for n in d["notes"])'

# what is none, or empty
run analyze numa no_such_study
expect_status 2
expect_one_line
mkdir empty
run analyze numa empty
expect_status 2
expect_one_line
expect_err "no study in empty: a study's folder holds study.db"
run analyze crossover
expect_status 2
expect_err "PATH is missing: gpulab analyze crossover PATH..., e.g. a study's folder or its name"
head -c 3000 "$folder/study.db" >empty/study.db
run analyze numa empty
expect_status 1
expect_one_line
run help analyze numa
expect_status 0
expect_out 'which NUMA node to bind each device to'
finish
