"""Kill the server's processes at random moments and check that no job is lost or run twice.

Each job locks a file of its own and one for every device that it was given, prints numbered lines and ends with a known
exit code. Some jobs remove their own folder in their first attempt, with the engine's record of it; they must be ended
and started again. Some leave a process behind that nothing identifies as theirs. It inherits the locks, so they are
held as long as any process of the attempt lives. Meanwhile the supervisor, front, control or all of them are killed
(SIGKILL). Afterwards every acknowledged job must have ended with its own code, have printed every line once, and never
have run twice at once. No device may have been held by two jobs at once, and no process may be left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from corral import supervisor

LINES: Final = 20
_TASK: Final = """
trap '' HUP
hold() {
  eval "exec $1>>'$CRASH_FOLDER/$2'"
  flock -n "$1" || echo "$CORRAL_ATTEMPT:$2" >> "$CRASH_FOLDER/$3"
}
hold 9 "lock-$CORRAL_JOB_ID" doubled
mine= number=3
for index in $(echo "$CORRAL_DEVICES" | tr , ' '); do
  hold $number "device-${CORRAL_NODE##*/}-$index" devices-doubled
  mine="$mine $index" number=$((number+1))
done
[ -z "$mine" ] || echo "$mine" >> "$CRASH_FOLDER/devices-taken"
echo "$CORRAL_ATTEMPT" >> "$CRASH_FOLDER/runs"
%(first)s
i=0
while [ $i -lt %(lines)d ]; do echo "line $i"; i=$((i+1)); sleep %(pause)s; done
exit %(code)d
"""
_PLAIN: Final = ":"
_REMOVES: Final = """
case $CORRAL_ATTEMPT in *.0) echo "$CORRAL_ATTEMPT" >> "$CRASH_FOLDER/removed"; rm -rf "${PWD%%/work}"; sleep 100000;; esac
"""
_LEAVES: Final = 'env -i setsid sleep %(left)s & echo "$CORRAL_ATTEMPT" >> "$CRASH_FOLDER/left"'
_KINDS: Final = (_PLAIN,) * 8 + (_REMOVES, _LEAVES)
_CLUSTER: Final = Path(__file__).parent.parent / "examples" / "cluster.yaml"
"""16 described devices, few enough that jobs sometimes wait for one that another job has just released."""
Runner = Callable[[Sequence[str], Mapping[str, str]], subprocess.CompletedProcess[str]]
_CORRAL: Final = (sys.executable, "-m", "corral.cli.main")
_READY_SECONDS: Final = 30.0
_END_SECONDS: Final = 120.0


@dataclass
class Tally:
    """The result of a run of kills; all lists are empty when nothing went wrong."""

    kills: int = 0
    jobs: int = 0
    lost: list[str] = field(default_factory=list)
    wrong_code: list[str] = field(default_factory=list)
    wrong_log: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    devices_doubled: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    """Processes that jobs left, and that are alive after the jobs' end."""
    devices_taken: int = 0
    """How often a job held devices; zero would make `devices_doubled` meaningless."""
    removed: int = 0
    """How often a job removed its folder."""
    left: int = 0
    """How often a job left a process behind."""
    seconds: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether nothing was lost, changed or run twice."""
        broken = self.lost or self.wrong_code or self.wrong_log
        return not (broken or self.doubled or self.devices_doubled or self.left_behind)


def _started(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_CORRAL, *words], env=environment, capture_output=True, text=True, timeout=_READY_SECONDS, check=False
    )


class Victim:
    """A real server that is killed and started again on the same data folder."""

    def __init__(
        self, folder: Path, *options: str, settings: Mapping[str, str] | None = None, corral: Runner = _started
    ) -> None:
        """`options` are those of `corral up` beside the data folder; by default 16 described devices and any port.

        `corral` runs the command line with an environment; by default as a program of its own.
        """
        self._corral = corral
        self._options = options or ("--cluster", str(_CLUSTER), "--port", "0")
        self._environment = {**os.environ, **(settings or {})}
        self.data = folder / "data"
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
        self.token = ""
        self.url = ""

    def up(self) -> None:
        """Start the server unless its supervisor runs, and sign in the first time."""
        if supervisor.running(self.data) is None:
            words = ["up", "--detach", "--data", str(self.data), *self._options, "-o", "json"]
            done = self._corral(words, self._environment)
            if done.returncode != 0:
                raise RuntimeError(f"the server did not start: {done.stderr or done.stdout}")
            ready = json.loads(done.stdout)
            self.url = ready["url"]
            if not self.token:
                self.token = self.call("POST", "/api/v3/login", {"link": ready["link"].partition("#link=")[2]})["token"]

    def call(self, method: str, path: str, body: object = None, key: str = "") -> Any:
        """One REST call; raises OSError or HTTPError as urllib does."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if key:
            request.add_header("Idempotency-Key", key)
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def insist(self, method: str, path: str, body: object = None, key: str = "") -> Any:
        """Repeat a call until the server answers it; raises only errors that concern the call itself."""
        end = time.monotonic() + _END_SECONDS
        while True:
            try:
                return self.call(method, path, body, key)
            except urllib.error.HTTPError as error:
                if error.code not in (502, 503) or time.monotonic() > end:
                    raise
            except OSError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.05)
            self.up()

    def processes(self) -> dict[str, int]:
        """The present pids of supervisor, front and control."""
        record = supervisor.running(self.data)
        if record is None:
            return {}
        return {"supervisor": int(record["pid"])} | supervisor.children_of(int(record["pid"]))

    def kill(self, chosen: str) -> None:
        """SIGKILL one of the three, or all."""
        found = self.processes()
        for name, pid in found.items():
            if chosen in (name, "all"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def task_script(pause: str, code: int, first: str = _PLAIN) -> str:
    """The script of a job's only task: lock itself and its devices, run `first`, print, and exit with `code`."""
    return _TASK % {"lines": LINES, "pause": pause, "code": code, "first": first % {"left": _left()}}


def _left() -> str:
    """The unusual sleep time of leftover processes, by which they are found."""
    return str(1_000_000 + os.getpid())


def submit(victim: Victim, number: int, draw: random.Random) -> tuple[str, int]:
    """Submit one job that writes its lines and exits with its own code; returns its id and that code."""
    code, devices = draw.choice((0, 0, 0, 3, 7)), draw.choice((0, 0, 1, 1, 2))
    script = task_script(draw.choice(("0.005", "0.02", "0.05")), code, draw.choice(_KINDS))
    document = {
        "name": f"crash-{number}",
        "framework": "shell",
        "roles": {
            "worker": {
                "replicas": 1,
                "resources": {"cpu": "0", "memory": "0", "devices": devices},
                "command": ["sh", "-c", script],
                "env": {"CRASH_FOLDER": str(victim.shared)},
            }
        },
    }
    made = victim.insist("POST", "/api/v3/jobs", document, key=f"crash-{number}")
    return made["id"], code


def run(folder: Path, kills: int, seed: int, in_flight: int = 20, corral: Runner = _started) -> Tally:
    """Kill `kills` times with `in_flight` jobs running, then count; `corral` runs the command line."""
    draw = random.Random(seed)
    victim = Victim(folder, corral=corral)
    begun = time.monotonic()
    tally = Tally()
    expected: dict[str, int] = {}
    running: deque[str] = deque()
    try:
        victim.up()
        for _ in range(kills):
            while len(running) < in_flight:
                job, code = submit(victim, len(expected), draw)
                expected[job] = code
                running.append(job)
            time.sleep(draw.random() * 0.3)
            victim.kill(draw.choice(("supervisor", "front", "control", "all")))
            tally.kills += 1
            time.sleep(draw.random() * 0.1)
            victim.up()
            for job in list(running)[: in_flight // 2]:
                if victim.insist("GET", f"/api/v3/jobs/{job}")["state"] in ("succeeded", "failed", "stopped"):
                    running.remove(job)
        count(victim, expected, tally)
    finally:
        supervisor.stop(victim.data)
    tally.jobs, tally.seconds = len(expected), time.monotonic() - begun
    return tally


def measure() -> dict[str, float]:
    """A full run with a thousand kills; `lost` includes wrong exit codes and incomplete logs."""
    with tempfile.TemporaryDirectory(prefix="corral-crash-") as folder:
        tally = run(Path(folder), kills=1000, seed=1)
    seen = {"lost": tally.lost, "code": tally.wrong_code, "log": tally.wrong_log, "device": tally.devices_doubled}
    seen |= {"doubled": tally.doubled, "left": tally.left_behind}
    for kind, found in seen.items():
        for each in found:
            print(f"{kind}: {each}", file=sys.stderr)
    return {
        "lost": float(len(tally.lost) + len(tally.wrong_code) + len(tally.wrong_log)),
        "doubled": float(len(tally.doubled)),
        "devices": float(len(tally.devices_doubled)),
        "left-behind": float(len(tally.left_behind)),
        "folders removed": float(tally.removed),
        "processes left": float(tally.left),
        "kills": float(tally.kills),
        "jobs": float(tally.jobs),
    }


def count(victim: Victim, expected: dict[str, int], tally: Tally) -> None:
    """Compare every job's end and log with what is expected, and add what the tasks noted themselves."""
    for job, code in expected.items():
        found = _ended(victim, job)
        if found is None:
            tally.lost.append(job)
            continue
        if (found["exit"] or {}).get("code") != code:
            tally.wrong_code.append(f"{job}: {found['exit']} instead of {code}")
        wrong = _wrong(_log(victim, job))
        if wrong:
            tally.wrong_log.append(f"{job}: {wrong}")
    tally.doubled = _noted(victim.shared / "doubled")
    tally.devices_doubled = _noted(victim.shared / "devices-doubled")
    tally.left_behind = _sleeping(_left())
    tally.devices_taken = len(_noted(victim.shared / "devices-taken"))
    tally.removed, tally.left = (len(_noted(victim.shared / name)) for name in ("removed", "left"))


def _wrong(log: list[str]) -> str:
    """The lines that a job's log lacks, repeats or has out of order; "" when it is correct."""
    expected = [f"line {number}" for number in range(LINES)]
    if log == expected:
        return ""
    found = Counter(log)
    strange, missing = found - Counter(expected), Counter(expected) - found
    return f"{len(log)} lines, too many: {sorted(strange.elements())[:5]}, missing: {sorted(missing.elements())[:5]}"


def _sleeping(seconds: str) -> list[str]:
    """The pids of the processes that sleep for `seconds`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                found.append(process.name)
    return found


def _noted(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _ended(victim: Victim, job: str) -> dict[str, Any] | None:
    end = time.monotonic() + _END_SECONDS
    while time.monotonic() < end:
        try:
            found: dict[str, Any] = victim.insist("GET", f"/api/v3/jobs/{job}")
        except urllib.error.HTTPError:
            return None
        if found["state"] in ("succeeded", "failed", "stopped"):
            return found
        time.sleep(0.05)
    return None


def _log(victim: Victim, job: str) -> list[str]:
    path = f"/api/v3/jobs/{job}/tasks/worker/0/logs?attempt=latest"
    request = urllib.request.Request(victim.url + path)
    request.add_header("Authorization", f"Bearer {victim.token}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        text: str = answer.read().decode()
    return text.splitlines()
