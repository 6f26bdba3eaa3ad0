"""Build the order by which a slot starts an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from corral.devices.visibility import variables, vendor
from corral.engines.yarn.service_spec import SlotShape
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slots import Attempt
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import parse_attempt_id
from corral.model.inventory import Device
from corral.model.launch import RuntimePlan, TaskLaunch


def order_of(attempt: Attempt, launch: TaskLaunch, settings: YarnSettings, host: str) -> dict[str, Any]:
    """The order: command, environment, ports, and the runtime's plan with its private files where it needs one.

    `launch` is the attempt's; its slot has decided its node, its devices and the ports that it is offered. `host` is the
    slot's address.
    """
    offers = attempt.offers or ((),) * len(launch.ports)
    order: dict[str, Any] = {
        "attempt": launch.attempt,
        "command": list(launch.command),
        "directory": launch.working_dir,
        "env": _environment(attempt, launch, settings) | {"CORRAL_HOST": host},
        "devices": list(attempt.devices),
        "ports": [
            {"name": each.name, "count": each.count, "start": each.start, "numbers": list(numbers)}
            for each, numbers in zip(launch.ports, offers, strict=True)
        ],
        "split": launch.env.get("CORRAL_SPLIT_LOGS") == "split",
    }
    if launch.runtime is not None or launch.secrets:
        order["plan"], order["files"] = _plan(launch, launch.runtime or RuntimePlan()), _files(launch)
    return order


_ALWAYS: Final = frozenset({"memory-mb", "vcores"})
"""What every node of YARN counts."""


def check_launch(launch: TaskLaunch, settings: YarnSettings) -> None:
    """Raise InvalidInput for a task that slots cannot run."""
    plan = launch.runtime
    if launch.image:
        raise InvalidInput("no-images", "The YARN engine runs no container images yet; leave the image out.")
    if plan is not None and (plan.inputs or plan.outputs) and not settings.stage_command:
        message = "Inputs and outputs are moved by Corral's own program on the nodes; set yarn_stage_command to it."
        raise InvalidInput("stage-command-missing", message)


def check_resources(shape: SlotShape, counted: frozenset[str], settings: YarnSettings) -> None:
    """Raise InvalidInput for a resource that no node counts.

    YARN's service master only logs such a request, and asks for no container. `counted` is empty while no node is known.
    """
    missing = sorted(shape.amounts(settings).keys() - counted - _ALWAYS) if counted else []
    if missing:
        message = f"No node of YARN counts {missing[0]}: declare it in resource-types.xml and for the NodeManagers."
        raise InvalidInput("hadoop-no-resource", message)


def check_level(launch: TaskLaunch, shape: SlotShape, settings: YarnSettings) -> None:
    """Raise InvalidInput for a task that must share a level with others, where YARN chooses the nodes."""
    if launch.required_level and not shape.node and sum(part.tasks for part in launch.gang) > 1:
        message = (
            f"The node {launch.node} has no attribute {settings.attribute}, so YARN chooses the nodes and cannot keep "
            f"tasks in one {launch.required_level}: set the attribute (docs/yarn.md), or require no level."
        )
        raise InvalidInput("yarn-chooses-nodes", message)


def _environment(attempt: Attempt, launch: TaskLaunch, settings: YarnSettings) -> dict[str, str]:
    key = parse_attempt_id(launch.attempt)
    indexes = ",".join(map(str, attempt.devices))
    return {
        **_visible(attempt.devices, launch.devices, settings),
        "HADOOP_USER_NAME": settings.hadoop_user(launch.user),  # else `hdfs://` knows only the container's system user
        **launch.env,
        "CORRAL_JOB_ID": key.job,
        "CORRAL_ROLE": key.role,
        "CORRAL_TASK_INDEX": str(key.index),
        "CORRAL_NODE": f"{settings.name}/{attempt.node}" if attempt.node else launch.node,
        "CORRAL_DEVICES": indexes,
    }


_VENDORS: Final = {"gpu": {"nvidia", "amd"}, "npu": {"ascend"}}
"""The vendors of each kind of device whose variables are known."""


def _visible(numbers: Sequence[int], devices: Sequence[Device], settings: YarnSettings) -> dict[str, str]:
    """The variables that leave a task its devices; of GPUs that no probe named, NVIDIA's.

    A task without a device sees no GPU or NPU.
    """
    shown = [str(number) for number in numbers]
    names = {vendor(each) for each in devices} - {""}
    if not shown:
        names = _VENDORS.get(settings.device_kind, set())
    elif not names and settings.device_kind == "gpu":
        names = {"nvidia"}
    return {key: value for name in sorted(names) for key, value in variables(name, shown).items()}


def _plan(launch: TaskLaunch, plan: RuntimePlan) -> dict[str, Any]:
    return {
        "code_digest": plan.code_digest,
        "code_target": plan.code_target,
        "inputs": plan.inputs,
        "outputs": plan.outputs,
        "barrier": plan.barrier,
        "barrier_timeout_seconds": plan.barrier_timeout_seconds,
        "resolve": plan.resolve,
        "notebook": plan.notebook,
        "keeps_files": plan.keeps_files,
        "plug_in": plan.plug_in,
        "plug_in_steps": plan.plug_in_steps,
        "error_block": plan.error_block,
        "kept_secrets": launch.kept_secrets,
        "checkpoint": plan.checkpoint,
        "report": None if plan.report is None else {**msgspec.to_builtins(plan.report), "own_events": True},
        "profile": plan.profile,
        "preflight": msgspec.to_builtins(plan.preflight),
        "compile_cache": msgspec.to_builtins(plan.compile_cache),
        "exit_patterns": plan.exit_patterns,
        "api_url": launch.api_url,
        "api_certificate": launch.api_certificate,
    }


def _files(launch: TaskLaunch) -> dict[str, str]:
    """The private files by the name of the plan's field for each, without `_file`."""
    import json

    given = [{"env": each.env, "file": each.file, "value": each.value} for each in launch.given_secrets]
    files = {"token": launch.job_token, "job_secret": launch.job_secret or launch.job_token}
    return files | ({"secrets": json.dumps(given)} if given else {})
