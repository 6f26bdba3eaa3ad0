"""Make, change and end the YARN services of jobs, and their files in HDFS, as the Hadoop users of their accounts."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from corral.engines.yarn.fetch_failures import Unfetched, unfetched, words_of_end
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.service_spec import (
    AGENTS,
    CREDENTIALS,
    RUNTIME,
    SCRIPT,
    WRAPPER,
    SlotShape,
    service_of,
    service_prefix,
)
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.engines.yarn.slots import Service
from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import JobId
from corral.kernel.plug_ins import runtime_modules
from corral.runtime.build import build_runtime

_log = logging.getLogger(__name__)
_Shape = TypeVar("_Shape")
_ENDED_SERVICE: Final = frozenset({"STOPPED", "FAILED", "SUCCEEDED"})
"""States of a service whose application YARN or somebody else has ended."""
_ENDED_CONTAINER: Final = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
"""States of containers that are gone. That of a lost node stays listed as FAILED, as its successor gets no place there."""
_LIVE_STATES: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_ENDED_STATES: Final = "FINISHED,FAILED,KILLED"
_FILES_SECONDS: Final = 60.0
"""Seconds for which the files of a service are not looked at again once its user may read all of them. Where a thousand
jobs wait for containers, the NameNode is asked some fifty times a second.
"""
_NO_FILE: Final = "Src_file does not exist"
"""A part of YARN's refusal of a service whose files are not in HDFS."""


class _App(msgspec.Struct, frozen=True):
    """An application in the ResourceManager's list."""

    name: str
    user: str
    queue: str = ""
    diagnostics: str = ""


class _Container(msgspec.Struct, frozen=True):
    """A container of a component; one that has ended is listed until another one takes its place."""

    id: str
    component_instance_name: str = ""
    state: str = ""


class _Amount(msgspec.Struct, frozen=True):
    """An amount of a resource."""

    value: int


class _Resource(msgspec.Struct, frozen=True):
    """The resources of a component's containers; memory in MiB."""

    cpus: int
    memory: str
    additional: dict[str, _Amount] | None = None


class _Constraint(msgspec.Struct, frozen=True):
    """A placement constraint."""

    node_attributes: dict[str, tuple[str, ...]] | None = None
    node_partitions: tuple[str, ...] | None = None


class _Policy(msgspec.Struct, frozen=True):
    """A placement policy."""

    constraints: tuple[_Constraint, ...] = ()


class _Component(msgspec.Struct, frozen=True):
    """A component as the service API tells it."""

    name: str
    number_of_containers: Annotated[int, msgspec.Meta(ge=0)]
    resource: _Resource
    placement_policy: _Policy | None = None
    containers: tuple[_Container, ...] = ()
    decommissioned_instances: tuple[str, ...] = ()

    def awaited(self) -> list[str]:
        """The instances that have no container, the youngest last.

        A master numbers them from 0, and gives no number a second time after it was decommissioned.
        """
        given = {each.component_instance_name for each in self.containers if each.state not in _ENDED_CONTAINER}
        gone = set(self.decommissioned_instances)
        names = (f"{self.name}-{number}" for number in range(self.number_of_containers + len(gone)))
        asked_for = [name for name in names if name not in gone][: self.number_of_containers]
        return [name for name in asked_for if name not in given]


class _File(msgspec.Struct, frozen=True):
    """A file that a NodeManager fetches for a container."""

    src_file: str | None = None


class _Configuration(msgspec.Struct, frozen=True):
    """The configuration of a service."""

    files: tuple[_File, ...] = ()


class _Told(msgspec.Struct, frozen=True):
    """A service as the service API tells it."""

    components: tuple[_Component, ...] = ()
    state: str = ""
    id: str | None = None
    """Its application; None while YARN has not submitted one, although it calls such a service STOPPED."""
    configuration: _Configuration | None = None

    @property
    def is_over(self) -> bool:
        """Whether it had an application, which has ended."""
        return bool(self.id) and self.state in _ENDED_SERVICE


class Look(NamedTuple):
    """What is found of a service from which containers are awaited."""

    is_over: bool
    """Whether its application has ended: YARN gives it no more containers."""
    trouble: str
    """Why it gives none, in a sentence; "" where no cause is known."""


class Known(Enum):
    """What YARN knows of the name of a service that it does not list as live."""

    NOTHING = "nothing"
    """It has no description: the service was deleted."""
    ASKED_FOR = "asked for"
    """It has a description and no application yet: it is making the service."""
    LIVE = "live"
    """Its application lives, and the list is late."""
    ENDED = "ended"
    """Its application has ended, and its description was not deleted."""


class Services:
    """The services of one server in one cluster."""

    def __init__(self, settings: YarnSettings, yarn: HadoopRest, files: HadoopRest, tokens: SlotTokens) -> None:
        self._settings, self._yarn, self._files, self._tokens = settings, yarn, files, tokens
        self._programs: dict[str, str] = {}
        """The paths in HDFS of the files that all slots run."""
        self._homes: dict[str, str] = {}
        """The home folders in HDFS by user."""
        self._staging = asyncio.Lock()
        self._readable: dict[str, float] = {}
        """By service until when its files are not looked at."""

    async def stage_programs(self) -> None:
        """Put the programs of slots into HDFS under their hashes, where every user can read them. Raises a CorralError."""
        async with self._staging:
            await self._stage_programs()

    async def _stage_missing(self, program: str) -> None:
        """Put the programs into HDFS again, unless that was done for another service meanwhile. Raises a CorralError."""
        async with self._staging:
            try:
                await self._files.ask("GET", f"/webhdfs/v1{quote(program)}", op="GETFILESTATUS")
            except NotFound:
                await self._stage_programs()

    async def _stage_programs(self) -> None:
        home = f"{self._settings.folder}/{self._settings.server}"
        await self._open_to_readers(f"/webhdfs/v1{quote(home)}")
        with tempfile.TemporaryDirectory() as folder:
            zipapp = Path(folder) / "runtime.pyz"
            runtime = await asyncio.to_thread(lambda: build_runtime(zipapp, runtime_modules()).read_bytes())
        for name, content in ((RUNTIME, runtime), (WRAPPER, SCRIPT.encode())):
            digest = hashlib.sha256(content).hexdigest()[:16]
            path = f"{home}/{digest}-{name}"
            try:
                await self._files.ask("GET", f"/webhdfs/v1{quote(path)}", op="GETFILESTATUS")
            except NotFound:
                await self._files.put_file(f"/webhdfs/v1{quote(path)}", content, permission="644", overwrite="true")
            self._programs[name] = path

    async def _open_to_readers(self, folder: str) -> None:
        """Have a folder that every user may read: containers run as the users of their jobs.

        It is made before any folder in it, because HDFS gives a missing folder above another the mode of that one.
        """
        await self._files.ask("PUT", folder, op="MKDIRS", permission="755")
        status = (await self._files.ask("GET", folder, op="GETFILESTATUS"))["FileStatus"]
        if int(str(status["permission"]), 8) & 0o5 != 0o5:
            await self._files.ask("PUT", folder, op="SETPERMISSION", permission="755")

    async def all(self) -> list[Service]:
        """Every service of this server's jobs that has not ended. Raises a CorralError."""
        found = []
        for app in await self._live_apps():
            told = None if self._has_agents(app) else await self._told(app.name, app.user)
            if told is not None:
                found.append(_service(app, told, self._settings))
        return found

    async def of_agents(self) -> dict[str, Service | None]:
        """Every service of this server's agents that has not ended, by name; None where its master does not answer.

        Raises a CorralError when YARN does not list them.
        """
        found: dict[str, Service | None] = {}
        for app in filter(self._has_agents, await self._live_apps()):
            try:
                told = await self._told(app.name, app.user)
            except CorralError:
                found[app.name] = None
                continue
            if told is not None:
                found[app.name] = _service(app, told, self._settings)
        return found

    def _has_agents(self, app: _App) -> bool:
        return app.name.startswith(f"{service_prefix(self._settings)}{AGENTS}-")

    def programs(self) -> dict[str, str]:
        """The paths in HDFS of the files that all slots run."""
        return dict(self._programs)

    async def find(self, name: str) -> Service | None:
        """The service with this name; None when its application has ended or is not there. Raises a CorralError.

        No other service is asked for: a master that is starting answers no question, and each question takes time.
        """
        app = next((each for each in await self._live_apps() if each.name == name), None)
        if app is None:
            return None
        told = await self._told(app.name, app.user)
        if told is None:
            raise Unavailable("service-awaited", f"YARN lists the service {name} and does not describe it yet.")
        return _service(app, told, self._settings)

    async def known(self, service: Service) -> Known:
        """What YARN knows of the name of a service. Raises Unavailable when it cannot say."""
        told = await self._told(service.name, service.user)
        if told is None:
            return Known.NOTHING
        if not told.id:
            return Known.ASKED_FOR
        return Known.ENDED if told.is_over else Known.LIVE

    async def _live_apps(self) -> list[_App]:
        """The applications of this server's services that have not ended."""
        prefix = service_prefix(self._settings)
        answer = await self._yarn.ask(
            "GET", "/ws/v1/cluster/apps", states=_LIVE_STATES, applicationTypes="yarn-service"
        )
        apps = _read((answer.get("apps") or {}).get("app", []), list[_App])
        return [app for app in apps if app.name.startswith(prefix)]

    async def live_names(self) -> frozenset[str]:
        """The names of this server's services whose applications have not ended. Raises a CorralError."""
        return frozenset(app.name for app in await self._live_apps())

    async def make(self, service: Service, *, probe: bool = False, agent: Mapping[str, Any] | None = None) -> None:
        """Ask YARN for a service and its containers. Raises a CorralError; Conflict if it is there already.

        The containers of a `probe` only tell the devices of their nodes, and end. Those with an `agent` run it.
        """
        files = {**self._programs, CREDENTIALS: await self._write_credentials(service, probe, agent)}
        components = {name: (shape, service.wanted[name]) for name, shape in service.components.items()}
        body = service_of(self._settings, service.name, service.queue, components, files, user=service.user, once=probe)
        try:
            await self._yarn.ask("POST", "/app/v1/services", user=service.user, body=body)
        except InvalidInput as error:
            if _NO_FILE not in error.message:
                raise
            _log.warning("the programs of containers are not in HDFS any more, and are written again")
            await self.stage_programs()
            await self._yarn.ask("POST", "/app/v1/services", user=service.user, body=body)

    async def set_count(self, service: Service, component: str, count: int) -> None:
        """Ask for another number of containers of a component. Raises a CorralError."""
        path = f"/app/v1/services/{service.name}/components/{component}"
        body = {"name": component, "number_of_containers": count}
        await self._yarn.ask("PUT", path, user=service.user, body=body)
        service.wanted[component] = count

    async def give_back(self, service: Service, component: str, instance: str) -> None:
        """Give one container back to YARN. Raises a CorralError."""
        body = {"components": [{"name": component, "decommissioned_instances": [instance]}]}
        await self._yarn.ask("PUT", f"/app/v1/services/{service.name}", user=service.user, body=body)
        service.wanted[component] -= 1
        service.returned += 1

    async def give_back_awaited(self, service: Service, component: str, count: int, known: Collection[str]) -> None:
        """Ask no more for up to `count` containers that YARN has not given. Raises a CorralError.

        Nothing is given back while YARN does not list the `known` ones: a master that starts again lists none at first.
        The instances are named, as a lower number of containers would end those that were given last.
        """
        told = await self._told(service.name, service.user)
        found = next((each for each in told.components if each.name == component), None) if told else None
        if found is None or not {each.id for each in found.containers}.issuperset(known):
            return
        names = found.awaited()[-count:]
        if names:
            body = {"components": [{"name": component, "decommissioned_instances": names}]}
            await self._yarn.ask("PUT", f"/app/v1/services/{service.name}", user=service.user, body=body)
            service.wanted[component] -= len(names)
            service.returned += len(names)

    async def prolong(self, service: Service) -> None:
        """Let a service's lifetime begin anew. Raises a CorralError."""
        body = {"lifetime": self._settings.lifetime_seconds}
        await self._yarn.ask("PUT", f"/app/v1/services/{service.name}", user=service.user, body=body)

    async def containers(self, service: Service) -> set[str]:
        """The containers of a service that have not ended; none when it is gone.

        Raises Unavailable when YARN cannot say.
        """
        told = await self._told(service.name, service.user)
        listed = (each for component in (told.components if told else ()) for each in component.containers)
        return {each.id for each in listed if each.state not in _ENDED_CONTAINER}

    async def look(self, service: Service) -> Look:
        """What is found of a service from which containers are awaited; a file that is missing is written again.

        Where its user may read all files, they are looked at once a minute.

        Raises Unavailable when YARN or the NameNode does not answer.
        """
        told = await self._told(service.name, service.user)
        if told is None or told.is_over:
            return Look(True, await self.end_of(service))
        now = asyncio.get_running_loop().time()
        if now < self._readable.get(service.name, now):
            return Look(False, "")
        given = [each.src_file for each in told.configuration.files] if told.configuration else []
        found = await unfetched(self._files, filter(None, given), service.user)
        if found is None:
            self._readable[service.name] = now + _FILES_SECONDS
            return Look(False, "")
        return Look(False, await self._restored(service, found))

    async def _restored(self, service: Service, found: Unfetched) -> str:
        """Write a file that is missing again, if it is of this server's; the sentence about it. Raises Unavailable."""
        said = found.sentence(service.user)
        try:
            if found.is_missing and found.path in self._programs.values():
                await self._stage_missing(found.path)
            elif found.is_missing and found.path == f"{await self._folder(service)}/{CREDENTIALS}":
                await self._write_credentials(service, False, None)
            else:
                return said
        except Unavailable:
            raise
        except CorralError as error:
            return f"{said} It cannot be written again ({error.code})."
        return f"{said} Corral has written it again."

    async def end_of(self, service: Service) -> str:
        """What YARN says of the end of a service's application, in a sentence; "" where it says nothing."""
        tag, kind = f"name: {service.name}", "yarn-service"
        try:
            answer = await self._yarn.ask(
                "GET",
                "/ws/v1/cluster/apps",
                user=service.user,
                states=_ENDED_STATES,
                applicationTypes=kind,
                applicationTags=tag,
            )
            apps = _read((answer.get("apps") or {}).get("app", []), list[_App])
        except CorralError as error:
            _log.warning("YARN does not tell the end of the service %s: %s", service.name, error.message)
            return ""
        said = next((words_of_end(app.diagnostics) for app in apps if app.name == service.name), "")
        return f"YARN ended the service {service.name}: {said}." if said else ""

    async def delete(self, service: Service) -> None:
        """End a service with all its containers, and remove its files. Raises a CorralError."""
        self._readable.pop(service.name, None)
        try:
            await self._yarn.ask("DELETE", f"/app/v1/services/{service.name}", user=service.user)
        except NotFound:
            pass
        folder = f"/webhdfs/v1{quote(await self._folder(service))}"
        await self._files.ask("DELETE", folder, user=service.user, op="DELETE", recursive="true")

    async def _told(self, name: str, user: str) -> _Told | None:
        try:
            told = await self._yarn.ask("GET", f"/app/v1/services/{name}", user=user)
        except NotFound:
            return None
        return _read(told, _Told)

    async def _write_credentials(self, service: Service, probe: bool, agent: Mapping[str, Any] | None) -> str:
        content = {
            "url": self._settings.url,
            "certificate": self._settings.certificate,
            "service": service.name,
            "token": self._tokens.of_service(service.name),
            "stage_command": list(self._settings.stage_command),
            "probe": probe,
            "agent": agent,
        }
        path = f"{await self._folder(service)}/{CREDENTIALS}"
        data = msgspec.json.encode(content)
        place = f"/webhdfs/v1{quote(path)}"
        await self._files.put_file(place, data, user=service.user, permission="600", overwrite="true")
        return path

    async def _folder(self, service: Service) -> str:
        """The folder of a service in its user's home."""
        if service.user not in self._homes:
            told = await self._files.ask("GET", "/webhdfs/v1/", user=service.user, op="GETHOMEDIRECTORY")
            self._homes[service.user] = str(told["Path"])
        return f"{self._homes[service.user]}/.corral/{self._settings.server}/{service.name}"


def _read(told: Any, shape: type[_Shape]) -> _Shape:
    """An answer in its shape. Raises Unavailable when it has another one."""
    try:
        return msgspec.convert(told, shape)
    except msgspec.ValidationError as error:
        message = f"The ResourceManager's answer about services has an unknown form: {error}."
        raise Unavailable("hadoop-answer", message) from None


def _service(app: _App, told: _Told, settings: YarnSettings) -> Service:
    """A service as YARN describes it."""
    shapes: dict[str, SlotShape] = {}
    for each in told.components:
        more = {key: amount.value for key, amount in (each.resource.additional or {}).items()}
        devices = more.pop(settings.device_resource, 0)
        constraints = each.placement_policy.constraints if each.placement_policy else ()
        attributes = (constraints[0].node_attributes or {}) if constraints else {}
        partitions = (constraints[0].node_partitions or ()) if constraints else ()
        node = next(iter(attributes.get(settings.attribute, ("",))), "")
        role = each.name.rpartition("-n")[0]
        memory = int(each.resource.memory) * 2**20
        shapes[each.name] = SlotShape(
            role,
            node,
            1000 * each.resource.cpus,
            memory,
            devices,
            tuple(sorted(more.items())),
            next(iter(partitions), ""),
        )
    wanted = {each.name: each.number_of_containers for each in told.components}
    job = JobId(app.name.rpartition("-")[0].rpartition("-")[2])
    returned = sum(len(each.decommissioned_instances) for each in told.components)
    return Service(app.name, job, app.user, app.queue, shapes, wanted, returned=returned)
