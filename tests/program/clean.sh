#!/usr/bin/env bash
# clean.sh: `gpulab clean` lists first, removes what gpulab wrote and nothing else.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state TZ=UTC COLUMNS=200
cd "$work" || exit 1

# make_study FOLDER: of this user, with a trace, logs and a report
make_study() {
    mkdir -p "$1/logs" "$1/traces" "$1/report" "$XDG_STATE_HOME/gpulab/studies"
    cp "$source_dir/tests/fixtures/store/v2.db" "$1/study.db"
    head -c 50000 /dev/zero >"$1/traces/pipeline_a.sqlite"
    echo log >"$1/logs/experiment.log"
    : >"$1/logs/a.stdout"
    : >"$1/lock"
    echo page >"$1/report/index.html"
    printf 'gpulab files 1\nindex.html\n' >"$1/report/.gpulab.manifest"
    printf %s "$1" >"$XDG_STATE_HOME/gpulab/studies/$(printf %s "$1" | sha256sum | cut -c1-16)"
}
old=$work/outputs/quick_test/2026-11-13/09-00-00
new=$work/outputs/quick_test/2026-11-15/10-42-03
make_study "$old"
make_study "$new"
echo mine >"$new/notes.txt"
ln -s /etc/passwd "$new/traces/pipeline_link"

# nothing said is nothing done
run clean
expect_status 2
expect_err 'say what to remove'
expect_one_line

# given traces, then it lists them first, and only --yes removes them, and no link
run clean --traces
expect_status 0
expect_out '^ +[0-9-]+ [0-9:]+ +[0-9.]+ KiB +outputs/quick_test/2026-11-13/09-00-00$'
expect_out '^Would remove traces of 2 studies, [0-9.]+ KiB\. Nothing was removed: add --yes\.$'
[ -e "$old/traces/pipeline_a.sqlite" ] || fail "$what: a dry run removed a trace"
run clean --traces --yes --json
expect_status 0
json 'd["removed"] and len(d["studies"]) == 2 and d["total_bytes"] == sum(s["size_bytes"] for s in d["studies"]) >= 100000'
if [ -e "$new/traces/pipeline_a.sqlite" ] || [ ! -L "$new/traces/pipeline_link" ]; then fail "$what: $(ls "$new/traces")"; fi
if [ ! -e "$new/study.db" ] || [ ! -e "$new/logs/experiment.log" ]; then fail "$what: more than traces is gone"; fi
run clean --traces
expect_out '^Nothing to remove\.$'

# what is too new stays
run clean --older-than 3 # days were meant, not seconds
expect_status 2
expect_err 'older-than=3: must be 1h to'
run clean --older-than 10000d --yes
expect_out '^Nothing to remove\.$'
run clean --keep 2 --yes
expect_out '^Nothing to remove\.$'

# a study that runs stays, named or not
exec 9<>"$old/lock"
flock 9
run clean "$old" --yes
expect_status 2
expect_err 'is running'
run clean --logs --yes
expect_status 0
expect_out '^  Kept: outputs/quick_test/2026-11-13/09-00-00, running$'
[ -e "$old/logs/experiment.log" ] || fail "$what: it removed a running study's log"
exec 9>&-

# whole studies go, folders that are empty then too; what isn't gpulab's stays with its folder
run clean "$old" "$new" --yes
expect_status 0
expect_out "^  Kept: outputs/quick_test/2026-11-15/10-42-03/traces/pipeline_link and 1 more: not written by gpulab$"
expect_out '^Removed 2 studies, '
[ ! -e "$work/outputs/quick_test/2026-11-13" ] || fail "$what: $(find "$work/outputs")"
[ "$(cat "$new/notes.txt")" = mine ] || fail "$what: it removed a file of the user's"
if [ ! -e /etc/passwd ] || [ -e "$new/study.db" ] || [ -e "$new/report" ]; then fail "$what: $(find "$new")"; fi

# what is no study is refused
mkdir -p "$work/plain"
echo x >"$work/plain/study.txt"
run clean "$work/plain" --yes
expect_status 2
[ -e "$work/plain/study.txt" ] || fail "$what: it removed a file"

finish
