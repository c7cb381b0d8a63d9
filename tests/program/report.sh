#!/usr/bin/env bash
# Reports: of a study, of recordings, without gnuplot, where nothing can be written; and what is refused.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state HOME=$work/home GPULAB_LOCK_DIR=$work
mkdir -p "$work/home" && cd "$work" || exit 1

drawn=$(command -v gnuplot >/dev/null && echo yes)

# expect_file FILE... / expect_no_file FILE...
expect_file() {
    for file in "$@"; do
        [ -s "$file" ] || fail "$what: no $file"
    done
}
expect_no_file() {
    for file in "$@"; do
        [ -e "$file" ] && fail "$what: there is $file"
    done
}

# no study at all
run report
expect_status 2
expect_err 'no study yet'

# a study ends with its whole report, and says where it lies
small="experiment.test.num_samples=20 experiment.test.warmup_samples=5 experiment.test.memory_size_mb=16"
# shellcheck disable=SC2086 # words
run run quick_test device=cpu $small
expect_status 0
folder=$(echo "$work"/outputs/quick_test/*/*)
expect_file "$folder/report/index.html" "$folder/report/report.md" "$folder/report/best_practices.md"
expect_out 'Report    outputs/quick_test/.*/report/index\.html$'
grep -q '<summary>All points (3)</summary>' "$folder/report/index.html" || fail "$what: no points in its page"
grep -Eq 'https?://|<script |<link|@import' "$folder/report/index.html" && fail "$what: the page isn't alone"
[ "$(wc -l <"$folder/report/report.md")" -le 300 ] || fail "$what: report.md is long"
[ "$(wc -l <"$folder/report/runs.csv")" = 4 ] || fail "$what: runs.csv isn't whole"
[ -z "$(find "$folder/report" -name '.gpulab-*')" ] || fail "$what: left temporary files behind"

# the same again, anywhere else
rm -r "$folder/report"
run report quick_test --verbose
expect_status 0
expect_file "$folder/report/index.html"
expect_out '^  Advice    outputs/quick_test/.*/report/best_practices\.md$'
run report quick_test -o other
expect_file other/index.html other/report.md
run report "$folder" --json
json 'd["title"] == "quick_test" and d["page"].endswith("report/index.html") and not d["simulated"]'
run report quick_test --format html
expect_out '^/.*/report/index\.html$'

# without files
run report quick_test --format terminal
expect_out 'Report .*report/index\.html$' # which there is
rm -r "$folder/report"
run report quick_test --format md
expect_out '^# quick_test$'
expect_out '^## Method and runs$'
run report quick_test --format terminal
expect_out '3 of 3 runs succeeded'
! grep -q 'report/report.md' out || fail "$what: a report that there isn't"
expect_no_file "$folder/report"

# where there is no gnuplot: charts as SVG, and how to get the others
mkdir tools
what="gpulab report without gnuplot"
PATH=$work/tools "$gpulab" report quick_test >out 2>err
status=$?
expect_status 0
expect_file "$folder/report/index.html"
expect_no_file "$folder"/report/*.png
if ls "$folder"/report/*.gp >/dev/null 2>&1; then
    expect_err 'apt install gnuplot-nox'
    grep -q '<svg ' "$folder/report/index.html" || fail "$what: the page has no charts"
    grep -q 'apt install gnuplot-nox' "$folder/report/index.html" || fail "$what: the page is silent"
fi

# a recording of four GPUs: files beside it
python3 - <<'PY'
import json
records = [{"timestamp": "2026-01-15T10:30:%02d" % t,
            "multi_gpu_data": [{"gpu_index": g, "gpu_name": "NVIDIA <A10G>", "utilization": 80 + t % 5,
                                "memory_used": 12000 + 50 * g + t, "memory_total": 24576,
                                "power": 150, "temperature": 60} for g in range(4)]}
           for t in range(60)]
json.dump(records, open("stats_multi_gpu.json", "w"))
json.dump(records[:30], open("half_multi_gpu.json", "w"))
PY
run report stats_multi_gpu.json
expect_status 0
expect_out '^The balance of 4 GPUs is excellent'
expect_file stats_multi_gpu-report/index.html
grep -q '&lt;A10G&gt;' stats_multi_gpu-report/index.html || fail "$what: a name isn't told"
grep -q '<A10G>' stats_multi_gpu-report/index.html && fail "$what: a name is taken as HTML"
if [ "$drawn" ]; then
    for name in gpu_load_balance_analysis per_gpu_memory_breakdown gpu_memory_comparison \
        gpu_memory_timeline resource_timeline; do
        expect_file stats_multi_gpu-report/$name.png stats_multi_gpu-report/$name.svg \
            stats_multi_gpu-report/$name.gp stats_multi_gpu-report/$name.csv \
            stats_multi_gpu-report/$name.pdf
    done
    [ "$(grep -c '<svg ' stats_multi_gpu-report/index.html)" -ge 5 ] || fail "$what: pictures lack"
    # the script draws the picture anew, on its own
    rm stats_multi_gpu-report/gpu_memory_timeline.png
    (cd stats_multi_gpu-report && gnuplot gpu_memory_timeline.gp) || fail "the script doesn't draw"
    expect_file stats_multi_gpu-report/gpu_memory_timeline.png
fi
# two labels, compared
run report whole=stats_multi_gpu.json half=half_multi_gpu.json -o both
expect_status 0
expect_file both/index.html
expect_out 'compare: half and whole: inconclusive'

# and never into one of them
run report whole=stats_multi_gpu.json half=half_multi_gpu.json
expect_status 2
expect_err 'a report of several needs a folder of its own: gpulab report .* -o DIR'
cp "$folder/report/index.html" before.html
run report "$folder" stats_multi_gpu.json -o "$folder/report"
expect_status 2
expect_err 'would replace its report'
cmp -s "$folder/report/index.html" before.html || fail "$what: the study's own report was replaced"

# a study may be given by its name among others, as alone
run report quick_test half=half_multi_gpu.json -o mixed
expect_status 0
expect_file mixed/index.html
expect_out 'compare: half and quick_test: not tested [(]no metric in common[)]'
run report quick_tset half_multi_gpu.json -o mixed
expect_status 2
expect_err "no study 'quick_tset'; did you mean 'quick_test'"

# pictures of one analysis
run analyze balance stats_multi_gpu.json --charts drawings
expect_status 0
expect_file drawings/gpu_load_balance_analysis.gp
[ "$drawn" ] && expect_file drawings/gpu_load_balance_analysis.png

# what is refused
run report nothing_of_this_name
expect_status 2
run report quick_test --format terminal --open
expect_status 2
expect_err '--open needs the page'
run report quick_test --format md -o there
expect_status 2
echo '{"a": 1}' >odd.json
run report odd.json
expect_status 2
run report quick_test -o "$folder/study.db/below"
expect_status 2
expect_err "can't write .*: Not a directory"
finish
