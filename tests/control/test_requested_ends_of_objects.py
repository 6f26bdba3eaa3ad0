"""The status of an object names a task's requested end as FrameworkController does, whatever Corral's API calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.bridge.object_state import state_of
from corral.model.exits import EXIT_SPECS, NEVER_RETRIED, classify
from corral.model.records import TaskRecord, exit_view
from corral.spec.job_objects import Condition
from tests.control.harness import House, PaperEngine, short


@pytest.mark.parametrize("code", sorted(NEVER_RETRIED))
async def test_a_task_that_was_asked_to_end_keeps_the_word_of_the_table(tmp_path: Path, code: int) -> None:
    house = House(tmp_path, PaperEngine())
    await house.open()
    try:
        record = await house.store.find_job(await house.submit(short("framework")))
    finally:
        await house.close()
    assert record is not None
    shown = exit_view(classify(code))
    task = TaskRecord("worker", 0, "completed", 1, exit=shown)
    (told,) = state_of(record, Condition("Accepted", "True", "Accepted"), generation=1, server="s", tasks=[task]).tasks
    assert shown is not None and shown.phrase != told.exit_phrase == EXIT_SPECS[code].phrase
