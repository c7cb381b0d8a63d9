#!/usr/bin/env bash
# doctor: each check has its state, what is missing its cost and the line that mends it; the file for a bug
# report has all of it and no secret.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state
state() { # state CHECK STATE: in the JSON that was printed
    json "[c['state'] for c in d['checks'] if c['check'] == '$1'] == ['$2']"
}

run doctor --json
expect_status 0
json 'd["essential_missing"] == [] and len(d["checks"]) >= 14'
json 'all(c["state"] in ("ok", "limited", "missing") and c["found"] for c in d["checks"])'
json 'all((c["cost"] is None) == (c["state"] == "ok") for c in d["checks"])'
json 'all(c["mend"] or c["check"] == "GPUs" for c in d["checks"] if c["cost"])'
for check in topology outputs cache state leases; do state $check ok; done
COLUMNS=80 run doctor
expect_status 0
expect_out '^Nothing essential is missing: [0-9]+ of [0-9]+ checks ok'
expect_out '^ +leases +ok +/'

# given what is wrong, then it is found: no gnuplot, no place for a cache
PATH=$work XDG_CACHE_HOME=/dev/null/x run doctor
expect_status 0
expect_out '^ +gnuplot missing: charts come as SVG alone, without PNG and PDF$'
expect_out '^ +sudo apt install gnuplot-nox$'
expect_out '^ +export XDG_CACHE_HOME='

# given a driver (tests/fake), then its libraries are looked for, and each that is missing can be had
export LD_LIBRARY_PATH=$build_dir/fake
run doctor --json
state 'CUDA driver' ok
json '[c["mend"] for c in d["checks"] if c["check"] == "NCCL"][0] in (None, "python3 -m pip install --user nvidia-nccl-cu13")'
FAKE_CUDA_VERSION=12040 run doctor --json
json 'all(c["state"] == "missing" and "too new" in c["found"] and "-cu12" in c["mend"] for c in d["checks"] if c["check"] == "CUPTI")'
unset LD_LIBRARY_PATH

# given a user who can't write here, nor lock memory, then what is essential is missing
limited=$(python3 - "$gpulab" 2>&1 <<'END'
import os, resource, shutil, subprocess, sys
os.mkdir("closed"), os.chmod(".", 0o755), shutil.copy(sys.argv[1], "gpulab"), os.chmod("closed", 0o555)
def drop():
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    if os.getuid() == 0:
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
done = subprocess.run(["../gpulab", "doctor"], cwd="closed", preexec_fn=drop, capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
END
)
for words in '1 Missing and essential: outputs' 'outputs missing: no study can be stored here' \
    'ulimit -l unlimited'; do
    [[ $limited == *"$words"* ]] || fail "no '$words' in: $limited"
done

# given a container without /sys, then nothing is said about what can't be seen
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    what="doctor without /sys"
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m sh -ec 'mount -t tmpfs none /sys; exec "$1" doctor --json' sh "$gpulab" >"$work/out" 2>"$work/err"
    state topology limited
    json '{"huge pages", "NUMA", "GPUs"}.isdisjoint({c["check"] for c in d["checks"]})'

    # given other words of the kernel, then each has its state, and the line that mends it
    said() { # said FILE TEXT CHECK STATE FOUND MEND: of the check
        [ -e "$1" ] || return
        what="doctor where $1 has $2"
        printf '%s\n' "$2" >"$work/said"
        # shellcheck disable=SC2016 # for the inner shell
        unshare -m sh -ec 'mount --bind "$2" "$3"; exec "$1" doctor --json' sh "$gpulab" "$work/said" "$1" \
            >"$work/out" 2>"$work/err"
        state "$3" "$4"
        json "[(c['found'], c['mend']) for c in d['checks'] if c['check'] == '$3'] == [('$5', $6)]"
    }
    pages=/sys/kernel/mm/transparent_hugepage/enabled
    said $pages 'always madvise [never]' 'huge pages' missing 'switched off' "'echo madvise | sudo tee $pages'"
    said $pages 'always [madvise] never' 'huge pages' ok 'where asked for' None
    said $pages '[always] madvise never' 'huge pages' ok 'always' None

    # given a /sys and a driver's folder that are written here, then each check says what it found, and what mends it
    mkdir -p small
    # shellcheck disable=SC2016 # for the inner shells
    world() { # world SETUP STATUS ROW…: "CHECK|STATE|FOUND|MEND"; FOUND and MEND may be patterns
        local setup=$1 expected=$2 row
        shift 2
        what="doctor after $setup"
        unshare -m sh -ec 'mount -t tmpfs none /sys; mount -t tmpfs none /proc/driver
            mkdir -p /sys/kernel/mm /sys/fs/cgroup /proc/driver/nvidia /sys/devices/system/clocksource/clocksource0
            '"$setup"'; exec ${caps-} "$1" doctor --json' sh "$gpulab" >"$work/out" 2>"$work/err"
        status=$?
        expect_status "$expected"
        for row; do
            python3 - "$work/out" "$row" <<'END' || fail "$what: not '$row': $(cat "$work/out" "$work/err")"
import fnmatch, json, sys
checks = json.load(open(sys.argv[1]))["checks"]
rows = ["|".join(str(c[k]) for k in ("check", "state", "found", "mend")) for c in checks]
sys.exit(not any(fnmatch.fnmatchcase(row, sys.argv[2]) for row in rows))
END
        done
    }
    groups='printf "0::/a/b\n" >/sys/groups; mount --bind /sys/groups /proc/$$/cgroup; mkdir -p /sys/fs/cgroup/a/b'
    groups+='; cd /sys/fs/cgroup/a; echo 1073741824 >memory.max; echo 536870912 >memory.current'
    world "$groups; echo 50000 100000 >cpu.max; cd /sys/devices/system/clocksource/clocksource0; echo tsc >current_clocksource" 0 \
        'CPUs|limited|time of 0.5 CPUs, of *|Give the container whole CPUs: *' \
        'memory|limited|512 MiB left of * by a limit of its control group|Raise the limit: *' \
        'clock|*|tsc, * ns a reading|*' \
        'huge pages|missing|a kernel without transparent huge pages|Boot a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y'
    only_admin='echo "RmProfilingAdminOnly: 1" >/proc/driver/nvidia/params'
    world "$only_admin; mount -t tmpfs none /proc/1; mount -t tmpfs -o size=8m none small; cd small" 0 \
        'GPU profiling|ok|for root, as here|None' 'clock|*|unknown source, *' 'outputs|limited|8.00 MiB free|gpulab clean *' \
        'processes|limited|your own alone|sudo mount -o remount,hidepid=0 /proc'
    world "$only_admin; export caps='setpriv --bounding-set=-sys_admin,-ipc_lock'; ulimit -l 64" 0 \
        'GPU profiling|limited|for root alone|echo options nvidia *' 'locked memory|limited|64.0 KiB|ulimit -l unlimited; *'
    # shellcheck disable=SC2016 # for the inner shells
    gpu='echo "RmProfilingAdminOnly: 0" >/proc/driver/nvidia/params; mkdir -p /sys/bus/pci/devices
        own=/sys/devices/pci0000:00/0000:00:01.0; mkdir -p $own; echo 0x10de >$own/vendor; echo 0x2330 >$own/device
        echo 0x030200 >$own/class; : >$own/config; ln -s $own /sys/bus/pci/devices/'
    if [ ! -e /dev/nvidiactl ]; then
        world "$gpu" 1 'GPU profiling|ok|open to all users|None' 'CUDA driver|missing|*|sudo apt install nvidia-driver' \
            'GPUs|missing|0 of 1 usable: *|sudo apt install nvidia-driver'
        json 'd["essential_missing"] == ["GPUs"]'
        world "$gpu; : >/proc/driver/nvidia/version" 1 'GPUs|missing|*|Start the container with GPUs: *'
        CUDA_VISIBLE_DEVICES='' world "$gpu" 1 'GPUs|missing|*|unset CUDA_VISIBLE_DEVICES'
        LD_LIBRARY_PATH=$build_dir/fake world "$gpu" 0 'GPUs|ok|* usable|None'
    fi
fi

# given one of several CPUs, then placements are limited
if [ "$(nproc)" -gt 1 ]; then
    what="doctor with one CPU"
    taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "$gpulab" doctor --json >"$work/out" 2>"$work/err"
    state CPUs limited
    json '[c["found"] for c in d["checks"] if c["check"] == "CPUs"][0].startswith("1 of ")'
fi

# the file for a bug report
export HOME=$work/home/alicetest USER=alicetest LOGNAME=alicetest
mkdir -p "$HOME"
export XDG_CACHE_HOME=$HOME/cache GPULAB_TOKEN=hunter2 NCCL_SECRET=hunter3 MY_VARIABLE=hunter4 NCCL_DEBUG=WARN
run doctor --bundle report.json
expect_status 0
expect_err '^gpulab: report.json is ready to send'
python3 - "$HOME" <<'END' || fail "report.json"
import json, sys
text = open("report.json").read()
d = json.loads(text)
assert set(d) == {"doctor", "environment", "system", "version", "devices"}, set(d)
assert len(d["doctor"]["checks"]) >= 14
assert d["environment"]["NCCL_DEBUG"] == "WARN" and d["environment"]["XDG_CACHE_HOME"] == "~/cache"
assert isinstance(d["devices"], dict), d["devices"]
machine = d["devices"]["machine"]
assert machine["nodes"] and d["version"]["version"] and d["system"]["kernel"]
assert machine["host"] in ("", "HOST"), machine["host"]
for secret in ("hunter", "alicetest", sys.argv[1]):
    assert secret not in text, secret
END
for words in "--bundle report.tar.gz" "--bundle none/x.json" "word"; do
    # shellcheck disable=SC2086 # two words
    run doctor $words
    [ "$status" != 0 ] || fail "$what: status 0"
    expect_one_line
done
finish
