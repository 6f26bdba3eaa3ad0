"""Report how a job file from OpenPAI will run here: one line for each feature that the file uses.

The report covers the file alone. Only a server knows whether a queue or a storage exists and whether the job would
start now (`--dry-run`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from corral.compat.openpai.language.command_template import names_used, render, unfilled
from corral.compat.openpai.language.hived import HivedTerms, hived_terms, job_cell
from corral.compat.openpai.language.names import NAME, PROTOCOL, VERSION
from corral.compat.openpai.language.translation import asked_storages, is_gang, plugins, to_protocol
from corral.compat.openpai.language.v1_job import to_v1
from corral.spec.job import UnifiedJob

SAME: Final = "same"
DIFFERS: Final = "differs"
IGNORED: Final = "ignored"
_PLUGINS: Final = {
    "ssh": "an SSH server in each task, when the image has sshd; hosts are ROLE-INDEX in ~/.ssh/config",
    "tensorboard": "TensorBoard beside the first task of the first role, when the image has it",
    "cmd": "its commands run before the task's own, and after they succeed",
    "git": "the repository is cloned before the commands run",
    "teamwise_storage": "its storages are those of extras.storages",
}
_RUNTIME_PLUGINS: Final = "com.microsoft.pai.runtimeplugin"
_CMD: Final = "com.microsoft.pai.runtimeplugin.cmd"
_KNOWN_EXTRAS: Final = {
    "submitFrom": (SAME, "kept with the job"),
    "jobStatusChangeNotification": (
        SAME,
        "its owner is told on verified channels; without any, the account's address is mailed where the server has a "
        "mail_server",
    ),
}


@dataclass(frozen=True, slots=True)
class Use:
    """One feature that a job file uses."""

    field: str
    """The field of the file."""
    state: str
    """`same`: as in OpenPAI; `differs`: differently, as `here` explains; `ignored`: without effect here."""
    here: str
    """Its effect here."""


@dataclass(frozen=True, slots=True)
class RoleReport:
    """One task role and the resources of its tasks."""

    name: str
    role: str
    """Its name here."""
    tasks: int
    image: str
    cpu: str
    memory: str
    devices: int
    model: str
    shm: str
    ports: dict[str, int]
    retries: int
    completion: str
    command: str


@dataclass(frozen=True, slots=True)
class Report:
    """The features that a job file of OpenPAI uses, and how it will run here."""

    protocol: str
    """The version: "1" or "2"."""
    name: str
    job: str
    """The job's name here."""
    queue: str
    priority: int
    retries: int
    roles: list[RoleReport]
    uses: list[Use]

    def to_document(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)


def report(job: UnifiedJob) -> Report:
    """Report on a job that was read from a file of OpenPAI.

    Raises SpecError for a job from another source.
    """
    document = job.to_document()
    protocol, notes = to_protocol(document), job.metadata.annotations
    v1 = to_v1(document)
    return Report(
        protocol=notes.get(VERSION, "2"),
        name=notes[NAME],
        job=job.name,
        queue=job.spec.queue,
        priority=job.priority,
        retries=job.spec.retry_policy.max_retries,
        roles=list(_roles(job, protocol)),
        uses=[*(_uses_of_v1(v1) if v1 else ()), *_uses(job, protocol)],
    )


def _roles(job: UnifiedJob, protocol: Mapping[str, Any]) -> Iterator[RoleReport]:
    for name, role in zip(protocol["taskRoles"], job.spec.roles, strict=True):
        tasks = job.replicas_of(role.name)
        yield RoleReport(
            name=name,
            role=role.name,
            tasks=tasks,
            image=role.image,
            cpu=role.resources.cpu,
            memory=role.resources.memory,
            devices=role.resources.devices.count,
            model=role.resources.devices.model,
            shm=role.shm,
            ports={port.name: port.count for port in role.ports},
            retries=role.retry_policy.max_retries,
            completion=_completion(role.completion.min_failed, role.completion.min_succeeded, tasks),
            command=role.command[-1],
        )


def _completion(failed: int, succeeded: int, tasks: int) -> str:
    """How ended tasks of the role end the job, as the rest of a sentence."""
    after = {1: "at the first task that fails", -1: "by no failed task"}.get(failed, f"when {failed} tasks have failed")
    if succeeded < 1 or succeeded > tasks:
        return f"fails {after}; it goes on until all tasks of this role have ended"
    which = "its task has" if tasks == 1 else f"all {tasks} tasks have" if succeeded == tasks else f"{succeeded} have"
    return f"fails {after}, and has succeeded as soon as {which}"


def _uses(job: UnifiedJob, protocol: Mapping[str, Any]) -> Iterator[Use]:
    terms = hived_terms(protocol)
    yield from _of_roles(protocol)
    yield from _of_hived(protocol, terms)
    yield from _of_extras(protocol)
    yield from _of_prerequisites(protocol)
    yield from _of_templates(job, protocol)


def _of_roles(protocol: Mapping[str, Any]) -> Iterator[Use]:
    if protocol.get("jobRetryCount"):
        yield Use("jobRetryCount", SAME, "failures of unknown kind count; passing ones are tried again uncounted")
    for name, role in protocol["taskRoles"].items():
        if role.get("taskRetryCount"):
            if is_gang(protocol):
                why = "no effect, as in OpenPAI: with gangAllocation the whole job is tried again"
                yield Use(f"taskRoles.{name}.taskRetryCount", IGNORED, why)
            else:
                yield Use(f"taskRoles.{name}.taskRetryCount", SAME, "a failed task is tried again by itself")
        if role.get("extraContainerOptions", {}).get("infiniband"):
            why = "tasks run on nodes with remote direct memory access"
            yield Use(f"taskRoles.{name}.extraContainerOptions.infiniband", SAME, why)
    deployment = protocol.get("defaults", {}).get("deployment")
    if deployment is not None:
        yield Use("defaults.deployment", SAME, f"the commands of deployment {deployment} go round the roles' own")
    elif protocol.get("deployments"):
        yield Use("deployments", IGNORED, "none is chosen by defaults.deployment, so none is used")


def _of_hived(protocol: Mapping[str, Any], terms: HivedTerms) -> Iterator[Use]:
    home = "extras.hivedScheduler"
    given = protocol.get("extras", {}).get("hivedScheduler") or {}
    if "jobPriorityClass" in given:
        yield Use(f"{home}.jobPriorityClass", SAME, f"priority class {terms.priority}")
    if terms.lazy_preemption:
        yield Use(
            f"{home}.lazyPreemptionEnable",
            SAME,
            "under the preset hived the job runs on as a guest when it is preempted",
        )
    for name in ("gangReleaseEnable", "ignoreK8sSuggestedNodes"):
        if name in given:
            why = "no effect: Corral places and releases a job as a whole, and no other scheduler suggests nodes"
            yield Use(f"{home}.{name}", IGNORED, why)
    for name, role in terms.roles.items():
        path = f"{home}.taskRoles.{name}"
        if role.sku_type:
            why = (
                f"devices of the model {role.sku_type}; refused where the virtual cluster owns cells and none of these"
            )
            yield Use(f"{path}.skuType", SAME, why)
        if role.sku_count:
            gpus = protocol["taskRoles"][name]["resourcePerInstance"]["gpu"]
            cells = max(role.sku_count, gpus)
            why = f"a task fills {cells} cells where its virtual cluster owns some; elsewhere it gets {gpus} devices"
            yield Use(f"{path}.skuNum", SAME if role.sku_count == cells else DIFFERS, why)
        if role.pinned_cell:
            where = f"in the pinned cell {role.pinned_cell}"
            apart = f"its tasks are {where}; only the preset hived parts a gang among several cells"
            why = f"all of the job is {where}" if job_cell(protocol, terms) else apart
            yield Use(f"{path}.pinnedCellId", SAME, why)
        if role.affinity_group:
            why = "under the preset hived the task roles of this name are one group, which is placed together"
            yield Use(f"{path}.affinityGroupName", SAME, why)


def _of_extras(protocol: Mapping[str, Any]) -> Iterator[Use]:
    extras = protocol.get("extras", {})
    if not is_gang(protocol):
        why = "each task starts as soon as there is a place for it, and is tried again alone"
        yield Use("extras.gangAllocation", SAME, why)
    storages = asked_storages(protocol)
    if storages is not None:
        named = ", ".join(f"{each['name']} at {each['mountPath']}" for each in storages)
        yield Use("extras.storages", SAME, named or "the submitter's default storages, each at /mnt/NAME")
    for at, plugin in enumerate(plugins(protocol)):
        name = str(plugin.get("plugin"))
        field = f"extras.{_RUNTIME_PLUGINS}[{at}]"
        if name in _PLUGINS:
            yield Use(field, SAME, f"{name}: {_PLUGINS[name]}")
        else:
            yield Use(field, IGNORED, f"{name}: no such plug-in is here")
    known = {"hivedScheduler", "gangAllocation", "storages", _RUNTIME_PLUGINS}
    for name in extras:
        if name not in known:
            state, why = _KNOWN_EXTRAS.get(name, (IGNORED, "kept with the job; nothing here reads it"))
            yield Use(f"extras.{name}", state, why)


def _of_prerequisites(protocol: Mapping[str, Any]) -> Iterator[Use]:
    used = {role["dockerImage"] for role in protocol["taskRoles"].values()}
    for at, each in enumerate(protocol.get("prerequisites", ())):
        field = f"prerequisites[{at}]"
        if each.get("auth") and each["name"] in used:
            why = "handed to whoever pulls the image, and to nobody else"
            yield Use(f"{field}.auth", SAME, why)
        if each.get("plugin") == _CMD:
            yield Use(field, SAME, f"{each['name']}: its callbacks run around the tasks of roles that name it")
        elif each.get("plugin"):
            yield Use(field, IGNORED, f"{each['name']}: there is no plug-in {each['plugin']}")


def _of_templates(job: UnifiedJob, protocol: Mapping[str, Any]) -> Iterator[Use]:
    text = job.metadata.annotations[PROTOCOL]
    secrets = sorted(names_used(text, "$secrets"))
    has_secrets = "secrets" in protocol
    if has_secrets:
        named = f" ({', '.join(secrets)})" if secrets else ""
        yield Use("secrets", SAME, f"sealed with the job, and filled in inside the task alone{named}")
    for name, role in render(protocol)["taskRoles"].items():
        for template in unfilled(role["entrypoint"]):
            if template.startswith("$secrets.") and has_secrets:
                continue
            why = f"<% {template} %> names nothing, so the command has it as it stands, as in OpenPAI"
            yield Use(f"taskRoles.{name}.commands", SAME, why)


def _uses_of_v1(v1: Mapping[str, Any]) -> Iterator[Use]:
    """Features that only protocol 1 has."""
    told = {
        "authFile": (DIFFERS, "read by the server at submission through OpenPAI's API; not by `corral submit`"),
        "dataDir": (SAME, "told to tasks as PAI_DATA_DIR"),
        "outputDir": (SAME, "told to tasks as PAI_OUTPUT_DIR"),
        "codeDir": (SAME, "fetched into each task's working folder before its command, and told as PAI_CODE_DIR"),
        "gpuType": (SAME, "devices of that model"),
        "jobEnvs": (SAME, "variables of every task"),
        "killAllOnCompletedTaskNumber": (IGNORED, "obsolete, as in OpenPAI; write minSucceededTaskCount"),
    }
    for field, (state, why) in told.items():
        if v1.get(field):
            yield Use(field, state, why)
    if v1["retryCount"]:
        yield Use(
            "retryCount", SAME, "failures of unknown kind count; -2 tries again after every end, -1 after every failure"
        )
    for at, role in enumerate(v1["taskRoles"]):
        if any(port["beginAt"] for port in role["portList"]):
            yield Use(f"taskRoles[{at}].portList", SAME, "fixed ports: a task waits for a node where they are free")
