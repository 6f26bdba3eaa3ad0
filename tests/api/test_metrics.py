"""Prometheus reads `/metrics` of a running front."""

from __future__ import annotations

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from corral.client import Client
from tests.api.harness import Server


def _get(server: Server, token: str = "") -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.get(f"{server.url}/metrics", headers=headers)


def test_everybody_reads_a_page_and_is_told_that_no_scheduler_answers(server: Server) -> None:
    answer = _get(server)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert found["corral_scheduler_up"].samples[0].value == 0
    assert found["corral_process_cpu_seconds"].type == "counter" and found["corral_info"].samples[0].value == 1


def test_a_token_is_checked_and_one_that_is_wrong_is_refused(server: Server, alice: Client) -> None:
    token = alice.create_token("prometheus", days=1)
    assert _get(server, token["token"]).status_code == 200
    wrong = _get(server, "corral_wrong")
    assert wrong.status_code == 401 and wrong.json()["message"]
