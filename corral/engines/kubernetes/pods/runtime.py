"""Add Corral's runtime to pods for a task's peers, code and barrier.

The runtime is one file for any Python 3, the same for all tasks, in an immutable ConfigMap. An attempt's own plan,
token and code are a Secret with the pod's name, owned by the pod and deleted with it. A shell copies the Secret into
the container's memory, because the runtime removes the files that it has read. A task that needs none of this runs
unchanged. If an image of Corral's own is set, the runtime works in a sidecar of it (`beside`).
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.pods.sidecar import GIVEN, RUNTIME, WORK, Sidecar, moves_data
from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import runtime_modules
from corral.model.launch import RuntimePlan, TaskLaunch
from corral.runtime.build import build_runtime
from corral.runtime.peers import RUNTIME_WORD
from corral.storage.code_archives import BlobStore

MOST_CODE: Final = 64 * 1024
"""Bytes of a code archive that is put in each task's Secret. Tasks fetch a larger one from the server."""
_PRIVATE: Final = "/run/corral/private"
_REFERENCES: Final = ("$(peer:", "$(secret:", RUNTIME_WORD)
_ENTRY: Final = f"""\
umask 077
cp {GIVEN}/plan {GIVEN}/token {GIVEN}/job-secret {_PRIVATE}/ || exit 255
[ ! -e {GIVEN}/code ] || exec 3<{GIVEN}/code
for python in python3 python; do
  command -v "$python" >/dev/null && exec "$python" -I -S {RUNTIME}/runtime.pyz run {_PRIVATE}/plan
done
echo 'corral: this task needs Python 3 in its image, for its code, its peers or its barrier' >&2
exit 255
"""


class Runtimes:
    """Builds the objects and the pod parts of Corral's runtime."""

    def __init__(self, blobs: BlobStore | None, *, image: str = "", places: tuple[str, ...] = ()) -> None:
        """`blobs` has the archives of code; `image` is Corral's own, and `places` may be mounted with it."""
        self._blobs = blobs
        self._image, self._places = image, places
        self._program = b""
        self._large: set[str] = set()
        """Digests of archives that tasks fetch."""

    def config_map(self) -> dict[str, Any]:
        """Build the ConfigMap that holds the runtime, named by its content's hash."""
        data = {"runtime.pyz": base64.b64encode(self._built()).decode()}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "immutable": True,
            "metadata": {"name": self._name(), "labels": {"app.kubernetes.io/managed-by": "corral"}},
            "binaryData": data,
        }

    def check(self, launch: TaskLaunch) -> None:
        """Raise InvalidInput if this engine cannot prepare the task, before anything is written."""
        report = launch.runtime.report if launch.runtime is not None else None
        if report is not None and report.pattern:
            instead = "On Kubernetes no log is searched for reports: use report.file or call corral.report instead."
            raise InvalidInput("no-report-pattern", instead)
        if self._image:
            self._sidecar(launch)
        elif moves_data(launch):
            message = "Inputs and outputs are moved by a container of Corral's image; set CORRAL_RUNTIME_IMAGE to it."
            raise InvalidInput("runtime-image-missing", message)

    async def secret(self, launch: TaskLaunch, labels: dict[str, str], variables: Mapping[str, str]) -> dict[str, Any]:
        """Build the attempt's own Secret. `variables` are those of the task's container.

        Raises NotFound when its code is not in the blob store, Unavailable when that does not answer.
        """
        plan = launch.runtime or RuntimePlan()
        code = await self._code(plan)
        content = _common(launch, plan)
        content |= {} if not plan.code_digest or code else {"code_digest": plan.code_digest}
        if self._image:
            content = self._sidecar(launch).plan(content, variables)
        else:
            content |= {"code_handle": 3 if code else -1, "pass_signals": True}
        data = {"plan": msgspec.json.encode(content), "token": launch.job_token.encode()}
        data["job-secret"] = (launch.job_secret or launch.job_token).encode()
        if code:
            data["code"] = code
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": pod_name(launch.attempt), "labels": labels},
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }

    def wrap(self, pod: dict[str, Any], launch: TaskLaunch) -> None:
        """Wrap the command of the pod's first container with the runtime, in it or in a sidecar."""
        if self._image:
            given, work = pod_name(launch.attempt), _work(launch)
            self._sidecar(launch).wrap(pod, given=given, runtime=self._name(), work=work)
            return
        container = pod["spec"]["containers"][0]
        container["command"] = ["/bin/sh", "-c", _ENTRY.replace("$", "$$")]
        container.pop("workingDir", None)
        volumes: dict[str, tuple[str, dict[str, Any], bool]] = {
            "corral-runtime": (RUNTIME, {"configMap": {"name": self._name()}}, True),
            "corral-given": (GIVEN, {"secret": {"secretName": pod_name(launch.attempt)}}, True),
            "corral-private": (_PRIVATE, {"emptyDir": {"medium": "Memory"}}, False),
            "corral-work": (WORK, {"emptyDir": {}}, False),
        }
        mounts = container.setdefault("volumeMounts", [])
        for name, (path, source, read_only) in volumes.items():
            pod["spec"].setdefault("volumes", []).append({"name": name, **source})
            mounts.append({"name": name, "mountPath": path} | ({"readOnly": True} if read_only else {}))

    def _sidecar(self, launch: TaskLaunch) -> Sidecar:
        return Sidecar(launch, self._image, self._places)

    async def _code(self, plan: RuntimePlan) -> bytes:
        """Return the code archive if it is small enough for the Secret."""
        digest = plan.code_digest
        if not digest or self._blobs is None or digest in self._large:
            return b""
        size = await self._blobs.size(digest)
        if size is not None and size > MOST_CODE:
            self._large.add(digest)
            return b""
        return (await self._blobs.fetch(digest)).read_bytes()

    def _name(self) -> str:
        return f"corral-runtime-{hashlib.sha256(self._built()).hexdigest()[:16]}"

    def _built(self) -> bytes:
        if not self._program:
            with tempfile.TemporaryDirectory() as folder:
                self._program = build_runtime(Path(folder) / "runtime.pyz", runtime_modules()).read_bytes()
        return self._program


def _work(launch: TaskLaunch) -> str:
    """Return the folder where code is placed and relative paths start."""
    return launch.working_dir if os.path.isabs(launch.working_dir) else WORK


def _common(launch: TaskLaunch, plan: RuntimePlan) -> dict[str, Any]:
    """Return the part of the plan that is the same in either container."""
    work = _work(launch)
    directory = os.path.normpath(os.path.join(WORK, launch.working_dir))
    cache = plan.compile_cache
    return {
        "attempt": launch.attempt,
        "command": launch.command,
        "work": work,
        "directory": directory,
        "code_target": plan.code_target,
        "barrier": plan.barrier,
        "barrier_timeout_seconds": plan.barrier_timeout_seconds,
        "resolve": plan.resolve,
        "notebook": plan.notebook,
        "keeps_files": plan.keeps_files,
        "plug_in": plan.plug_in,
        "plug_in_steps": plan.plug_in_steps,
        "error_block": plan.error_block,
        "kept_secrets": launch.kept_secrets,
        "checkpoint": os.path.normpath(os.path.join(directory, plan.checkpoint)) if plan.checkpoint else "",
        "report": _report(plan, launch),
        "profile": plan.profile,
        "preflight": msgspec.to_builtins(plan.preflight),
        "compile_cache": None if cache is None else {**msgspec.to_builtins(cache), "folder": WORK},
        "api_url": launch.api_url,
        "api_certificate": launch.api_certificate,
        "token_file": f"{_PRIVATE}/token",
        "job_secret_file": f"{_PRIVATE}/job-secret",
        "result_file": "/dev/termination-log",
    }


def _report(plan: RuntimePlan, launch: TaskLaunch) -> dict[str, Any] | None:
    """Return where reports are found; event files of the task's own folder are read by the runtime."""
    if plan.report is None:
        return None
    own = not os.path.isabs(launch.working_dir)
    return {**msgspec.to_builtins(plan.report), "folder": WORK, "own_events": own}


def needs_runtime(launch: TaskLaunch) -> bool:
    """Return whether the task needs the runtime. A pod can provide secrets without it."""
    plan = launch.runtime
    if plan is None:
        return False
    words = (*launch.command, *launch.env.values())
    refers = any(reference in word for word in words for reference in _REFERENCES)
    moves = plan.inputs or plan.outputs or any(mount.is_moved for mount in launch.storages)
    asked = (
        plan.code_digest,
        moves,
        plan.barrier,
        plan.resolve,
        plan.plug_in,
        plan.checkpoint,
        plan.report,
        plan.profile,
        plan.preflight,
        refers,
    )
    cache = plan.compile_cache
    return any(map(bool, asked)) or (cache is not None and not cache.by_default)
