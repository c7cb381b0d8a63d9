"""Reads with the trackers' own code and compares each value with what was stored.

trackers.py STUDY TRACKER... [gpus]      a study, with its study.db; mlflow=PROJECT[=BEFORE=PREFIX=LOSS]:
                                         what stands before runs' and metrics' names, what loss is called
trackers.py HOME recording CSV           a recording, with its export
trackers.py FOLDER curve                 what `gpulab track-test` writes
trackers.py FOLDER steps                 a study whose runs have no steps, or fractions: each value's place
trackers.py STUDY uploaded REQUESTS      what `wandb sync` sent to wandb_server.py
trackers.py . hosts                      recordings of two hosts as one run, and whose GPUs are sent
trackers.py CSV mlflow_hosts             the same in MLflow, with the recordings' export"""
import csv
import collections
import glob
import json
import math
import os
import sqlite3
import subprocess
import sys

folder, wanted = sys.argv[1], sys.argv[2:]
base = os.path.join(os.environ["PYTHONPATH"], "wandb/bin/wandb-core")
problems = []


def expect(true, what):
    if not true:
        problems.append(what)


def read_events(path):
    from tensorboard.backend.event_processing import event_accumulator
    events = event_accumulator.EventAccumulator(path, {"scalars": 0, "tensors": 0, "images": 0})
    events.Reload()
    return events


def read_wandb(path):
    out = subprocess.run([base, "leet", "inspect", "--no-observability", "--json", "--run-file", path],
                         capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def recording(path):
    right = collections.defaultdict(list)
    for line in csv.DictReader(open(path)):
        if line["kind"] == "gpu" and line["power_w"]:
            right[line["index"]].append(float(line["power_w"]))
    events = read_events(glob.glob(f"{folder}/tensorboard/*")[0])
    records = read_wandb(glob.glob(f"{folder}/wandb/*/*.wandb")[0])
    expect(len(right) == 8, f"{len(right)} GPUs")
    for gpu, powers in right.items():
        found = [e.value for e in events.Scalars(f"gpu_{gpu}_power")]
        expect(len(found) == len(powers) and all(same(a, b, 1e-6) for a, b in zip(found, powers)),
               f"GPU {gpu}: {len(found)} readings instead of {len(powers)}")
        stats = [r["stats"]["item"].get(f"gpu.{gpu}.powerWatts") for r in records if r["type"] == "stats"]
        stats = [s for s in stats if s is not None]
        expect(len(stats) == len(powers) and all(map(same, stats, powers)), f"GPU {gpu}: wandb differs")
    totals = events.Scalars("gpu_total_power")
    parts = [{e.step: e.value for e in events.Scalars(f"gpu_{gpu}_power")} for gpu in right]
    expect(totals and all(same(t.value, sum(part[t.step] for part in parts), 1e-5) for t in totals), "totals")
    expect(records[-3]["exit"]["exit_code"] == 3, "exit code")


def hosts():
    for name, seen in (("job", {1}), ("all", {0, 1, 2})):
        tags = read_events(glob.glob(f"{name}.db.track/tensorboard/*")[0]).Tags()["scalars"]
        expect({i for i in range(3) if f"gpu_{i}_power" in tags} == seen and "gpu_1_energy" in tags, f"{name}: {tags}")
    own = os.uname().nodename
    files = glob.glob("together/tensorboard/shared/*")
    tags = {tag for path in files for tag in read_events(path).Tags()["scalars"]}
    expect(len(files) == 2 and {f"{own}/gpu_1_power", "other/gpu_1_power"} <= tags, f"hosts: {files} {tags}")
    runs = [read_wandb(path) for path in glob.glob("together/wandb/*/*.wandb")]
    about = [r["run"] for records in runs for r in records if r["type"] == "run"]
    expect(len({run["run_id"] for run in about}) == 1 and all(run.get("resume") for run in about), f"hosts: {about}")
    keys = {key for records in runs for r in records if r["type"] == "stats" for key in r["stats"]["item"]}
    expect({f"gpu.1.gpu/l:{own}", "gpu.1.gpu/l:other"} <= keys, f"hosts: {keys}")
    from trackio import fragments
    from trackio.sqlite_storage import SQLiteStorage as storage
    fragments.import_inbox_dir()
    rows = storage.get_system_logs("hosts", "shared")
    expect(all(any(f"{host}/gpu/1/power" in row for row in rows) for host in (own, "other")), "hosts: trackio")


def mlflow_hosts():
    from mlflow import MlflowClient
    client = MlflowClient()
    found = client.search_runs([client.get_experiment_by_name("hosts").experiment_id])
    expect(len(found) == 1 and found[0].info.status == "FAILED", f"hosts: {found}")
    right = sorted(float(line["power_w"]) for line in csv.DictReader(open(folder))
                   if (line["kind"], line["index"]) == ("gpu", "1") and line["power_w"])
    for host in (os.uname().nodename, "other", "third"):
        expect(found[0].data.params[f"{host}/interval_s"] == "0.1" and f"{host}/result/exit_code" in found[0].data.metrics,
               f"hosts: {host}'s parameters and result")
        for key in (f"system/{host}/gpu_1_power_usage_watts", f"{host}/gpu_1_power"):
            sent = sorted(point.value for point in client.get_metric_history(found[0].info.run_id, key))
            expect(len(sent) == len(right) and all(map(same, sent, right)), f"hosts: {key}: {len(sent)} of {len(right)}")


def curve():
    events = read_events(os.path.dirname(glob.glob("tensorboard/track-test/*")[0]))
    expect(len(events.Scalars("loss")) == 100 and len(events.Scalars("gpu_1_power")) == 10, "tensorboard: curve")
    rows = [r["history"]["item"] for r in read_wandb(glob.glob("wandb/*/*.wandb")[0]) if r["type"] == "history"]
    expect(sum("loss" in row for row in rows) == 100, "wandb: curve")
    from trackio import fragments
    from trackio.sqlite_storage import SQLiteStorage as storage
    fragments.import_inbox_dir()
    expect(sum("loss" in row for row in storage.get_logs("gpulab-track-test", "track-test")) == 100, "trackio: curve")


def steps():
    """Rows are counted where their steps are no whole numbers, whenever they were sent."""
    for path in glob.glob(f"{folder}/tensorboard/gpu*"):
        found = [e.step for e in read_events(path).Scalars("loss")]
        expect(found and found == list(range(len(found))), f"{path}: steps {found}")
    from trackio import fragments
    from trackio.sqlite_storage import SQLiteStorage as storage
    fragments.import_inbox_dir()
    for project in storage.get_projects():
        for run in storage.get_runs(project):
            found = [row["step"] for row in storage.get_logs(project, run) if "loss" in row]
            expect(found == list(range(len(found))), f"trackio {run}: steps {found}")


def uploaded(requests):
    """What arrives at W&B is what its own reader sees in the files; each metric's x axis."""
    runs, axes = collections.defaultdict(list), {}
    for line in open(requests):
        path, body = json.loads(line)
        if "upsertBucket" in body.get("query", ""):
            given = body["variables"]
            defined = json.loads(given.get("config") or "{}").get("_wandb", {}).get("value", {}).get("m", [])
            axes[given["name"]] = {d.get("1", d.get("2")): defined[d["5"] - 1]["1"] for d in defined if "5" in d}
        if path.endswith("/file_stream") and "files" in body:
            part = body["files"].get("wandb-history.jsonl")
            expect(not part or part["offset"] == len(runs[path.split("/")[-2]]), f"{path}: offset {part and part['offset']}")
            runs[path.split("/")[-2]] += map(json.loads, part["content"]) if part else []
    files = glob.glob(f"{folder}/wandb/offline-run-*/run-*.wandb")
    expect(files, "wandb sync: no files")
    for path in files:
        run = os.path.basename(path)[4:-6]
        right = [r["history"]["item"] for r in read_wandb(path) if r["type"] == "history"]
        own = lambda row: {key: str(float(value)) for key, value in row.items() if not key.startswith("_")}
        expect(list(map(own, runs[run])) == list(map(own, right)), f"wandb sync {run}: {len(runs[run])} of {len(right)} rows")
        stepped = {key for row in right if "iteration" in row for key in own(row)} - {"iteration"}
        expect(axes.get(run) == {key: "iteration" for key in stepped}, f"wandb sync {run}: axes {axes.get(run)}, not of {stepped}")


def same(a, b, precision=1e-12):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= precision * abs(b)


def finish():
    print("\n".join(problems[:20]))
    sys.exit(1 if problems else 0)


if wanted[0] in ("recording", "curve", "steps", "uploaded", "hosts", "mlflow_hosts"):
    globals()[wanted[0]](*wanted[1:])
    finish()
db = sqlite3.connect(f"file:{folder}/study.db?mode=ro", uri=True)
runs = dict(db.execute("SELECT number, id FROM run"))
attempts = dict(db.execute("SELECT id, attempts FROM run"))
stored = {name: collections.defaultdict(list) for name in runs.values()}
columns = {row[1] for row in db.execute("PRAGMA table_info(metric)")}
for number, name, value, step in db.execute(
        f"SELECT run, name, value, {'step' if 'step' in columns else 'NULL'} FROM metric ORDER BY id"):
    stored[runs[number]][name].append((step, math.nan if value is None else value))
results = {run["run_id"]: run for run in json.load(open(f"{folder}/results.json"))}


def means():
    """Of each point, over its repeats: the rate, and the last values of metrics."""
    values = collections.defaultdict(list)
    for name, run in results.items():
        point = name.removesuffix(f"_r{run['repeat']}")
        values[f"{point}.rate_mean"].append(run["rate"])
        for metric, reported in stored[name].items():
            if math.isfinite(reported[-1][1]):
                values[f"{point}.{'reported_rate' if metric == 'rate' else metric}_mean"].append(reported[-1][1])
    return {key: sum(of) / len(of) for key, of in values.items() if len(of) > 1 or key.endswith(".rate_mean")}


right_means = means()


def compare(tracker, run, name, found, precision=1e-12):
    """found: (step, value) in order; a step of None isn't compared."""
    right = stored[run][name]
    expect(len(found) == len(right), f"{tracker} {run} {name}: {len(found)} values instead of {len(right)}")
    for (step, value), (right_step, right_value) in zip(found, right):
        expect(same(value, right_value, precision) and (right_step is None or step == right_step),
               f"{tracker} {run} {name}: ({step}, {value}) instead of ({right_step}, {right_value})")


def tensorboard():
    from tensorboard.plugins.hparams import plugin_data_pb2
    where = os.environ.get("GPULAB_TRACK_FOLDER", folder)
    for run in stored:
        events = read_events(f"{where}/tensorboard/{run}")
        for name in stored[run]:
            compare("tensorboard", run, name, [(e.step, e.value) for e in events.Scalars(name)], 1e-6)
        expect(same(events.Scalars("result/rate")[0].value, results[run]["rate"], 1e-6), f"{run}: rate")
        expect(events.Tensors("verdict")[0].tensor_proto.string_val[0], f"{run}: no verdict")
        plugin = events.PluginTagToContent("hparams")
        start = plugin_data_pb2.HParamsPluginData.FromString(plugin["_hparams_/session_start_info"])
        end = plugin_data_pb2.HParamsPluginData.FromString(plugin["_hparams_/session_end_info"])
        expect(start.session_start_info.hparams["workload"].string_value == results[run]["workload"], f"{run}: hparams")
        expect("repeat" not in start.session_start_info.hparams, f"{run}: a trial has several repeats")
        expect(end.session_end_info.status == 1, f"{run}: status")
        expect(run in (start.session_start_info.group_name, start.session_start_info.group_name + f"_r{results[run]['repeat']}"),
               f"{run}: group {start.session_start_info.group_name}")
        if gpus:
            expect("gpu_0_power" in events.Tags()["scalars"], f"{run}: no power")
            expect("gpu_1_power" not in events.Tags()["scalars"], f"{run}: a GPU that isn't its own")
    whole = read_events(f"{where}/tensorboard/study")
    try:
        expect(not whole.PluginTagToContent("hparams"), "tensorboard: the study is a trial of the table")
    except KeyError:
        pass  # as it should be
    for key, value in right_means.items():
        expect(same(whole.Scalars(f"result/{key}")[0].value, value, 1e-6), f"tensorboard: {key}")
    for path in glob.glob(f"{folder}/report/*.png"):
        image = whole.Images(f"report/{os.path.basename(path)[:-4]}")[0]
        expect(image.encoded_image_string == open(path, "rb").read() and image.width > image.height > 99, path)


def wandb():
    found = {}
    where = os.environ.get("WANDB_DIR", folder)
    for path in glob.glob(f"{where}/wandb/offline-run-*/run-*.wandb"):
        records = read_wandb(path)
        run = next(r["run"] for r in records if r["type"] == "run")
        found[run["display_name"]] = records
        if run["display_name"] == "study":
            continue
        expect(records[0]["type"] == "header" and records[-1]["type"] == "footer", f"{path}: not whole")
        expect(run["config"]["update"]["workload"] == results[run["display_name"]]["workload"], f"{path}: config")
        expect(run["run_group"] and run["project"] and run["tags"], f"{path}: group, project, tags")
    summary_of = lambda records: dict(item for r in records if r["type"] == "summary" for item in r["summary"]["update"].items())
    whole = summary_of(found.pop("study"))
    for key, value in right_means.items():
        expect(same(whole[f"result/{key}"], value), f"wandb: {key} is {whole[f'result/{key}']}, not {value}")
    expect(found.keys() == stored.keys(), f"wandb: {len(found)} runs instead of {len(stored)}")
    for run, records in found.items():
        rows = [r["history"]["item"] for r in records if r["type"] == "history"]
        number = lambda value: float(value.replace("Infinity", "inf")) if isinstance(value, str) else value
        for name in stored[run]:
            compare("wandb", run, name, [(r.get("iteration"), number(r[name])) for r in rows if name in r])
        expect([r["_step"] for r in rows] == sorted({r["_step"] for r in rows}), f"wandb {run}: _step")
        summary = summary_of(records)
        for name, values in stored[run].items():
            expect(name in summary and same(number(summary[name]), values[-1][1]), f"wandb {run} {name}: not in the summary")
        expect(same(summary["result/rate"], results[run]["rate"]), f"wandb {run}: rate")
        expect(next(r for r in records if r["type"] == "exit")["exit"]["exit_code"] == 0, f"wandb {run}: exit")
        stats = [r["stats"]["item"] for r in records if r["type"] == "stats"]
        if gpus:
            expect(stats and all("gpu.0.powerWatts" in s and "gpu.1.gpu" not in s for s in stats), f"wandb {run}: GPUs")
            expect(any("gpu_total_memory" in row for row in rows), f"wandb {run}: gpu_total_memory")


def trackio():
    from trackio import fragments
    from trackio.sqlite_storage import SQLiteStorage as storage
    from trackio.utils import RESERVED_KEYS
    fragments.import_inbox_dir()
    names = {run: project for project in storage.get_projects() for run in storage.get_runs(project)}
    for run in stored:
        shown = run if attempts[run] == 1 else f"{run} (attempt {attempts[run]})"
        expect(shown in names, f"trackio: no {shown} in {sorted(names)}")
        rows = storage.get_logs(names[shown], shown)
        for name in stored[run]:
            key = f"__{name}" if name in RESERVED_KEYS else name
            compare("trackio", run, name, [(r["step"], r[key]) for r in rows if key in r])
        expect(same(rows[-1]["result/rate"], results[run]["rate"]), f"trackio {run}: rate")
        expect(storage.get_run_config(names[shown], shown)["workload"] == results[run]["workload"], f"trackio {run}: config")
        if gpus:
            expect(any({"gpu/0/power", "gpu/0/power_percent", "gpu/0/memory_usage"} <= r.keys() for r in storage.get_system_logs(names[run], run)), f"trackio {run}: GPUs")
    project = names[shown]
    wholes, studies = storage.get_runs(project).count("study"), len(glob.glob(f"{folder}/../../*/*/study.db"))
    expect(wholes <= studies, f"trackio: {wholes} summaries of {studies} studies")
    whole = storage.get_logs(project, "study")[-1]
    for key, value in right_means.items() if studies == 1 else ():
        expect(same(whole[f"result/{key}"], value), f"trackio: {key} is {whole[f'result/{key}']}, not {value}")


def mlflow(project, before="", prefix="", loss="loss"):
    from mlflow import MlflowClient
    client = MlflowClient()
    runs = client.search_runs([client.get_experiment_by_name(project).experiment_id])
    found = {run.info.run_name.removeprefix(before): run for run in runs}
    expect(len(runs) == len(found), f"mlflow: {len(runs)} runs, {len(found)} of them different")
    whole = found.pop("study")
    expect(found.keys() == stored.keys(), f"mlflow: {len(found)} runs instead of {len(stored)}")
    for key, value in () if prefix else right_means.items():
        expect(same(whole.data.metrics[f"result/{key}"], value), f"mlflow: {key}")
    for name, run in found.items():
        for metric in stored[name]:
            stored[name][metric] = [(s, math.copysign(sys.float_info.max, v) if math.isinf(v) else v)
                                    for s, v in stored[name][metric]]
            history = client.get_metric_history(run.info.run_id, prefix + (loss if metric == "loss" else metric))
            compare("mlflow", name, metric, sorted((m.step, m.value) for m in history))
        expect(same(run.data.metrics["result/rate"], results[name]["rate"]), f"mlflow {name}: rate")
        expect(run.data.params["workload"] == results[name]["workload"], f"mlflow {name}: params")
        expect(run.info.status == "FINISHED" and run.info.end_time >= run.info.start_time, f"mlflow {name}: end")
        expect(run.data.tags["mlflow.note.content"] and run.data.tags["group"], f"mlflow {name}: tags")
        if gpus:
            expect({f"system/gpu_0_{key}" for key in ("power_usage_watts", "power_usage_percentage", "memory_usage_percentage")}
                   <= run.data.metrics.keys() and "gpu_0_energy" in run.data.metrics
                   and "gpu_1_power" not in run.data.metrics, f"mlflow {name}: {sorted(run.data.metrics)}")
    if gpus:
        path = client.download_artifacts(whole.info.run_id, "index.html", os.environ["HOME"])
        expect(open(path).read() == open(f"{folder}/report/index.html").read(), "mlflow: the report")


gpus = "gpus" in wanted
for tracker in wanted:
    if tracker != "gpus":
        globals()[tracker.split("=")[0]](*tracker.split("=")[1:])
finish()
