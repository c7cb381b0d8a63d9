#!/usr/bin/env bash
# `make install` puts program, man pages, completions and documents below DESTDIR and PREFIX, and
# what it installed runs from there.
# label: build
#
#   install.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "install: $*" >&2
    exit 1
}
has() { [ -s "$work/stage/opt/lab/$1" ] || fail "$1 is missing or empty"; }

make -s -C "$source_dir" install DESTDIR="$work/stage" PREFIX=/opt/lab >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "make install failed"
}

has bin/gpulab
has lib/gpulab/demo/libnvidia-ml.so.1
has share/man/man1/gpulab.1
has share/man/man1/gpulab-bench.1
has share/bash-completion/completions/gpulab
has share/zsh/site-functions/_gpulab
has share/fish/vendor_completions.d/gpulab.fish
has share/doc/gpulab/LICENSE
[ -z "$(find "$work/stage" -path "$work/stage/opt/lab" -prune -o -type f -print)" ] ||
    fail "files outside DESTDIR/PREFIX"

program=$work/stage/opt/lab/bin/gpulab
version=$("$program" version)
[[ $version == *"$(<"$source_dir/VERSION")"* ]] || fail "installed program says: $version"
# a threaded OpenBLAS would start threads of its own before main
libraries=$(ldd "$program")
[[ $libraries == *openblas-serial* ]] || fail "another OpenBLAS than the serial one: $libraries"

# each command has its page, and the pages are sound roff
for page in "$work"/stage/opt/lab/share/man/man1/*.1; do
    grep -q '^\.TH ' "$page" || fail "${page##*/} is no man page"
    if command -v man >/dev/null; then
        warnings=$(MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
        [ -z "$warnings" ] || fail "${page##*/}: $warnings"
    fi
done
bash -n "$work/stage/opt/lab/share/bash-completion/completions/gpulab" || fail "bash completion"
