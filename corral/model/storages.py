"""Why: an engine is told of a storage what it needs to mount it for one task, and nothing about who may have it."""

from __future__ import annotations

import msgspec

from corral.spec.storage import StorageDocument, StorageUse


class Mount(msgspec.Struct, frozen=True):
    """One storage as one task has it."""

    name: str
    type: str
    """As in the Storage document."""
    path: str
    """Where the task finds it."""
    source: str = ""
    """By type: the export or folder, the share's address, the share, the container, the URI, the claim, the driver."""
    server: str = ""
    account: str = ""
    folder: str = ""
    """The folder in it that the task has, a user's own; "" is all of it."""
    host_path: str = ""
    """Where every machine has it mounted; "" where they do not."""
    read_only: bool = False
    options: tuple[str, ...] = ()
    secret: str = ""
    """The name of the Secret with the credentials, on Kubernetes."""
    credentials_file: str = ""
    attributes: dict[str, str] = {}

    @property
    def is_moved(self) -> bool:
        """Whether its data are copied before and after the command, instead of being mounted."""
        return self.type == "uri"

    @property
    def uri(self) -> str:
        """Of one that is moved, where the task's own data are."""
        return f"{self.source}/{self.folder}" if self.folder else self.source


def mount_of(storage: StorageDocument, use: StorageUse, account: str) -> Mount:
    """A storage as a job of the account with this id has it."""
    return Mount(
        name=storage.name,
        type=storage.type,
        path=use.where,
        source=_source(storage),
        server=storage.server,
        account=storage.account_name,
        folder="" if storage.share else account,
        host_path=storage.host_path,
        read_only=storage.read_only,
        options=tuple(storage.mount_options),
        secret=storage.secret_name,
        credentials_file=storage.credentials_file,
        attributes=dict(storage.attributes),
    )


def _source(storage: StorageDocument) -> str:
    match storage.type:
        case "nfs" | "folder":
            return storage.path
        case "samba":
            return storage.address
        case "azureFile":
            return storage.share_name
        case "azureBlob":
            return storage.container_name
        case "uri":
            return storage.uri
        case "pvc":
            return storage.claim or storage.name
        case "dshuttle":
            return "dshuttle"
    return storage.driver
