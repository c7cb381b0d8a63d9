#!/usr/bin/env bash
# Studies sent to a real MLflow server, read back by MLflow's own client: every value is there, once,
# whatever killed the sender; and what becomes of servers that refuse, are busy, break or hang.
# KILLS: how many (mlflow_kills.sh has 50).
# label: build
# shellcheck source=tests/program/trackers.bash
. "$(dirname "$0")/trackers.bash"
export MLFLOW_DISABLE_TELEMETRY=true

# serve KIND PLACE: sets $ports; ended with the test
pids=()
trap 'kill "${pids[@]}"; wait; rm -rf "$work"' EXIT
serve() {
    PYTHONPATH=$packages python3 "$source_dir/tests/program/mlflow_server.py" "$work/ports.$1" "$1" "$2" >"log.$1" 2>&1 &
    pids+=($!)
    for _ in $(seq 1800); do
        [ ! -e "ports.$1" ] || break
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    read -r -a ports <"ports.$1" || { cat "log.$1"; exit 1; }
}
mkdir store
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout key.pem -out cert.pem 2>/dev/null
cat key.pem cert.pem >both.pem
serve fake both.pem
fake=http://127.0.0.1:${ports[0]} tls=https://127.0.0.1:${ports[1]}
serve real store
export MLFLOW_TRACKING_URI=http://127.0.0.1:${ports[0]}

run run "${study[@]}" output_dir=live tracker=mlflow
expect_status 0
folder=$(echo live/test_matrix/*/*)
run sync "$folder" --watch --json
json 'd["sent"][0]["runs"] == 8 and d["sent"][0]["unsent"] == 0 and d["sent"][0]["points"] == 0'
project=$(python3 -c 'import json; print(json.load(open("out"))["sent"][0]["project"])')

# GPUs of the run alone, the report as an artefact
run run quick_test device=sim:l40s-10 output_dir=gpus tracker=mlflow -q
expect_status 0
gpus=$(echo gpus/quick_test/*/*)
run sync "$gpus" --watch --json
"${check[@]}" "$gpus" "mlflow=$(python3 -c 'import json; print(json.load(open("out"))["sent"][0]["project"])')" gpus ||
    fail "samples of GPUs, or the report"

# killed at each place and at random instants, the rest is sent later; a project's name has marks
sync=("$gpulab" sync "$folder" --to mlflow --project '../a b/👍' -q)
for place in after-track-deliver before-track-note:3 after-track-note:4; do
    GPULAB_FAILPOINT=$place "${sync[@]}" && fail "$place wasn't reached"
done 2>/dev/null
kills=${KILLS:-6}
for number in $(seq "$kills"); do
    [ "$number" != $((kills / 2)) ] || rm -r "$folder/track" # all of it once more, over what is there
    timeout -s KILL "0.$((number * 37 % 90 + 5))" "${sync[@]}" 2>/dev/null
done 2>/dev/null
"${sync[@]}" || fail "what is left isn't sent"

# other names
run sync "$folder" --to mlflow --project named --run-name 'first {run}' --prefix train/ --rename loss=error
expect_status 0
"${check[@]}" "$folder" "mlflow=$project" 'mlflow=..-a-b-👍' 'mlflow=named=first =train/=error' ||
    fail "not as it was reported: while it ran, after kills, or under other names"
run sync "$folder" --to mlflow --project named --run-name same
expect_status 1
expect_err "{run}"

# three hosts at once, in one run
rename_host() {
    python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1] + ".db")
d.execute("UPDATE epoch SET host = ?", sys.argv[1:]); d.commit()' "$1"
}
if [ -e "$source_dir/build/fake/libnvidia-ml.so.1" ]; then
    run record --demo -o own.db -- sh -c 'sleep 1; exit 3'
    run export own.db --format csv
    cp "$work/out" own.csv
    hosts=()
    for host in own other third; do
        [ "$host" = own ] || { cp own.db "$host.db" && rename_host "$host"; }
        "$gpulab" sync "$host.db" --to mlflow --run-name shared --project hosts -q &
        hosts+=($!)
    done
    wait "${hosts[@]}" || fail "a host isn't sent"
    "${check[@]}" own.csv mlflow_hosts || fail "three hosts in one run"
fi

# bad input: one line, and the study's own exit status; what is left is counted, and sent later
export MLFLOW_HTTP_REQUEST_MAX_RETRIES=0 MLFLOW_HTTP_REQUEST_TIMEOUT=1
unsent() {
    run sync "$folder" --to mlflow --dry-run --json
    json 'd["sent"][0]["unsent"] == 8'
}
MLFLOW_TRACKING_URI=$fake/hang run run "${study[@]}" output_dir=hung tracker=mlflow
expect_status 0
expect_err "not all was sent to mlflow: .*127.0.0.1.*tim.*gpulab sync hung"
MLFLOW_HTTP_REQUEST_TIMEOUT=60 MLFLOW_TRACKING_URI=$fake/hang run run "${study[@]}" output_dir=beside \
    tracker=mlflow,tensorboard
expect_status 0
expect_err "still sending to mlflow; what is left: gpulab sync beside"
run sync beside --to tensorboard --dry-run --json
json 'd["sent"][0]["runs"] == 8 and d["sent"][0]["unsent"] == 0'
if can_mount; then
    mounted "$(ldconfig -p | sed -n 's|.*libcurl.* => |mount --bind /dev/null |p')" \
        run quick_test device=sim:l40s-10 output_dir=alone tracker=mlflow --no-report -q
    expect_status 0
    expect_err "not all was sent to mlflow: .*: install libcurl .*gpulab sync alone"
    [ "$(wc -l <err)" = 1 ] || fail "$what: $(cat err)"
fi
while read -r uri message; do
    MLFLOW_TRACKING_URI=$uri run sync "$folder" --to mlflow
    expect_status 1
    expect_err "$message"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "$uri: $(cat "$work/err")"
    MLFLOW_TRACKING_URI=$uri unsent
done <<CASES
$fake/broken answers 500 to experiments/get-by-name: out of order$
$fake/refuse refuses access \\(401\\): set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME
http://127.0.0.1:1 [Cc]onnect
http://me:secret@127.0.0.1:1 http://127.0.0.1:1: .*[Cc]onnect
$tls/ok isn't trusted: set MLFLOW_TRACKING_SERVER_CERT_PATH
sqlite:///here set MLFLOW_TRACKING_URI to a server
CASES
while read -r uri first second; do
    env MLFLOW_TRACKING_URI="$uri" "$first" ${second:+"$second"} "$gpulab" sync "$folder" --to mlflow -q ||
        fail "$uri $first"
done <<CASES
$fake/busy MLFLOW_HTTP_REQUEST_MAX_RETRIES=2
$fake/refuse MLFLOW_TRACKING_TOKEN=secret
$fake/refuse/basic MLFLOW_TRACKING_USERNAME=user MLFLOW_TRACKING_PASSWORD=word
$tls/ok MLFLOW_TRACKING_INSECURE_TLS=true
$tls/also MLFLOW_TRACKING_SERVER_CERT_PATH=cert.pem
CASES
unset MLFLOW_HTTP_REQUEST_MAX_RETRIES MLFLOW_HTTP_REQUEST_TIMEOUT
run track-test mlflow
expect_status 0
expect_out "experiment gpulab-track-test"
finish
