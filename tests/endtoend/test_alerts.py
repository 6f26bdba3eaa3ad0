"""A real server evaluates a rules file: alerts are listed, silenced and told, to receivers too; bad files are refused."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
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
ROUTES = """\
webhooks: {{pager: "{url}"}}
routes:
  - {{match: [alertname=Leads], actions: [webhook]}}
"""


class Receiver(HTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.told: queue.Queue[Any] = queue.Queue()
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/alerts"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Platform]:
    """A server with a rule whose alert fires at once, and a receiver that is told of it."""
    folder = tmp_path_factory.mktemp("alerts")
    rules, routes = folder / "made.rules.yml", folder / "routes.yml"
    rules.write_text(RULES)
    routes.write_text(ROUTES.format(url=receiver.url))
    env = {"CORRAL_NOTIFY_PRIVATE": "127.0.0.0/8"}
    made = Platform(folder, "--alert-rules", str(rules), "--alert-actions", str(routes), env=env)
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
    (past,) = json.loads(server.corral("alerts", "history", "-m", "severity=info", "-o", "json"))
    assert (past["name"], past["firedAt"], past["endedAt"]) == ("Leads", leads["firedAt"], None)
    assert "it fires" in server.corral("alerts", "history")


def test_a_receiver_is_told_in_the_words_of_an_alertmanager(server: Platform, receiver: Receiver) -> None:
    call = receiver.told.get(timeout=120)
    assert (call["receiver"], call["status"], call["version"]) == ("pager", "firing", "4")
    (told,) = call["alerts"]
    assert told["labels"]["alertname"] == "Leads" and told["annotations"]["summary"] == "It leads for the 1. time."


def test_routes_that_mail_are_refused_at_the_start_without_a_mail_server(server: Platform, tmp_path: Path) -> None:
    routes = tmp_path / "routes.yml"
    routes.write_text("{mailTo: [ops@example.org], routes: [{match: [a=b], actions: [email-admin]}]}")
    start = ("up", "--detach", "--port", "0", "--data", str(tmp_path / "data"), "--alert-actions", str(routes))
    done = subprocess.run([CORRAL, *start], env=server.env, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "need a mail server (CORRAL_MAIL_SERVER)" in done.stderr, done


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
