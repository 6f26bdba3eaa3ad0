"""A journal is a trace: its jobs are submitted as they were and run as long, on the machines that it names."""

from __future__ import annotations

import io
import json
from math import inf
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import structs

from corral.cli.sim import sim_command
from corral.control.core.driver import Work
from corral.control.journal.anonymous.export import anonymise
from corral.control.journal.blocks import BlockWriter
from corral.control.journal.rules import Rules
from corral.control.journal.writer import JournalWriter
from corral.kernel.errors import InvalidInput
from corral.model.inventory import Taint
from corral.model.store_writes import IntentKind
from corral.sim.trace import Trace, TraceJob, TraceProblem, read_trace
from corral.sim.traces.journal import read_journal, read_site
from tests.control.journal.journals import Journaled
from tests.control.journal.named import Named

ROWS = [f"{number * 7},{100 + number * 13 % 90},{1 + number % 4},user-{number % 5}" for number in range(40)]


def trace_of(played: Journaled, *, skip_broken: bool = False) -> Trace:
    """Close the journal and read it as a trace."""
    played.blocks.close()
    file = io.BytesIO(played.file.getvalue())
    return read_trace(lambda _: read_journal(file), (), skip_broken=skip_broken)


def job(played: Journaled, name: str) -> TraceJob:
    """A job of the closed journal."""
    return next(each for each in trace_of(played).jobs if each.name == name)


def simulated(trace: Path, *words: str) -> Any:
    told = ["run", "--trace", str(trace), "--policy", "fifo", "--scatter", "0", "-o", "json", *words]
    done = CliRunner().invoke(sim_command, told, standalone_mode=False, catch_exceptions=False)
    return json.loads(done.stdout)


def test_the_journal_of_a_simulation_is_its_trace_and_its_machines(tmp_path: Path) -> None:
    (trace := tmp_path / "trace.csv").write_text("\n".join(["submitted,seconds,devices,user", *ROWS]))
    journal = tmp_path / "made.journal"
    played = simulated(trace, "--cluster", "2x4", "--journal", str(journal))
    again = simulated(journal)
    assert played == again
    with journal.open("rb") as file:
        found = [each for _, each in read_journal(file) if isinstance(each, TraceJob)]
    assert [(round(each.seconds, 3), each.devices, each.user) for each in found] == [
        (float(seconds), int(devices), user) for _, seconds, devices, user in (row.split(",") for row in ROWS)
    ]
    other = simulated(journal, "--cluster", "4x4")
    assert other["makespan"] < again["makespan"]


def test_an_anonymous_journal_is_the_same_trace_but_for_names(tmp_path: Path) -> None:
    played = Named(8)
    for number in range(12):
        played.add(number * 30.0, 100.0 + number, devices=1 + number % 4)
    played.run(5000.0)
    played.blocks.close()
    (plain := tmp_path / "plain.journal").write_bytes(played.file.getvalue())
    with plain.open("rb") as file, (tmp_path / "new.journal").open("wb") as target:
        assert anonymise(file, target, bytes(32)) is None
    words = ("--skip-broken",)
    assert simulated(plain, *words)["mean_jct"] == simulated(tmp_path / "new.journal", *words)["mean_jct"]


def test_runs_that_failed_and_the_run_after_a_stop_count() -> None:
    played = Journaled(nodes=1)
    again = played.submit("again", 0.0, work=Work(30.0, code=137), retryPolicy={"maxRetries": 2})
    paused = played.submit("paused", 0.0, work=Work(50.0))
    stopped = played.submit("stopped", 0.0, work=Work(inf))
    played.run(20.0)
    played.ask(paused, IntentKind.SUSPEND)
    played.run(30.0)
    played.ask(paused, IntentKind.RESUME)
    played.run(90.0)
    played.ask(stopped, IntentKind.STOP)
    played.run(1000.0)
    runs = len(played.when(again, "task.started"))
    assert runs > 1 and job(played, "again").seconds == pytest.approx(30.0 * runs)
    assert job(played, "paused").seconds == pytest.approx(50.0)
    assert job(played, "stopped").seconds == pytest.approx(90.0)


def test_what_runs_at_the_end_counts_until_then_and_what_never_started_is_left_out() -> None:
    played = Journaled(nodes=1)
    played.submit("runs", 0.0, devices=4, work=Work(inf))
    played.submit("waits", 10.0, devices=4)
    played.submit("comes", 200.0, devices=4)
    played.run(200.0)
    found = trace_of(played, skip_broken=True)
    assert [(each.name, round(each.seconds, 3)) for each in found.jobs] == [("runs", 200.0)]
    assert [each.problem for each in found.skipped] == [
        "job waits: it never started",
        "job comes: it never started",
    ]
    with pytest.raises(TraceProblem, match="Line 2 of the trace: job waits: it never started"):
        trace_of(played)


def test_jobs_of_the_beginning_have_the_rest_of_their_run() -> None:
    played = Journaled(nodes=1)
    played.submit("runs", 0.0, devices=4, work=Work(300.0))
    played.submit("waits", 10.0, devices=4, work=Work(40.0))
    played.run(100.0)
    played.file.seek(0)
    played.file.truncate()
    played.blocks = BlockWriter(played.file)
    played.journal = JournalWriter(played.blocks, Rules("fair"), "1.0")
    played.driver.stepped = played.journal.step
    played.begin_again()
    played.submit("later", 150.0, devices=4, work=Work(5.0))
    played.run(1000.0)
    played.begin_again()
    played.run(1001.0)
    assert [(each.name, round(each.submitted, 3), round(each.seconds, 3)) for each in trace_of(played).jobs] == [
        ("runs", 0.0, 200.0),
        ("waits", 0.0, 40.0),
        ("later", 50.0, 5.0),
    ]


def test_parts_edits_and_jobs_without_devices_are_read() -> None:
    played = Journaled(nodes=1)
    half = {"roles": {"worker": {"command": ["true"], "resources": {"devices": {"share": {"computePercent": 50}}}}}}
    played.submit_file(json.dumps({"name": "half", "framework": "shell", **half}))
    played.submit("processors", 1.0, devices=0)
    played.submit("first", 2.0, devices=3, work=Work(90.0))
    edited = played.submit("edited", 3.0, devices=4)
    played.run(10.0)
    played.ask(edited, IntentKind.EDIT, priority="prod")
    played.run(500.0)
    assert (job(played, "half").devices, job(played, "half").part) == (1, 500)
    assert (job(played, "processors").devices, job(played, "processors").cpu_millis) == (0, 1000)
    assert job(played, "edited").priority == 100


def test_the_machines_are_all_that_were_seen_as_if_they_were_well() -> None:
    played = Journaled()
    first, second = played.machines.nodes
    played.run(1.0)
    played.see(structs.replace(first, ready=False, ready_reason="away", taints=(Taint("gone", effect="NoExecute"),)))
    played.machines = structs.replace(played.machines, nodes=(second,))
    played.see()
    played.blocks.close()
    site = read_site(io.BytesIO(played.file.getvalue()))
    assert {each.name for each in site.inventory.nodes} == {first.name, second.name}
    assert all(each.ready and not each.taints for each in site.inventory.nodes) and site.devices == 8


def test_what_is_no_whole_journal_is_refused(tmp_path: Path) -> None:
    played = Journaled()
    played.submit("one", 0.0)
    played.run(100.0)
    played.blocks.close()
    cut = played.file.getvalue()[:-30]
    with pytest.raises(TraceProblem, match="it was read up to the last whole block before"):
        list(read_journal(io.BytesIO(cut)))
    with pytest.raises(InvalidInput, match="does not begin as one"):
        list(read_journal(io.BytesIO(b"submitted,seconds")))
    (trace := tmp_path / "trace.csv").write_text("submitted,seconds,devices\n0,1,1\n")
    with pytest.raises(InvalidInput, match="names no machines, as a journal does; say --cluster"):
        simulated(trace)
