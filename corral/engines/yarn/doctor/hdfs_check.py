"""Check HDFS: whether it takes Corral's files, and whether the Hadoop users of accounts have homes there."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

from corral.engines.kind import Finding
from corral.engines.yarn.doctor.pair_check import pair
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.settings import SAME, YarnSettings
from corral.kernel.errors import CorralError, NotFound

_MOST_USERS: Final = 50
"""Mapped users that are checked."""


async def folders(files: HadoopRest, settings: YarnSettings) -> AsyncIterator[Finding]:
    """Whether Corral's folder takes a file."""
    try:
        await files.ask("GET", "/webhdfs/v1/", op="GETFILESTATUS")
    except CorralError as error:
        yield Finding("NameNode", "bad", error.message)
        return
    async for finding in pair("NameNodes", files, "/webhdfs/v1/", op="GETFILESTATUS"):
        yield finding
    path = f"/webhdfs/v1{quote(settings.folder)}/doctor-{secrets.token_hex(4)}"
    try:
        await files.ask("PUT", path, op="MKDIRS", permission="755")
        await files.put_file(f"{path}/file", b"corral", permission="600", overwrite="false")
        await files.ask("DELETE", path, op="DELETE", recursive="true")
    except CorralError as error:
        yield Finding("HDFS folder", "bad", error.message)
        return
    yield Finding("HDFS folder", "good", f"{settings.user} can write {settings.folder}")


async def users(yarn: HadoopRest, files: HadoopRest, settings: YarnSettings) -> AsyncIterator[Finding]:
    """Whether Corral may act for the users that accounts are mapped to, and whether they have homes in HDFS."""
    mapped = {user for _, user in settings.users.pairs if user != SAME}
    for user in sorted({settings.user, *mapped})[:_MOST_USERS]:
        home = f"/user/{user}"
        try:
            await yarn.ask("GET", "/ws/v1/cluster/info", user=user)
            home = str((await files.ask("GET", "/webhdfs/v1/", user=user, op="GETHOMEDIRECTORY"))["Path"])
            told = await files.ask("GET", f"/webhdfs/v1{quote(home)}", user=user, op="GETFILESTATUS")
            owner = str(told["FileStatus"]["owner"])
        except NotFound:
            command = f"hdfs dfs -mkdir -p {home}; hdfs dfs -chown {user} {home}"
            yield Finding("user", "bad", f"{user} has no home in HDFS, which services need: {command}")
            continue
        except CorralError as error:
            yield Finding("user", "bad", f"Corral cannot act for {user}. {error.message}")
            continue
        if owner != user:
            yield Finding("user", "bad", f"{home} belongs to {owner}: hdfs dfs -chown {user} {home}")
        elif not await _can_read(files, settings.folder, user):
            command = f"hdfs dfs -chmod 755 {settings.folder}"
            yield Finding(
                "user", "bad", f"{user} cannot read {settings.folder}, where its containers' programs are: {command}"
            )
        else:
            yield Finding("user", "good", f"{user} has {home}")


async def _can_read(files: HadoopRest, folder: str, user: str) -> bool:
    try:
        await files.ask("GET", f"/webhdfs/v1{quote(folder)}", user=user, op="LISTSTATUS")
    except NotFound:
        return True  # a server makes it
    except CorralError:
        return False
    return True
