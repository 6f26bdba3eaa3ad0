"""TensorBoard for the outputs of jobs: a job of its own on no device, which reads where those jobs write."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from corral.kernel.errors import Conflict, InvalidInput
from corral.kernel.ids import AttemptId, attempt_id
from corral.model.records import LIVE_PHASES, JobFilter
from corral.model.states import TaskState
from corral.model.store_writes import JobRecord
from corral.model.views import JobDetail
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.jobs import Jobs
from corral.service.jobs.submission import Submission
from corral.spec.job import UnifiedJob

MOST_JOBS: Final = 20
_MOST_TASKS: Final = 8
"""Running tasks of one job whose own folders are read."""
PORT: Final = "tensorboard"
ROLE: Final = "main"
_LASTS: Final = "8h"
_SCRIPT: Final = """set -e
command -v tensorboard > /dev/null || {
  echo "This task finds no program tensorboard. Install TensorBoard, or give the job that it reads a PATH" >&2
  echo "or an image that has it. PATH=$PATH" >&2
  exit 127
}
mkdir -p logs
while [ $# -gt 1 ]; do ln -sfn "$2" "logs/$1"; shift 2; done
exec tensorboard --logdir logs --host 127.0.0.1 --port "$CORRAL_PORT_TENSORBOARD"
"""


class _Folder(NamedTuple):
    """A folder that TensorBoard reads."""

    label: str
    path: str
    uri: str = ""
    """What is fetched before TensorBoard starts, in place of a path; "" if it is there already."""


class TensorBoards:
    """Starts TensorBoard for jobs."""

    def __init__(self, context: Context, jobs: Jobs, submission: Submission) -> None:
        self._context = context
        self._store = context.store
        self._jobs = jobs
        self._submission = submission

    async def start(self, actor: Actor, refs: Sequence[str]) -> JobDetail:
        """Start TensorBoard for jobs, or return the one that reads the same already.

        Raises InvalidInput, NotFound, Forbidden, Conflict `no-outputs` for a job that keeps nothing to read, Conflict
        `other-user` for the own folder of another user's task.
        """
        if not 1 <= len(set(refs)) <= MOST_JOBS:
            raise InvalidInput("bad-jobs", f"Name 1 to {MOST_JOBS} jobs.")
        read: list[tuple[JobRecord, UnifiedJob]] = []
        folders: list[_Folder] = []
        for ref in dict.fromkeys(refs):
            record, _ = await self._context.job_for(actor, ref, "job.open")
            job = UnifiedJob.from_document(msgspec.json.decode(record.doc))
            read.append((record, job))
            found = await self._folders_of(actor, record, job)
            twice = sum(each.name == record.name for each, _ in read) > 1
            name = f"{record.name}-{record.id}" if twice else record.name
            folders += [each._replace(label=f"{name}-{each.label}") for each in found]
        document = _document([job for _, job in read], folders, _programs(actor, read))
        wanted = JobFilter(phases=LIVE_PHASES, users=(actor.user,), tag=document["tags"][0])
        if live := (await self._jobs.page(actor, wanted, limit=1)).items:
            return await self._jobs.get(actor, live[0].id)
        done = await self._submission.submit(actor, json.dumps(document), filename="TensorBoard's job")
        assert done.detail is not None
        return done.detail

    async def _folders_of(self, actor: Actor, record: JobRecord, job: UnifiedJob) -> list[_Folder]:
        """Where a job writes: its outputs, an absolute working directory, and the own folders of running tasks."""
        found = [_of_uri(f"output-{at}", each.uri) for at, each in enumerate(job.spec.outputs)]
        own = [role.name for role in job.spec.roles if not posixpath.isabs(role.working_dir)]
        visible = [role for role in job.spec.roles if posixpath.isabs(role.working_dir) and _is_here(job, role)]
        found += [_Folder(role.name, role.working_dir) for role in visible]
        running = await self._own_folders(record, own) if own and record.live else []
        if running and record.user != actor.user:
            message = f"The tasks of {record.name} write into folders that only {record.user} may read."
            raise Conflict("other-user", message)
        found += running
        if not found:
            message = (
                f"{record.name} keeps nothing that TensorBoard can read: no task of it runs on this machine, and it "
                "names neither outputs nor an absolute workingDir."
            )
            raise Conflict("no-outputs", message)
        return found

    async def _own_folders(self, record: JobRecord, roles: Sequence[str]) -> list[_Folder]:
        """The own folders of a job's running tasks on this machine."""
        page = await self._store.job_tasks(record.id, states=(TaskState.RUNNING.value,), limit=_MOST_TASKS)
        attempts = {
            attempt_id(record.id, record.run.attempt, task.role, task.index, task.attempt): f"{task.role}-{task.index}"
            for task in page.items
            if task.role in roles
        }
        if not attempts:
            return []
        answer: dict[AttemptId, str] = await self._context.control.request(
            "/work-folders", {"attempts": list(attempts)}
        )
        return [_Folder(attempts[each], path) for each, path in answer.items()]


def _is_here(job: UnifiedJob, role: Any) -> bool:
    """Whether a role's absolute working directory is one that other jobs see: in a storage, or outside an image."""
    return not role.image or any(_inside(role.working_dir, use.where) for use in job.spec.storages)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _of_uri(label: str, uri: str) -> _Folder:
    if uri.startswith("file:"):
        return _Folder(label, unquote(urlsplit(uri).path))
    return _Folder(label, "", uri)


def _programs(actor: Actor, read: Sequence[tuple[JobRecord, UnifiedJob]]) -> UnifiedJob | None:
    """The job whose image and search path TensorBoard has: one of the actor's own, if any.

    Those of another user's job would run that user's programs with the actor's rights.
    """
    return next((job for record, job in read if record.user == actor.user), None)


def _document(jobs: Sequence[UnifiedJob], folders: Sequence[_Folder], programs: UnifiedJob | None) -> dict[str, Any]:
    """The short document of a TensorBoard, with the image and the search path of one job.

    Raises Conflict `other-image` where only another user's image sees the folders.
    """
    first = programs.spec.roles[0] if programs else None
    storages = _storages(jobs, folders, programs)
    mounted = [use["mountPath"] for use in storages]
    in_image = all(each.uri or any(_inside(each.path, at) for at in mounted) for each in folders)
    theirs = next((job for job in jobs if job.spec.roles[0].image), None)
    if in_image and first is None and theirs is not None:
        message = (
            f"TensorBoard would run in the image of {theirs.name}, which is another user's, with your rights. "
            "Name a job of your own beside it, whose image is then used."
        )
        raise Conflict("other-image", message)
    words = [word for each in folders for word in (each.label, each.path or f"../fetched/{each.label}")]
    same = hashlib.sha256(json.dumps([words, storages, in_image]).encode()).hexdigest()[:12]
    role = {
        "resources": {"cpu": 1, "devices": 0},
        "ports": [PORT],
        "command": ["sh", "-c", _SCRIPT, "sh", *words],
        "image": first.image if in_image and first else "",
        "env": {"PATH": first.env["PATH"]} if first and "PATH" in first.env else {},
    }
    document = {
        "name": f"tensorboard-{same}",
        "queue": jobs[0].spec.queue,
        "tags": [f"tensorboard:{same}"],
        "maxDuration": _LASTS,
        "inputs": [{"uri": each.uri, "path": f"fetched/{each.label}"} for each in folders if each.uri],
        "storages": storages,
        "roles": {ROLE: {name: value for name, value in role.items() if value}},
    }
    return {name: value for name, value in document.items() if value}


def _storages(
    jobs: Sequence[UnifiedJob], folders: Sequence[_Folder], programs: UnifiedJob | None
) -> list[dict[str, str]]:
    """The storages in which the folders and the search path are, each at the path at which its job has it.

    Raises Conflict.
    """
    found: dict[str, str] = {}
    search = programs.spec.roles[0].env.get("PATH", "").split(":") if programs else []
    for job, use in ((each, use) for each in jobs for use in each.spec.storages):
        needed = [each.path for each in folders] + (search if job is programs else [])
        if not any(_inside(path, use.where) for path in needed):
            continue
        if found.setdefault(use.where, use.name) != use.name:
            message = f"Two of the jobs have different storages at {use.where}; look at them one at a time."
            raise Conflict("storages-differ", message)
    return [{"name": name, "mountPath": path} for path, name in found.items()]
