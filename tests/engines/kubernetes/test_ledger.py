"""The ledger turns the cluster's pod events into control's attempt events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.pods.attempt_records import Deed, Ledger, Record
from corral.engines.kubernetes.pods.labels import attempt_of, devices_of, labels_of, ports_for, ports_of
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.kernel.ids import AttemptId
from corral.model.inventory import Device
from corral.model.launch import PortRequest, TaskLaunch

FIRST = AttemptId("01jd3c9x8aaaa.0.worker.0.0")
BEGUN, OVER = "2026-11-21T10:00:00Z", "2026-11-21T10:05:00Z"


def pod(phase: str = "Pending", *, uid: str = "u1", code: int | None = None, **meta: Any) -> Pod:
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    if phase == "Running":
        state = {"running": {"startedAt": BEGUN}}
    if code is not None:
        state = {"terminated": {"exitCode": code, "reason": "Error", "startedAt": BEGUN, "finishedAt": OVER}}
    status = {
        "phase": phase,
        "podIP": "10.0.0.7",
        "containerStatuses": [{"name": "task", "state": meta.pop("state", state)}],
    }
    labels = {"corral.dev/server": "me", "corral.dev/devices": "x6", "ports.corral.dev/http": "20000-2"}
    metadata = {"name": pod_name(FIRST), "uid": uid, "labels": labels, **meta}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": "a"}, "status": status}, Pod)


class Told:
    """A ledger, and its events for each change."""

    def __init__(self) -> None:
        self.ledger = Ledger(lambda: 0.0)
        self.deeds: list[list[Deed]] = []

    def hear(self, *changes: Pod | Change[Pod]) -> Record:
        record = None
        for change in changes:
            change = change if isinstance(change, Change) else Change(change)
            record, deeds = self.ledger.fold(FIRST, change, 0.0)
            self.deeds.append(deeds)
        return record or self.ledger.records[FIRST]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_pod_begins_runs_and_ends(told: Told) -> None:
    record = told.hear(pod(), pod("Running"), pod("Running"), pod("Failed", code=3), pod("Failed", code=3))
    assert told.deeds == [[], [Deed.TELL_START], [], [Deed.CLOSE], []]
    assert record.started is not None and record.end is not None
    assert (record.started.host, record.started.ports, record.started.process) == (
        "10.0.0.7",
        {"http": (20000, 20001)},
        "u1",
    )
    assert (record.end.code, record.end.at) == (3, record.started.at + 300)


def test_a_pod_that_was_seen_only_at_its_end_began_too(told: Told) -> None:
    told.hear(pod("Succeeded", code=0))
    assert told.deeds == [[Deed.TELL_START, Deed.CLOSE]]


def test_a_deletion_that_was_asked_for_is_no_end_until_the_pod_is_gone(told: Told) -> None:
    record = told.hear(pod("Running"))
    record.stopping = True
    doomed = pod("Running", deletionTimestamp=OVER, deletionGracePeriodSeconds=30)
    told.hear(doomed)
    assert record.end is None
    told.hear(Change(pod("Failed", code=143, deletionTimestamp=OVER, deletionGracePeriodSeconds=30), gone=True))
    assert record.end is not None and record.end.code == 143


def test_a_pod_deleted_by_hand_is_transient_whatever_its_program_made_of_it(told: Told) -> None:
    gone = pod("Failed", code=1, deletionTimestamp="2026-11-21T10:05:20Z", deletionGracePeriodSeconds=30)
    record = told.hear(pod("Running"), Change(gone, gone=True))
    assert record.end is not None and record.end.code == -101


def test_a_pod_that_ended_by_itself_before_it_was_deleted_keeps_its_code(told: Told) -> None:
    gone = pod("Failed", code=1, deletionTimestamp="2026-11-21T10:09:00Z", deletionGracePeriodSeconds=30)
    record = told.hear(pod("Running"), Change(gone, gone=True))
    assert record.end is not None and record.end.code == 1


def test_a_pod_stopped_before_it_started(told: Told) -> None:
    told.hear(pod()).stopping = True
    record = told.hear(Change(pod(), gone=True))
    assert record.end is not None and record.end.code == -210


def test_a_pod_whose_image_cannot_be_had_is_deleted_and_ends_with_that(told: Told) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "docker.io/library/nope:1: not found"}}
    record = told.hear(pod(state=waiting), pod(state=waiting), Change(pod(state=waiting), gone=True))
    assert told.deeds == [[Deed.DELETE], [Deed.DELETE], [Deed.CLOSE]]
    assert record.end is not None and record.end.code == 254
    assert "not found" in record.end.reason


def test_a_second_pod_of_the_name_is_removed_and_tells_nothing(told: Told) -> None:
    record = told.hear(pod("Running"))
    told.hear(pod("Running", uid="u2"))
    assert told.deeds[-1] == [Deed.REMOVE]
    assert record.end is None and record.uid == "u1"


def test_a_pod_that_is_only_created_takes_the_record_that_waits_for_it(told: Told) -> None:
    waiting = told.ledger.expect(FIRST, "a", frozenset({1}), 0.0)
    assert told.hear(pod()) is waiting and waiting.uid == "u1"


def test_late_words_of_a_forgotten_pod_are_nothing(told: Told) -> None:
    told.hear(pod("Failed", code=1))
    told.ledger.forget(FIRST)
    told.ledger.fold(FIRST, Change(pod("Failed", code=1)), 0.0)
    told.ledger.fold(FIRST, Change(pod("Failed", code=1), gone=True), 0.0)
    assert not told.ledger.records
    assert not told.ledger._forgotten


def test_devices_are_held_until_the_end(told: Told) -> None:
    told.hear(pod("Running"))
    assert told.ledger.devices_on("a") == {1, 2}
    told.hear(pod("Failed", code=1))
    assert told.ledger.devices_on("a") == frozenset()


def test_an_adopted_pod_holds_its_devices_without_anything_else_known(told: Told) -> None:
    assert told.hear(pod("Running")).devices == {1, 2}


def test_ports_that_begin_at_a_number_have_it_and_the_others_are_counted_without_them() -> None:
    ports = ports_for((PortRequest("web", 2, start=8080), PortRequest("http"), PortRequest("rpc", 2)), 20_000)
    assert ports == {"web": (8080, 8081), "http": (20_000,), "rpc": (20_001, 20_002)}
    ports = ports_for((PortRequest("http", 2), PortRequest("web", 1, start=20_001)), 20_000)
    assert ports == {"http": (20_002, 20_003), "web": (20_001,)}


def test_what_was_given_is_read_back_from_the_labels() -> None:
    ports = ports_for((PortRequest("http", 2), PortRequest("store", 1)), 20_000)
    devices = tuple(Device(at, str(at)) for at in (0, 5, 64))
    launch = TaskLaunch(FIRST, "ada", "kubernetes/a", ("x",), {}, devices)
    made = msgspec.convert({"metadata": {"labels": labels_of(launch, ports)}}, Pod)
    assert ports_of(made) == ports == {"http": (20_000, 20_001), "store": (20_002,)}
    assert devices_of(made) == {0, 5, 64}


@pytest.mark.parametrize(
    ("name", "server", "expected"),
    [(pod_name(FIRST), "me", FIRST), (pod_name(FIRST), "you", None), ("corral-x", "me", None), ("web-1", "me", None)],
)
def test_pods_are_ours_by_name_and_label(name: str, server: str, expected: str | None) -> None:
    made = msgspec.convert({"metadata": {"name": name, "labels": {"corral.dev/server": server}}}, Pod)
    assert attempt_of(made, "me") == expected
