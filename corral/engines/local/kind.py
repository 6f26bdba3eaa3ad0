"""The local kind of engine: tasks are processes of this machine."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import Field

from corral.engines.kind import BuiltEngine, DoctorOptions, EngineContext, EngineKind, EngineSettings, Finding
from corral.kernel.errors import InvalidInput
from corral.model.store_writes import EngineHome

if TYPE_CHECKING:
    from corral.devices.discovery_result import DiscoveryResult
    from corral.engines.local.device_monitor import DeviceMonitor
    from corral.model.inventory import Inventory
    from corral.spec.cluster import ClusterDocument

_FOLDER: Final = "engine"
"""The engine's folder in the data folder."""


class LocalSettings(EngineSettings):
    """Tasks as processes of this machine (`--engine local`)."""

    port_range_start: int = Field(
        default=20000, ge=1024, le=65000, description="The first of the ports that local tasks are given."
    )
    port_range_end: int = Field(
        default=29999, ge=1024, le=65535, description="The last of the ports that local tasks are given."
    )
    folder_limit_bytes: int = Field(
        default=256 * 1024**3,
        ge=0,
        description="How much the working folder that a task of this machine is given may hold, looked at twice a minute: "
        "a task with more is ended. Storages and a `workingDir` of the job's own do not count; 0 is no limit.",
    )
    process_limit: int = Field(
        default=16384,
        ge=0,
        description="How many processes and threads a task of this machine may have, in a container too; 0 is no limit. "
        "Without control groups that can count them it bounds those of the task's user together, and nothing for root.",
    )


class LocalKind(EngineKind[LocalSettings]):
    """Processes of this machine, which may present itself as several nodes."""

    name = "local"
    page = "reference/settings.md"
    settings = LocalSettings
    on_this_machine = True

    def check(self, settings: LocalSettings) -> None:
        """Refuse an empty range of ports.

        Raises InvalidInput.
        """
        if settings.port_range_start > settings.port_range_end:
            raise InvalidInput("port-range-empty", "port_range_start must not be above port_range_end.")

    def home(self, folder: Path) -> EngineHome:
        """Return the home that the engine's folder names: tasks are found in this folder on this machine only."""
        from corral.engines.local.engine_identity import home_of

        return home_of((folder / _FOLDER).absolute())

    def is_same_home(self, before: EngineHome, now: EngineHome) -> bool:
        """Return whether the recorded home is the present one, possibly moved within its machine."""
        from corral.engines.local.engine_identity import is_same

        return before == now or is_same(before, now)

    def disk_limit(self, settings: LocalSettings) -> int:
        """Return the limit of a task's working folder."""
        return settings.folder_limit_bytes

    def container_runtime(self) -> str:
        """Return the container runtime that answers on this machine, "" for none."""
        from corral.engines.local.containers import container_runtime

        return container_runtime() or ""

    async def build(self, context: EngineContext, settings: LocalSettings) -> BuiltEngine:
        """Construct the engine; its nodes are presented once the documents are read."""
        from corral.engines.local.device_monitor import DeviceMonitor
        from corral.engines.local.engine import LocalEngine

        engine = LocalEngine(
            context.folder / _FOLDER,
            (),
            logs=context.logs,
            uid_of=context.uid_of,
            port_range=(settings.port_range_start, settings.port_range_end),
            blobs=context.code,
            log_limit_bytes=context.log_limit_bytes,
            folder_limit_bytes=settings.folder_limit_bytes,
            process_limit=settings.process_limit,
        )
        monitor = DeviceMonitor(engine.set_inventory)
        return BuiltEngine(engine, LocalInventory(monitor, self.name), monitor.run)

    async def doctor(self, settings: LocalSettings, options: DoctorOptions) -> list[Finding]:
        """Say which devices and optional programs of this machine tasks can use."""
        runtime, launcher = self.container_runtime(), shutil.which("mpirun")
        return [
            await asyncio.to_thread(devices_finding),
            Finding(
                "containers",
                "good" if runtime else "note",
                runtime or "none answers; jobs that name an image are refused",
            ),
            Finding("mpirun", "good" if launcher else "note", launcher or "not found; MPI jobs need Open MPI"),
        ]


def devices_finding(discover: Callable[[], DiscoveryResult] | None = None) -> Finding:
    """Say which devices this machine has: how many of each model, which are unhealthy, and whether parts are confined."""
    from corral.devices.machine_inventory import devices_found
    from corral.devices.mps import daemon_runs

    found = (discover or devices_found)()
    if not found.devices:
        return Finding("devices", "note", f"none found{f' ({found.note})' if found.note else ''}; tasks run without")
    models = Counter(device.model or device.kind for device in found.devices)
    told = ", ".join(f"{count} {model}" for model, count in models.items())
    unhealthy = [f"device {each.index}: {each.health_reason}" for each in found.devices if not each.healthy]
    if unhealthy:
        return Finding("devices", "bad", f"{told}; not used are {'; '.join(unhealthy)}")
    return Finding("devices", "good", told + ("; Multi-Process Service runs" if daemon_runs() else ""))


class LocalInventory:
    """Reads this machine's nodes: those that the document describes here, or else the machine as found."""

    def __init__(self, monitor: DeviceMonitor, engine: str) -> None:
        self._monitor, self._engine = monitor, engine

    def described(self, document: ClusterDocument | None) -> Inventory:
        """Return the inventory with this document."""
        from corral.devices.machine_inventory import presented

        return presented(document, self._engine)

    def present(self, document: ClusterDocument | None) -> None:
        """Report the document's nodes from now on, and what changes of the machine."""
        from corral.devices.machine_inventory import may_change

        self._monitor.follow(lambda: self.described(document), again=may_change(document))
