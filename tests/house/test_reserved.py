"""Ports and names of tests are given to one process at a time."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import reserved

ROOT = Path(__file__).resolve().parents[2]


def elsewhere(expression: str) -> str:
    """The value of an expression in another test process."""
    words = [sys.executable, "-c", f"from tests import reserved; print({expression})"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_a_port_that_was_given_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens yet on a port that was just given, so a check of the socket would not be enough."""
    port = reserved.free_port()
    monkeypatch.setattr(reserved, "PORTS", range(port, port + 1))
    with pytest.raises(RuntimeError, match="no 1 ports in a row are left"):
        reserved.free_port()


def test_a_port_that_was_given_is_not_given_to_another_process() -> None:
    port = reserved.free_port()
    assert "RuntimeError" in elsewhere(f"(setattr(reserved, 'PORTS', range({port}, {port + 1})), reserved.free_port())")


def test_a_port_is_given_again_when_its_process_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(elsewhere("reserved.free_port()"))
    monkeypatch.setattr(reserved, "PORTS", range(port, port + 1))
    assert reserved.free_port() == port


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    first = reserved.first_of_free(2)
    taken = int(elsewhere("reserved.free_port()"))
    assert taken not in (first, first + 1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken))
        other.listen()
        monkeypatch.setattr(reserved, "PORTS", range(taken, taken + 1))
        with pytest.raises(RuntimeError):
            reserved.free_port()


def test_a_name_is_taken_once() -> None:
    names = [f"{os.getpid()}-{number}" for number in range(3)]  # another run of the tests has names of its own
    assert reserved.one_of("test", names) == names[0]
    assert reserved.one_of("test", names) == names[1]
    assert elsewhere(f"reserved.one_of('test', {names})") == names[2]
    assert reserved.one_of("another kind", names) == names[0]


def test_no_test_has_a_port_helper_of_its_own() -> None:
    """A port that a helper bound and released may be taken by any process."""
    helper = re.compile(r"^ *def _?free_port", re.MULTILINE)
    having = [path.name for path in (ROOT / "tests").rglob("*.py") if helper.search(path.read_text())]
    assert having == ["reserved.py"]
