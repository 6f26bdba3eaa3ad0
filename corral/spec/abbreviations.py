"""Abbreviations of the short form, such as `devices: 1` and `retry: 3`.

Each type here is a canonical part with a validator before it that expands the abbreviation. The JSON schema includes
both forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from corral.kernel import units
from corral.spec.base import Argument, Cpu, Env, Level, Name, SpecModel, refusal
from corral.spec.compile_cache import CompileCache
from corral.spec.errors import describe
from corral.spec.job_options import Parameters, Priority
from corral.spec.job_parts import (
    MAX_REPLICAS,
    Array,
    Barrier,
    Checkpoint,
    Code,
    Dependency,
    Notifications,
    Port,
    Report,
    Resources,
    RetryPolicy,
    Secret,
)
from corral.spec.placement.network import Network
from corral.spec.placement.sharing import AntiAffinity, Sharing
from corral.spec.placement.topology import SHORT_SPREAD, Topology, TopologySpread
from corral.spec.placement_rules import Devices, NodeName, NodeRules
from corral.spec.preflight import Preflight
from corral.spec.storage import StorageUse, distinct
from corral.spec.yaml_scalars import written


def _same(value: Any) -> Any:
    return value


def _events(value: Any) -> Any:
    """Words are the events that are told."""
    if isinstance(value, str):
        return {"events": [value]}
    return {"events": value} if isinstance(value, list) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number_is(field: str) -> Callable[[Any], Any]:
    return lambda value: {field: value} if _is_number(value) else value


def _array(value: Any) -> Any:
    """A number is a size; a size of 0 that is written out is refused, rather than one job be submitted."""
    given = _number_is("size")(value)
    if isinstance(given, dict) and _is_number(given.get("size")) and not given["size"]:
        raise refusal("expected at least 1 job; without `array` it is one job")
    return given


def _devices(value: Any) -> Any:
    """A number is a count; a fraction below 1 is that part of one device."""
    if not isinstance(value, float):
        return _number_is("count")(value)
    if value.is_integer():
        return {"count": int(value)}
    percent = round(value * 100)
    if not 0 < value < 1 or abs(percent - value * 100) > 1e-6:
        raise refusal(f"expected whole devices, or a part of one in whole percents such as 0.25, got {describe(value)}")
    return {"count": 1, "share": {"computePercent": percent, "memoryPercent": percent}}


def _nodes(value: Any) -> Any:
    return {"include": [value] if isinstance(value, str) else value} if isinstance(value, str | list) else value


def _tags(value: Any) -> Any:
    return {"tags": [value] if isinstance(value, str) else value} if isinstance(value, str | list) else value


def _checks(value: Any) -> Any:
    return {"checks": [value] if isinstance(value, str) else value} if isinstance(value, str | list) else value


def _sharing(value: Any) -> Any:
    return {"exclusive": True} if value == "exclusive" else value


def _word_is(field: str) -> Callable[[Any], Any]:
    return lambda value: {field: value} if isinstance(value, str) else value


def _each_word_is(field: str) -> Callable[[Any], Any]:
    undo = _word_is(field)

    def check(value: Any) -> Any:
        items = [value] if isinstance(value, str) else value
        return [undo(item) for item in items] if isinstance(items, list) else value

    return check


def _seconds(value: Any) -> Any:
    text = written(value)
    if not isinstance(text, str):
        return value
    try:
        return units.parse_duration(text)
    except ValueError as error:
        raise refusal(f"{error}, got {describe(text)}") from None


def _command(value: Any) -> Any:
    return ["sh", "-c", value] if isinstance(value, str) else value


def _ports(value: Any) -> Any:
    if isinstance(value, dict):
        return [{"name": name, "count": count} for name, count in value.items()]
    return _each_word_is("name")(value)


def _secrets(value: Any) -> Any:
    return [{"name": name, "env": env} for env, name in value.items()] if isinstance(value, dict) else value


def _rdma(value: Any) -> Any:
    return {"rdma": "required" if value == "rdma" else value} if isinstance(value, str) else value


def _code(value: Any) -> Any:
    if isinstance(value, dict) and "path" in value:
        if "uri" in value:
            raise refusal("expected either path or uri, got both")
        return {("uri" if key == "path" else key): inner for key, inner in value.items()}
    return _word_is("uri")(value)


def _enabled(value: Any) -> Any:
    if isinstance(value, bool):
        return {"enabled": value}
    return {"enabled": True, **value} if isinstance(value, dict) else value


def _replicas(value: Any) -> Any:
    return {"min": value, "max": value} if _is_number(value) else value


class ShortReplicas(SpecModel):
    """The number of tasks of an elastic role: between `min` and `max`."""

    min: int = Field(ge=1, le=MAX_REPLICAS, description="The fewest the job can run with.")
    max: int = Field(ge=1, le=MAX_REPLICAS, description="The most it can use.")
    replicas: int = Field(0, ge=0, le=MAX_REPLICAS, description="The number asked for; max if unsaid.")


Replicas = Annotated[ShortReplicas, BeforeValidator(_replicas, json_schema_input_type=int | ShortReplicas)]
"""`2`, or `{min: 2, max: 8}`."""
ShortDevices = Annotated[Devices, BeforeValidator(_devices, json_schema_input_type=float | Devices)]
"""`1`, `0.5` (half of one device), or all fields of canonical devices."""
ShortNodes = Annotated[NodeRules, BeforeValidator(_nodes, json_schema_input_type=NodeName | list[NodeName] | NodeRules)]
"""`[node1, node2]` (only these), or `{include, exclude, expressions, tolerations}`."""


class ShortSharing(Sharing):
    """With whom the job shares its nodes."""

    anti_affinity: Annotated[
        AntiAffinity, BeforeValidator(_tags, json_schema_input_type=str | list[str] | AntiAffinity)
    ] = Field(default_factory=AntiAffinity, description="Jobs to keep away from: tags, or tags and level.")


Company = Annotated[ShortSharing, BeforeValidator(_sharing, json_schema_input_type=Literal["exclusive"] | ShortSharing)]
"""`exclusive`, or `{exclusive, oneTaskPerNode, antiAffinity}`."""
Seconds = Annotated[int, BeforeValidator(_seconds, json_schema_input_type=int | str), Field(ge=0, le=10 * 366 * 86_400)]
"""`90`, `30m`, `2h`."""
ShortCommand = Annotated[
    list[Argument],
    BeforeValidator(_command, json_schema_input_type=str | list[str | int | float]),
    Field(max_length=10_000),
]
"""A line for `sh -c`, or the program and its arguments."""
ShortPorts = Annotated[
    list[Port],
    BeforeValidator(_ports, json_schema_input_type=str | list[str | Port] | dict[str, int]),
    Field(max_length=100),
]
"""`[http]`, `{http: 1}`, or a list of name and count."""
ShortSecrets = Annotated[
    list[Secret], BeforeValidator(_secrets, json_schema_input_type=list[Secret] | dict[str, str]), Field(max_length=100)
]
"""`{VARIABLE: secret}`, or a list of name and env or file."""
ShortEnv = Annotated[Env, BeforeValidator(_same, json_schema_input_type=dict[str, str | int | float | bool])]
"""Values may be unquoted numbers or booleans; each keeps the text that was written."""
ShortParameters = Annotated[
    Parameters, BeforeValidator(_same, json_schema_input_type=dict[str, str | int | float | bool])
]
ShortPriority = Annotated[Priority, BeforeValidator(_same, json_schema_input_type=str | int)]
ShortCpu = Annotated[Cpu, BeforeValidator(_same, json_schema_input_type=str | float)]
"""`1` and `0.5` need no quotes."""
ShortNetwork = Annotated[
    Network,
    BeforeValidator(_rdma, json_schema_input_type=Literal["rdma", "none", "preferred", "required"] | Network),
]
"""`rdma` (required), `preferred`, `none`, or `{rdma: …}`."""


class LooseTopology(Topology):
    """How close together, or how far apart, the replicas are placed."""

    spread: Annotated[
        TopologySpread, BeforeValidator(_word_is("level"), json_schema_input_type=Level | TopologySpread)
    ] = SHORT_SPREAD


ShortTopology = Annotated[
    LooseTopology, BeforeValidator(_word_is("required"), json_schema_input_type=Level | LooseTopology)
]
"""`rack` (required), or `{required: rack, preferred: node}`."""
ShortRetry = Annotated[RetryPolicy, BeforeValidator(_number_is("maxRetries"), json_schema_input_type=int | RetryPolicy)]
"""`3`, or `{fancy: true, maxRetries: 3}`."""
ShortArray = Annotated[Array, BeforeValidator(_array, json_schema_input_type=int | Array)]
"""`100`, or `{size: 100, maxParallel: 10}`."""
ShortBarrier = Annotated[Barrier, BeforeValidator(_enabled, json_schema_input_type=bool | Barrier)]
"""`true`, or `{timeoutSeconds: 600}`."""
ShortReport = Annotated[Report, BeforeValidator(_enabled, json_schema_input_type=bool | Report)]

ShortPreflight = Annotated[
    Preflight,
    BeforeValidator(
        _checks,
        json_schema_input_type=Literal["network", "platform"] | list[Literal["network", "platform"]] | Preflight,
    ),
]
"""`network`, or `{checks: [network], timeoutSeconds: 60, required: true}`."""
ShortCompileCache = Annotated[
    CompileCache,
    BeforeValidator(_word_is("share"), json_schema_input_type=Literal["default", "none", "job", "user"] | CompileCache),
]
"""`true`, or `{pattern: "step (?P<step>[0-9]+)"}`."""
ShortStorages = Annotated[
    list[StorageUse],
    BeforeValidator(_each_word_is("name"), json_schema_input_type=str | list[str | StorageUse]),
    Field(max_length=100),
    AfterValidator(distinct),
]
"""`[data]`, or `{name: data, mountPath: /data}` each."""
ShortDependencies = Annotated[
    list[Dependency],
    BeforeValidator(_each_word_is("job"), json_schema_input_type=Name | list[Name | Dependency]),
    Field(max_length=100),
]
"""`[prepare]`, or a list of job and condition."""


class CodeInput(SpecModel):
    """The program's files, and where they are unpacked."""

    path: str = Field("", description="A folder beside the job file.")
    uri: str = Field("", description="The same, or where else the files are.")
    target: str = Field("", description='Where they are unpacked; "" is the working directory.')


ShortCode = Annotated[Code, BeforeValidator(_code, json_schema_input_type=str | CodeInput)]
"""`.` packs the job file's folder; or `{path: src, target: app}`."""


class ShortResources(Resources):
    """The resources of one task."""

    cpu: ShortCpu = Field("1", min_length=1, description="Processors: 1, 0.5 or 500m; 0 reserves and limits nothing.")
    devices: ShortDevices = Field(default_factory=Devices, description="How many devices, or which.")


class ShortCheckpoint(Checkpoint):
    """How a task is asked to end."""

    grace: Seconds | None = Field(None, description="The same as graceSeconds, written as 30s or 5m.")


class ShortNotifications(Notifications):
    """What the owner is told of the job."""

    waiting: Seconds | None = Field(None, description="The same as waitingSeconds, written as 30m or 2h.")


Told = Annotated[
    ShortNotifications, BeforeValidator(_events, json_schema_input_type=str | list[str] | ShortNotifications)
]
"""`failed`, `[failed, ended]`, or `{events, waiting, channels, quiet}`."""
