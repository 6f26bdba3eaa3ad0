"""A replay decides what was decided, batch by batch; another scheduler's first other decision is shown."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import fields
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.core.configuration import Configured
from corral.control.core.driver import Work
from corral.control.core.inputs import ConfigurationRead, Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.journal.blocks import BlockWriter
from corral.control.journal.records import Decision, State, configured, documents_of
from corral.control.journal.replay import replay
from corral.control.journal.rules import Rules
from corral.kernel.errors import InvalidInput
from corral.model.configuration import Configuration, configuration_of
from corral.model.cordons import Cordon, Drain
from corral.model.events import PlaceLost, StartRefused
from corral.model.inventory import Inventory, Node, Taint
from corral.model.launch import EngineLost, Noted
from corral.model.outcome import Completion, ExitClass
from corral.model.store_writes import IntentKind
from corral.scheduler import EngineUnknown
from corral.scheduler.policy.order import PriorityOrder
from corral.spec.configuration_file import load_site
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.examples import at_least

QUEUES = """
apiVersion: corral.dev/v1alpha1
kind: Queue
name: vision
weight: 3
---
apiVersion: corral.dev/v1alpha1
kind: Policy
name: default
preset: priority
"""


def described() -> Configured:
    """The configuration of `QUEUES`."""
    now = configuration_of(load_site(QUEUES, filename="queues.yaml"), 7)
    return Configured(Rules().chosen(now), now, None, frozenset({"local"}))


def busy(*, unexplained: bool = False) -> Journaled:
    """A journal of jobs that wait, fail, are retried and ended, on two nodes."""
    played = Journaled(unexplained=unexplained)
    for number in range(6):
        work = Work(100.0 + number, code=137 if number == 3 else 0)
        played.submit(f"job-{number}", number * 10.0, devices=1 + number % 4, work=work, retryPolicy={"maxRetries": 1})
    played.run(150.0)
    return played


def test_a_replay_decides_what_was_decided() -> None:
    played = busy()
    played.run(2000.0)
    found = played.replayed()
    assert found.difference is None and found.problem == ""
    assert found.steps == played.journal.number > 10 and found.events > 18
    assert (found.first_at, found.begun) == (BEGIN, 1)


def test_every_kind_of_input_is_replayed() -> None:
    played = Journaled()
    first = played.submit("first", devices=2, work=Work(inf, stop_seconds=5.0))
    second = played.submit("second", devices=2, work=Work(inf))
    third = played.submit("third", 1.0, dependsOn=[{"job": str(first), "condition": "ended"}])
    played.run(10.0)
    driver = played.driver
    (attempt, other) = played.running(first) + played.running(second)
    played.close(Cordon("local/node1", "ada", "fan", BEGIN, Drain.NOW))
    refused = Completion(-1, "Refused", ExitClass.PERMANENT)
    for each in (
        ConfigurationRead(described()),
        EngineUnknown("local", "away"),
        EngineLost("local", "away"),
        Noted(attempt, "Pulling", "an image"),
        MachinesSeen(played.machines),
        PlaceLost(other, "the port is taken"),
        StartRefused(other, BEGIN, refused),
    ):
        driver.at(driver.now, each)
        played.settle()
    played.ask(second, IntentKind.TAGS, tags=["a"])
    played.ask(third, IntentKind.EDIT, priority="prod")
    played.run(100.0)
    played.ask(first, IntentKind.STOP)
    played.run(2000.0)
    found = played.replayed()
    assert found.difference is None and found.problem == "" and found.steps == played.journal.number


def test_a_core_that_begins_again_is_replayed() -> None:
    played = busy()
    played.begin_again()
    played.run(2000.0)
    found = played.replayed()
    assert found.difference is None and found.begun == 2


def test_a_core_that_finds_reasons_to_wait_has_no_checkpoints() -> None:
    with pytest.raises(ValueError, match="has no checkpoints"):
        busy().checkpoint()


def test_a_replay_begins_at_the_last_checkpoint_before_a_time() -> None:
    played = busy(unexplained=True)
    played.checkpoint()
    before = played.journal.number
    played.run(2000.0)
    found = played.replayed(since=BEGIN + 151.0, until=BEGIN + 1000.0)
    assert found.difference is None and found.first_at > BEGIN + 150.0 and found.last_at <= BEGIN + 1000.0
    assert 0 < found.steps <= played.journal.number - before


def test_the_first_other_decision_is_shown_with_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Journaled(Rules("priority"), nodes=1)
    played.submit("first", 0.0, devices=4, work=Work(50.0))
    played.submit("low", 50.0, devices=4, work=Work(50.0))
    high = played.submit("high", 50.0, devices=4, priority="crit", work=Work(50.0))
    played.run(400.0)
    plain = PriorityOrder.key
    monkeypatch.setattr(PriorityOrder, "key", lambda *told: tuple(-each for each in plain(*told)))
    found = played.replayed().difference
    assert found is not None
    assert found.at == BEGIN + 50.0
    assert [each for each in found.recorded if each.verb == "start"] == [
        Decision("start", f"{high}.0.worker.0.0", "local/node0", (0, 1, 2, 3))
    ]
    started = [found.names[each.job] for each in found.replayed if each.verb == "start"]
    assert started == ["low"] and any(each.startswith("low: ") for each in found.explained)
    room = "local/node0 had 4 of 4 devices free"
    assert found.recorded_reasons == ("low waits: Needs 4 devices; 0 of 4 are free.", room)
    assert found.replayed_reasons == ("high waits: Needs 4 devices; 0 of 4 are free.", room)


@pytest.mark.parametrize("checkpoint", [None, 20.0, 55.0, 61.0])
def test_of_a_simulation_the_reasons_from_before_the_step_are_found(
    monkeypatch: pytest.MonkeyPatch, checkpoint: float | None
) -> None:
    played = Journaled(Rules("priority"), nodes=1, unexplained=True)
    played.submit("first", 0.0, devices=4, priority="crit", work=Work(60.0))
    played.submit("second", 40.0, devices=4, priority="crit", work=Work(50.0))
    played.submit("third", 50.0, devices=4, priority="crit", work=Work(50.0))
    if checkpoint is not None:
        played.run(checkpoint)
        played.checkpoint()
    played.run(400.0)
    plain = PriorityOrder.key
    monkeypatch.setattr(PriorityOrder, "key", lambda *told: tuple(-each for each in plain(*told)))
    found = played.replayed().difference
    assert found is not None and found.at == BEGIN + 60.0
    room = "local/node0 had 4 of 4 devices free"
    assert found.recorded_reasons == ("third waits: Needs 4 devices; 0 of 4 are free.", room)
    assert found.replayed_reasons == ("second waits: Needs 4 devices; 0 of 4 are free.", room)


def test_a_journal_that_was_cut_off_is_replayed_to_its_last_whole_block() -> None:
    played = busy()
    played.blocks.flush()
    whole = played.file.tell()
    played.run(2000.0)
    played.blocks.close()
    found = replay(io.BytesIO(played.file.getvalue()[: whole + 100]))
    assert found.difference is None and 0 < found.steps < played.journal.number
    assert found.problem == "Block 2 of the journal was cut off; it was read up to the last whole block before."


@pytest.mark.parametrize("record", [b"", b"\x93\x01\x02\x03", b"\x81\xa4type\xa4none", b"\x91" * 100_000])
def test_what_is_no_record_is_refused_in_a_sentence(record: bytes) -> None:
    writer = BlockWriter(file := io.BytesIO())
    writer.add(record)
    writer.close()
    with pytest.raises(InvalidInput, match=r"cannot be read by this Corral: .*\.$"):
        replay(io.BytesIO(file.getvalue()))


def test_a_journal_without_a_beginning_is_refused() -> None:
    writer = BlockWriter(file := io.BytesIO())
    writer.close()
    with pytest.raises(InvalidInput, match="has no beginning"):
        replay(file)


def test_documents_come_back_as_they_were() -> None:
    found = described()
    assert configured(documents_of(found), Rules()) == found
    assert found.policy.name == "priority", "the documents' policy replaces that of the rules"


@pytest.mark.parametrize("policy", ["srtf+order", "fifo+best-fit", "las"])
def test_rules_name_a_policy_and_its_parts(policy: str) -> None:
    chosen = Rules(policy, documents=False, review_seconds=600.0).chosen(described().now)
    assert (chosen.name, chosen.review_seconds) == (policy, 600.0)
    assert Rules().chosen(Configuration()).name == "fair"


def test_a_journal_keeps_all_that_a_core_begins_with() -> None:
    assert State.__struct_fields__ == Recovered.__struct_fields__
    assert {each.name for each in fields(Configured)} == {"policy", "now", "planner", "following"}


nodes = st.lists(
    st.builds(
        Node,
        name=st.sampled_from(["local/a", "local/b", "local/c"]),
        ready=st.booleans(),
        taints=st.sampled_from([(), (Taint("gone", effect="NoExecute"),)]),
    ),
    unique_by=lambda node: node.name,
)


@given(st.lists(nodes, max_size=4), st.booleans())
def test_machines_are_recalled_as_they_were(seen: list[list[Node]], follow: bool) -> None:
    machines = Machines(30.0)
    machines.following = frozenset({"local"}) if follow else frozenset()
    for at, found in enumerate(seen):
        machines.see(MachinesSeen(Inventory("local", tuple(found)), frozenset({"local/gone"})), float(at))
    machines.close({"local/a": Cordon("local/a", "ada", "", 1.0)})
    recalled = Machines.recalled(machines.remembered())
    assert vars(recalled) == vars(machines)


ALIKE = """
import hashlib
from corral.control.core.driver import Work
from corral.launcher import LaunchPolicy
from tests.control.journal.journals import Journaled

played = Journaled(policy=LaunchPolicy(retry_first=30.0), nodes=4)
first = played.submit("first", devices=1, work=Work(40.0))
for number in range(12):
    played.submit(f"again-{number}", devices=1, work=Work(5.0, 137), retryPolicy={"fancy": True, "maxRetries": 2})
    played.submit(f"after-{number}", devices=1, work=Work(5.0), dependsOn=[{"job": str(first)}])
played.run(2000.0)
played.blocks.close()
print(hashlib.sha256(played.file.getvalue()).hexdigest())
"""


def test_jobs_that_are_due_together_are_taken_in_one_order_in_every_process() -> None:
    root, found = Path(__file__).resolve().parents[3], set()
    for seed in ("1", "2", "3")[: at_least(2, 3)]:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", ALIKE]
        found.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(found) == 1
