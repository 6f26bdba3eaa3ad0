"""Map each way in which a pod can end to one code of the exit table, on which retries depend.

Sources: FrameworkController's default `podFailureSpec`, -1300 of the exit table, the reasons that kubelet
and controllers of Kubernetes 1.34 write (kubelet's `lifecycle`, `eviction`, `preemption` and `nodeshutdown` packages,
the condition `DisruptionTarget`), containerd's `StartError`. The pod's own reason comes first, then a disruption that
killed its containers, then the container that failed last. A program's own exit code stays the same on every engine.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from corral.engines.kubernetes.pods.sidecar import CONTAINER, OUTPUTS
from corral.engines.kubernetes.watch.pod_structs import ContainerStatus, Pod, Terminated, seconds
from corral.model.exits import (
    DEADLINE_EXCEEDED,
    EXTERNALLY_DELETED,
    NODE_LOST,
    OUT_OF_MEMORY,
    PREEMPTED,
    START_TIMED_OUT,
    USER_ERROR,
)
from corral.runtime.error_block import RuntimeFault, container_code, error_block
from corral.runtime.patterns import recognise

EVICTED: Final = -1000
OUT_OF_RESOURCES: Final = -1002
ADMISSION_FORBIDDEN: Final = -1005
ADMISSION_FAILED: Final = -1006
INIT_OUT_OF_MEMORY: Final = -1300
CREATION_FAILED, START_DENIED, START_NOT_FOUND, START_FAILED, NO_DEVICE = -1201, -1202, -1203, -1204, -1205
NO_FAILED_CONTAINER: Final = -300
NO_IMAGE: Final = 254
RUNTIME_FAILED: Final = 255

MOST_REASON: Final = 1_000
_MOST_TOLD: Final = 4_000
"""Characters of a message from Corral's own runtime: an error block may follow the sentence."""
_KILLED: Final = frozenset({137, 143})

_TOO_MUCH: Final = (
    r"exceeded its local ephemeral storage limit|ephemeral local storage usage exceeds the total limit"
    r"|Usage of EmptyDir volume .* exceeds the limit"
)
"""The kubelet eviction manager's messages for a pod that wrote too much. Those for a node's pressure differ."""

_POD_REASONS: Final = (
    (r"Evicted", EVICTED),
    (r"NodeLost|NodeShutdown|Shutdown|Terminated", NODE_LOST),
    (r"OutOf.*", OUT_OF_RESOURCES),
    (r"Preempting", PREEMPTED),
    (r"DeadlineExceeded", DEADLINE_EXCEEDED),
    (
        r"Forbidden|SysctlForbidden|InitContainerRestartPolicyForbidden|PodOS.*|.*NotSupported|AppArmor",
        ADMISSION_FORBIDDEN,
    ),
    (r"Unexpected.*|.*AffinityError|SMTAlignmentError|InvalidNodeInfo|Unknown.*", ADMISSION_FAILED),
    (r"NodeAffinity|NodePorts|NodeName|NodeUnschedulable|TaintToleration", ADMISSION_FAILED),
)
"""Patterns of the pod's whole `status.reason`, and the code."""

_DISRUPTIONS: Final = (
    (r"TerminationByKubelet", _TOO_MUCH, USER_ERROR),
    (r"TerminationByKubelet", r"critical pod", PREEMPTED),
    (r"TerminationByKubelet", r"shutdown", NODE_LOST),
    (r"TerminationByKubelet|EvictionByEvictionAPI", r"", EVICTED),
    (r"DeletionByTaintManager|DeletionByPodGC", r"", NODE_LOST),
    (r"PreemptionBy.*", r"", PREEMPTED),
)
"""Patterns of the reason and message of the condition DisruptionTarget, and the code."""

_START_ERRORS: Final = (
    (r"executable file not found|no such file or directory", START_NOT_FOUND),
    (r"permission denied|exec format error|is a directory", START_DENIED),
    (r"nvidia-container|no such device|unresolvable CDI|failed to inject devices|/dev/", NO_DEVICE),
    (r"", START_FAILED),
)
"""Patterns of the container runtime's message for a program that did not start, and the code."""

_NEVER_STARTED: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError"})
_BY_DOCKER: Final = {125: CREATION_FAILED, 126: START_DENIED, 127: START_NOT_FOUND}
_NO_SUCH_IMAGE: Final = re.compile(
    r"not found|manifest unknown|does not exist|repository .* unknown|unauthorized|denied|forbidden|invalid reference",
    re.IGNORECASE,
)


class PodExit(NamedTuple):
    """The end of a pod."""

    code: int
    """0–255, or a negative code of the exit table."""
    reason: str
    """The cause, in Kubernetes' own words."""
    signal: int = 0
    at: float | None = None
    """Seconds since 1970 by the node's clock; None when unknown."""


class StartFailure(NamedTuple):
    """Why a pod does not start."""

    code: int
    """The exit code if the pod is ended for this."""
    reason: str
    certain: bool
    """Whether waiting cannot help."""


def pod_exit(pod: Pod, *, gone: bool = False) -> PodExit | None:
    """Return the pod's end, or None while it runs. `gone`: it was deleted and this is its last known state."""
    status = pod.status
    if status.phase == "Succeeded" or (gone and _all_succeeded(pod)):
        return _lost_outputs(pod) or PodExit(0, "", at=_ended(pod))
    if status.phase != "Failed" and not gone:
        return None
    if status.reason == "Evicted" and re.search(_TOO_MUCH, status.message):
        return PodExit(USER_ERROR, _wrote_too_much(status.reason, status.message), at=_ended(pod))
    for pattern, code in _POD_REASONS:
        if status.reason and re.fullmatch(pattern, status.reason):
            return PodExit(code, _sentence(status.reason, status.message), at=_ended(pod))
    failed = _failed_last(pod)
    disrupted = _disruption(pod)
    if disrupted and (failed is None or failed[1].exit_code in _KILLED):
        return PodExit(*disrupted, at=_ended(pod))
    if failed is not None:
        return _container_exit(*failed)
    if status.phase == "Failed":
        return PodExit(
            NO_FAILED_CONTAINER, _sentence(status.reason or "no container failed", status.message), at=_ended(pod)
        )
    return PodExit(EXTERNALLY_DELETED, "the pod was deleted outside Corral")


def start_failure(pod: Pod) -> StartFailure | None:
    """Return why the pod's containers wait, or None if they wait for nothing but their creation."""
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = container.state.waiting
        if waiting is None:
            continue
        said = _sentence(waiting.reason, waiting.message)
        if waiting.reason in {"InvalidImageName", "ErrImageNeverPull"}:
            return StartFailure(NO_IMAGE, said, certain=True)
        if waiting.reason in {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"}:
            missing = _NO_SUCH_IMAGE.search(waiting.message) is not None
            return StartFailure(NO_IMAGE if missing else START_TIMED_OUT, said, certain=missing)
        if waiting.reason in {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}:
            return StartFailure(CREATION_FAILED, said, certain=False)
    return None


def _all_succeeded(pod: Pod) -> bool:
    """Return whether all containers succeeded, although nothing recorded the pod as succeeded."""
    ends = [container.state.terminated for container in pod.status.container_statuses]
    return bool(ends) and all(end is not None and end.exit_code == 0 and end.signal == 0 for end in ends)


def _failed_last(pod: Pod) -> tuple[str, Terminated, bool] | None:
    """Return name and end of the container that failed last, and whether it is an init container.

    Sidecars do not count: Kubernetes ends them itself after the others. Times have whole seconds; on a tie the first in
    the pod's list counts.
    """
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    ends: list[tuple[float, str, Terminated, bool]] = []
    for initial, statuses in ((False, pod.status.container_statuses), (True, pod.status.init_container_statuses)):
        for container in statuses:
            end = _end(container)
            if end is not None and (end.exit_code or end.signal) and container.name not in sidecars:
                ends.append((seconds(end.finished_at) or 0.0, container.name, end, initial))
    if not ends:
        return None
    return max(ends, key=lambda found: found[0])[1:]


def _end(container: ContainerStatus) -> Terminated | None:
    """Return the container's end. For one that waits for a restart that is its last state."""
    return container.state.terminated or (container.last_state.terminated if container.state.waiting else None)


def _container_exit(name: str, end: Terminated, initial: bool) -> PodExit:
    reported = _runtime_message(end.message)
    if reported and end.reason != "OOMKilled":
        return PodExit(end.exit_code, reported, at=seconds(end.finished_at))
    at, said = seconds(end.finished_at), _sentence(end.reason, end.message)
    code = end.exit_code
    if end.reason == "OOMKilled":
        code = INIT_OUT_OF_MEMORY if initial else OUT_OF_MEMORY
    elif end.reason == "ContainerStatusUnknown":
        code = NODE_LOST
    elif end.reason in _NEVER_STARTED:
        matching = (found for pattern, found in _START_ERRORS if re.search(pattern, end.message, re.IGNORECASE))
        code = _BY_DOCKER.get(end.exit_code) or next(matching)
    if code == end.exit_code:
        signal = end.signal or (code - 128 if 128 < code <= 159 else 0)
        code = code if 0 < code <= 255 else 128 + signal if signal else 255
        plain = end.reason in {"", "Error", "Completed"} and not end.message
        return PodExit(code, "" if plain else f"container {name}: {said}", signal, at)
    return PodExit(code, f"container {name}: {said}", end.signal, at)


def _runtime_message(message: str) -> str:
    """Return the message that Corral's runtime left as the container's termination message, "" if it left none."""
    if not message.startswith("{"):
        return ""
    try:
        return str(msgspec.json.decode(message, type=dict).get("message", ""))[:_MOST_TOLD]
    except (msgspec.DecodeError, RecursionError):  # the task may have written anything
        return ""


def explained(end: PodExit, log: bytes, *, block: bool = False) -> PodExit:
    """Return the end with the known fault that the log's last bytes show, or unchanged without one.

    With `block`, the error block that programs read follows the sentence, whether or not a fault is known.
    """
    if not 0 < end.code <= 255 or end.reason:
        return end
    match, said = recognise(end.code, log), f"the command ended with {end.code}"
    fault = RuntimeFault(container_code(end.code, log.decode("utf-8", "replace")), user_exit_code=end.code)
    found = end
    if match is not None:
        said = f"{said}; its log says: {match.line}"
        fault = RuntimeFault(match.code, match.phrase, end.code, match.line)
        found = PodExit(match.code, said, at=end.at)
    return found._replace(reason=f"{said}\n{error_block(fault)}") if block else found


def _lost_outputs(pod: Pod) -> PodExit | None:
    """Return the end of a task that succeeded but whose outputs were not moved; None if they were."""
    if OUTPUTS not in pod.metadata.labels:
        return None
    ends = [_end(container) for container in pod.status.init_container_statuses if container.name == CONTAINER]
    end = ends[0] if ends else None
    if end is not None and not end.exit_code and not end.signal:
        return None
    cut = "the container that moves the outputs was ended before it had moved them all"
    reported = _runtime_message(end.message) if end is not None else ""
    return PodExit(RUNTIME_FAILED, reported or cut, at=_ended(pod))


def _disruption(pod: Pod) -> tuple[int, str] | None:
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            for reason, message, code in _DISRUPTIONS:
                if re.fullmatch(reason, condition.reason) and re.search(message, condition.message, re.IGNORECASE):
                    said = _wrote_too_much if code == USER_ERROR else _sentence
                    return code, said(condition.reason, condition.message)
    return None


def _ended(pod: Pod) -> float | None:
    ends = [_end(container) for container in (*pod.status.init_container_statuses, *pod.status.container_statuses)]
    times = [seconds(end.finished_at) for end in ends if end is not None]
    return max((time for time in times if time is not None), default=None)


def _wrote_too_much(reason: str, message: str) -> str:
    said = _sentence(reason, message)
    return said if "EmptyDir" in message else f"{said} Put large results on a storage, or reserve more disk."


def _sentence(reason: str, message: str) -> str:
    words = " ".join(message.split())
    return (f"{reason}: {words}" if reason and words else reason or words)[:MOST_REASON]
