"""A task's event files are followed where the server cannot see them, and their scalars are told to it."""

from __future__ import annotations

import json
import os
import struct
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.api.runtime import ScalarsBody
from corral.model.metrics import told_scalars
from corral.monitor.series.store import OLDEST_SECONDS
from corral.runtime import event_folder, event_reports
from corral.runtime.event_folder import EventFolder
from corral.runtime.event_reports import EventReports, NamedSource, sources_of, unseen, watch
from corral.runtime.peers import Api, NotTaken, Refused
from corral.runtime.plan import Plan
from tests.runtime.event_files.encoder import NAME, event, part, record, scalars, tensor, write

NOW = 1_764_028_807.0
ATTEMPT = "job.0.worker.0.0"


class Server(Api):
    """Records the calls, and fails as the test says."""

    def __init__(self, *faults: Exception) -> None:
        self.told: list[dict[str, Any]] = []
        self.calls = 0
        self.faults = list(faults)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        assert (method, path) == ("POST", "/api/v3/runtime/scalars") and body is not None
        self.calls += 1
        if self.faults:
            raise self.faults.pop(0)
        told = msgspec.json.decode(json.dumps(body), type=ScalarsBody)
        assert told.attempt == ATTEMPT
        assert all(each.run.isprintable() and each.tag.isprintable() for each in told.scalars)
        self.told += body["scalars"]
        return None


def reports(server: Server, root: Path, now: float = NOW) -> EventReports:
    return EventReports(server, ATTEMPT, [NamedSource("", EventFolder(str(root)))], lambda: now)


def plan(work: Path, **more: Any) -> Plan:
    report = {
        "file": "",
        "pattern": "",
        "steps": 0,
        "tensorboard": more.pop("tensorboard", []),
        **more.pop("given", {}),
    }
    return Plan(ATTEMPT, ["true"], str(work), report=report, **more)


def test_the_last_value_of_each_step_is_told_with_its_age(tmp_path: Path) -> None:
    server = Server()
    write(tmp_path / "runs", scalars((NOW - 36, "loss", 3.0), (NOW - 35, "loss", 2.0), (NOW - 5, "loss", 1.0)))
    each = reports(server, tmp_path)
    each.look()
    each.look()
    assert server.told == [
        {"run": "runs", "tag": "loss", "ageSeconds": 35.0, "value": 2.0},
        {"run": "runs", "tag": "loss", "ageSeconds": 5.0, "value": 1.0},
    ]


def test_old_and_future_values_are_not_told(tmp_path: Path) -> None:
    server = Server()
    write(tmp_path, scalars((NOW - 601, "loss", 3.0), (NOW + 61, "loss", 2.0), (NOW + 50, "loss", 1.0)))
    reports(server, tmp_path).look()
    assert [each["value"] for each in server.told] == [1.0]
    assert event_reports.OLDEST_SECONDS == OLDEST_SECONDS and event_reports.MOST_TOLD == told_scalars.MOST_TOLD
    assert event_reports.LONGEST_RUN == told_scalars.LONGEST_RUN


def test_what_the_server_does_not_take_is_left_out_or_shortened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, one, two = Server(), "x" * 1000, "y" + "x" * 1000
    large = (tensor("loss", 2, part(4, struct.pack("<d", value))) for value in (1e308, -1.7e308))
    write(tmp_path, b"".join(record(event(NOW - 36 + 30 * at, each)) for at, each in enumerate(large)))
    below = "r" * 50 + "/" + "s" * 49
    write(tmp_path / "long" / below, scalars((NOW - 5, "loss", 1.0)))
    folders = (("a\nb", tmp_path), (one, tmp_path / "long"), (two, tmp_path / "long"))
    sources = [NamedSource(name, EventFolder(str(folder))) for name, folder in folders]
    each = EventReports(server, ATTEMPT, sources, lambda: NOW)
    each.look()
    each.look()
    end = "x" * 147
    runs = {told["run"] for told in server.told}
    assert {f"…{end}/{below}", f"2…{end}/{below}", "a?b"} == runs
    assert len(server.told) == 3 and {told["value"] for told in server.told} == {1e308, 1.0}
    assert capsys.readouterr().err.count("since names are short and printable.") == 3


def test_values_that_the_server_refuses_do_not_keep_others_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reports, "MOST_TOLD", 2)
    server = Server(NotTaken("the server answers 422"), NotTaken("the server answers 400"))
    write(tmp_path, scalars(*((NOW - 15 * step, "loss", float(step)) for step in range(6, 0, -1))))
    each = reports(server, tmp_path)
    each.look()
    assert [told["value"] for told in server.told] == [2.0, 1.0] and not each.over
    said = "corral: scalars of event files could not be reported: the server answers 422\n"
    assert capsys.readouterr().err == said


def test_a_clock_that_is_set_back_makes_no_value_one_of_a_later_time(tmp_path: Path) -> None:
    server, clock = Server(OSError("no answer")), [NOW]
    write(tmp_path, scalars((NOW - 5, "loss", 1.0)))
    each = EventReports(server, ATTEMPT, [NamedSource("", EventFolder(str(tmp_path)))], lambda: clock[-1])
    each.look()
    clock.append(NOW - 100)
    each.look()
    assert [told["ageSeconds"] for told in server.told] == [-60.0]


def test_a_server_that_is_away_is_told_later_and_many_values_in_several_calls(tmp_path: Path) -> None:
    server = Server(OSError("no answer"))
    points = [(NOW - 15 * step, f"tag-{tag}", float(step)) for step in range(30, 0, -1) for tag in range(60)]
    write(tmp_path, scalars(*points))
    each = reports(server, tmp_path)
    each.look()
    assert not server.told
    each.look()
    assert len(server.told) == 1800 and server.calls == 3


def test_values_that_wait_for_the_server_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_reports, "_MOST_WAITING", 3)
    server = Server()
    write(tmp_path, scalars(*((NOW - 15 * step, "loss", float(step)) for step in range(9, 0, -1))))
    reports(server, tmp_path).look()
    assert [each["value"] for each in server.told] == [3.0, 2.0, 1.0]


def test_the_last_values_are_told_when_the_command_has_ended_and_a_refusal_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop, server = threading.Event(), Server()
    stop.set()
    write(tmp_path, scalars((NOW - 5, "loss", 1.0)))
    watch(reports(server, tmp_path), stop)
    assert len(server.told) == 1
    refused = reports(Server(Refused("the server answers 403")), tmp_path)
    refused.look()
    assert refused.over
    assert "scalars of event files could not be reported: the server answers 403" in capsys.readouterr().err


def test_a_broken_file_is_said_once_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, b"this is no event file, and long enough for a header")
    each = reports(Server(), tmp_path, now=tmp_path.stat().st_mtime)
    each.look()
    each.look()
    assert capsys.readouterr().err.count("a file is broken: the checksum of a record's length is wrong") == 1


def test_folders_that_a_job_names_are_looked_at_under_their_names(tmp_path: Path) -> None:
    work, data = tmp_path / "work", tmp_path / "data"
    for folder in (work / "logs", data / "runs", data / "other"):
        write(folder, scalars((NOW - 5, "loss", 1.0)))
    server = Server()
    found = sources_of(plan(work, tensorboard=["logs", str(data / "runs")], given={"own_events": True}))
    EventReports(server, ATTEMPT, found, lambda: NOW).look()
    assert {each["run"] for each in server.told} == {"logs", str(data / "runs").strip("/")}


def test_the_working_folder_is_left_to_the_server_where_it_reads_it(tmp_path: Path) -> None:
    assert not sources_of(plan(tmp_path))
    assert not sources_of(plan(tmp_path, tensorboard=["logs"]))
    assert [each.name for each in sources_of(plan(tmp_path, given={"own_events": True}))] == [""]
    elsewhere = plan(tmp_path / "work", directory=str(tmp_path / "data"), tensorboard=["../data", "../other"])
    assert [each.name for each in sources_of(elsewhere)] == ["", "../other"]


def beside(tmp_path: Path, *named: str) -> Plan:
    """The plan of a sidecar that has the mounts of these folders of the task."""
    given = {"own_events": True, "mounts": str(tmp_path / "events")}
    return plan(tmp_path / "work", tensorboard=list(named), shared="/shared", given=given)


def test_a_sidecar_reads_the_folders_of_the_tasks_mounts_at_its_own_places(tmp_path: Path) -> None:
    write(tmp_path / "events/1/data/runs/b", scalars((NOW - 5, "loss", 1.0)))
    server = Server()
    found = sources_of(beside(tmp_path, "/image/runs", "/data/runs"))
    EventReports(server, ATTEMPT, found, lambda: NOW).look()
    assert [(each["run"], each["value"]) for each in server.told] == [("data/runs/b", 1.0)]
    assert unseen(beside(tmp_path, "/image/runs", "/data/runs")) == [
        "the event files in /image/runs are in the image, where they are not seen"
    ]


def test_a_sidecar_reads_below_a_working_directory_that_is_on_a_mount(tmp_path: Path) -> None:
    for number, folder in enumerate(("data/job/runs", "data/job/logs", "data/job")):
        write(tmp_path / f"events/{number}" / folder, scalars((NOW - 5, f"loss-{number}", 1.0)))
    given = {"own_events": False, "mounts": str(tmp_path / "events")}
    named = ["runs", "/data/job/logs", ".", "../other"]
    one = plan(Path("/data/job"), tensorboard=named, shared="/shared", given=given)
    server = Server()
    EventReports(server, ATTEMPT, sources_of(one), lambda: NOW).look()
    assert {(each["run"], each["tag"]) for each in server.told} == {
        ("runs", "loss-0"), ("data/job/logs", "loss-1"), ("", "loss-2"),
    }  # fmt: skip
    assert unseen(one) == ["the event files in /data/other are in the image, where they are not seen"]


def test_a_sidecar_that_may_read_more_than_its_task_reads_what_everybody_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    top = tmp_path / "events/0/data"
    for name in ("closed-file", "closed-folder", "open"):
        write(top / "runs" / name, scalars((NOW - 5, "loss", 1.0)))
    (top / "runs/closed-file" / NAME).chmod(0o640)
    (top / "runs/closed-folder").chmod(0o750)

    def told(*named: str) -> list[str]:
        server = Server()
        EventReports(server, ATTEMPT, sources_of(beside(tmp_path, *named)), lambda: NOW).look()
        return [each["run"] for each in server.told]

    assert told("/data/runs") == ["data/runs/open"]
    (top / "runs").chmod(0o750)
    assert told("/data/runs") == []
    (top / "runs").chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert len(told("/data/runs")) == 3, "the kernel decides"


def test_a_file_that_takes_the_place_of_one_that_was_looked_at_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    write(tmp_path / "closed", scalars((NOW - 5, "loss", 1.0)))
    closed = tmp_path / "closed" / NAME
    closed.chmod(0o600)
    write(tmp_path / "events/0/data/runs", scalars((NOW - 5, "loss", 2.0)))
    looked_at = event_folder._state

    def state(entry: os.DirEntry[str]) -> os.stat_result | None:
        found = looked_at(entry)
        if entry.name == NAME and closed.exists():
            closed.rename(tmp_path / "events/0/data/runs" / NAME)
        return found

    monkeypatch.setattr(event_folder, "_state", state)
    server = Server()
    told = EventReports(server, ATTEMPT, sources_of(beside(tmp_path, "/data/runs")), lambda: NOW)
    told.look()
    assert not closed.exists() and server.told == []


def test_a_link_in_a_mount_leads_a_sidecar_nowhere(tmp_path: Path) -> None:
    write(tmp_path / "secret/runs", scalars((NOW - 5, "loss", 1.0)))
    top = tmp_path / "events/0/data"
    top.mkdir(parents=True)
    (top / "a").symlink_to(tmp_path / "secret")
    (top / "runs").symlink_to(tmp_path / "secret/runs")
    for name in ("/data/a/runs", "/data/runs"):
        server = Server()
        EventReports(server, ATTEMPT, sources_of(beside(tmp_path, name)), lambda: NOW).look()
        assert server.told == [], name


def test_a_folder_in_an_image_is_said_not_to_be_seen(tmp_path: Path) -> None:
    beside = plan(tmp_path, tensorboard=["/data/runs", "logs"], shared="/shared", given={"own_events": True})
    assert [each.name for each in sources_of(beside)] == [""]
    assert unseen(beside) == ["the event files in /data/runs are in the image, where they are not seen"]
