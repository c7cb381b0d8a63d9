#!/usr/bin/env bash
# Files of released versions are read, listed, resumed and reported; newer ones are refused with the version
# that is needed. docs/COMPATIBILITY.md promises it.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state HOME=$work/home XDG_CACHE_HOME=$work/cache GPULAB_LOCK_DIR=$work
mkdir -p "$work/home" "$work/state/gpulab/studies" "$work/cache/gpulab" && cd "$work" || exit 1

# Every value of the old results.json is in what is shown now; of metrics that is each value, not their summary.
same_results() { # STUDY
    "$gpulab" export "$1" --json >now.json || fail "$1: no export"
    python3 - "$1/results.json" now.json <<'PY' || fail "$1: results differ from results.json"
import json, sys
old, new = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["runs"]
new = {run["run_id"]: run for run in new}
for run in old:
    metrics = {}
    for metric in new.get(run["run_id"], {}).get("metrics", []):
        metrics.setdefault((metric["name"], metric["rank"]), []).append(metric["value"])
    for one in run.pop("metric_summary", []): # since 0.2.0
        values = metrics.get((one["name"], one["rank"]), [0])
        if (min(values), max(values), len(values)) != (one["min"], one["max"], one["values"]):
            run["the summary of " + one["name"]] = one
bad = [(run["run_id"], key) for run in old for key in run
       if key not in new.get(run["run_id"], {}) or new[run["run_id"]][key] != run[key]]
for run_id, key in bad[:10]:
    print(f"{run_id}: {key}")
sys.exit(bool(bad) or not old)
PY
}

check_version() { # FOLDER of fixtures
    rm -rf v && cp -r "$1" v && chmod -R u+w v
    local study first entries=0
    for study in v/*/study.db; do
        study=$(dirname "$study")
        entries=$((entries + 1)) # one file for each study
        printf %s "$(realpath "$study")" >"$work/state/gpulab/studies/$(printf %016x "$entries")"
        run show "$study"
        expect_status 0
        expect_out 'runs succeeded'
        same_results "$study"
        run report "$study" --format all
        expect_status 0
        [ -s "$study/report/index.html" ] || fail "$what: no page"
        run export "$study" --what iterations
        expect_status 0
    done
    run list --json
    json 'len(d["studies"]) == 4 and all(s["runs"]["done"] > 0 == s["runs"]["planned"] + s["runs"]["failed"] for s in d["studies"])'
    run analyze numa v/numa
    expect_status 0
    run analyze training v/training
    expect_status 0
    run analyze contention v/contention
    expect_status 0
    run show v/program
    expect_out 'loss'

    # the interrupted study goes on where it stopped: what was done stays
    first=$(sqlite_rows "$(echo v/interrupted/*/*/*/study.db)")
    (cd v/interrupted && mkdir outputs && mv quick_test outputs &&
        "$gpulab" run quick_test device=sim:l40s-10 numa_nodes=[0] experiment.repeat=2 experiment.trace=false --json) \
        >"$work/out" 2>"$work/err"
    status=$?
    what="gpulab run, resumed from $1"
    expect_status 0
    json 'd["resumed"] and d["summary"]["successful_runs"] == 6 and d["summary"]["failed_runs"] == 0'
    sqlite_rows "$(echo v/interrupted/outputs/*/*/*/study.db)" >after
    [ "$first" ] || fail "$what: the fixture has no finished run"
    while read -r row; do
        grep -qxF -- "$row" after || fail "$what: a finished run was repeated: $row"
    done <<<"$first"

    run analyze summary v/recording.db
    expect_status 0
    run report v/recording.db
    expect_status 0
    run top --once v/recording.db
    expect_status 0
    run export v/recording.db
    expect_status 0
    cp v/tuning.db "$work/cache/gpulab/tuning.db"
    run cache list tuning --json
    json '[t["kernel"] for t in d["tunings"]] == ["cpu softmax 1"]'
    rm "$work"/state/gpulab/studies/*
}

# An unfinished study of 0.1.0, whose default was one run of each point: the same command goes on with
# that plan in its folder. It is made by --quick, whose word 0.1.0 did without.
check_old_default() {
    local words=(numa_study device=sim:l40s-10 'experiment.hardware.gpu_ids=[0]'
        'experiment.vit_configs=[{patch_size:32,depth:0}]' experiment.trace=false --no-report output_dir=old)
    run run "${words[@]}" --quick
    expect_status 0
    python3 - old/*/*/*/study.db <<'PY' || fail "the study of the old default can't be made"
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
words = json.loads(db.execute("SELECT words FROM study").fetchone()[0])
words.remove("experiment.repeat=1")
db.execute("UPDATE study SET words = ?", (json.dumps(words),))
db.execute("UPDATE run SET state = 'planned' WHERE id LIKE '%numa2%'")
db.commit()
PY
    first=$(sqlite_rows "$(echo old/*/*/*/study.db)")
    # one that repeats by the user's own word is another study
    run run "${words[@]}" experiment.repeat=5 --json
    expect_status 0
    json 'not d["resumed"] and d["summary"]["successful_runs"] == 10'
    run run "${words[@]}" --json
    expect_status 0
    json 'd["resumed"] and d["summary"]["successful_runs"] == 2'
    json 'sorted(r["run_id"] for r in d["runs"]) == ["gpu0_numa0_vit0x0x0", "gpu0_numa2_vit0x0x0"]'
    sqlite_rows "$(python3 -c 'import json; print(json.load(open("out"))["folder"])')/study.db" >after
    [ "$(wc -l <after)" = 2 ] || fail "$what: not two runs: $(cat after)"
    grep -qxF -- "$first" after || fail "$what: a finished run was repeated: $first"
    # it is finished: the same command starts one with five runs of each point
    run run "${words[@]}" --json
    json 'not d["resumed"] and d["summary"]["successful_runs"] == 10'
}

# A default has changed since a study was interrupted: it stays, and the line that resumes it is printed.
check_changed_default() {
    local words=(quick_test device=sim:l40s-10 experiment.trace=false --no-report -q output_dir=changed)
    run run "${words[@]}" 'experiment.hardware.numa_nodes=[2]'
    python3 - changed/*/*/*/study.db <<'PY' || fail "the study of the other default can't be made"
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
words = json.loads(db.execute("SELECT words FROM study").fetchone()[0])
words = [word for word in words if "numa_nodes" not in word]
db.execute("UPDATE study SET words = ?", (json.dumps(words),))
db.execute("UPDATE run SET state = 'planned' WHERE id LIKE '%vit0x0x0'")
db.commit()
PY
    run run "${words[@]}" --json
    json 'not d["resumed"]'
    expect_err "unfinished and has other defaults.*resume it: gpulab run quick_test .*'experiment.hardware.numa_nodes=\[2\]'$"
    run run "${words[@]}" 'experiment.hardware.numa_nodes=[2]' --json
    json 'd["resumed"]'
}

sqlite_rows() { # study.db: the finished runs and when they began
    python3 - "$1" <<'PY'
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(
        "SELECT id, start_wall_ns FROM run WHERE state = 'done' ORDER BY id"):
    print(*row)
PY
}

versions=0
for folder in "$source_dir"/tests/fixtures/[0-9]*/; do
    [ -d "$folder" ] || continue
    check_version "$folder"
    versions=$((versions + 1))
done
[ "$versions" -ge 1 ] || fail "no fixtures of a release"

check_old_default
check_changed_default

# files of a later version name the version that reads them
python3 - <<'PY'
import sqlite3
for path, sql in (("v/numa/study.db", "UPDATE study SET version = '9.8.7'"),
                  ("v/recording.db", "UPDATE recording SET maker = 'gpulab 9.8.7'")):
    db = sqlite3.connect(path)
    db.execute(sql)
    db.execute("PRAGMA user_version = 77")
    db.commit()
PY
run show v/numa
expect_status 2
expect_err 'written by gpulab 9\.8\.7 \(file version 77\).*Use gpulab 9\.8\.7 or later'
run analyze summary v/recording.db
expect_status 2
expect_err 'written by gpulab 9\.8\.7 \(file version 77\).*Use gpulab 9\.8\.7 or later'

# objects of --json say which schema they follow
for words in help version list devices "bench null" "show v/training" "status v/training" \
    "analyze training v/training" "cache list tuning" "run --list" "run quick_test --cfg job" \
    "run quick_test --dry-run" "top --demo --once" "help run" \
    "export v/training" "export $folder/recording.db"; do
    # shellcheck disable=SC2086 # words
    run $words --json
    expect_status 0
    json 'd["schema"] == 1 and next(iter(d)) == "schema"'
done
run show nothing_of_this_name --json
json 'd["schema"] == 1 and "error" in d'
finish
