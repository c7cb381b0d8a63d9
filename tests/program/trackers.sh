#!/usr/bin/env bash
# Studies sent to trackers, read back by the trackers' own code: every value is there, once, whatever
# killed the sender or the runner. KILLS: how often the latter is (trackers_kills.sh has 50).
# label: build
build_dir=$(realpath "$3")
# shellcheck source=tests/program/trackers.bash
. "$(dirname "$0")/trackers.bash"

run run "${study[@]}" output_dir=live tracker=wandb,tensorboard,trackio
expect_status 0
folder=$(echo live/test_matrix/*/*)
"${check[@]}" "$folder" wandb tensorboard trackio || fail "$what: not as it was reported"
run sync "$folder" --json
json 'all(s["runs"] == 8 and s["unsent"] == 0 and s["points"] == 0 for s in d["sent"]) and len(d["sent"]) == 3'

# killed at each place and at 50 random instants, the rest is sent later; -m makes no sweep of it
run run -m "${study[@]}" output_dir=killed tracker=none,none
expect_status 0
killed=$(echo killed/test_matrix/*/*)
export WANDB_DIR=$work/elsewhere TRACKIO_DIR=$work/trackio2
mkdir "$WANDB_DIR"
sync=("$gpulab" sync "$killed" --to "tensorboard,wandb,trackio" -q)
for place in after-track-deliver before-track-note:2 after-track-note:3; do
    GPULAB_FAILPOINT=$place "${sync[@]}" && fail "$place wasn't reached"
done 2>/dev/null
for number in $(seq 50); do
    [ "$number" != 25 ] || rm -r "$killed/track" # all of it once more, over what is there
    timeout -s KILL "0.0$((number * 37 % 90 + 5))" "${sync[@]}" 2>/dev/null
done 2>/dev/null
"${sync[@]}" || fail "what is left isn't sent"
"${check[@]}" "$killed" wandb tensorboard trackio || fail "killed: not as it was reported"

# the runner killed at random and resumed: each point of a run's last attempt is there once
unset WANDB_DIR
sed '$a sleep 0.1' train.sh >slow.sh
kills=${KILLS:-4} count=0 round=0
while [ "$count" -lt "$kills" ]; do
    round=$((round + 1))
    export TRACKIO_DIR=$work/torn$round/trackio
    torn=("$gpulab" run "${study[@]/train.sh/slow.sh}" "output_dir=torn$round" "tracker=wandb,tensorboard,trackio")
    until [ "$count" -ge "$kills" ] || timeout -s KILL "0.$((count * 37 % 80 + 19))" "${torn[@]}"; do
        count=$((count + 1))
    done >/dev/null 2>&1
    "${torn[@]}" >/dev/null 2>&1
    # killed at its very beginning it leaves a folder without a plan, and the next one makes another
    places=(torn"$round"/test_matrix/*/*)
    "$gpulab" sync "${places[-1]}" --watch -q || fail "what is left isn't sent"
    "${check[@]}" "${places[-1]}" wandb tensorboard trackio || fail "torn: not as it was reported"
done
TRACKIO_DIR=$work/trackio2

# runs that report no steps, or fractions of epochs
cat >steps.sh <<'PROGRAM'
for i in $(seq 25); do
    [ "$1" = 1 ] && echo "{'loss': 0.$i, 'epoch': 0.$((i + 10))}" || { echo "loss: 0.$i"; sleep 0.1; }
done
PROGRAM
TRACKIO_DIR=$work/steps run run "${study[@]/train.sh/steps.sh}" '+experiment.matrix.seed=[1,2]' output_dir=steps \
    tracker=tensorboard,trackio
expect_status 0
run sync steps --watch -q
TRACKIO_DIR=$work/steps "${check[@]}" "$(echo steps/*/*/*)" steps || fail "not at the steps that were reported"

# interrupted and resumed: the study as a whole is one run
export TRACKIO_DIR=$work/resumed
resumed=("${study[@]/train.sh/pause.sh}" output_dir=resumed tracker=trackio)
sed '$a sleep 0.4' train.sh >pause.sh
timeout -s INT 2 "$gpulab" run "${resumed[@]}" >/dev/null 2>&1
run run "${resumed[@]}"
expect_status 0
places=(resumed/*/*/*)
run sync "${places[-1]}" --watch -q
"${check[@]}" "${places[-1]}" trackio || fail "resumed: not as it was reported"
TRACKIO_DIR=$work/trackio2

# more points than are sent: that is said at the study's end, unless a busy machine is still sending then
run run test_matrix device=cpu:0 'experiment.matrix={}' --no-report -q output_dir=many tracker=tensorboard \
    'experiment.command="seq -f loss:%g 60000"'
expect_status 0
grep -q 'still sending to tensorboard' err ||
    expect_err "tensorboard: [0-9]* points sent as [0-9]*: the least and the largest of each stretch"

# GPUs of the run alone, under each tracker's own names, and a study of 0.1.0
run run quick_test device=sim:l40s-10 output_dir=gpus tracker=wandb,tensorboard,trackio -q
expect_status 0
"${check[@]}" "$(echo gpus/quick_test/*/*)" wandb tensorboard trackio gpus || fail "samples of GPUs"
python3 "$source_dir/tests/program/wandb_server.py" port requests 9>&- &
server=$!
until [ -e port ] || ! kill -0 "$server"; do sleep 0.1; done
for place in "$folder" gpus/quick_test/*/*; do
    WANDB_BASE_URL=http://127.0.0.1:$(<port) WANDB_API_KEY=$(printf '%040d' 1) WANDB_ERROR_REPORTING=false \
        PYTHONPATH=$packages python3 -m wandb sync "$place"/wandb/offline-run-* >upload 2>&1 ||
        fail "wandb sync: $(tail -3 upload)"
    "${check[@]}" "$place" uploaded requests || fail "not what 'wandb sync' uploads"
done
kill "$server"
cp -r "$source_dir/tests/fixtures/0.1.0/program" old
run sync old --to wandb,tensorboard
expect_status 0
"${check[@]}" old wandb tensorboard || fail "a study of 0.1.0"

# around a command: all GPUs that are recorded, each reading once; its exit status is passed on
if [ -e "$source_dir/build/fake/libnvidia-ml.so.1" ]; then
    run record --demo --tracker tensorboard,wandb -o made.db -- sh -c 'sleep 2; exit 3'
    expect_status 3
    run export made.db --format csv
    cp "$work/out" made.csv
    "${check[@]}" made.db.track recording made.csv || fail "a recording isn't as it was recorded"
    # GPUs of its process tree alone unless all are asked for; two hosts in one run
    for gpus in job all; do
        LD_LIBRARY_PATH=$build_dir/fake GPULAB_FAKE_NVML='gpus=3; power=100,200,300; process=1:leaves:80:85:C' \
            GPULAB_TRACK_GPUS=$gpus run record --tracker tensorboard -o $gpus.db -- sh -c 'sh -c "sleep 2; true"; true'
        expect_status 0
    done
    cp job.db other.db
    python3 -c 'import sqlite3; d = sqlite3.connect("other.db"); d.execute("UPDATE epoch SET host = ?", ["other"]); d.commit()'
    run sync job.db other.db --to tensorboard,wandb,trackio --run-name shared --project hosts --folder together
    expect_status 0
    "${check[@]}" . hosts || fail "GPUs of a command, or of two hosts"
    run sync job.db --to tensorboard --gpus all
    expect_err "tensorboard: 1 run was sent again, with all GPUs"
    grep -q gpu_2_power job.db.track/tensorboard/*/* || fail "$what: not of all GPUs"
    run sync job.db --to tensorboard --json
    json 'd["sent"][0]["points"] == 0'
    run record --tracker wandb -o none.db -- ./nothing
    expect_status 127
    [ -z "$(ls -d none.db* 2>/dev/null)" ] || fail "files are left of a command that didn't start"
fi
for tracker in tensorboard wandb trackio; do
    run track-test "$tracker"
    expect_status 0
done
"${check[@]}" . curve || fail "a synthetic curve doesn't arrive"

# values that are read anew after they were sent
sed -i 's/"acc": 0/"acc": 1/' "$folder"/logs/*.stdout
run metrics reread "$folder" --force
expect_status 0
run sync "$folder" --to tensorboard
expect_err "the values of 8 runs changed since, and were sent again: .*, …"
"${check[@]}" "$folder" tensorboard || fail "not as it was read anew"
run sync "$folder" --to tensorboard --json
json 'd["sent"][0]["points"] == 0 and d["sent"][0]["runs"] == 8'

# files that are gone are written again where they are read
rm -r "$folder/tensorboard"
run sync "$folder" --to tensorboard
expect_err "tensorboard: 8 runs were written again: the files were gone"
"${check[@]}" "$folder" tensorboard || fail "not as it was before its files were gone"

# neither another project nor another place makes another file beside the first
cp -r "$folder" moved
for place in "$folder" moved; do
    run sync "$place" --to tensorboard --project other --json
    json 'd["sent"][0]["runs"] == 8 and d["sent"][0]["points"] == 0'
    "${check[@]}" "$place" tensorboard || fail "$place: values are there twice"
done
mkdir locked
cp "$folder"/* locked 2>/dev/null
touch locked/track # no folder
run sync locked --to tensorboard --json
expect_status 1
json 'd["sent"][0]["unsent"] == 8'

# bad input: one line, and the study's own exit status
for folder_of in TRACKIO_DIR=trackio WANDB_DIR=wandb; do # another folder is another destination
    env "${folder_of%=*}=$work/other" "$gpulab" sync "$folder" --to "${folder_of#*=}" -q || fail "$folder_of"
done
places=(other/inbox/gpulab-* other/wandb/offline-run-*)
[ "${#places[@]}" = 18 ] || fail "not 9 runs each: ${places[*]}"
run run "${study[@]}" tracker=wanb
expect_status 2
expect_one_line
expect_err "tracker: no tracker 'wanb'; did you mean 'wandb'"
run sync "$folder" --to nothing
expect_status 2
expect_err "no tracker 'nothing'"
run sync "$folder" --to tensorboard --rename loss
expect_status 1
expect_err "--rename needs OLD=NEW, not 'loss'"
run record --tracker wanb -o none.db -- true
expect_status 2
expect_one_line
run sync old
expect_status 2
expect_err "add --to"
touch file
TRACKIO_DIR=$work/file run run "${study[@]}" output_dir=blocked tracker=trackio
expect_status 0
expect_err "not all was sent to trackio: .*file.*gpulab sync blocked"
run sync blocked/test_matrix/*/* --dry-run --json
json 'd["sent"][0]["unsent"] == 8'
expect_err "not sent yet: .*, .*, .*, …"
if can_mount; then # folders of one's own that are read-only
    mkdir closed
    export WANDB_DIR=$work/closed TRACKIO_DIR=$work/closed GPULAB_TRACK_FOLDER=$work/closed
    mounted 'mount --bind closed closed; mount -o remount,ro,bind closed' run "${study[@]}" output_dir=later \
        tracker=wandb,tensorboard,trackio
    expect_status 0
    expect_err "not all was sent to wandb,tensorboard,trackio: .*making $work/closed/wandb: Read-only.*gpulab sync later"
    [ "$(wc -l <err)" = 1 ] || fail "$what: $(cat err)"
    run sync later/test_matrix/*/* --dry-run --json
    json '[s["unsent"] for s in d["sent"]] == [8, 8, 8]'
    run sync later/test_matrix/*/*
    expect_status 0
    expect_out "wandb sync $work/closed/wandb/offline-run-\*"
    "${check[@]}" "$(echo later/test_matrix/*/*)" wandb tensorboard trackio || fail "sent later: not as it was reported"
    unset WANDB_DIR GPULAB_TRACK_FOLDER
fi
printf '3 1 9 9' >>"$folder/track/tensorboard.log" # cut off by a crash
run sync "$folder" --to tensorboard --json
json 'd["sent"][0]["runs"] == 8 and d["sent"][0]["points"] == 0'
echo nothing >"$folder/track/tensorboard.log"
run sync "$folder" --to tensorboard
expect_status 1
expect_err "isn't a journal of this version"
run sync blocked/test_matrix/*/* --project '../a/b c👍'
expect_status 0
ls -d "$TRACKIO_DIR"/inbox/gpulab-* >/dev/null || fail "nothing is in the inbox"
run sync blocked/test_matrix/*/* --to tensorboard --max-points 20
expect_err "966 points sent as 3[0-9][0-9]: the least and the largest"
finish
