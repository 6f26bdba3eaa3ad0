"""Tables, times and sizes in the CLI are aligned, short and correct."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from corral.cli.command_table import COMMANDS, corral
from corral.cli.output import age, span, table
from corral.cli.suspend_and_drain import receipts_table
from corral.cli.times import seconds_of, time_of
from corral.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (60, "1m"), (192, "3m12s"), (3600, "1h"), (3660, "1h1m"), (90000, "1d1h"), (-5, "0s")],
)
def test_a_span_is_told_in_two_units_at_most(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_an_age_is_from_one_time_to_another() -> None:
    assert age("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:30.500Z") == "1m30s"
    assert age(None) == ""


def test_columns_are_aligned_whatever_is_in_them() -> None:
    text = table(("NAME", "N", "END"), [("a", 1, "x"), ("longer", 22, "")], right=frozenset({1}))
    assert text.splitlines() == ["NAME     N  END", "a        1  x", "longer  22"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "away", "backAt": "2026-01-01T01:00:00.000Z"}, "likely at 2026-01-01T01:00:00.000Z"),
        ({"state": "away"}, "not yet: unknown when"),
        ({"state": "away", "rule": "suspended"}, "when it is resumed"),
        ({"state": "returned", "awaySeconds": 250.0}, "after 4m10s"),
        ({"state": "ended"}, "never: the job ended"),
    ],
)
def test_a_receipt_says_when_the_job_is_back_or_that_nobody_knows(fields: dict[str, object], said: str) -> None:
    receipt: dict[str, object] = {
        "id": "j.1",
        "name": "digits",
        "queue": "lab",
        "rule": "priority",
        "at": "2026-01-01T00:00:00.000Z",
    }
    receipt |= {"devices": 8, "costDeviceSeconds": 9000.0, "backAt": None, "message": "urgent comes first"} | fields
    line = receipts_table([receipt]).splitlines()[1]
    assert said in line and "2.5 device-hours" in line


def test_every_command_of_the_list_exists_and_explains_itself() -> None:
    runner = CliRunner()
    for name, (_, _, line) in COMMANDS.items():
        shown = runner.invoke(corral, [name, "--help"])
        assert shown.exit_code == 0, (name, shown.output)
        assert "Usage:" in shown.output and line.endswith(".")


def test_the_commands_that_were_promised_are_all_there() -> None:
    promised = (
        "up down serve login submit run ls get logs stop restart scale rm events exec cp nodes top users token "
        "validate convert explain backup restore rotate-key doctor completion version"
    )
    assert set(promised.split()) <= set(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    shown = CliRunner().invoke(corral, ["completion", shell])
    assert "_CORRAL_COMPLETE" in shown.output


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant() -> None:
    assert "'submit'" in CliRunner().invoke(corral, ["sumbit"]).output


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-02", 1767312000.0),
        ("2026-01-02T00:00:00Z", 1767312000.0),
        ("20260102", 1767312000.0),
        ("2026-01-02T01:00", 1767315600.0),
        ("2026-01-02T00:00:00+01:00", 1767308400.0),
        ("1h30m", 1767312000.0 - 5400),
        ("90d", 1767312000.0 - 90 * 86400),
        ("", None),
    ],
)
def test_a_time_is_a_day_a_time_or_so_long_ago(
    text: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1767312000.0)
    assert seconds_of("--since", text) == seconds


def test_what_is_no_time_is_refused_by_the_name_of_its_option() -> None:
    assert time_of("--since", "2026-01-02") == "2026-01-02T00:00:00.000Z"
    with pytest.raises(InvalidInput, match="after the year 9999"):
        time_of("--since", "9999-12-31T23:59:59-14:00")
    for wrong in ("noon", "2026-13-01", "9" * 400, "nan", "-5m"):
        with pytest.raises(InvalidInput, match=r"--until .* is not a time"):
            time_of("--until", wrong)
