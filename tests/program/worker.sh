#!/usr/bin/env bash
# The hidden worker: not in any list, refuses to be started by hand, and carries out a run for
# whoever speaks its language.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"

run worker
expect_status 2
expect_err "the worker is started by 'gpulab run', not by hand"
expect_one_line

run help worker
expect_status 0
expect_out "descriptor 3"

for line in "" "help --json" "completion bash" "completion zsh" "completion fish"; do
    # shellcheck disable=SC2086 # the empty one is no word
    run $line
    expect_status 0
    ! grep -qw worker "$work/out" || fail "$what: shows the worker"
done
run wroker
expect_status 2
! grep -qw worker "$work/err" || fail "$what: suggests the worker"
mkdir "$work/man"
run help --man "$work/man"
[ ! -e "$work/man/gpulab-worker.1" ] || fail "$what: wrote a page for the worker"

# a conversation with the program itself: a run of 50 iterations on the first CPU device
python3 - "$gpulab" >"$work/out" <<'EOP' || fail "the conversation: $(cat "$work/out")"
import fcntl, json, os, socket, struct, subprocess, sys

HELLO, ITERATIONS, RESULT, FAILURE, ACK, JOB, READY, GO = 1, 4, 7, 8, 9, 10, 11, 12
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
ours = socket.socket(fileno=fcntl.fcntl(ours.detach(), fcntl.F_DUPFD_CLOEXEC, 10))  # 3 is taken

def say(kind, payload=b""):
    ours.sendall(struct.pack("<IHH", len(payload), kind, 0) + payload)

def take(count):
    data = b""
    while len(data) < count:
        more = ours.recv(count - len(data))
        assert more, "the worker hung up"
        data += more
    return data

def hear():
    length, kind, rank = struct.unpack("<IHH", take(8))
    return kind, take(length)

theirs = socket.socket(fileno=fcntl.fcntl(theirs.detach(), fcntl.F_DUPFD_CLOEXEC, 10))
os.dup2(theirs.fileno(), 3)
worker = subprocess.Popen([sys.argv[1], "worker"], pass_fds=[3], start_new_session=True)
say(JOB, json.dumps({
    "run_id": "gpu0_numa0_null", "folder": "", "workload": "null", "options": {},
    "ranks": [{"index": 0, "gpu_id": 0, "device": "cpu:0", "numa_node": 0}], "gang_size": 1,
    "iterations": 50, "warmup_iterations": 5, "duration_s": 0, "seed": 1, "verify": True, "trace": False,
}).encode() + b"\0")
order = []
while True:
    kind, payload = hear()
    order.append(kind)
    assert kind != FAILURE, payload
    if kind == READY:
        assert ITERATIONS not in order
        say(GO)
    if kind == RESULT:
        break
assert order[0] == HELLO and ITERATIONS in order, order
at = 0

def cut(count):
    global at
    at += count
    assert at <= len(payload)
    return payload[at - count:at]

def text():
    return cut(payload.index(b"\0", at) + 1 - at)[:-1].decode()

def value(letter):
    if letter == b"l":
        return [record() for _ in range(struct.unpack("<I", cut(4))[0])]
    if letter in b"tj":
        return text() if letter == b"t" else json.loads(text())
    return cut(1) != b"\0" if letter == b"f" else struct.unpack("<d" if letter == b"n" else "<q", cut(8))[0]

def record():  # as model/result.h has it
    return {text(): value(cut(1)) for _ in range(struct.unpack("<H", cut(2))[0])}

result = record()
assert at == len(payload)
assert result["iterations"] == 50 and result["rate"] > 0 and result["latency_ms.p99"] > 0, result
assert result["device"] == "cpu:0" and isinstance(result["steady"], bool), result
say(ACK)
assert worker.wait(30) == 0
EOP

finish
