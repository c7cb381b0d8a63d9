#!/usr/bin/env bash
# tools/setup is silent where nothing is missing, installs what is missing as root or through sudo,
# and otherwise prints the one line to run and fails. apt-get, sudo and the rest are stand-ins here.
#
#   setup.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "setup: $*: $(cat "$work/out")" >&2
    exit 1
}

# a machine without compilers: what the script itself uses, and our stand-ins
mkdir "$work/bin"
for tool in bash dirname env sed tr; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
stand_in() { # NAME SCRIPT
    printf '#!%s\n%s\n' "$(command -v bash)" "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
# sets $status; the messages lie in $work/out, apt-get's arguments in $work/apt
setup() {
    : >"$work/apt"
    status=0
    PATH=$work/bin "$work/bin/bash" "$source_dir/tools/setup" "$@" >"$work/out" 2>&1 || status=$?
}
stand_in apt-get "echo \"\$*\" >>$work/apt"
stand_in id 'echo 1000'
stand_in dpkg-query 'exit 1'

# given a plain user without sudo, when packages are missing, then one line says what to run
setup build
[ $status = 1 ] || fail "ended with $status instead of 1"
[ ! -s "$work/apt" ] || fail "apt-get was called by a plain user"
last=$(tail -n 1 "$work/out")
[[ $last == "su -c 'apt-get "*"install -y "*" gcc "*" libcmocka-dev'" ]] || fail "the last line is '$last'"

# given a sudo that asks for a password, then the line is sudo's
stand_in sudo 'exit 1'
setup build
[[ $status = 1 && $(tail -n 1 "$work/out") == "sudo apt-get "* ]] || fail "no line with sudo"
[ ! -s "$work/apt" ] || fail "apt-get was called without a password"

# given a sudo that asks for none, then what is missing is installed
# shellcheck disable=SC2016 # for the stand-in to expand
stand_in sudo 'shift; "$@"'
setup build
[ $status = 0 ] || fail "ended with $status"
grep -q -- 'install -y .* gcc .* libcmocka-dev' "$work/apt" || fail "apt-get got: $(cat "$work/apt")"

# given root, then likewise, unless it is only asked to look
stand_in id 'echo 0'
setup numa
[ $status = 0 ] || fail "ended with $status"
grep -q 'install -y .*qemu-system-x86' "$work/apt" || fail "not installed by root"
setup --check numa
[[ $status = 1 && ! -s $work/apt ]] || fail "--check ended with $status"

# given that a package can't be had, then the lists are fetched anew and it is tried once more
stand_in apt-get "echo \"\$*\" >>$work/apt; [[ \$* != *install* ]]"
setup numa
[ $status != 0 ] || fail "apt-get failed, setup didn't"
[[ $(<"$work/apt") == *install*update*install* ]] || fail "no second attempt"

# given that all is there, then nothing is said and nothing called
stand_in dpkg-query "sed -n 's/^[a-z][a-z]*  *\\([^ ]*\\).*/installed \\1/p' $source_dir/tools/packages.txt"
setup build test check numa
[[ $status = 0 && ! -s $work/out && ! -s $work/apt ]] || fail "something was missing"

# given a group that isn't there
setup nonsense
[[ $status = 2 && $(<"$work/out") == *"build, portable, dist, report, test, check and numa"* ]] || fail "ended with $status"
