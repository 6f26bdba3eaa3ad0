"""The Storage document: a volume that a site declares once and grants to groups by name.

```yaml
kind: Storage
name: data
type: nfs
server: filer.example.org
path: /export/data
---
kind: Storage
name: home
type: folder
path: /srv/home
share: false                      # each user has a folder of their own in it
```

No document holds a password: `secretName` names a Secret of the cluster, `credentialsFile` a file on the machines.
"""

from __future__ import annotations

import json
import posixpath
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from corral.spec.base import OPTIONAL_QUEUE, QueueName, SpecModel, Text, refusal
from corral.spec.errors import Path, describe
from corral.spec.yaml_scalars import written

StorageType = Literal["nfs", "samba", "azureFile", "azureBlob", "dshuttle", "folder", "uri", "pvc", "other"]
DEFAULT_PLACE: Final = "/mnt"
"""Parent folder of storages whose job names no mount path."""
_URI_SCHEMES: Final = ("s3", "hdfs", "webhdfs", "swebhdfs")
_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "nfs": ("server", "path"),
    "samba": ("address",),
    "azureFile": ("shareName",),
    "azureBlob": ("containerName",),
    "dshuttle": (),
    "folder": ("path",),
    "uri": ("uri",),
    "pvc": (),
    "other": (),
}
_MORE: Final[dict[str, tuple[str, ...]]] = {
    "samba": ("secretName", "credentialsFile"),
    "azureFile": ("secretName", "credentialsFile", "accountName"),
    "azureBlob": ("secretName", "accountName"),
    "dshuttle": ("attributes", "secretName"),
    "pvc": ("claim",),
    "other": ("driver", "attributes", "secretName"),
}
_PARTICULAR: Final = frozenset(
    {"server", "path", "address", "shareName", "containerName", "accountName", "uri", "claim", "driver", "attributes",
     "secretName", "credentialsFile"}
)  # fmt: skip
_CASE_KEPT: Final = frozenset({"nfs", "folder", "uri", "azureBlob"})
"""Storage types with case-sensitive file names; a claim or a CSI driver may ignore case, so they are not listed."""
_SYSTEM: Final = ("/proc", "/sys", "/dev")


def _absolute(value: str) -> str:
    if value and (not value.startswith("/") or ".." in value.split("/")):
        raise refusal(f'{describe(value)} is not an absolute path without ".."')
    return posixpath.normpath(value).replace("//", "/") if value else value


def _option(value: str) -> str:
    if not value or "," in value or any(each.isspace() for each in value):
        raise refusal(f"{describe(value)} is not one mount option; write a list")
    return value


FolderPath = Annotated[Text, Field(max_length=1024)]


class StorageDocument(SpecModel):
    """A storage that is mounted into tasks, or copied before and after their command."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Storage"] = Field("Storage", description="Always Storage.")
    name: QueueName = Field(description="What groups grant and jobs name.")
    description: Text = Field("", max_length=1000, description="A description of one line.")
    type: StorageType = Field(
        description="nfs, samba, azureFile, azureBlob and dshuttle are shares; folder is one of each machine; uri is s3:,"
        " hdfs:, webhdfs: or swebhdfs:, moved before and after the command; pvc is a claim of Kubernetes; other is "
        "whatever the machines have at hostPath, or a CSI driver mounts."
    )
    share: bool = Field(
        True, description="Whether all users see the same; false gives each user a folder of their own."
    )
    read_only: bool = Field(False, description="Whether jobs may only read it.")
    mount_options: list[Annotated[Text, Field(max_length=200)]] = Field(
        default_factory=list, max_length=50, description="Options of mount, one each."
    )
    host_path: FolderPath = Field(
        "",
        description="Where every machine has it mounted already; then nothing is mounted for a task but this folder.",
    )
    server: Text = Field("", max_length=253, description="nfs: the server's name or address.")
    path: FolderPath = Field("", description="nfs: the export; folder: the folder.")
    address: Text = Field("", max_length=1024, description="samba: //SERVER/SHARE.")
    share_name: Text = Field("", max_length=253, description="azureFile: the share.")
    container_name: Text = Field("", max_length=253, description="azureBlob: the container.")
    account_name: Text = Field("", max_length=253, description="azureFile, azureBlob: the storage account.")
    uri: Text = Field("", max_length=4096, description="uri: where the data are, such as s3://bucket/data.")
    claim: Text = Field("", max_length=253, description="pvc: the claim's name; the storage's own if unsaid.")
    driver: Text = Field("", max_length=253, description="other: the CSI driver.")
    attributes: dict[str, Annotated[Text, Field(max_length=4096)]] = Field(
        default_factory=dict, max_length=100, description="dshuttle, other: the volume's attributes."
    )
    secret_name: Text = Field(
        "", max_length=253, description="The Secret of the tasks' namespace that has the credentials, on Kubernetes."
    )
    credentials_file: FolderPath = Field(
        "", description="The file on the machines that has the credentials for mounting, elsewhere."
    )

    @field_validator("host_path", "path", "credentials_file")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        return _absolute(value)

    @field_validator("mount_options")
    @classmethod
    def _are_options(cls, value: list[str]) -> list[str]:
        return [_option(each) for each in value]

    @field_validator("server")
    @classmethod
    def _is_host(cls, value: str) -> str:
        if any(mark in value for mark in "/, \t\n") or value.startswith("-"):
            raise refusal(f"{describe(value)} is not a host")
        return value

    @field_validator("address")
    @classmethod
    def _is_address(cls, value: str) -> str:
        rest = value.removeprefix("//")
        if value and (rest == value or "/" not in rest or ".." in rest.split("/") or not rest.partition("/")[0]):
            raise refusal(f"expected //SERVER/SHARE, got {describe(value)}")
        return value

    @field_validator("uri")
    @classmethod
    def _is_uri(cls, value: str) -> str:
        scheme, mark, rest = value.partition("://")
        if value and (not mark or scheme not in _URI_SCHEMES or not rest.strip("/")):
            raise refusal(f"expected s3://…, hdfs://…, webhdfs://… or swebhdfs://…, got {describe(value)}")
        if "@" in rest.partition("/")[0] or ".." in rest.split("/"):
            raise refusal('a URI may hold no user, password or ".."')
        return value.rstrip("/")

    @model_validator(mode="after")
    def _consistent(self) -> StorageDocument:
        found: list[tuple[Path, str]] = []
        needed, said = _NEEDED[self.type], self.model_dump(by_alias=True)
        if not self.host_path:
            found += [
                ((field,), f"missing; a storage of type {self.type} needs it") for field in needed if not said[field]
            ]
        known = {*needed, *_MORE.get(self.type, ())}
        found += [
            ((field,), f"a storage of type {self.type} has none")
            for field in sorted(_PARTICULAR - known)
            if said[field]
        ]
        if self.host_path and self.type in ("folder", "uri", "pvc"):
            found.append((("hostPath",), f"a storage of type {self.type} is not mounted by machines"))
        if self.type == "other" and not (self.host_path or self.driver):
            found.append((("type",), "say hostPath, or the CSI driver that mounts it"))
        if found:
            raise PydanticCustomError("inconsistent", "the parts do not fit together", {"findings": found})
        return self

    @property
    def may_fold_case(self) -> bool:
        """Whether the storage may treat names that differ only in case as one, as SMB servers do."""
        return self.type not in _CASE_KEPT

    def to_document(self) -> dict[str, Any]:
        """The canonical document with every field."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """The canonical document as stable JSON: equal storages give equal text."""
        return json.dumps(self.to_document(), separators=(",", ":"), ensure_ascii=False, sort_keys=True)


class StorageUse(SpecModel):
    """A storage of a job, and the path at which its tasks find it."""

    name: Annotated[str, Field(max_length=63, pattern=OPTIONAL_QUEUE), BeforeValidator(written)] = Field(
        description='The Storage document; "" stands for every storage that is one of the user\'s defaults.'
    )
    mount_path: FolderPath = Field("", description='Where the tasks find it; "" is /mnt/NAME.')

    @field_validator("mount_path")
    @classmethod
    def _is_elsewhere(cls, value: str) -> str:
        path = _absolute(value)
        if path == "/" or any(path == each or path.startswith(f"{each}/") for each in _SYSTEM):
            raise refusal(f"nothing can be mounted at {describe(value)}; choose a folder such as /mnt/data")
        if ":" in path:
            raise refusal(f"the colon in {describe(value)} would be read as an option; choose another path")
        return path

    @model_validator(mode="after")
    def _consistent(self) -> StorageUse:
        if not self.name and self.mount_path:
            raise refusal("only a storage that is named can have a path of its own")
        return self

    @property
    def where(self) -> str:
        """The path at which tasks find it."""
        return self.mount_path or f"{DEFAULT_PLACE}/{self.name}"


def distinct(value: list[StorageUse]) -> list[StorageUse]:
    """Check that no two storages of a job have the same path; returns the list.

    Raises a pydantic error otherwise.
    """
    places = [use.where for use in value if use.name]
    for at, place in enumerate(places):
        if place in places[:at]:
            raise refusal(f"two storages have the path {describe(place)}")
    return value
