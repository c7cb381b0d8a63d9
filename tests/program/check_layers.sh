#!/usr/bin/env bash
# tools/check-layers accepts this tree, and names file and line of what it must not accept.
#
#   check_layers.sh GPULAB SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$2
check=$source_dir/tools/check-layers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "check_layers: $*" >&2
    exit 1
}

# given a tree with one file of this content, when it is checked, then…
given() { # PATH TEXT
    rm -rf "$work/src"
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

"$check" --whole "$source_dir" || fail "this tree breaks its own rules"

# arrows between layers
refused src/base/a.c '#include "device/device.h"\n' 'src/base/a.c:1: base may not include device'
refused src/analysis/a.c '\n#include "store/store.h"\n' 'src/analysis/a.c:2: analysis may not include store'
refused src/device/cpu/a.c '#include "workload/workload.h"\n' 'device may not include workload'
accepted src/device/cpu/a.c '#include "base/err.h"\n#include "machine/machine.h"\n'
accepted src/command/a.c '#include "workload/workload.h"\n#include "version.h"\n'

# a layer's inner headers are its own
refused src/workload/a.c '#include "device/cpu/cpu.h"\n' 'device/cpu/cpu.h is private to src/device'
accepted src/workload/a.c '#include "device/tunable.h"\n'
accepted src/device/a.c '#include "device/cpu/cpu.h"\n'

# paths that name no layer
refused src/model/a.c '#include "../device/device.h"\n' 'names no layer'
refused src/model/a.h '#include "machine.h"\n' 'names no layer'
refused src/utils/a.c 'int x;\n' 'src/utils is no layer'

# libraries and calls that belong in one place
refused src/run/a.c '#include <sqlite3.h>\n' '<sqlite3.h> belongs in src/{store} alone'
accepted src/store/a.c '#include <sqlite3.h>\n'
refused src/device/a.c '#include <hwloc/linux.h>\n' '<hwloc/linux.h> belongs in src/{machine} alone'
refused src/device/a.c '#include <cblas.h>\n' '<cblas.h> belongs in src/{device/cpu} alone'
accepted src/device/cpu/a.c '#include <cblas.h>\n'
refused src/vendor/a.c 'void *f(void) { return dlopen ("x", 1); }\n' 'dlopen belongs in'
refused src/stats/a.c 'void f(void) {\n    printf("%d", 1);\n}\n' 'src/stats/a.c:2: printf belongs in'
refused src/base/a.c 'void f(void) { fputs("x", stderr); }\n' 'stderr belongs in'
refused src/command/a.c 'void f(void) { exit(1); }\n' 'exit belongs in'
refused src/run/a.c 'int f(void) { return mkdir("x", 0777); }\n' 'mkdir belongs in src/{base/file} alone'
refused src/run/a.c 'int f(void) { return open("x", O_WRONLY | O_CREAT, 0666); }\n' 'O_CREAT belongs in'
accepted src/base/file/a.c 'int f(void) { return unlink("x"); }\n'
accepted src/main.c 'int main(void) { exit(1); }\n'
accepted src/worker/a.c 'void f(void) { _exit(1); lab_str_printf(&s, "printf(1)"); }\n'
accepted src/base/a.h 'int f(const char *t, ...) __attribute__((format(printf, 1, 2)));\n'

refused src/base/a.c 'void f(void) { _exit(1); }\n' '_exit belongs in src/{base/mem.c base/tty/fork.c machine/recorded.c worker}'

# names: one tag for one thing, and the layer's own prefix
refused src/load/a.h 'struct lab_x {\n    int a;\n};\nstruct lab_x {\n    int b;\n};\n' 'struct lab_x is defined in'
accepted src/load/a.c 'struct x {\n    int a;\n};\n'
refused src/load/a.h 'int lab_report_x(int a);\n' 'src/load/a.h:1: lab_report_… belongs in src/report'
accepted src/report/a.h 'int lab_report_x(int a);\nint lab_study_x(int a);\n'
accepted src/model/a.h 'int lab_machine_x(int a);\n'

# comments fit the screen; characters count, not bytes
line=$(printf 'x%.0s' {1..98})
refused src/load/a.c "/* ${line} */\\n" 'a comment of 104 columns'
accepted src/load/a.c "/* ${line//xx/→} */\\n"

# a folder can be read at a glance
given src/load/a.c 'int x;\n'
for i in {1..39}; do cp "$work/src/load/a.c" "$work/src/load/a$i.c"; done
"$check" "$work" >/dev/null || fail "refused a folder of 40 files"
cp "$work/src/load/a.c" "$work/src/load/b.c"
output=$("$check" "$work") && fail "accepted a folder of 41 files"
[[ $output == *'src/load: 41 files; a folder has 40 at most'* ]] || fail "the folder isn't named: $output"

# of the whole tree: arrows that nothing uses, sources that don't say what they are for
given src/load/a.c 'int x;\n'
output=$("$check" --whole "$work") && fail "accepted unused arrows"
[[ $output == *'load no longer uses store'* ]] || fail "unused arrows are not named: $output"
[[ $output == *'src/load/a.c:1: open with "/* NAME.c: what it is for"'* ]] || fail "no head asked for"

# comments and strings are not code
accepted src/base/a.c '/* printf(1)\n * exit(2) */ int x; // puts(3)\nchar q = '"'\"'"'; char *s = "/* stdout";\n'
refused src/base/a.c '/* a */ int x = 1; /*\n*/ void f(void) { puts("x"); }\n' 'src/base/a.c:2: puts'
accepted src/base/a.c '/*\n#include "device/device.h"\n*/\n'
