#!/usr/bin/env bash
# gpulab exporter as Prometheus meets it: four GPUs of the fake driver, whose values are known, are
# scraped by a real server and asked back from it. Then clients that mean no good.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
build_dir=$(realpath "$3")
here=$(realpath "$(dirname "$0")")
cd "$work" || exit 1
command -v prometheus >/dev/null || { echo "skipped: prometheus isn't installed"; exit 77; }
[ -e "$build_dir/fake/libnvidia-ml.so.1" ] || { echo "no fake driver in $build_dir/fake"; exit 1; }
export LD_LIBRARY_PATH=$build_dir/fake
export GPULAB_FAKE_NVML="gpus=4; name=NVIDIA H200; memory_total=143771; reserved=500;
    memory=12800,12750,12825,12780; utilization=97,96,95,94; power=412.5,400,390,380;
    temperature=61; sm_clock=1980; sm=81.25; reasons=4; pcie_tx=2048; process=0:self:8000:85:C"
unset CUDA_VISIBLE_DEVICES
pids=()
# shellcheck disable=SC2317 # by the trap
stop_all() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$work"
}
trap stop_all EXIT

# --- the exporter ---
: >"$work/log"
"$gpulab" exporter --listen 127.0.0.1:0 --interval 100ms 2>"$work/log" >"$work/stdout" </dev/null &
exporter=$!
pids+=("$exporter")
for ((i = 0; i < 200; i++)); do
    url=$(sed -n 's|^listening on \(http://127.0.0.1:[0-9]*\)/metrics$|\1|p' "$work/log")
    [ -n "$url" ] && break
    sleep 0.02
done
[ -n "$url" ] || { fail "it doesn't begin to listen: $(cat "$work/log")"; finish; }

# --- Prometheus: five seconds pass before it looks at its first target; the rest is done meanwhile ---
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/prometheus.yml" <<YAML
global: {scrape_interval: 250ms, scrape_timeout: 250ms}
scrape_configs:
  - job_name: gpulab
    static_configs: [{targets: ['${url#http://}']}]
YAML
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
    --storage.tsdb.retention.time=1h --web.listen-address="127.0.0.1:$port" --log.level=warn \
    >"$work/prometheus.log" 2>&1 </dev/null &
pids+=($!)

# --- bad input is one line, and nothing is started ---
refuse() { # refuse STATUS PATTERN ARGS...
    local expected=$1 pattern=$2
    shift 2
    run exporter "$@"
    expect_status "$expected"
    expect_one_line
    expect_err "$pattern"
}
refuse 2 'needs brackets.*\[::1\]:9400' --listen ::1
refuse 2 'port must be 0 to 65535' --listen 127.0.0.1:70000
refuse 2 'no such address' --listen 192.0.2.1:9400
refuse 2 'interval' --interval 0
refuse 2 'cuda:0x9 isn.t a device' --device cuda:0x9 --listen 0
refuse 2 '[^0-9]9[^0-9].*0.*3' --device cuda:9 --listen 0
refuse 2 'takes options only' extra
refuse 1 'another program listens on port [0-9]+ already' --listen "${url#http://}"

# --- the text by itself ---
python3 "$here/exporter.py" get "$url/metrics" >"$work/metrics" || fail "no answer from $url/metrics"
if command -v promtool >/dev/null; then
    # dcgm-exporter's names are what they are; ours follow the conventions
    promtool check metrics <"$work/metrics" >"$work/lint" 2>&1
    ! grep -v '^DCGM_' "$work/lint" || fail "promtool objects"
fi

# --- clients that are many, slow or hostile ---
python3 "$here/exporter.py" abuse "$url" "$exporter" || fail "the exporter suffers under its clients"

# --- other lives: Ctrl-C, JSON, an address that others can reach, one GPU, none, and one that is lost ---
python3 "$here/exporter.py" life "$gpulab" || fail "its life isn't as it should be"

# --- what Prometheus knows by now ---
python3 "$here/exporter.py" prometheus "http://127.0.0.1:$port" "$exporter" || {
    fail "what Prometheus knows isn't what the GPUs do: $(tail -3 "$work/prometheus.log")"
}

# --- the end ---
kill "$exporter"
wait "$exporter"
status=$?
pids=("${pids[@]:1}")
what="an exporter that was ended"
expect_status 0
[ ! -s "$work/stdout" ] || fail "output: $(head -3 "$work/stdout")"
[ "$(wc -l <"$work/log")" = 1 ] || fail "messages: $(cat "$work/log")"
finish
