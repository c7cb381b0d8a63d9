#!/usr/bin/env bash
# Two builds of one commit in folders of different names give the same files, byte for byte.
# label: long
# label: build
#
#   reproducible.sh GPULAB SOURCE_DIR BUILD_DIR
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
unset CMAKE_C_COMPILER_LAUNCHER PORTABLE_FLAGS # each object is compiled twice

from=$source_dir
for folder in one another/longer; do
    git clone -q "$from" "$work/$folder" || exit 1
    from=$work/one # the same commit, whatever happens to the sources
    mkdir "$work/$folder/build"
    for tool in zig wheel; do
        [ ! -d "$source_dir/build/$tool" ] || ln -s "$source_dir/build/$tool" "$work/$folder/build/$tool"
    done
    (umask 0"$([ $folder = one ] && echo 22 || echo 77)" && make -s -C "$work/$folder" dist) >"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
done
diff "$work/one/build/dist/SHA256SUMS" "$work/another/longer/build/dist/SHA256SUMS" || fail "two builds differ"
cat "$work/one/build/dist/SHA256SUMS"
finish
