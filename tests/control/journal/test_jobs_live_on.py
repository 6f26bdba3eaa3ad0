"""The jobs of a journal live on under other rules: the same requests, and tasks that run as long as they did."""

from __future__ import annotations

import io
from collections.abc import Iterable
from itertools import pairwise
from math import inf
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import CordonsRead
from corral.control.journal.blocks import BlockReader, BlockWriter
from corral.control.journal.living_on import IDLE_REVIEW_SECONDS, LivedOn, live_on
from corral.control.journal.recorded_runs import RecordedRuns, recorded_runs
from corral.control.journal.records import Record, Step, decoded, encoded
from corral.control.journal.rules import Rules
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.cordons import Cordon, Drain
from corral.model.launch import Exited
from corral.model.store_writes import IntentKind
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.examples import examples

FIFO = Rules("fifo", documents=False)


def fifo(**more: Any) -> Journaled:
    """A journal of a core under `fifo`, of two nodes with four devices each."""
    return Journaled(FIFO, **more)


def lived(played: Journaled, **rules: Any) -> LivedOn:
    """Close the journal and let its jobs live on."""
    played.blocks.close()
    return live_on(io.BytesIO(played.file.getvalue()), **rules)


def starts(found: LivedOn) -> tuple[dict[str, float], dict[str, float]]:
    """By name of a job, when it started as it was and under the other rules, in seconds after its submission."""
    names = {job.id: job.name for job in found.courses.jobs}
    (before,), (after,) = found.courses.before, found.courses.after
    return (
        {names[job]: round(at, 3) for job, at in before.starts.items()},
        {names[job]: round(at, 3) for job, at in after.starts.items()},
    )


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10_000))
def test_under_the_same_rules_they_start_when_they_did(seed: int) -> None:
    draw = Random(seed)
    played = fifo()
    jobs = [
        played.submit(
            f"job-{number}", draw.uniform(0, 500), devices=draw.choice([1, 2, 4]), replicas=draw.choice([1, 1, 2]),
            work=Work(draw.uniform(10, 900), code=draw.choice([0, 0, 0, 1])),
            retryPolicy={"maxRetries": draw.choice([0, 2])},
        )
        for number in range(12)
    ]  # fmt: skip
    played.run(700.0)
    played.driver.request(draw.choice(jobs), IntentKind.STOP, "ann")
    played.run(20_000.0)
    found = lived(played, policy="fifo")
    before, after = starts(found)
    assert before == after and len(before) >= 6
    (was,), (became,) = found.courses.before, found.courses.after
    assert became.queues == was.queues
    assert became.used == was.used and became.waiting == was.waiting


def test_under_srtf_the_short_go_first() -> None:
    played = fifo(nodes=1)
    for name, at, seconds in (("runs", 0.0, 1000.0), ("long", 10.0, 2000.0), ("short", 20.0, 60.0)):
        played.submit(name, at, devices=4, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(10_000.0)
    before, after = starts(lived(played, policy="srtf"))
    assert before == {"runs": 0.0, "long": 990.0, "short": 2980.0}
    assert after == {"runs": 0.0, "long": 1050.0, "short": 980.0}


def test_documents_may_bound_a_queue_and_choose_the_policy() -> None:
    played = fifo(nodes=1)
    for name, seconds in (("long", 1000.0), ("short", 60.0)):
        played.submit(name, 0.0, devices=2, work=Work(seconds), maxDuration=int(seconds) + 1)
    played.run(5000.0)
    bound = '{"apiVersion":"corral.dev/v1alpha1","kind":"Queue","name":"default","limit":{"devices":"2"}}'
    policy = '{"apiVersion":"corral.dev/v1alpha1","kind":"Policy","name":"default","preset":"srtf"}'
    before, after = starts(lived(played, documents=[bound, policy]))
    assert before == {"long": 0.0, "short": 0.0}
    assert after == {"long": 60.0, "short": 0.0}


def test_cordons_and_stops_come_when_they_came() -> None:
    played = fifo(nodes=1)
    first = played.submit("first", 0.0, devices=4, work=Work(inf))
    played.run(50.0)
    name = next(iter(played.core.machines.nodes))
    played.driver.at(BEGIN + 60, CordonsRead({name: Cordon(name, "ann", "", BEGIN + 60, Drain.NONE)}))
    played.run(70.0)
    played.driver.request(first, IntentKind.STOP, "ann")
    played.submit("second", 80.0, devices=1, work=Work(10.0))
    played.driver.at(BEGIN + 200, CordonsRead({}))
    played.run(1000.0)
    found = lived(played, policy="srtf")
    before, after = starts(found)
    assert before == after == {"first": 0.0, "second": 120.0}
    assert found.courses.after[0].queues["default"].ended == 2


def test_a_control_that_took_over_is_no_break() -> None:
    played = fifo(nodes=1)
    for number in range(3):
        played.submit(f"job-{number}", 0.0, devices=4, work=Work(100.0))
    played.run(50.0)
    played.begin_again()
    played.run(1000.0)
    before, after = starts(lived(played, policy="fifo"))
    assert before == after == {"job-0": 0.0, "job-1": 100.0, "job-2": 200.0}


def test_what_runs_at_the_beginning_goes_on_as_long_as_it_did() -> None:
    played = fifo(nodes=1)
    for name, seconds in (("runs", 500.0), ("waits", 50.0)):
        played.submit(name, 0.0, devices=4, work=Work(seconds))
    played.run(100.0)
    played.begin_again()
    played.run(2000.0)
    later = [each for each in records_of(played) if getattr(each, "at", BEGIN) >= BEGIN + 100]
    found = live_on(journal_of(later), policy="fifo")
    assert found.courses.at == BEGIN + 100
    before, after = starts(found)
    assert before == after == {"waits": 400.0}
    assert [(job.name, job.devices, job.waited) for job in found.courses.jobs] == [("waits", 4.0, 100.0)]


def test_a_stopped_run_lasts_as_long_as_the_next_one() -> None:
    played = fifo(nodes=1)
    low = played.submit("low", 0.0, devices=4, work=Work(300.0))
    played.run(100.0)
    played.driver.request(low, IntentKind.SUSPEND, "ann")
    played.run(150.0)
    played.driver.request(low, IntentKind.RESUME, "ann")
    played.run(1000.0)
    runs = read(played).runs
    assert [[ran.seconds for ran in each] for each in runs.values()] == [[pytest.approx(300.0)]]


def test_a_journal_that_is_decided_otherwise_now_is_refused() -> None:
    played = fifo(nodes=1)
    played.submit("one", 0.0, devices=4, work=Work(300.0))
    played.run(1000.0)
    *others, last = records_of(played)
    assert isinstance(last, Step)
    altered = journal_of([*others, msgspec.structs.replace(last, digest=b"12345678")])
    with pytest.raises(InvalidInput, match=f"Step {last.number} is decided otherwise now than in the journal"):
        live_on(altered, policy="srtf")


def test_a_journal_of_nonsense_is_refused_in_one_sentence() -> None:
    played = fifo(nodes=1)
    played.submit("one", 0.0, devices=4, work=Work(300.0))
    played.run(1000.0)
    *others, last = records_of(played)
    assert isinstance(last, Step)
    nonsense = msgspec.structs.replace(last, inputs=(Exited(AttemptId("no attempt"), BEGIN, 0),))
    with pytest.raises(InvalidInput, match=r"The journal cannot be played under other rules: .*not an attempt id"):
        live_on(journal_of([*others, nonsense]), policy="srtf")


def test_a_journal_that_was_cut_off_lives_on_to_there() -> None:
    played = fifo(nodes=1)
    for number in range(4):
        played.submit(f"job-{number}", 0.0, devices=4, work=Work(100.0))
        played.run(100.0 * number)
        played.blocks.flush()
    played.blocks.close()
    found = live_on(io.BytesIO(played.file.getvalue()[:-30]), policy="fifo")
    assert "it was read up to the last whole block" in found.problem
    before, after = starts(found)
    assert before == after and len(before) >= 2


def test_a_journal_without_steps_and_an_unknown_policy_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no step that could be played"):
        lived(fifo(), policy="srtf")
    played = fifo()
    played.submit("one", 0.0, work=Work(1.0))
    played.run(10.0)
    with pytest.raises(InvalidInput, match="There is no policy 'nope'"):
        lived(played, policy="nope")


def records_of(played: Journaled) -> list[Record]:
    """The records of the journal, which is closed."""
    played.blocks.close()
    return [decoded(data) for data in BlockReader(io.BytesIO(played.file.getvalue()))]


def journal_of(records: Iterable[Record]) -> io.BytesIO:
    """A journal with these records."""
    file = io.BytesIO()
    blocks = BlockWriter(file)
    for each in records:
        blocks.add(encoded(each))
    blocks.close()
    file.seek(0)
    return file


def read(played: Journaled) -> RecordedRuns:
    """What the closed journal says of run times."""
    played.blocks.close()
    return recorded_runs(BlockReader(io.BytesIO(played.file.getvalue())))


def test_months_without_events_are_few_plans_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    played, days = fifo(nodes=1), 100 * 86_400.0
    for name in ("one", "two"):
        played.submit(name, 0.0, devices=2, work=Work(inf))
    played.submit("waits", 5.0, devices=4)
    played.run(days)
    played.submit("late", days, devices=1)
    played.run(days + 100.0)
    steps, plain = [0], Driver._step

    def counted(driver: Driver) -> None:
        steps[0] += 1
        plain(driver)

    monkeypatch.setattr(Driver, "_step", counted)
    parts: list[float] = []
    lived(played, policy="gittins+order", told=parts.append)
    assert steps[0] < 100 * 24 + 1000
    assert parts == sorted(parts) and len(parts) > 100 and parts[-1] == 1.0


def test_plans_by_time_alone_go_on_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    played = fifo(nodes=1)
    for name in ("one", "two"):
        played.submit(name, 0.0, devices=2, work=Work(inf))
    played.submit("waits", 5.0, devices=4)
    played.run(86_400.0)
    played.submit("late", 86_400.0, devices=1)
    played.run(86_500.0)
    times, plain = [], Driver._step

    def kept(driver: Driver) -> None:
        times.append(driver.now - BEGIN)
        plain(driver)

    monkeypatch.setattr(Driver, "_step", kept)
    lived(played, policy="gittins+order")
    gaps = [later - at for at, later in pairwise(times)]
    assert max(gaps) <= IDLE_REVIEW_SECONDS + 60.0 and sum(at < 3600.0 for at in times) >= 55
