"""What exporter.sh asks over HTTP: a Prometheus server, the exporter itself, and badly."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE_S = 30


def check(condition, *words):
    if not condition:
        print("not so:", *words)
        sys.exit(1)


def get(url, method="GET"):
    """Status, headers and text, whatever the status."""
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


# --- Prometheus ---


def query(server, expression):
    """The result as a list of (labels, value); None while the server doesn't answer yet."""
    try:
        url = server + "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        answer = json.loads(get(url)[2])
        return [(r["metric"], float(r["value"][1])) for r in answer["data"]["result"]]
    except (OSError, ValueError, KeyError):
        return None


def wait_for(server, expression, count):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        result = query(server, expression)
        if result is not None and len(result) >= count:
            return result
        time.sleep(0.05)
    check(False, expression, "gives", result)
    return None


def by_gpu(result):
    return {int(labels["gpu"]): value for labels, value in result}


def check_prometheus(server, pid):
    wait_for(server, "DCGM_FI_PROF_SM_ACTIVE", 4)  # needs two samples of the GPU

    def values(name):
        return by_gpu(query(server, name))

    same = {
        "DCGM_FI_DEV_FB_USED": {0: 12800, 1: 12750, 2: 12825, 3: 12780},
        "DCGM_FI_DEV_FB_RESERVED": dict.fromkeys(range(4), 500),
        "DCGM_FI_DEV_FB_FREE": {0: 130471, 1: 130521, 2: 130446, 3: 130491},
        "DCGM_FI_DEV_GPU_UTIL": {0: 97, 1: 96, 2: 95, 3: 94},
        "DCGM_FI_DEV_POWER_USAGE": {0: 412.5, 1: 400, 2: 390, 3: 380},
        "DCGM_FI_DEV_GPU_TEMP": dict.fromkeys(range(4), 61),
        "DCGM_FI_DEV_SM_CLOCK": dict.fromkeys(range(4), 1980),
        "DCGM_FI_PROF_SM_ACTIVE": dict.fromkeys(range(4), 0.8125),
        "DCGM_FI_PROF_PCIE_TX_BYTES": dict.fromkeys(range(4), 2048 * 2**20),
        "gpulab_gpu_memory_used_bytes": {g: m * 2**20 for g, m in enumerate((12800, 12750, 12825, 12780))},
        "gpulab_gpu_utilization_ratio": {0: 0.97, 1: 0.96, 2: 0.95, 3: 0.94},
        'gpulab_gpu_clock_event_reason{reason="sw_power_cap"}': dict.fromkeys(range(4), 1),
        'gpulab_gpu_clock_event_reason{reason="hw_thermal"}': dict.fromkeys(range(4), 0),
        'gpulab_device_up{kind="gpu"}': dict.fromkeys(range(4), 1),
    }
    for name, expected in same.items():
        check(values(name) == expected, name, values(name), "instead of", expected)
    check(query(server, "sum(DCGM_FI_DEV_FB_USED)")[0][1] == 51155, "sum of DCGM_FI_DEV_FB_USED")

    labels = [labels for labels, _ in query(server, 'DCGM_FI_DEV_GPU_UTIL{gpu="2"}')][0]
    wanted = {"device": "nvidia2", "modelName": "NVIDIA H200", "Hostname": socket.gethostname()}
    check(wanted.items() <= labels.items(), labels, "lacks some of", wanted)
    check(labels["UUID"].startswith("GPU-"), labels)
    check(len(labels["pci_bus_id"]) == len("00000000:3B:00.0"), labels)
    check(labels["DCGM_FI_DRIVER_VERSION"], labels)

    # the fake driver says that the exporter itself is on GPU 0
    (labels, held), = wait_for(server, "gpulab_process_gpu_memory_bytes", 1)
    check(held == 8000 * 2**20 and labels["gpu"] == "0" and labels["pid"] == pid, labels, held)
    check(labels["name"] == "gpulab" and labels["user"], labels)
    check(len(query(server, "gpulab_process_placement")) == 1, "no placement")

    # the host, the sampler and this program itself
    for name in ("gpulab_cpu_utilization_ratio", "gpulab_host_memory_used_bytes", "gpulab_build_info"):
        check(len(wait_for(server, name, 1)) == 1, name)
    energy = by_gpu(wait_for(server, "increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[1m])", 0))
    check(all(grown >= 0 for grown in energy.values()), energy)
    ticks = wait_for(server, "gpulab_sampler_ticks_total", 1)[0][1]
    check(ticks > 0, "ticks", ticks)


# --- clients that mean no good ---


def dial(url):
    place = urllib.parse.urlparse(url)
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def check_pages(url):
    status, headers, text = get(url + "/metrics")
    check(status == 200 and "DCGM_FI_DEV_GPU_UTIL{" in text, status, text[:200])
    check(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers)
    status, headers, text = get(url + "/metrics", "HEAD")
    check(status == 200 and text == "" and int(headers["Content-Length"]) > 1000, "HEAD", headers)
    status, headers, text = get(url + "/")
    check(status == 200 and 'href="/metrics"' in text, "/", text)
    check(get(url + "/healthz")[0] == 200, "/healthz")
    check(get(url + "/nothing")[0] == 404, "/nothing")
    status, headers, _ = get(url + "/metrics", "DELETE")
    check(status == 405 and headers["Allow"] == "GET, HEAD", "DELETE", status)


def send_endless_header(url):
    """How much of 100 MB the exporter takes before it has had enough."""
    sent, piece = 0, b"a" * 65536
    with dial(url) as client:
        try:
            client.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            while sent < 100_000_000:
                client.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
    return sent


def check_abuse(url, pid):
    check_pages(url)
    before = resident_kib(pid)
    idle = [dial(url) for _ in range(300)]
    for client in idle:
        try:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        except OSError:
            pass  # pushed out by those behind it
    check(get(url + "/metrics")[0] == 200, "an answer beside 300 who say nothing")
    sent = send_endless_header(url)
    check(sent < 50_000_000, "a header of", sent, "bytes was taken")
    check(get(url + "/metrics")[0] == 200, "an answer after a header without end")
    for client in idle:
        client.close()
    for _ in range(100):
        check(get(url + "/metrics")[0] == 200, "one of 100 answers")
    grown = resident_kib(pid) - before
    check(grown < 64 * 1024, "it grew by", grown, "KiB")


# --- its life ---


def start(gpulab, *words, gpus=None):
    environment = dict(os.environ, GPULAB_FAKE_NVML=gpus) if gpus else None
    process = subprocess.Popen(
        [gpulab, "exporter", "--json", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    text, told = "", None
    while told is None:
        line = process.stdout.readline()
        check(line, "it ended:", text, process.stderr.read() if not line else "")
        text += line
        try:
            told = json.loads(text)
        except ValueError:
            pass  # there is more of it
    check("url" in told, told)
    check(told["pid"] == process.pid, told)
    return process, told["url"]


def stop(process, number):
    process.send_signal(number)
    _, messages = process.communicate(timeout=PATIENCE_S)
    check(process.returncode == 0, "status", process.returncode, messages)
    return messages


def wait_for_text(url, part):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        text = get(url)[2]
        if part in text:
            return text
        time.sleep(0.02)
    check(False, part, "is never in", text)
    return None


def wait_for_line(url, start_of_line, end_of_line):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        text = get(url)[2]
        for line in text.splitlines():
            if line.startswith(start_of_line) and line.endswith(end_of_line):
                return text
        time.sleep(0.02)
    check(False, "no line", start_of_line, end_of_line, "in", text)
    return None


def check_life(gpulab):
    process, url = start(gpulab, "--listen", "0.0.0.0:0", "--device", "cuda:2", "--interval", "50ms")
    url = url.replace("0.0.0.0", "127.0.0.1")
    text = wait_for_text(url, "DCGM_FI_DEV_FB_USED{")
    check('gpu="2"' in text and 'gpu="0"' not in text, "other GPUs than cuda:2", text)
    messages = stop(process, signal.SIGINT)
    check("other machines can reach" in messages, "no warning:", messages)

    process, url = start(gpulab, "--listen", "0", "--device", "cpu", "--interval", "50ms")
    text = wait_for_text(url, "gpulab_cpu_utilization_ratio")
    check("DCGM_" not in text, "GPUs, though there was asked for none", text)
    messages = stop(process, signal.SIGTERM)
    check("other machines" not in messages, messages)

    # GPU 1 is away for two seconds: nothing of it is left meanwhile but that it is down
    process, url = start(gpulab, "--listen", "0", "--interval", "50ms", gpus="gpus=2; lost=1@0.5..1.5; xid=0:79@+0.1")
    text = wait_for_line(url, 'gpulab_device_up{gpu="1"', " 0")
    check('DCGM_FI_DEV_POWER_USAGE{gpu="0"' in text, "the other GPU suffers", text)
    check(text.count('gpu="1"') == 1, "something is left of a GPU that was lost", text)
    text = wait_for_line(url, 'gpulab_device_up{gpu="1"', " 1")
    check('DCGM_FI_DEV_POWER_USAGE{gpu="1"' in text, "nothing of a GPU that is back", text)
    messages = stop(process, signal.SIGTERM)
    check("GPU 1 (" in messages and "has no samples" in messages and "is back after" in messages, messages)
    check("GPU 0 (" in messages and "): Xid 79" in messages, messages)


def main():
    what, words = sys.argv[1], sys.argv[2:]
    if what == "prometheus":
        check_prometheus(*words)
    elif what == "abuse":
        check_abuse(words[0], int(words[1]))
    elif what == "life":
        check_life(*words)
    elif what == "get":
        status, _, text = get(*words)
        check(status == 200, status, text)
        sys.stdout.write(text)


main()
