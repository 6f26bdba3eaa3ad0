"""Check one NodeManager: whether it keeps the users apart that accounts are mapped to, and starts their containers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import quote

from corral.engines.kind import Finding
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.inventory import YarnNode
from corral.engines.yarn.settings import SAME, YarnSettings
from corral.kernel.errors import CorralError, NotFound

_EXECUTOR: Final = "yarn.nodemanager.container-executor.class"
_SCRATCH: Final = "hadoop.tmp.dir"
_MASTERS: Final = ".yarn/services"
"""The folder below `hadoop.tmp.dir`, in HDFS, where each service master makes one (SliderFileSystem.getBasePath)."""
_MOST_USERS: Final = 50
"""Mapped users that are checked."""


async def mapped_users(nodes: Sequence[YarnNode], files: HadoopRest, settings: YarnSettings) -> AsyncIterator[Finding]:
    """Whether containers of several users are kept apart, and whether the service masters of all can work.

    One running NodeManager is asked for its settings.
    """
    address = next((each.http_address for each in nodes if each.state == "RUNNING" and each.http_address), "")
    if not address:
        yield Finding("executor", "note", "no NodeManager can be asked how it runs containers")
        return
    manager = HadoopRest("NodeManager", [f"http://{address}"], settings.user, settings.identity)
    try:
        executor = (await _setting(manager, _EXECUTOR)).rpartition(".")[2]
        scratch = await _setting(manager, _SCRATCH)
    except (CorralError, LookupError, TypeError):
        yield Finding("executor", "note", f"{_EXECUTOR} could not be read from the NodeManager at {address}")
        return
    finally:
        await manager.close()
    if executor == "LinuxContainerExecutor" or not settings.users.pairs:
        yield Finding("executor", "good", f"containers are run by the {executor}")
        return
    message = f"the {executor} runs all containers as one system user: jobs of two accounts can read each other's files"
    yield Finding("executor", "note", f"{message}; set {_EXECUTOR} to the LinuxContainerExecutor")
    yield await _masters(files, f"{scratch.rstrip('/')}/{_MASTERS}", settings)


async def _setting(manager: HadoopRest, name: str) -> str:
    return str((await manager.ask("GET", "/conf", name=name))["property"]["value"])


async def _masters(files: HadoopRest, folder: str, settings: YarnSettings) -> Finding:
    """Whether all mapped users may write the folder of service masters.

    A service master runs as the NodeManager's system user, so that folder has this user's name, and writes in HDFS as the
    user of the job. Without the right it launches no container.
    """
    command = f"hdfs dfs -mkdir -p {folder}; hdfs dfs -chmod 1777 {folder}"
    mapped = {user for _, user in settings.users.pairs if user != SAME}
    path = f"/webhdfs/v1{quote(folder)}"
    for user in sorted({settings.user, *mapped})[:_MOST_USERS]:
        try:
            await files.ask("GET", path, user=user, op="CHECKACCESS", fsaction="-wx")
        except NotFound:
            message = f"{folder} is not in HDFS, so service masters of mapped users launch no container: {command}"
            return Finding("service masters", "bad", message)
        except CorralError as error:
            message = f"the service masters of {user} cannot write {folder}, and launch no container: {command}"
            return Finding("service masters", "bad", f"{message}. {error.message}")
    return Finding("service masters", "good", f"those of all mapped users can write {folder}")
