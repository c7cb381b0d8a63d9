#!/usr/bin/env bash
# The portable build needs nothing but what every Linux with glibc 2.28 has, and is hardened, as is the release.
# label: build
#
#   portable_needs.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$2
# dl and pthread: parts of libc since glibc 2.34
allowed='libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1'
newest=2.28
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "portable_needs: $*" >&2
    exit 1
}

make -s -C "$source_dir" portable >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "make portable failed"
}
program=$source_dir/build/portable/gpulab
if [ ! -x "$source_dir/build/zig/ziglang/zig" ]; then
    echo "zig is missing: linked against this machine's glibc"
    newest=$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)
fi

echo "dynamic needs of the portable build:"
mapfile -t needs < <(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
printf '  %s\n' "${needs[@]}"
[ ${#needs[@]} -gt 0 ] || fail "found no needs at all: readelf's output has another form"
for need in "${needs[@]}"; do
    [[ " $allowed " == *" $need "* ]] || fail "$need is needed; allowed are $allowed"
done

if readelf -d "$program" | grep -E 'RPATH|RUNPATH'; then
    fail "a search path of the build machine is in it"
fi

highest=$(readelf -V "$program" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
echo "newest glibc symbol version: $highest"
[ "$(printf '%s\n' "$highest" "$newest" | sort -V | tail -n 1)" = "$newest" ] ||
    fail "a symbol of glibc $highest is needed, newer than $newest"

for file in "$program" "$1"; do
    readelf -h "$file" >"$work/elf"
    readelf -dlW "$file" >>"$work/elf"
    readelf --dyn-syms -W "$file" >>"$work/elf"
    has() { grep -Eq "$1" "$work/elf" || fail "$file: $2"; }
    has 'Type: *DYN' "its addresses can't be randomised"
    has 'BIND_NOW' "its table of functions stays writable"
    has 'GNU_RELRO' "its relocations stay writable"
    has 'GNU_STACK.* RW ' "its stack can be executed"
    has '__stack_chk_fail' "no stack protector"
    has '__(mem|str|f?printf|v?snprintf)[a-z]*_chk' "string functions aren't checked"
done

"$program" version >/dev/null || fail "it does not start"
(cd "$work" && "$(realpath "$program")" run quick_test device=sim:l40s-10 >"$work/study.log" 2>&1) ||
    { cat "$work/study.log" && fail "a study fails"; }

# OpenBLAS's buffers are replaced while linking here, not while loading: see src/device/cpu/blas.c
if ! "$program" bench gemm m=256 n=256 k=256 --iterations 20 --quiet >"$work/gemm" 2>&1 ||
    ! grep -q 'Verification *passed' "$work/gemm"; then
    cat "$work/gemm"
    fail "gemm fails"
fi
! grep 'one at a time' "$work/gemm" || fail "OpenBLAS keeps its own buffers"
