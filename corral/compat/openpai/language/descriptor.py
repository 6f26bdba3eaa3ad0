"""Validate FrameworkLauncher's descriptors and requests, and fill in defaults.

Bounds are FrameworkLauncher's; `launcher` refuses values that exceed Corral's narrower ones. Source: FrameworkLauncher,
common/model and its validation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from corral.spec.dialects.field_reader import Fields
from corral.spec.errors import SpecError, describe
from corral.spec.retry_rules import ALWAYS
from corral.spec.yaml_source import Source

NAME: Final = re.compile(r"[A-Za-z0-9\-._~]{1,256}", re.ASCII)
NAMED: Final = "1 to 256 letters, digits, '-', '.', '_' and '~'"
USER: Final = re.compile(r"[A-Za-z0-9\-._]{1,254}", re.ASCII)
_GPU_TYPE: Final = re.compile(r"\S{1,256}")
START, STOP = "START", "STOP"
DISKS: Final = ("HDD", "SSD")
LARGEST: Final = 2**31 - 1
MOST_TASKS: Final = 50_000
MOST_WORDS: Final = 1024


def read_descriptor(data: Any) -> dict[str, Any]:
    """A FrameworkDescriptor with its defaults.

    Raises SpecError with every problem.
    """
    fields = Fields(Source("FrameworkDescriptor", data), data)
    found: dict[str, Any] = {
        "description": _words(fields),
        "version": fields.whole("version", least=-LARGEST),
        "executionType": fields.text("executionType", START, choices=(START, STOP)),
        "retryPolicy": _retries(fields.inner("retryPolicy")),
        "parentFramework": _parent(fields),
        "user": _user(fields.inner("user")),
        "taskRoles": _roles(fields),
        "platformSpecificParameters": _platform(fields.inner("platformSpecificParameters")),
    }
    fields.done()
    if fields.problems:
        raise SpecError(fields.problems)
    return found


def task_number(data: Any) -> int:
    """The number of tasks in an UpdateTaskNumberRequest.

    Raises SpecError when it is invalid.
    """
    fields = Fields(Source("UpdateTaskNumberRequest", data), data)
    return int(_single(fields, fields.whole("taskNumber", most=MOST_TASKS)))


def execution_type(data: Any) -> str:
    """The execution type in an UpdateExecutionTypeRequest.

    Raises SpecError when it is neither START nor STOP.
    """
    fields = Fields(Source("UpdateExecutionTypeRequest", data), data)
    if "executionType" not in fields:
        fields.problem(("executionType",), "missing")
    return str(_single(fields, fields.text("executionType", START, choices=(START, STOP))))


def application_progress(data: Any) -> float:
    """The progress in an OverrideApplicationProgressRequest: from 0 to 1.

    Raises SpecError when it is invalid.
    """
    fields = Fields(Source("OverrideApplicationProgressRequest", data), data)
    value = fields.take("applicationProgress")
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        fields.problem(("applicationProgress",), f"expected a number from 0 to 1, got {describe(value)}")
        value = 0
    return float(_single(fields, value))


def migrate_request(data: Any) -> dict[str, Any]:
    """A MigrateTaskRequest with its default.

    Raises SpecError when it is invalid.
    """
    fields = Fields(Source("MigrateTaskRequest", data), data)
    level = fields.text("antiAffinityLevel", "ANY", choices=("ANY",))
    return {"antiAffinityLevel": _single(fields, level)}


def cluster_configuration(data: Any) -> dict[str, Any]:
    """A ClusterConfiguration: the GPU type of each node.

    Raises SpecError when it is invalid.
    """
    fields = Fields(Source("ClusterConfiguration", data), data)
    nodes = fields.inner("nodes")
    found = {}
    for name in nodes.data:
        node = nodes.inner(name)
        found[name] = {"gpuType": _gpu_type(node, "gpuType") or None}
        node.done()
    return {"nodes": _single(fields, found)}


def acl_configuration(data: Any) -> dict[str, Any]:
    """An AclConfiguration: additional users with write access, by namespace.

    Raises SpecError when it is invalid.
    """
    fields = Fields(Source("AclConfiguration", data), data)
    spaces = fields.inner("namespaceAcls")
    found = {}
    for name in spaces.data:
        if not USER.fullmatch(name):
            spaces.problem(
                (name,), f"expected a namespace: 1 to 254 letters, digits, '-', '.' and '_', got {describe(name)}"
            )
        space = spaces.inner(name)
        users = [_user(each) for each in space.items("users")]
        found[name] = {"users": users}
        space.done()
    return {"namespaceAcls": _single(fields, found)}


def total_tasks(descriptor: Mapping[str, Any]) -> int:
    """The total number of tasks in a validated descriptor."""
    return sum(role["taskNumber"] for role in descriptor["taskRoles"].values())


def _single(fields: Fields, found: Any) -> Any:
    fields.done()
    if fields.problems:
        raise SpecError(fields.problems)
    return found


def _words(fields: Fields) -> str | None:
    text = fields.text("description")
    if len(text) > MOST_WORDS:
        fields.problem(("description",), f"expected at most {MOST_WORDS} characters, got {len(text)}")
    return text or None


def _retries(fields: Fields) -> dict[str, Any]:
    found = {
        "fancyRetryPolicy": fields.flag("fancyRetryPolicy", False),
        "maxRetryCount": fields.whole("maxRetryCount", 0, least=ALWAYS),
    }
    fields.done()
    return found


def _parent(fields: Fields) -> dict[str, Any] | None:
    if "parentFramework" not in fields:
        fields.ignore(("parentFramework",))
        return None
    parent = fields.inner("parentFramework")
    found = {
        "parentFrameworkName": parent.matches("parentFrameworkName", NAME, NAMED),
        "deleteOnParentDeleted": parent.flag("deleteOnParentDeleted", False),
        "stopOnParentStopped": parent.flag("stopOnParentStopped", False),
    }
    parent.done()
    return found


def _user(fields: Fields) -> dict[str, str]:
    name = fields.text("name")
    if name and not USER.fullmatch(name):
        fields.problem(("name",), f"expected 1 to 254 letters, digits, '-', '.' and '_', got {describe(name)}")
    fields.done()
    return {"name": name}


def _roles(fields: Fields) -> dict[str, Any]:
    roles = fields.inner("taskRoles", needed=True)
    if "taskRoles" in fields and not roles.data:
        fields.problem(("taskRoles",), "missing; a Framework has at least one task role")
    found = {}
    for name in roles.data:
        if not NAME.fullmatch(name):
            roles.problem((name,), f"expected {NAMED}, got {describe(name)}", at_key=True)
        found[name] = _role(roles.inner(name, needed=True))
    return found


def _role(fields: Fields) -> dict[str, Any]:
    policy = fields.inner("applicationCompletionPolicy")
    platform = fields.inner("platformSpecificParameters")
    found: dict[str, Any] = {
        "taskNumber": fields.whole("taskNumber", most=MOST_TASKS),
        "scaleUnitNumber": fields.whole("scaleUnitNumber", 1),
        "scaleUnitTimeoutSec": fields.whole("scaleUnitTimeoutSec", 0),
        "taskRetryPolicy": _retries(fields.inner("taskRetryPolicy")),
        "applicationCompletionPolicy": {
            "minFailedTaskCount": _count(policy, "minFailedTaskCount", 1),
            "minSucceededTaskCount": _count(policy, "minSucceededTaskCount", None),
        },
        "taskService": _service(fields.inner("taskService", needed=True)),
        "platformSpecificParameters": {
            "taskNodeLabel": platform.text("taskNodeLabel") or None,
            "taskNodeGpuType": _gpu_type(platform, "taskNodeGpuType") or None,
        },
    }
    for part in (policy, platform, fields):
        part.done()
    return found


def _count(fields: Fields, name: str, default: int | None) -> int | None:
    """A number of tasks; null disables the condition."""
    if name not in fields:
        fields.ignore((name,))
        return None if name in fields.data else default
    return fields.whole(name, least=1)


def _service(fields: Fields) -> dict[str, Any]:
    places = fields.words("sourceLocations")
    if not places:
        fields.problem(("sourceLocations",), "missing; say where the program of the service is")
    found = {
        "version": fields.whole("version", least=-LARGEST),
        "entryPoint": fields.text("entryPoint", None),
        "sourceLocations": places,
        "resource": _resource(fields.inner("resource", needed=True)),
    }
    if "entryPoint" in fields and not found["entryPoint"]:
        fields.problem(("entryPoint",), "missing; say what the tasks run")
    fields.done()
    return found


def _resource(fields: Fields, cpu: int | None = None, memory: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cpuNumber": fields.whole("cpuNumber", cpu),
        "memoryMB": fields.whole("memoryMB", memory),
        "portDefinitions": _ports(fields.inner("portDefinitions")),
        "diskType": _disk(fields),
        "diskMB": fields.whole("diskMB", 0),
        "gpuNumber": fields.whole("gpuNumber", 0),
        "gpuAttribute": fields.whole("gpuAttribute", 0, most=2**63 - 1),
    }
    attribute, count = found["gpuAttribute"], found["gpuNumber"]
    if attribute and attribute.bit_count() != count:
        why = f"{attribute:#b} names {attribute.bit_count()} GPUs, and gpuNumber is {count}; they have to agree"
        fields.problem(("gpuAttribute",), why)
    fields.done()
    return found


def _disk(fields: Fields) -> str:
    """The disk type, given by name or number."""
    value = fields.take("diskType")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(DISKS):
        return DISKS[value]
    if value is not None and value not in DISKS:
        fields.problem(("diskType",), f"expected one of {', '.join(DISKS)}, got {describe(value)}")
    return value if isinstance(value, str) else DISKS[0]


def _ports(fields: Fields) -> dict[str, Any]:
    found = {}
    for label in fields.data:
        port = fields.inner(label)
        if not NAME.fullmatch(label):
            fields.problem((label,), f"expected {NAMED}, got {describe(label)}", at_key=True)
        start, count = port.whole("start", 0, most=65_535), port.whole("count", 0, most=65_535)
        if start and start + count > 65_536:
            port.problem(("count",), "the ports end after 65535, the last that there is")
        port.done()
        found[label] = {"start": start, "count": count}
    return found


def _gpu_type(fields: Fields, name: str) -> str:
    text = fields.text(name)
    if text and not _GPU_TYPE.fullmatch(text):
        fields.problem((name,), f"expected 1 to 256 characters without blanks, got {describe(text)}")
    return text


def _platform(fields: Fields) -> dict[str, Any]:
    manager = fields.inner("amResource")
    found: dict[str, Any] = {
        "amResource": _resource(manager, 1, 4096),
        "amNodeLabel": fields.text("amNodeLabel") or None,
        "taskNodeLabel": fields.text("taskNodeLabel") or None,
        "taskNodeGpuType": _gpu_type(fields, "taskNodeGpuType") or None,
        "queue": fields.text("queue", "default") or "default",
        "containerConnectionMaxLostCount": fields.whole("containerConnectionMaxLostCount", -2, least=-2),
        "containerConnectionMaxExceedCount": fields.whole("containerConnectionMaxExceedCount", 2),
        "antiaffinityAllocation": fields.flag("antiaffinityAllocation", False),
        "gangAllocation": fields.flag("gangAllocation", False),
        "skipLocalTriedResource": fields.flag("skipLocalTriedResource", True),
        "amType": fields.text("amType", "DEFAULT", choices=("DEFAULT", "AGENT")),
        "agentUseHeartbeat": fields.flag("agentUseHeartbeat", False),
        "agentHeartbeatIntervalSec": fields.whole("agentHeartbeatIntervalSec", 30),
        "agentExpiryIntervalSec": fields.whole("agentExpiryIntervalSec", 180),
        "agentUseHealthCheck": fields.flag("agentUseHealthCheck", False),
        "taskServiceHealthCheck": fields.take("taskServiceHealthCheck"),
    }
    fields.done()
    return found
