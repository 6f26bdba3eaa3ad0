"""The mount of a storage in one task, as an engine needs it.

It says nothing about permissions.
"""

from __future__ import annotations

import msgspec

from corral.spec.storage import StorageDocument, StorageUse


class Mount(msgspec.Struct, frozen=True):
    """One storage as mounted in one task."""

    name: str
    type: str
    """As in the Storage document."""
    path: str
    """The mount path in the task."""
    source: str = ""
    """By type: the export or folder, the share's address, the share, the container, the URI, the claim, the driver."""
    server: str = ""
    account: str = ""
    folder: str = ""
    """The subfolder that the task sees, a user's own; "" is the whole storage."""
    host_path: str = ""
    """The path at which every machine has it mounted; "" if they do not."""
    read_only: bool = False
    options: tuple[str, ...] = ()
    secret: str = ""
    """On Kubernetes, the name of the Secret with the credentials."""
    credentials_file: str = ""
    attributes: dict[str, str] = {}

    @property
    def is_moved(self) -> bool:
        """Whether its data are copied before and after the command instead of being mounted."""
        return self.type == "uri"

    @property
    def uri(self) -> str:
        """For a storage that is copied: the URI of the task's own data."""
        return f"{self.source}/{self.folder}" if self.folder else self.source


def mount_of(storage: StorageDocument, use: StorageUse, account: str) -> Mount:
    """The mount of a storage for a job of the account with this id."""
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
