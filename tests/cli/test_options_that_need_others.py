"""An option that does nothing without another one is refused rather than ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.cli.main import run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["down", "--timeout", "5"], "--timeout is for --stop-jobs; without it nothing waits for jobs."),
        (["users", "change", "eve", "--keep-tokens"], "--keep-tokens is for --password; nothing else ends API tokens."),
        (
            ["users", "change", "eve"],
            "Say what to change: --role, --group, --password, --lock, --unlock, --email or --max-priority.",
        ),
    ],
)
def test_a_command_says_what_an_option_is_for(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CORRAL_DATA_FOLDER", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run(words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
