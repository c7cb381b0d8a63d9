#!/usr/bin/env bash
# check: its exit status, the one line for a prolog, files, a driver that hangs, and what users do wrong.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
cd "$work" || exit 1
export HOME=$work XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state

one_line() { # what a prolog reads
    [ "$(wc -l <"$work/out")" = 1 ] || fail "$what: not one line: $(cat "$work/out")"
    [ "$(wc -m <"$work/out")" -le 121 ] || fail "$what: over 120 characters"
}

# a healthy machine: 0; the page, metrics and JSON agree
run check --level 2 --device sim:h200-8 --textfile check.prom --output check.html --json
expect_status 0
json 'd["healthy"] and d["status"] == 0 and d["gpus"] == 8 and len(d["reason"]) <= 120'
json 'all(f["verdict"] == "PASS" or f["reason"] for f in d["findings"])'
json 'len([f for f in d["findings"] if f["test"] == "p2p" and f["measured"] > 300]) == 56'
grep -q '^gpulab_check_status{level="2",simulated="true"} 0$' check.prom || fail "metrics: $(head -5 check.prom)"
grep -q 'simulated' check.html || fail 'the page does not say that it is simulated'

# a fault: 1, and the line names it
{ cat "$source_dir/conf/machine/h200-8.yaml" && echo '  link: [{gpu: 3, width: 8}]'; } >narrow.yaml
run check --quiet --device sim:./narrow.yaml
expect_status 1
one_line
expect_out '^isolate: GPU 3: pcie_width: PCIe link has 8 of 16 lanes \(simulated\)$'
# a file that can't be written doesn't hide it
for option in --textfile=none/x.prom --output=none/x.html --textfile=/dev/full; do
    run check --quiet --device sim:./narrow.yaml "$option"
    expect_status 1
    one_line
    expect_err 'written|No space'
    run check --quiet --device sim:h200-8 "$option"
    expect_status 2
    expect_out '^healthy'
done
{ cat "$source_dir/conf/machine/h200-8.yaml" && echo '  power_cap: [{gpu: 3, limit_w: 500}]'; } >capped.yaml
run check --quiet --fail-on reset --device sim:./capped.yaml
expect_status 0
run check --device sim:./capped.yaml
expect_status 1
expect_out '^ +power_limit +GPU 3 +500 W +700 W +FAIL'

run check --level 2 --limit 1ms --quiet --device sim:h200-8
expect_status 2
expect_out '^not checked: .*the time limit was reached$'

# a fleet: learnt twice into one file, then compared with
run check --level 2 --only gemm,hbm --learn fleet.yaml --device sim:h200-8 --quiet
expect_status 0
run check --level 2 --only gemm --learn fleet.yaml --seed 3 --device sim:h200-8 --quiet
expect_status 0
run check --level 2 --only gemm,gpu_count --against fleet.yaml --device sim:h200-8:0 --json
expect_status 0
json '[(f["test"], f["verdict"]) for f in d["findings"]] == [("gpu_count", "SKIPPED"), ("gemm", "PASS")]'
run check --level 2 --only gemm --learn none/x.yaml --device sim:h200-8 --quiet
expect_status 2
run check --level 2 --only gemm --learn narrow.prom --device sim:none
expect_status 2
[ ! -e narrow.prom ] || fail 'a file was made'

# given a driver (tests/fake), the tests of its GPUs are another process, whose end is waited for within the limit
export LD_LIBRARY_PATH=$build_dir/fake
GPULAB_FAKE_NVML='gpus=2; pcie_width=16,8; fabric=0' run check --quiet
expect_status 1
expect_out '^isolate: GPU 1: pcie_width'
GPULAB_FAKE_NVML='gpus=2; fabric=0' run check --json
expect_status 0
json 'd["driver"] == "580.00" and [f["verdict"] for f in d["findings"] if f["test"] == "answers"] == ["PASS"] * 2'
verdict() { # verdict TEST: its verdicts and reasons
    python3 -c 'import json, sys; print({(f["verdict"], f["reason"]) for f in json.load(open(sys.argv[1]))["findings"]
        if f["test"] == sys.argv[2]})' "$work/out" "$1"
}
# a driver that fails: an error is no value that isn't there; a GPU that was lost before fails
for call in DeviceGetNvLinkState DeviceGetFieldValues DeviceGetMemoryInfo_v2 SystemGetDriverVersion; do
    GPULAB_FAKE_NVML="gpus=2; fabric=0; fail=nvml$call:999" run check --quiet
    expect_status 2
    expect_out "^not checked: (answers|driver): nvml$call: "
done
GPULAB_FAKE_NVML='gpus=2; fabric=0; fail=nvmlDeviceGetCurrPcieLinkWidth:3' run check --quiet
expect_status 0
GPULAB_FAKE_NVML='gpus=2; fabric=0; fail=nvmlDeviceGetNvLinkState:15' run check --quiet
expect_status 1
expect_out '^isolate: GPU 0: answers: '
GPULAB_FAKE_NVML='gpus=2; fabric=0; ecc_uncorrected=0,1' run check --quiet
expect_out '^reset: GPU 1: ecc: 1 uncorrected memory error since'
GPULAB_FAKE_NVML='gpus=2; fabric=0; ecc=1,0' run check --quiet
expect_out '^monitor: GPU 1: ecc: ECC is off'
# what passes a moment later is no failure, and what doesn't is said soon
GPULAB_FAKE_NVML='gpus=2; fabric=0; reasons=0x8@0:0@0.3' run check --json
expect_status 0
[[ $(verdict clocks) = *PASS*'passed when tested again; at first: clocks are lowered'* ]] || fail "$(verdict clocks)"
GPULAB_FAKE_NVML='gpus=8; fabric=0; reasons=0x8; persistence=0; pcie_width=8' run check --json
expect_status 1
json '1 < d["duration_s"] < 5 and {f["tries"] for f in d["findings"] if f["verdict"] == "FAIL"} == {3}'
# a job on the same host may heat its GPU: lowered clocks are no fault then
GPULAB_FAKE_NVML='gpus=2; fabric=0; reasons=0,0x8; process=1:123:900' run check --fail-on reset --json
expect_status 0
[[ $(verdict clocks) = *SKIPPED*'while a process is on it'* ]] || fail "a shared host: $(verdict clocks)"
# NVLinks that no bridge joins are inactive on all GPUs; on one alone they are dead
GPULAB_FAKE_NVML='gpus=2; fabric=0; links=12; links_active=0' run check --json
expect_status 0
[[ $(verdict nvlink) = *SKIPPED*'none of its 12 NVLinks'* ]] || fail "no bridge: $(verdict nvlink)"
GPULAB_FAKE_NVML='gpus=2; fabric=0; links=12; links_active=12,0' run check --quiet
expect_out '^reset: GPU 1: nvlink: 0 of 12 NVLinks are active'
GPULAB_FAKE_NVML='gpus=2; fabric=0; lost=1@0' run check --quiet
expect_status 1
expect_out "^isolate: host: answers: the driver can't reach 1 of 2 GPUs"
# what a prolog meets: MIG, hidden GPUs, an old driver, no NVML
GPULAB_FAKE_NVML='gpus=2; fabric=0; mig=0:2,1:2' run check --level 2 --json
expect_status 0
json 'd["gpus"] == 2'
[[ $(verdict pcie_width) = *PASS* && $(verdict gemm) = *SKIPPED*MIG* ]] || fail "MIG: $(verdict pcie_width; verdict gemm)"
GPULAB_FAKE_NVML='gpus=2; fabric=0' CUDA_VISIBLE_DEVICES=1 run check --json
expect_status 0
[[ $(verdict gpu_count) = *SKIPPED*'may hide GPUs'* ]] || fail "hidden: $(verdict gpu_count)"
GPULAB_FAKE_NVML='gpus=2; fabric=0' CUDA_VISIBLE_DEVICES='' run check --quiet
expect_status 2
expect_err '^gpulab: not checked: no GPU to check: CUDA_VISIBLE_DEVICES'
GPULAB_FAKE_NVML='gpus=2; fabric=0; driver=450' run check --json
expect_status 0
[[ $(verdict processes) = *SKIPPED*"doesn't report"* ]] || fail "an old driver: $(verdict processes)"
GPULAB_FAKE_NVML='gpus=2; fail=nvmlInit_v2:18' run check --quiet
expect_status 2
expect_err 'differ in version: reboot, or reload the driver'
mkdir without && cp -P "$build_dir"/fake/libcuda.so* without
LD_LIBRARY_PATH=$work/without run check --quiet --textfile check.prom --output check.json
expect_status 2
expect_err '^gpulab: not checked: '
grep -q '^gpulab_check_status{level="1"} 2$' check.prom || fail "yesterday's metrics: $(head -3 check.prom)"
grep -q '"status": 2' check.json || fail 'no page'
for call in nvmlInit_v2 nvmlDeviceGetNvLinkState; do
    begun=$SECONDS
    GPULAB_FAKE_NVML="gpus=2; hang=$call:90" run check --json --limit 500ms
    expect_status 2
    json 'd["gpus"] is None and d["gpu"] is None and "within the limit of 500 ms" in d["reason"]'
    GPULAB_FAKE_NVML="gpus=2; hang=$call:90" run check --quiet --limit 1s
    expect_status 2
    one_line
    expect_out "^not checked: the driver didn't answer within the limit of 1 s$"
    [ $((SECONDS - begun)) -le 10 ] || fail "$call: the limit was not kept"
done
# and Ctrl-C ends the wait for it
GPULAB_FAKE_NVML="gpus=2; hang=nvmlInit_v2:90" timeout --foreground --preserve-status -s INT 3 "$gpulab" check --limit 30s 2>"$work/err"
status=$? what="gpulab check, interrupted"
expect_status 130
expect_err '^gpulab: stopped before the check was done$'
unset LD_LIBRARY_PATH

# no GPU, and mistakes: 2, one line each
refuse() { # refuse PATTERN ARGS...
    pattern=$1
    shift
    run check "$@"
    expect_status 2
    expect_one_line
    expect_err "$pattern"
}
[ -e /proc/driver/nvidia ] || refuse 'not checked: no GPU to check: '
refuse 'must be 1 to 3' --level 4
refuse "did you mean 'gemm'" --level 2 --only gem --device sim:h200-8
refuse 'it is a test of level 2: add --level 2' --only gemm --device sim:h200-8
refuse 'no such file|No such file' --against none.yaml --device sim:h200-8
refuse 'add --level 2' --learn x.yaml --device sim:h200-8
refuse "isn't a whole GPU" --device cpu
refuse 'are of two machines' --device sim:h200-8,sim:l40s-10
refuse 'is about NVIDIA L40S, and this host has NVIDIA H200' --against "$source_dir/conf/expected/l40s.yaml" --device sim:h200-8
refuse 'has to end in' --output x.xyz --device sim:h200-8
echo 'model: X' >x.yaml && echo 'values: {gem: 1}' >>x.yaml
refuse 'x.yaml:2: ' --against x.yaml --device sim:h200-8

if command -v shellcheck >/dev/null; then
    shellcheck "$source_dir"/examples/check/*.sh || fail 'shellcheck of the examples'
fi
# the prolog as Slurm would call it
printf '#!/bin/sh\nexec %s "$@" --device sim:%s/narrow.yaml\n' "$gpulab" "$work" >fake-gpulab && chmod +x fake-gpulab
GPULAB=$work/fake-gpulab SLURM_JOB_GPUS=0 sh "$source_dir/examples/check/slurm-prolog.sh" 2>prolog.err &&
    fail 'the prolog let a failed host pass'
grep -q 'isolate: GPU 3: pcie_width' prolog.err || fail "prolog: $(cat prolog.err)"
GPULAB=$work/fake-gpulab GPULAB_METRICS=none/x SLURM_JOB_GPUS=0 sh "$source_dir/examples/check/slurm-epilog.sh" 2>epilog.err &&
    fail 'the epilog let a failed host pass'
printf '#!/bin/sh\nexec %s "$@"\n' "$gpulab" >bare-gpulab && chmod +x bare-gpulab
if [ ! -e /proc/driver/nvidia ]; then # what wasn't checked is said once
    GPULAB=$work/bare-gpulab SLURM_JOB_GPUS=0 sh "$source_dir/examples/check/slurm-prolog.sh" 2>prolog.err &&
        fail 'the prolog let a host pass that was not checked'
    grep -q '^gpulab check: not checked: no GPU to check: ' prolog.err || fail "prolog: $(cat prolog.err)"
fi
for script in prolog epilog; do # a host without GPUs can't be checked, and isn't drained for that
    env -u CUDA_VISIBLE_DEVICES -u SLURM_JOB_GPUS "GPULAB=$work/fake-gpulab" GPULAB_METRICS=none/x \
        sh "$source_dir/examples/check/slurm-$script.sh" || fail "the $script drains hosts for jobs without GPUs"
done
finish
