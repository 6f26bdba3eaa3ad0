"""A task has a cache of compiled code by its job's word, or by the default of its queue, of those above, or the server."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.control.initial_configuration import seed
from corral.kernel.ids import AttemptId
from corral.model.compile_caches import cache_terms
from corral.model.launch import TaskLaunch
from corral.spec.configuration_file import load_document
from tests.control.harness import House, PaperEngine, short

SITE = """
kind: Queue
name: company
compileCache: user
---
kind: Queue
name: vision
parent: company
---
kind: Queue
name: lean
parent: company
compileCache: none
"""


class Engine(PaperEngine):
    """Records its starts."""

    async def start(self, launch: TaskLaunch) -> None:
        """Start the task."""
        self.launched[launch.attempt] = launch
        await super().start(launch)

    launched: dict[AttemptId, TaskLaunch]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    engine = Engine(nodes=1, devices=4)
    engine.launched = {}
    made = House(tmp_path, engine)
    await made.open()
    yield made
    await made.close()


async def launched(
    house: House, queue: str, server: str, own: str, *, image: str = "", report: bool = False
) -> TaskLaunch:
    """What the engine is told of the task of a job."""
    await seed(house.store, load_document(SITE), file="site.yaml", clock=house.clock)
    await house.begin()
    control = house.control
    house.control.context = dataclasses.replace(
        control.context, cache_terms_of=lambda said, of: cache_terms(said, control.compile_cache(of), server)
    )
    document = json.loads(short("train", queue=queue)) | ({"compileCache": own} if own else {}) | {"report": report}
    document["roles"]["worker"] |= {"image": image} if image else {}
    job = await house.submit(json.dumps(document))
    await house.until(job, "running")
    assert isinstance(house.engine, Engine)
    (launch,) = house.engine.launched.values()
    return launch


@pytest.mark.parametrize(
    ("queue", "server", "own", "kept", "by_default"),
    [
        ("default", "none", "", False, False),
        ("default", "user", "", True, True),
        ("default", "user", "none", False, False),
        ("vision", "none", "", True, True),
        ("vision", "none", "none", False, False),
        ("vision", "none", "job", True, False),
        ("lean", "user", "", False, False),
        ("lean", "none", "user", True, False),
    ],
)
async def test_a_task_has_a_cache_where_the_nearest_word_says_so(
    house: House, queue: str, server: str, own: str, kept: bool, by_default: bool
) -> None:
    launch = await launched(house, queue, server, own)
    cache = launch.runtime.compile_cache if launch.runtime is not None else None
    assert (cache is not None) == kept
    assert cache is None or cache.by_default == by_default


@pytest.mark.parametrize(("own", "report", "runtime"), [("", False, False), ("", True, True), ("user", False, True)])
async def test_a_default_alone_adds_no_runtime_to_a_container(
    house: House, own: str, report: bool, runtime: bool
) -> None:
    launch = await launched(house, "vision", "none", own, image="python:3.11", report=report)
    assert (launch.runtime is not None) == runtime
    assert launch.runtime is None or launch.runtime.compile_cache is not None
