#!/usr/bin/env bash
# The disk fills up in the middle of a study: it stops with the reason, what it acknowledged is there,
# and the same command goes on when there is room again.
if [ -z "${GPULAB_TEST_MOUNTED:-}" ]; then
    if ! unshare --map-root-user --mount true 2>/dev/null; then
        echo "skipped: a small file system can't be mounted here"
        exit 0
    fi
    GPULAB_TEST_MOUNTED=1 exec unshare --map-root-user --mount bash "$0" "$@"
fi
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
small=$work/small
mkdir -p "$small" "$work/conf/experiment"
mount -t tmpfs -o size=3m tmpfs "$small" || { echo "skipped: no tmpfs"; exit 0; }
trap 'umount "$small"; rm -rf "$work"' EXIT
cat >"$work/conf/experiment/short.yaml" <<'YAML'
defaults: [_base, _self_]
name: short
workload: 'null'
test: {num_samples: 200, warmup_samples: 1, timeout_s: 60}
axes: [hardware.gpu_ids, hardware.numa_nodes, {test.sync_frequency: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]}]
YAML
study=(run --config-dir "$work/conf" short device=cpu:0 "output_dir=$small/outputs")

"$gpulab" "${study[@]}" >"$work/out" 2>"$work/err" </dev/null &
runner=$!
until grep -q '^\[5/30\].*iterations/s' "$work/err"; do sleep 0.01; done
dd if=/dev/zero of="$small/fill" bs=4k 2>/dev/null
wait $runner
status=$?
what="gpulab run on a full disk"
expect_status 1
expect_err "(disk is full|[Nn]o space left)"
grep '^\[[0-9]*/30\] gpu.*iterations/s' "$work/err" | sed 's/^[^ ]* //; s/:.*//' | sort >"$work/acknowledged"
folder=$(ls -d "$small"/outputs/short/*/*)
run show "$folder" --runs
expect_status 0
while read -r id; do
    expect_out "$id .*iterations/s|$id "
done <"$work/acknowledged"
python3 -m json.tool "$folder/results.json" >/dev/null || fail "results.json is torn"

# a tuning that can't be kept is shown all the same
dd if=/dev/zero of="$small/fill2" bs=4k 2>/dev/null
XDG_CACHE_HOME=$small/cache run tune softmax rows=8 columns=8 --device cpu:0 --budget 0.1s
expect_status 0
expect_out '^softmax8x8 on cpu:0'
expect_err "the result isn't kept: .*full"
rm "$small/fill2"

# a recording: what it could not store isn't counted as samples
rm "$small/fill"
what="gpulab record on a full disk"
"$gpulab" record --device cpu -i 5ms -o "$small/r.db" >"$work/out" 2>"$work/err" &
recorder=$!
until "$gpulab" export "$small/r.db" -f csv 2>/dev/null | grep -q '^[0-9]'; do sleep 0.1; done
dd if=/dev/zero of="$small/fill" bs=4k 2>/dev/null
sleep 1.2
kill -TERM $recorder
wait $recorder
status=$?
expect_status 1
expect_err "(disk is full|[Nn]o space left)"
"$gpulab" export "$small/r.db" -f csv >"$work/rows" 2>/dev/null
expect_err "r.db: [0-9.]+ s, $(($(wc -l <"$work/rows") - 1)) samples, [1-9][0-9]* lost"
rm "$small"/r.db*
dd if=/dev/zero of="$small/fill3" bs=4k 2>/dev/null

# no room yet: the same error, nothing worse
run "${study[@]}"
expect_status 1
expect_err "(disk is full|[Nn]o space left)"

rm "$small/fill" "$small/fill3"
run "${study[@]}"
expect_status 0
expect_err "resuming .*: [0-9]+ of 30 runs are done"
expect_out "30 of 30 runs"
cp "$folder/results.json" "$work/out"
json 'len(d) == 30 == len({r["run_id"] for r in d}) and all(r["success"] for r in d)'
[ "$(find "$small" -name study.db | wc -l)" = 1 ] || fail "went on elsewhere"
[ -z "$(find "$folder" -name '.*' ! -name .gpulab.manifest)" ] || fail "left behind: $(find "$folder" -name '.*' ! -name .gpulab.manifest)"

# room for the runs, none for a report: the results come first, out of what was kept for them
rm -r "$small/outputs"
dd if=/dev/zero of="$small/fill" bs=1k count=700 2>/dev/null
run "${study[@]}"
folder=$(ls -d "$small"/outputs/short/*/*)
if [ "$status" = 0 ]; then
    expect_out "30 of 30 runs"
    cp "$folder/results.json" "$work/out"
    json 'len(d) == 30 and all(r["success"] for r in d)'
    [ -z "$(find "$folder" -name '.*' ! -name .gpulab.manifest)" ] || fail "left behind: $(find "$folder" -name '.*' ! -name .gpulab.manifest)"
else # a slow machine leaves more samples, so that the runs themselves may find no room
    expect_status 1
    expect_err "(disk is full|[Nn]o space left)"
fi
finish
