"""Ask HDFS on which hosts the blocks of files are, by WebHDFS and within bounds of calls, bytes and time.

Only NameNodes that an administrator named are asked, whatever a URI says: a URI chooses one of them. The seam is
`BlockLocator.where`; another store, or a cache of data sets on nodes, may answer it as well.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from corral.kernel.errors import CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.storage import hdfs, name_services
from corral.storage.kerberos.negotiate import Negotiator
from corral.storage.kerberos.tickets import Identity
from corral.storage.web_session import STANDBY

if TYPE_CHECKING:
    import httpx2

_SECONDS: Final = 10.0
"""Seconds after which a URI is given up."""
_CONNECT: Final = 2.0
"""Seconds for a connection to one of a pair, so that the other one is asked in time."""
_MOST_ANSWER: Final = 8 << 20
"""Bytes of an answer that are read."""
_MOST_ENTRIES: Final = 20_000
"""Files and folders below a folder that are listed; a folder with more is not located."""
_MOST_FILES: Final = 200
"""Files of a folder whose blocks are asked for, the largest ones; the others count as bytes that are nowhere."""
_MOST_BLOCKS: Final = 4096
"""Blocks of one file that are asked for: its first ones. A block takes some 400 bytes of the answer."""
_MOST_BYTES: Final = 1 << 53
"""Bytes below a URI that can be counted: 9 PB."""
_LEAST_BLOCK: Final = 1 << 20
"""The block size of files that tell a smaller one: Hadoop's own minimum (`dfs.namenode.fs-limits.min-block-size`)."""
_AT_ONCE: Final = 8
"""Calls at once for one URI."""
_AGE: Final = 600.0
"""Seconds for which an answer is used again if the file or folder has not changed."""
_KEPT: Final = 256
"""Answers that are kept."""
_URL: Final = re.compile(r"https?://[A-Za-z0-9._\[\]:-]{1,255}")
_PART: Final = ".corral-part"

_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST_BYTES)]
_Host = Annotated[str, msgspec.Meta(max_length=300)]
_T = TypeVar("_T")


def _themselves(account: str) -> str:
    return ""


class NameNodes(NamedTuple):
    """The NameNodes of one HDFS: one, or the pair of a highly available one."""

    urls: tuple[str, ...]
    """`http://HOST:9870` of each."""
    user: str
    """The Hadoop user that calls."""
    acts_for: Callable[[str], str] = _themselves
    """The Hadoop user on whose behalf it asks for an account; "" is the caller itself."""
    identity: Identity = Identity()
    """Where the caller's Kerberos tickets are."""

    def has(self, host: str) -> bool:
        """Whether a URI with this host names one of them."""
        return any((urlsplit(url).hostname or "") == host for url in self.urls)


def name_nodes_of(text: str) -> NameNodes:
    """The NameNodes that the setting `name_nodes` names, called as the user of this process's environment.

    Raises InvalidInput.
    """
    urls = tuple(each.strip().rstrip("/") for each in text.split(",") if each.strip())
    for each in urls:
        if not _URL.fullmatch(each):
            message = f'name_nodes has "{each[:80]}"; write http://HOST:9870.'
            raise InvalidInput("invalid-setting", message)
    return NameNodes(urls, hdfs.user() or "corral")


class Located(NamedTuple):
    """The bytes at a URI, by the hosts that hold them."""

    total: int
    by_hosts: dict[frozenset[str], int]
    """Sets of host names and addresses, each with the bytes that all hosts of the set hold."""


class _Status(msgspec.Struct, rename="camel"):
    type: str
    length: _Count = 0
    block_size: _Count = 0
    modification_time: int = 0
    path_suffix: str = ""


class _OneStatus(msgspec.Struct):
    status: _Status = msgspec.field(name="FileStatus")


class _Statuses(msgspec.Struct):
    statuses: list[_Status] = msgspec.field(name="FileStatus")


class _Partial(msgspec.Struct):
    listed: _Statuses = msgspec.field(name="FileStatuses")


class _Listing(msgspec.Struct, rename="camel"):
    partial_listing: _Partial
    remaining_entries: _Count = 0


class _OnePage(msgspec.Struct):
    listing: _Listing = msgspec.field(name="DirectoryListing")


class _Block(msgspec.Struct):
    length: _Count
    hosts: list[_Host] = []
    names: list[_Host] = []
    """ADDRESS:PORT of each host."""

    def holders(self) -> frozenset[str]:
        """The names and addresses of the hosts."""
        return frozenset((*self.hosts, *(name.rpartition(":")[0].strip("[]") or name for name in self.names)))


class _Blocks(msgspec.Struct):
    blocks: list[_Block] = msgspec.field(name="BlockLocation", default_factory=list)


class _OneFile(msgspec.Struct):
    locations: _Blocks = msgspec.field(name="BlockLocations")


class _File(NamedTuple):
    path: str
    status: _Status


class _Kept(NamedTuple):
    """An answer, with what says whether it still holds."""

    changed: int
    size: int
    at: float
    located: Located


class BlockLocator:
    """Says where the bytes at a URI are."""

    def __init__(
        self, systems: Sequence[NameNodes], *, seconds: float = 0.0, now: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        """A NameNode has `seconds` for its answers about one URI, and at least ten."""
        self._systems = tuple(systems)
        self._seconds = max(_SECONDS, seconds)
        self._urls = [list(system.urls) for system in systems]
        """Of each system, the NameNode that answered last first."""
        self._kerberos = [Negotiator(system.identity) for system in systems]
        self._now = now
        self._kept: dict[tuple[int, str, str], _Kept] = {}
        self._client: httpx2.AsyncClient | None = None
        """Made for the first question: most servers ask none."""

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    def knows(self, uri: str) -> bool:
        """Whether `where` would ask somebody."""
        return self._system(uri) is not None

    async def where(self, uri: str, account: str) -> Located:
        """Return the hosts that hold the bytes of a file, or of all files below a folder.

        It asks as the account that a job belongs to, if the NameNodes have a user for it. Raises NotFound, Forbidden, or
        Unavailable for an answer that is too late, too large or not understood.
        """
        which = self._system(uri)
        if which is None:
            raise NotFound("no-name-node", f"No NameNode is configured for {uri}.")
        self._client = self._client or _client(self._seconds)
        urls = self._urls[which]
        asking = _Asking(self._client, self._kerberos[which], self._systems[which], urls, account, self._seconds)
        path = hdfs.path_of(uri).rstrip("/") or "/"
        try:
            async with asyncio.timeout(self._seconds):
                return await self._located(asking, which, path, account)
        except TimeoutError:
            message = f"The NameNode did not say within {self._seconds:.0f} s where {path} is."
            raise Unavailable("hdfs-locations-late", message) from None

    async def _located(self, asking: _Asking, which: int, path: str, account: str) -> Located:
        status, key = await asking.status(path), (which, path, account)
        kept = self._kept.pop(key, None)
        if (
            kept is None
            or (kept.changed, kept.size) != (status.modification_time, status.length)
            or self._now() - kept.at > _AGE
        ):
            located = await _locate(asking, _File(path, status))
            kept = _Kept(status.modification_time, status.length, self._now(), located)
        while len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = kept
        return kept.located

    def _system(self, uri: str) -> int | None:
        """The HDFS that a URI names; one without a port and a known host names a service, which is the first HDFS."""
        try:
            scheme, _, rest = uri.partition("://")
            address = urlsplit(f"//{rest.partition('/')[0]}")
            host, port = address.hostname or "", address.port
        except ValueError:
            return None
        if scheme not in hdfs.SCHEMES:
            return None
        named = next((at for at, system in enumerate(self._systems) if system.has(host)), None)
        service = port is None and bool(self._systems) and (scheme == "hdfs" or bool(name_services.addresses(host)))
        return 0 if named is None and service else named


def _client(seconds: float) -> httpx2.AsyncClient:
    import httpx2

    return httpx2.AsyncClient(
        timeout=seconds,
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=32),
        trust_env=False,
        verify=httpx2.create_ssl_context(),
    )


async def _locate(asking: _Asking, root: _File) -> Located:
    """Ask for the blocks of a file, or of the largest files below a folder."""
    files = [root] if root.status.type == "FILE" else await _files_below(asking, root.path)
    total = sum(file.status.length for file in files)
    if total > _MOST_BYTES:
        raise Unavailable("hdfs-locations-bytes", f"{root.path} has more bytes than can be counted.")
    largest = sorted(files, key=lambda file: (-file.status.length, file.path))[:_MOST_FILES]
    found: dict[frozenset[str], int] = {}
    for begin in range(0, len(largest), _AT_ONCE):
        for blocks in await asyncio.gather(*map(asking.blocks, largest[begin : begin + _AT_ONCE])):
            for holders, size in blocks.items():
                found[holders] = found.get(holders, 0) + size
    return Located(total, found)


async def _files_below(asking: _Asking, root: str) -> list[_File]:
    """All files below a folder, without links and parts of unfinished copies."""
    files, folders, entries = list[_File](), [root], 0
    while folders:
        folder = folders.pop()
        after = ""
        while True:
            page, left = await asking.page(folder, after)
            entries += len(page)
            if entries + left > _MOST_ENTRIES:
                message = f"{root} has more than {_MOST_ENTRIES:,} files and folders, so they are not located."
                raise Unavailable("hdfs-locations-files", message)
            for each in page:
                path = f"{folder.rstrip('/')}/{each.path_suffix}"
                if each.type == "DIRECTORY":
                    folders.append(path)
                elif each.type == "FILE" and each.length and not path.endswith(_PART):
                    files.append(_File(path, each))
            if not page or not left:
                break
            after = page[-1].path_suffix
    return files


class _Asking:
    """Calls of the active NameNode of one HDFS for one account."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        kerberos: Negotiator,
        system: NameNodes,
        urls: list[str],
        account: str,
        seconds: float,
    ) -> None:
        """`urls` are put into the order in which they are asked next."""
        self._client, self._kerberos, self._urls = client, kerberos, urls
        self._connect_seconds = _CONNECT if len(urls) > 1 else seconds
        self._seconds = seconds
        user = system.acts_for(account)
        self._identity = {"user.name": system.user} | ({"doas": user} if user and user != system.user else {})

    async def status(self, path: str) -> _Status:
        """The status of a file or folder."""
        return (await self._get(path, _OneStatus, op="GETFILESTATUS")).status

    async def page(self, folder: str, after: str) -> tuple[list[_Status], int]:
        """The entries of a folder after one, as many as the NameNode lists at once, and the number of those left."""
        query = {"startAfter": after} if after else {}
        listing = (await self._get(folder, _OnePage, op="LISTSTATUS_BATCH", **query)).listing
        entries = listing.partial_listing.listed.statuses
        if listing.remaining_entries and (not entries or entries[-1].path_suffix <= after):
            raise Unavailable("hdfs-locations-answer", f"The NameNode's list of {folder} does not go on.")
        return entries, listing.remaining_entries

    async def blocks(self, file: _File) -> dict[frozenset[str], int]:
        """The bytes of a file by the hosts that hold them."""
        size = file.status.length
        asked = min(size, max(file.status.block_size, _LEAST_BLOCK) * _MOST_BLOCKS)
        query = {"offset": "0", "length": str(asked)}
        answer = await self._get(file.path, _OneFile, op="GETFILEBLOCKLOCATIONS", **query)
        found: dict[frozenset[str], int] = {}
        for block in answer.locations.blocks:
            if holders := block.holders():
                found[holders] = found.get(holders, 0) + block.length
        if sum(found.values()) > size:
            raise Unavailable("hdfs-locations-answer", f"The NameNode names more bytes of {file.path} than it has.")
        return found

    async def _get(self, path: str, kind: type[_T], **query: str) -> _T:
        status, content = await self._active(path, query)
        if status != 200:
            raise _refusal(path, status, content)
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, RecursionError):
            message = f"The NameNode's answer about {path} has an unknown form."
            raise Unavailable("hdfs-locations-answer", message) from None

    async def _active(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        """The answer of the active NameNode, which is asked first from then on."""
        import httpx2

        why = "none is active"
        for url in tuple(self._urls):
            try:
                status, content = await self._answer(url, path, query)
            except httpx2.HTTPError as error:
                why = f"{url} does not answer: {str(error) or type(error).__name__}"
                continue
            if status in (403, 503) and any(each in content for each in STANDBY):
                continue
            self._urls.sort(key=lambda each: each != url)
            return status, content
        raise Unavailable("hdfs-unreachable", f"No NameNode says where {path} is: {why}.")

    async def _answer(self, url: str, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        where = f"{url.rstrip('/')}/webhdfs/v1{quote(path)}"
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        terms = {"params": {**query, **self._identity}, "headers": headers}
        status, content, challenge = await self._once(where, path, self._kerberos.terms(where, terms))
        if self._kerberos.is_asked(where, status, challenge):
            status, content, _ = await self._once(where, path, await self._kerberos.signed_soon(where, terms))
        return status, content

    async def _once(self, where: str, path: str, terms: dict[str, Any]) -> tuple[int, bytes, str]:
        """The status, the content and the header WWW-Authenticate of an answer."""
        import httpx2

        content, timeout = bytearray(), httpx2.Timeout(self._seconds, connect=self._connect_seconds)
        async with self._client.stream("GET", where, timeout=timeout, **terms) as answer:
            async for piece in answer.aiter_raw():
                content += piece
                if len(content) > _MOST_ANSWER:
                    message = f"The NameNode's answer about {path} has more than {_MOST_ANSWER >> 20} MiB."
                    raise Unavailable("hdfs-locations-answer", message)
            return answer.status_code, bytes(content), answer.headers.get("WWW-Authenticate", "")


def _refusal(path: str, status: int, content: bytes) -> CorralError:
    """The error for a refusal, with the first line of Hadoop's own message."""
    said: Any = None
    try:
        said = msgspec.json.decode(content)["RemoteException"]["message"]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        said = None
    words = (str(said).strip().splitlines() or [""])[0][:300].rstrip(".") if said else f"HTTP {status}"
    kinds: dict[int, type[CorralError]] = {401: Forbidden, 403: Forbidden, 404: NotFound}
    if "safe mode" in words:
        kinds = {}
    kind = kinds.get(status, Unavailable)
    return kind("hdfs-locations-refused", f"The NameNode does not say where {path} is: {words}.")
