#!/usr/bin/env bash
# tools/check-language accepts this tree, and names file and line of what it must not accept.
#
#   check_language.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
check=$2/tools/check-language
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "check_language: $*" >&2
    exit 1
}

# given a tree with one file of this content, when it is checked, then…
given() { # PATH TEXT
    rm -rf "${work:?}"/*
    mkdir -p "$work/$(dirname "$1")"
    printf '%b' "$2" >"$work/$1"
}
refused() { # PATH TEXT EXPECTED
    given "$1" "$2"
    output=$("$check" "$work") && fail "accepted $1: $2"
    [[ $output == *"$3"* ]] || fail "expected '$3' for $1, got: $output"
}
accepted() { # PATH TEXT
    given "$1" "$2"
    output=$("$check" "$work") || fail "refused $1: $2: $output"
}

"$check" "$2" || fail "this tree breaks its own rules"

long='one two three four five six seven eight nine ten eleven twelve thirteen'
# strings of C: adjacent literals are one; comments and code don't count
refused src/a.c '\nf("the difference "\n  "can'"'"'t be told");\n' "src/a.c:2: 'can't be told'"
refused src/a.c 'f("it took %.1f %% of the time");\n' "12.5% without a space"
refused src/a.c 'f("memory is not bound to node %d");\n' "write NUMA node"
refused src/a.c 'f("the study goes on; its end isn'"'"'t known");\n' "'isn't known'"
accepted src/a.c 'f("there is no key %s, which is no longer used");\n'
refused src/a.c "f(\"$long \"\n  \"$long\");\n" "a sentence of 26 words"
accepted src/a.c "f(\"$long. \"\n  \"$long\");\n"
accepted src/a.c '/* a stranger */ int apart; f("NUMA node %d: %.1f%% lower throughput");\n'

# documents: a paragraph's lines and a table's cells, without code
refused docs/A.md "Words.\n\n$long\n$long\n" "docs/A.md:3: a sentence of 26 words"
refused docs/A.md '| a | b |\n|---|---|\n| x | held back |\n' "docs/A.md:3: 'held back'"
accepted docs/A.md "\`apart\`\n\n\`\`\`\nheld back\n\`\`\`\n| $long | $long |\n"
refused docs/A.md 'A remote node costs 12 % of throughput.\n' "12.5% without a space"

# comments of configs, by key
refused conf/experiment/a.yaml 'a: 1 # made up\n' "conf/experiment/a.yaml:1: 'made up'"
accepted conf/experiment/a.yaml "a: made up # $long\nb: 2    # $long\n"
