"""An engine is a class found by its entry point: Corral's own kinds, and those of other packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.engines import registry
from corral.engines.kind import EngineKind
from corral.engines.registry import engine_kind, engine_names, engine_settings
from corral.kernel.errors import InvalidInput
from corral.lifecycle import check, environment_of
from corral.settings import Settings
from tests.endtoend.platform import ROOT, Platform, one
from tests.entry_points import corrals_own, distribution

TINY = """
import asyncio, os, time
from corral.engines.base import Engine
from corral.engines.kind import BuiltEngine, EngineKind, EngineSettings, Finding
from corral.kernel.errors import NotFound
from corral.model.inventory import Inventory, Node
from corral.model.launch import Exited, Started

class TinySettings(EngineSettings):
    tiny_nodes: int = 1

class TinyEngine:
    name = "tiny"

    def __init__(self, context, nodes):
        self._context, self._nodes = context, nodes
        self._events, self._processes, self._ends = asyncio.Queue(), {}, {}
        self._tasks = set()

    async def open(self):
        self._context.logs.open()

    async def close(self):
        for task in self._tasks:
            task.cancel()

    def attempts(self):
        return frozenset(self._processes)

    async def inventory(self):
        nodes = [Node(f"tiny/n{at}", cpu_millis=4000, memory_bytes=2**32) for at in range(self._nodes)]
        return Inventory(self.name, tuple(nodes))

    async def start(self, launch):
        if launch.attempt in self._processes:
            return
        path, _ = self._context.logs.prepare(launch.attempt)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        process = await asyncio.create_subprocess_exec(
            *launch.command, env={**os.environ, **launch.env}, stdout=handle, stderr=handle)
        os.close(handle)
        self._processes[launch.attempt] = process
        self._events.put_nowait(Started(launch.attempt, time.time()))
        task = asyncio.ensure_future(self._wait(launch.attempt, path))
        self._tasks.add(task)

    async def _wait(self, attempt, path):
        code = await self._processes[attempt].wait()
        size = os.path.getsize(path)
        self._events.put_nowait(Exited(attempt, time.time(), code if code >= 0 else 128 - code, log_bytes=size))

    async def stop(self, attempt, *, grace_seconds, signal="TERM"):
        process = self._processes.get(attempt)
        if process is not None and process.returncode is None:
            process.kill()

    async def forget(self, attempts):
        for attempt in attempts:
            self._processes.pop(attempt, None)

    async def watch(self):
        while True:
            yield await self._events.get()

    async def exec(self, attempt, argv, *, tty):
        raise NotFound("not-running", "Nothing is run beside a task here.")

    async def connect(self, attempt, port):
        raise NotFound("no-such-port", "No task has ports here.")

class Tiny(EngineKind[TinySettings]):
    name = "tiny"
    settings = TinySettings
    on_this_machine = True

    async def build(self, context, settings):
        return BuiltEngine(TinyEngine(context, settings.tiny_nodes))

    async def doctor(self, settings, options):
        return [Finding("tiny", "good", f"{settings.tiny_nodes} nodes")]
"""
POINTS = {
    "tiny": "tiny_engine:Tiny",
    "small": "tiny_engine:Tiny",
    "gone": "tiny_engine:Gone",
    "local": "tiny_engine:Tiny",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with Corral's metadata and a package that brings an engine."""
    corrals_own(tmp_path / "site")
    (tmp_path / "site" / "tiny_engine.py").write_text(TINY)
    return distribution(tmp_path / "site", "tiny-engine", {registry.GROUP: POINTS})


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on the path of this process, which forgets it afterwards."""
    monkeypatch.syspath_prepend(str(folder))
    _forget()
    yield
    _forget()
    sys.modules.pop("tiny_engine", None)


def _forget() -> None:
    registry.engine_kind.cache_clear()
    registry._own.cache_clear()


@pytest.mark.usefixtures("installed")
def test_engines_are_corrals_own_and_those_of_installed_packages() -> None:
    assert engine_names() == ("kubernetes", "local", "yarn", "gone", "small", "tiny")
    kinds = [engine_kind(name) for name in ("kubernetes", "local", "tiny")]
    assert all(isinstance(kind, EngineKind) and kind.name for kind in kinds)
    assert [bool(kind.page) for kind in kinds] == [True, True, False]


@pytest.mark.usefixtures("installed")
def test_no_package_replaces_an_engine_of_corrals_own() -> None:
    assert type(engine_kind("local")).__module__ == "corral.engines.local.kind"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kubernets", 'did you mean "kubernetes"'),
        ("gone", "cannot be loaded"),
        ("small", "does not give an EngineKind of that name"),
    ],
)
def test_an_engine_that_cannot_be_had_is_refused_with_the_reason(name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check(Settings(engine=(name,)))


@pytest.mark.usefixtures("installed")
def test_a_kind_declares_its_settings_and_takes_its_own_of_the_options() -> None:
    options = {"tiny_nodes": 3, "namespace": "ml"}
    assert engine_settings(engine_kind("tiny"), options).model_dump() == {"tiny_nodes": 3}
    assert engine_settings(engine_kind("kubernetes"), options).model_dump()["namespace"] == "ml"
    with pytest.raises(InvalidInput, match="namespace cannot be used"):
        engine_settings(engine_kind("kubernetes"), {"namespace": "No!"})


@pytest.mark.parametrize("text", ["kubernetes,local", "kubernetes local", '["kubernetes", "local"]'])
def test_several_engines_are_named_in_one_variable(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_ENGINE", text)
    assert Settings().engine == ("kubernetes", "local")
    assert environment_of(Settings())["CORRAL_ENGINE"] == "kubernetes,local"


def test_only_the_engine_that_is_named_is_loaded(tmp_path: Path) -> None:
    corrals_own(tmp_path)
    code = (
        "import sys; from corral.chosen_engines import check_engines; from corral.settings import Settings;"
        "check_engines(Settings());"
        "print([name for name in sys.modules if name.startswith('corral.engines')])"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    env.pop("CORRAL_ENGINE", None)
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    loaded = set(said.strip("[]\n").replace("'", "").split(", "))
    assert loaded == {
        "corral.engines",
        "corral.engines.kind",
        "corral.engines.registry",
        "corral.engines.local",
        "corral.engines.local.kind",
    }


def test_a_server_runs_tasks_on_an_engine_of_another_package_beside_its_own(folder: Path, tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{folder}:{ROOT}", "CORRAL_TINY_NODES": "2"}
    platform = Platform(tmp_path / "server", "--engine", "tiny", "--engine", "local", env=env)
    platform.up()
    try:
        job = platform.ran(one("there", "echo hello from $CORRAL_ROLE; exit 3", role={"replicas": 2}))
        assert (job["state"], job["exit"]["code"]) == ("failed", 3)
        nodes = {node["name"] for node in platform.client.nodes(limit=100)["items"]}
        assert {"tiny/n0", "tiny/n1", "local/node1"} <= nodes
        placed = platform.ran(one("placed", "echo on $CORRAL_NODE", role={"resources": {"cpu": "0.1", "devices": 1}}))
        [task] = platform.tasks(placed).values()
        assert task["node"].startswith("local/")
    finally:
        platform.down()
    alone = Platform(tmp_path / "alone", "--engine", "tiny", env=env)
    alone.up()
    try:
        done = alone.ran(one("here", "echo hello; exit 0"))
        [task] = alone.tasks(done).values()
        assert done["state"] == "succeeded" and task["node"].startswith("tiny/") and alone.log(done) == "hello\n"
        assert "2 nodes" in alone.run("doctor", "--engine", "tiny", "--data", str(alone.data)).stdout
    finally:
        alone.down()
