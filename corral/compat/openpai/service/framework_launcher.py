"""FrameworkLauncher's REST API: a Framework is stored by name, with the job that currently runs it.

A Framework outlives its jobs: another version of its descriptor starts another job. A namespace (`NAMESPACE~NAME`) may
be written by its account, by administrators, and by accounts that an administrator listed for it. A job is always
changed as the account that owns it, so the rules about jobs apply unchanged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from corral.compat.openpai.language import descriptor as descriptors
from corral.compat.openpai.language.launcher import Cluster, launcher_job
from corral.compat.openpai.language.names import ROLES
from corral.compat.openpai.records.launcher import Asked, Framework, Launching
from corral.compat.openpai.service.background_removal import BackgroundRemoval
from corral.compat.openpai.tables.key_values import KeyValue, KeyValues
from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.states import TaskState
from corral.model.store_writes import IntentKind
from corral.service.access.job_access import job_resource
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context, json_size
from corral.service.jobs.job_commands import JobCommands
from corral.service.jobs.submission import Submission
from corral.service.people.authentication import Authentication
from corral.spec.job import UnifiedJob
from corral.workers.pool import INLINE_BYTES

FRAMEWORK, CONFIGURATION = "framework", "launcher"
CLUSTER, ACL = "ClusterConfiguration", "AclConfiguration"
MOST_TASKS: Final = 500_000
"""Most tasks of all Frameworks together (FrameworkLauncher's maxTotalTaskNumber)."""
COMPLETED_RETAIN_SECONDS: Final = 43_200
_ASKED: Final = msgspec.json.Decoder(Asked)
_MOST_CHILDREN: Final = 10_000
_LAUNCH_SECONDS: Final = 60.0
"""Seconds after which an unfinished launch of a Framework no longer blocks another one."""
_IDS: Final = "accounts"
"""Key in the stored AclConfiguration; maps names of accounts to their ids where these differ."""
_TASKS, _DELETE, _STOP = "tasks", "deleteOnParentDeleted", "stopOnParentStopped"


class TooManyTasks(CorralError):
    """All Frameworks together would have more tasks than the limit."""

    status = 429


class FrameworkLauncher:
    """The requests of FrameworkLauncher's API."""

    def __init__(
        self,
        context: Context,
        authentication: Authentication,
        submission: Submission,
        job_commands: JobCommands,
        removal: BackgroundRemoval,
        *,
        fs_uri: str,
    ) -> None:
        self._context = context
        self._store = context.store
        self._records = KeyValues(context.store)
        self._clock = context.clock
        self._authentication = authentication
        self._submission = submission
        self._job_commands = job_commands
        self._removal = removal
        self.most_launched_tasks = MOST_TASKS
        self._launching: asyncio.Lock | None = None
        self._fs_uri = fs_uri

    async def launch(self, actor: Actor, name: str, body: Any, *, as_user: str = "", address: str = "") -> None:
        """Add a Framework, change it in place, or (with another version) start it anew.

        Raises SpecError, Forbidden, TooManyTasks, Conflict while another launch of it is under way.
        """
        _check_name(name)
        wanted = await self._context.run_in_worker(len(body) <= INLINE_BYTES, descriptors.read_descriptor, body)
        self._launching = self._launching or asyncio.Lock()
        async with self._launching:
            known = await self._records.key_value(FRAMEWORK, name)
            asker = await self._asker(actor, name, known, as_user or wanted["user"]["name"])
            wanted["user"] = {"name": asker.user}
            await self._check_total(name, descriptors.total_tasks(wanted))
            await self._check_parent(name, wanted)
            before = None if known is None else _ASKED.decode(known.body)
            if known is None or before is None or not before.job or before.descriptor["version"] != wanted["version"]:
                await self._begin_once(asker, name, wanted, before, address)
            else:
                wanted["user"] = {"name": known.owner}
                await self._change_framework(await self._as_owner(asker, known), name, before, wanted)
        if wanted["executionType"] == descriptors.STOP:
            await self._stop_with_children(asker, name)

    async def rescale(self, actor: Actor, name: str, role: str, body: Any, *, as_user: str = "") -> None:
        """Change the number of tasks of a Framework's role.

        Raises SpecError, InvalidInput for an unknown role, NotFound, Forbidden, TooManyTasks, TooManyRequests.
        """
        number = descriptors.task_number(body)
        owner, asked = await self._asked(actor, name, as_user)
        if role not in asked.descriptor["taskRoles"]:
            roles = ", ".join(asked.descriptor["taskRoles"])
            raise InvalidInput("unknown-role", f"The Framework {name} has no task role {role[:100]}; it has {roles}.")
        wanted = _with_number(asked.descriptor, role, number)
        await self._check_total(name, descriptors.total_tasks(wanted))
        await self._change_framework(owner, name, asked, wanted)

    async def execute(self, actor: Actor, name: str, body: Any, *, as_user: str = "") -> None:
        """Stop a Framework, or set it to run; one that a stop has ended does not restart, as in FrameworkLauncher.

        Raises SpecError, NotFound, Forbidden.
        """
        value = descriptors.execution_type(body)
        owner, asked = await self._asked(actor, name, as_user)
        await self._change_framework(owner, name, asked, {**asked.descriptor, "executionType": value})
        if value == descriptors.STOP:
            await self._stop_with_children(owner, name)

    async def override_progress(self, actor: Actor, name: str, body: Any, *, as_user: str = "") -> None:
        """Set the progress of a Framework.

        Raises SpecError, NotFound, Forbidden.
        """
        progress = descriptors.application_progress(body)
        await self._asked(actor, name, as_user)
        await self._keep(name, lambda asked: msgspec.structs.replace(asked, progress=progress))

    async def migrate_task(self, actor: Actor, name: str, container: str, body: Any, *, as_user: str = "") -> None:
        """Stop a task of a Framework and start it on another node; no retry is counted.

        Raises SpecError, NotFound for a container that the Framework does not have, Forbidden.
        """
        request = descriptors.migrate_request(body)
        owner, asked = await self._asked(actor, name, as_user)
        task = await self._task_in(name, asked.job, container)
        record, decision = await self._context.job_for(owner, asked.job, "job.scale")
        data = {"role": task[0], "index": task[1]}
        line = self._context.line(actor, "job.migrate", job_resource(record), decision, container=container)
        at = self._clock.now()
        await self._store.add_intent(record.id, IntentKind.MIGRATE, data, actor=actor.user, at=at, audit=line)
        await self._keep(
            name, lambda one: msgspec.structs.replace(one, migrations={**one.migrations, container: request})
        )

    async def remove(self, actor: Actor, name: str, *, as_user: str = "") -> None:
        """Stop and remove a Framework; removing an unknown one does nothing.

        Raises Forbidden.
        """
        _check_name(name)
        known = await self._records.key_value(FRAMEWORK, name)
        owner = await self._owner(actor, name, known, as_user)
        if known is not None:
            await self._remove(owner, known)

    async def get(self, actor: Actor, name: str, address: str = "") -> Framework:
        """One Framework with its status and tasks.

        Raises NotFound.
        """
        await self._context.check(actor, "job.read", Resource("job"))
        known = await self._records.key_value(FRAMEWORK, name)
        found = None if known is None else await self._framework(known, address)
        if found is None:
            raise _not_requested(name)
        tasks = await self._store.tasks_of(found.record.id)
        return msgspec.structs.replace(found, tasks=tuple(tasks))

    async def all(self, actor: Actor, user: str = "", address: str = "") -> list[Framework]:
        """All requested Frameworks, without their tasks; only those of `user` if it is given."""
        await self._context.check(actor, "job.list", Resource("job"))
        there = [(known, _ASKED.decode(known.body)) for known in await self._records.key_values(FRAMEWORK, user)]
        records = await self._store.jobs_by_id([asked.job for _, asked in there if asked.job])
        found = []
        for known, asked in there:
            if asked.job in records:
                found.append(Framework(known.name, asked, records[asked.job], address=address))
            elif asked.job:
                await self._forget_framework(known)
        return found

    async def configuration(self, actor: Actor, kind: str) -> dict[str, Any]:
        """The stored configuration of the cluster, or of access to namespaces."""
        await self._context.check(actor, "cluster.read", Resource("cluster"))
        return await self._configuration(kind)

    async def configure(self, actor: Actor, kind: str, body: Any) -> None:
        """Store the configuration of the cluster, or of access to namespaces.

        Raises SpecError, Forbidden.
        """
        read = {CLUSTER: descriptors.cluster_configuration, ACL: descriptors.acl_configuration}[kind]
        decision = await self._context.check(actor, "document.apply", Resource("document", kind))
        said, now = read(body), self._clock.now()
        if kind == ACL:
            said = {**said, _IDS: await self._ids_of(said["namespaceAcls"])}
        line = self._context.line(actor, "document.apply", Resource("document", kind), decision)

        def change(known: KeyValue | None) -> KeyValue:
            first = now if known is None else known.created_at
            return KeyValue(CONFIGURATION, kind, actor.user, json.dumps(said), first, now)

        await self._records.change_key_value(CONFIGURATION, kind, change, audit=line)

    async def _configuration(self, kind: str) -> dict[str, Any]:
        known = await self._records.key_value(CONFIGURATION, kind)
        if known is None:
            return {CLUSTER: {"nodes": {}}, ACL: {"namespaceAcls": {}}}[kind]
        found: dict[str, Any] = json.loads(known.body)
        found.pop(_IDS, None)
        return found

    async def _owner(self, actor: Actor, name: str, known: KeyValue | None, as_user: str) -> Actor:
        """Check that the actor may write a Framework; return its owner, or for a new one its future owner.

        Raises Forbidden.
        """
        asker = await self._asker(actor, name, known, as_user)
        return asker if known is None else await self._as_owner(asker, known)

    async def _as_owner(self, asker: Actor, known: KeyValue) -> Actor:
        """The account that a Framework is changed as: its owner, or `asker` if the owner's account was deleted."""
        return asker if known.owner in (asker.user, "") else await self._authentication.account(known.owner)

    async def _asker(self, actor: Actor, name: str, known: KeyValue | None, as_user: str) -> Actor:
        """The account that a new Framework is submitted as: the actor, or the user whom an administrator names.

        Raises Forbidden unless it may write the Framework.
        """
        acting = actor
        if as_user and as_user != actor.user:
            if not actor.is_admin:
                raise Forbidden("not-allowed", f"{actor.user} may not launch as {as_user[:100]}; an administrator may.")
            acting = await self._authentication.account(as_user)
        namespace = name.partition("~")[0] if "~" in name else ""
        owner = known.owner if known is not None else acting.user
        of_namesake = known is not None and bool(namespace) and await self._is_of_namesake(namespace, known)
        may = await self._may_write(namespace, acting.user) if namespace else acting.user == owner
        allowed = actor.is_admin or (may and not of_namesake)
        decision = Decision(allowed, "namespace")
        if not allowed:
            resource = Resource("job", name, owner=owner)
            await self._context.note(actor, "job.submit", resource, decision)
            if of_namesake:
                why = f"{name} is of an account {namespace} that was deleted; choose another name"
                raise Forbidden("not-allowed", f"{why}, or have an administrator remove it.")
            whose = f"the namespace {namespace}" if namespace else f"what {owner or 'a deleted account'} launched"
            raise Forbidden("not-allowed", f"{acting.user} may not write into {whose}; an administrator can allow it.")
        return acting

    async def _may_write(self, namespace: str, user: str) -> bool:
        """Whether an account may write into a namespace: it has the same name, or an administrator listed it.

        A list applies only to the accounts that had its names when it was written.
        """
        if user == namespace:
            return True
        known = await self._records.key_value(CONFIGURATION, ACL)
        said: dict[str, Any] = {} if known is None else json.loads(known.body)
        listed = said.get("namespaceAcls", {}).get(namespace, {}).get("users", ())
        if user not in {each["name"] for each in listed}:
            return False
        ids = said.get(_IDS, {})
        return all([ids.get(name, name) == await self._id_of(name) for name in (namespace, user)])

    async def _is_of_namesake(self, namespace: str, known: KeyValue) -> bool:
        """Whether a Framework was begun in the namespace of an earlier account of the same name."""
        return (_ASKED.decode(known.body).namespace or namespace) != await self._id_of(namespace)

    async def _ids_of(self, spaces: Mapping[str, Any]) -> dict[str, str]:
        """The ids of accounts in a list of namespaces, by name, where an id differs from the name."""
        names = {*spaces, *(each["name"] for space in spaces.values() for each in space["users"])}
        found = {name: await self._id_of(name) for name in sorted(names)}
        return {name: given for name, given in found.items() if given != name}

    async def _id_of(self, name: str) -> str:
        """The id of the account with this name; the name itself if there is none."""
        user = await self._store.user(name)
        return name if user is None else user.id

    async def _asked(self, actor: Actor, name: str, as_user: str) -> tuple[Actor, Asked]:
        """The account to change a Framework as, and the Framework's stored request.

        Raises NotFound, Forbidden.
        """
        known = await self._records.key_value(FRAMEWORK, name)
        owner = await self._owner(actor, name, known, as_user)
        if known is None or await self._framework(known, "") is None:
            raise _not_requested(name)
        return owner, _ASKED.decode(known.body)

    async def _framework(self, known: KeyValue, address: str) -> Framework | None:
        """A Framework with its job; if the job was removed, forget the Framework and return None."""
        asked = _ASKED.decode(known.body)
        record = await self._store.find_job(asked.job) if asked.job else None
        if record is None:
            if asked.job:
                await self._forget_framework(known)
            return None
        return Framework(known.name, asked, record, address=address)

    async def _forget_framework(self, known: KeyValue) -> None:
        """Delete a stored Framework, unless it was changed meanwhile."""

        def run(now: KeyValue | None) -> KeyValue | None:
            return None if now is None or now == known else _framework_kept(now, _ASKED.decode(now.body))

        await self._records.change_key_value(FRAMEWORK, known.name, run)

    async def _begin_once(
        self, asker: Actor, name: str, wanted: dict[str, Any], before: Asked | None, address: str
    ) -> None:
        """Start the next job of a Framework; `before` is its stored request so far.

        If several callers start it at once, on any server, one does. An equal request of the same account starts the
        same job. Raises Conflict when another request, or another account's, is being started or has just been.
        """
        own = Launching(self._context.new_job_id(), asker.user, _digest(wanted, address), self._clock.now())
        space = await self._id_of(name.partition("~")[0]) if "~" in name else ""
        job = "" if before is None else before.job
        kept = await self._records.change_key_value(
            FRAMEWORK, name, lambda known: _claimed(known, name, wanted, job, own, space)
        )
        assert kept is not None
        asked = _ASKED.decode(kept.body)
        if asked.launching is None:
            return
        try:
            if asked.job:
                await self._end_job(await self._as_owner(asker, kept), asked.job)
            await self._begin(asker, name, wanted, asked, asked.launching.id, address)
        except CorralError:
            await self._release(name, own.id)
            raise

    async def _release(self, name: str, launching: str) -> None:
        """Withdraw a failed launch, unless another launch is under way."""

        def run(known: KeyValue | None) -> KeyValue | None:
            asked = None if known is None else _ASKED.decode(known.body)
            if known is None or asked is None:
                return None
            if asked.launching is None or asked.launching.id != launching:
                return _framework_kept(known, asked)
            return _framework_kept(known, msgspec.structs.replace(asked, launching=None)) if asked.job else None

        await self._records.change_key_value(FRAMEWORK, name, run)

    async def _begin(
        self, owner: Actor, name: str, wanted: dict[str, Any], before: Asked, launching: str, address: str
    ) -> None:
        """Submit the job of a Framework and store its id; a repetition gives the same job.

        Raises Conflict when the Framework was removed or launched by somebody else meanwhile; then the job is stopped.
        """
        now = self._clock.now()
        nodes = (await self._configuration(CLUSTER))["nodes"]
        sorts = {node: said["gpuType"] for node, said in nodes.items() if said["gpuType"]}
        cluster = Cluster(self._fs_uri, address, sorts)
        document = await self._context.run_in_worker(
            json_size(wanted) <= INLINE_BYTES, launcher_job, name, wanted, owner.user, cluster
        )
        key = hashlib.sha256(f"{name}\0{launching}".encode()).hexdigest()
        submitted = await self._submission.submit(
            owner,
            json.dumps(document),
            idempotency_key=f"launcher:{key[:40]}",
            wait_for_capacity=True,
            unique_name="none",
        )
        assert submitted.detail is not None
        first, job = before.first_at, submitted.detail.id
        asked_now = Asked(wanted, job, first, now, namespace=before.namespace)
        begun = _framework_kept(KeyValue(FRAMEWORK, name, owner.user, "", first, now), asked_now)

        def settle(known: KeyValue | None) -> KeyValue | None:
            asked = None if known is None else _ASKED.decode(known.body)
            if known is None or asked is None:
                return None
            own = asked.launching is not None and asked.launching.id == launching
            return begun if own else _framework_kept(known, asked)

        kept = await self._records.change_key_value(FRAMEWORK, name, settle)
        if kept is None or _ASKED.decode(kept.body).job != job:
            await self._end_job(owner, job)
            raise Conflict("framework-launching", f"{name} was removed or launched anew meanwhile; look at it first.")

    async def _change_framework(self, owner: Actor, name: str, before: Asked, wanted: dict[str, Any]) -> None:
        """Apply a descriptor to a Framework in place: the sizes of its roles, and whether it runs."""
        record = await self._store.find_job(before.job)
        if record is not None and record.live:
            await self._rescale(owner, before, wanted)
            if wanted["executionType"] == descriptors.STOP and not record.run.stop_requested:
                await self._job_commands.stop(owner, before.job)
        now = self._clock.now()

        def change(asked: Asked) -> Asked:
            if asked.job != before.job:  # launched anew meanwhile: keep that request
                return asked
            return msgspec.structs.replace(asked, descriptor=wanted, last_at=now)

        await self._keep(name, change)

    async def _rescale(self, owner: Actor, before: Asked, wanted: dict[str, Any]) -> None:
        roles = before.descriptor["taskRoles"]
        changed = {
            role: said["taskNumber"]
            for role, said in wanted["taskRoles"].items()
            if role in roles and said["taskNumber"] != roles[role]["taskNumber"]
        }
        if not changed:
            return
        record, decision = await self._context.job_for(owner, before.job, "job.scale")
        notes = json.loads(record.doc)["metadata"]["annotations"]
        names: Mapping[str, str] = json.loads(notes[ROLES])
        own = {role: label for label, role in names.items()}
        if left_out := [role for role in changed if role not in own]:
            why = f"The role {left_out[0]} began with no task, so it is no part of the job"
            raise InvalidInput("role-without-tasks", f"{why}; give the Framework another version to begin it anew.")
        sizes = {own[role]: number for role, number in changed.items()}
        UnifiedJob.from_document(json.loads(record.doc)).check_sizes(sizes)
        await self._store.scale(
            record.id,
            sizes,
            asked={own[role]: roles[role]["taskNumber"] for role in changed},
            actor=owner.user,
            at=self._clock.now(),
            audits=[
                self._context.line(owner, "job.scale", job_resource(record), decision, role=role, replicas=number)
                for role, number in sizes.items()
            ],
            most_tasks=self._context.allowance.tasks,
        )

    async def _keep(self, name: str, change: Callable[[Asked], Asked]) -> None:
        """Change the stored request of a Framework in one transaction."""
        now = self._clock.now()

        def run(known: KeyValue | None) -> KeyValue | None:
            if known is None:
                return None
            return _framework_kept(msgspec.structs.replace(known, changed_at=now), change(_ASKED.decode(known.body)))

        await self._records.change_key_value(FRAMEWORK, name, run)

    async def _end_job(self, owner: Actor, job: str) -> None:
        """Stop a job, unless it is over."""
        record = await self._store.find_job(job)
        if record is not None and record.live and not record.run.stop_requested:
            await self._job_commands.stop(owner, job)

    async def _remove(self, asker: Actor, known: KeyValue) -> None:
        """Remove a Framework, and those that asked to be deleted with it."""
        waiting, seen = [known.name], {known.name}
        while waiting:
            one = await self._records.key_value(FRAMEWORK, waiting.pop())
            if one is None:
                continue
            asked = _ASKED.decode(one.body)
            if asked.job and await self._store.find_job(asked.job) is not None:
                await self._removal.stop_and_remove(await self._as_owner(asker, one), asked.job)
            await self._records.change_key_value(FRAMEWORK, one.name, lambda _: None)
            waiting += await self._children(one.name, _DELETE, seen)

    async def _stop_with_children(self, asker: Actor, name: str) -> None:
        """Stop the Frameworks that asked to be stopped with their parent."""
        seen = {name}
        waiting = await self._children(name, _STOP, seen)
        while waiting:
            child = await self._records.key_value(FRAMEWORK, waiting.pop())
            asked = None if child is None else _ASKED.decode(child.body)
            if child is None or asked is None or asked.descriptor["executionType"] == descriptors.STOP:
                continue
            stopped = {**asked.descriptor, "executionType": descriptors.STOP}
            await self._change_framework(await self._as_owner(asker, child), child.name, asked, stopped)
            waiting += await self._children(child.name, _STOP, seen)

    async def _children(self, name: str, when: str, seen: set[str]) -> list[str]:
        """The children of a Framework that are not in `seen`, to which they are added; at most 10,000 in all."""
        found = [child for child, _ in await self._records.beside(FRAMEWORK, when, text=name) if child not in seen]
        found = found[: max(0, _MOST_CHILDREN - len(seen))]
        seen.update(found)
        return found

    async def _check_parent(self, name: str, wanted: dict[str, Any]) -> None:
        parent = wanted["parentFramework"]
        if parent is None or not parent["deleteOnParentDeleted"] or parent["parentFrameworkName"] == name:
            return
        if await self._records.key_value(FRAMEWORK, parent["parentFrameworkName"]) is None:
            why = f"The parent {parent['parentFrameworkName']} is not there, and {name} is to go when it goes."
            raise InvalidInput("no-parent", f"{why} Launch the parent first.")

    async def _check_total(self, name: str, tasks: int) -> None:
        others = await self._records.sum_beside(FRAMEWORK, _TASKS, but=name)
        if others + tasks > self.most_launched_tasks:
            what = (
                f"All Frameworks together would have {others + tasks} tasks, and {self.most_launched_tasks} are taken"
            )
            raise TooManyTasks("too-many-tasks", f"{what}; try again when others have been deleted.")

    async def _task_in(self, name: str, job: str, container: str) -> tuple[str, int]:
        """The role and index of the task that now runs in a container.

        Raises NotFound.
        """
        gone = NotFound("no-container", f"The Framework {name} runs nothing in a container {container[:200]}.")
        try:
            key = parse_attempt_id(container)
        except ValueError:
            raise gone from None
        record = await self._store.find_job(job)
        task = None if record is None else await self._store.task(job, key.role, key.index)
        if record is None or task is None or key.job != JobId(job) or key.job_attempt != record.run.attempt:
            raise gone
        if task.attempt != key.task_attempt or task.state not in (TaskState.PREPARING, TaskState.RUNNING):
            raise gone
        return key.role, key.index


def _framework_kept(known: KeyValue, asked: Asked) -> KeyValue:
    """The stored form of a Framework, with the columns by which all Frameworks are searched."""
    beside = {_TASKS: str(descriptors.total_tasks(asked.descriptor))}
    parent = asked.descriptor["parentFramework"]
    if parent is not None and parent["parentFrameworkName"] != known.name:
        beside |= {when: parent["parentFrameworkName"] for when in (_DELETE, _STOP) if parent[when]}
    return msgspec.structs.replace(known, body=msgspec.json.encode(asked).decode(), beside=beside)


def _claimed(
    known: KeyValue | None, name: str, wanted: dict[str, Any], job: str, own: Launching, space: str
) -> KeyValue:
    """The Framework with a started launch: `own`, or an earlier one with the same request; `job` is its last job.

    Raises Conflict when another launch is under way or has just finished.
    """
    if known is None:
        return _first_claim(name, wanted, own, space)
    asked = _ASKED.decode(known.body)
    one, same = asked.launching, _framework_kept(known, asked)
    if one is not None and (one.user, one.asks) == (own.user, own.asks):
        return same
    if one is not None and own.at - one.at < _LAUNCH_SECONDS:
        raise _being_launched(name, one.user)
    if asked.job != job:
        if (known.owner, asked.descriptor) != (own.user, wanted):
            raise _being_launched(name, known.owner)
        return same
    if not job:
        return _first_claim(name, wanted, own, space)
    return _framework_kept(known, msgspec.structs.replace(asked, launching=own))


def _first_claim(name: str, wanted: dict[str, Any], own: Launching, space: str) -> KeyValue:
    asked = Asked(wanted, "", own.at, own.at, launching=own, namespace=space)
    return _framework_kept(KeyValue(FRAMEWORK, name, own.user, "", own.at, own.at), asked)


def _being_launched(name: str, user: str) -> Conflict:
    return Conflict("framework-launching", f"{name} is being launched by {user}; look at it first.")


def _digest(wanted: dict[str, Any], address: str) -> str:
    return hashlib.sha256(json.dumps([wanted, address], sort_keys=True).encode()).hexdigest()


def _check_name(name: str) -> None:
    if not descriptors.NAME.fullmatch(name):
        raise InvalidInput("bad-name", f"A Framework's name has {descriptors.NAMED}.")
    namespace, sign, rest = name.partition("~")
    if sign and (not namespace or not rest or "~" in rest):
        why = "A Framework of a namespace is called NAMESPACE~NAME, with one ~ and something on both of its sides."
        raise InvalidInput("bad-name", why)


def _with_number(descriptor: dict[str, Any], role: str, number: int) -> dict[str, Any]:
    roles = descriptor["taskRoles"]
    return {**descriptor, "taskRoles": {**roles, role: {**roles[role], "taskNumber": number}}}


def _not_requested(name: str) -> NotFound:
    return NotFound("framework-not-found", f"There is no Framework {name[:300]}; PUT it first.")
