#!/usr/bin/env bash
# Studies sent to a real MLflow server, read back by MLflow's own client: every value is there, once,
# whatever killed the sender; and what becomes of servers that refuse, are busy, break or hang. The
# packages are installed once, into build/mlflow. KILLS: how many (mlflow_kills.sh has 50).
# label: build
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
packages=$source_dir/build/mlflow
if [ ! -e "$packages/whole" ]; then
    rm -rf "$packages"
    if ! python3 -m pip install -q --disable-pip-version-check --only-binary=:all: --no-compile --target "$packages" \
        mlflow-skinny sqlalchemy alembic flask flask-cors >"$work/pip" 2>&1; then
        echo "SKIP: MLflow can't be installed: $(tail -1 "$work/pip")"
        exit 77
    fi
    touch "$packages/whole"
fi
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work MLFLOW_DISABLE_TELEMETRY=true
unset "${!MLFLOW_TRACKING_@}" "${!GPULAB_TRACK_@}"
check=(env "PYTHONPATH=$packages" python3 "$source_dir/tests/program/trackers.py")

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

# what a program reports, in 8 runs; the second reports values that are no numbers
cat >train.sh <<'PROGRAM'
for i in $(seq 60); do echo "{\"step\": $((10 * i)), \"loss\": $(((97 * i + $1) % 61)).$1, \"acc\": 0.$i}"; done
[ "$1" != 2 ] || printf '{"step": 700, "loss": NaN, "acc": Infinity}\n{"step": 710, "loss": -Infinity}\n'
PROGRAM
study=(test_matrix device=cpu:0 '~experiment.matrix.optimizer' 'experiment.command="bash train.sh {seed}"'
    '+experiment.matrix.seed=[1,2,3,4]' experiment.repeat=2 --no-report -q)
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

# bad input: one line, and the study's own exit status; what is left is counted, and sent later
export MLFLOW_HTTP_REQUEST_MAX_RETRIES=0 MLFLOW_HTTP_REQUEST_TIMEOUT=1
unsent() {
    run sync "$folder" --to mlflow --dry-run --json
    json 'd["sent"][0]["unsent"] == 8'
}
MLFLOW_TRACKING_URI=$fake/hang run run "${study[@]}" output_dir=hung tracker=mlflow
expect_status 0
expect_err "not all was sent to mlflow: .*127.0.0.1.*tim.*gpulab sync hung"
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
