#!/usr/bin/env bash
# A report writes into folders of its caller alone, replaces nothing but reports, and follows no link.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export XDG_STATE_HOME=$work/state HOME=$work/home GPULAB_LOCK_DIR=$work
mkdir -p "$work/home" && cd "$work" || exit 1

# expect_text FILE TEXT: the file is as the user left it
expect_text() {
    [ "$(cat "$1" 2>/dev/null)" = "$2" ] || fail "$what: $1 is not as it was"
}

run run quick_test device=sim:l40s-10 experiment.name=mine
expect_status 0
expect_out 'Transfer takes longer:'
expect_out '^All 3 runs are valid: vit0x0x0 '
folder=$(echo "$work"/outputs/mine/*/*)

# a folder with a user's own files is refused, and stays as it is
mkdir plots
for file in mine.gp mine.dat mine.png report.md index.html; do
    echo "of the user" >"plots/$file"
done
run report "$folder" -o plots
expect_status 2
expect_one_line
expect_err 'plots is not empty and was not written by gpulab.*--force'
for file in mine.gp mine.dat mine.png report.md index.html; do
    expect_text "plots/$file" "of the user"
done
[ "$(find plots -type f | wc -l)" = 5 ] || fail "$what: wrote something all the same"

# forced: files of a report's names are replaced, the others stay
run report "$folder" -o plots --force
expect_status 0
for file in mine.gp mine.dat mine.png; do
    expect_text "plots/$file" "of the user"
done
grep -q '<html' plots/index.html || fail "$what: no page"

# a folder with a report: the report is replaced, what the user added stays, what a report no longer has goes
run report "$folder" -o again
expect_status 0
echo "of the user" | tee again/mine.gp again/mine.png >again/notes.md
printf 'old.gp\n../outside.gp\n/outside\n' >>again/.gpulab.manifest
echo old >again/old.gp
echo outside >outside.gp
run report "$folder" -o again
expect_status 0
for file in mine.gp mine.png notes.md; do
    expect_text "again/$file" "of the user"
done
[ -e again/old.gp ] && fail "$what: a file of an earlier report stays"
expect_text outside.gp outside

# a file of the user's under a name that the report needs
first=$(find again -name '*.gp' ! -name mine.gp -printf '%f\n' | head -1)
[ "$first" ] || fail "no plot's script"
sed -i "/^$first\$/d" again/.gpulab.manifest
echo "of the user" >"again/$first"
cp again/index.html before.html
run report "$folder" -o again
expect_status 2
expect_err "again/$first exists and was not written by gpulab.*--force"
expect_text "again/$first" "of the user"
cmp -s again/index.html before.html || fail "$what: the page was replaced all the same"
[ -z "$(find again -name '.gpulab-*')" ] || fail "$what: left temporary files"

# two reports at once into one folder come one after the other
run record --demo -t 1s -o watched.db
expect_status 0
for round in 1 2 3; do
    "$gpulab" report "$folder" -o shared >first.txt 2>&1 &
    run report watched.db -o shared
    expect_status 0
    wait "$!" || fail "round $round, the other report: $(cat first.txt)"
    listed=$(sed 1d shared/.gpulab.manifest | sort)
    [ "$listed" = "$(find shared -type f ! -name '.*' -printf '%f\n' | sort)" ] ||
        fail "$what: the manifest doesn't list what is there"
done

# links: in the place of the report, and of its files
mkdir victim
echo "of the user" >victim/precious
mv "$folder/report" "$folder/kept"
ln -s "$work/victim" "$folder/report"
run report "$folder"
expect_status 2
expect_err 'report is a link or a file, not a directory'
[ "$(ls victim)" = precious ] || fail "$what: wrote through a link"
rm "$folder/report" && mv "$folder/kept" "$folder/report"
rm "$folder/report/index.html"
ln -s "$work/victim/precious" "$folder/report/index.html"
run report "$folder"
expect_status 0
expect_text victim/precious "of the user"
[ -L "$folder/report/index.html" ] && fail "$what: the link stays in the page's place"

# a link of the user's own leads to his own folder
mkdir linked_to && ln -s linked_to linked
run report "$folder" -o linked
expect_status 0
[ -s linked_to/index.html ] || fail "$what: no page behind the link"

# charts of an analysis, and of top, keep what isn't theirs
mkdir drawings
echo "of the user" | tee drawings/mine.gp >drawings/sensitivity.gp
run run numa_study device=sim:l40s-10 experiment.name=numa experiment.test.num_samples=20 experiment.repeat=1
numa=$(echo "$work"/outputs/numa/*/*)
run analyze numa "$numa" --charts fresh
expect_status 0
first=$(find fresh -name '*.gp' -printf '%f\n' | head -1)
[ "$first" ] || fail "$what: no chart"
echo "of the user" >"drawings/$first"
run analyze numa "$numa" --charts drawings
expect_status 2
expect_err "drawings/$first exists and was not written by gpulab"
expect_text "drawings/$first" "of the user"
run analyze numa "$numa" --charts fresh
expect_status 0
# a folder with charts holds no report: none is written there unasked, and the charts stay
echo "of the user" >fresh/mine.md
run report watched.db -o fresh
expect_status 2
expect_err 'fresh is not empty and was not written by gpulab.*--force'
run report watched.db -o fresh --force
expect_status 0
run report watched.db -o fresh
expect_status 0
[ -s "fresh/$first" ] || fail "$what: removed a chart of an analysis"
expect_text fresh/mine.md "of the user"

# two users: an attacker's study is reported into the caller's own folder alone
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || ! id nobody >/dev/null 2>&1; then
    echo "Not run: two users need root and setpriv."
    finish
fi
as_nobody() {
    setpriv --reuid nobody --clear-groups env HOME="$work/other" XDG_STATE_HOME="$work/other/state" \
        GPULAB_LOCK_DIR="$work/other" "$@"
}
chmod 755 "$work"
mkdir other && chown nobody other
(cd other && as_nobody "$gpulab" run quick_test device=sim:l40s-10 >/dev/null) || fail "no study of nobody's"
theirs=$(echo "$work"/other/outputs/quick_test/*/*)
echo "of the user" >victim/precious2
# what the attacker can prepare: the old work folder for many process ids, as links to a folder of the victim
# shellcheck disable=SC2016 # expanded by the inner shell
as_nobody bash -c 'for ((i = 1; i < 200; i++)); do
    ln -s "$2" "$1/report/.gpulab-report-$(($$ + i))"; done' - "$theirs" "$work/victim"
run report "$theirs"
expect_status 2
expect_one_line
expect_err 'belongs to another user.*-o DIR'
expect_text victim/precious2 "of the user"
find "$theirs" -user root | grep -q . && fail "$what: wrote into another user's study"
run report "$theirs" -o "$theirs/below"
expect_status 2
expect_err 'belongs to another user'
run report "$theirs" -o "$work/other"
expect_status 2
expect_err 'other belongs to nobody'
run report "$theirs" -o of_theirs
expect_status 0
[ -s of_theirs/index.html ] || fail "$what: no page"
find "$theirs" -user root | grep -q . && fail "$what: wrote into another user's study"
run report "$theirs" --format md
expect_status 0
# recordings, which have their report beside them
(cd other && mkdir recordings && chown nobody recordings &&
    as_nobody "$gpulab" record --demo -t 1s -o recordings/a.db >/dev/null 2>&1) || fail "no recording of nobody's"
for path in other/recordings/a.db a=other/recordings/a.db other/recordings; do
    run report "$path"
    expect_status 2
    expect_one_line
    expect_err 'belongs to another user.*-o DIR'
done
find other -user root | grep -q . && fail "$what: wrote beside another user's recording"
run report other/recordings/a.db -o of_recording
expect_status 0
# a program named gnuplot script in the attacker's folder is never run by name
mkdir -p "$work/bin"
printf '#!/bin/sh\necho "$@" >>%s/gnuplot-calls\nexec /usr/bin/gnuplot "$@"\n' "$work" >"$work/bin/gnuplot"
chmod +x "$work/bin/gnuplot"
PATH=$work/bin:$PATH run report "$theirs" -o of_theirs
grep -vqE -- "^-d -e cd '/[^']*/gpulab-scratch-[^']*' -\$" gnuplot-calls 2>/dev/null && fail "gnuplot was given a file: $(head -1 gnuplot-calls)"
finish
