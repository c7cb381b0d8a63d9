#!/usr/bin/env bash
# gpulab top as a person at a terminal meets it, in tmux: a paused recording shows the same screens each
# time. GOLDEN_UPDATE=1 writes them anew. Then the same without a terminal, and what is refused.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export TZ=UTC
ulimit -c 0
cd "$work" || exit 1
"$gpulab" top --demo --device cuda:0,2 --json >demo.out 2>demo.err </dev/null & # it samples for a second
demo=$!
python3 "$source_dir/tests/program/top_recording.py" monday.json || exit 1

# --- without a terminal ---
run top monday.json
expect_status 0
expect_out '^   0 H100 .* 77% '
expect_out '^   1 H100 .*no answer for 10 s: GPU is lost'
expect_out '602 serve runs and has its memory on a NUMA node remote'
expect_out '^  taskset -acp 16-31 602 && migratepages 602 0 1$'
run top monday.json --at 40s --json
expect_status 0
json '(d["devices"][1]["metrics"]["utilization_percent"] == 40 and d["devices"][1]["answers"] and
    d["processes"][0]["pid"] == 602 and d["processes"][0]["placement"] == "both" and
    not d["simulated"])'
LC_ALL=C run top monday.json
LC_ALL=C grep -q $'[\x80-\xff]' "$work/out" && fail "LC_ALL=C, but more than ASCII"
run top monday.json --once --summary summary.txt --quiet
grep -q 'GPU 0 .* 55% / 92% .* 17.9 kJ' summary.txt || fail "summary: $(cat summary.txt)"
if command -v gnuplot >/dev/null; then
    run top monday.json --once --png charts.png
    expect_status 0
    [ "$(head -c 4 charts.png | tail -c 3)" = PNG ] || fail "no PNG"
    [ ! -e charts.gp ] || fail "a script beside the picture"
fi
run top monday.json --once --png charts.svg
expect_status 0
grep -q 'Power \[W\]' charts.svg || fail "no panel of power in the SVG"

# --- a machine that is made up says so; what isn't there is said too ---
wait "$demo" || fail "top --demo: $(cat demo.err)"
grep -q '^  "simulated": true' demo.out || fail "the demonstration isn't marked: $(head -5 demo.out)"
[ "$(grep -c '"kind": "gpu"' demo.out)" = 2 ] || fail "two GPUs of the demonstration were asked for"
# its GPUs are on two nodes, whatever this machine has: placement is judged
if [ "$(nproc)" -gt 1 ] && grep -qE '"placement": "(unknown|one node)"' demo.out; then
    fail "the demonstration can't show placement: $(grep placement demo.out)"
fi

# --- what is refused ---
run top nothing.json
expect_status 2
expect_one_line
run top monday.json --demo
expect_status 2
expect_err 'leave one of them out'
run top --at 5s
expect_status 2
expect_err 'name its file'
run top --interval 0
expect_status 2
"$gpulab" record --device cpu -i 20ms -t 50ms -o small.db 2>/dev/null
cp small.db other.db
while read -r input output; do
    for option in --summary --png; do
        run top "$input" --once $option "$output"
        expect_status 2
        expect_err "$output is (what is read|a database, .* never overwritten): name another file"
    done
done <<<'monday.json monday.json
small.db small.db
small.db other.db'
cmp small.db other.db || fail "top wrote over a recording"
run top monday.json --once --summary no/such/folder.txt
expect_status 2
expect_err 'no/such/folder.txt'
TERM=nonsense run top monday.json # no terminal here: TERM plays no part
expect_status 0

command -v tmux >/dev/null || fail "tmux isn't installed"

# --- at a terminal ---
tm() {
    tmux -S "$work/tmux" -f /dev/null "$@"
}
# shellcheck disable=SC2317 # the trap calls it
clean() { # the shell in there may still be writing
    tm kill-server 2>/dev/null
    local i
    for ((i = 0; i < 50; i++)); do rm -rf "$work" 2>/dev/null && return; sleep 0.05; done
}
trap clean EXIT
screen() {
    tm capture-pane -p -t 0
}
# await PATTERN: until some line of the screen matches
await() {
    local i
    for ((i = 0; i < 500; i++)); do
        screen | grep -Eq -- "$1" && return 0
        sleep 0.02
    done
    fail "the screen never shows '$1':
$(screen)"
    return 1
}
# golden NAME: the screen becomes what was looked at; it may be half drawn when first seen
golden() {
    local i file="$source_dir/tests/golden/top-tmux-$1.txt"
    [ "${GOLDEN_UPDATE:-}" = 1 ] && sleep 0.5 && screen >"$file"
    for ((i = 0; i < 100; i++)); do
        screen | diff -u "$file" - >"$work/diff" && return
        sleep 0.02
    done
    fail "screen $1: $(cat "$work/diff")"
}
keys() {
    tm send-keys -t 0 "$@"
}

tm new-session -d -x 80 -y 24 "env -i PATH='$PATH' HOME='$work' TERM=screen-256color LC_ALL=C.UTF-8 \
    TZ=UTC ASAN_OPTIONS='${ASAN_OPTIONS:-}' TSAN_OPTIONS='${TSAN_OPTIONS:-}' \
    bash --norc --noprofile" || fail "tmux doesn't start"
start="$gpulab top monday.json --paused --at 40s"
ready() { # the shell is back, and its terminal as it was before
    keys "stty -g >stty.$1; tput cols >/dev/null; echo ready-$1" Enter
    await "^ready-$1"
    cmp -s stty.begin "stty.$1" || fail "$1: the terminal's settings differ"
}
keys "PS1='$ '; cd '$work'; clear; stty -g >stty.begin; echo begun" Enter
await '^begun'

keys "$start" Enter
await 'PAUSED 0:40 of 0:59'
golden overview
keys 1 Enter
await '^ GPU 1  NVIDIA H100'
golden device
keys F4
await '2 processes on GPUs, by GPU memory'
keys s s s Down
await 'on GPUs, by memory$'
await '^› +602 web'
golden processes
keys / w e
await 'filter: we_'
keys b Enter
await '1 process on GPUs, by memory, filter "web"'
golden filter
keys k
await 'these processes are of a recording'
keys Escape '?'
await 'Shift-Tab'
keys Escape o Right
await 'PAUSED 0:50'
keys End
await 'no answer for 10 s: GPU is lost'
golden gap
keys Home + +
await 'PAUSED 0:00 of 0:59 ×4'
keys Space
await '▶ 0:0[1-9] of 0:59 ×4'
keys Space
tm resize-window -t 0 -x 30 -y 8
await 'needs 40 x 12'
tm resize-window -t 0 -x 120 -y 40
await 'PAUSED .* 2026-11-15'
keys End
await 'no answer for 10 s'
golden large
tm resize-window -t 0 -x 80 -y 24
keys C-z
await 'Stopped'
keys fg Enter
await 'F2 overview'
keys w
await 'quit: w writes a summary and a picture first'
keys w
await '^summary: gpulab-top-'
ready quit
grep -q 'GPU 0 .* 17.9 kJ' gpulab-top-*.txt || fail "w: $(cat gpulab-top-*.txt)"

# --- live: a process is ended, after a yes ---
sleep 98765 &
victim=$!
keys "clear; $gpulab top --all --interval 100ms" Enter
await 'F4 processes'
keys F4 / s l e e p Space 9 8 7 6 5 Enter
await "^› +$victim .* sleep 98765"
keys k
await "send TERM to $victim sleep\? y or n"
keys n k y
await "sent TERM to $victim; k again sends KILL"
wait "$victim"
[ $? = 143 ] || fail "the process wasn't ended by TERM"
keys q
ready live

# --- however it ends, the terminal comes back ---
for how in TERM:143 HUP:129 SEGV:139 ABRT:134; do
    name=${how%:*}
    keys "clear; bash -c 'echo \$\$ >pid; exec $start'; echo \"status \$?\"" Enter
    await 'PAUSED 0:40 of 0:59'
    kill -"$name" "$(cat pid)"
    await "^status ${how#*:}"
    ready "$name"
done
keys "clear; $start; echo \"status \$?\"" Enter
await 'PAUSED 0:40 of 0:59'
keys C-c
await '^status 0'
ready interrupt
finish
