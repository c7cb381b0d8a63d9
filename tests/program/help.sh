#!/usr/bin/env bash
# help, version, completion, man pages, and output that can't be written.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"

for line in "" help --help -h; do
    # shellcheck disable=SC2086 # the empty one is no word
    run $line
    expect_status 0
    for command in bench devices help version completion; do
        expect_out "^ +$command +"
    done
done

for line in version --version; do
    run $line
    expect_status 0
    expect_out "^gpulab $(cat "$source_dir/VERSION")\$"
    expect_out "OpenBLAS .*SINGLE_THREADED"
done
# every command has its JSON
run help --json
json '{c["command"] for c in d["commands"]} >= {"bench", "devices", "help", "version", "completion"}'
for line in "help bench vit" "bench vit --help"; do
    # shellcheck disable=SC2086
    run $line --json
    expect_status 0
    json 'd["command"] == "bench" and "--repeat" not in d["usage"]'
    json '[o for o in d["options"] if o["name"] == "repeat"][0]["default"] == "1"'
    json '[k for k in d["sections"][0]["keys"] if k["name"] == "dtype"][0]["choices"][0] == "fp32"'
    json '[k for k in d["sections"][0]["keys"] if k["name"] == "depth"][0]["max"] >= 12'
done
run help metrics reread
expect_status 0
expect_out '^Usage: gpulab metrics reread \[STUDY\] \[option\.\.\.\]$'
run help bench vti --json
expect_status 2
json 'd["error"]["code"] == "user"'
run help --man "$work/man-json" --json
json 'len(d["written"]) >= 6 and all(open(p).read() for p in d["written"])'
run completion bash --json
json 'd["shell"] == "bash" and "complete " in d["script"]'
run version --json
json 'd["version"] and d["libraries"]["hwloc"]'

for line in "help bench" "bench --help"; do
    # shellcheck disable=SC2086
    run $line
    expect_status 0
    expect_out "--repeat"
    expect_out "--device"
    expect_out "vit"
done
run help bench vit
expect_status 0
expect_out "depth"
expect_out "num_samples"
run bench vit --help
expect_out "patch_size"

run help --man "$work/man"
expect_status 0
for page in gpulab gpulab-bench gpulab-devices gpulab-help gpulab-version gpulab-completion; do
    [ -s "$work/man/$page.1" ] || fail "no man page $page.1"
done
grep -q patch_size "$work/man/gpulab-bench.1" || fail "the man page of bench lacks vit's keys"
if command -v man >/dev/null; then
    man -l --warnings "$work/man/gpulab-bench.1" >/dev/null 2>"$work/warnings" </dev/null
    [ ! -s "$work/warnings" ] || fail "man: $(head -3 "$work/warnings")"
fi

for shell in bash zsh fish; do
    run completion $shell
    expect_status 0
    expect_out "bench"
    expect_out "num_samples=" # a key that bench adds to the workload's own
    if command -v "$shell" >/dev/null; then
        "$shell" -n "$work/out" 2>"$work/err" || fail "$shell can't read its script: $(cat "$work/err")"
    fi
done

# ASCII where the locale is, no colour where it isn't a terminal, widths respected
LC_ALL=C run help bench vit
if LC_ALL=C grep -q '[^ -~]' "$work/out"; then
    fail "LC_ALL=C, but: $(LC_ALL=C grep -m1 '[^ -~]' "$work/out")"
fi
COLUMNS=60 run help bench
widest=$(grep -v 'gpulab ' "$work/out" | wc -L) # but for lines to paste
[ "$widest" -le 60 ] || fail "COLUMNS=60, but a line of $widest columns"
grep -q $'\033' "$work/out" && fail "colour in a file"

# output that can't be written is an error; a reader that went away is none
if [ -w /dev/full ]; then
    "$gpulab" help >/dev/full 2>"$work/err"
    [ $? = 1 ] || fail "a full disk went unnoticed"
    grep -q "standard output" "$work/err" || fail "a full disk: $(cat "$work/err")"
fi
"$gpulab" help >&- 2>"$work/err"
[ $? = 1 ] || fail "a closed stdout went unnoticed"
grep -q "standard output" "$work/err" || fail "a closed stdout: $(cat "$work/err")"
for ((i = 0; i < 5; i++)); do
    { "$gpulab" help --man /dev/stdout 2>/dev/null; "$gpulab" completion bash 2>"$work/err"; } |
        head -c 1 >/dev/null
done
[ ! -s "$work/err" ] || fail "into head: $(cat "$work/err")"
(trap '' PIPE; "$gpulab" completion bash 2>"$work/err"; echo $? >"$work/status") | true
[ ! -s "$work/err" ] || fail "with SIGPIPE ignored: $(cat "$work/err")"

finish
