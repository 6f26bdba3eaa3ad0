"""Translate a validated v1 job: convert it to v2, then apply the differences of v1.

They concern retries, completion, folders and fixed ports. The file itself is kept with the job, so that the API can
return it.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from corral.compat.openpai.language.translation import OpenPaiJob, to_job
from corral.compat.openpai.language.v1 import DIRECTORIES, v1_to_protocol
from corral.spec.errors import Problem, SpecError
from corral.spec.retry_rules import retry_policy, task_retry_policy

ANNOTATION: Final = "openpai.corral.dev/v1"
"""The whole v1 job, validated and with its defaults, as JSON text."""
DEBUG: Final = "isDebug"
RDMA: Final = "paiAzRDMA"
MOST_CODE_MB: Final = 200
"""Maximum size of a job's code folder in MB."""
KEPT_SECONDS: Final = 7 * 86_400
"""Seconds that a failed task of a job with `isDebug` is kept for its owner to inspect."""
_THIS_MACHINE: Final = "file://"
_VARIABLES: Final = {"PAI_DATA_DIR": "dataDir", "PAI_OUTPUT_DIR": "outputDir", "PAI_CODE_DIR": "codeDir"}


def v1_job(
    v1: Mapping[str, Any],
    *,
    user: str = "",
    fs_uri: str = "",
    auth: tuple[str, str, str] | None = None,
    folder: str = "",
) -> OpenPaiJob:
    """The job of `user` in a validated v1 document; `fs_uri` is the file system of paths that name none.

    Raises SpecError when no job of Corral can express it.
    """
    settled = with_folders(v1, user, fs_uri, folder)
    job = to_job(v1_to_protocol(settled, auth=auth), user=user)
    document = job.document
    annotations = document["metadata"].setdefault("annotations", {})
    annotations["openpai.corral.dev/version"] = "1"
    annotations["openpai.corral.dev/default-fs-uri"] = fs_uri
    annotations[ANNOTATION] = json.dumps(settled, ensure_ascii=False, separators=(",", ":"))
    _amend(document, settled, fs_uri)
    return job


def to_v1(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The v1 job that a canonical document was made from; None for other documents."""
    text = document.get("metadata", {}).get("annotations", {}).get(ANNOTATION)
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def with_folders(v1: Mapping[str, Any], user: str, fs_uri: str, folder: str = "") -> dict[str, Any]:
    """Resolve the variables in the job's folders and set a default output folder, as OpenPAI's server does.

    `folder` is the user's own folder on storages; "" is the user's name.
    """
    settled = dict(v1)
    if not settled["outputDir"] and user:
        settled["outputDir"] = f"$PAI_DEFAULT_FS_URI/Output/{folder or user}/{v1['jobName']}"
    for name in ("authFile", *DIRECTORIES):
        text = settled[name].replace("$PAI_DEFAULT_FS_URI", fs_uri.rstrip("/") if fs_uri else _THIS_MACHINE)
        text = re.sub(r"\$PAI_JOB_NAME(?!\w)", lambda _: str(v1["jobName"]), text)
        if user:
            text = re.sub(r"\$PAI_USER_?NAME(?!\w)", lambda _: user, text)
        settled[name] = text
    return settled


def _amend(document: dict[str, Any], v1: Mapping[str, Any], fs_uri: str) -> None:
    annotations, spec = document["metadata"]["annotations"], document["spec"]
    spec["retryPolicy"] = retry_policy(v1["retryCount"])
    if v1["codeDir"]:
        uri = _uri(v1["codeDir"], fs_uri)
        name = posixpath.basename(uri.rstrip("/")) or "code"
        spec["inputs"] = [*spec.get("inputs", ()), {"uri": uri, "path": name}]
        for role in spec["roles"]:
            role["command"] = [*role["command"][:-1], f"{_bounded(name)}\n{role['command'][-1]}"]
    if v1["jobEnvs"].get(RDMA) == "true":
        spec["network"] = {"rdma": "required"}
    names: dict[str, str] = json.loads(annotations["openpai.corral.dev/roles"])
    labels: dict[str, str] = json.loads(annotations.get("openpai.corral.dev/ports", "{}"))
    by_name = {role["name"]: role for role in v1["taskRoles"]}
    if any(port["beginAt"] for role in v1["taskRoles"] for port in role["portList"]) and _several(v1):
        spec["sharing"] = {"oneTaskPerNode": True}
    for role in spec["roles"]:
        _amend_role(role, by_name[names.get(role["name"], role["name"])], v1, labels)


def _bounded(name: str) -> str:
    """A shell line that fails the task when the code folder exceeds MOST_CODE_MB."""
    word = shlex.quote(name)
    why = shlex.quote(f"codeDir has more than {MOST_CODE_MB} MB; put data into dataDir")
    return f'if [ "$(du -sm -- {word} | cut -f1)" -gt {MOST_CODE_MB} ]; then echo {why} >&2; exit 1; fi'


def _several(v1: Mapping[str, Any]) -> bool:
    return len(v1["taskRoles"]) > 1 or bool(v1["taskRoles"][0]["taskNumber"] > 1)


def _amend_role(
    role: dict[str, Any], said: Mapping[str, Any], v1: Mapping[str, Any], labels: Mapping[str, str]
) -> None:
    role["completion"] = {
        "minFailed": said["minFailedTaskCount"] or -1,
        "minSucceeded": said["minSucceededTaskCount"] or -1,
    }
    role["retryPolicy"] = task_retry_policy(gang=True)
    folders = {variable: v1[name] for variable, name in _VARIABLES.items() if v1[name]}
    role["env"] = {**role.get("env", {}), **folders, **v1["jobEnvs"]}
    if v1["jobEnvs"].get(DEBUG) == "true":
        role["command"] = [*role["command"][:-1], _kept_after_failure(role["command"][-1])]
    if v1["gpuType"] and said["gpuNumber"]:
        role["resources"]["devices"]["model"] = v1["gpuType"]
    role["ports"] = _ports(role.get("ports", []), said["portList"], labels)


def _ports(ports: list[dict[str, Any]], said: list[dict[str, Any]], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The role's ports with their fixed start numbers; a label with 0 ports is dropped."""
    begins = {port["label"]: port["beginAt"] for port in said}
    counts = {port["label"]: port["portNumber"] for port in said}
    found = []
    for port in ports:
        label = labels.get(port["name"], port["name"])
        if counts.get(label) != 0:
            found.append({**port, "start": begins[label]} if begins.get(label) else port)
    return found


def _kept_after_failure(command: str) -> str:
    """Wrap the command so that a failed task stays for KEPT_SECONDS, or until the job is stopped."""
    words = "the task failed and is kept for a week; stop the job when you have looked at it"
    return f"(\n{command}\n)\ncode=$?\nif [ $code -ne 0 ]; then echo '{words}'; sleep {KEPT_SECONDS}; fi\nexit $code"


def _uri(place: str, fs_uri: str) -> str:
    """A folder as a URI; one without a scheme is on the default file system.

    Raises SpecError for text that is neither an absolute path nor a URI.
    """
    if "://" in place:
        return place
    if not place.startswith("/"):
        problem = Problem(
            f"{place[:200]} is neither a URI nor an absolute path on the default file system", ("codeDir",)
        )
        raise SpecError([problem])
    return (fs_uri.rstrip("/") if fs_uri else _THIS_MACHINE) + place
