"""The YARN engine's settings, and how accounts and queues are mapped to Hadoop's."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from corral.kernel.errors import InvalidInput
from corral.storage.kerberos.tickets import Identity

_MOST_PAIRS: Final = 1000
_HADOOP_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]{0,99}")
"""A user or queue of Hadoop; it becomes a part of URLs and of paths in HDFS."""
SAME: Final = "*"
"""On the right side of a mapping: the same name as on the left."""


class NameMap(msgspec.Struct, frozen=True):
    """Names of Corral's with their counterparts in Hadoop; the first pattern that matches decides."""

    pairs: tuple[tuple[str, str], ...] = ()
    otherwise: str = ""

    def of(self, name: str) -> str:
        """The counterpart of a name.

        Raises InvalidInput for a name that is mapped to itself and cannot be Hadoop's.
        """
        for pattern, counterpart in self.pairs:
            if fnmatchcase(name, pattern):
                found = name if counterpart == SAME else counterpart
                if not _HADOOP_NAME.fullmatch(found):
                    message = f'Hadoop has no name like "{found[:60]}"; map it with a pair of its own.'
                    raise InvalidInput("no-hadoop-name", message)
                return found
        return self.otherwise


def parse_names(setting: str, text: str, otherwise: str) -> NameMap:
    """Parse `NAME=COUNTERPART,…`, where NAME may have `*` and COUNTERPART may be `*`, the same name.

    Raises InvalidInput that names the setting.
    """
    pairs = []
    for each in (part.strip() for part in text.split(",") if part.strip()):
        name, equals, counterpart = (part.strip() for part in each.partition("="))
        if not name or not equals or not (counterpart == SAME or _HADOOP_NAME.fullmatch(counterpart)):
            raise InvalidInput("invalid-setting", f'{setting} has "{each[:60]}"; write NAME=HADOOP-NAME, or *=*.')
        pairs.append((name, counterpart))
    if len(pairs) > _MOST_PAIRS:
        raise InvalidInput("invalid-setting", f"{setting} has {len(pairs)} pairs; {_MOST_PAIRS} are the most.")
    return NameMap(tuple(pairs), otherwise)


class YarnSettings(msgspec.Struct, frozen=True):
    """One Hadoop cluster as Corral uses it."""

    server: str
    """The permanent UID of this Corral server: part of the names of its services."""
    resource_managers: tuple[str, ...]
    """The URLs of the ResourceManagers; the active one of a pair is found."""
    file_systems: tuple[str, ...]
    """The URLs of the NameNodes' WebHDFS; the active one of a pair is found."""
    user: str
    """The Hadoop user who calls, and as whom services run unless `users` names another."""
    url: str
    """The URL under which slots reach this engine."""
    certificate: str = ""
    """The server's own certificate (PEM); "" means the nodes' trust store."""
    name: str = "yarn"
    """The engine's name, the first part of its nodes' names."""
    queue: str = "default"
    """The YARN queue of the services, unless `queues` names another."""
    users: NameMap = NameMap()
    """The Hadoop user of each account; the caller acts for it as a proxy user."""
    queues: NameMap = NameMap()
    """The YARN queue of each virtual cluster."""
    folder: str = "/apps/corral"
    """The folder in HDFS for the runtime and the records of attempts."""
    attribute: str = "nm.yarn.io/corral-node"
    """The node attribute that has each node's name, by which containers are pinned."""
    device_resource: str = "yarn.io/gpu"
    """The resource by which YARN counts devices."""
    device_kind: str = "gpu"
    stage_command: tuple[str, ...] = ()
    """The words that move data on the nodes; empty refuses tasks with inputs or outputs."""
    start_seconds: float = 120.0
    """Seconds after which containers that YARN did not give are given back, and their attempts fail."""
    idle_seconds: float = 60.0
    """Seconds for which a slot without an attempt is kept for a retry."""
    share_memory_bytes: int = 0
    """The most memory of a task that may share a service with other jobs of its user; 0 shares none."""
    lifetime_seconds: int = 7 * 24 * 3600
    """Seconds after which YARN ends a service that no server has prolonged."""
    ports: tuple[int, int] = (20_000, 29_999)
    """The first and the last port that tasks are given on each node."""
    silent_seconds: float = 45.0
    """Seconds without a call of a slot after which YARN is asked whether its container is still there."""
    agent_command: tuple[str, ...] = ()
    """The words that run Corral's agent on a node; empty runs none."""
    agent_port: int = 9102
    """Where the agents listen, at the host that YARN calls the node by."""
    probe_seconds: int = 0
    """Seconds after which a node is probed for its devices again; 0 never probes."""
    identity: Identity = Identity()
    """Where the caller's Kerberos tickets are, for a cluster that asks for them."""
    service_principal: str = ""
    """The Kerberos principal of a job's service; `{user}` is the job's Hadoop user. "" lives by its tokens alone."""
    service_keytab: str = ""
    """Where its keytab is, `file://` on the nodes or `hdfs://`."""
    log_limit_bytes: int = 0
    """The last bytes of a stream's log that are kept; 0 keeps all."""

    def hadoop_user(self, account: str) -> str:
        """The Hadoop user of an account. Raises InvalidInput for a name that Hadoop cannot have."""
        return self.users.of(account) or self.user

    def yarn_queue(self, queue: str) -> str:
        """The YARN queue of a virtual cluster. Raises InvalidInput for a name that YARN cannot have."""
        return self.queues.of(queue) or self.queue


_PRINCIPAL: Final = re.compile(r"([A-Za-z0-9_.-]{1,100})(/[A-Za-z0-9_.-]{1,255})?@[A-Za-z0-9_.-]{1,255}")
_ADVICE: Final = "set yarn_principal and yarn_keytab, or keep a ticket cache renewed for the server (KRB5CCNAME)"


def identity_of(principal: str, keytab: str) -> Identity:
    """The identity of the settings yarn_principal and yarn_keytab. Raises InvalidInput."""
    if principal and not _PRINCIPAL.fullmatch(principal):
        message = f'yarn_principal has "{principal[:80]}"; write NAME@REALM or NAME/HOST@REALM.'
        raise InvalidInput("invalid-setting", message)
    if keytab and not (principal and keytab.startswith("/")):
        raise InvalidInput("invalid-setting", "yarn_keytab is the absolute path of the keytab of yarn_principal.")
    return Identity(principal, keytab, _ADVICE)


_PATTERN: Final = re.compile(r"[A-Za-z0-9_.{}-]{1,100}/[A-Za-z0-9_.-]{1,255}@[A-Za-z0-9_.-]{1,255}")
_PLACE: Final = re.compile(r"(file|hdfs)://[A-Za-z0-9_.:-]{0,255}/[A-Za-z0-9_./{}-]{1,1000}")
USER: Final = "{user}"
"""What stands for a job's Hadoop user in the principal and keytab of its service."""


def check_service_principal(principal: str, keytab: str) -> None:
    """Refuse settings yarn_service_principal and yarn_service_keytab that YARN would. Raises InvalidInput."""
    if bool(principal) != bool(keytab):
        message = "yarn_service_principal and yarn_service_keytab belong together; set both or none."
        raise InvalidInput("invalid-setting", message)
    if principal and not _PATTERN.fullmatch(principal):
        message = f'yarn_service_principal has "{principal[:80]}"; write {USER}/_HOST@REALM, as YARN requires a host.'
        raise InvalidInput("invalid-setting", message)
    if keytab and not _PLACE.fullmatch(keytab):
        message = f'yarn_service_keytab has "{keytab[:80]}"; write file:///FOLDER/{USER}.keytab or hdfs://….'
        raise InvalidInput("invalid-setting", message)


def user_of(identity: Identity) -> str:
    """The Hadoop user that a principal is by Hadoop's default rule: its first part; "" without one."""
    found = _PRINCIPAL.fullmatch(identity.principal)
    return found[1] if found else ""


def parse_ports(setting: str, text: str) -> tuple[int, int]:
    """The first and last port of `FIRST-LAST`. Raises InvalidInput that names the setting."""
    match = re.fullmatch(r"([0-9]{4,5})-([0-9]{4,5})", text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1024 <= first <= last <= 65_535:
        raise InvalidInput("invalid-setting", f'{setting} has "{text[:60]}"; write FIRST-LAST within 1024-65535.')
    return first, last


def urls_of(setting: str, text: str, example: str) -> tuple[str, ...]:
    """The URLs of a setting, separated by commas. Raises InvalidInput that names the setting."""
    urls = tuple(each.strip().rstrip("/") for each in text.split(",") if each.strip())
    if not urls:
        option = f"--{setting.replace('_', '-')}"
        raise InvalidInput("invalid-setting", f"The engine yarn needs {setting}: {option} {example}.")
    for each in urls:
        if not re.fullmatch(r"https?://[A-Za-z0-9._\[\]:-]{1,255}", each):
            raise InvalidInput("invalid-setting", f'{setting} has "{each[:80]}"; write {example}.')
    return urls
