#!/usr/bin/env bash
# cache.sh: `gpulab cache` lists and clears compiled kernels, and leaves other files alone.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash"

export XDG_CACHE_HOME=$work/cache
folder=$work/cache/gpulab/kernels

# a user who never ran on a GPU
run cache list kernels
expect_status 0
expect_out "No kernels are kept in $folder"
run cache clear kernels
expect_status 0
expect_out 'Removed 0 kernels'

# two entries, one of them cut short, and a stranger's file
mkdir -p "$folder"
python3 - "$folder" <<'EOF'
import sys
def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = ((h ^ b) * 0x100000001b3) % 2**64
    return h
code = b'\x7fELF and so on'
text = b'gpulab kernel 1\nadd bf16, sm_90\na key\n%d %016x\n' % (len(code), fnv(code)) + code
open(sys.argv[1] + '/' + '0' * 32 + '.kernel', 'wb').write(text)
open(sys.argv[1] + '/' + 'f' * 32 + '.kernel', 'wb').write(text[:-1])
open(sys.argv[1] + '/notes.txt', 'w').write('mine')
EOF
run cache list kernels
expect_status 0
expect_out 'add bf16, sm_90'
expect_out 'damaged'
expect_out "2 kernels, 143 B, in $folder"
run cache list kernels --json
expect_status 0
json 'len(d["kernels"]) == 2 and sum(k["damaged"] for k in d["kernels"]) == 1'
json '{k["kernel"] for k in d["kernels"]} == {"add bf16, sm_90", "damaged"}'
run cache clear kernels --json
expect_status 0
json 'd["removed"] == 2 and d["removed_bytes"] == 143'
[ "$(ls "$folder")" = notes.txt ] || fail "clear left or took the wrong files: $(ls "$folder")"

# what can't be
run cache list studies
expect_status 2
expect_err "unknown 'studies', must be kernels or tuning"
expect_one_line
run cache export kernels file.json
expect_status 2
expect_err "only 'tuning' can be shared"
expect_one_line
run cache import tuning
expect_status 2
expect_err "a file must be named"
expect_one_line
run cache drop kernels
expect_status 2
expect_err "must be list, clear, export or import"
expect_one_line
run cache list
expect_status 2
expect_one_line
unset XDG_CACHE_HOME
HOME='' run cache list kernels
expect_status 2
expect_err 'neither XDG_CACHE_HOME nor HOME names a folder'
finish
