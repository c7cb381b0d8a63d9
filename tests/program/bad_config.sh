#!/usr/bin/env bash
# Config files that are none: an error that names the file, within a second and 200 MB, and nothing is
# written.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
conf=$work/conf/experiment
mkdir -p "$conf/folder.yaml"
head -c 100000 /dev/urandom >"$conf/binary.yaml"
truncate -s 100M "$conf/zeros.yaml"
python3 - "$conf" <<'PY'
import sys
with open(sys.argv[1] + "/large.yaml", "w") as file:
    for i in range(5_000_000):
        file.write(f"key{i}: {i}\n")
with open(sys.argv[1] + "/bomb.yaml", "w") as file:
    file.write("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
    for i in range(1, 30):
        file.write(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n")
with open(sys.argv[1] + "/deep.yaml", "w") as file:
    file.write("a: " + "[" * 1_000_000)
with open(sys.argv[1] + "/itself.yaml", "w") as file:
    file.write("defaults: [itself, _self_]\nname: itself\n")
PY
printf 'defaults: [quick_test, _self_]\nname: "\xff\xfe"\n' >"$conf/notext.yaml"
printf 'defaults: [quick_test, _self_]\nname: ../../etc\n' >"$conf/outside.yaml"
: >"$conf/empty.yaml"
ln -s /dev/zero "$conf/device.yaml"
mkfifo "$conf/pipe.yaml"
ln -s loop.yaml "$conf/loop.yaml"

# Processor time, not the clock's: the machine may be busy with others.
for name in folder binary zeros large bomb deep itself notext outside empty device pipe loop; do
    what="gpulab run $name"
    python3 - "$gpulab" "$work" "$name" <<'PY' || fail "$what: see above"
import resource, subprocess, sys
gpulab, work, name = sys.argv[1:]
command = [gpulab, "run", "--config-dir", work + "/conf", name, f"output_dir={work}/outputs"]
done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                      errors="replace", timeout=60)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1000
problem = (f"status {done.returncode}" if done.returncode != 2 else
           f"{seconds:.1f} s" if seconds > (1 if "san" not in gpulab else 10) else
           f"{megabytes:.0f} MB" if megabytes > 200 and "san" not in gpulab else
           "not one line" if done.stderr.count("\n") != 1 else
           f"doesn't name it" if name not in done.stderr else "")
if problem:
    print(f"{name}: {problem}: {done.stdout[:200]}{done.stderr[:500]}")
sys.exit(1 if problem else 0)
PY
done
[ ! -e "$work/outputs" ] || fail "something was written: $(find "$work/outputs")"
finish
