#!/usr/bin/env bash
# label: build
# Examples in the documents do what the documents show (docs.py).
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
mkdir "$work/bin"
ln -s "$gpulab" "$work/bin/gpulab"
export PATH=$work/bin:$PATH DOCS_WORK=$work GPULAB_LOCK_DIR=$work/locks TMPDIR=$work HOME=$work COLUMNS=100
mkdir -p "$GPULAB_LOCK_DIR"
docs=("$source_dir"/docs/{GUIDE,COMPARE}.md "$source_dir/README.md")
python3 "$source_dir/tests/program/docs.py" EXAMPLES "${docs[@]}" || fail "examples"
lines=("$source_dir"/docs/{CAMPAIGNS,CHECK,CONTENTION,MONITOR,REPORTS,SIMULATOR,STUDIES,TRACKERS,TUNING}.md)
python3 "$source_dir/tests/program/docs.py" LINES "${lines[@]}" || fail "commands in blocks"
finish
