"""A real server evaluates a rules file: its alerts are listed, silenced and told as events; broken rules are refused."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.endtoend.platform import CORRAL, Platform

pytestmark = pytest.mark.timeout(300)
RULES = """\
groups:
  - name: made
    rules:
      - alert: Leads
        expr: corral_lease_epoch > 0
        labels: {severity: info}
        annotations: {summary: "It leads for the {{ $value }}. time."}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server with a rule whose alert fires at once."""
    folder = tmp_path_factory.mktemp("alerts")
    (folder / "made.rules.yml").write_text(RULES)
    made = Platform(folder, "--alert-rules", str(folder / "made.rules.yml"))
    made.up()
    yield made
    made.down()


def _alerts(server: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.corral("alerts", "-o", "json"))
    return found


def test_alerts_are_listed_silenced_and_told(server: Platform) -> None:
    while not _alerts(server):
        time.sleep(0.2)
    (leads,) = _alerts(server)
    assert (leads["name"], leads["state"], leads["annotations"]["summary"]) == (
        "Leads", "firing", "It leads for the 1. time."
    )  # fmt: skip
    assert leads["labels"]["instance"] == server.url.partition("://")[2]
    silence = server.corral("alerts", "silence", "alertname=Leads", "--for", "1h", "--reason", "a test").strip()
    assert f"firing (silenced by {silence})" in server.corral("alerts", "-m", "severity=info")
    assert "a test" in server.corral("alerts", "silences")
    server.corral("alerts", "unsilence", silence)
    assert _alerts(server)[0]["silencedBy"] == []


def test_rules_are_checked_without_a_server_and_broken_ones_are_refused_at_the_start(
    server: Platform, tmp_path: Path
) -> None:
    good = server.folder / "made.rules.yml"
    assert "1 rule in 1 group, all can be evaluated." in server.corral("alerts", "check", str(good))
    broken = tmp_path / "broken.yml"
    broken.write_text(RULES.replace("corral_lease_epoch > 0", "topk(1, corral_lease_epoch)"))
    start = ("up", "--detach", "--port", "0", "--data", str(tmp_path / "data"), "--alert-rules", str(broken))
    for words in (("alerts", "check", str(broken)), start):
        done = subprocess.run([CORRAL, *words], env=server.env, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        assert "the rule Leads: at column 1 of its expression, topk is not supported" in done.stderr
