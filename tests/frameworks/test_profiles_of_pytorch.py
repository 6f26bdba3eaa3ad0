"""`corral profile` on real PyTorch and gloo jobs: a planted cause is the first advice, and is not told of healthy twins.
Jobs of JAX and TensorFlow are asked for traces by the profiler servers that they opened.

Whether twins get no advice at all, and whether following it gains what it estimates, is measured on a quiet machine by
`python -m bench planted-causes`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.planted_jobs import CAUSES, STEP, Cause
from tests import warm
from tests.frameworks.environments import WITHOUT_COMPILER, environment
from tests.frameworks.platform import Platform
from tests.reserved import free_port

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

OF_THE_MACHINE = frozenset({"run-queue", "stalls"})
"""Advice that is true of any job here while other tests want the same processors."""
TRIES = 6
DURATION = {"torch": "3s", "system": "2s"}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("planted"))
    made.up()
    yield made
    made.down()


def running(platform: Platform, cause: Cause) -> tuple[str, Path]:
    """A job with a cause, once it has made some steps: its name, and the file that makes it its healthy twin."""
    turn = platform.folder / f"{cause.subject}-healthy"
    command = [
        str(environment("pytorch") / "python"),
        "-c",
        cause.program,
        str(turn),
        str(platform.folder / cause.subject),
    ]
    role = {"replicas": cause.tasks, "resources": {"cpu": cause.cpu}, "command": command}
    document = {"name": cause.subject, "framework": "shell", "profile": True, "roles": {"worker": role}}
    document["env"] = {"PYTHONPATH": str(WITHOUT_COMPILER)}
    file = platform.folder / f"{cause.subject}.yaml"
    file.write_text(yaml.safe_dump(document))
    job = platform.submit(file)
    steps_after(platform, job, cause, 0)
    return cause.subject, turn


def steps_after(platform: Platform, job: str, cause: Cause, count: int) -> int:
    """Wait until each task has made three steps more than `count`; how many steps there are."""

    def found(log: str) -> int | None:
        steps = len(re.findall(STEP, log))
        return steps if steps >= count + 3 * cause.tasks else None

    return platform.wait_until(job, found, f"{count} steps and three more")


def advised(platform: Platform, name: str, cause: Cause, holds: Callable[[list[str]], bool]) -> dict[str, Any]:
    """Look at a job until its advice is as it should be; the facts of that profile.

    A processor that others take for some seconds is a cause too, and a process that stalls asks too late for a trace.
    """
    told: list[Any] = []
    for _ in range(TRIES):
        words = ("profile", name, "--all", "--what", cause.what, "--duration", DURATION[cause.what], "-o", "json")
        done = warm.corral(words, env=platform.env, seconds=200)
        facts = json.loads(done.stdout)
        subjects = [each["subject"] for each in facts["advice"] if each["subject"] not in OF_THE_MACHINE]
        if not facts["problems"] and holds(subjects):
            return dict(facts)
        told.append((facts["problems"], facts["advice"]))
    raise AssertionError(f"{name} got other advice each time: {told}")


def of_the_slow_rank(platform: Platform, facts: dict[str, Any], folder: Path) -> None:
    """The rank is named, and bounds the steps."""
    assert facts["advice"][0]["rank"].startswith("worker-1 ")
    assert facts["imbalance"] > 0.15
    assert facts["path"][0]["rank"].startswith("worker-1 ")


def of_the_loader(platform: Platform, facts: dict[str, Any], folder: Path) -> None:
    """The trace is kept: it is shown, compared and downloaded."""
    assert max(facts["reports"][0]["timeline"]["dataWaits"]) > 0.1
    assert "num_workers" in platform.corral("profile", "show", facts["id"])
    assert "waits for data" in platform.corral("profile", "show", facts["id"], "--compare", facts["id"])
    platform.corral("profile", "download", facts["id"], "--to", str(folder))
    trace = folder / f"{facts['id']}-{facts['files'][0]['name']}"
    assert trace.read_bytes()[:2] == b"\x1f\x8b"


MORE = {"imbalance": of_the_slow_rank, "data-loading": of_the_loader}
"""What else is told of a planted cause."""


@pytest.mark.parametrize("name", CAUSES)
def test_a_planted_cause_is_the_first_advice_and_is_not_told_of_its_healthy_twin(
    platform: Platform, tmp_path: Path, name: str
) -> None:
    cause = CAUSES[name]
    job, turn = running(platform, cause)
    facts = advised(platform, job, cause, lambda subjects: subjects[:1] == [cause.subject])
    if cause.subject in MORE:
        first = next(each for each in facts["advice"] if each["subject"] not in OF_THE_MACHINE)
        MORE[cause.subject](platform, {**facts, "advice": [first]}, tmp_path)
    turn.touch()
    steps_after(platform, job, cause, len(re.findall(STEP, platform.log(job))))
    advised(platform, job, cause, lambda subjects: cause.subject not in subjects)
    platform.corral("stop", job)


def test_a_job_that_does_not_offer_traces_is_told_what_to_set(platform: Platform) -> None:
    command = [
        str(environment("pytorch") / "python"),
        "-c",
        "import time; print('ready', flush=True); time.sleep(1000)",
    ]
    file = platform.folder / "plain.yaml"
    file.write_text(yaml.safe_dump({"name": "plain", "framework": "shell", "roles": {"worker": {"command": command}}}))
    job = platform.submit(file)
    platform.wait_for(job, "ready")
    told = platform.corral("profile", "plain", "--what", "torch", "-o", "json", code=1)
    assert "set `profile: true`" in json.loads(told)["problems"][0]["problem"]
    platform.corral("stop", job)


JAX = """
import os, time, jax, jax.numpy as jnp
jax.profiler.start_server(int(os.environ["CORRAL_PORT_PROFILER"]))
@jax.jit
def planned(x):
    return jnp.tanh(x @ x)
x, step = jnp.ones((64, 64)), 0
while True:
    x = planned(x).block_until_ready()
    step += 1
    if step == 3:
        print("stepping", flush=True)
    time.sleep(0.01)
"""
TENSORFLOW = """
import sys, time, tensorflow as tf
tf.profiler.experimental.server.start(int(sys.argv[1]))
@tf.function
def planned(x):
    return tf.tanh(x @ x)
x, step = tf.ones((64, 64)), 0
while True:
    x = planned(x)
    x.numpy()
    step += 1
    if step == 3:
        print("stepping", flush=True)
    time.sleep(0.01)
"""
SERVERS = {
    "jax": (JAX, {"ports": ["profiler"]}, "PjitFunction(planned)"),
    "tensorflow": (TENSORFLOW, {}, "MatMul"),
}
"""The program that opens a server, what its role declares, and an operator of it."""


@pytest.mark.parametrize("library", SERVERS)
def test_the_profiler_server_that_a_program_opened_gives_a_trace(platform: Platform, library: str) -> None:
    program, more, operator = SERVERS[library]
    command = [str(environment(library) / "python"), "-c", program, str(free_port())]
    role = {"resources": {"cpu": "0.5"}, "command": command, **more}
    env = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1"}
    file = platform.folder / f"{library}.yaml"
    file.write_text(yaml.safe_dump({"name": library, "framework": "shell", "env": env, "roles": {"worker": role}}))
    job = platform.submit(file)
    platform.wait_for(job, "stepping")
    words = ("profile", library, "--what", library, "--duration", "1s", "-o", "json")
    done = warm.corral(words, env=platform.env, seconds=300)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    (times,) = facts["reports"]
    assert facts["problems"] == [] and times["computing"] > 0 and times["seconds"] > times["computing"]
    assert any(operator in each["name"] for each in times["operators"]), times["operators"]
    (kept,) = facts["files"]
    trace = gzip.decompress(b"".join(platform.client.profile_file(facts["id"], kept["name"])))
    assert kept["name"].endswith(".trace.json.gz") and "traceEvents" in json.loads(trace)
    other = next(each for each in SERVERS if each != library)
    refused = warm.corral(("profile", library, "--what", other, "--duration", "1s"), env=platform.env, seconds=300)
    assert refused.returncode == 1 and "o process of this task has loaded" in refused.stderr
    platform.client.stop(job)
