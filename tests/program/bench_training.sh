#!/usr/bin/env bash
# The table of bench/training divides by the columns that it names. No GPU is needed to say so.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash" "$@"

# given a step of 40 µs, a graph of 90 and replays of 100, then the graph is 2.25 times ours
what="a row of bench/training"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source_dir/bench python3 -c '
import json, training
peer = {"eager_us": 1300, "graph_us": 90, "replay_us": 100}
print(json.dumps([dict(zip(training.COLUMNS, training.cells("medium", "fp32", 16, 40, "passed", peer))),
                  dict(zip(training.COLUMNS, training.cells("medium", "fp32", 16, 40, "passed", None)))]))
' >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
json '(d[0]["graph/ours"] == "2.25" and d[0]["eager/ours"] == "32" and d[0]["replays alone"] == "100.0"
      and d[0]["asked met"] == "no" and d[1]["graph/ours"] == "–" and d[1]["ours"] == "40.0")'

# the published table says the same of its own figures
python3 - "$source_dir/bench/results/training-nvidia-h200.md" >"$work/out" <<'END' || fail "$(cat "$work/out")"
import sys
rows = [line.strip("|\n ").split(" | ") for line in open(sys.argv[1]) if line.startswith("|")]
rows = [dict(zip(rows[0], row)) for row in rows[2:]]
wrong = [row for row in rows for column in ("graph", "eager")
         if abs(float(row[column]) / float(row["ours"]) - float(row[column + "/ours"])) >
         (0.0051 if "." in row[column + "/ours"] else 0.51)
         + 0.05 / float(row["ours"]) * float(row[column + "/ours"])]  # both were rounded by themselves
print(wrong)
sys.exit(bool(wrong) or len(rows) != 30)
END
finish
