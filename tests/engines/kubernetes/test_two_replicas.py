"""Two servers on one database: killing the leader moves the lead, loses no job and starts none twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.endtoend.platform import Job, one
from tests.engines.kubernetes.replicas import Census, Ender, Replica, Stream, both, leader
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.kwok import Kwok
from tests.testbeds.postgresql import PostgresServer

pytestmark = [pytest.mark.kubernetes, pytest.mark.postgres, pytest.mark.timeout(300)]
NAMESPACE = "replicated"
PROMISED, ASK = 8.0, 0.25
"""Seconds within which the lead must move (the product's promise), and between two checks by a standby."""


class Pair:
    """Two replicas and their shared parts."""

    def __init__(self, replicas: list[Replica], database: str) -> None:
        self.replicas, self.database = replicas, database

    def leading(self) -> Replica:
        """The leading replica."""
        name = until(lambda: leader(self.database) or None, "leader")
        (found,) = [each for each in self.replicas if each.name == name]
        return found

    def other(self) -> Replica:
        """The standby replica."""
        leading = self.leading()
        (found,) = [each for each in self.replicas if each is not leading]
        return found

    def turns_until_led_by(self, replica: Replica) -> int:
        """Wait until the lead has moved; count the turns that a thread got meanwhile, asking as often as a control.

        There are four a second, or fewer on an overloaded machine, whose delay does not count.
        """
        turns, begun = 0, time.monotonic()
        deadline = begun + 60
        while leader(self.database) != replica.name:
            time.sleep(max(0.0, begun + ASK - time.monotonic()))
            turns, begun = turns + 1, time.monotonic()
            assert begun < deadline, f"{replica.name} does not lead"
        return turns

    def until_led_by(self, replica: Replica) -> None:
        """Wait until the lead has moved."""
        until(lambda: leader(self.database) == replica.name or None, f"lead of {replica.name}")


@pytest.fixture(scope="module")
def pair(
    control_plane: ControlPlane, kwok: Kwok, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    control_plane.add_namespace(NAMESPACE)
    nodes = kwok.add_nodes(4, prefix="replicated", devices=8)
    database = postgres.create()
    folder = tmp_path_factory.mktemp("replicas")
    replicas = [Replica(folder / name, name, database, control_plane, NAMESPACE) for name in ("one", "two")]
    with both(*replicas):
        yield Pair(replicas, database)
    for name in nodes:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture
def census(control_plane: ControlPlane) -> Census:
    return Census(control_plane, NAMESPACE)


def small(name: str) -> Job:
    """A job whose pod kwok simulates."""
    return one(
        name, "train", role={"resources": {"cpu": "0.1", "devices": 1}, "nodeSelector": {"corral.test/played": ""}}
    )


def submitting(replica: Replica) -> Callable[[str], Job]:
    return lambda name: replica.submit(small(name))


def all_succeeded_once(by: Replica, stream: Stream, census: Census) -> None:
    """Every accepted job has succeeded, and each had exactly one pod."""
    stream.end()
    assert {by.ended(job)["state"] for job in stream.jobs} == {"succeeded"}
    census.has_seen(stream.jobs)
    pods = {job: census.of(job) for job in stream.jobs}
    assert pods == {job: [1] for job in stream.jobs}


def test_either_front_answers_the_same_whoever_leads(pair: Pair) -> None:
    leading, other = pair.leading(), pair.other()
    job = other.submit(small("asked"))
    leading.until(job, lambda now: now["state"] == "running")
    for ask in (
        lambda client: client.job(job["id"])["state"],
        lambda client: [node["name"] for node in client.nodes()["items"]],
        lambda client: client.queues()["items"],
        lambda client: client.line(),
        lambda client: client.cells(),
        lambda client: client.explain(job["id"]),
    ):
        assert ask(leading.client) == ask(other.client)
    other.client.stop(job["id"])
    assert leading.ended(job)["state"] == "stopped"


def test_the_lead_of_a_machine_that_is_lost_moves(
    pair: Pair, census: Census, capsys: pytest.CaptureFixture[str]
) -> None:
    victim, heir = pair.leading(), pair.other()
    with Ender(heir.plane, NAMESPACE), census, Stream(submitting(heir), "stream") as stream:
        until(lambda: len(stream.jobs) > 9 or None, "ten jobs")
        killed = time.monotonic()
        victim.vanish()
        turns = pair.turns_until_led_by(heir)
        moved = time.monotonic() - killed
        known = len(census.uids)
        until(lambda: len(census.uids) > known or None, "pod that the heir starts")
        working = time.monotonic() - killed
        until(lambda: len(stream.jobs) > 29 or None, "thirty jobs")
        all_succeeded_once(heir, stream, census)
    assert stream.refused == [], "the other front goes on taking jobs"
    with capsys.disabled():
        print(f"\nthe lead moved in {moved:.1f} s or {turns} turns, the next pod was created after {working:.1f} s")
    assert turns * ASK < PROMISED, f"{turns} turns, {moved:.1f} s"
    victim.up_again()
    assert victim.client.job(stream.jobs[0])["state"] == "succeeded"


def test_a_leader_that_was_paused_starts_nothing_any_more(pair: Pair, census: Census) -> None:
    victim, heir = pair.leading(), pair.other()
    before = victim.processes()["control"]
    with Ender(heir.plane, NAMESPACE), census, Stream(submitting(heir), "paused") as stream:
        until(lambda: len(stream.jobs) > 9 or None, "ten jobs")
        go_on = victim.pause()
        try:
            pair.until_led_by(heir)
        finally:
            go_on()
        until(lambda: victim.processes().get("control", before) != before or None, "end of the control that led")
        until(lambda: len(stream.jobs) > 29 or None, "thirty jobs")
        all_succeeded_once(heir, stream, census)


def test_a_clean_end_gives_the_lead_away_at_once(pair: Pair) -> None:
    victim, heir = pair.leading(), pair.other()
    victim.corral("down", "--data", str(victim.data))
    pair.until_led_by(heir)
    victim.up_again()
    assert pair.leading() is heir


def test_a_control_that_dies_alone_leads_again_or_hands_over(pair: Pair, census: Census) -> None:
    leading = pair.leading()
    with Ender(leading.plane, NAMESPACE), census, Stream(submitting(leading), "alone") as stream:
        until(lambda: len(stream.jobs) > 9 or None, "ten jobs")
        leading.kill_control()
        until(lambda: len(stream.jobs) > 19 or None, "twenty jobs")
        all_succeeded_once(leading, stream, census)


@pytest.mark.kubelet
def test_logs_and_terminals_come_through_either_front(pair: Pair, kubelet_node: KubeletNode) -> None:
    selector = {"nodeSelector": {"kubernetes.io/hostname": kubelet_node.name}}
    talks = one("talks", "echo hello; sleep 600", role=selector)
    job = pair.leading().submit(talks, wait_for_capacity=True)  # the node was only just created
    for replica in (pair.other(), pair.leading()):
        assert replica.printed_running(job, "main-0", "hello")
        said = list(replica.client.exec(job["id"], "main", 0, ["echo", "from", "inside"]))
        assert b"from inside\n" in b"".join(part for part in said if isinstance(part, bytes)), said
    pair.other().client.stop(job["id"])
    assert pair.leading().ended(job)["state"] == "stopped"
