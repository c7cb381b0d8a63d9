#!/usr/bin/env bash
# label: build
# Every study that ships, on a simulated machine, small: its report's claims are data, each is marked as
# simulated, and none contradicts another.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
cd "$work" || exit 1

run run --json
studies=$(python3 -c 'import json, sys
print(*[s["study"] for s in json.load(open(sys.argv[1]))["studies"]])' "$work/out")
for study in $studies; do
    [ "$study" = test_matrix ] && continue # programs of the user's own
    case $study in
    contention | nccl_settings | quick_test | train_scaling) devices='[0,1]' ;;
    *) devices='[0]' ;;
    esac
    run run "$study" device=sim:l40s-10 "experiment.hardware.gpu_ids=$devices" experiment.repeat=2 \
        experiment.trace=false -q
    expect_status 0
    grep -q 'too noisy' "$work/out" && fail "$what: two runs are few, not noisy"
    run show --claims --json
    expect_status 0
    json 'd["warnings"] == []'
    json 'all(set(c) >= {"kind", "subject", "reference", "effect", "low", "high", "confidence", "runs", "verdict",
                         "bound", "scope", "simulated"} for c in d["claims"])'
    json 'all(c["simulated"] and c["verdict"] in ("yes", "no", "inconclusive", "not_tested")
              and "." in c["kind"] and "." not in c["subject"][-1:] for c in d["claims"])'
    json 'all(c["low"] <= c["effect"] <= c["high"] for c in d["claims"] if c["low"] is not None)'
    json 'all(c["runs"] > 1 for c in d["claims"] if c["verdict"] in ("yes", "no"))'
    json 'all(c["scope"] for c in d["claims"] if c["verdict"] != "not_tested")'
    json 'all(len(set(c["scope"])) == len(c["scope"]) for c in d["claims"] if c["kind"] != "stability.drift")'
    cp "$work/out" "$study.json"
done
python3 -c 'import json; assert len(json.load(open("numa_study.json"))["claims"]) > 10' || fail "numa_study has no claims"
run show numa_study --claims
expect_out '^ *Kind +Subject +Compared with +Effect +Runs +Verdict$'
rm -r "$work"/outputs/numa_*study/*/*/report && run show numa_study
grep -q '^  Report ' "$work/out" && fail "$what: names a report that isn't there"
run show numa_study --claims
expect_out '^ *numa.penalty +NUMA nodes at distance .* -?[0-9.]+% \[-?[0-9.]+, -?[0-9.]+\] +2 +[a-z]+$'
finish
