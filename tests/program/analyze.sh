#!/usr/bin/env bash
# Traces analysed: files, folders, studies, Nsight's own reports, and what is refused.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state
traces=$source_dir/tests/fixtures/traces
one=$traces/pipeline_gpu0_numa1_vit32x6x512.sqlite

run analyze
expect_status 0
expect_out '^  latency +where a pipeline'
run analyze --json
json '{"balance", "compare", "crossover", "latency", "memory", "numa", "summary"} <= {a["name"] for a in d["analyses"]}'
json '(lambda names: names == sorted(names))([a["name"] for a in d["analyses"]])'
run help analyze latency
expect_status 0
expect_out 'window=RANGE|window'

# one trace: for people at two widths, for documents, for programs
for columns in 80 120; do
    COLUMNS=$columns run analyze latency "$one"
    expect_status 0
    diff "$source_dir/tests/golden/latency-one-$columns.txt" "$work/out" >"$work/diff" ||
        fail "$what at $columns columns: $(cat "$work/diff")"
done
run analyze latency "$one" --markdown
expect_status 0
diff "$source_dir/tests/golden/latency-one.md" "$work/out" >"$work/diff" || fail "$what: $(cat "$work/diff")"
run analyze latency "$one" --json
expect_status 0
json 'd["analysis"] == "latency" and len(d["pipelines"]) == 1'
json 'abs(d["pipelines"][0]["compute_utilization"] - 1000 / 1060) < 1e-9 and abs(d["pipelines"][0]["overlap"] - 0.9) < 1e-9'
json 'd["pipelines"][0]["batches"] == 10 and abs(d["pipelines"][0]["h2d_gb_per_s"] - 25) < 1e-9'
json '[s["gaps"] for s in d["pipelines"][0]["streams"]] == [8, 0, 9]'

# other keys
run analyze latency "$one" gap=70us window=warmup_double_buffer --json
expect_status 0
json 'd["pipelines"][0]["batches"] == 2 and abs(d["pipelines"][0]["window_ms"] - 0.36) < 1e-9'
json '[s["gaps"] for s in d["pipelines"][0]["streams"]] == [1, 1, 1]'
run analyze latency "$one" gap=soon
expect_status 2
expect_err 'gap=soon'
run analyze latency "$one" gpa=1us
expect_status 2
expect_err 'gpa=1us: no such key or file; did you mean gap='

# several: compared first, then one by one
run analyze latency "$one" "$traces/nsight2026.sqlite" "$traces/two_processes.sqlite"
expect_status 0
expect_out '^5 pipelines: compute busy 94.3% to 94.3% of the window'
expect_out '^  two_processes/4800/dev1 +25.0 GB/s'
run analyze latency "$traces/bare.sqlite"
expect_status 0
expect_err 'no table CUPTI_ACTIVITY_KIND_RUNTIME and NVTX_EVENTS'
expect_out "! no range 'test_double_buffer'"

# a study's folder, and any folder; what is no trace there is said and left out
study=$work/outputs/quick_test/2026-11-15/10-42-03
mkdir -p "$study/traces" "$work/empty" "$work/mixed/below"
cp "$source_dir/tests/fixtures/store/v2.db" "$study/study.db"
run analyze latency "$study"
expect_status 2
expect_one_line
expect_err 'no traces in .*experiment.trace=false'
cp "$one" "$study/traces"
run analyze latency "$study" --json
expect_status 0
json 'd["pipelines"][0]["name"] == "gpu0_numa1_vit32x6x512"'
mkdir -p "$XDG_STATE_HOME/gpulab/studies" # by the name that it is known by
printf %s "$study" >"$XDG_STATE_HOME/gpulab/studies/0123456789abcdef"
run analyze latency quick_test --json
expect_status 0
json 'len(d["pipelines"]) == 1'
cp "$one" "$work/mixed/below"
cp "$traces/other.db" "$work/mixed/other.sqlite"
cp "$traces/no_rows.sqlite" "$work/mixed"
run analyze latency "$work/mixed" --json
expect_status 0
json 'len(d["pipelines"]) == 1'
expect_err 'other.sqlite is not a trace'
expect_err 'no_rows.sqlite has no device activity'
head -c 5000 "$one" >"$work/mixed/cut.sqlite"
run analyze latency "$work/mixed" --json
expect_status 1
expect_err 'cut.sqlite is damaged or cut off'
json 'len(d["pipelines"]) == 1'

# Nsight's own reports, by a stand-in
echo report >"$work/a.nsys-rep"
PATH=/usr/bin:/bin run analyze latency "$work/a.nsys-rep"
if ! PATH=/usr/bin:/bin command -v nsys >/dev/null; then
    expect_status 2
    expect_one_line
    expect_err 'a.nsys-rep needs nsys, which .*install Nsight Systems.*nsys export --type sqlite'
fi
mkdir "$work/bin" "$work/tmp"
# shellcheck disable=SC2016 # the stand-in expands it
printf '#!/bin/sh\ncp "%s" "$7"\n' "$traces/nsight2022.sqlite" >"$work/bin/nsys"
chmod +x "$work/bin/nsys"
PATH=$work/bin:$PATH TMPDIR=$work/tmp run analyze latency "$work/a.nsys-rep" --json
expect_status 0
json 'd["pipelines"][0]["name"] == "a" and d["pipelines"][0]["batches"] == 10'
[ -z "$(ls "$work/tmp")" ] || fail "left over: $(ls "$work/tmp")"

# what is refused
refuse() {
    local pattern=$1
    shift
    run analyze "$@"
    expect_status 2
    expect_err "$pattern"
    [ ! -s "$work/out" ] || fail "$what: an error, but also output"
}
echo "no database at all" >"$work/text.sqlite"
: >"$work/zero.sqlite"
refuse "unknown analysis 'latncy' \(did you mean 'latency'" latncy "$one"
refuse 'PATH is missing' latency
refuse 'No such file' latency "$work/nowhere"
refuse 'text.sqlite is not a trace: not an SQLite database' latency "$work/text.sqlite"
refuse 'zero.sqlite is not a trace: it is empty' latency "$work/zero.sqlite"
refuse 'without Nsight Systems. tables' latency "$traces/other.db"
refuse 'is a study, not a trace' latency "$study/study.db"
refuse 'no device activity in .*no_rows' latency "$traces/no_rows.sqlite"
refuse "no traces in $work/empty" latency "$work/empty"
refuse 'is not a trace' latency "$one" "$work/text.sqlite"
run analyze latency "$one" --markdown --json
expect_status 2

finish
