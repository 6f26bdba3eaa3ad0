"""A stream ends when its account is disabled, deleted or signed out."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from corral.client import Client
from corral.kernel.errors import Forbidden
from corral.kernel.ids import AttemptId
from corral.kernel.tokens import mint_job_token
from tests.api.harness import START, Server
from tests.api.test_jobs_are_submitted_and_read import job

_NUMBERS = itertools.count()
_PASSWORD = "correct horse battery"


def _disable(server: Server, root: Client, name: str) -> None:
    root.change_user(name, disabled=True)


def _delete(server: Server, root: Client, name: str) -> None:
    root.delete_user(name)


def _sign_out(server: Server, root: Client, name: str) -> None:
    for token in server.call(server.store.tokens(name)):
        if token.revoked_at is None:
            root.revoke_token(token.id)


def _new_password(server: Server, root: Client, name: str) -> None:
    root.change_user(name, password=_PASSWORD)


def _in_another_process(server: Server, root: Client, name: str) -> None:
    server.call(server.store.change_user(name, disabled=True))


_ENDS: list[Callable[[Server, Client, str], None]] = [_disable, _delete, _sign_out, _new_password, _in_another_process]


@pytest.fixture
def log_of(server: Server, alice: Client) -> str:
    """The log of another user's job, which an administrator may follow."""
    made = alice.submit(job(f"followed-{next(_NUMBERS)}"))
    stdout = Path(server.logs.prepare(AttemptId(f"{made['id']}.0.worker.0.0"))[0])
    stdout.write_bytes(b"first\n")
    return f"/api/v3/jobs/{made['id']}/tasks/worker/0/logs?follow=true"


@pytest.mark.parametrize("stream", ["events", "log"])
@pytest.mark.parametrize("end", _ENDS, ids=lambda end: end.__name__.strip("_"))
def test_an_open_stream_breaks_when_its_caller_is_let_in_no_more(
    server: Server, root: Client, log_of: str, end: Callable[[Server, Client, str], None], stream: str
) -> None:
    name = f"{end.__name__.strip('_')}-{stream}".replace("_", "-")
    token = server.token(name, role="admin")
    address = server.url + {"events": "/api/v3/events", "log": log_of}[stream]
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.stream("GET", address, headers=headers, trust_env=False, timeout=120) as answer:
        assert answer.status_code == 200
        pieces = answer.iter_raw()
        next(pieces)
        end(server, root, name)
        with pytest.raises(httpx2.RemoteProtocolError):
            list(pieces)
    server.clock.advance(5.1)  # until then this process may still have the token in its cache
    assert httpx2.get(address, headers=headers, trust_env=False).status_code == 401


def test_streams_of_others_go_on(server: Server, root: Client, alice: Client) -> None:
    opened, seen = threading.Event(), threading.Event()

    def watch() -> None:
        with server.client("staying") as client:
            for event in client._feed(timeout=120):
                opened.set()
                if event is not None and event["kind"] == "job.submitted":
                    seen.set()
                    return

    watching = threading.Thread(target=watch)
    watching.start()
    assert opened.wait(120)
    server.token("going")
    root.delete_user("going")
    alice.submit(job("after-it"))
    assert seen.wait(120)
    watching.join(120)


def test_a_jobs_token_opens_no_stream_of_events(server: Server, alice: Client) -> None:
    made = alice.submit(job("listening"))
    with Client(server.url, mint_job_token(server.service.context.key, made["id"], START + 1000)) as inside:
        with pytest.raises(Forbidden):
            next(inside._feed(timeout=120))
