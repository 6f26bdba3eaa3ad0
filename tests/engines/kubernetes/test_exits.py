"""Every end of a pod, or failure to start, maps to one code of the exit table."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.pods.exit_codes import pod_exit, start_failure
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.model.exits import classify
from corral.model.outcome import ExitClass

T0, T1, T2 = "2026-11-21T20:00:00Z", "2026-11-21T20:00:05Z", "2026-11-21T20:00:09Z"
T, P, U, C = ExitClass.TRANSIENT, ExitClass.PERMANENT, ExitClass.UNKNOWN, ExitClass.CONFLICT


def ended(name: str, code: int, reason: str = "Error", at: str = T1, **extra: Any) -> dict[str, Any]:
    state = {"exitCode": code, "reason": reason, "startedAt": T0, "finishedAt": at, **extra}
    return {"name": name, "state": {"terminated": state}, "lastState": {}, "restartCount": 0}


def pod(phase: str, *containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": {"phase": phase, "containerStatuses": list(containers), **status}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod("Pending", {"name": "task", "state": state, "lastState": {}, "restartCount": 0})


def disrupted(reason: str, message: str = "") -> list[dict[str, Any]]:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return [{"type": "Ready", "status": "False"}, condition]


def read(document: dict[str, Any]) -> Pod:
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
OVER = "Pod ephemeral local storage usage exceeds the total limit of containers 256Gi. "
PRESSURE = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 2Mi. Container task was using "
    "9Gi, request is 0, has larger consumption of ephemeral-storage. "
)
NO_PROGRAM = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable "
    'to start container process: error during container init: exec: "trian": executable file not found in $PATH: unknown'
)
NOT_EXECUTABLE = NO_PROGRAM.replace('"trian": executable file not found in $PATH', '"/x": permission denied')
NO_GPU = "nvidia-container-cli: device error: GPU-1: unknown device: unknown"

ENDS = {
    # name: (pod, gone, code, class, words of the reason)
    "succeeded": (pod("Succeeded", ended("task", 0, "Completed")), False, 0, ExitClass.SUCCEEDED, ""),
    "the program's own code": (pod("Failed", ended("task", 3)), False, 3, U, ""),
    "a last word that nobody can read": (
        pod("Failed", ended("task", 1, message='{"a":' + "[" * 4_000)),
        False,
        1,
        U,
        "container task: Error: {",
    ),
    "not found by a shell": (pod("Failed", ended("task", 127)), False, 127, U, ""),
    "a code that a shell cannot give": (pod("Failed", ended("task", 70000)), False, 255, U, ""),
    "killed by a signal": (pod("Failed", ended("task", 139)), False, 139, U, ""),
    "a signal without a code": (pod("Failed", ended("task", 0, signal=15)), False, 143, T, ""),
    "out of memory": (pod("Failed", ended("task", 137, "OOMKilled")), False, -1200, P, "container task: OOMKilled"),
    "a child out of memory": (pod("Failed", ended("task", 1, "OOMKilled")), False, -1200, P, "OOMKilled"),
    "out of memory before the task": (
        pod("Failed", initContainerStatuses=[ended("stage-in", 137, "OOMKilled")]),
        False,
        -1300,
        T,
        "container stage-in",
    ),
    "an init container that failed": (pod("Failed", initContainerStatuses=[ended("stage-in", 4)]), False, 4, U, ""),
    "evicted": (
        pod("Failed", reason="Evicted", message="The node was low on resource: ephemeral-storage."),
        False,
        -1000,
        T,
        "Evicted: The node was low on resource",
    ),
    "evicted while it ran": (
        pod("Failed", ended("task", 137), reason="Evicted", message="low on memory"),
        False,
        -1000,
        T,
        "Evicted",
    ),
    "wrote more than the pod may": (
        pod("Failed", ended("task", 137), reason="Evicted", message=OVER),
        False,
        220,
        P,
        "containers 256Gi. Put large results on a storage",
    ),
    "wrote more than its container may": (
        pod("Failed", reason="Evicted", message='Container task exceeded its local ephemeral storage limit "1Gi". '),
        False,
        220,
        P,
        'storage limit "1Gi". Put large results on a storage, or reserve more disk.',
    ),
    "put too much into its shared memory": (
        pod("Failed", reason="Evicted", message='Usage of EmptyDir volume "shm" exceeds the limit "1Gi". '),
        False,
        220,
        P,
        'Evicted: Usage of EmptyDir volume "shm" exceeds the limit "1Gi".',
    ),
    "being evicted for what it wrote": (
        pod("Running", ended("task", 137), conditions=disrupted("TerminationByKubelet", OVER)),
        True,
        220,
        P,
        "TerminationByKubelet: Pod ephemeral",
    ),
    "evicted while it wrote most": (
        pod("Failed", reason="Evicted", message=PRESSURE),
        False,
        -1000,
        T,
        "larger consumption of ephemeral-storage",
    ),
    "node lost": (pod("Failed", reason="NodeLost", message="Node n1 is gone"), False, -1001, T, "NodeLost"),
    "node shut down": (
        pod("Failed", ended("task", 143), reason="Terminated", message=SHUTDOWN),
        False,
        -1001,
        T,
        SHUTDOWN,
    ),
    "node shutting down": (
        pod("Failed", reason="NodeShutdown", message="Pod was rejected as the node is shutting down."),
        False,
        -1001,
        T,
        "NodeShutdown",
    ),
    "collected with its node": (
        pod("Failed", conditions=disrupted("DeletionByPodGC", "PodGC: node no longer exists")),
        False,
        -1001,
        T,
        "DeletionByPodGC: PodGC: node no longer exists",
    ),
    "unreachable node": (
        pod(
            "Running", conditions=disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        ),
        True,
        -1001,
        T,
        "DeletionByTaintManager",
    ),
    "a container nobody found again": (
        pod("Failed", ended("task", 137, "ContainerStatusUnknown", message="could not be located")),
        False,
        -1001,
        T,
        "ContainerStatusUnknown",
    ),
    "no processors left": (
        pod("Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu, requested: 100000"),
        False,
        -1002,
        T,
        "OutOfcpu",
    ),
    "no devices left": (
        pod("Failed", reason="OutOfnvidia.com/gpu", message="…"),
        False,
        -1002,
        T,
        "OutOfnvidia.com/gpu",
    ),
    "too many pods": (pod("Failed", reason="OutOfpods", message="…"), False, -1002, T, "OutOfpods"),
    "preempted by the kubelet": (
        pod("Failed", ended("task", 137), reason="Preempting", message="Preempted in order to admit critical pod"),
        False,
        -1003,
        T,
        "Preempting",
    ),
    "preempted by kube-scheduler": (
        pod("Running", conditions=disrupted("PreemptionByScheduler", "default-scheduler: preempting")),
        True,
        -1003,
        T,
        "PreemptionByScheduler",
    ),
    "evicted over the API": (
        pod("Failed", ended("task", 143), conditions=disrupted("EvictionByEvictionAPI", "Eviction API: evicting")),
        False,
        -1000,
        T,
        "EvictionByEvictionAPI",
    ),
    "failed by itself while being evicted": (
        pod("Failed", ended("task", 3), conditions=disrupted("EvictionByEvictionAPI")),
        False,
        3,
        U,
        "",
    ),
    "past its deadline": (
        pod(
            "Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"
        ),
        False,
        -1004,
        P,
        "DeadlineExceeded",
    ),
    "forbidden by the kubelet": (
        pod("Failed", reason="SysctlForbidden", message="…"),
        False,
        -1005,
        P,
        "SysctlForbidden",
    ),
    "devices gone at admission": (
        pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed due to no healthy devices present"),
        False,
        -1006,
        T,
        "UnexpectedAdmissionError",
    ),
    "no room in one NUMA node": (
        pod("Failed", reason="TopologyAffinityError"),
        False,
        -1006,
        T,
        "TopologyAffinityError",
    ),
    "node affinity changed": (pod("Failed", reason="NodeAffinity"), False, -1006, T, "NodeAffinity"),
    "no such program": (pod("Failed", ended("task", 128, "StartError", message=NO_PROGRAM)), False, -1203, P, "trian"),
    "not executable": (
        pod("Failed", ended("task", 128, "StartError", message=NOT_EXECUTABLE)),
        False,
        -1202,
        P,
        "denied",
    ),
    "device not found": (pod("Failed", ended("task", 128, "StartError", message=NO_GPU)), False, -1205, T, "GPU-1"),
    "start failed otherwise": (
        pod("Failed", ended("task", 128, "StartError", message="boom")),
        False,
        -1204,
        U,
        "boom",
    ),
    "docker's 125": (pod("Failed", ended("task", 125, "ContainerCannotRun")), False, -1201, U, "ContainerCannotRun"),
    "docker's 126": (pod("Failed", ended("task", 126, "ContainerCannotRun")), False, -1202, P, "ContainerCannotRun"),
    "docker's 127": (pod("Failed", ended("task", 127, "ContainerCannotRun")), False, -1203, P, "ContainerCannotRun"),
    "failed without a container": (pod("Failed"), False, -300, U, "no container failed"),
    "deleted by hand": (pod("Running"), True, -101, T, "the pod was deleted outside Corral"),
    "deleted before it started": (pod("Pending"), True, -101, T, "deleted outside Corral"),
    "deleted after it had failed": (pod("Failed", ended("task", 5)), True, 5, U, ""),
    "deleted when its work was done": (pod("Running", ended("task", 0, "Completed")), True, 0, ExitClass.SUCCEEDED, ""),
    "the container that failed last counts": (
        pod("Failed", ended("task", 3, at=T1), ended("side", 4, at=T2)),
        False,
        4,
        U,
        "",
    ),
    "of two at once the first counts": (pod("Failed", ended("task", 3), ended("side", 143)), False, 3, U, ""),
    "what succeeded later does not count": (pod("Failed", ended("task", 3), ended("side", 0, at=T2)), False, 3, U, ""),
}


@pytest.mark.parametrize("case", ENDS)
def test_an_end_is_a_code_a_class_and_what_was_seen(case: str) -> None:
    document, gone, code, exit_class, words = ENDS[case]
    found = pod_exit(read(document), gone=gone)
    assert found is not None
    assert found.code == code
    assert classify(found.code, found.reason).exit_class is exit_class
    assert words in found.reason if words else not found.reason


def test_a_sidecar_that_kubernetes_ends_last_says_nothing_about_the_task() -> None:
    document = pod("Failed", ended("task", 3), initContainerStatuses=[ended("stage-out", 143, at=T2)])
    document["spec"] = {"initContainers": [{"name": "stage-out", "restartPolicy": "Always"}]}
    found = pod_exit(read(document))
    assert found is not None and (found.code, found.at) == (3, 1795291205.0)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", ""])
def test_a_pod_that_is_there_and_not_over_has_no_end(phase: str) -> None:
    assert pod_exit(read(pod(phase, ended("task", 3)))) is None


def test_a_signal_is_told_and_when_it_came() -> None:
    found = pod_exit(read(pod("Failed", ended("task", 139, at=T2))))
    assert found is not None and (found.signal, found.at) == (11, 1795291209.0)


def test_no_message_grows_without_bound() -> None:
    found = pod_exit(read(pod("Failed", reason="Evicted", message="x " * 100_000)))
    assert found is not None and len(found.reason) == 1_000


MISSING = 'failed to pull and unpack image "r/x:1": failed to resolve reference "r/x:1": r/x:1: not found'
DENIED = (
    "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope"
)
NO_ROUTE = 'failed to do request: Head "https://r/v2/x/manifests/1": dial tcp 10.0.0.9:443: i/o timeout'
NO_SECRET = 'secret "job-secret" not found'


@pytest.mark.parametrize(
    ("reason", "message", "code", "certain"),
    [
        ("ErrImagePull", MISSING, 254, True),
        ("ImagePullBackOff", f'Back-off pulling image "r/x:1": ErrImagePull: {MISSING}', 254, True),
        ("ErrImagePull", DENIED, 254, True),
        ("ErrImagePull", NO_ROUTE, -111, False),
        ("ImagePullBackOff", "Back-off pulling image", -111, False),
        ("InvalidImageName", 'couldn\'t parse image name "A B"', 254, True),
        ("ErrImageNeverPull", "Container image is not present with pull policy of Never", 254, True),
        ("CreateContainerConfigError", NO_SECRET, -1201, False),
        ("CreateContainerError", "context deadline exceeded", -1201, False),
    ],
)
def test_what_keeps_a_pod_from_starting_is_told_and_whether_waiting_may_help(
    reason: str, message: str, code: int, certain: bool
) -> None:
    found = start_failure(read(waiting(reason, message)))
    assert found is not None
    assert (found.code, found.certain) == (code, certain)
    assert found.reason == f"{reason}: {message}"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_a_pod_that_is_being_made_is_not_hindered(reason: str) -> None:
    assert start_failure(read(waiting(reason))) is None
    assert start_failure(read(pod("Running"))) is None
