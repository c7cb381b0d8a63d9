# shellcheck shell=bash
# What the program tests share. Sourced with the test's own arguments: GPULAB SOURCE_DIR BUILD_DIR.
set -u
gpulab=$(realpath "$1")
# shellcheck disable=SC2034 # the tests use it
source_dir=$(realpath "$2")
export LC_ALL=C.UTF-8
unset COLUMNS NO_COLOR LANG LC_CTYPE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# run ARGS...: sets $status; the output lies in $work/out and $work/err
run() {
    what="gpulab $*"
    "$gpulab" "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
}

expect_status() {
    [ "$status" = "$1" ] || fail "$what: status $status instead of $1: $(head -3 "$work/err")"
}

# expect_out PATTERN / expect_err PATTERN: an extended regular expression that some line matches
expect_out() {
    grep -Eq -- "$1" "$work/out" || fail "$what: no line of its output matches '$1':
$(head -30 "$work/out")"
}

expect_err() {
    grep -Eq -- "$1" "$work/err" || fail "$what: no line of its messages matches '$1': $(cat "$work/err")"
}

# One line on stderr and nothing on stdout.
expect_one_line() {
    local lines
    lines=$(wc -l <"$work/err")
    [ "$lines" = 1 ] || fail "$what: $lines lines of messages instead of 1: $(cat "$work/err")"
    [ ! -s "$work/out" ] || fail "$what: an error, but also output: $(head -3 "$work/out")"
}

# json EXPRESSION: evaluates a Python expression over the document `d` in the output
json() {
    python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$work/out" "$1" 2>/dev/null || fail "$what: not so: $1
$(head -60 "$work/out")"
}

finish() {
    [ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
    exit 0
}
