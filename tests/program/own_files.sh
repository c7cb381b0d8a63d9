#!/usr/bin/env bash
# A study's folder in which another user could put links and pipes: what they lead to stays as it is, and nothing
# waits. A folder of another user isn't resumed.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state HOME=$work/home GPULAB_LOCK_DIR=$work
mkdir -p "$work/home" && cd "$work" || exit 1
words=(run quick_test device=sim:l40s-10 --no-report)

# unfinished NAME: sets $folder to a study whose runner was killed
unfinished() {
    GPULAB_FAILPOINT=after-commit:1 "$gpulab" "${words[@]}" experiment.name="$1" >/dev/null 2>&1
    folder=$(echo "$work/outputs/$1"/*/*)
    [ -s "$folder/study.db" ] || fail "no unfinished study in $folder"
}

# resume NAME: within a time, since a pipe would keep it waiting for ever
resume() {
    what="resuming $1"
    timeout 20 "$gpulab" "${words[@]}" experiment.name="$1" >"$work/out" 2>"$work/err" </dev/null
    status=$?
}

echo precious >precious

# the study's log
unfinished log
for trap in "ln -s $work/precious" "ln $work/precious" mkfifo; do
    rm "$folder/logs/experiment.log"
    $trap "$folder/logs/experiment.log"
    resume log
    expect_status 2
    expect_err 'logs/experiment.log (is a link|has a second name|is a pipe)'
done
rm "$folder/logs/experiment.log"

# logs of runs, and the space that is kept: the study goes on without them
rm -f "$folder/.room"
ln -s "$work/precious" "$folder/.room"
id=$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT id FROM run WHERE state != '"'done'"' LIMIT 1").fetchone()[0])' \
    "$folder/study.db")
rm -f "$folder/logs/$id".std*
ln -s "$work/precious" "$folder/logs/$id.stdout"
mkfifo "$folder/logs/$id.stderr"
resume log
expect_status 0
grep -q "log not written: .*$id.stdout is a link" "$folder/logs/experiment.log" || fail "$what: no word of the link"
grep -q "log not written: .*$id.stderr is a pipe" "$folder/logs/experiment.log" || fail "$what: no word of the pipe"
[ "$(cat precious)" = precious ] || fail "a file outside of the study was written to"

# what SQLite keeps beside the study's file: it isn't opened, whatever command reads the study; other studies go on
unfinished beside
cp -a "$folder" saved
for trap in "ln $work/precious" mkfifo; do
    for end in -wal -shm -journal; do
        what="a study with '${trap%% *}' as study.db$end"
        rm -f "$folder/study.db$end"
        $trap "$folder/study.db$end"
        for look in "show $folder" "export $folder" "run quick_test device=sim:l40s-10 --dry-run" list; do
            # shellcheck disable=SC2086 # words
            timeout 20 "$gpulab" $look >"$work/out" 2>"$work/err" </dev/null
            [ $? != 124 ] || fail "$what: $look hangs"
        done
        resume beside
        expect_status 1
        expect_err "study.db$end is a link, a pipe or a device, or has a second name"
        [ "$(cat precious)" = precious ] || fail "$what: a file outside of the study was written to"
        rm -rf "$folder" && cp -a saved "$folder"
    done
done
resume beside
expect_err "resuming .*outputs/beside/"
expect_status 0

# the folder of another user
if [ "$(id -u)" = 0 ]; then
    unfinished theirs
    chown -R 65534:65534 "$folder"
    find "$folder" -printf '%p %s %T@\n' | sort >before
    resume theirs
    expect_status 0
    find "$folder" -printf '%p %s %T@\n' | sort | diff before - || fail "another user's study was changed"
    [ "$(echo "$work"/outputs/theirs/*/* | wc -w)" = 2 ] || fail "another user's study was resumed"
else
    echo "not root: the folder of another user wasn't tried"
fi
finish
