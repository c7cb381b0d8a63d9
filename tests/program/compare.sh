#!/usr/bin/env bash
# label: build
# gpulab compare: simulated studies with and without a planted slow-down, baselines, other benchmarks' files,
# commands in turn; and studies of one machine pooled.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
build_dir=$(realpath "$3")
cd "$work" || exit 1
mkdir -p conf/machine conf/experiment
sed 's/fp32: 52,/fp32: 49.4,/' "$source_dir/conf/machine/l40s-10.yaml" >conf/machine/slow.yaml # 5% less
cat >conf/experiment/speed.yaml <<'END'
defaults: [_base, _self_]
name: speed
workload: gemm
hardware: {gpu_ids: [0, 1]}
repeat: 5
trace: false
test: {num_samples: 100, warmup_samples: 5}
axes: [hardware.gpu_ids]
gemm: {m: 4096, n: 4096, k: 4096}
END
study() { # FOLDER MACHINE SEED [WORD...]
    run run speed --config-dir conf "output_dir=$1" "device=sim:$2" "seed=$3" "${@:4}" -q
    expect_status 0
}

# one machine, other seeds: the same, with a bound; a machine file with 5% less: slower by 5%
for seed in 1 2 3; do
    study "a$seed" l40s-10 "$seed"
    study "b$seed" slow "1$seed"
    run compare "a$seed" "b$seed" --json --fail-above 2%
    expect_status 3
    json 'd["verdict"] == "slower" and d["simulated"] and d["claims"][0]["kind"] == "compare.pooled"'
    json 'd["comparisons"][0]["ratio_low"] <= 0.95 <= d["comparisons"][0]["ratio_high"]'
    json '[c["kind"] for c in d["claims"][1:]] == ["compare.point"] * 2 and d["claims"][1]["runs"] == 5'
done
run compare a1 a2 --fail-above 2%
expect_status 0
expect_out '^No difference larger than [01]\.[0-9]% in throughput between B and A \(5 runs each\)\.$'
expect_out '^ *No slow-down above 2% shown; pooled, at most [01]\.[0-9]%\.$'
expect_out '^ *config: seed +1 +2$'
run compare a1 b1 --fail-above 9%
expect_status 0
expect_out '^ *machine: simulated +sim:l40s-10 +sim:slow$'
run compare a1 b1 --fail-above 2% --markdown
expect_status 3
expect_out '^Slow-down above 2% shown: B.*: [45]\.[0-9]% lower throughput than A \(95% CI'
expect_out '^\| Device \| A \| B \| Change, 95% CI \| Verdict \|$'
expect_out '^\| GPU [01] \| [0-9.]+ \| [0-9.]+ \| −[45]\.[0-9]% .* \| slower \|$'
run compare a1 a2 b1
expect_out '^C, compared with A$'

# missing points; what only one of them has
study one l40s-10 7 'experiment.hardware.gpu_ids=[1]'
run compare a1 one
expect_status 0
expect_out '^ *Only in A: 1 point: GPU 0\.$'
run compare one a1 --json
json '[p["axes"] for p in d["comparisons"][0]["points"]] == [{"device": "GPU 1"}]'
json 'd["comparisons"][0]["added"] == ["GPU 0"] and d["comparisons"][0]["missing"] == []'

# baselines outlive the study
run compare --save main a1
expect_status 0
run compare --save main a1
expect_err "baseline 'main' replaced: gpulab compare main STUDY"
run compare --save 'of main' a1
expect_err "gpulab compare 'of main' STUDY"
run compare --remove 'of main'
run compare --list --json
json '[(b["name"], b["points"]) for b in d["baselines"]] == [("main", 2)]'
mv a1 gone
run compare main b1
expect_out '^speed: [45]\.[0-9]% lower throughput than main \(95% CI'
mv gone a1
run compare --save speed a1
expect_err 'speed is a study.s name: choose another name'
run compare --save ../x a1
expect_status 2
run compare --remove main
expect_status 0
run compare --remove main
expect_err "no baseline 'main'"

# studies of one machine are pooled; others are not
run analyze peers a1 a2 --json
expect_status 0
json '[v["runs"] for v in d["studies"][0]["devices"]] == [10, 10]'
run analyze peers a1 b1
expect_status 2
expect_err 'ran on different machines \(simulated: sim:l40s-10, sim:slow\): gpulab compare shows'
study other l40s-10 7 'experiment.test.num_samples=50'
run analyze peers a1 other
expect_err 'ran .* with different settings \(num_samples: 100, 50\)'

# recordings of studies are pooled, whatever the runs did: which is said
run analyze compare a1 a2
expect_err "pooled; 'gpulab compare a1 a2' matches points"

# a report of several matches them as well, throughput first, named by what keeps them apart
run report a1 b1 -o several
expect_status 0
expect_out '^b1: [45]\.[0-9]% lower throughput than a1'
grep -q '^Different machines (simulated: sim:l40s-10, sim:slow)' several/report.md || fail "$what: no machines"
grep -q '^| GPU [01] | [0-9.]* iterations/s ' several/report.md || fail "$what: no row of its points"
run report before=a1 after=a2 -o several --json
json 'd["analyses"][0]["claims"][0]["kind"] == "compare.pooled" and d["title"] == "before and after"'
study twice l40s-10 1
study twice l40s-10 2
# shellcheck disable=SC2046 # two words
run report $(echo twice/speed/*/*) -o times
expect_status 0
expect_out 'speed 20[0-9-]*/[0-9-]+'

# programs: what they report is compared, and what failed in B is no missing point
cat >p.sh <<'END'
[ "$1" = "$FAILS" ] && exit 4
sleep 0.02
echo "Final loss $LOSS"
END
program() { # FOLDER LOSS FAILS
    LOSS=$2 FAILS=$3 run run test_matrix 'experiment.command="sh ./p.sh {lr}"' '~experiment.matrix' \
        '+experiment.matrix.lr=[1,2]' device=cpu repeat=3 experiment.max_retries=0 --no-report -q "output_dir=$1"
}
program low 0.1 none
program high 0.9 none
program cut 0.1 2
run compare low high --fail-above 50% --json
expect_status 3
json '[(c["kind"], c["quantity"], c["verdict"]) for c in d["claims"]][1] == ("compare.reported", "final_loss", "yes")'
json '"higher final_loss than" in d["answer"]'
json 'sorted(p["verdict"] for p in d["comparisons"][0]["points"] if p["quantity"] == "final_loss") == ["worse"] * 2'
run compare low cut --fail-above 500%
expect_status 3
expect_out '^ *Failed in cut: 1 point that low has\.$|^ *Failed in B: 1 point that A has\.$'
expect_out '^ *! Failed in B, not compared: lr2'

# other benchmarks
files=$source_dir/tests/fixtures/compare
cp "$files"/*.json .
run compare "$files/nvbench_a.json" "$files/nvbench_b.json" --json
json 'd["verdict"] == "inconclusive" and abs(d["comparisons"][0]["ratio"] - 1.1) < 1e-9'
json 'd["comparisons"][0]["added"] == ["Elements 16777216"]'
run compare "nccl_a.json,$files/nccl_a.json" "nccl_b.json,$files/nccl_b.json"
expect_out '^B: 20\.0% shorter time than A'
expect_out '^  A  nccl_a.json,'
run compare "nvbandwidth_a.json,$files/nvbandwidth_a.json" \
    "nvbandwidth_b.json,$files/nvbandwidth_b.json" --fail-above 5%
expect_status 3
expect_out '10\.0% lower performance than'
expect_out '^ *software: driver +550\.54 +560\.28$'
echo '{"results": [1' >cut.json
run compare cut.json "$files/nccl_a.json"
expect_status 2
expect_one_line
run compare "$files/nccl_a.json" "$files/nvbench_a.json"
expect_err 'share no point: they ran or timed different things'
run compare "$files/nccl_a.json," a1
expect_err 'an empty name'
run compare nccl_a.json,nccl_a.json nccl_b.json
expect_err 'nccl_a.json is named twice: one run counts once'
sed 's/"nwrong": 0/"nwrong": 7/' nccl_b.json >wrong.json
run compare nccl_a.json wrong.json
expect_out '^ *! Failed in wrong.json, not compared: size 8, '
run compare a1 a1
expect_status 0
expect_out '^B and A have identical values at all points \(2\): copies, or simulations with one$'
run compare a1,b1 a2
expect_err 'a1,b1: runs of different machines \(simulated: sim:l40s-10, sim:slow\)'
run compare a1,a2 a3 --json
json 'd["claims"][0]["runs"] == 5 and len(d["sets"][0]["points"][0]["values"]) == 10'
run compare a1
expect_err 'A and B are missing: gpulab compare A B'
run compare a1 a2 --fail-above 2
expect_err 'write a percentage, such as 2%'

# commands in turn; the machine may be busy, so only what takes far longer has a verdict
run compare --runs 4 --json -o ab.json -- sleep 0.02 -- sleep 0.02
expect_status 0
run compare ab.json --json
json 'len(d["sets"]) == 2 and d["sets"][0]["points"][0]["blocks"] == [0, 1, 2, 3]'
json 'd["verdict"] in ("same", "slower", "faster", "inconclusive") and d["claims"][0]["runs"] == 4'
run compare --runs 6 --fail-above 100% --json -- sh -c 'echo A >>order' -- sh -c 'echo B >>order; sleep 0.3'
expect_status 3
json 'd["verdict"] == "slower" and [r["command"] for r in d["runs"]] == list("ABBA" * 3)'
[ "$(tr -d '\n' <order)" = ABABBAABBAABBA ] || fail "order: $(tr -d '\n' <order)"
env "LD_LIBRARY_PATH=$build_dir/fake" "GPULAB_FAKE_NVML=gpus=1; power=100" "$gpulab" compare --runs 2 \
    -- sleep 0.25 -- sleep 0.25 >"$work/out" 2>"$work/err" || fail "with a GPU: $(cat "$work/err")"
expect_out '^ *0 +A +[0-9]+ +100\.0 W +[0-9]+ °C$'
run compare -- true -- sh -c 'echo no such file >&2; exit 4'
expect_status 1
expect_err 'B: sh ended with status 4: no such file'
run compare -- true -- /nonexistent/x
expect_err "B: .*/nonexistent/x"
run compare -- true
expect_err 'two commands are needed: gpulab compare -- COMMAND -- COMMAND'
finish
