#!/usr/bin/env bash
# The table of bench/training divides by the columns that it names. No GPU is needed to say so.
# shellcheck source=tests/program/lib.bash
source "$(dirname "$0")/lib.bash" "$@"

# given steps of 40 and 50 µs, graphs of 90 and 100, then the graph is 2.25 and 2 times ours, which is 2.12
what="a row of bench/training"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source_dir/bench python3 -c '
import json, training
ours = [{"step_us": step, "verified": "passed", "conditions": ["1980 MHz", "300 W", "40 °C"]} for step in (40, 50)]
theirs = [{"eager_us": 1300, "graph_us": graph, "replay_us": 99} for graph in (90, 100)]
print(json.dumps([dict(zip(training.COLUMNS, training.cells("medium", "fp32", 16, ours, peer)))
                  for peer in (theirs, [])]))
' >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
json '(d[0]["graph/ours"] == "2.12" and d[0]["eager/ours"] == "29" and d[0]["replays alone"] == "99.0"
      and d[0]["graph"] == "95.0" and d[0]["ours"] == "45.0" and d[0]["asked met"] == "no")'
json 'd[1]["graph/ours"] == "–" and d[1]["ours"] == "45.0" and d[1]["power"] == "300 W"'

# clock, power and temperature are those of a busy GPU
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source_dir/bench python3 -c '
import json, facts
print(json.dumps([facts.Conditions.medians(lines) for lines in (
    ["345, 80.1, 30", "1980, 600.4, 41", "1950, 690.0, 43", "1965, 650.0, 44", "[N/A], 1, 2", "19"], ["none"])]))
' >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
json 'd == [["1965 MHz", "650 W", "43 °C"], ["–", "–", "–"]]'

# the published tables say the same of their own figures
python3 - "$source_dir/bench/results/training-nvidia-h200.md" >"$work/out" <<'END' || fail "$(cat "$work/out")"
import sys
rows, columns = [], []
for line in open(sys.argv[1]):
    cells = line.strip("|\n ").split(" | ")
    if line.startswith("| model"):
        columns = cells
    elif line.startswith("| "):
        rows.append(dict(zip(columns, cells)))
wrong = [row for row in rows for column in ("graph", "eager")
         if abs(float(row[column]) / float(row["ours"]) - float(row[column + "/ours"])) >
         (0.0051 if "." in row[column + "/ours"] else 0.51)
         + (0.05 / float(row["ours"]) + 0.003) * float(row[column + "/ours"])]  # rounded, and medians of rounds
print(wrong)
sys.exit(bool(wrong) or len(rows) != 38)
END
finish
