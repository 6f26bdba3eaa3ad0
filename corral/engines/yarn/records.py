"""The durable records of attempts: folders in HDFS, so that every server of a cluster finds what was given to whom.

A record is an empty folder `ATTEMPT@CONTAINER`, which costs one call of the NameNode. It is written before a slot is
told to start the attempt, and removed when the attempt is forgotten. `ATTEMPT@buried` records an attempt that must
never start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId

BURIED: Final = "buried"
"""Stands for a container in the record of an attempt that must never start."""


class AttemptRecords:
    """The records of one server."""

    def __init__(self, files: HadoopRest, folder: str) -> None:
        """`folder` is the server's own folder of records in HDFS."""
        self._files, self._folder = files, folder

    async def open(self) -> None:
        """Make the folder. Raises a CorralError."""
        await self._files.ask("PUT", self._path(""), op="MKDIRS", permission="700")

    async def all(self) -> Mapping[AttemptId, str]:
        """The container of each attempt; `BURIED` for one that must never start. Raises a CorralError."""
        answer = await self._files.ask("GET", self._path(""), op="LISTSTATUS")
        names = [str(each["pathSuffix"]) for each in answer["FileStatuses"]["FileStatus"]]
        return {AttemptId(name.rpartition("@")[0]): name.rpartition("@")[2] for name in names if "@" in name}

    async def write(self, attempt: AttemptId, container: str) -> None:
        """Record that a container gets the attempt. Raises a CorralError."""
        await self._files.ask("PUT", self._path(f"{attempt}@{container}"), op="MKDIRS", permission="700")

    async def remove(self, attempt: AttemptId, container: str) -> None:
        """Remove a record; no effect when there is none. Raises a CorralError."""
        try:
            await self._files.ask("DELETE", self._path(f"{attempt}@{container}"), op="DELETE", recursive="true")
        except NotFound:
            return

    def _path(self, name: str) -> str:
        return f"/webhdfs/v1{quote(self._folder)}/{quote(name, safe='')}".rstrip("/")
