"""Records four GPUs of the fake driver through each fault that it can play, and reads the recordings.

    monitor_faults.py GPULAB FAKE_DIR FOLDER [few]

Whatever happens to one GPU: the program ends with status 0, the others have their values throughout and
nobody else's, the one at fault has a gap with its reason, and where it comes back, that too. The time
that each recording took of a CPU is printed; what is checked of it is only that nothing spins.

On a busy machine a second may be too short for all of it to happen: what was not seen yet is looked for
in a longer recording once more. What must never be seen fails at once.
"""
import json
import os
import re
import subprocess
import sys
import time

gpulab, fake, folder = sys.argv[1:4]
few = sys.argv[4:] == ["few"]
AT_ONCE = 16
INTERVAL = "50ms"
SPINNING = 0.2  # of a core, beyond what the recording of healthy GPUs takes
POWER = [100, 200, 300, 400]
CALL = "nvmlDeviceGetPowerUsage"
MISSING = ["nvmlDeviceGetTemperatureV", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetFieldValues",
           "nvmlDeviceGetMemoryInfo_v2", "nvmlGpmSampleGet", "nvmlEventSetWait_v2", "nvmlEventSetWait"]


class Recording:
    """What a recording says of its GPUs, by their index."""

    def __init__(self, text):
        document = json.loads(text)
        entities = {entity["number"]: entity for entity in document["entities"]}
        gpus = {number: entity["index"] for number, entity in entities.items() if entity["kind"] == "gpu"}
        self.ticks = {index: [] for index in gpus.values()}  # (time in s, {column: value})
        times = [tick["time_ns"] for tick in document["ticks"]]
        self.start_ns, self.end_ns = min(times), max(times)
        for tick in document["ticks"]:
            if tick["entity"] in gpus:
                columns = entities[tick["entity"]]["columns"]
                self.ticks[gpus[tick["entity"]]].append(
                    (self.seconds(tick["time_ns"]), dict(zip(columns, tick["values"]))))
        self.events = [(self.seconds(event["time_ns"]), event["kind"], gpus.get(event["entity"]),
                        event["number"], event["text"]) for event in document["events"]]
        self.lists = [entry["items"] for entry in document["processes"]]

    def seconds(self, time_ns):
        return (time_ns - self.start_ns) / 1e9

    def of(self, gpu, kind):
        return [event for event in self.events if event[1] == kind and event[2] == gpu]

    def values(self, gpu, column, after=0):
        return [values[column] for at, values in self.ticks[gpu] if at >= after]


class Case:
    """One recording: what is played, and what has to be seen in it."""

    def __init__(self, name, script, gaps=None, look=None, seconds=1.0, status=0):
        self.name, self.script, self.look, self.status = name, script, look, status
        self.gaps = gaps or {}  # GPU: (pattern of the reason, whether it comes back; None = either)
        self.seconds, self.tries = seconds, 0
        self.wrong, self.lacks = [], []

    def begin(self):
        self.tries += 1
        self.wrong, self.lacks = [], []
        self.path = os.path.join(folder, f"{self.name.replace(' ', '-')}-{self.tries}.db")
        env = dict(os.environ, LD_LIBRARY_PATH=fake, CUDA_VISIBLE_DEVICES="0,1,2,3",
                   GPULAB_FAKE_NVML=f"gpus=4; power={','.join(map(str, POWER))}; {self.script}")
        self.began = time.monotonic()
        self.messages = open(self.path + ".err", "w+")
        self.process = subprocess.Popen([gpulab, "record", "-q", "-i", INTERVAL, "-t",
                                         f"{self.seconds}s", "-o", self.path], env=env,
                                        stdin=subprocess.DEVNULL, stdout=self.messages,
                                        stderr=self.messages)

    def end(self, status, usage):
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.took = time.monotonic() - self.began
        self.cpu = usage.ru_utime + usage.ru_stime
        self.messages.seek(0)
        said = self.messages.read()
        self.messages.close()
        self.never(self.process.returncode != self.status,
                   f"status {self.process.returncode}: {said}")
        self.never("ERROR: " in said or "WARNING: " in said, said)
        if not self.wrong:
            self.read()

    def read(self):
        done = subprocess.run([gpulab, "export", self.path, "--format", "json"], text=True,
                              capture_output=True)
        if done.returncode:
            self.never(True, f"can't be read back: {done.stderr}")
            return
        recording = Recording(done.stdout)
        for gpu in sorted(recording.ticks):
            self.check_gpu(recording, gpu)
        if self.look:
            self.look(self, recording)

    def check_gpu(self, recording, gpu):
        powers = {power for power in recording.values(gpu, "power_w") if power is not None}
        self.never(powers - {POWER[gpu]}, f"GPU {gpu} has the power of another: {powers}")
        gaps, backs = recording.of(gpu, "gap"), recording.of(gpu, "back")
        if gpu not in self.gaps:
            self.never(gaps, f"GPU {gpu} has no part in it, but a gap: {gaps}")
            third = recording.seconds(recording.end_ns) / 3
            for part in range(3):
                count = sum(part * third <= at <= (part + 1) * third
                            for at, _ in recording.ticks[gpu])
                self.need(count, f"GPU {gpu} has no values in part {part + 1} of 3")
            return
        reason, back = self.gaps[gpu]
        self.need(gaps, f"GPU {gpu} has no gap")
        for gap in gaps:
            self.never(not re.search(reason, gap[4]), f"GPU {gpu}: '{gap[4]}' instead of '{reason}'")
        if back is not None:
            self.never(backs and not back, f"GPU {gpu} came back: {backs}")
            self.need(backs or not back, f"GPU {gpu} never came back")
        self.never(len(gaps) > 1 or len(backs) > len(gaps), f"GPU {gpu} comes and goes: {gaps} {backs}")
        if gaps and backs:
            self.never(any(gaps[0][0] < at < backs[0][0] for at, _ in recording.ticks[gpu]),
                       f"GPU {gpu} has values in its gap")
            self.need([at for at, _ in recording.ticks[gpu] if at >= backs[0][0]],
                      f"GPU {gpu} has no values after it came back")
            self.never(abs(backs[0][3] / 1e9 - (backs[0][0] - gaps[0][0])) > 0.001,
                       f"GPU {gpu}: the gap's length is wrong: {gaps} {backs}")

    def never(self, seen, text):
        if seen:
            self.wrong.append(text)

    def need(self, seen, text):
        if not seen:
            self.lacks.append(text)


# --- the faults ---

def power_is_gone(case, recording):
    """The value that is refused is left out from then on; the others of that GPU are there."""
    for gpu in (1, 2):
        powers = recording.values(gpu, "power_w")
        case.need(powers.count(None) >= 3, f"GPU {gpu} has a power: {powers}")
        first = powers.index(None) if None in powers else len(powers)
        case.never(any(power is not None for power in powers[first:]),
                   f"GPU {gpu} has a power again: {powers}")
        case.never(None in recording.values(gpu, "power_instant_w"), f"GPU {gpu} lost more than that")


def one_power_is_missing(case, recording):
    case.need(recording.values(1, "power_w").count(None), "GPU 1 has every power")
    case.never(recording.values(1, "power_w").count(None) > 1, "GPU 1 lacks more than one power")
    case.need(recording.values(2, "power_w")[-1:] == [None], "GPU 2 has a power")


def power_is_doubted(case, recording):
    """What fails once is asked again; what fails each time isn't, and costs no more than its value."""
    case.need(POWER[1] in recording.values(1, "power_w")[-1:], "GPU 1 has no power in the end")
    for column, wanted in (("power_w", None), ("temperature_c", 40)):
        back = recording.of(2, "back")
        case.never(back and {wanted} != set(recording.values(2, column, back[0][0])),
                   f"GPU 2: {column} isn't {wanted}")


def an_xid_is_told(case, recording):
    told = [event[3] for event in recording.of(1, "xid")]
    case.need(told, "no Xid")
    case.never(told and told != [79], f"Xids {told}")


def counters_wrap(case, recording):
    counts = [count for count in recording.values(1, "pcie_tx_bytes") if count is not None]
    case.need(any(after < before for before, after in zip(counts, counts[1:])), f"no wrap: {counts}")
    case.never(any(not 0 <= count < 1 << 32 for count in counts), f"not of 32 bits: {counts}")


def processes_are_read(case, recording):
    """Whatever layout the driver writes, this process is there with its memory."""
    case.need(recording.lists, "no list of processes")
    for items in recording.lists:
        told = [(item["pid"], gpu["memory_bytes"]) for item in items for gpu in item["gpus"]]
        case.never(any(pair != (os.getpid(), 8000 << 20) for pair in told), f"processes: {told}")
    case.need(any(recording.lists), "no process")


def nothing_of(*columns):
    def look(case, recording):
        for column in columns:
            case.never(set(recording.values(1, column)) != {None}, f"{column} is known")
        case.never(None in recording.values(1, "temperature_c"), "the temperature isn't known")
    return look


def nobody_is_there(case, recording):
    case.never(recording.ticks, "there are GPUs")


def each_code():
    """GPU 1 fails once with it, GPU 2 from then on."""
    words = {1: "lost its connection", 9: "not loaded", 15: "lost", 16: "must be reset",
             17: "operating system", 18: "differ in version", 999: "can't name"}
    for code in (1, 3, 4, 9, 10, 13, 15, 16, 17, 18, 26, 999):
        script = f"fail={CALL}:{code}@4x1/1,{CALL}:{code}@4/2"
        if code in (17, 999):
            gaps = {1: (words[code], True), 2: (words[code], True)}
            yield Case(f"error {code}", script, gaps, power_is_doubted)
        elif code in words:
            yield Case(f"error {code}", script, {1: (words[code], True), 2: (words[code], False)})
        else:
            yield Case(f"error {code}", script, {},
                       one_power_is_missing if code == 10 else power_is_gone)


def all_cases():
    lost = "lost: it fell off"
    yield Case("healthy", "")
    yield Case("hang", f"hang={CALL}:60@4/1", {1: ("hangs", False)}, seconds=3)
    yield Case("hang that ends", f"hang={CALL}:2.5@4/1", {1: ("hangs", True)}, seconds=3.4)
    yield Case("hang of a restart", "lost=1@0.2; hang=nvmlInit_v2:60@2",
               {gpu: ("lost|restart|hangs", False) for gpu in range(4)}, seconds=2.5)
    yield Case("lost and back", "lost=1@0.2..0.3; xid=1:79@0.2", {1: (lost, True)}, an_xid_is_told)
    yield Case("lost for good", "lost=3@0.2", {3: (lost, False)})
    yield Case("gone and back", "gone=0@0.2..0.3", {0: (lost, True)})
    yield Case("gone for good", "gone=1@0.2", {1: (lost, False)})
    yield Case("all lost and back", ",".join(f"lost={gpu}@0.2..0.3" if gpu == 0 else
                                             f"{gpu}@0.2..0.3" for gpu in range(4)),
               {gpu: (lost, True) for gpu in range(4)})
    yield Case("garbage", "garbage=1", {1: ("answers no query", False)})
    yield Case("wrap", "wrap=32; pcie_tx=2500", look=counters_wrap, seconds=2.2)
    yield Case("storm", "storm=1")
    yield from each_code()
    yield Case("no driver", "fail=nvmlInit_v2:9", look=nobody_is_there)
    for driver in (450, 470, 535, 550, 580, 600):
        yield Case(f"driver {driver}", f"driver={driver}; process=1:{os.getpid()}:8000:85:C",
                   look=processes_are_read)
    yield Case("missing functions", f"missing={','.join(MISSING)}",
               look=nothing_of("utilization_percent", "sm_active_percent", "pcie_tx_bytes"))


# --- running them ---

def run(cases):
    waiting, running = list(reversed(cases)), {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            case = waiting.pop()
            case.begin()
            running[case.process.pid] = case
        pid, status, usage = os.wait4(-1, 0)
        if pid in running:
            running.pop(pid).end(status, usage)


cases = list(all_cases())
if few:
    kept = ("healthy", "hang", "hang of a restart", "lost and back", "gone and back", "garbage", "storm",
            "error 1", "error 3", "error 9", "error 999", "driver 535")
    cases = [case for case in cases if case.name in kept]
run(cases)
late = [case for case in cases if case.lacks and not case.wrong]
for case in late:
    print(f"{case.name}: once more, for longer: {case.lacks[0]}")
    case.seconds *= 4
run(late)

failures = 0
healthy = next(case for case in cases if case.name == "healthy")
for case in cases:
    extra = (case.cpu - healthy.cpu) / case.seconds
    case.never(extra > SPINNING, f"{extra:.0%} of a core more than without a fault")
    case.never(case.took > case.seconds + 20, f"took {case.took:.1f} s")
    print(f"{case.name:20s} {case.cpu / case.took:6.1%} of a core in {case.took:.1f} s, start included")
    for problem in case.wrong + case.lacks:
        print(f"FAIL: {case.name}: {problem}")
        failures += 1
sys.exit(1 if failures else 0)
