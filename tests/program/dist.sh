#!/usr/bin/env bash
# What `make dist` leaves can be installed and run: the archive, the Debian package, the wheel; and the list of
# what is linked is whole. With GPULAB_TEST_CHROOTS="FOLDER..." (root alone) the package and the archive are
# tried in those systems too; without it in a fresh Debian 12, where debootstrap can get one.
# label: long
# label: build
#
#   dist.sh GPULAB SOURCE_DIR BUILD_DIR
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
make -s -C "$source_dir" dist >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
dist=$source_dir/build/dist
version=$(<"$source_dir/VERSION")
arch=$(uname -m)
cd "$work" || exit 1
export HOME=$work/home XDG_STATE_HOME=$work/state
mkdir home

# try PROGRAM: it runs from where it was put, with its demonstration
try() {
    [ "$("$1" version | head -n 1)" = "gpulab $version" ] || fail "$1: another version"
    "$1" top --demo --once >out 2>&1 || fail "$1 top --demo: $(head -3 out)"
    (mkdir -p study && cd study && "$1" run quick_test device=sim:l40s-10 -q >../out 2>&1) || fail "$1 run: $(tail -3 out)"
}

(cd "$dist" && sha256sum -c --quiet SHA256SUMS) || fail "SHA256SUMS"
[ "$(wc -l <"$dist/SHA256SUMS")" = 5 ] || fail "not five files: $(cat "$dist/SHA256SUMS")"

tar -xf "$dist/gpulab-$version.tar.xz"
cmp -s "gpulab-$version/VERSION" "$source_dir/VERSION" || fail "the sources' VERSION"

name=gpulab-$version-linux-$arch
tar -xf "$dist/$name.tar.xz"
for file in bin/gpulab lib/gpulab/demo/libnvidia-ml.so.1 share/man/man1/gpulab-doctor.1 \
    share/bash-completion/completions/gpulab share/doc/gpulab/{LICENSE,CHANGELOG.md,conf/config.yaml}; do
    [ -s "$name/$file" ] || fail "no $file in the archive"
done
if tar -tvf "$dist/$name.tar.xz" | grep -v ' 0/0 '; then fail "owners in the archive"; fi
if grep -q "$source_dir" "$name/bin/gpulab"; then fail "a path of this machine in the program"; fi
[[ $(file -b "$name/bin/gpulab") == *", stripped" ]] || fail "not stripped"
for file in bin/gpulab lib/gpulab/demo/libnvidia-ml.so.1; do
    newest=$(readelf -V "$name/$file" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    [ ! -x "$source_dir/build/zig/ziglang/zig" ] ||
        [ "$(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -n 1)" = GLIBC_2.28 ] || fail "$file needs $newest"
done
try "$work/$name/bin/gpulab"

wheel=$dist/gpulab-$version-py3-none-manylinux_2_28_$arch.whl
if python3 -m venv venv >out 2>&1; then
    venv/bin/pip install -q --no-index --disable-pip-version-check "$wheel" >out 2>&1 || fail "pip: $(cat out)"
    try "$work/venv/bin/gpulab"
    if ! venv/bin/pip uninstall -qy gpulab || [ -e venv/bin/gpulab ]; then fail "the wheel stays"; fi
else
    echo "no virtual environments here: the wheel was not installed"
fi

deb=$(ls "$dist"/gpulab_"$version"_*.deb)
dpkg-deb -f "$deb" >out
for line in 'Package: gpulab' "Version: $version" 'Depends: libc6 (>= 2.28)' 'Section: science'; do
    grep -qxF "$line" out || fail "no '$line' in: $(cat out)"
done
dpkg-deb -c "$deb" >out
if grep -v ' root/root ' out; then fail "owners in the package"; fi
grep -q 'usr/share/man/man1/gpulab\.1\.gz$' out || fail "man pages aren't compressed"
grep -q 'usr/share/doc/gpulab/copyright$' out || fail "no copyright"
dpkg-deb -x "$deb" deb
cmp -s deb/usr/bin/gpulab "$name/bin/gpulab" || fail "another program in the package"

python3 - "$dist/gpulab-$version.cdx.json" "$name/bin/gpulab" <<'END' || fail "SBOM"
import hashlib, json, sys
bom = json.load(open(sys.argv[1]))
names = {part["name"] for part in bom["components"]}
needed = {"gsl", "hwloc", "jansson", "libmicrohttpd", "libyaml", "ncurses", "openblas", "sqlite3"}
assert bom["bomFormat"] == "CycloneDX" and names >= needed, needed - names
assert len({part["bom-ref"] for part in bom["components"]}) == len(bom["components"])
assert all(part["version"] and part["licenses"] is not None for part in bom["components"])
program = hashlib.sha256(open(sys.argv[2], "rb").read()).hexdigest()
assert bom["metadata"]["component"]["hashes"][0]["content"] == program
END

# in_chroot FOLDER: as a new user would
in_chroot() {
    cp "$deb" "$1/tmp/gpulab.deb" && cp -r "$work/$name" "$1/tmp"
    # a name space of its own: what is mounted there goes with it
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m sh -ec 'mount -t proc proc "$1/proc"; exec chroot "$1" sh -ec "$2"' sh "$1" "
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
        dpkg -i /tmp/gpulab.deb; cd /tmp; gpulab version; gpulab doctor
        gpulab run quick_test device=sim:l40s-10 -q; gpulab bench gemm m=64 n=64 k=64 --iterations 5 -q
        dpkg -r gpulab; [ ! -e /usr/bin/gpulab ]
        $name/bin/gpulab version; $name/bin/gpulab top --demo --once
        rm -rf outputs gpulab.deb $name" >out 2>&1 || fail "$1: $(tail -5 out)"
    echo "installed in $(sed -n 's/^PRETTY_NAME=//p' "$1/etc/os-release"), $(chroot "$1" ldd --version | head -n 1)"
}
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "not root: the package was not installed"
elif [ -n "${GPULAB_TEST_CHROOTS-}" ]; then
    for folder in $GPULAB_TEST_CHROOTS; do in_chroot "$folder"; done
elif command -v debootstrap >/dev/null &&
    timeout 400 debootstrap --variant=minbase bookworm "$work/chroot" >out 2>&1; then
    in_chroot "$work/chroot"
else
    echo "no other system to be had: the package was not installed"
fi
finish
