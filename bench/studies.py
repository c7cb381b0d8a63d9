"""Studies that several benchmarks plan or run, and the words that name them."""
import os
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
TOPOLOGY = os.path.join(HERE, "..", "tests", "fixtures", "4node-10gpu.xml")

# 10,000 points, composed one by one
SWEEP = ["run", "--dry-run", "--topology", os.path.realpath(TOPOLOGY), "-m", "quick_test",
         "experiment.vit_configs=[{depth:2}]", "experiment.test.sync_frequency=range(1,10001)"]

# 10,000 points as the axes of one config
WIDE = ["run", "--dry-run", "--topology", os.path.realpath(TOPOLOGY), "wide"]
WIDE_TEXT = "\n".join([
    "defaults: [_vit, _self_]", "name: wide", "repeat: 1",
    "vit_configs:", *(f"  - {{depth: {i}}}" for i in range(100)),
    f"axes: [vit_configs, {{test.sync_frequency: {list(range(1, 101))}}}]", ""])

# n runs of the workload `null`, which does next to nothing: their time is the engine's
NULL_TEXT = """\
defaults: [_base, _self_]
name: many{runs}
workload: 'null'
order: as_given
test: {{num_samples: 10, warmup_samples: 1, timeout_s: 60}}
axes: [hardware.gpu_ids, hardware.numa_nodes, {{test.sync_frequency: {points}}}]
"""


def write(folder, name, text):
    """A study's file, where `--config-dir folder` finds it."""
    os.makedirs(os.path.join(folder, "experiment"), exist_ok=True)
    with open(os.path.join(folder, "experiment", f"{name}.yaml"), "w", encoding="ascii") as file:
        file.write(text)


def write_null(folder, runs):
    """Returns its words, without --config-dir and output_dir."""
    write(folder, f"many{runs}", NULL_TEXT.format(runs=runs, points=list(range(1, runs + 1))))
    return ["run", "-q", f"many{runs}", "device=cpu:0"]


def copy_runs(path, copies):
    """Adds each run of a study.db so many times under other names, with what belongs to it."""
    db = sqlite3.connect(path)
    count = db.execute("SELECT max(number) FROM run").fetchone()[0]
    tables = ["run"] + [name for (name,) in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
        " AND (name IN ('rank', 'iterations') OR name LIKE 'result%')")]
    for copy in range(1, copies + 1):
        for table in tables:
            key = "number" if table == "run" else "run"
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            moved = {key, "position"} if table == "run" else {key}
            values = [f'"{name}" + {count * copy}' if name in moved else
                      f"id || '_c{copy}'" if (table, name) == ("run", "id") else f'"{name}"'
                      for name in names]
            quoted = ",".join(f'"{name}"' for name in names)
            db.execute(f"INSERT INTO {table} ({quoted}) SELECT {','.join(values)} FROM {table}"
                       f" WHERE {key} <= {count}")
    db.commit()
    db.close()
