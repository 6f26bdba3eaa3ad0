"""The sidecar of a pod, from Corral's own image, that stages data, code and peers' addresses for the task.

So a user's image needs only a shell. It is a native sidecar (an init container that restarts). Kubernetes starts it
before the task's container, so both work at once, its output goes to the task's log, and staging does not count as
start time. Kubernetes ends it after that container; then it moves outputs. It requests no resources, since only the
task's are counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from corral.engines.kubernetes.volumes.storage_places import gathered, reach
from corral.engines.kubernetes.volumes.storage_volumes import moved
from corral.kernel.errors import InvalidInput
from corral.model.launch import RuntimePlan, TaskLaunch
from corral.runtime.torch_daemon import WHERE

CONTAINER: Final = "corral"
"""The sidecar's name."""
OUTPUTS: Final = "corral.dev/outputs"
"""Label of pods whose sidecar still has work after the task's end."""
WORK: Final = "/run/corral/work"
"""The task's own folder: code is placed there, and relative paths start there."""
GIVEN: Final = "/run/corral/given"
SHARED: Final = "/run/corral/shared"
RUNTIME: Final = "/run/corral/runtime"
EVENTS: Final = "/run/corral/events"
"""Below it, by number, the mounts of the task that have the folders of event files that the job names."""
TORCH: Final = f"{WHERE}/corral-torch"
"""The folder in which the sidecar answers PyTorch's profiler."""
STAGE_OUT_SECONDS: Final = 3600
"""Grace of a pod with outputs, in seconds: the time that Kubernetes leaves a sidecar after the task's end."""
_PRIVATE: Final = "/tmp/corral"
_FOR_STORAGE: Final = ("AWS_", "S3_", "FSSPEC_", "HADOOP_", "HDFS_", "KRB5", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Prefixes of variables that the libraries for remote data read."""
_ENTRY: Final = f"""\
pause() {{ sleep 0.1 2>/dev/null || sleep 1; }}
say() {{ while IFS= read -r line <&3; do printf '%s\\n' "$line"; done; [ -z "$line" ] || printf %s "$line"; }}
until [ -e {SHARED}/said ]; do pause; done
exec 3<{SHARED}/said
until [ -e {SHARED}/entry ]; do say; pause; done
say
exec 3<&-
. {SHARED}/entry
"""


class Sidecar:
    """The sidecar of one task."""

    def __init__(self, launch: TaskLaunch, image: str, places: tuple[str, ...]) -> None:
        """Raises InvalidInput for data in a place that jobs may not use."""
        self._launch, self._image = launch, image
        plan = launch.runtime or RuntimePlan()
        self._plan = plan
        self._inputs = [(reach(uri, places, writable=False), path) for uri, path in plan.inputs]
        self._outputs = [(path, reach(uri, places, writable=True)) for path, uri in plan.outputs]
        self._storages = moved(launch.storages)

    def plan(self, common: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
        """Return the plan for the runtime in the sidecar. `variables` are those of the task's container."""
        checkpoint = common["checkpoint"]
        return {
            **common,
            "inputs": [(found.uri, path) for found, path in self._inputs],
            "outputs": [(path, found.uri) for path, found in self._outputs],
            "storages": [(mount.uri, mount.path, mount.read_only) for _, mount in self._storages],
            "stage_command": ["python3", "-m", "corral.storage", "stage"],
            "env": dict(variables),
            "checkpoint": checkpoint if checkpoint.startswith(f"{common['work']}/") else "",
            "report": {**report, "folder": SHARED, "mounts": EVENTS}
            if (report := common.get("report")) is not None
            else None,
            "compile_cache": {**cache, "folder": SHARED}
            if (cache := common.get("compile_cache")) is not None
            else None,
            "profiler_folder": TORCH if common.get("profile") else "",
            "token_file": f"{_PRIVATE}/token",
            "job_secret_file": f"{_PRIVATE}/job-secret",
            "result_file": "/dev/termination-log",
            "shared": SHARED,
            "program": ["python3", "-I", "-S", f"{RUNTIME}/runtime.pyz"],
        }

    def wrap(self, pod: dict[str, Any], *, given: str, runtime: str, work: str) -> None:
        """Add the sidecar to a pod and make its first container wait for it.

        `given` is the Secret with the plan, `runtime` the ConfigMap with the program, `work` the folder of the task.
        """
        spec, (container, *_) = pod["spec"], pod["spec"]["containers"]
        container["command"] = ["/bin/sh", "-c", _ENTRY.replace("$", "$$")]
        container.pop("workingDir", None)
        events = self._events(container.get("volumeMounts", ()))
        folders: list[tuple[str, str, dict[str, Any]]] = [("corral-shared", SHARED, {"emptyDir": {}})]
        if self._plan.profile:
            folders.append(("corral-torch", TORCH, {"emptyDir": {}}))
        if work == WORK or self._moves():
            folders.append(("corral-work", work, {"emptyDir": {}}))
        folders += [(f"corral-data-{at}", path, {"emptyDir": {}}) for at, path in enumerate(self._elsewhere(work))]
        volumes = spec.setdefault("volumes", [])
        both = [{"name": name, "mountPath": path} for name, path, _ in folders]
        volumes += [{"name": name, **source} for name, _, source in folders]
        volumes.append({"name": "corral-runtime", "configMap": {"name": runtime}})
        volumes.append({"name": "corral-given", "secret": {"secretName": given}})
        container.setdefault("volumeMounts", []).extend(
            [*both, {"name": "corral-runtime", "mountPath": RUNTIME, "readOnly": True}]
        )
        places = gathered([found for found, _ in self._inputs] + [found for _, found in self._outputs])
        volumes += [{"name": mount.name, **mount.source} for mount in places]
        sidecar = {
            "name": CONTAINER,
            "image": self._image,
            "restartPolicy": "Always",
            "command": ["python3", "-m", "corral.runtime", "beside", GIVEN, _PRIVATE],
            "env": self._variables(container.get("env", ())),
            "resources": {"requests": {"cpu": "0", "memory": "0"}},
            "volumeMounts": [
                *both,
                {"name": "corral-given", "mountPath": GIVEN, "readOnly": True},
                *({"name": at.name, "mountPath": at.path} | _access(at.writable) for at in places),
                *({"name": name, "mountPath": mount.path} for name, mount in self._storages),
                *events,
            ],
        }
        pinned = spec.get("securityContext", {})
        if not (pinned.get("runAsUser") or pinned.get("runAsNonRoot")):
            # Root, because the task may run under any uid and its private files are moved too.
            sidecar["securityContext"] = {"runAsUser": 0, "runAsGroup": 0, "allowPrivilegeEscalation": False}
        spec.setdefault("initContainers", []).append(sidecar)
        if (
            self._outputs
            or self._plan.compile_cache is not None
            or any(not mount.read_only for _, mount in self._storages)
        ):
            pod["metadata"]["labels"][OUTPUTS] = "true"
            spec["terminationGracePeriodSeconds"] = STAGE_OUT_SECONDS

    def _events(self, mounts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the mounts of the task's container that have folders of event files, at places of their own.

        There they lie over no program of the sidecar's. They are read only.
        """
        report, found = self._plan.report, list[dict[str, Any]]()
        for number, name in enumerate(report.tensorboard if report is not None else ()):
            path = os.path.normpath(os.path.join(WORK, self._launch.working_dir, name))
            above = [each for each in mounts if "://" not in name and _has(each["mountPath"], path)]
            if above:
                mount = max(above, key=lambda each: len(each["mountPath"]))
                if "subPathExpr" not in mount:  # it has variables of the task's container
                    at = f"{EVENTS}/{number}{os.path.normpath(mount['mountPath'])}"
                    part = {"subPath": mount["subPath"]} if "subPath" in mount else {}
                    found.append({"name": mount["name"], "mountPath": at, "readOnly": True, **part})
        return found

    def _moves(self) -> bool:
        return bool(self._plan.code_digest or self._inputs or self._outputs)

    def _elsewhere(self, work: str) -> list[str]:
        """Return the folders outside the task's own folder that data are moved to or from."""
        paths = [path for _, path in self._inputs] + [path for path, _ in self._outputs]
        folders = {os.path.dirname(os.path.normpath(path)) for path in paths if os.path.isabs(path)}
        if "/" in folders:
            raise InvalidInput("data-at-root", "Data need a folder of their own in the task, such as /data/digits.")
        return sorted(folder for folder in folders if folder != work and not folder.startswith(f"{work}/"))

    def _variables(self, env: Any) -> list[dict[str, Any]]:
        """Return the task's variables that open remote data; secrets stay references."""
        return [entry for entry in env if entry["name"].upper().startswith(_FOR_STORAGE)]


def _has(folder: str, path: str) -> bool:
    """Whether a path is a folder or within it."""
    folder = os.path.normpath(folder)
    return path == folder or path.startswith(f"{folder}/")


def _access(writable: bool) -> dict[str, bool]:
    return {} if writable else {"readOnly": True}


def moves_data(launch: TaskLaunch) -> bool:
    """Return whether data are moved before or after the task."""
    if moved(launch.storages):
        return True
    return launch.runtime is not None and bool(launch.runtime.inputs or launch.runtime.outputs)
