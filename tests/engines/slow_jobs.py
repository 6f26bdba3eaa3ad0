"""Ask why a gang is slow, and why it hangs, on whatever engine runs it, and measure the nodes that it leaves."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests import warm
from tests.endtoend.platform import Platform
from tests.waiting import pause

QUEUE: Final = "looked-at"
"""A queue whose silent jobs are looked at soon."""
MEASURED: Final = {
    "process-launch": ("{repeat: 1}", "python_time"),
    "cpu-stream": ("{size_mib: 1, repeat: 1}", "copy_bw"),
    "disk-benchmark": ("{size_mib: 1, seconds: 1}", "seq_write_bw"),
    "tcp-bw": ("{size_mib: 1}", "pair_bw"),
}
"""Benchmarks with parameters of about a second, and a figure of each."""
_PATIENCE: Final = 240.0
_PROGRAM: Final = """\
import os, sys, threading, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
def load_batch():
    batch = b"x" * 2**25  # so much is never taken from the heap, which may be large enough already
    time.sleep(0.02)
def load_shard():
    threading.Event().wait()
def train_step():
    dist.all_reduce(torch.ones(8))
for step in range(10**6):
    load_batch()
    if dist.get_rank() == 1 and os.path.exists(sys.argv[1]): load_shard()
    train_step()
    if step % 20 == 19: print("step", step + 1, flush=True)
"""


def gang(name: str, python: Path, hang: str, **role: Any) -> dict[str, Any]:
    """Two ranks of PyTorch and gloo, which measure their network first; the second stops when the file `hang` is there."""
    command = [str(python), "-c", _PROGRAM, hang]
    return {
        "name": name,
        "framework": "pytorch",
        "queue": QUEUE,
        "profile": True,
        "preflight": {"checks": ["network", "platform"], "timeoutSeconds": 300, "required": True},
        "roles": {"worker": {"replicas": 2, "command": command, **role}},
    }


def looked_into(
    platform: Platform,
    document: Mapping[str, Any],
    hang: Path,
    suite: Path,
    nodes: Sequence[str],
    benchmarks: Sequence[str],
    *more: str,
) -> dict[str, dict[str, float]]:
    """Run the gang and ask everything of it, have it hang at the file `hang`, and measure the nodes that it leaves.

    `benchmarks` are names in `MEASURED`, and `more` options of the run. Returns the greatest figure of each curve that the
    profile of the kind system has of a task, by the task and the curve's name.
    """
    name = str(document["name"])
    queue = suite.with_name("queue.yaml")
    queue.write_text(f"kind: Queue\nname: {QUEUE}\nhangs: {{atLeast: 5s, atMost: 30s}}\n")
    platform.corral("apply", str(queue), "-m", "look at silent jobs soon")
    try:
        job = platform.submit(document)
        for task in ("worker-0", "worker-1"):
            platform.printed(job, task, r"step 20\b")
        platform.all_run(job)
        _has_measured_its_network(platform, job["id"])
        _is_traced(platform, name)
        figures = _is_looked_at(platform, name, suite.parent)
        hang.touch()
        _stands(platform, name)
        _hangs(platform, job["id"])
        platform.client.stop(job["id"])
        platform.ended(job)
    finally:
        platform.clear()
        platform.corral("delete", f"queue/{QUEUE}")
    _are_measured(platform, suite, nodes, benchmarks, *more)
    return figures


def _has_measured_its_network(platform: Platform, job: str) -> None:
    found = platform.client.job_preflight(job)
    network, machines = found["network"], found["platform"]
    assert network is not None and machines is not None, found
    ways = {(way["source"], way["target"]) for way in network["ways"] if way["bytesPerSecond"] > 0}
    assert ways == {("worker-0", "worker-1"), ("worker-1", "worker-0")}
    assert all(each["facts"]["processors"] > 0 for each in machines["machines"])


def _is_traced(platform: Platform, name: str) -> None:
    begun = time.monotonic()
    while True:  # on a busy machine a process may not get to write its trace in time, or make no step in it; ask again
        done = platform.run("profile", name, "--all", "--what", "torch", "--duration", "1s", "-o", "json")
        facts = json.loads(done.stdout)
        whole = not facts["problems"] and all(each["communication"] > 0 for each in facts["reports"])
        if whole or time.monotonic() - begun > _PATIENCE:
            break
    assert whole, f"{facts}\n{done.stderr}{platform.log(name)}"
    assert sorted(each["rank"].split()[0] for each in facts["reports"]) == ["worker-0", "worker-1"]
    for each in facts["reports"]:
        assert any("all_reduce" in one["name"] for one in each["collectives"])


def _is_looked_at(platform: Platform, name: str, folder: Path) -> dict[str, dict[str, float]]:
    """Samples and growing memory are of the function that loads batches; the greatest figures of the kind system."""
    samples = _profiled(platform, name, "python", _loads)
    assert samples["frames"][0]["samples"] == samples["samples"]
    platform.corral("profile", "download", samples["id"], "--to", str(folder))
    assert "load_batch" in (folder / f"{samples['id']}-flame-graph.svg").read_text()
    _profiled(platform, name, "memory", lambda facts: _loads(facts) and all(one["grown"] for one in facts["memory"]))
    system = _profiled(platform, name, "system", lambda facts: all(map(_runs, _figures(facts).values())))
    assert all(most["memory of the processes"] > 16 for most in _figures(system).values()), _figures(system)
    return _figures(system)


def _loads(facts: Mapping[str, Any]) -> bool:
    return any(each["name"].startswith("load_batch (") for each in facts["functions"])


def _runs(most: Mapping[str, float]) -> bool:
    return most.get("processors in use", 0.0) > 0


def _figures(facts: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {each["rank"]: {curve["name"]: curve["most"] for curve in each["curves"]} for each in facts["curves"]}


def _profiled(platform: Platform, name: str, what: str, shows: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """A profile of both ranks at the same time, of one second; taken again while it shows too little.

    On a busy machine a rank may not run in a second.
    """
    begun = time.monotonic()
    while True:
        done = platform.run("profile", name, "--all", "--what", what, "--duration", "1s", "-o", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        facts: dict[str, Any] = json.loads(done.stdout)
        assert facts["problems"] == [], f"{done.stderr}{platform.log(name)}"
        assert sorted(each.split()[0] for each in facts["ranks"]) == ["worker-0", "worker-1"], facts["ranks"]
        if shows(facts):
            return facts
        assert time.monotonic() - begun < _PATIENCE, facts


def _stands(platform: Platform, name: str) -> None:
    """The stacks tell where each rank is, once the second one has come to where it stops."""
    begun = time.monotonic()
    while "load_shard (" not in (told := platform.run("profile", name, "--what", "stacks").stdout):
        assert time.monotonic() - begun < _PATIENCE, told
        time.sleep(pause(begun, most=1.0))
    odd = next(part for part in told.split("\n\n") if "load_shard (" in part)
    assert odd.lstrip().startswith("worker-1 process ") and "worker-0" not in odd


def _hangs(platform: Platform, job: str) -> None:
    """The odd rank is named, by its flight recorder or its stacks, and the bundle has the stacks of both."""
    begun = time.monotonic()
    found: Mapping[str, Any] | None = None
    while found is None:  # on a busy machine it may have been silent for long before, and nobody was odd then
        assert time.monotonic() - begun < _PATIENCE, f"{platform.client.job_hangs(job)}\n{platform.log(job)}"
        time.sleep(pause(begun, most=1.0))
        items = platform.client.job_hangs(job)["items"]
        found = next((each for each in items if each["odd"] == ["worker-1"] and "load_shard" in each["place"]), None)
    assert found["collective"] == "all_reduce", found
    assert found["place"].startswith("load_shard ("), found
    assert found["why"].startswith("worker-1 ") and "all_reduce" in found["why"], found
    packed = b"".join(platform.client.hang_bundle(job, found["bundle"]))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    stacks = {name.split("-")[1] for name in files if name.endswith(".stacks-2.json")}
    assert stacks == {"0", "1"}, sorted(files)
    assert b"step 20\n" in files["worker-1.all.log"]
    assert {"summary.json", "figures.json"} <= set(files)


def _are_measured(platform: Platform, suite: Path, nodes: Sequence[str], benchmarks: Sequence[str], *more: str) -> None:
    """The nodes are measured with a suite of these benchmarks."""
    listed = "".join(f"    {name}: {{timeout: 200, parameters: {MEASURED[name][0]}}}\n" for name in benchmarks)
    suite.write_text(f"superbench:\n  benchmarks:\n{listed}")
    results = suite.with_suffix(".jsonl")
    asked = ("--suite", str(suite), "--nodes", ",".join(nodes), "--results", str(results), "--file-only", *more)
    done = warm.corral(("benchmark", "run", *asked), env=platform.env, seconds=400)
    assert done.returncode == 0, done.stderr
    measured = {line["node"]: line for line in map(json.loads, results.read_text().splitlines())}
    assert sorted(measured) == sorted(nodes)
    for line in measured.values():
        for name in benchmarks:
            assert line[f"{name}/return_code"] == 0 and line[f"{name}/{MEASURED[name][1]}:0"] > 0, line
