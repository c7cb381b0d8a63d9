#!/usr/bin/env bash
# A program is started next to its rank's device, and starts anyway where nothing can be bound.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work TMPDIR=$work
unset LOCAL_RANK SLURM_LOCALID OMPI_COMM_WORLD_LOCAL_RANK CUDA_VISIBLE_DEVICES
cd "$work" || exit 1

# the program gets its arguments, options among them, and its exit status is passed on
# shellcheck disable=SC2016 # the program expands it
run bind --device cpu bash -c 'echo "$1"; exit 7' name --json
expect_status 7
expect_out '^--json$'
LOCAL_RANK=0 run bind --device cpu -- true
expect_status 0
[ ! -s "$work/err" ] || fail "it said: $(cat "$work/err")"

# what it may use is what the rank's device has
cpus=$("$gpulab" devices --json | python3 -c 'import json,sys
n=json.load(sys.stdin)["machine"]["nodes"][0]["cpus"]
print(" ".join(map(str,n)))')
LOCAL_RANK=0 run bind --device cpu python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'
expect_out "^$cpus\$"
LOCAL_RANK=1 run bind --device cpu:0/2 --exclusive python3 -c 'import os; print(len(os.sched_getaffinity(0)))'
expect_status 0

# a report says where rank and memory were
LOCAL_RANK=0 run bind --device cpu --report python3 -c 'x = bytearray(64 << 20); import time; time.sleep(2)'
expect_status 0
expect_err '^rank 0: cpu:0, NUMA node 0, CPUs [0-9,-]+, [0-9.]+% of [0-9.]+ MiB local$'
LOCAL_RANK=0 run bind --device cpu --report --json python3 -c 'x = bytearray(64 << 20); import time; time.sleep(2); exit(3)'
expect_status 3
json 'd["rank"] == 0 and d["numa_node"] == 0 and d["memory_bytes"] > 64 << 20 and 0 <= d["local_share"] <= 1'

# a signal that is sent to us reaches the program
"$gpulab" bind --device cpu --report bash -c 'trap "exit 9" TERM; echo up >up; while :; do sleep 0.05; done' &
pid=$!
until [ -e up ]; do sleep 0.02; done
kill -TERM $pid
wait $pid
[ $? -eq 9 ] || fail "TERM was not handed on"

# nothing that can't be improved is refused
run bind true
expect_status 0
expect_err '^gpulab: not bound: '
LOCAL_RANK=x run bind --device cpu:0/2 true
expect_status 0
expect_err "not bound: LOCAL_RANK is 'x', not a rank"
LOCAL_RANK=9 run bind --device cpu:0/2 true
expect_err 'not bound: rank 9 has no device: there are 2'

# mistakes
run bind
expect_status 2
expect_err 'no program'
run bind --device gpu true
expect_status 2
run bind --rank -3 true
expect_status 2
run bind --device cpu ./nothing
expect_status 127
expect_err "can't start './nothing'"
run bind --device cpu --report ./nothing
expect_status 127
run bind --device cpu /etc/passwd
expect_status 126
finish
