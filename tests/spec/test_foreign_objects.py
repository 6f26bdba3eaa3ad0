"""Foreign objects get a status in their own format, and clusters accept Corral's CRDs for them."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from corral.compat.alnair.language.job_object import AlnairKind
from corral.compat.frameworkcontroller.language.framework_object import FrameworkKind
from corral.compat.hived.language.annotation import SCHEDULING_SPEC
from corral.model.states import JobState
from corral.model.states import TaskState as LauncherTask
from corral.spec.dialects.foreign_crds import definition_files, definitions
from corral.spec.dialects.registry import dialects
from corral.spec.job_objects import NOW, Condition, ObjectState, RoleState, TaskState, UnifiedJobKind, Wish
from corral.spec.job_reader import load_job
from tests.spec import test_alnair_documents as alnair
from tests.spec import test_framework_documents as frameworks

EXAMPLES = Path(__file__).parents[2] / "examples"
STATES = {
    "AttemptCreationPending", "AttemptCreationRequested", "AttemptPreparing", "AttemptRunning", "AttemptDeletionPending",
    "AttemptDeletionRequested", "AttemptDeleting", "AttemptCompleted", "Completed",
}  # fmt: skip
REFUSED = Condition("Accepted", "False", "Refused", "spec.jobSpec: missing")


def word(before: str = "", **state: Any) -> str:
    document = alnair.document() | {"status": {"jobStatus": before}}
    return str(AlnairKind().status(ObjectState(job="j1", **state), document)["jobStatus"])


@pytest.mark.parametrize(
    ("state", "before", "shown"),
    [
        ({"phase": "waiting"}, "", "Waiting"),
        ({"phase": "starting"}, "Waiting", "Pending"),
        ({"phase": "running"}, "Pending", "Running"),
        ({"phase": "waiting"}, "Running", "Migrating"),
        ({"phase": "starting"}, "Migrating", "Migrating"),
        ({"phase": "waiting", "attempt": 1}, "", "Migrating"),
        ({"phase": "waiting", "suspended": True}, "Running", "Paused"),
        ({"phase": "succeeded"}, "Running", "Complete"),
        ({"phase": "failed"}, "Running", "Failed"),
        ({"phase": "stopped"}, "Waiting", "Failed"),
    ],
)
def test_alnair_has_a_word_for_every_state(state: dict[str, Any], before: str, shown: str) -> None:
    assert word(before, **state) == shown


def test_an_object_that_was_refused_has_failed_and_speaks_of_no_job() -> None:
    status = AlnairKind().status(ObjectState(conditions=(REFUSED,)), alnair.document())
    assert (status["jobStatus"], status["conditions"][0]["message"]) == ("Failed", "spec.jobSpec: missing")
    assert not AlnairKind().over({**alnair.document(), "status": status})
    ended = AlnairKind().status(ObjectState(job="j1", phase="succeeded", attempt=2), alnair.document())
    assert AlnairKind().over({**alnair.document(), "status": ended})
    assert (AlnairKind().job_of({"status": ended}), AlnairKind().attempt_of({"status": ended})) == ("j1", 2)


def test_alnairs_targets_are_devices_by_bare_node_name() -> None:
    targets = {"kubernetes/node1": 1, "kubernetes/node2": 3}
    for kind, factor in (("EHJob", 1), ("EPJob", 1), ("BaseJob", 2)):
        shown = AlnairKind().targets(alnair.document(kind), targets)
        assert shown == {"spec": {"replicaSpec": {"targetReplicas": {"node1": factor, "node2": 3 * factor}}}}
        assert AlnairKind().targets_in(shown) == {"node1": factor, "node2": 3 * factor}


def test_an_object_that_was_edited_into_no_job_can_still_be_written_and_let_go() -> None:
    broken = alnair.document(least=6)
    for part in ({"replicaSpec": None}, {"jobSpec": {}}, {}):
        document = {**broken, "spec": {**broken["spec"], **part}}
        for wanted in ({}, {"kubernetes/node1": 2}):
            shown = AlnairKind().targets(document, wanted)
            assert shown == {"spec": {"replicaSpec": {"targetReplicas": {"node1": 2} if wanted else {}}}}


def test_targets_and_what_is_asked_for_may_change_and_bounds_may_not() -> None:
    kind, document = AlnairKind(), alnair.document()
    first = kind.fingerprint(document)
    moved = {**document, **kind.targets(document, {"kubernetes/n": 2})}  # type: ignore[dict-item]
    moved["spec"] = document["spec"] | {"replicaSpec": document["spec"]["replicaSpec"] | {"targetReplicas": {"n": 2}}}
    asked = document | {"metadata": document["metadata"] | kind.scaled(document, 3)["metadata"]}
    assert kind.fingerprint(moved) == kind.fingerprint(asked) == first
    assert (kind.replicas(document), kind.replicas(asked)) == (5, 3)
    assert kind.fingerprint(alnair.document(most=6)) != first
    assert kind.fingerprint(alnair.document("EPJob")) != first


def test_execution_types_are_wishes_and_their_document_is_a_job_whatever_they_say() -> None:
    kind = FrameworkKind()
    for said, wish in (("Create", Wish.HOLD), ("Start", Wish.RUN), ("Stop", Wish.STOP)):
        document = frameworks.framework(executionType=said)
        assert kind.wish(document) is wish
        assert kind.job(document) == load_job(frameworks.framework())
        assert kind.fingerprint(document) == kind.fingerprint(frameworks.framework())


def test_a_priority_is_the_clusters_grant_unless_an_annotation_says_it() -> None:
    said = {"corral.dev/priority": "crit"}
    document = frameworks.framework(frameworks.role(priorityClassName="crit-priority"))
    annotated = frameworks.framework() | {"metadata": {"name": "sample", "annotations": said}}
    kind = FrameworkKind()
    assert kind.job(document).priority == kind.job(annotated).priority == 120
    assert kind.granted(document) and not kind.granted(annotated)
    hived = {SCHEDULING_SPEC: "virtualCluster: default\npriority: 1000\nleafCellNumber: 1\nleafCellType: X\n"}
    pod = document["spec"]["taskRoles"][0]["task"]["pod"]
    for anybodys in (
        pod | {"metadata": {"annotations": hived}},
        pod | {"spec": pod["spec"] | {"priority": 999_999_999}},
    ):
        assert not kind.granted(frameworks.framework(frameworks.role() | {"task": {"pod": anybodys}}))
    assert not AlnairKind().granted(alnair.document() | {"metadata": {"name": "sample", "annotations": said}})
    assert not UnifiedJobKind().granted(load_job(frameworks.framework()).to_document())


def test_the_first_roles_number_may_change_and_nothing_else() -> None:
    kind = FrameworkKind()
    document = frameworks.framework(frameworks.role(), frameworks.role("ps", 3))
    scaled = document | {"spec": document["spec"] | kind.scaled(document, 7)["spec"]}
    assert (kind.replicas(document), kind.replicas(scaled)) == (2, 7)
    assert kind.fingerprint(scaled) == kind.fingerprint(document)
    other = frameworks.framework(frameworks.role(), frameworks.role("ps", 4))
    assert kind.fingerprint(other) != kind.fingerprint(document)
    assert kind.targets(document, {"kubernetes/n": 2}) is None


@pytest.mark.parametrize("state", JobState)
def test_every_state_of_a_job_is_one_of_frameworkcontrollers(state: JobState) -> None:
    status = FrameworkKind().status(ObjectState(job="j1", state=state.value), frameworks.framework())
    assert status["state"] in STATES
    assert (status["state"] == "Completed") == (state is JobState.COMPLETED)


@pytest.mark.parametrize("state", LauncherTask)
def test_every_state_of_a_task_is_one_of_frameworkcontrollers(state: LauncherTask) -> None:
    told = ObjectState(job="j1", state="running", tasks=(TaskState("worker", 0, state.value),))
    status = FrameworkKind().status(told, frameworks.framework())
    (role,) = status["attemptStatus"]["taskRoleStatuses"]
    assert role["taskStatuses"][0]["state"] in STATES


def test_a_framework_shows_its_attempt_and_those_of_its_tasks() -> None:
    worker = TaskState(
        "worker", 1, "completed", attempt=2, attempt_id="j1.1.worker.1.2", retries=2, counted_retries=1,
        node="kubernetes/node1", host="10.0.0.7", created_at="t0", started_at="t1", ended_at="t2",
        exit_code=201, exit_phrase="ContainerTransientConflictFailed", exit_class="conflict", exit_message="lost",
    )  # fmt: skip
    state = ObjectState(
        job="j1", state="attempt-completed", attempt=1, retries=1, counted_retries=0, retry_seconds=61.0,
        roles=(RoleState("worker"), RoleState("ps")), tasks=(worker, TaskState("worker", 0, "creation-requested")),
        created_at="t0", started_at="t1", ended_at="t2", exit_code=201, exit_phrase="X", exit_class="conflict",
        trigger=("1 of worker's tasks failed, and minFailed is 1", "worker", 1),
    )  # fmt: skip
    status = FrameworkKind().status(state, frameworks.framework())
    assert (status["state"], status["transitionTime"], status["completionTime"]) == ("AttemptCompleted", NOW, None)
    assert status["retryPolicyStatus"] == {
        "totalRetriedCount": 1, "accountableRetriedCount": 0, "retryDelaySec": 61,
    }  # fmt: skip
    attempt = status["attemptStatus"]
    assert (attempt["id"], attempt["configMapName"], attempt["instanceUID"]) == (1, "sample-attempt", "1_j1.1")
    assert attempt["completionStatus"]["trigger"] == {
        "message": "1 of worker's tasks failed, and minFailed is 1", "taskRoleName": "worker", "taskIndex": 1,
    }  # fmt: skip
    workers, servers = attempt["taskRoleStatuses"]
    assert servers == {"name": "ps", "taskStatuses": []}
    waiting, ended = workers["taskStatuses"]
    assert (waiting["index"], waiting["attemptStatus"]["podName"]) == (0, None)
    assert (ended["attemptStatus"]["podNodeName"], ended["attemptStatus"]["podIP"]) == ("node1", "10.0.0.7")
    assert ended["attemptStatus"]["completionStatus"] == {
        "code": 201, "phrase": "ContainerTransientConflictFailed", "diagnostics": "lost",
        "type": {"name": "Failed", "attributes": ["Transient", "Conflict"]},
    }  # fmt: skip


def test_ten_thousand_tasks_are_packed_into_what_a_cluster_takes() -> None:
    def status(count: int) -> dict[str, Any]:
        tasks = tuple(
            TaskState(
                "worker", at, "completed", attempt_id=f"1m811nmfq099e.0.worker.{at}.0", node=f"kubernetes/node-{at % 500}",
                host=f"10.{at // 65536}.{at // 256 % 256}.{at % 256}", created_at=f"2026-11-22T07:{at % 60:02}:00.000Z",
                exit_code=at % 256, exit_phrase="ContainerUnrecognizedFailed", exit_message=f"it ended with {at % 256}",
            )
            for at in range(count)
        )  # fmt: skip
        told = ObjectState(job="j1", state="running", roles=(RoleState("worker"),), tasks=tasks)
        found: dict[str, Any] = FrameworkKind().status(told, frameworks.framework())
        return found

    many = status(10_000)
    assert len(json.dumps(many)) < 1_000_000
    assert many == status(10_000)
    assert many["attemptStatus"]["taskRoleStatuses"] is None
    (worker,) = json.loads(gzip.decompress(base64.b64decode(many["attemptStatus"]["taskRoleStatusesCompressed"])))
    (few,) = status(500)["attemptStatus"]["taskRoleStatuses"]
    assert "taskRoleStatusesCompressed" not in status(500)["attemptStatus"]
    assert len(worker["taskStatuses"]) == 10_000
    assert worker["taskStatuses"][:500] == few["taskStatuses"]


def test_the_time_of_a_state_stays_while_the_state_does() -> None:
    document = frameworks.framework() | {"status": {"state": "AttemptRunning", "transitionTime": "t5"}}
    state = ObjectState(job="j1", state="running")
    assert FrameworkKind().status(state, document)["transitionTime"] == "t5"
    assert FrameworkKind().status(ObjectState(job="j1", state="deleting"), document)["transitionTime"] == NOW


@given(st.sampled_from(["a", "b"]), st.integers(0, 3))
def test_a_status_that_was_written_is_told_again_as_it_is(name: str, attempt: int) -> None:
    state = ObjectState(job=name, state="running", phase="running", attempt=attempt, conditions=(REFUSED,))
    for kind, document in ((FrameworkKind(), frameworks.framework()), (AlnairKind(), alnair.document())):
        first = yaml.safe_load(yaml.safe_dump(kind.status(state, document)).replace(NOW, "t1"))
        assert kind.status(state, {**document, "status": first}) == first


def test_every_kind_has_its_definition_and_every_definition_its_file() -> None:
    names = {each["metadata"]["name"] for each in definitions().values()}
    assert names == {kind.title for each in dialects() for kind in each.object_kinds()}
    for path, text in definition_files().items():
        assert (EXAMPLES.parent / "docs" / path).read_text() == text


def parts(part: dict[str, Any]) -> Any:
    yield part
    for inner in part.get("properties", {}).values():
        yield from parts(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            yield from parts(part[key])


def test_definitions_are_structural() -> None:
    for definition in definitions().values():
        (version,) = definition["spec"]["versions"]
        for part in parts(version["schema"]["openAPIV3Schema"]):
            assert isinstance(part.get("type"), str)
