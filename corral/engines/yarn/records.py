"""The durable records of attempts: folders in HDFS, so that every server of a cluster finds what was given to whom.

A record is an empty folder `ATTEMPT@CONTAINER`, which costs one call of the NameNode. In a shared service it is
`ATTEMPT@CONTAINER@OWNER`. It is written before a slot is told to start the attempt, and removed when the attempt is
forgotten. `ATTEMPT@buried` records an attempt that must never start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId

BURIED: Final = "buried"
"""Stands for a container in the record of an attempt that must never start."""


class Holder(NamedTuple):
    """Who has an attempt."""

    container: str
    """The container; `BURIED` for none, ever."""
    shared: str = ""
    """The owner of its service, if that is shared by jobs."""


class AttemptRecords:
    """The records of one server."""

    def __init__(self, files: HadoopRest, folder: str) -> None:
        """`folder` is the server's own folder of records in HDFS."""
        self._files, self._folder = files, folder

    async def open(self) -> None:
        """Make the folder. Raises a CorralError."""
        await self._files.ask("PUT", self._path(""), op="MKDIRS", permission="700")

    async def all(self) -> Mapping[AttemptId, Holder]:
        """Who has each attempt. Raises a CorralError."""
        answer = await self._files.ask("GET", self._path(""), op="LISTSTATUS")
        names = [str(each["pathSuffix"]) for each in answer["FileStatuses"]["FileStatus"]]
        parts = (name.split("@") for name in names)
        return {AttemptId(each[0]): Holder(*each[1:]) for each in parts if len(each) in (2, 3)}

    async def write(self, attempt: AttemptId, holder: Holder) -> None:
        """Record that a container gets the attempt. Raises a CorralError."""
        await self._files.ask("PUT", self._path(_name(attempt, holder)), op="MKDIRS", permission="700")

    async def remove(self, attempt: AttemptId, holder: Holder) -> None:
        """Remove a record; no effect when there is none. Raises a CorralError."""
        try:
            await self._files.ask("DELETE", self._path(_name(attempt, holder)), op="DELETE", recursive="true")
        except NotFound:
            return

    def _path(self, name: str) -> str:
        return f"/webhdfs/v1{quote(self._folder)}/{quote(name, safe='')}".rstrip("/")


def _name(attempt: AttemptId, holder: Holder) -> str:
    return "@".join((attempt, *filter(None, holder)))
