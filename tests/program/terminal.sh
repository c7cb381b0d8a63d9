#!/usr/bin/env bash
# What a person at a terminal sees: a bar that draws over itself and goes, colour where there is
# any, an answer to Ctrl-C. Never a timing: without a warm-up the first measurement is drawn at once.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"

# terminal [--interrupt] NAME=VALUE... -- ARGS...: runs gpulab on a terminal of 80 columns
terminal() {
    what="gpulab on a terminal: $*"
    python3 - "$gpulab" "$@" >"$work/out" 2>"$work/err" <<'PYTHON'
import fcntl, os, pty, struct, sys, termios

gpulab, words = sys.argv[1], sys.argv[2:]
interrupt = "--interrupt" in words
split = words.index("--")
environment = dict(os.environ, TERM="xterm")
environment.update(word.split("=", 1) for word in words[:split] if "=" in word)
child, fd = pty.fork()
if child == 0:
    os.execve(gpulab, ["gpulab"] + words[split + 1:], environment)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:  # the other end is closed
        break
    if not part:
        break
    seen += part
    if interrupt and b"measuring" in seen:
        os.write(fd, b"\x03")
        interrupt = False
sys.stdout.buffer.write(seen)
status = os.waitpid(child, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
PYTHON
    status=$?
}
# what remains on each line once all is drawn
settled() {
    sed -E 's/.*\r\x1b\[K//; s/\x1b\[[0-9;]*m//g; s/\r//g' "$work/out" >"$work/settled"
}
square=(gemm m=256 n=256 k=256 --no-verify)

terminal -- bench "${square[@]}" --iterations 200 --warmup 0 --repeat 2
expect_status 0
expect_out $'\r\033\\[Kgemm256x256x256, run 2 of 2: measuring [█░]{10,24} +[0-9]+%'
expect_out $'\033\\[1mgemm256x256x256 on '
settled
grep -Eq "measuring|warming|█" "$work/settled" && fail "the bar stays: $(cat "$work/settled")"
[ "$(head -c 4 "$work/settled")" = gemm ] || fail "something stands before the result"

terminal NO_COLOR=1 -- bench "${square[@]}" --iterations 20
grep -q $'\033\\[[0-9;]*m' "$work/out" && fail "NO_COLOR, but colour"
terminal TERM=dumb -- bench "${square[@]}" --iterations 20
grep -q $'\033' "$work/out" && fail "escapes on a dumb terminal"
terminal -- bench "${square[@]}" --iterations 20 --quiet
grep -q "measuring" "$work/out" && fail "--quiet, but progress"
terminal LC_ALL=C -- bench "${square[@]}" --iterations 200 --warmup 0
expect_out 'measuring [#.]{10,24} +[0-9]+%'
LC_ALL=C grep -q $'[\x80-\xff]' "$work/out" && fail "LC_ALL=C, but more than ASCII"

# a study that is sent: what the end waits for, and how far `sync` is
cd "$work" || exit 1
sent=(run quick_test device=sim:l40s-10 --no-report tracker=tensorboard output_dir=sent)
terminal -- "${sent[@]}"
expect_out $'\r\033\\[Ksending what is left to trackers: 10 s at most'
terminal -- sync sent --to wandb,tensorboard
expect_out $'\r\033\\[K1 of 2: wandb, run 3 of 3'
settled
grep -Eq "sending what|run 3 of" "$work/settled" && fail "the status line stays: $(cat "$work/settled")"

# trials: what is done of what was asked for, by count or by time
terminal -- selftest --device cpu:0/2 --studies 1 --runs 2
expect_status 0
expect_out $'\r\033\\[Kselftest ░{24} 0 studies, 0 false claims\r'
expect_out $'\r\033\\[Kselftest █{8,20}░{4,16} 0 studies, 0 false claims\r'
settled
grep -q "false claims.*false claims\|░" "$work/settled" && fail "the bar stays: $(cat "$work/settled")"
terminal -- compare --runs 2 -- true -- true
tr '\r' '\n' <"$work/out" | grep -ao 'compare: .*' >"$work/steps"
printf 'compare: %s\n' warm-up warm-up '0 of 4 runs' '1 of 4 runs' '2 of 4 runs' '3 of 4 runs' | cmp -s - "$work/steps" ||
    fail "other steps: $(cat "$work/steps")"
terminal -- compare --budget 1s -- sleep 0.1 -- sleep 0.1
expect_out $'\r\033\\[Kcompare: 0 runs, 0 of at most 1 s\r'
expect_out $'\r\033\\[Kcompare: 4 runs, [01] of at most 1 s\r'
terminal -- estimate quick_test device=cpu:0/2
expect_out $'\r\033\\[Kmeasuring short runs for the estimate…\r\033\\[K'

terminal --interrupt -- bench "${square[@]}" --iterations 10000000 --warmup 0
expect_status 130
expect_out "stopping after this step; Ctrl-C again ends it at once"
expect_out "stopped by the user"
settled
grep -q "stopping after" "$work/settled" && fail "the answer to Ctrl-C stays"

finish
