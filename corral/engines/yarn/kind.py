"""The YARN kind of engine: tasks run in containers of one Hadoop cluster."""

from __future__ import annotations

import getpass
import shlex
from typing import TYPE_CHECKING

from pydantic import Field

from corral.engines.kind import BuiltEngine, DoctorOptions, EngineContext, EngineKind, EngineSettings, Finding
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.engines.yarn.settings import YarnSettings


class YarnOptions(EngineSettings):
    """Tasks in containers of a Hadoop cluster (`--engine yarn`)."""

    yarn_resource_managers: str = Field(
        default="",
        description="The URL of the ResourceManager, `http://HOST:8088`; of a pair both, separated by commas.",
    )
    yarn_name_nodes: str = Field(
        default="",
        description="The URL of the NameNode's WebHDFS, `http://HOST:9870`; of a pair both, separated by commas.",
    )
    yarn_user: str = Field(
        default="",
        pattern=r"^$|^[A-Za-z_][A-Za-z0-9_.@-]{0,99}$",
        description="The Hadoop user as whom Corral calls; empty: the first part of `yarn_principal`, else the system user "
        "of the server.",
    )
    yarn_principal: str = Field(
        default="",
        description="The Kerberos principal as which Corral calls, `NAME@REALM`, where the cluster asks for Kerberos. "
        "Empty: whichever one the server's ticket cache is of (`KRB5CCNAME`).",
    )
    yarn_keytab: str = Field(
        default="",
        description="The absolute path of the keytab of `yarn_principal`: Corral gets its tickets by it, and renews them. "
        "Empty: somebody else renews the server's ticket cache.",
    )
    yarn_service_principal: str = Field(
        default="",
        description="In a cluster with Kerberos the principal of a job's service, such as `{user}/_HOST@REALM`: `{user}` "
        "is the job's Hadoop user. Empty: a service has the delegation tokens that it was started with, "
        "and ends with them.",
    )
    yarn_service_keytab: str = Field(
        default="",
        description="Its keytab: `file:///FOLDER/{user}.keytab` on every node, or `hdfs://…`, readable by that user alone.",
    )
    yarn_users: str = Field(
        default="",
        description="As which Hadoop user the tasks of an account run: `ACCOUNT=USER`, separated by commas, the first "
        "that matches; ACCOUNT may have `*`, and `*` as USER is the account's own name. Hadoop must let `yarn_user` act "
        "for them (`hadoop.proxyuser`). Empty: all run as `yarn_user`.",
    )
    yarn_queue: str = Field(
        default="default",
        pattern=r"^[A-Za-z0-9_.-]{1,200}$",
        description="The YARN queue of the services, unless `yarn_queues` names another.",
    )
    yarn_queues: str = Field(
        default="",
        description="The YARN queue of a virtual cluster: `QUEUE=YARN-QUEUE`, separated by commas, the first that matches; "
        "`*=*` are queues of the same name.",
    )
    yarn_folder: str = Field(
        default="/apps/corral",
        pattern=r"^(/[A-Za-z0-9_.=-]{1,100}){1,10}$",
        description="The folder in HDFS for Corral's programs and records; `yarn_user` must be able to make folders in it.",
    )
    yarn_node_attribute: str = Field(
        default="nm.yarn.io/corral-node",
        pattern=r"^[a-z0-9.]{1,100}/[A-Za-z0-9_.-]{1,100}$",
        description="The node attribute that has each node's name: by it containers are pinned to the node that Corral "
        "chose.",
    )
    yarn_device_resource: str = Field(
        default="yarn.io/gpu",
        pattern=r"^[a-z0-9.]{1,100}/[A-Za-z0-9_.-]{1,100}$",
        description="The resource by which YARN counts devices: `yarn.io/gpu` or `nvidia.com/gpu`.",
    )
    yarn_device_kind: str = Field(
        default="gpu", pattern=r"^[a-z][a-z0-9-]{0,30}$", description="The kind that these devices are for Corral."
    )
    yarn_ports: str = Field(
        default="20000-29999",
        description="The ports that tasks are given on each node, `FIRST-LAST`; outside the kernel's range for client "
        "sockets no connection takes one.",
    )
    yarn_silent_seconds: float = Field(
        default=45.0,
        ge=1,
        le=86_400,
        description="Seconds without a sign of a container after which YARN is asked whether it is there. If not, such as "
        "on a node that is lost, its task is given up and tried elsewhere.",
    )
    yarn_probe_seconds: int = Field(
        default=0,
        ge=0,
        le=10 * 365 * 24 * 3600,
        description="Probe each node with devices once in so many seconds, by a small container: the names, links and "
        "faults that `nvidia-smi` or the kernel tells there. 0 never probes: devices are then only numbered.",
    )
    yarn_agent_command: str = Field(
        default="",
        max_length=4000,
        description="The command on the nodes that runs Corral's agent there, such as `/opt/corral/bin/corral node-agent`. "
        "Corral adds address, node and token. YARN runs it once on each node, and the server asks it. Empty: none is run.",
    )
    yarn_agent_port: int = Field(
        default=9102,
        ge=1,
        le=65_535,
        description="The port of these agents, at the host that the NodeManager calls itself.",
    )
    yarn_stage_command: str = Field(
        default="",
        description="The command on the nodes that moves inputs and outputs; empty: jobs that have some are refused.",
    )
    yarn_start_seconds: float = Field(
        default=120.0,
        ge=5,
        le=86_400,
        description="Seconds that YARN may take to give a container. After them the task is started again elsewhere.",
    )
    yarn_idle_seconds: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="Seconds for which a container without a task is kept for a retry of its job.",
    )
    yarn_share_mb: int = Field(
        default=0,
        ge=0,
        le=65_536,
        description="The most memory in MiB of a task that may share a YARN service with other jobs of its account, where "
        "its job has one task and no devices: such jobs start sooner and cost no master each. 0: every job has its own.",
    )
    yarn_lifetime_seconds: int = Field(
        default=7 * 24 * 3600,
        ge=600,
        le=10 * 365 * 24 * 3600,
        description="Seconds after which YARN itself ends a service that no server has prolonged. A running server "
        "prolongs the services of live jobs.",
    )


class YarnKind(EngineKind[YarnOptions]):
    """Containers of one Hadoop cluster."""

    name = "yarn"
    page = "yarn.md"
    settings = YarnOptions
    has_agents = True

    def check(self, settings: YarnOptions) -> None:
        """Refuse settings without the cluster's addresses, and mappings that cannot be read.

        Raises InvalidInput.
        """
        settings_of(settings, "check", "")

    def container_runtime(self) -> str:
        """Return "": jobs that name an image are refused."""
        return ""

    def agent(self, secret: bytes, token: str) -> str:
        """Return which slot or service has this token.

        Raises Unauthenticated.
        """
        from corral.engines.yarn.slot_tokens import SlotTokens

        return SlotTokens(secret).owner(token)

    async def build(self, context: EngineContext, settings: YarnOptions) -> BuiltEngine:
        """Construct the engine of a cluster; a UID from the store names its services.

        Raises InvalidInput for unusable settings.
        """
        from corral.engines.yarn.engine import YarnEngine
        from corral.engines.yarn.slot_api import SlotApi
        from corral.storage.block_locations import NameNodes

        server = await context.server()
        cluster = settings_of(settings, server, context.agents_url(self.name), context)
        engine = YarnEngine(cluster, secret=context.secret(self.name), logs=context.logs)
        name_nodes = NameNodes(cluster.file_systems, cluster.user, cluster.users.of, cluster.identity)
        return BuiltEngine(engine, agents=SlotApi(engine), name_nodes=name_nodes)

    async def doctor(self, settings: YarnOptions, options: DoctorOptions) -> list[Finding]:
        """Check the ResourceManager, the nodes, the queues, HDFS and the mapped users, and run a small service."""
        from corral.engines.yarn.doctor.cluster_check import examine

        return await examine(settings_of(settings, "doctor", options.url), options)


def settings_of(options: YarnOptions, server: str, url: str, context: EngineContext | None = None) -> YarnSettings:
    """Return the engine's settings for the server with this UID, whose slots call at `url`.

    Raises InvalidInput for unusable settings.
    """
    from corral.engines.yarn.settings import (
        YarnSettings,
        check_service_principal,
        identity_of,
        parse_names,
        parse_ports,
        urls_of,
        user_of,
    )

    check_service_principal(options.yarn_service_principal, options.yarn_service_keytab)
    identity = identity_of(options.yarn_principal, options.yarn_keytab)
    return YarnSettings(
        server=server,
        resource_managers=urls_of("yarn_resource_managers", options.yarn_resource_managers, "http://HOST:8088"),
        file_systems=urls_of("yarn_name_nodes", options.yarn_name_nodes, "http://HOST:9870"),
        user=options.yarn_user or user_of(identity) or getpass.getuser(),
        identity=identity,
        service_principal=options.yarn_service_principal,
        service_keytab=options.yarn_service_keytab,
        url=url,
        certificate=context.api_certificate if context else "",
        queue=options.yarn_queue,
        users=parse_names("yarn_users", options.yarn_users, ""),
        queues=parse_names("yarn_queues", options.yarn_queues, ""),
        folder=options.yarn_folder,
        attribute=options.yarn_node_attribute,
        device_resource=options.yarn_device_resource,
        device_kind=options.yarn_device_kind,
        ports=parse_ports("yarn_ports", options.yarn_ports),
        silent_seconds=options.yarn_silent_seconds,
        probe_seconds=options.yarn_probe_seconds,
        agent_command=_words("yarn_agent_command", options.yarn_agent_command),
        agent_port=options.yarn_agent_port,
        stage_command=_words("yarn_stage_command", options.yarn_stage_command),
        start_seconds=options.yarn_start_seconds,
        idle_seconds=options.yarn_idle_seconds,
        share_memory_bytes=options.yarn_share_mb * 2**20,
        lifetime_seconds=options.yarn_lifetime_seconds,
        log_limit_bytes=context.log_limit_bytes if context else 0,
    )


def _words(name: str, text: str) -> tuple[str, ...]:
    """The words of a setting, as a shell takes them. Raises InvalidInput."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        reason = str(error).rstrip(".").lower()
        raise InvalidInput("invalid-setting", f"{name} is no command: {reason}.") from None
