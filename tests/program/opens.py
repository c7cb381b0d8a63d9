"""Runs a command and prints how often it, or any of its children, opened a file.

    opens.py FILE COMMAND...

The kernel counts (inotify): nothing is traced, preloaded or compiled in. Reads are watched as well,
since the kernel joins two events of one kind that follow each other.
"""
import ctypes
import os
import select
import struct
import subprocess
import sys

IN_ACCESS, IN_CLOSE, IN_OPEN, IN_OVERFLOW = 0x1, 0x18, 0x20, 0x4000
EVENT = struct.Struct("iIII")

libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
if watch < 0 or libc.inotify_add_watch(watch, os.fsencode(sys.argv[1]),
                                       IN_ACCESS | IN_CLOSE | IN_OPEN) < 0:
    sys.exit("%s can't be watched: %s" % (sys.argv[1], os.strerror(ctypes.get_errno())))


def count_opens():
    count = 0
    while select.select([watch], [], [], 0)[0]:
        events = os.read(watch, 65536)
        while events:
            _, mask, _, length = EVENT.unpack_from(events)
            events = events[EVENT.size + length:]
            if mask & IN_OVERFLOW:
                sys.exit("too many events to count")
            count += bool(mask & IN_OPEN)
    return count


opens = 0
with open(os.devnull) as nothing, open("opens.err", "w") as messages:
    child = subprocess.Popen(sys.argv[2:], stdin=nothing, stdout=subprocess.DEVNULL,
                             stderr=messages)
    while child.poll() is None:
        select.select([watch], [], [], 0.01)
        opens += count_opens()
opens += count_opens()
if child.returncode not in (0, 1):
    sys.exit("status %d: %s" % (child.returncode, open("opens.err").read()))
print(opens)
