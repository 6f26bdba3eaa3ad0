"""What a kind of engine declares: its settings, how it is built, what reads its nodes, its checks and its page.

A kind is found by its entry point (`corral.engines.registry`). The server loads the kinds that its setting `engine`
names, and asks them. A module with a kind imports little, because the process that serves the API loads it too; what
`build` and `doctor` need is imported there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from pydantic_settings import BaseSettings, SettingsConfigDict

from corral.kernel.errors import Unauthenticated
from corral.model.store_writes import EngineHome, home_of_engine

if TYPE_CHECKING:
    from corral.engines.base import Documents, Engine
    from corral.model.inventory import Inventory
    from corral.model.kubernetes_objects import ObjectAddress
    from corral.spec.cluster import ClusterDocument
    from corral.storage.block_locations import NameNodes
    from corral.storage.code_archives import BlobStore
    from corral.storage.log_archiver import LogArchiver
    from corral.storage.log_files import LogStore


class EngineSettings(BaseSettings):
    """The settings of one kind of engine, from the same options and `CORRAL_…` variables as the server's own."""

    model_config = SettingsConfigDict(env_prefix="CORRAL_", extra="ignore", frozen=True)


S = TypeVar("S", bound=EngineSettings)


class Finding(NamedTuple):
    """The result of one check. `state` is good, note or bad; `message` says what to do."""

    name: str
    state: str
    message: str


class DoctorOptions(NamedTuple):
    """What `corral doctor` was asked."""

    probe: bool = True
    """Whether to run a test task."""
    node: str = ""
    """On which node; "" is any."""
    url: str = ""
    """Where tasks reach the server (`advertise`); "" if it was not said."""


def no_secret(engine: str) -> bytes:
    """Stand for the secrets of a server that has no key.

    Raises LookupError.
    """
    raise LookupError(f"this server has no secret for the engine {engine}")


@dataclass(frozen=True)
class EngineContext:
    """The server's part of an engine."""

    folder: Path
    """The server's data folder."""
    api_url: str
    """Where tasks reach the server."""
    logs: LogStore
    code: BlobStore
    archiver: LogArchiver | None
    """Copies logs for all replicas; None where the data folder keeps them."""
    uid_of: Callable[[str], int | None]
    """The system uid of an account's tasks; None is the server's own."""
    lease_left: Callable[[], float]
    """Seconds that this server may still act; no call to the engine may outlive them."""
    server: Callable[[], Awaitable[str]]
    """Returns the permanent UID of this server, which labels what it owns elsewhere."""
    log_limit_bytes: int = 0
    """The last bytes of a stream's log that are kept; 0 keeps all."""
    api_certificate: str = ""
    """The server's own certificate (PEM) for programs that call `api_url`; "" means their machine's trust store."""
    secret: Callable[[str], bytes] = no_secret
    """Returns the server's secret of 32 bytes for the engine of this name: equal after each start, and in front."""

    def agents_url(self, engine: str) -> str:
        """Return where the agents of an engine call."""
        return f"{self.api_url.rstrip('/')}/api/v3/slots/{engine}"


class InventoryReader(Protocol):
    """Reads the nodes of an engine that do not come from the engine itself: described ones, or the machine as found."""

    def described(self, document: ClusterDocument | None) -> Inventory:
        """Return the inventory that the engine would have with this Cluster document; None is no document."""
        ...

    def present(self, document: ClusterDocument | None) -> None:
        """Have the engine present the document's nodes from now on."""
        ...


Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
"""An ASGI application."""


class JobObjects(NamedTuple):
    """Objects of an engine's cluster that are submitted as jobs."""

    accounts: str
    """As which account those of a namespace are submitted: `NAMESPACE=ACCOUNT`, separated by commas; "": none are."""
    kinds: str
    """The kinds of objects, separated by commas."""
    documents: Callable[[Iterable[ObjectAddress]], Documents]
    """Opens the objects of some kinds."""


@dataclass(frozen=True)
class BuiltEngine:
    """An engine with what belongs to it."""

    engine: Engine
    inventory: InventoryReader | None = None
    """Reads its nodes; None where the engine finds them itself."""
    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs beside the engine until cancelled."""
    objects: JobObjects | None = None
    name_nodes: NameNodes | None = None
    """The NameNodes that say where the inputs of jobs are; None if it has none."""
    agents: Application | None = None
    """An ASGI application for the calls of the engine's agents on other machines, at `EngineContext.agents_url`."""


class EngineKind(ABC, Generic[S]):
    """A kind of engine. Everything but the settings and `build` has a default for tasks on other machines."""

    name: ClassVar[str]
    """What `--engine` calls it: the name of its entry point, of its engine, and the first part of its nodes' names."""
    page: ClassVar[str] = ""
    """The page that describes it: a file of `docs/`, or a URL."""
    settings: type[S]
    """The settings that it declares."""
    on_this_machine: ClassVar[bool] = False
    """Whether tasks are processes of the server's machine.

    They reach it at a loopback address, and run under the system users of their accounts where the server may set them.
    """
    has_agents: ClassVar[bool] = False
    """Whether programs of this engine on other machines call the server. Other calls to that address are refused."""

    def agent(self, secret: bytes, token: str) -> str:
        """Return the name of the agent that has this token; front asks before it passes a call on to the engine.

        `secret` is `EngineContext.secret` of this engine. Raises Unauthenticated.
        """
        raise Unauthenticated("no-agents", f"The engine {self.name} has no agents.")

    def check(self, settings: S) -> None:
        """Refuse settings that cannot work, before anything starts.

        Raises InvalidInput that names the setting.
        """

    def home(self, folder: Path) -> EngineHome:
        """Return where this engine's tasks run, for a server with this data folder.

        The default fits an engine that finds its tasks from any machine. Raises OSError.
        """
        return home_of_engine(self.name)

    def is_same_home(self, before: EngineHome, now: EngineHome) -> bool:
        """Return whether this server finds the tasks that run at the recorded home."""
        return before == now

    def disk_limit(self, settings: S) -> int:
        """Return how many bytes a task may write to its node unless it reserves more; 0 is no limit."""
        return 0

    def container_runtime(self) -> str:
        """Return what runs the images of jobs; "" when jobs that name one are refused."""
        return self.name

    @abstractmethod
    async def build(self, context: EngineContext, settings: S) -> BuiltEngine:
        """Construct the engine, without opening it.

        Raises InvalidInput for unusable settings.
        """

    async def doctor(self, settings: S, options: DoctorOptions) -> list[Finding]:
        """Check the machines before the first job, changing nothing but a test task."""
        return []
