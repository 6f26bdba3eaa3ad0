"""How the memory of a task's Python processes grows, while py-spy looks at which functions run.

Nothing is loaded into the processes, and they are not stopped: their memory is read from /proc, in steps that are short
enough to tell beneath which function it grew.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import threading
import time
import zlib
from typing import Any

from corral.runtime.task_processes import command_of, lives, python_processes, read, say
from corral.runtime.task_stacks import find_program, why_not

_STEP = 0.002
"""Seconds between two looks at the memory of one process; with more processes more."""
_SLOW_STEP = 0.05
"""Seconds between two looks at the parts of its memory."""
_LEAST_CHANGE = 16
"""KiB by which memory must change to be noted."""
_RATE, _LEAST_RATE = 500, 100
"""Looks of py-spy in a second at one process, and with many at each; it does not stop them."""
_ANSWER_SECONDS = 20.0
_PIECE = 1024 * 1024
_MOST_NAMES = 40
_MAPPING = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$")
_PAGE = os.sysconf("SC_PAGE_SIZE") // 1024
_PARTS = (b"RssAnon", b"RssFile", b"RssShmem", b"VmSwap", b"VmHWM")


def watch_memory(request: dict[str, Any]) -> None:
    """Answer for each Python process of the task."""
    found = python_processes()
    pids = found[: int(request["processes"])]
    program = find_program() if found else ""
    step, rate = _STEP * max(1, len(pids)), max(_LEAST_RATE, _RATE // max(1, len(pids)))
    threads = [threading.Thread(target=_watched, args=(pid, program, step, rate, request)) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(done=True, left_out=len(found) - len(pids))


def _watched(pid: int, program: str, step: float, rate: int, request: dict[str, Any]) -> None:
    """Answer for one process: its memory as JSON, after the stacks of its threads as a Chrome trace."""
    answer: dict[str, Any] = {"process": pid, "command": command_of(pid)}
    owner = os.stat(f"/proc/{pid}").st_uid if os.path.exists(f"/proc/{pid}") else -1
    if os.geteuid() not in (0, owner):
        say(**answer, problem=f"process {pid} belongs to another user.")
        return
    seconds = float(request["seconds"])
    recorder = _Recorder(program, pid, rate, seconds) if program else None
    facts: dict[str, Any] = {"before": mappings(pid), "rate": rate, "begun": time.monotonic()}
    facts.update(_followed(pid, seconds, step))
    facts["after"] = mappings(pid)
    if not lives(pid) or not facts["parts"]:
        if recorder:
            recorder.end()
        say(**answer, problem=f"process {pid} ended meanwhile.")
        return
    pieces: list[bytes] = []
    if recorder:
        facts.update(recorder.end())
        pieces = [] if facts["unseen"] else recorder.pieces(int(request["bytes"]))
    with _sending:  # the pieces of one process come together
        for piece in pieces:
            say(trace=base64.b64encode(piece).decode(), of=pid)
        say(**answer, text=json.dumps(facts), cut=bool(recorder and recorder.cut))


_sending = threading.Lock()


def _followed(pid: int, seconds: float, step: float) -> dict[str, Any]:
    """The memory over time in milliseconds and KiB.

    `fine` has each change of private memory, with the times of the look before and of its own; `parts` has all parts.
    """
    fine: list[tuple[float, float, int]] = []
    parts: list[tuple[float, ...]] = []
    begun = now = before = time.monotonic()
    while now < begun + seconds:
        private = _private(pid)
        if private < 0:
            break
        if not fine or abs(private - fine[-1][2]) >= _LEAST_CHANGE:
            fine.append((round((before - begun) * 1000, 1), round((now - begun) * 1000, 1), private))
        if not parts or now - begun >= parts[-1][0] / 1000 + _SLOW_STEP:
            found = _parts(pid)
            if found:
                parts.append((round((now - begun) * 1000, 1), *found))
        time.sleep(step)
        before, now = now, time.monotonic()
    return {"fine": fine, "parts": parts, "seconds": round(now - begun, 3), "step": step}


def _private(pid: int) -> int:
    """KiB of memory that is of no file and not shared; -1 once the process has ended."""
    fields = read(pid, "statm").split()
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 and fields[0] != b"0" else -1


def _parts(pid: int) -> tuple[int, ...]:
    lines = dict(line.partition(b":")[::2] for line in read(pid, "status").splitlines())
    if b"RssAnon" not in lines:
        return ()
    return tuple(int(lines[name].split()[0]) if name in lines else 0 for name in _PARTS)


def mappings(pid: int) -> dict[str, int]:
    """KiB in memory by the name of the mapping ("" is anonymous), the largest; others of a kind are put together."""
    found: dict[str, int] = {}
    name = ""
    try:
        with open(f"/proc/{pid}/smaps", "rb") as file:
            for line in file:
                if line.startswith(b"Rss:"):
                    found[name] = found.get(name, 0) + int(line.split()[1])
                elif (match := _MAPPING.match(line)) is not None:
                    name = match[1].decode("utf-8", "replace")[:300]
    except OSError:  # it has ended, or may not be read
        return {}
    largest = sorted(found, key=lambda each: -found[each])
    kept = {each: found[each] for each in largest[:_MOST_NAMES]}
    kept["(others)"] = sum(found[each] for each in largest[_MOST_NAMES:])
    return kept


class _Recorder:
    """py-spy, which records when the stacks of a process change."""

    def __init__(self, program: str, pid: int, rate: int, seconds: float) -> None:
        self._pid, self._seconds, self.cut = pid, seconds, False
        self._output = os.memfd_create("output")
        self._lines: list[tuple[float, str]] = []
        words = [program, "record", "--threads", "--format", "chrometrace", "--rate", str(rate), "--nonblocking"]
        words += ["--duration", str(round(seconds) + 1), "--pid", str(pid)]
        words += ["--output", f"/proc/{os.getpid()}/fd/{self._output}"]
        begun = threading.Event()
        self._problem = ""
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            self._problem = f"py-spy could not be run: {error.strerror}."
            return
        self._reader = threading.Thread(target=self._listen, args=(begun,), daemon=True)
        self._reader.start()
        begun.wait(_ANSWER_SECONDS)

    def _listen(self, begun: threading.Event) -> None:
        """Note what py-spy prints and when, as it says so when it begins and when it has written."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if len(self._lines) < 100:
                self._lines.append((time.monotonic(), line.decode("utf-8", "replace")[:300]))
            if b"Sampling process" in line:
                begun.set()
        begun.set()

    def end(self) -> dict[str, Any]:
        """Wait for py-spy: when it began and had written, or why there are no stacks (`unseen`)."""
        if self._problem:
            return {"unseen": self._problem}
        try:
            code = self._process.wait(self._seconds + _ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return {"unseen": f"process {self._pid} did not answer py-spy."}
        self._reader.join(_ANSWER_SECONDS)
        if code:
            return {"unseen": why_not(self._pid, "".join(text for _, text in self._lines))}
        said = {word: at for at, text in self._lines for word in ("Sampling", "Wrote") if word in text}
        return {"sampling": said.get("Sampling", 0.0), "wrote": said.get("Wrote", 0.0), "unseen": ""}

    def pieces(self, most: int) -> list[bytes]:
        """The trace compressed, up to `most` bytes of it, cut after an event."""
        packed = zlib.compressobj(1, wbits=31)
        size = os.fstat(self._output).st_size
        made = []
        for at in range(0, min(size, most), _PIECE):
            piece = os.pread(self._output, min(_PIECE, most - at), at)
            if size > most and at + len(piece) >= most:
                piece, self.cut = piece[: piece.rfind(b"},{") + 1] + b"]", True
            made.append(packed.compress(piece))
        os.close(self._output)
        return [*(piece for piece in made if piece), packed.flush()]
