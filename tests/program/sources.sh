#!/usr/bin/env bash
# label: long
# Commands that SOURCES.md names for those of published guides are planned or run (docs.py).
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
mkdir "$work/bin"
ln -s "$gpulab" "$work/bin/gpulab"
export PATH=$work/bin:$PATH DOCS_WORK=$work GPULAB_LOCK_DIR=$work/locks TMPDIR=$work HOME=$work COLUMNS=100
mkdir -p "$GPULAB_LOCK_DIR"
python3 "$source_dir/tests/program/docs.py" TABLE "$source_dir/docs/SOURCES.md" || fail "SOURCES.md"
finish
