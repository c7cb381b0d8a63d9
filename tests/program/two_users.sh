#!/usr/bin/env bash
# Two users of one machine, ada and bob: neither reads, changes, delays or runs what is the other's, beyond what file
# permissions allow. They have names, homes, /tmp and /run/lock in a mount namespace: the machine stays as it is.
if [ "${TWO_USERS:-}" != inside ]; then
    if [ "$(id -u)" != 0 ] || ! unshare -m setpriv true 2>/dev/null; then
        echo "skipped: needs root and mount namespaces"
        exit 77
    fi
    case ${ASAN_OPTIONS:-}$3 in */asan | */tsan) echo "skipped: release builds do so" && exit 77 ;; esac
    TWO_USERS=inside exec unshare -m bash "$(realpath "$0")" "$(realpath "$1")"
fi
exec 8<"$(dirname "$0")/lib.bash" 9<"$1" && mount -t tmpfs -o mode=755 tmpfs /home && install -m 755 /dev/fd/9 /home/gpulab || exit 1
{ cat /etc/passwd && printf '%s:x:%s:%s::/home/%s:/bin/sh\n' ada 61001 61001 ada bob 61002 61002 bob; } >/home/passwd
mount --bind /home/passwd /etc/passwd && mkdir -p /run/lock && cd / || exit 1
for folder in /tmp /run/lock; do mount -t tmpfs -o mode=1777 tmpfs "$folder" || exit 1; done
set -- /home/gpulab /home
# shellcheck source=tests/program/lib.bash
. /dev/fd/8
install -d -o 61001 -g 61001 /home/ada && install -d -o 61002 -g 61002 /home/bob && install -d -m 1777 /home/shared
user=(setpriv --clear-groups) pids=()
# shellcheck disable=SC2317 # by the trap
stop_all() { [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null; rm -rf "$work"; }
trap stop_all EXIT

# as USER COMMAND...: within 20 s, in the folder $at, with the variable $set; as `run` does
as() {
    what="$*"
    (cd "${at:-/home/$1}" && exec timeout 20 "${user[@]}" --reuid "$1" --regid "$(id -u "$1")" env -i PATH=/home:/usr/bin:/bin \
        HOME="/home/$1" LC_ALL=C.UTF-8 ${set:+"$set"} "${@:2}") >"$work/out" 2>"$work/err" </dev/null
    status=$?
    [ $status != 124 ] || fail "$what: hangs"
}
# bob_goes_on NAME CODE ARGS...: Python as bob, in the background, until it has made the file /home/bob/NAME
bob_goes_on() {
    "${user[@]}" --reuid bob --regid 61002 /usr/bin/python3 -c "$2
open('/home/bob/$1', 'w').close()
time.sleep(60)" "${@:3}" &
    pids+=($!)
    for _ in $(seq 200); do [ ! -e "/home/bob/$1" ] || return 0; sleep 0.05; done
    fail "bob isn't $1"
}
state_of() { find "$@" -printf '%p %s %m %U %T@ %C@\n' | sort; }
same() { state_of "$2" | diff "$work/$1" - || fail "$what: changed $2"; }

# --- ada's: an unfinished study in a folder of both, a finished one, a recording, a cache ---
study=(gpulab run quick_test device=sim:l40s-10 --no-report)
install -d -m 1777 /home/shared/outputs /home/shared/outputs/both
set=GPULAB_FAILPOINT=after-commit:1 as ada "${study[@]}" output_dir=/home/shared/outputs experiment.name=both
chmod 1777 /home/shared/outputs/both/*
theirs=$(echo /home/shared/outputs/both/*/*)
as ada sh -c 'echo precious >precious; gpulab run quick_test device=sim:l40s-10 --no-report output_dir=done &&
    gpulab tune softmax rows=8 columns=8 --device cpu:0 --budget 0.1s --warm && gpulab record --device cpu -i 5ms -t 25ms -o r.db'
expect_status 0
folder=$(echo /home/ada/done/*/*/*)
state_of /home/ada >"$work/before"
state_of "$theirs" >"$work/study"

# --- change: nothing of hers ---
for words in "report $folder" "export $folder -o $folder/x.csv" "export $folder -o /home/ada/precious" "clean $folder" \
    "record --device cpu -i 5ms -t 25ms -o /home/ada/r.db" "record --device cpu -t 25ms -o /home/ada/new.db" \
    "top /home/ada/r.db --summary /home/ada/precious" "report /home/ada/r.db --output /home/ada/page" \
    "doctor --bundle /home/ada/precious" "run quick_test device=sim:l40s-10 output_dir=/home/ada/done"; do
    # shellcheck disable=SC2086 # words
    as bob gpulab $words
    [ "$status" != 0 ] || [ "${words%% *}" = clean ] || fail "$what: status 0"
    same before /home/ada
done
set=XDG_CACHE_HOME=/home/ada/.cache as bob gpulab tune softmax rows=8 columns=8 --device cpu:0 --budget 0.1s --warm
same before /home/ada
as bob "${study[@]}" output_dir=/home/shared/outputs experiment.name=both
expect_status 0
same study "$theirs"
[ "$(find /home/shared/outputs/both -name study.db -user bob | wc -l)" = 1 ] || fail "$what: no study of bob's own"

# --- read: where permissions allow it; never the cache, nothing under umask 077 ---
as bob gpulab show "$folder"
expect_status 0
as ada sh -c "umask 077; mkdir p; cd p; ${study[*]} && gpulab record --device cpu -i 5ms -t 25ms -o r.db"
expect_status 0
private=$(echo /home/ada/p/outputs/*/*/*)
[ -z "$(find /home/ada/p -mindepth 1 -perm /077)" ] || fail "under umask 077: $(find /home/ada/p -perm /077)"
chmod 755 /home/ada/p
for words in "ls /home/ada/.cache/gpulab" "gpulab show $private" "gpulab export $private" "gpulab top /home/ada/p/r.db --once" \
    "gpulab report $private --output mine" "gpulab compare $private $folder"; do
    # shellcheck disable=SC2086
    as bob $words
    [ "$status" != 0 ] || fail "$what: shows what is private"
done

# --- delay: a reader's locks, leases, /tmp ---
bob_goes_on locking 'import fcntl, glob, os, sys, time
for path in [top + end for top in sys.argv[1:] for end in ("", "/*", "/.*")]:
    for held in map(lambda one: os.open(one, os.O_RDONLY), glob.glob(path)):
        fcntl.flock(held, fcntl.LOCK_SH)' "$theirs" "$folder"
as ada "${study[@]}" output_dir=/home/shared/outputs experiment.name=both
expect_status 0
expect_err "resuming $theirs"

lock=$(find /run/lock -name '*cpu*' -print -quit)
[ -n "$lock" ] || fail "no lease in /run/lock: $(ls -la /run/lock)"
"${user[@]}" --reuid ada --regid 61001 flock --no-fork "$lock" sleep 60 &
pids+=($!)
sleep 0.3
as bob rm -f "$lock"
[ -e "$lock" ] || fail "bob removed ada's lease"
as bob timeout --preserve-status 2 gpulab run quick_test device=cpu:0 --no-report
[ "$status" != 0 ] || fail "$what: measures where ada does"
expect_err 'waiting for cpu:0'
state_of /home/ada/precious >"$work/precious"
for trap in "ln -s /home/ada/precious" "ln -s /home/ada/missing" mkfifo; do
    rm "$lock"
    # shellcheck disable=SC2086
    as bob $trap "$lock"
    as ada gpulab run quick_test device=cpu:0 --no-report
    expect_err "$lock is not a plain file"
    same precious /home/ada/precious
    [ ! -e /home/ada/missing ] || fail "$what: made a file for bob"
done
# as in a container, whose /run/lock is there and can't be written to
mount -t tmpfs -o ro,mode=1777 tmpfs /run/lock && mkfifo "/tmp/${lock##*/}"
as ada gpulab run quick_test device=cpu:0 --no-report
expect_err "/tmp/${lock##*/} is not a plain file"
rm "/tmp/${lock##*/}" && umount /run/lock

as bob sh -c 'mkdir -m 777 /tmp/gpulab-scratch-aaaaaa && echo bob >/tmp/gpulab-scratch-aaaaaa/own
              ln -s /home/ada/done /tmp/gpulab-scratch-bbbbbb'
set=GPULAB_FAILPOINT=before-replace as ada gpulab report "$folder"
as ada gpulab report "$folder"
expect_status 0
[ -e /tmp/gpulab-scratch-aaaaaa/own ] || fail "$what: removed bob's scratch folder"
[ -s "$folder/study.db" ] || fail "$what: followed bob's link in /tmp"
left=$(find /tmp -maxdepth 1 -name 'gpulab-*' -user ada)
[ -z "$left" ] || fail "$what: left $left"

# --- run: no config, program, library or start-up file of the folder that she is in ---
as bob sh -c 'chmod 777 . && mkdir -p /home/shared/trap/conf/experiment && cd /home/shared/trap && echo none >libcuda.so.1
    printf "#!/bin/sh\ntouch /home/bob/ran\n" | tee gpulab gnuplot sh python3 >/dev/null && chmod 755 gpulab gnuplot sh python3
    echo "system \"touch /home/bob/ran\"" >.gnuplot
    printf "defaults: [_base, _self_]\nname: quick_test\nworkload: command\ncommand: touch /home/bob/ran\n" |
        tee conf/experiment/quick_test.yaml >quick_test.yaml'
at=/home/shared/trap as ada gpulab run quick_test device=sim:l40s-10 output_dir=/home/ada/trapped
expect_status 0
at=/home/shared/trap as ada gpulab devices
[ ! -e /home/bob/ran ] || fail "ada ran what is bob's"

# --- the exporter: bob's connections don't keep her scraper out ---
"${user[@]}" --reuid ada --regid 61001 env HOME=/home/ada /home/gpulab exporter --listen 127.0.0.1:0 2>"$work/exporter" &
pids+=($!)
for _ in $(seq 100); do
    url=$(sed -n 's|^listening on \(http://127.0.0.1:[0-9]*/metrics\)$|\1|p' "$work/exporter")
    [ -z "$url" ] || break
    sleep 0.05
done
bob_goes_on connected 'import socket, sys, time, urllib.parse
held = [socket.socket() for _ in range(300)]
for one in held:
    one.settimeout(0.2)
    try:
        one.connect(("127.0.0.1", urllib.parse.urlparse(sys.argv[1]).port))
        one.send(b"GET /metrics HTTP/1.1\r\n")
    except OSError:
        pass' "$url"
as ada /usr/bin/python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).status)' "$url"
expect_out '^200$'
finish
