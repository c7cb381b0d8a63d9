#!/usr/bin/env bash
# A program of the user's as a workload: bench of it, plans over it, and the mistakes people make.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
cat >train.sh <<'END'
#!/bin/sh
# train.sh LR ITERS: prints what a training program prints
echo "Iter 1: loss=$1"
echo "Final loss $1 after $2"
echo "threads $OMP_NUM_THREADS gpus '$CUDA_VISIBLE_DEVICES'" >>"$3"
END
chmod +x train.sh

run bench
expect_out "^ +command +runs a program of your own"

run bench command 'command="sleep 0.02"' --iterations 5 --warmup 1
expect_status 0
expect_out "^sleep on cpu:0"
expect_out "Iteration time +median [2-9][0-9]|min [2-9][0-9][.0-9]* ms" # the quickest: others may run beside it
expect_out "Iterations +5 in .* after 1 for warm-up, as many as asked for"
expect_out "Verification +not applicable: a program of your own"

run bench command 'command="./train.sh {lr} 3 {output_dir}/seen"' 'matrix={lr: 0.1}' \
    --iterations 2 --warmup 0 --repeat 2 --device cpu:0/2.1 --json
expect_status 0
json 'd["workload"] == "command" and d["label"] == "lr0.1" and d["iterations"] == 4'
json 'd["config"]["matrix"] == {"lr": 0.1} and d["config"]["command"].startswith("./train.sh")'
json 'd["verification"]["applicable"] is False and "not checked" in d["verification"]["text"]'
json 'd["limits"]["flops_per_second"] is None and "not measured" in d["limits"]["how"]'
json 'd["dtype"] is None and d["samples_per_second"] is None and d["stages"] == {}'
json 'd["validity"]["valid"] is True'
[ "$(grep -c "threads 1 gpus ''" seen)" = 4 ] || fail "the program's environment: $(cat seen)"

# what it says when it fails
run bench command 'command=[sh, -c, "echo working; echo no such data >&2; exit 3"]' --iterations 1
expect_status 1
expect_one_line
expect_err "the program ended with status 3; its last line: no such data"
run bench command 'command=[sh, -c, "kill -9 $$"]' --iterations 1
expect_status 1
expect_err "ended by signal 9 \(Killed\) without output"
run bench command command=gpulab-no-such-program
expect_status 2
expect_one_line
expect_err "can't start 'gpulab-no-such-program'"

# mistakes: found before anything runs
run bench command
expect_status 2
expect_one_line
expect_err "command is missing"
run bench command 'command="train {lrr}"' 'matrix={lr: 1}'
expect_status 2
expect_one_line
expect_err "unknown placeholder \{lrr\}; did you mean \{lr\}\?"
run bench command 'command="a | b"'
expect_status 2
expect_err "no shell is started"
run bench command command=a 'metrics={patterns: [loss]}'
expect_status 2
expect_err "metrics.patterns: 'loss': reads no number"
run bench command command=a 'env={a-b: 1}'
expect_status 2
expect_err "'a-b' is not a variable name"
run help bench command
expect_out "matrix=VALUE"

# the first Ctrl-C waits for the program, a second one ends it, too
python3 - "$gpulab" >"$work/out" 2>&1 <<'PYTHON' || fail "Ctrl-C: $(cat "$work/out")"
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
script = "echo $$ >pid.new; mv pid.new pid; exec sleep 60"
bench = subprocess.Popen([sys.argv[1], "bench", "command", 'command=[sh, -c, "%s"]' % script])
def wait_until(condition):
    for _ in range(400):
        if condition():
            return True
        time.sleep(0.02)
    return False
def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
wait_until(lambda: os.path.exists("pid")) or sys.exit("the program never began")
pid = int(open("pid").read())
bench.send_signal(signal.SIGINT)
time.sleep(0.3)
alive(pid) or sys.exit("the first one ended the program")
bench.send_signal(signal.SIGINT)
status = bench.wait()
if not wait_until(lambda: not alive(pid)):
    os.kill(pid, signal.SIGKILL)
    sys.exit("the second one left the program behind")
sys.exit(0 if status == 130 else "status %d" % status)
PYTHON

# however it ends, nothing that the program started is left: not in another session, not adopted
python3 - "$gpulab" >"$work/out" 2>&1 <<'PYTHON' || fail "left behind: $(cat "$work/out")"
import os, signal, subprocess, sys, time
mark = "GPULAB_TEST_FAMILY=%d" % os.getpid()
def family():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in open("/proc/%s/environ" % pid).read().split("\0"):
                found.append(int(pid))
        except OSError:
            pass
    return found
def wait_until(condition):
    for _ in range(300):
        if condition():
            return True
        time.sleep(0.02)
    return False
script = "(setsid sleep 60 &) ; nohup sleep 60 >nohup.log 2>&1 & sleep 60 & %s"
def end(name, status, rest, stop):
    bench = subprocess.Popen([sys.argv[1], "bench", "command", "env={%s}" % mark.replace("=", ": "),
        'command=[sh, -c, "%s"]' % (script % rest), "--iterations", "1", "--warmup", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if rest == "wait":
        wait_until(lambda: len(family()) >= 4) or sys.exit("%s: it never began" % name)
    stop(bench)
    if bench.wait() != status or not wait_until(lambda: not family()):
        left = family()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        sys.exit("%s: status %d, %d processes left" % (name, bench.returncode, len(left)))
def inner(bench):
    os.kill(int(open("/proc/%d/task/%d/children" % (bench.pid, bench.pid)).read()), signal.SIGKILL)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
    end(number.name, -number, "wait", lambda bench: bench.send_signal(number))
end("the measuring process killed", -signal.SIGKILL, "wait", inner)
end("done", 0, "exit 0", lambda bench: None)
end("failed", 1, "exit 1", lambda bench: None)
PYTHON

# plans
run run test_matrix 'experiment.command="./train.sh {lr} {max_iters}"' \
    '+experiment.matrix.lr=[0.1,0.01]' experiment.matrix.max_iters=500 device=cpu --dry-run
expect_status 0
expect_out "test_matrix: 6 points, 2 distinct × 1 repeat = 2 runs$"
expect_out "lr=0.1 "
expect_out "lr=0.01 "
run run test_matrix device=cpu --dry-run
expect_status 2
expect_one_line
expect_err "experiment.command has no value yet: add experiment.command="
run run test_matrix 'experiment.command="t {optimizers}"' device=cpu --dry-run
expect_status 2
expect_one_line
expect_err "did you mean \{optimizer\}\?"

# what is waited for after its end, here a pipe that another process holds, is no part of its time
run bench command 'command=[sh, -c, "sleep 5 & exit 0"]' --iterations 3 --json
expect_status 0
json 'd["interval_ms"]["median"] is None and d["latency_ms"]["median"] > 0'
finish
