"""Make, change and end the YARN services of jobs, and their files in HDFS, as the Hadoop users of their accounts."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.service_spec import (
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
from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import JobId
from corral.kernel.plug_ins import runtime_modules
from corral.runtime.build import build_runtime

_Shape = TypeVar("_Shape")
_ENDED_SERVICE: Final = frozenset({"STOPPED", "FAILED", "SUCCEEDED"})
"""States of a service whose application YARN or somebody else has ended."""
_ENDED_CONTAINER: Final = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
"""States of containers that are gone. That of a lost node stays listed as FAILED, as its successor gets no place there."""
_LIVE_STATES: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"


class _App(msgspec.Struct, frozen=True):
    """An application in the ResourceManager's list."""

    name: str
    user: str
    queue: str = ""


class _Container(msgspec.Struct, frozen=True):
    """A container of a component; one that has ended is listed until another one takes its place."""

    id: str
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


class _Told(msgspec.Struct, frozen=True):
    """A service as the service API tells it."""

    components: tuple[_Component, ...] = ()
    state: str = ""


class Services:
    """The services of one server in one cluster."""

    def __init__(self, settings: YarnSettings, yarn: HadoopRest, files: HadoopRest, tokens: SlotTokens) -> None:
        self._settings, self._yarn, self._files, self._tokens = settings, yarn, files, tokens
        self._programs: dict[str, str] = {}
        """The paths in HDFS of the files that all slots run."""
        self._homes: dict[str, str] = {}
        """The home folders in HDFS by user."""

    async def stage_programs(self) -> None:
        """Put the programs of slots into HDFS under their hashes, where every user can read them. Raises a CorralError."""
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
        """Every service of this server that has not ended. Raises a CorralError."""
        found = []
        for app in await self._live_apps():
            told = await self._told(app.name, app.user)
            if told is not None:
                found.append(_service(app, told, self._settings))
        return found

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

    async def make(self, service: Service, *, probe: bool = False) -> None:
        """Ask YARN for a service and its containers. Raises a CorralError; Conflict if it is there already.

        The containers of a `probe` only tell the devices of their nodes, and end.
        """
        files = {**self._programs, CREDENTIALS: await self._write_credentials(service, probe)}
        components = {name: (shape, service.wanted[name]) for name, shape in service.components.items()}
        body = service_of(self._settings, service.name, service.queue, components, files, user=service.user, once=probe)
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

    async def has_ended(self, service: Service) -> bool:
        """Whether a service's application is over: YARN gives it no more containers. Raises Unavailable."""
        told = await self._told(service.name, service.user)
        return told is None or told.state in _ENDED_SERVICE

    async def delete(self, service: Service) -> None:
        """End a service with all its containers, and remove its files. Raises a CorralError."""
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

    async def _write_credentials(self, service: Service, probe: bool) -> str:
        content = {
            "url": self._settings.url,
            "certificate": self._settings.certificate,
            "service": service.name,
            "token": self._tokens.of_service(service.name),
            "stage_command": list(self._settings.stage_command),
            "probe": probe,
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
    return Service(app.name, job, app.user, app.queue, shapes, wanted)
