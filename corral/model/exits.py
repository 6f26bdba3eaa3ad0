"""The exit table: what each code means, and whether the attempt is retried.

Source: Microsoft's `k8s-job-exit-spec.yaml` (62 codes); the three codes by which a program classifies its own failure are
FrameworkController's (200, 201, 210).
"""

from __future__ import annotations

from typing import Final

import msgspec

from corral.model.outcome import Completion, ExitClass
from corral.runtime.error_block import START, told_code

_TABLE: Final = """
0 Succeeded USER_CONTAINER USER_CONTAINER USER_SUCCESS COMPLETING UNKNOWN
-100 ConfigMapExternalDeleted PAI_FC PAI_UNKNOWN PLATFORM_FAILURE UNKNOWN TRANSIENT
-101 PodExternalDeleted PAI_FC PAI_UNKNOWN PLATFORM_FAILURE UNKNOWN TRANSIENT
-110 ConfigMapLocalCacheCreationTimeout PAI_FC PAI_UNKNOWN PLATFORM_FAILURE LAUNCHING TRANSIENT
-111 PodLocalCacheCreationTimeout PAI_FC PAI_UNKNOWN PLATFORM_FAILURE LAUNCHING TRANSIENT
-120 PodCreationTransientError PAI_FC PAI_UNKNOWN PLATFORM_FAILURE LAUNCHING TRANSIENT
-200 PodCreationPermanentError PAI_FC USER_SUBMISSION USER_FAILURE SUBMITTING PERMANENT
-210 StopFrameworkRequested PAI_FC USER_STOP USER_STOP UNKNOWN PERMANENT
-220 FrameworkAttemptCompletion PAI_FC USER_STOP USER_STOP UNKNOWN PERMANENT
-230 DeleteTaskRequested PAI_FC USER_SCALEDOWN USER_STOP UNKNOWN PERMANENT
-300 PodFailedWithoutFailedContainer PAI_FC UNKNOWN UNKNOWN_FAILURE LAUNCHING UNKNOWN
-310 PodCreationUnknownError PAI_FC UNKNOWN UNKNOWN_FAILURE LAUNCHING UNKNOWN
-1000 PodEvicted PAI_K8S PAI_K8S PLATFORM_FAILURE RUNNING TRANSIENT
-1001 PodNodeLost PAI_K8S PAI_K8S PLATFORM_FAILURE RUNNING TRANSIENT
-1002 PodScheduledToInsufficientResourceNode PAI_K8S PAI_K8S PLATFORM_FAILURE LAUNCHING TRANSIENT
-1003 PodPreemptedForCriticalPod PAI_K8S PAI_K8S PLATFORM_FAILURE RUNNING TRANSIENT
-1004 PodDeadlineExceeded PAI_K8S USER_STOP USER_STOP RUNNING PERMANENT
-1005 PodNodeAdmissionForbidden PAI_K8S USER_SUBMISSION USER_FAILURE LAUNCHING PERMANENT
-1006 PodNodeAdmissionUnexpectedError PAI_K8S PAI_K8S PLATFORM_FAILURE LAUNCHING TRANSIENT
-1100 CreateFrameworkPermanentFailed PAI_DB_CONTROLLER USER_SUBMISSION USER_FAILURE SUBMITTING PERMANENT
-1300 InitContainerDockerOOMKilled PAI_DOCKER PAI_RUNTIME PLATFORM_FAILURE LAUNCHING TRANSIENT
-1200 UserContainerDockerOOMKilled PAI_DOCKER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
-1201 ContainerDockerCreationError PAI_DOCKER UNKNOWN UNKNOWN_FAILURE LAUNCHING UNKNOWN
-1202 ContainerDockerStartCmdPermissionDenied PAI_DOCKER PAI_RUNTIME PLATFORM_FAILURE LAUNCHING PERMANENT
-1203 ContainerDockerStartCmdNotFound PAI_DOCKER PAI_RUNTIME PLATFORM_FAILURE LAUNCHING PERMANENT
-1204 ContainerDockerStartUnknownError PAI_DOCKER UNKNOWN UNKNOWN_FAILURE LAUNCHING UNKNOWN
-1205 ContainerGpuDeviceNotFoundError PAI_DOCKER PAI_HW PLATFORM_FAILURE LAUNCHING TRANSIENT
128 ContainerMayFailDueToGpuDeviceEccError USER_CONTAINER PAI_HW PLATFORM_FAILURE RUNNING UNKNOWN
130 ContainerSigIntReceived PAI_OS PAI_OS PLATFORM_FAILURE RUNNING TRANSIENT
131 ContainerSigQuitReceived PAI_OS PAI_OS PLATFORM_FAILURE RUNNING TRANSIENT
132 ContainerSigIllReceived USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
134 ContainerSigAbrtReceived USER_CONTAINER UNKNOWN UNKNOWN_FAILURE RUNNING UNKNOWN
135 ContainerSigBusReceived USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
136 ContainerSigFpeReceived USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
137 ContainerSigKillReceived PAI_OS PAI_OS PLATFORM_FAILURE RUNNING TRANSIENT
139 ContainerSigSegvReceived USER_CONTAINER UNKNOWN UNKNOWN_FAILURE RUNNING UNKNOWN
141 ContainerSigPipeReceived USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
143 ContainerSigTermReceived PAI_OS PAI_OS PLATFORM_FAILURE RUNNING TRANSIENT
220 UserCommandExitWithError USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
221 ContainerTensorflowOOMKilled PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
222 ContainerMPISegvFault PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
223 ContainerCudaUncorrectableECCError PAI_RUNTIME PAI_HW PLATFORM_FAILURE RUNNING TRANSIENT
224 ContainerCudaVersionMismatch PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
225 ContainerCudaDnnVersionMismatch PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
226 ContainerCudaOOMKilled PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
228 ContainerIncorrectParameterError PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
229 ContainerIncorrectDataModelError PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
230 ContainerInvalidSavePath PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
231 ContainerSyntaxError PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
232 ContainerImportError PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
233 ContainerIndexOutOfRange PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
234 ContainerSigvFault PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
235 ContainerEngineCoreDump PAI_RUNTIME USER_CONTAINER USER_FAILURE RUNNING PERMANENT
249 PAIRuntimeSSHBarrierTimeout PAI_RUNTIME PAI_RUNTIME PLATFORM_FAILURE RUNNING PERMANENT
250 FrameworkBarrierTransientFailed PAI_RUNTIME PAI_RUNTIME PLATFORM_FAILURE LAUNCHING TRANSIENT
251 JobGangAllocationTimeout PAI_RUNTIME RESOURCE_ALLOCATION_TIMEOUT \
RESOURCE_ALLOCATION_TIMEOUT ALLOCATING TRANSIENT_CONFLICT
252 FrameworkBarrierPermanentFailed PAI_RUNTIME PAI_RUNTIME PLATFORM_FAILURE LAUNCHING PERMANENT
253 ContainerPortConflict PAI_RUNTIME PAI_RUNTIME PLATFORM_FAILURE LAUNCHING TRANSIENT
254 ContainerImageNotExists PAI_RUNTIME PAI_RUNTIME USER_FAILURE LAUNCHING PERMANENT
255 PAIRuntimeUnknownFailed PAI_RUNTIME UNKNOWN UNKNOWN_FAILURE UNKNOWN UNKNOWN
-8000 ContainerUndefinedNegativeExitCode UNKNOWN UNKNOWN UNKNOWN_FAILURE UNKNOWN UNKNOWN
256 PAIRuntimeExitAbnormally PAI_RUNTIME PAI_RUNTIME PLATFORM_FAILURE UNKNOWN UNKNOWN
"""
"""One row per code: code, phrase, issuer, causer, type, stage, behavior."""

_RESERVED: Final = """
200 ContainerTransientFailed USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING TRANSIENT
201 ContainerTransientConflictFailed USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING TRANSIENT_CONFLICT
210 ContainerPermanentFailed USER_CONTAINER USER_CONTAINER USER_FAILURE RUNNING PERMANENT
"""
"""Exit codes by which a program classifies its own failure."""

SUCCEEDED: Final = 0
EXTERNALLY_DELETED: Final = -101
START_TIMED_OUT: Final = -111
START_FAILED_TRANSIENTLY: Final = -120
START_FAILED: Final = -200
STOP_REQUESTED: Final = -210
ATTEMPT_COMPLETED: Final = -220
DELETE_TASK_REQUESTED: Final = -230
NODE_LOST: Final = -1001
PREEMPTED: Final = -1003
MIGRATED: Final = "ContainerMigrateTaskRequested"
"""FrameworkLauncher's phrase for a task that ends to be migrated; its code is `PREEMPTED`."""
PREEMPTED_PHRASE: Final = "Preempted"
"""The phrase of an end by `PREEMPTED` that makes room for other jobs."""
DEADLINE_EXCEEDED: Final = -1004
OUT_OF_MEMORY: Final = -1200
"""The task was killed for taking more memory than its limit."""
USER_ERROR: Final = 220
"""The task failed by its own fault; also a limit that it exceeded."""
GANG_TIMED_OUT: Final = 251
"""Not all tasks of an attempt started in time. Engines also use it if the cluster refuses a task for now."""
UNDEFINED_POSITIVE: Final = 256
UNDEFINED_NEGATIVE: Final = -8000

NEVER_RETRIED: Final = frozenset({STOP_REQUESTED, ATTEMPT_COMPLETED, DELETE_TASK_REQUESTED})
"""Requested ends, which no retry policy retries."""

_CLASSES: Final = {
    "TRANSIENT": ExitClass.TRANSIENT,
    "TRANSIENT_CONFLICT": ExitClass.CONFLICT,
    "PERMANENT": ExitClass.PERMANENT,
    "UNKNOWN": ExitClass.UNKNOWN,
}
_REACTIONS: Final = {
    "TRANSIENT": "ALWAYS_RETRY",
    "TRANSIENT_CONFLICT": "ALWAYS_BACKOFF_RETRY",
    "PERMANENT": "NEVER_RETRY",
    "UNKNOWN": "RETRY_TO_MAX",
}
_ELSEWHERE: Final = frozenset({"PAI_K8S", "PAI_HW"})


class ExitSpec(msgspec.Struct, frozen=True):
    """One row of the table, in the terms of its source."""

    code: int
    phrase: str
    issuer: str
    """The component that reported the end."""
    causer: str
    """The component that caused the end."""
    type: str
    """`USER_FAILURE`, `PLATFORM_FAILURE`, `USER_STOP`, …"""
    stage: str
    behavior: str

    @property
    def reaction(self) -> str:
        """The retry reaction: one per behavior, and never a retry after success."""
        return "NEVER_RETRY" if self.code == SUCCEEDED else _REACTIONS[self.behavior]

    @property
    def exit_class(self) -> ExitClass:
        """The retry class of the code."""
        return ExitClass.SUCCEEDED if self.code == SUCCEEDED else _CLASSES[self.behavior]

    @property
    def node_at_fault(self) -> bool:
        """Whether the machine caused the end, so that a retry should use another one."""
        return self.causer in _ELSEWHERE


def _read(table: str) -> dict[int, ExitSpec]:
    rows = (line.split() for line in table.strip().splitlines())
    return {int(code): ExitSpec(int(code), *words) for code, *words in rows}


EXIT_SPECS: Final[dict[int, ExitSpec]] = _read(_TABLE)
"""The table's 62 codes."""

RESERVED_SPECS: Final[dict[int, ExitSpec]] = _read(_RESERVED)
"""The three codes by which a program classifies its own failure."""

_USER_ERROR: Final = "UserCommandExitWithError"

_OWN_PHRASES: Final = {
    STOP_REQUESTED: "StopRequested",
    ATTEMPT_COMPLETED: "JobAttemptEnded",
    DELETE_TASK_REQUESTED: "ScaledDown",
}
"""Corral's phrases for requested ends, of which the table's name FrameworkController's objects."""


_HINTS: Final = {
    126: "the command was found and could not be executed: is it marked as executable?",
    127: "the command was not found: is it installed, and on the PATH of the task?",
}
"""The POSIX shell's meaning of these codes, used as diagnostics if the task left none."""


def exit_spec(code: int) -> ExitSpec:
    """The row of `code`; a code without a row gets that of 256 (positive) or -8000 (negative)."""
    found = EXIT_SPECS.get(code) or RESERVED_SPECS.get(code)
    return found or EXIT_SPECS[UNDEFINED_POSITIVE if code > 0 else UNDEFINED_NEGATIVE]


def own_phrase(code: int, phrase: str) -> str:
    """The phrase by which Corral's API and pages call an end that was stored with `phrase`."""
    known = _OWN_PHRASES.get(code)
    return known if known is not None and phrase == EXIT_SPECS[code].phrase else phrase


def table_phrase(code: int, phrase: str) -> str:
    """The reverse of `own_phrase`, for other systems' objects."""
    return EXIT_SPECS[code].phrase if phrase == _OWN_PHRASES.get(code) else phrase


def preempted(why: str) -> Completion:
    """The completion of an attempt that was preempted."""
    return Completion(PREEMPTED, PREEMPTED_PHRASE, ExitClass.TRANSIENT, why)


def classify(code: int, diagnostics: str = "") -> Completion:
    """The completion of an attempt that ended with `code`.

    The code is kept unchanged. A positive code without a row is an unknown failure of the program (the retry budget of
    255, the phrase of 220); a negative one is classified as -8000. If the diagnostics of a positive code without a row
    contain an error block, the retry class is that of the code in the block: never retried after 220.
    """
    spec = exit_spec(code)
    undefined = spec.code == UNDEFINED_POSITIVE != code
    reacted = exit_spec(told_code(code, diagnostics)) if undefined and START in diagnostics else spec
    phrase = _USER_ERROR if undefined else spec.phrase
    return Completion(code, phrase, reacted.exit_class, diagnostics or _HINTS.get(code, ""))
