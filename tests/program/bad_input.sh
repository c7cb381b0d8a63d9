#!/usr/bin/env bash
# Every mistake gets one line that names what would be right, and status 2.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"

# mistake PATTERN ARGS...
mistake() {
    local pattern=$1
    shift
    run "$@"
    expect_status 2
    expect_one_line
    expect_err "^gpulab: "
    expect_err "$pattern"
}

mistake "unknown command 'devcies' \(did you mean 'devices'\?\)" devcies
mistake "unknown command 'xyzzy'.*bench.*devices" xyzzy
mistake "unknown command ''" ""
mistake "must follow a command" --quiet
mistake "must follow a command" -q
mistake "unknown workload 'vti'.*vit" bench vti
mistake "gemm.*memcpy" bench xyzzy
mistake "did you mean '?-?-?json" devices --jsn
mistake "--repeat" bench null --repeta 3
mistake "did you mean 'depth'" bench vit dept=4
mistake "depth=-1: must be" bench vit depth=-1
mistake "depth=many" bench vit depth=many
mistake "widths=50-0-3: each width must be 1 to" bench mlp widths=50-0-3
mistake "widths=50: must name at least two" bench mlp widths=50
mistake "batch_size=-4: must be 1 to" bench mlp batch_size=-4
mistake "only 10000 samples; raise dataset_size" bench mlp batch_size=20000
mistake "dropout=1: must be at most" bench mlp dropout=1
mistake "repeat" bench null --repeat 0
mistake "repeat" bench null --repeat=-3
mistake "precision" bench null --precision 7
mistake "dtype=fp31: must be fp32" bench vit dtype=fp31
mistake "key=value|=" bench vit depth
mistake "gpu.*cpu" bench null --device gpu:0
mistake "cpu:99.*node" bench null --device cpu:99
mistake "slice" bench null --device cpu:0/9999
mistake "cpu" bench null --device "cpu:0/2.7"
mistake "cpu" bench null --device cpu:x
mistake "node 77|node.*77" bench null --node 77
mistake "missing|no such|No such" devices --topology "$work/missing.xml"
echo "hello" >"$work/not.xml"
mistake "not\.xml" devices --topology "$work/not.xml"
head -c 3000 "$source_dir/tests/fixtures/8gpu.xml" >"$work/cut.xml"
mistake "cut\.xml" devices --topology "$work/cut.xml"
mistake "directory|regular|folder" devices --topology "$work"
: >"$work/empty.xml"
mistake "empty\.xml" devices --topology "$work/empty.xml"
mistake "devices takes options only" devices everything
mistake "completion" completion
mistake "bash, zsh or fish" completion tcsh
mistake "unknown command 'benhc'" help benhc
mistake "needs a folder" help --man ""
mistake "leave out 'bench'" help bench --man "$work/man"
mistake "needs a file" devices --topology ""
mistake "unknown workload" help bench vti
mistake "no further page" help version vit
mistake "log-level" version --log-level loud
mistake "iterations=1000000000: must be 0 to 10000000" bench null --iterations 1000000000
mistake "num_samples=1000000000: that is 100000000 batches.*10000000" bench vit num_samples=1000000000
mistake "warmup_samples and --warmup" bench vit warmup_samples=10 --warmup 2
mistake "num_samples and --iterations" bench vit num_samples=10 --iterations 2

# whatever is typed comes back on one line that still names what is right
long=$(printf 'a%.0s' {1..10000})
mistake "^gpulab: unknown command 'aaa.*bench, .*completion, devices, .*help.* or watch\$" "$long"
mistake "^gpulab: unknown workload 'aaa.*gemm, gpt2, memcpy.* vit\$" bench "$long"
mistake "begins with .*auto\$" bench null --device "$long"
mistake "aaa: (File name too long|No such file)" devices --topology "$long"
mistake "unknown option '--aaa.*; there are --repeat, " bench null "--$long"
mistake "unknown option '-x'; there are --repeat, " bench null -x
mistake "depth=9+: must be a whole number, 0 to " bench vit depth=99999999999999999999999
mistake "limit=1e400: must be a time such as .* to 1d" bench null --limit 1e400
mistake "compile_model=\[1: must be true or false" bench vit "compile_model=[1"
mistake "tensor_shape=\[3,: column 4" bench vit "tensor_shape=[3,"
mistake "'nu\\\\nll' \(did you mean 'null'" bench $'nu\nll'
mistake "unknown command '\\\\x1b\[31mred'" $'\e[31mred'

# out of memory is an ordinary failed result: status 1, with the size asked for
run bench vit memory_size_mb=8000000 --limit 1s
expect_status 1
expect_one_line
expect_err "(TiB|GiB|TB|GB)"

# with --json a program gets the same as an object, and people still their line
run bench vit dept=4 --json
expect_status 2
expect_err "did you mean 'depth'"
json 'd["error"]["code"] == "user" and "dept" in d["error"]["message"]'
run bench vit dept=4 --json=true
json '"dept" in d["error"]["message"]'
run bench vit dept=4 --json --no-json
expect_one_line
run bench vit memory_size_mb=8000000 --json
expect_status 1
json 'd["error"]["code"] == "memory"'

finish
