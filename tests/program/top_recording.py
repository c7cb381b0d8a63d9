"""Writes a recording in gpulab's JSON for tests/program/top.sh: two GPUs on two NUMA nodes, a minute,
processes in right and wrong places, a GPU that is lost for the last ten seconds."""
import json
import sys

BEGIN_NS, STEP_NS, TICKS = 1_000_000_000_000, 500_000_000, 120
GIB = 1 << 30

gpu_columns = ["utilization_percent", "memory_used_bytes", "memory_total_bytes", "power_w",
               "power_limit_w", "temperature_c", "sm_clock_mhz", "clock_event_reasons",
               "pcie_rx_rate_bytes_per_s", "pcie_tx_rate_bytes_per_s", "energy_j"]


def entity(number, kind, index, name, columns, **more):
    return {"number": number, "kind": kind, "index": index, "id": f"{kind}-{index}", "name": name,
            "pci": "", "node": -1, "parent": -1, "simulated": False, "columns": columns, **more}


entities = [entity(i, "gpu", i, "NVIDIA H100", gpu_columns, pci=f"0000:{17 + i}:00.0", node=i)
            for i in range(2)]
entities.append(entity(2, "cpu", 0, "CPUs", ["cpu_utilization_percent", "load"]))
entities.append(entity(3, "memory", 0, "memory",
                       ["host_memory_total_bytes", "host_memory_used_bytes"]))

ticks = []
for t in range(TICKS):
    time_ns = BEGIN_NS + t * STEP_NS
    for gpu in range(2):
        lost = gpu == 1 and t >= 100
        busy = 20 + (t * (3 + gpu)) % 75
        values = [busy, (10 + gpu + t // 20) * GIB, 80 * GIB, 100 + 5 * busy, 700.0, 40 + busy // 4,
                  1980, 4 if gpu == 0 and busy > 80 else 0, busy * 10240000, busy * 1024000,
                  t * 150.0]
        ticks.append({"entity": gpu, "time_ns": time_ns,
                      "values": [None] * len(values) if lost else values})
    ticks.append({"entity": 2, "time_ns": time_ns, "values": [float(10 + t % 30), 3.5]})
    ticks.append({"entity": 3, "time_ns": time_ns, "values": [256 * GIB, 64 * GIB]})


def process(pid, user, command, gpus, **more):
    item = {"pid": pid, "parent_pid": 1, "start": pid, "uid": 1000, "user": user,
            "name": command.split()[0], "command": command, "container": "", "cpu_percent": 50.0,
            "memory_bytes": 3 * GIB, "threads": 4, "cpu_node": 0, "allowed_nodes": 3,
            "node_bytes": [3 * GIB, 0], "placement": 2, "advice": "",
            "gpus": [{"entity": gpu, "memory_bytes": size, "sm_percent": 40.0,
                      "memory_percent": 10.0, "compute": True, "graphics": False}
                     for gpu, size in gpus]}
    item.update(more)
    return item


lists = [{"time_ns": BEGIN_NS, "left_out": 0, "items": [
    process(501, "learn", "python3 train.py", [(0, 9 * GIB)]),
    process(602, "web", "serve --port 8000", [(1, 30 * GIB)], placement=6, cpu_percent=150.0,
            advice="taskset -acp 16-31 602 && migratepages 602 0 1"),
    process(703, "carol", "bash", []),
]}]
events = [{"time_ns": BEGIN_NS + 100 * STEP_NS + 1, "entity": 1, "kind": "gap", "number": 0,
           "text": "GPU is lost"}]
document = {"format": "gpulab recording", "version": 1, "maker": "gpulab", "label": "monday",
            "interval_ns": STEP_NS, "simulated": False, "missing": [],
            "epochs": [{"from_ns": BEGIN_NS, "offset_ns": 1_794_738_323_000_000_000,
                        "host": "node7", "boot_id": ""}],
            "entities": entities, "ticks": ticks, "events": events, "processes": lists}
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(document, file)
