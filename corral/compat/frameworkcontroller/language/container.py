"""Translate the containers of a pod template; the first one is the task.

Fields that a role has go into the role; the others stay in its pod template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from corral.spec.base import ENV_NAME
from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.pod_annotations import is_of_a_scheduler
from corral.spec.yaml_scalars import written

TASK: Final = "task"
"""Name of the container with the task's command in Corral's pods."""
_FILLED_IN: Final = re.compile(r"(?<!\$)\$\(([-._a-zA-Z0-9]+)\)", re.ASCII)
_ENV_NAME: Final = re.compile(ENV_NAME, re.ASCII)


def task_container(container: Fields) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the task's container into fields of the role and the remainder for the pod template."""
    container.ignore(("name",))
    container.refuse("restartPolicy", "say when a task is tried again in task.retryPolicy")
    role: dict[str, Any] = {"image": container.text("image", None), "command": container.words("command")}
    arguments = container.words("args")
    kept: dict[str, Any] = {}
    if role["command"]:
        role["command"] += arguments
    elif arguments:
        kept["args"] = arguments
    if folder := container.text("workingDir"):
        role["workingDir"] = folder
    role["env"], left = _environment(container)
    _only_known(container, role, {each["name"] for each in left})
    if left:
        kept["env"] = left
    if ports := _ports(container):
        kept["ports"] = ports
    return role, kept | container.rest()


def side_container(container: Fields) -> dict[str, Any]:
    """A sidecar or init container for the pod template, without the resources, which count for the task."""
    name = container.text("name", None)
    if name == TASK:
        container.problem(("name",), f"Corral calls the container of the task's command {TASK}; use another name")
    kept: dict[str, Any] = {"name": name}
    if ports := _ports(container):
        kept["ports"] = ports
    return kept | container.rest()


def _environment(container: Fields) -> tuple[dict[str, str], list[Any]]:
    """Split the variables into plain ones and those whose value only Kubernetes knows."""
    plain: dict[str, str] = {}
    left: list[Any] = []
    for at, variable in enumerate(container.array("env")):
        name = variable.get("name") if isinstance(variable, dict) else None
        if not isinstance(name, str):
            container.problem(("env", at), "expected a variable with name and value")
        elif variable.get("valueFrom") is None and _ENV_NAME.fullmatch(name):
            value = written(variable.get("value"))
            if value is not None and not isinstance(value, str):
                container.problem(("env", at, "value"), "expected text; put quotes around it")
            plain[name] = value if isinstance(value, str) else ""
            for key in variable.keys() - {"name", "value", "valueFrom"}:
                container.problem(("env", at, key), "unknown field", at_key=True)
        elif not _is_choice_of_devices(variable):
            left.append(variable)
    return plain, left


def _only_known(container: Fields, role: Mapping[str, Any], unknown: set[str]) -> None:
    """Refuse `$(NAME)` of a variable whose value only the pod knows.

    Kubernetes expands any variable; Corral expands earlier, and only variables with a plain value.
    """
    for text in (*role["command"], *role["env"].values()):
        for name in _FILLED_IN.findall(text):
            if name in unknown:
                why = f"the value of {name} is known only in the pod"
                container.problem(("env",), f"{why}; write ${name} in a command for sh instead of $({name})")
                return


def _is_choice_of_devices(variable: Mapping[str, Any]) -> bool:
    """Whether the variable only passes on another scheduler's choice of devices, which Corral tells its tasks itself."""
    source = variable.get("valueFrom")
    field = source.get("fieldRef") if isinstance(source, dict) else None
    path = str(field.get("fieldPath")) if isinstance(field, dict) else ""
    return is_of_a_scheduler(path.partition("['")[2])


def _ports(container: Fields) -> list[Any]:
    """The named ports, which probes and services refer to; others are dropped, and a hostPort is refused."""
    named = []
    for at, port in enumerate(container.array("ports")):
        if isinstance(port, dict) and port.get("hostPort"):
            why = "ports of the node are Corral's to give, and free ones; ask for them in a job file (roles[].ports)"
            container.problem(("ports", at, "hostPort"), why, at_key=True)
        elif isinstance(port, dict) and port.get("name"):
            named.append(port)
    return named
