"""Runs the examples of the documents and compares what they print with what the documents show.

    docs.py EXAMPLES DOCUMENT...    fenced blocks: '$ gpulab ...' is run, in order, in one folder a document
    docs.py LINES DOCUMENT...       all blocks: a remark behind a command begins with '#', so that the line can be
                                    pasted, and studies can be planned; commands that need a GPU are passed over
    docs.py TABLE DOCUMENT          tables: each `gpulab ...` in a row's last cell is run on a simulated machine

Lines of output that a document shows must be printed, whatever their numbers; those with '…' are left out.
"""
import json
import os
import re
import shlex
import subprocess
import sys

MOST_RUNS = 50  # of a study in a table; of larger ones the plan alone is made
failures = []
done = set()  # studies of a table that were run


def shape(line):
    """A line without what differs from run to run: numbers, paths' dates, widths of columns."""
    line = re.sub(r"[−+-]?\d[\d,.]*( ?[kMGµm]\b)?", "#", line)
    line = re.sub(r"[\s─]+", " ", line)
    return line.strip()


def run(words):
    ended = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def examples(text):
    """(command, lines shown) of each '$' line in a fenced block."""
    for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.replace("\\\n", " ").partition("\n")
            yield re.sub(r" +# .*", "", command), [s for s in shown.splitlines() if s.strip() and "…" not in s]


def block_commands(text):
    """Each command of a fenced or indented block, lines that go on joined."""
    lines, fenced = [], False
    for line in re.sub(r" *\\\n *", " ", text).splitlines():
        fenced ^= line.startswith("```")
        if fenced or line.startswith("    "):
            lines.append(line.strip())
    for line in lines:
        line = re.sub(r"^\$ ", "", line)
        if re.match("gpulab [a-z]", line):
            yield line


def check_line(line):
    command = re.sub(r" +# .*", "", line)
    if re.search(r"\S {3,}[^#\s]", line.partition(" #")[0]):
        failures.append("%s\na remark without '#'" % line)
        return
    words = shlex.split(command)
    if words[1:2] not in (["run"], ["estimate"]) or re.search(r"device=cuda|\$|gpu_ids=all|=nsys|--show|--list", command):
        return
    if words[1] == "run" and len(words) > 2:
        added = ["device=sim:rtx4070tis-2"] if "train_scaling" in words and "device=" not in command else []
        status, output = run(words + added + ["-q", "--dry-run"])
        if status != 0:
            failures.append("%s\nstatus %d: %s" % (line, status, output[-600:]))


def check_example(command, shown):
    status, output = run(shlex.split(command))
    if status != 0:
        failures.append("$ %s\nstatus %d: %s" % (command, status, output[-600:]))
        return
    printed = {shape(line) for line in output.splitlines()}
    whole = shape(" ".join(output.split()))
    for line in shown:
        if shape(line) not in printed and shape(line) not in whole:
            failures.append("$ %s\ndoesn't print: %s\nbut:\n%s" % (command, line, output[:2500]))
            return


def table_commands(text):
    for row in re.findall(r"^\|.*\|$", text, re.M):
        cell = re.split(r"(?<!\\)\|", row)[-2].replace("\\|", "|")
        yield from re.findall(r"`(gpulab [^`]*)`", cell)


def study(words):
    """A study's words on a simulated machine: the first of each study is run, of the others the plan is made."""
    name = next(w for w in words[2:] if not w.startswith("-"))
    if not any(w.startswith("experiment.runs=") for w in words):
        words = words + ["--quick"]
    if not any(w.startswith("device=") for w in words):
        words = words + ["device=sim:" + ("rtx4070tis-2" if name == "train_scaling" else "l40s-10")]
    status, output = run(words + ["-q", "--dry-run", "--json"])
    if status != 0 or name in done or len(json.loads(output)["runs"]) > MOST_RUNS:
        return status, output
    done.add(name)
    return run(words + ["-q", "--no-report"])


ADDED = {"record": ["--demo", "--duration", "1s"], "top": ["--demo"], "tune": ["--device", "cpu:0/2.0"],
         "bench": ["--device", "sim:l40s-10:0"], "devices": ["--device", "sim:l40s-10"]}


def check_table_command(command):
    words = shlex.split(command)
    verb = words[1]
    if verb == "run" and len(words) > 2 and "--show" not in words and "--list" not in words:
        status, output = study(words)
    elif verb == "exporter":
        status, output = run(["timeout", "-s", "INT", "--preserve-status", "2"] + words + ["--demo", "--listen", "0"])
    else:
        added = ADDED.get(verb, [])
        if any(w.endswith(".db") for w in words[2:3]) or "--device" in words:
            added = []
        status, output = run(words[:2] + added + words[2:])
    if status not in (0, 3):
        failures.append("`%s`\nstatus %d: %s" % (command, status, output[-600:]))


def main():
    kind, documents = sys.argv[1], sys.argv[2:]
    for document in documents:
        folder = os.path.join(os.environ["DOCS_WORK"], os.path.basename(document))
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        with open(document, encoding="utf-8") as file:
            text = file.read()
        before, begun = len(failures), os.times()
        count = 0
        if kind == "LINES":
            for line in block_commands(text):
                check_line(line)
                count += 1
        elif kind == "EXAMPLES":
            for command, shown in examples(text):
                check_example(command, shown)
                count += 1
        else:
            for command in dict.fromkeys(table_commands(text)):
                check_table_command(command)
                count += 1
        took = os.times()
        print("%s: %d commands, %d failed, %.1f s of CPU time" % (
            os.path.basename(document), count, len(failures) - before,
            took.children_user + took.children_system - begun.children_user - begun.children_system))
        if count == 0:
            failures.append("%s has no command" % document)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
