"""Kill the server twenty times during five hundred jobs, kill the API server, compact etcd: no job is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.kubernetes.replicas import Census, Ender, Killable, Stream
from tests.engines.kubernetes.test_testbed import until
from tests.engines.kubernetes.test_two_replicas import small
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]
NAMESPACE = "killed"
JOBS, KILLS = 500, 20


@pytest.fixture
def server(control_plane: ControlPlane, kwok: Kwok, tmp_path: Path) -> Iterator[Killable]:
    control_plane.add_namespace(NAMESPACE)
    nodes = kwok.add_nodes(8, prefix="killed", devices=8)
    made = Killable(tmp_path, namespace=NAMESPACE)
    made.plane = control_plane
    made.env |= {"CORRAL_CONFLICT_DELAY_MINIMUM": "1"}
    try:
        made.up()
        yield made
        made.client.close()
    finally:
        made.run("down", "--data", str(made.data))
        for name in nodes:
            control_plane.request("DELETE", f"/api/v1/nodes/{name}")
        control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def kill(server: Killable, what: str) -> None:
    """kill -9 one of the processes, or all of them; waits until they run again."""
    if what == "all":
        server.vanish()
        server.up_again()
        return
    pid = until(lambda: server.processes().get(what), what)
    os.kill(pid, signal.SIGKILL)
    until(lambda: server.processes().get(what, pid) != pid or None, f"another {what}")


def test_nothing_is_lost_and_nothing_is_doubled(server: Killable, control_plane: ControlPlane) -> None:
    draw = random.Random(5)
    turns = ["control"] * 11 + ["all"] * 6 + ["front"] * 3
    draw.shuffle(turns)
    assert len(turns) == KILLS
    with (
        Census(control_plane, NAMESPACE) as census,
        Ender(control_plane, NAMESPACE),
        Stream(lambda name: server.submit(small(name)), "job", JOBS) as stream,
    ):
        for turn, what in enumerate(turns):
            enough = (turn + 1) * JOBS // (KILLS + 1) - len(stream.refused)
            until(lambda enough=enough: len(stream.jobs) >= enough or None, "more jobs", seconds=120)
            if turn == KILLS // 3:
                control_plane.restart_apiserver()
            if turn == 2 * KILLS // 3:
                control_plane.compact()
                control_plane.restart_apiserver()
            kill(server, what)
        until(lambda: not stream.busy or None, "end of the stream", seconds=240)
        states = [server.ended(job)["state"] for job in stream.jobs]
        census.has_seen(stream.jobs)
    assert len(stream.jobs) + len(stream.refused) == JOBS
    assert len(stream.jobs) > JOBS // 2, "most were taken in spite of it all"
    assert set(states) == {"succeeded"}
    assert {job: pods for job in stream.jobs if (pods := census.of(job)) != [1]} == {}
    assert {name for name, uids in census.uids.items() if len(uids) != 1} == set()
