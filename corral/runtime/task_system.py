"""What the machine gives a task while it runs: processors, memory, page cache, disk, network and devices in fine steps.

All is read from /proc, from the task's control group and from nvidia-smi. Counters are told as they are; the server makes
figures of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from typing import Any

from corral.runtime.task_processes import ancestors, lives, read, say, task_processes

_STEP = 0.1
"""Seconds between two looks at all figures."""
_LOOK = 0.02
"""Seconds between two looks at the states of threads."""
_SCAN = 1.0
"""Seconds between two searches for processes that are new."""
_MOST_THREADS = 512
_MOST_PROCESSES = 64
_MOST_COST = 0.05
"""The part of one processor that looking may take; the steps are longer where it would be more."""
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_GROUPS = "/sys/fs/cgroup"
_QUERY = "index,utilization.gpu,memory.used,memory.total"
_MOST_DEVICE_LINES = 20_000


def watch_system(request: dict[str, Any]) -> None:
    """Answer for the task: a list of looks, each a table of counters."""
    mine = set(ancestors())
    pids = sorted(task_processes() - mine)[:_MOST_PROCESSES]
    if not any(lives(pid) for pid in pids):
        say(process=0, problem="no process runs in this task.")
        say(done=True, left_out=0)
        return
    watch = _Watch(pids)
    devices = _Devices(pids[0], float(request["seconds"]))
    looks = watch.looks(float(request["seconds"]), mine)
    facts = {
        "looks": looks,
        "threads": watch.threads_seen(),
        "processors": len(os.sched_getaffinity(pids[0])) if lives(pids[0]) else os.cpu_count() or 1,
        "limits": limits(pids[0]) if lives(pids[0]) else {},
        "devices": devices.end(),
        "hit": hit_seconds(),
    }
    say(process=0, text=json.dumps(facts))
    say(done=True, left_out=0)


class _Watch:
    """The counters of a task, added up over processes and threads that come and go."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._last: dict[Any, tuple[float, ...]] = {}
        self._sums: dict[str, float] = {}
        self._threads: dict[int, dict[str, float]] = {}
        self._seen = 0

    def looks(self, seconds: float, mine: set[int]) -> list[dict[str, float]]:
        """Look for so many seconds; each look has the time and all counters since the first."""
        begun = now = time.monotonic()
        found: list[dict[str, float]] = []
        due, scanned = begun, begun
        while now < begun + seconds:
            busy = time.thread_time()
            self._states()
            if now >= due:
                if now >= scanned + _SCAN:  # all processes of the machine are looked at for it
                    self._pids, scanned = sorted(task_processes() - mine)[:_MOST_PROCESSES] or self._pids, now
                    busy = time.thread_time()
                found.append({"at": round(time.monotonic() - begun, 4), **self._counters()})
                due = now + max(_STEP, (time.thread_time() - busy) / _MOST_COST)
            time.sleep(max(_LOOK, (time.thread_time() - busy) / _MOST_COST))
            now = time.monotonic()
        self._states()
        found.append({"at": round(time.monotonic() - begun, 4), **self._counters()})
        return found

    def threads_seen(self) -> list[dict[str, float]]:
        """The threads that wanted most: seconds that they ran and waited for a processor, parts of looks on the disk."""
        for each in self._threads.values():
            each["kernel"] = max(0.0, each.pop("last", 0.0) - each.pop("first", 0.0))
        listed = sorted(self._threads.values(), key=lambda each: -(each["ran"] + each["waited"] + each["disk"]))[:32]
        looks = max(1, self._seen)
        return [{**each, "disk": each["disk"] / looks, "ready": each["ready"] / looks} for each in listed]

    def _states(self) -> None:
        """Count for each thread whether it runs or waits for the disk."""
        self._seen += 1
        for pid, thread in self._tasks():
            fields = read(pid, f"task/{thread}/stat").rpartition(b")")[2].split(None, 13)
            if len(fields) < 14:
                continue
            known = self._of(thread)
            known["last"] = int(fields[12]) / _TICK
            known.setdefault("first", known["last"])
            if fields[0] in (b"R", b"D"):
                known["disk" if fields[0] == b"D" else "ready"] += 1

    def _tasks(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for pid in self._pids:
            try:
                found += [(pid, int(name)) for name in os.listdir(f"/proc/{pid}/task")]
            except OSError:  # it has ended
                continue
        return found[:_MOST_THREADS]

    def _of(self, thread: int) -> dict[str, float]:
        return self._threads.setdefault(thread, {"ran": 0.0, "waited": 0.0, "disk": 0.0, "ready": 0.0})

    def _counters(self) -> dict[str, float]:
        resident = threads = 0.0
        for pid in self._pids:
            fields = read(pid, "stat").rpartition(b")")[2].split()
            if len(fields) < 22:
                continue
            resident += int(fields[21]) * _PAGE
            self._add(("stat", pid), ("minor", "major", "user", "system"), [int(fields[at]) for at in (7, 9, 11, 12)])
            self._add(("io", pid), ("rchar", "wchar", "read", "written"), _io(pid))
        for pid, thread in self._tasks():
            threads += 1
            ran = [int(each) / 1e9 for each in read(pid, f"task/{thread}/schedstat").split()[:2]]
            if len(ran) == 2:
                more = self._add(("run", thread), ("ran", "waited"), ran)
                for name, value in zip(("ran", "waited"), more):  # noqa: B905 - Python 3.8 has no strict
                    self._of(thread)[name] += value
            self._add(("switches", thread), ("voluntary", "involuntary"), _switches(pid, thread))
        self._add("group", *_grouped(self._pids[0]))
        self._add("net", ("received", "sent"), _network(self._pids[0]))
        self._add("pressure", ("stalled_cpu", "stalled_io", "stalled_memory"), _pressure())
        sums = {name: round(value, 4) for name, value in self._sums.items()}
        user, system = sums.pop("user", 0.0) / _TICK, sums.pop("system", 0.0) / _TICK
        return {
            **sums,
            "user": user,
            "system": system,
            "resident": resident,
            "threads": threads,
            **_sizes(self._pids[0]),
        }

    def _add(self, of: Any, names: tuple[str, ...], values: list[Any]) -> list[float]:
        """Add what counters rose by since the last look; the first look is where they begin."""
        if not values:
            return []
        before = self._last.get(of, tuple(values))
        more = [max(0.0, value - last) for value, last in zip(values, before)]  # noqa: B905 - Python 3.8
        for name, value in zip(names, more):  # noqa: B905 - Python 3.8
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._last[of] = tuple(values)
        return more


_HIT_BYTES = 1024 * 1024
_HIT_READ = 64 * 1024


def hit_seconds() -> float:
    """Processor seconds in which this kernel gives a byte that the page cache holds: of the quickest of three tries."""
    try:
        handle = os.memfd_create("corral-hit")
    except (AttributeError, OSError):  # this Python or kernel has none
        return 0.0
    try:
        os.write(handle, bytes(_HIT_BYTES))
        tries = []
        for _ in range(3):
            begun = time.thread_time()
            for at in range(0, _HIT_BYTES, _HIT_READ):
                os.pread(handle, _HIT_READ, at)
            tries.append(time.thread_time() - begun)
        return min(tries) / _HIT_BYTES
    except OSError:
        return 0.0
    finally:
        os.close(handle)


def _io(pid: int) -> list[int]:
    lines = dict(line.partition(b": ")[::2] for line in read(pid, "io").splitlines())
    names = (b"rchar", b"wchar", b"read_bytes", b"write_bytes")
    return [int(lines[name]) for name in names] if all(name in lines for name in names) else []


def _switches(pid: int, thread: int) -> list[int]:
    lines = dict(line.partition(b":\t")[::2] for line in read(pid, f"task/{thread}/status").splitlines())
    names = (b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")
    return [int(lines[name]) for name in names] if all(name in lines for name in names) else []


def _network(pid: int) -> list[int]:
    """Bytes that the task's network namespace received and sent, without its loopback device."""
    received = sent = 0
    for line in read(pid, "net/dev").decode("utf-8", "replace").splitlines()[2:]:
        name, _, figures = line.partition(":")
        fields = figures.split()
        if name.strip() != "lo" and len(fields) >= 9:
            received += int(fields[0])
            sent += int(fields[8])
    return [received, sent]


def _pressure() -> list[float]:
    """Seconds in which something on the machine waited for a processor, the disk and memory."""
    found = []
    for name in ("cpu", "io", "memory"):
        words = _text(f"/proc/pressure/{name}").partition("\n")[0].split()
        total = [word[6:] for word in words if word.startswith("total=")]
        if not total:
            return []
        found.append(int(total[0]) / 1e6)
    return found


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(64 * 1024).decode("utf-8", "replace")
    except OSError:
        return ""


def _group(pid: int, controller: str) -> tuple[str, bool]:
    """The folder of a process's control group, and whether it is of version 2; a container sees its own at the top."""
    for line in read(pid, "cgroup").decode("utf-8", "replace").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and os.path.exists(f"{_GROUPS}/cgroup.controllers"):
            folder = f"{_GROUPS}{path}"
            return (folder if os.path.isdir(folder) else _GROUPS), True
        if controller in names.split(","):
            for mount in (names, controller):
                if os.path.isdir(f"{_GROUPS}/{mount}"):
                    folder = f"{_GROUPS}/{mount}{path}"
                    return (folder if os.path.isdir(folder) else f"{_GROUPS}/{mount}"), False
    return "", False


def _table(folder: str, name: str) -> dict[str, int]:
    words = [line.split() for line in _text(f"{folder}/{name}").splitlines()]
    return {each[0]: int(each[1]) for each in words if len(each) == 2 and each[1].isdigit()}


def _grouped(pid: int) -> tuple[tuple[str, ...], list[float]]:
    """Counters of the control group: periods, those in which it was throttled, seconds of it, pages read again."""
    folder, second = _group(pid, "cpu")
    found = _table(folder, "cpu.stat") if folder else {}
    seconds = found.get("throttled_usec", 0) / 1e6 if second else found.get("throttled_time", 0) / 1e9
    return ("periods", "throttled", "throttled_seconds"), [
        found.get("nr_periods", 0), found.get("nr_throttled", 0), seconds,
    ]  # fmt: skip


def _sizes(pid: int) -> dict[str, float]:
    """The memory of the control group in bytes, and the page cache in it; not those of the group of the whole machine."""
    folder, second = _group(pid, "memory")
    # Of version 1 the topmost group alone has this file; that of version 2 has no sizes.
    if not second and os.path.exists(f"{folder}/release_agent"):
        return {}
    used = _text(f"{folder}/{'memory.current' if second else 'memory.usage_in_bytes'}").strip()
    cached = _table(folder, "memory.stat").get("file" if second else "cache")
    return {} if not used.isdigit() or cached is None else {"group": int(used), "cached": cached}


def limits(pid: int) -> dict[str, float]:
    """The processors and bytes of memory that the control group may use, where it has limits."""
    found: dict[str, float] = {}
    folder, second = _group(pid, "cpu")
    words = (
        _text(f"{folder}/cpu.max").split()
        if second
        else [_text(f"{folder}/cpu.cfs_quota_us").strip(), _text(f"{folder}/cpu.cfs_period_us").strip()]
    )
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
        found["processors"] = int(words[0]) / int(words[1])
    folder, second = _group(pid, "memory")
    most = _text(f"{folder}/{'memory.max' if second else 'memory.limit_in_bytes'}").strip()
    if most.isdigit() and int(most) < 1 << 60:
        found["memory"] = int(most)
    return found


def named_devices(pid: int) -> str:
    """The task's devices as nvidia-smi takes them; "" for all. Ids are the same within a container, numbers are not."""
    pairs = (each.partition(b"=") for each in read(pid, "environ").split(b"\0"))
    known = {name: value for name, _, value in pairs}
    ids, numbers = known.get(b"NVIDIA_VISIBLE_DEVICES", b""), known.get(b"CUDA_VISIBLE_DEVICES", b"")
    named = ids if ids.startswith(b"GPU-") else numbers
    return "" if b"MIG" in named else os.fsdecode(named)


class _Devices:
    """nvidia-smi, which prints the use of the task's devices five times a second, where there is one."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._lines: list[tuple[float, str]] = []
        self._begun = time.monotonic()
        self._process = None
        program = shutil.which("nvidia-smi")
        if not program:
            return
        words = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "-lms", "200"]
        if named := named_devices(pid):
            words += ["-i", named]
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            return
        self._reader = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._reader.start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if len(self._lines) < _MOST_DEVICE_LINES:
                self._lines.append((time.monotonic() - self._begun, line[:200].decode("utf-8", "replace")))

    def end(self) -> list[list[float]]:
        """Each look as time, device, use in hundredths, and MiB in use and in all; a figure that is not offered is -1."""
        if self._process is None:
            return []
        self._process.kill()
        self._process.wait()
        self._reader.join(5.0)
        found = []
        for at, line in self._lines:
            fields = [each.strip() for each in line.split(",")]
            if len(fields) == 4 and fields[0].isdigit():
                found.append([round(at, 3), *(float(each) if each.isdigit() else -1.0 for each in fields)])
        return found
