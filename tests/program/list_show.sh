#!/usr/bin/env bash
# Studies that lie about: all of them, one of them, its runs, one run, its config; and what is refused.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state TZ=UTC

run list
expect_status 0
expect_out 'gpulab run'
run list --json
json 'd == {"schema": 1, "known": 0, "studies": []}'
run show
expect_status 2
expect_err "gpulab run quick_test"
expect_one_line

# three studies of this user, as the program notes them: a file that holds the path
study=$work/outputs/numa_locality_study/2026-11-15/10-42-03
for folder in "$study" "$work/outputs/numa_locality_study/2026-11-14/09-00-00" \
    "$work/elsewhere/quick_test/2026-11-13/09-00-00_2"; do
    mkdir -p "$folder/logs" "$XDG_STATE_HOME/gpulab/studies"
    cp "$source_dir/tests/fixtures/store/v2.db" "$folder/study.db"
    name=$(printf %s "$folder" | sha256sum | cut -c1-16)
    printf %s "$folder" >"$XDG_STATE_HOME/gpulab/studies/$name"
done
before=$(sha256sum <"$study/study.db")
cd "$work" || exit 1

# --- list ---
export COLUMNS=200
run list
expect_status 0
expect_out '^ *Study +Started +Runs +State +Folder'
[ "$(grep -c '2/3' "$work/out")" = 3 ] || fail "$what: $(cat "$work/out")"
grep -o '20..-..-../..-..-..' "$work/out" | sort -r | diff - <(grep -o '20..-..-../..-..-..' "$work/out") ||
    fail "$what: not the newest first"
expect_out ' outputs/numa_locality_study/2026-11-15/10-42-03$'
run list --limit 1
expect_out '2026-11-15/10-42-03'
expect_out '^2 older ones: gpulab list --all'
run list -n 1 --all --json
json 'd["known"] == 3 and len(d["studies"]) == 3'
json 'd["studies"][0]["path"].endswith("2026-11-15/10-42-03") and d["studies"][0]["study"] == "numa_locality_study"'
json 'd["studies"][0]["runs"] == {"planned": 0, "running": 1, "done": 1, "failed": 1}'
json 'd["studies"][0]["running"] is False and d["studies"][0]["holder"] is None'
run list --limit 0
expect_status 2
unset COLUMNS

# one that can't be read is named, the others are listed; one that was removed is forgotten
echo 'no database' >"$work/outputs/numa_locality_study/2026-11-14/09-00-00/study.db"
rm -r "$work/elsewhere/quick_test"
run list
expect_status 0
expect_out '2026-11-15/10-42-03'
expect_err '2026-11-14/09-00-00/study.db'
[ "$(wc -l <"$work/err")" = 1 ] || fail "$what: $(cat "$work/err")"
[ "$(find "$XDG_STATE_HOME/gpulab/studies" -type f | wc -l)" = 2 ] || fail "a removed study is still known"

# --- show ---
for word in "" "$study" outputs/numa_locality_study/2026-11-15/10-42-03/study.db numa_locality_study \
    numa_study numa_locality_study/2026-11-15 outputs; do
    # shellcheck disable=SC2086 # none or one
    run show $word
    expect_status 0
    expect_out '1 of 3 runs succeeded'
    expect_out 'outputs/numa_locality_study/2026-11-15/10-42-03'
done
run show --json
json 'd["study"] == "numa_locality_study" and d["summary"]["total_runs"] == 3'

COLUMNS=140 run show --runs
expect_status 0
expect_out '^ *Run +Device +Node +State +Took +Rate'
[ "$(wc -l <"$work/out")" = 5 ] || fail "$what: $(cat "$work/out")"
expect_out '^  gpu0_gpu1_numa0_numa3_vit32x6x512 +cpu:0/2.0[+]cpu:0/2.1 .*done .*850 samples/s'
expect_out ' interrupted'
run show --runs # a name says the device, too; it isn't cut for it
expect_out '^ *Run +State +Took +Rate'
expect_out '^  gpu0_gpu1_numa0_numa3_vit32x6x512 +done .*850 samples/s'
run show --runs --json
json '[r["state"] for r in d["runs"]] == ["done", "failed", "running"] and d["study"]["option"] == "numa_study"'

run show --run gpu0_gpu1_numa0_numa3_vit32x6x512
expect_status 0
expect_out '^gpu0_gpu1_numa0_numa3_vit32x6x512.*: done, 850 samples/s'
expect_out 'Logs +outputs/.*/logs/gpu0_gpu1_numa0_numa3_vit32x6x512.stdout'
expect_out 'cpu:0/2.1'
expect_out '^ *loss +all +1 +3.25'
run show --run gpu0_gpu1_numa0_numa3_vit32x6x512 --json
json 'd["run_id"] == "gpu0_gpu1_numa0_numa3_vit32x6x512" and d["metrics"][0]["value"] == 3.25'
run show --run gpu0_gpu1_numa0_numa3_vit32x6x51
expect_status 2
expect_err "did you mean 'gpu0_gpu1_numa0_numa3_vit32x6x512'"
expect_one_line

run show --config
expect_status 0
expect_out '^experiment:'
run show --config --json
json '"experiment" in d'

# every claim of its report, as a table and as data
run show --claims
expect_status 0
run show --claims --json
json '(d["claims"] and all({"kind", "subject", "reference", "effect", "low", "high", "confidence", "runs",
                            "verdict", "bound", "scope", "simulated"} <= c.keys() for c in d["claims"])
      and not any(c["verdict"] == "yes" for c in d["claims"] if c["runs"] < 2))'

run show --config --runs
expect_status 2
expect_one_line
run show nothing_like_it
expect_status 2
expect_err "no study 'nothing_like_it'"
expect_one_line
run show nothing.db
expect_status 2
expect_err "there is no file or directory 'nothing.db'"
run show "$work/state"
expect_status 2
expect_err 'there is no study in'
run show outputs/numa_locality_study/2026-11-14
[ "$status" != 0 ] || fail "$what: shows what is no database"
expect_err '2026-11-14/09-00-00/study.db'
expect_one_line
run show a b
expect_status 2

# looking changes nothing
[ "$(sha256sum <"$study/study.db")" = "$before" ] || fail "showing a study changed it"
[ "$(find "$study" -type f | wc -l)" = 1 ] || fail "showing a study left files: $(find "$study" -type f)"
finish
