"""A program's reports of its work are found, checked, and sent to the server when they have changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral.runtime import reporting
from corral.runtime.peers import Api, Refused
from corral.runtime.plan import Plan
from corral.runtime.reports import APART_SECONDS, LogPattern, ReportFile, Reports, numbers_of, offer, watch, withdraw

ATTEMPT = "job.0.worker.0.0"


class Server(Api):
    """Records the calls, and fails as the test says."""

    def __init__(self, *faults: Exception) -> None:
        self.told: list[dict[str, Any]] = []
        self.faults = list(faults)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        assert (method, path) == ("POST", "/api/v3/runtime/progress") and body is not None
        if self.faults:
            raise self.faults.pop(0)
        self.told.append(body)
        return None


def said(path: Path, **values: Any) -> None:
    """Write values as `corral.report` does."""
    path.with_suffix(".new").write_text(json.dumps(values))
    os.replace(path.with_suffix(".new"), path)


def test_a_change_is_told_at_once_and_the_next_one_only_after_a_while(tmp_path: Path) -> None:
    server, path = Server(), tmp_path / "values"
    reports = Reports(server, ATTEMPT, [ReportFile(str(path)).look], steps=100)
    reports.look(0.0)
    assert server.told == [], "nothing was said yet"
    for second in range(1, 1 + int(APART_SECONDS)):
        said(path, step=second, gradient_noise=3)
        reports.look(float(second))
    said(path, step=99)
    reports.look(1 + APART_SECONDS)
    assert server.told == [
        {"attempt": ATTEMPT, "ageSeconds": 0.0, "step": 1.0, "steps": 100.0, "gradientNoise": 3.0},
        {"attempt": ATTEMPT, "ageSeconds": 0.0, "step": 99.0, "steps": 100.0, "gradientNoise": 3.0},
    ]


def test_values_that_do_not_change_are_told_once_more_as_the_server_may_have_dropped_them(tmp_path: Path) -> None:
    server, path = Server(), tmp_path / "values"
    reports = Reports(server, ATTEMPT, [ReportFile(str(path)).look])
    for second in range(100):
        said(path, step=5)
        reports.look(float(second))
    assert [each["ageSeconds"] for each in server.told] == [0.0, APART_SECONDS]


def test_a_server_that_is_away_is_told_later_how_old_the_values_are(tmp_path: Path) -> None:
    server, path = Server(OSError("no answer"), OSError("no answer")), tmp_path / "values"
    reports = Reports(server, ATTEMPT, [ReportFile(str(path)).look])
    said(path, step=5)
    for second in range(60):
        reports.look(float(second))
    told = [{"attempt": ATTEMPT, "ageSeconds": late * APART_SECONDS, "step": 5.0} for late in (2, 3)]
    assert server.told == told, "when it is back, and once more"


def test_the_last_values_are_told_when_the_command_has_ended(tmp_path: Path) -> None:
    server, path, stop = Server(), tmp_path / "values", threading.Event()
    reports = Reports(server, ATTEMPT, [ReportFile(str(path)).look])
    said(path, progress=0.5)
    reports.look(0.0)
    said(path, progress=1)
    stop.set()
    watch(reports, stop)
    assert [told["progress"] for told in server.told] == [0.5, 1.0]


def test_a_refusal_ends_it_with_one_line_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = Reports(Server(Refused("the server answers 403")), ATTEMPT, [ReportFile(str(tmp_path / "values")).look])
    said(tmp_path / "values", step=5)
    reports.look(0.0)
    watch(reports, threading.Event())  # returns at once
    assert reports.over and capsys.readouterr().err.count("could not be reported") == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[1]", "7", "null", '{"step": "5"}', '{"step": -1}', '{"step": 1e400}', '{"progress": 1.5}',
        '{"loss": NaN}', '{"steps": 0}', '{"unknown": 5}', "[" * 50_000, '{"step": 5, "x": "' + "y" * 70_000 + '"}',
    ],
    ids=range(14),
)  # fmt: skip
def test_a_file_without_a_usable_value_reports_nothing(tmp_path: Path, text: str) -> None:
    server, path = Server(), tmp_path / "values"
    path.write_text(text)
    reports = Reports(server, ATTEMPT, [ReportFile(str(path)).look])
    reports.look(0.0)
    assert server.told == []


def test_a_pipe_or_a_link_out_of_the_folder_reports_nothing(tmp_path: Path) -> None:
    inside, outside = tmp_path / "task", tmp_path / "secret"
    inside.mkdir()
    said(outside, step=5)
    (inside / "link").symlink_to(outside)
    (inside / "folder").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    said(inside / "good", step=7)
    for name, found in (("link", {}), ("folder/secret", {}), ("pipe", {}), ("good", {"step": 7.0})):
        assert ReportFile(str(inside / name), str(inside)).look() == found
    assert ReportFile(str(inside / "link")).look() == {"step": 5.0}, "a task without a container reads as its user"


def test_known_values_are_taken_and_others_left_out() -> None:
    assert numbers_of({"step": 5, "loss": -0.5, "lr": 1e-3, "progress": 7}) == {"step": 5.0, "loss": -0.5}


def test_a_pattern_finds_the_last_values_in_complete_lines_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = LogPattern(str(log), r"step (?P<step>\d+)(?:/(?P<steps>\d+))?.*loss (?P<loss>\S+)")
    assert found.look() == {}, "no log yet"
    log.write_bytes(b"start\nstep 1/10 loss 0.9\nstep 2/10 loss 0.8\rstep 3/10 loss na")
    assert found.look() == {"step": 2.0, "steps": 10.0, "loss": 0.8}
    with log.open("ab") as file:
        file.write(b"n\nstep 4 loss 0.7\n" + b"x" * 3_000_000 + b"\nstep 5 loss 0.6\n")
    values: dict[str, float] = {}
    for _ in range(4):
        values |= found.look()
    assert values == {"step": 5.0, "steps": 10.0, "loss": 0.6} | {"steps": 10.0} and found.look() == {}
    log.write_bytes(b"step 6 loss 0.5\n")
    assert found.look() == {"step": 6.0, "loss": 0.5}, "the log was cut"


def plan_in(folder: Path) -> Plan:
    return Plan(attempt=ATTEMPT, command=[], work=str(folder), report={"file": "", "pattern": "", "steps": 0})


PROGRAM = """
import corral, math
for step in range(1000):
    assert corral.report(step, steps=1000, loss=1 / (step + 1), throughput=math.inf if step else 5)
try:
    corral.report(step="many")
except ValueError:
    print(corral.__file__)
"""


def test_a_program_without_corral_reports_by_the_module_in_its_folder(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    env = offer(plan, {"PYTHONPATH": "/elsewhere"})
    assert env["PYTHONPATH"].startswith("/elsewhere:")
    ran = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM], env=env, cwd="/", capture_output=True, text=True, check=True, timeout=250
    )
    assert ran.stdout.strip().startswith(str(tmp_path))
    assert json.loads(Path(env["CORRAL_REPORT_FILE"]).read_text()) == {"step": 999.0, "steps": 1000.0, "loss": 1e-3}
    withdraw(plan)
    assert list(tmp_path.iterdir()) == []


def test_the_module_in_the_folder_hides_no_part_of_an_installed_corral(tmp_path: Path) -> None:
    env = offer(plan_in(tmp_path), {}) | {"PATH": os.environ["PATH"]}
    here = str(Path(__file__).parents[2])
    script = "import corral, corral.kernel.units; print(corral.__file__, corral.kernel.units.__file__)"
    env["PYTHONPATH"] += f":{here}"
    ran = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd="/", capture_output=True, text=True, check=True, timeout=250
    )
    first, second = ran.stdout.split()
    assert first.startswith(str(tmp_path)) and second.startswith(here)


def test_outside_of_a_task_a_report_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import corral

    monkeypatch.delenv(reporting.VARIABLE, raising=False)
    monkeypatch.setattr(reporting, "_said", {})
    with corral.waiting():
        assert not corral.report(step=1)


def test_waits_for_other_tasks_add_up_and_go_with_the_next_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([10.0, 12.5, 20.0, 20.5, 100.0])
    monkeypatch.setenv(reporting.VARIABLE, str(tmp_path / "values"))
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(reporting, "_said", {})
    monkeypatch.setattr(reporting, "_written_at", float("-inf"))
    with reporting.waiting():
        pass
    with pytest.raises(ConnectionError), reporting.waiting():
        raise ConnectionError
    assert reporting.report(step=1)
    assert ReportFile(str(tmp_path / "values")).look() == {"step": 1.0, "waited": 3.0}


def test_a_disk_that_takes_nothing_does_not_end_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reporting.VARIABLE, str(tmp_path / "gone" / "values"))
    monkeypatch.setattr(reporting, "_written_at", float("-inf"))
    assert not reporting.report(step=1)
