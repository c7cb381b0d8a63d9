"""The usual monitor in Python: one loop over all GPUs each 100 ms, through NVML or nvidia-smi.

    nvml_loop.py nvml SECONDS     utilisation, memory, power, temperature and PCIe both ways of each GPU in
                                  turn, kept in a list that is written anew as JSON each second. With
                                  pynvml (nvidia-ml-py) where it is installed, else the same calls by ctypes
    nvml_loop.py smi SECONDS      the same figures from one `nvidia-smi --query-gpu` of all GPUs

Prints `name value` lines; bench/monitor sets them beside ours. It also works with the tests' fake driver
in LD_LIBRARY_PATH, which lacks the call for PCIe, the one that takes longest in a real one.
"""
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

INTERVAL_S = 0.1
TEMPERATURE_GPU, PCIE_TX, PCIE_RX = 0, 0, 1
QUERY = ("index,utilization.gpu,utilization.memory,memory.used,power.draw,temperature.gpu,"
         "pcie.link.gen.current,pcie.link.width.current")


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Bare:
    """The part of pynvml that the loop needs."""

    name = "ctypes"

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.library.nvmlInit_v2())

    def check(self, result):
        if result:
            raise RuntimeError(f"NVML says {result}")

    def ask(self, function, value, *arguments):
        self.check(getattr(self.library, function)(*arguments, ctypes.byref(value)))
        return value

    def has(self, function):
        return hasattr(self.library, function)

    def nvmlDeviceGetCount(self):
        return self.ask("nvmlDeviceGetCount_v2", ctypes.c_uint()).value

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_void_p(), index)

    def nvmlDeviceGetUtilizationRates(self, handle):
        return self.ask("nvmlDeviceGetUtilizationRates", Utilization(), handle)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return self.ask("nvmlDeviceGetMemoryInfo", Memory(), handle)

    def nvmlDeviceGetPowerUsage(self, handle):
        return self.ask("nvmlDeviceGetPowerUsage", ctypes.c_uint(), handle).value

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return self.ask("nvmlDeviceGetTemperature", ctypes.c_uint(), handle, sensor).value

    def nvmlDeviceGetPcieThroughput(self, handle, counter):
        return self.ask("nvmlDeviceGetPcieThroughput", ctypes.c_uint(), handle, counter).value


def load_nvml():
    try:
        import pynvml
    except ImportError:
        return Bare()
    pynvml.nvmlInit()
    pynvml.name = "pynvml"
    pynvml.has = lambda function: True
    return pynvml


def read_gpu(nvml, index, pcie):
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    use = nvml.nvmlDeviceGetUtilizationRates(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    entry = {"gpu_id": index, "gpu_util": use.gpu, "mem_util": use.memory,
             "mem_used_gb": memory.used / 1024**3,
             "power_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
             "temp_c": nvml.nvmlDeviceGetTemperature(handle, TEMPERATURE_GPU)}
    if pcie:
        entry["pcie_tx_mb"] = nvml.nvmlDeviceGetPcieThroughput(handle, PCIE_TX) / 1000
        entry["pcie_rx_mb"] = nvml.nvmlDeviceGetPcieThroughput(handle, PCIE_RX) / 1000
    return entry


def read_smi():
    out = subprocess.run(["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"],
                         check=True, capture_output=True, text=True).stdout
    return [dict(zip(QUERY.split(","), line.split(", "))) for line in out.strip().split("\n")]


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def watch(read, seconds):
    samples, walls = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpu_monitor.json")
        start = written = time.monotonic()
        cpu_before = cpu_seconds()
        while time.monotonic() - start < seconds:
            before = time.monotonic()
            samples.append({"timestamp": before - start, "gpus": read()})
            walls.append(time.monotonic() - before)
            if before - written >= 1:
                with open(path, "w") as file:
                    json.dump({"samples": samples}, file, indent=2)
                written = before
            time.sleep(INTERVAL_S)
        passed, cpu = time.monotonic() - start, cpu_seconds() - cpu_before
    gpus = len(samples[0]["gpus"])
    print(f"gpus {gpus}\nsamples {len(samples)}\nrate_hz {len(samples) / passed:.2f}")
    print(f"wall_p50_us {1e6 * sorted(walls)[len(walls) // 2]:.1f}")
    print(f"cpu_us {1e6 * cpu / len(samples) / gpus:.1f}\ncpu_percent {100 * cpu / passed:.2f}")


def main(kind, seconds):
    if kind == "smi":
        print("library nvidia-smi\npcie 0")
        watch(read_smi, seconds)
        return
    nvml = load_nvml()
    count, pcie = nvml.nvmlDeviceGetCount(), nvml.has("nvmlDeviceGetPcieThroughput")
    print(f"library {nvml.name}\npcie {int(pcie)}")
    watch(lambda: [read_gpu(nvml, index, pcie) for index in range(count)], seconds)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("nvml", "smi"):
        sys.exit("usage: nvml_loop.py nvml|smi SECONDS")
    main(sys.argv[1], float(sys.argv[2]))
