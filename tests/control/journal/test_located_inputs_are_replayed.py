"""Where inputs are is in the journal: it is replayed, made anonymous, and counts under other rules."""

from __future__ import annotations

import io

from corral.control.core.driver import Work
from corral.control.core.inputs import InputsLocated, InputsSought
from corral.control.journal.anonymous.export import anonymise
from corral.control.journal.anonymous.names import KEY_BYTES
from corral.control.journal.blocks import BlockReader
from corral.control.journal.living_on import live_on
from corral.control.journal.records import Step, decoded
from corral.control.journal.replay import replay
from corral.model.input_bytes import input_bytes
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled


def lived() -> Journaled:
    """Six jobs on four nodes; the inputs of each are on a node of its own, known after a quarter of a second."""
    played = Journaled(unexplained=True, nodes=4)
    for number in range(6):
        at = 1.0 + 100.0 * number
        job = played.submit(f"job-{number}", at, work=Work(450.0), devices=4)
        held = {frozenset((f"local/node{(number * 3 + 2) % 4}",)): 10**9}
        played.driver.at(BEGIN + at - 0.01, InputsSought((job,), BEGIN + at + 1.0))
        played.driver.at(BEGIN + at + 0.25, InputsLocated(job, input_bytes(2 * 10**9, held)))
    played.run(250.0)
    played.checkpoint()
    played.run(520.0)
    played.begin_again()
    played.run(2000.0)
    played.blocks.close()
    return played


def starts(file: bytes) -> list[tuple[float, str, str]]:
    """When, what and where the steps of a journal start."""
    steps = [each for each in map(decoded, BlockReader(io.BytesIO(file))) if isinstance(each, Step)]
    return [(step.at - BEGIN, each.job, each.node) for step in steps for each in step.decisions if each.verb == "start"]


def test_a_replay_decides_the_same_also_from_a_checkpoint() -> None:
    file = lived().file.getvalue()
    assert [(at, node) for at, _, node in starts(file)][:3] == [
        (1.25, "local/node2"), (101.25, "local/node1"), (201.25, "local/node0"),
    ]  # fmt: skip
    for since in (None, BEGIN + 300.0):
        found = replay(io.BytesIO(file), since=since)
        assert (found.difference, found.problem) == (None, "") and found.steps


def test_an_anonymous_journal_decides_the_same_and_names_no_node() -> None:
    file, target = lived().file.getvalue(), io.BytesIO()
    assert anonymise(io.BytesIO(file), target, b"k" * KEY_BYTES) is None
    assert b"local/node" not in b"".join(BlockReader(io.BytesIO(target.getvalue())))
    found = replay(io.BytesIO(target.getvalue()))
    assert (found.difference, found.problem) == (None, "") and found.steps
    assert [at for at, *_ in starts(target.getvalue())] == [at for at, *_ in starts(file)]


def test_in_another_life_jobs_wait_for_their_inputs_as_they_did() -> None:
    played = lived()
    life = live_on(io.BytesIO(played.file.getvalue()), policy="priority")
    (before,), (after,) = life.courses.before, life.courses.after
    assert len(before.starts) == 6 and after.starts == before.starts
