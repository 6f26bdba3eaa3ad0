"""An anonymised journal has no name and no text of the original, and decides what the original decided."""

from __future__ import annotations

import io
import typing
from collections.abc import Iterator
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.core.configuration import Configured
from corral.control.core.driver import Work
from corral.control.core.inputs import ConfigurationRead, Underway
from corral.control.core.intents import IntentsRead
from corral.control.journal.anonymous.export import UNKNOWN, anonymise
from corral.control.journal.anonymous.names import KEY_BYTES, Found, Names, Renamed
from corral.control.journal.anonymous.records import RULES, WHOLE
from corral.control.journal.blocks import BlockReader, BlockWriter
from corral.control.journal.living_on import live_on
from corral.control.journal.records import COMMANDS, Begun, Checkpoint, Decision, Step, decoded, encoded
from corral.control.journal.replay import Replayed, replay
from corral.control.journal.rules import Rules
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import TaskKey
from corral.model.configuration import configuration_of
from corral.model.launch import Exited
from corral.model.records import ArrayView, ExitView, WaitingView
from corral.model.store_writes import Intent, IntentKind
from corral.spec.configuration_file import load_site
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.control.journal.named import BLOCK, MARK, Named
from tests.examples import examples

KEY = b"k" * KEY_BYTES


def anonymous(played: Journaled, key: bytes = KEY) -> tuple[bytes, int | None]:
    """Close the journal; return its anonymous form, and the first step that is decided otherwise."""
    played.blocks.close()
    target = io.BytesIO()
    differs_from = anonymise(io.BytesIO(played.file.getvalue()), target, key)
    return target.getvalue(), differs_from


def lived(seed: int, policy: str = "fair") -> Named:
    """A journal of jobs with names and texts in every field, among them preempted, retried and dependent ones."""
    played = Named(seed, policy)
    jobs = [played.add(played.draw.uniform(0, 400), played.draw.uniform(5, 900), devices=d) for d in (1, 2, 4, 4, 3, 1)]
    played.add(410.0, 50.0, devices=2, replicas=2, priority="prod")
    played.add(420.0, 50.0, dependsOn=[{"job": str(jobs[0])}, {"job": f"{MARK}-gone"}])
    played.run(450.0)
    played.disturb()
    played.begin_again()
    played.run(900.0)
    played.begin_again()
    played.run(4000.0)
    return played


def steps_of(file: bytes) -> list[Step]:
    """The steps of a journal."""
    return [each for each in map(decoded, BlockReader(io.BytesIO(file))) if isinstance(each, Step)]


def shape(step: Step) -> tuple[float, int, list[tuple[str, str, tuple[int, ...]]]]:
    """What of a step has no name."""
    decisions = sorted((each.verb, str(each.job), each.devices) for each in step.decisions if each.verb in COMMANDS)
    return step.at, len(step.inputs), decisions


@settings(max_examples=examples(7))
@given(seed=st.integers(0, 100_000), policy=st.sampled_from(["fair", "priority", "srtf+order", "las", "fifo+best-fit"]))
def test_no_name_and_no_text_is_left_and_every_decision_is_equal(seed: int, policy: str) -> None:
    played = lived(seed, policy)
    file, differs_from = anonymous(played)
    assert MARK.encode() in b"".join(BlockReader(io.BytesIO(played.file.getvalue())))
    for record in BlockReader(io.BytesIO(file)):
        assert MARK.encode() not in record.lower()
    assert differs_from is None
    found = replay(io.BytesIO(file))
    assert (found.difference, found.problem, found.steps) == (None, "", played.journal.number)
    assert list(map(shape, steps_of(file))) == list(map(shape, steps_of(played.file.getvalue())))


@pytest.mark.parametrize("policy", ["fair", "shockwave", "shockwave-program"])
def test_a_replay_may_begin_at_a_checkpoint_of_it(policy: str) -> None:
    played = Journaled(Rules(policy), unexplained=True)
    for number in range(6):
        played.submit(f"{MARK}-{number}", number * 10.0, devices=1 + number % 4, work=Work(100.0), maxDuration=300)
    played.run(150.0)
    played.checkpoint()
    played.run(3000.0)
    file, _ = anonymous(played)
    found = replay(io.BytesIO(file), since=BEGIN + 151.0)
    assert found.difference is None and found.first_at > BEGIN + 150.0 and found.steps > 0
    (was,), (now,) = (
        [each for each in map(decoded, BlockReader(io.BytesIO(data))) if isinstance(each, Checkpoint)]
        for data in (played.file.getvalue(), file)
    )
    assert was.begun.underway == now.begun.underway != Underway()


def test_another_key_gives_other_names_and_the_same_decisions() -> None:
    played = lived(4)
    one, _ = anonymous(played)
    other, _ = anonymous(played, b"o" * KEY_BYTES)
    assert (again := anonymous(played)[0]) == one and again != other
    users = [{name for name in _texts(file) if name.startswith("user-")} for file in (one, other)]
    assert len(users[0]) == len(users[1]) > 2 and users[0].isdisjoint(users[1])
    assert list(map(shape, steps_of(one))) == list(map(shape, steps_of(other)))
    assert KEY not in b"".join(BlockReader(io.BytesIO(one)))


def _texts(file: bytes) -> Iterator[str]:
    """Every text that stands alone in the records."""

    def inside(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for each in (*value.keys(), *value.values()):
                yield from inside(each)
        elif isinstance(value, list):
            for each in value:
                yield from inside(each)

    for record in BlockReader(io.BytesIO(file)):
        yield from inside(msgspec.msgpack.decode(record))


def test_its_jobs_live_on_under_other_rules_as_those_of_the_original_do() -> None:
    played = Named(9, "fifo")
    for number in range(12):
        played.add(number * 30.0, 100.0 + 50 * (number % 4), devices=1 + number % 4)
    played.run(5000.0)
    file, _ = anonymous(played)
    plain, new = (live_on(io.BytesIO(each), policy="srtf") for each in (played.file.getvalue(), file))
    assert plain.courses.after[0].starts == new.courses.after[0].starts != new.courses.before[0].starts


def test_what_is_no_journal_of_corral_is_refused_in_one_sentence() -> None:
    played = Journaled()
    job = played.submit("one", 0.0)
    played.run(10.0)
    strange = msgspec.structs.replace(Intent(9, job, IntentKind.EDIT, "ada", BEGIN), data={"queue": ["a"]})
    blocks = BlockWriter(file := io.BytesIO())
    played.blocks.close()
    for data in BlockReader(io.BytesIO(played.file.getvalue())):
        blocks.add(data)
    blocks.add(encoded(Step(9, BEGIN + 11, (IntentsRead((strange,)),), b"")))
    blocks.close()
    with pytest.raises(InvalidInput, match=r"The journal cannot be made anonymous: TypeError: .*\.$"):
        anonymise(io.BytesIO(file.getvalue()), io.BytesIO(), KEY)


def test_an_error_block_keeps_its_code_alone() -> None:
    played = Named(5)
    job = played.add(0.0, inf, devices=1, retryPolicy={"maxRetries": 3})
    played.run(10.0)
    (attempt,) = played.running(job)
    played.driver.end(attempt, 127)
    plain = played.journal.step

    def stepped(core: Any, inputs: Any, now: float) -> Any:
        told = [msgspec.structs.replace(each, reason=BLOCK) if isinstance(each, Exited) else each for each in inputs]
        return plain(core, told, now)

    played.driver.stepped = stepped
    played.run(100.0)
    file, differs_from = anonymous(played)
    ends = [each for step in steps_of(file) for each in step.inputs if isinstance(each, Exited)]
    assert differs_from is None and "exitCode: 220" in ends[0].reason
    assert MARK.encode() not in b"".join(BlockReader(io.BytesIO(file)))


def test_every_field_with_text_has_a_rule() -> None:
    missing = [
        f"{kind.__name__}.{name}"
        for kind in _structs()
        if kind not in {*WHOLE, WaitingView, ExitView, ArrayView}  # the last three are left out with their fields
        for name, hint in typing.get_type_hints(kind).items()
        if name in kind.__struct_fields__ and _has_text(hint) and name not in RULES.get(kind, {})
    ]
    assert missing == []


def _structs() -> set[Any]:
    """The classes of all values of a journal."""
    found: set[Any] = set()
    waiting: list[Any] = [Begun, Checkpoint, Step]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind not in found:
                found.add(kind)
                waiting += typing.get_type_hints(kind).values()
        else:
            waiting += typing.get_args(kind)
    assert len(found) > 40
    return found


def _has_text(hint: Any) -> bool:
    """Whether a field may have a text outside of its own values' classes."""
    if hint is TaskKey:
        return False
    if hint in (str, typing.Any, object) or getattr(hint, "__supertype__", None) is str:
        return True
    return any(map(_has_text, typing.get_args(hint)))


def test_names_that_sort_keep_their_order_and_others_do_not_show_it() -> None:
    found = Found()
    reader = Names(found)
    nodes = [f"local/node{number}" for number in (9, 10, 100, 2)]
    queues = ["zeta", "default", "alpha", "beta"]
    for name in nodes:
        reader.node(name)
    for name in queues:
        reader.queue(name)
    names = Names(Renamed(KEY, found))
    assert [names.node(name) for name in nodes] == [f"engine-1/node-{number}" for number in (2, 3, 4, 1)]
    assert names.node("node10") == "node-3"
    assert sorted(map(names.queue, queues)) == [names.queue(name) for name in sorted(queues)]
    assert names.queue("default") == "default"
    assert names.user("ann") == names.user("ann") != names.job("ann").replace("job", "user")
    with pytest.raises(InvalidInput, match="changed while it was made anonymous"):
        names.node("local/other")


def test_queues_with_cells_are_found_again() -> None:
    played = Named(6)
    text = f"""
kind: Cluster
engine: {MARK}e
cellTypes:
  {MARK}-box: {{child: {MARK}-gpu, count: 4, node: true}}
cells:
- {{type: {MARK}-box, name: {MARK}n}}
---
kind: Queue
name: {played.queues[0]}
cells: [{{cellType: {MARK}-box, count: 1}}]
"""
    now = configuration_of(load_site(text, filename="site.yaml"), 8)
    played.driver.at(BEGIN + 1, ConfigurationRead(Configured(played.configured.policy, now)))
    played.add(2.0, 50.0, devices=4)
    played.run(200.0)
    file, differs_from = anonymous(played)
    assert differs_from is None and replay(io.BytesIO(file)).difference is None
    assert MARK.encode() not in b"".join(BlockReader(io.BytesIO(file)))


def test_what_this_corral_decides_otherwise_is_told_and_found_by_a_replay() -> None:
    played = Journaled()
    for number in range(4):
        played.submit(f"job-{number}", number * 10.0, work=Work(50.0))
    played.run(500.0)
    played.blocks.close()
    records = [decoded(data) for data in BlockReader(io.BytesIO(played.file.getvalue()))]
    altered = next(at for at, each in enumerate(records) if isinstance(each, Step) and each.number == 3)
    other = Decision("start", f"{MARK}.0.worker.0.0".replace(MARK, "0" * 13), "local/node0", (1,))
    records[altered] = msgspec.structs.replace(records[altered], decisions=(other,))
    blocks = BlockWriter(file := io.BytesIO())
    for each in records:
        blocks.add(encoded(each))
    blocks.close()
    target = io.BytesIO()
    assert anonymise(io.BytesIO(file.getvalue()), target, KEY) == 3
    assert [each.digest == UNKNOWN for each in steps_of(target.getvalue())[:3]] == [False, False, True]
    found: Replayed = replay(io.BytesIO(target.getvalue()))
    assert found.difference is not None and found.difference.number == 3
