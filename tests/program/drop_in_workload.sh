#!/usr/bin/env bash
# A workload is added by adding one file: dropped into src/workload, it appears in the help and runs
# after `make`, with no other edit. So are a command, an analysis and an output format, of documents or of
# rows, and removing the file takes it away again.
# A value of a result is added by one row of src/model/result.h: it comes through the frame, study.db, JSON,
# CSV and show.
# label: build
#
#   drop_in_workload.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "drop_in_workload: $*" >&2
    exit 1
}
# a step's output matters only if it fails
quietly() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 50 "$work/log"
        fail "failed: $*"
    }
}

# given a tree that was built
mkdir "$work/tree"
tar -C "$source_dir" --exclude=./build --exclude=./.git --exclude=./outputs -cf - . | tar -C "$work/tree" -xf -
cd "$work/tree"
# without optimisation and tests it takes a third of the time, and the mechanism is the same
quietly cmake --preset release -DCMAKE_BUILD_TYPE=Debug -DGPULAB_TESTS=OFF
quietly make
[[ $(build/gpulab help bench) != *dropped_in* ]] || fail "it is there before it was added"

# when a copy of the skeleton and a new command are dropped in
sed 's/skeleton/dropped_in/g' docs/skeleton_workload.c >src/workload/dropped_in.c
cat >src/command/greet.c <<'END'
#include "command/command.h"

static int run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status, (void)err;
    lab_console_write(call->console, "good day\n", 9);
    return 0;
}

const struct lab_command lab_command_greet = {
    .name = "greet", .summary = "say good day", .usage = "", .run = run};
END
cat >src/analysis/dropped_runs.c <<'END'
#include "analysis/analysis.h"

static const struct lab_doc_column columns[] = {{"runs_seen", "Runs seen", LAB_UNIT_COUNT}};

static int run(const struct lab_analysis_input *input, struct lab_analysis_result *result,
               struct lab_err *err) {
    (void)err;
    struct lab_doc_cell *cell = lab_arena_alloc(result->arena, 1, sizeof *cell);
    struct lab_analysis_part *part = lab_arena_alloc(result->arena, 1, sizeof *part);
    *cell = lab_cell_figure(input->studies[0].run_count);
    *part = (struct lab_analysis_part){.name = "all", .answer = "These are all.", .cells = cell};
    *result = (struct lab_analysis_result){.answer = "Somebody counted the runs.",
                                           .part_key = "counts",
                                           .columns = columns,
                                           .column_count = 1,
                                           .parts = part,
                                           .part_count = 1};
    return 0;
}

static int interest(const struct lab_study_table *study) {
    return study->run_count > 0;
}

const struct lab_analysis lab_analysis_dropped_runs = {.name = "dropped_runs",
                                                       .summary = "how many runs there are",
                                                       .source = LAB_ANALYSIS_OF_STUDIES,
                                                       .interest = interest,
                                                       .run = run};
END
cat >src/doc/format/outline.c <<'END'
#include "doc/block.h"

static void write_sections(const struct lab_doc_block *block, struct lab_str *out) {
    for (; block; block = block->next) {
        if (block->kind == LAB_DOC_SECTION && block->section.title)
            lab_str_printf(out, "* %s\n", block->section.title);
        write_sections(block->first, out);
    }
}

static void write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    (void)style;
    lab_str_printf(out, "%s\n", doc->root.section.title);
    write_sections(doc->root.first, out);
}

const struct lab_doc_format lab_doc_format_outline = {
    .name = "outline", .ending = ".outline", .readers = LAB_DOC_PAPER, .write = write};
END
cat >src/doc/format/tabs.c <<'END'
#include "doc/doc.h"

static void cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column, bool first,
                 struct lab_str *out) {
    lab_str_printf(out, "%s%s=", first ? "" : "\t", column->key);
    if (cell->exact)
        lab_str_add_decimal(out, cell->count, cell->decimals);
    else
        lab_str_add(out, cell->text ? cell->text : "");
}

const struct lab_doc_format lab_doc_format_tabs = {
    .name = "tabs", .ending = ".tabs", .readers = LAB_DOC_PROGRAMS, .cell = cell, .row_end = "\n"};
END
cp src/model/result.h "$work/result.h"
# shellcheck disable=SC1003 # the row ends with a backslash
sed -i '/V(steady, "steady"/i V(answer_ms, "answer_ms", NUMBER, "ms", SLOWEST, BOTH, TOLD | CSV, 90, "Answer", "") \\' \
    src/model/result.h
[ "$(diff "$work/result.h" src/model/result.h | grep -c '^[<>]')" = 1 ] || fail "not one row was added"
quietly make

# then the analysis is in `analyze`, in a study's report and in what programs read
cp -r tests/fixtures/0.1.0/numa "$work/numa" && chmod -R u+w "$work/numa"
[[ $(build/gpulab analyze) == *dropped_runs*"how many runs there are"* ]] || fail "analyze doesn't list it"
[[ $(build/gpulab analyze dropped_runs "$work/numa") == *"Runs seen"* ]] || fail "analyze doesn't show it"
[[ $(build/gpulab report "$work/numa" --json) == *'"runs_seen": '* ]] || fail "no program sees the analysis"
for file in report.md index.html; do
    grep -q 'Runs seen' "$work/numa/report/$file" || fail "$file doesn't have the analysis"
done
# and the format writes what a file's name asks for
quietly build/gpulab analyze dropped_runs "$work/numa" --output "$work/answer.outline"
[ "$(cat "$work/answer.outline")" = "$(printf 'Dropped_runs\n* all')" ] ||
    fail "the format wrote: $(cat "$work/answer.outline")"
if build/gpulab analyze dropped_runs "$work/numa" --output "$work/answer.xyz" >"$work/log" 2>&1; then
    fail "a format that isn't there was accepted"
fi
grep -q '.outline' "$work/log" || fail "the format isn't offered: $(cat "$work/log")"

# a format of rows writes an export
quietly build/gpulab export "$work/numa" --what iterations --output "$work/times.tabs"
[[ $(head -1 "$work/times.tabs") == run_id=*$'\t'rank=0$'\t'iteration=0$'\t'start_ns=[0-9]* ]] ||
    fail "the format wrote: $(head -1 "$work/times.tabs")"

# then help knows the workload and it runs
help=$(build/gpulab help bench)
[[ $help == *dropped_in* ]] || fail "gpulab help bench does not list it: $help"
quietly build/gpulab bench dropped_in --limit 1s
grep . "$work/log" || fail "gpulab bench dropped_in printed nothing"
grep -q 'Verification *passed' "$work/log" || fail "its results were not verified"
[[ $(build/gpulab help) == *greet*"say good day"* ]] || fail "gpulab help does not list the command"
[ "$(build/gpulab greet)" = "good day" ] || fail "the command does not run"

# a program that tells the value finds it in its result, whoever asks
export HOME=$work XDG_STATE_HOME=$work GPULAB_LOCK_DIR=$work
printf '%s\n' 'echo "{\"answer_ms\": 41}"; echo "{\"answer_ms\": 43}"' >"$work/own.sh"
quietly build/gpulab run test_matrix "experiment.command=\"bash $work/own.sh\"" device=cpu:0 \
    output_dir="$work/out" experiment.max_retries=0
study=$(echo "$work"/out/test_matrix/*/*)
id=$(python3 - "$study" build/gpulab <<'END'
import csv, json, sqlite3, subprocess, sys
folder, gpulab = sys.argv[1:]
run = json.load(open(f"{folder}/results.json"))[0]
assert run["answer_ms"] == 42 and run["ranks"][0]["answer_ms"] == 42, run
rows = sqlite3.connect(f"{folder}/study.db").execute("SELECT answer_ms FROM result").fetchall()
assert rows == [(42,), (42,)], rows
table = subprocess.run([gpulab, "export", folder, "--format", "csv"], capture_output=True, text=True).stdout
assert [row["answer_ms"] for row in csv.DictReader(table.splitlines())] == ["42.0"], table
print(run["run_id"])
END
) || fail "the value is not everywhere"
build/gpulab show "$study" --run "$id" >"$work/log"
grep -q '^ *answer_ms: 42$' "$work/log" || fail "gpulab show does not show it: $(cat "$work/log")"
build/gpulab show tests/fixtures/0.1.0/program >"$work/log" || fail "a file without it can't be read"

# and when they are removed, then they are gone
rm src/workload/dropped_in.c src/command/greet.c src/analysis/dropped_runs.c \
    src/doc/format/outline.c src/doc/format/tabs.c
cp "$work/result.h" src/model/result.h
quietly make
build/gpulab show "$study" --run "$id" >"$work/log" || fail "a file with a value that isn't known can't be read"
grep -q '^ *answer_ms: ' "$work/log" && fail "the value is still shown"
[[ $(build/gpulab help bench) != *dropped_in* ]] || fail "the workload is still there"
if build/gpulab greet >"$work/log" 2>&1; then
    fail "the command still runs"
fi
[[ $(build/gpulab analyze) != *dropped_runs* ]] || fail "the analysis is still there"

# a file whose name can't be a member's is refused, by its name
cp docs/skeleton_workload.c src/workload/dropped-in.c
if make >"$work/log" 2>&1; then
    fail "dropped-in.c was accepted"
fi
for words in 'src/workload/dropped-in.c: ' 'small letters, digits'; do
    grep -q "$words" "$work/log" || fail "no '$words' in: $(tail -n 20 "$work/log")"
done
rm src/workload/dropped-in.c
quietly make
