#!/usr/bin/env bash
# This machine and every recorded one, as text, drawing and JSON. GOLDEN_UPDATE=1 writes the golden
# files anew; look at them before they are committed.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$source_dir" || exit 1

golden() {
    local file=tests/golden/$1
    shift
    run devices "$@"
    expect_status 0
    if [ "${GOLDEN_UPDATE:-}" = 1 ]; then
        cp "$work/out" "$file"
    elif ! diff -u "$file" "$work/out" >"$work/diff"; then
        fail "$what differs from $file:
$(head -40 "$work/diff")"
    fi
}

count=0
for fixture in tests/fixtures/*.xml; do
    name=$(basename "$fixture" .xml)
    for columns in 80 120; do
        export COLUMNS=$columns
        golden "devices-$name-$columns.txt" --topology "$fixture"
        golden "map-$name-$columns.txt" --topology "$fixture" --map
        for file in tests/golden/{devices,map}-"$name"-$columns.txt; do
            [ "$(wc -L <"$file")" -le $columns ] || fail "$file is wider than $columns columns"
        done
    done
    unset COLUMNS
    run devices --topology "$fixture" --json
    expect_status 0
    json 'd["machine"]["recorded"] and len(d["machine"]["nodes"]) >= 1'
    json 'all(b["devices"] or b["why_none"] for b in d["backends"])'
    count=$((count + 1))
done
[ $count -ge 3 ] || fail "only $count recorded machines"

run devices --topology tests/fixtures/4node-10gpu.xml --json
json 'len([p for p in d["machine"]["pci"] if p["kind"] == "gpu"]) == 10'
json 'sorted(n["node"] for n in d["machine"]["nodes"]) == [0, 1, 2, 3]'

# --device lists what it names, here and on a recorded machine, beside the drawing too
run devices --topology tests/fixtures/4node-10gpu.xml --device cpu:3/4,cpu:0
expect_status 0
expect_out '^ +cpu:3/4\.1 +3 .* 78-83 +6 of 24 cores'
expect_out '^ +cpu:0 +0 '
grep -q '^ *cpu:1 ' "$work/out" && fail "cpu:1 was not asked for"
run devices --topology tests/fixtures/4node-10gpu.xml --device cpu:3/4.2 --map
expect_out '^┌─ NUMA node 0'
expect_out '^ +cpu:3/4\.2 '
run devices --topology tests/fixtures/4node-10gpu.xml --device cpu:3/4,cpu:0 --json
json '[v["name"] for b in d["backends"] for v in b["devices"]] == ["cpu:3/4.0", "cpu:3/4.1", "cpu:3/4.2", "cpu:3/4.3", "cpu:0"]'
json 'd["selector"] == "cpu:3/4,cpu:0" and d["backends"][0]["devices"][1]["cpus"] == list(range(78, 84))'
run devices --device cpu --json
expect_status 0
run devices --topology tests/fixtures/4node-10gpu.xml --device cpu:4
expect_status 2
expect_one_line
expect_err 'no NUMA node 4; nodes with cores: cpu:0, cpu:1, cpu:2, cpu:3'

# GPUs that are shown but can't be used are no riddle
run devices --topology tests/fixtures/8gpu.xml
expect_out 'None here: this machine is'
run devices --topology tests/fixtures/8gpu.xml --device cuda:0
expect_status 2
expect_one_line
expect_err 'cuda:0: this machine is recorded'
run devices --topology tests/fixtures/8gpu.xml --json
json 'd["libraries"] == []'

# as many NUMA nodes as the largest machines have: every table fits
python3 - >"$work/many.xml" <<'END'
count = 70
def set_of(bits):
    words = [f"0x{bits >> 32 * i & 0xffffffff:08x}" for i in range(3)]
    text = ",".join(reversed(words))
    return "".join(f' {k}{n}="{text}"' for n in ("cpuset", "nodeset") for k in ("", "complete_"))
print('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">')
print(f'<object type="Machine" os_index="0"{set_of((1 << count) - 1)} gp_index="1">')
for i in range(count):
    for k, (kind, end) in enumerate((("Package", ">"), ("NUMANode", ' local_memory="1073741824"/>'),
                                     ("Core", ">"), ("PU", "/></object></object>"))):
        print(f'<object type="{kind}" os_index="{i}"{set_of(1 << i)} gp_index="{4 * i + k + 2}"{end}')
print(f'</object><distances2 type="NUMANode" nbobjs="{count}" kind="5" name="NUMALatency" indexing="os">')
def numbers(tag, values):
    for i in range(0, len(values), 10):
        text = " ".join(map(str, values[i:i + 10])) + " "
        print(f'<{tag} length="{len(text)}">{text}</{tag}>')
numbers("indexes", range(count))
numbers("u64values", [10 if i == j else 20 for i in range(count) for j in range(count)])
print("</distances2></topology>")
END
sed 's/topology version="2.0"/topology version="3.0"/; s/hwloc2/hwloc3/' "$work/many.xml" >"$work/later.xml"
run devices --topology "$work/later.xml"
if [ "$status" != 0 ]; then # this hwloc is older than that
    expect_one_line
    expect_err 'later.xml is a topology of hwloc 3, and this is hwloc 2: .*--export-xml-flags v2'
fi
for words in "" --map; do
    # shellcheck disable=SC2086 # no word at all
    COLUMNS=80 run devices --topology "$work/many.xml" $words
    expect_status 0
    [ "$(wc -L <"$work/out")" -le 80 ] || fail "$what: $(wc -L <"$work/out") columns"
done
run devices --topology "$work/many.xml" --json
json 'len(d["machine"]["nodes"]) == 70'

# the same in ASCII, line for line as wide
LC_ALL=C COLUMNS=80 run devices --topology tests/fixtures/8gpu.xml --map
if LC_ALL=C grep -q '[^ -~]' "$work/out"; then
    fail "LC_ALL=C, but: $(LC_ALL=C grep -m1 '[^ -~]' "$work/out")"
fi
expect_out '^\+- NUMA node 0 -+\+$'

# this machine, whatever it is
run devices
expect_status 0
expect_out "^This machine"
expect_out "^ +cpu:[0-9]+ "
run devices --map
expect_status 0
expect_out "(NUMA node [0-9]+|the whole machine)"
run devices --json
json 'not d["machine"]["recorded"] and d["machine"]["cores"] >= 1'
json 'd["libraries"][0]["library"] == "CUDA driver"'
json 'all(l["path"] or (l["why_none"] and l["unavailable"]) for l in d["libraries"])'
first=$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print([v["name"] for b in d["backends"] if b["backend"] == "cpu" for v in b["devices"]][0])' "$work/out")

# a container may deny a system call that hwloc repeats until it succeeds
timeout 20 python3 - "$gpulab" devices >"$work/out" 2>"$work/err" <<'END'
import ctypes, os, platform, struct, sys
number = {"x86_64": 204, "aarch64": 123}[platform.machine()] # sched_getaffinity
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000))))
filter = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(filter), 0, 0):
    sys.exit("no seccomp here: the CPUs of this process can't be read, it says")
os.execv(sys.argv[1], sys.argv[1:])
END
status=$? what="gpulab devices, sched_getaffinity denied"
expect_status 1
expect_err "the CPUs of this process can't be read"

# what is listed can be pasted
run bench null --device "$first" --limit 1s --json
expect_status 0
json "d[\"device\"][\"name\"] == \"$first\""

finish
