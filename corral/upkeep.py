"""Maintain a data folder: backup, restore, key rotation, sign-in links and `corral doctor`."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import ssl
import stat
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from corral import datafolder, supervisor
from corral.chosen_engines import chosen_engines
from corral.engines.kind import DoctorOptions
from corral.kernel.errors import Conflict, CorralError
from corral.lifecycle import ask_control
from corral.portal import portal_folder
from corral.service.health import FEW_DESCRIPTORS, descriptors_of, few_inodes
from corral.settings import Settings

_LOW_DISK = 2 * 1024**3
_ASK_SECONDS = 10.0


class Check(NamedTuple):
    """One result of `corral doctor`; `state` is good, note or bad, `message` says what to do."""

    name: str
    state: str
    message: str


def backup(settings: Settings, target: Path, *, with_key: bool) -> int:
    """Write a consistent copy of the store to `target`, even while the server runs; its size in bytes.

    Raises CorralError if it cannot be written.
    """
    from corral.store import open_store
    from corral.systemclock import SystemClock

    absolute = target.absolute()

    async def copy() -> None:
        store = await open_store(settings.store_url, clock=SystemClock(), create=False)
        try:
            await store.backup(absolute)
        finally:
            await store.close()

    with _refusals():
        asyncio.run(copy())
    if with_key:
        beside = target.with_name(target.name + ".key")
        shutil.copyfile(settings.data_folder / "key", beside)
        beside.chmod(0o600)
    return target.stat().st_size


def backup_to(settings: Settings, stream: IO[bytes]) -> None:
    """Write a consistent copy of the store to a stream, even while the server runs. Raises CorralError."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store"
        backup(settings, file, with_key=False)
        with file.open("rb") as opened:
            shutil.copyfileobj(opened, stream)
    stream.flush()


def restore_from(settings: Settings, stream: IO[bytes]) -> None:
    """Restore a backup that comes from a stream. Raises as `restore` does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store"
        with file.open("wb") as opened:
            shutil.copyfileobj(stream, opened)
        restore(settings, file)


def sign_in_link(settings: Settings, url: str, *, first: bool = False) -> str:
    """Make a one-time sign-in link for the administrator, for the server at `url`.

    With `first` none is made, and the result is "", once an administrator has signed in.

    Raises CorralError if the store cannot be opened, Forbidden if the account is not an administrator's.
    """
    from corral.service.context import Context
    from corral.service.service import Service
    from corral.store import open_store
    from corral.systemclock import SystemClock

    async def make() -> str:
        clock = SystemClock()
        store = await open_store(settings.store_url, clock=clock, create=False)
        service = Service(Context(store, key=datafolder.read_key(settings.data_folder), clock=clock))
        try:
            if first and await service.sessions.administered():
                return ""
            return (await service.sessions.first_link(settings.administrator, uid=os.getuid())).link
        finally:
            await service.close()
            await store.close()

    with _refusals():
        link = asyncio.run(make())
    return f"{url.rstrip('/')}/sign-in#link={link}" if link else ""


def restore(settings: Settings, source: Path) -> Path | None:
    """Restore a backup as the data folder's store; the path of the previous store, None if there was none.

    Raises Conflict while a server runs, CorralError if the file is not a backup.
    """
    from corral.store.backup import restore as restore_into
    from corral.store.database_file import set_aside

    _must_be_stopped(settings)
    datafolder.prepare(settings.data_folder)
    kept: Path | None = None
    database = settings.data_folder / "corral.db"
    if not settings.database_url and database.exists():
        kept = database.with_name(f"corral.db.before-{time.strftime('%Y%m%d-%H%M%S')}")
        set_aside(database, kept)
    try:
        with _refusals():
            restore_into(source, settings.store_url)
    except CorralError:
        if kept is not None:
            database.unlink(missing_ok=True)
            kept.rename(database)
        raise
    beside = source.with_name(source.name + ".key")
    if beside.exists():
        shutil.copyfile(beside, settings.data_folder / "key")
    return kept


def rotate_key(settings: Settings) -> int:
    """Replace the key and seal every secret with the new one; the number of secrets.

    Raises Conflict while a server runs.
    """
    from corral.service.secret_box import rotate_key as rotate
    from corral.store import open_store
    from corral.systemclock import SystemClock

    _must_be_stopped(settings)

    async def run() -> int:
        store = await open_store(settings.store_url, clock=SystemClock(), create=False)
        try:
            return await rotate(store, settings.data_folder / "key")
        finally:
            await store.close()

    with _refusals():
        return asyncio.run(run())


def doctor(settings: Settings, *, probe: bool = True, probe_node: str = "") -> list[Check]:
    """Check this machine, the server and each engine that the settings name.

    `probe`: whether to run a test task on an engine's machines; `probe_node`: on which node, "" for any. Raises
    InvalidInput for an unknown engine.
    """
    here = [
        check
        for checks in (_machine(), _folder(settings), _blobs(settings), _sign_in(settings), _server(settings))
        for check in checks
    ]
    return here + asyncio.run(_engines(settings, DoctorOptions(probe, probe_node, settings.advertise)))


async def _engines(settings: Settings, options: DoctorOptions) -> list[Check]:
    """The checks of each engine, in the order of the setting."""
    found = [finding for kind, own in chosen_engines(settings) for finding in await kind.doctor(own, options)]
    return [Check(*finding) for finding in found]


def hidden_from_others(path: Path) -> Path | None:
    """The outermost place on the way to `path` (links resolved) that other accounts cannot reach: enter, or read a file."""
    for each in _ways(path.resolve()):
        wanted = stat.S_IXOTH if each.is_dir() else stat.S_IROTH
        if not each.stat().st_mode & wanted:
            return each
    return None


def _ways(path: Path) -> tuple[Path, ...]:
    return *reversed(path.parents), path


def _machine() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    hidden = hidden_from_others(Path(sys.executable)) or hidden_from_others(Path(os.__file__))
    if hidden is not None and os.geteuid() == 0:
        message = f"{version} at {sys.executable}; other accounts cannot read {hidden}, so no task of theirs can start"
        yield Check("python", "note", f"{message}; install Corral in a folder that all users can read, such as /opt")
    else:
        yield Check("python", "good", f"{version} at {sys.executable}")
    page = portal_folder() / "index.html"
    if page.exists():
        yield Check("portal", "good", "the built page is there")
    else:
        yield Check("portal", "bad", "the page is not built; run `make portal` in the source tree")


def _folder(settings: Settings) -> Iterator[Check]:
    folder = settings.data_folder
    if not folder.exists():
        yield Check("data folder", "note", f"{folder} is not there yet; `corral up` makes it")
        return
    if not os.access(folder, os.W_OK):
        yield Check("data folder", "bad", f"{folder} cannot be written; give its user write access")
        return
    free = shutil.disk_usage(folder).free
    state = "bad" if free < _LOW_DISK else "good"
    yield Check("data folder", state, f"{folder}, {free / 1024**3:.1f} GiB free")
    if os.geteuid() == 0 and (closed := hidden_from_others(folder)) is not None:
        message = (
            f"other accounts cannot enter {closed}, so tasks of users with an account of their own cannot start here"
        )
        yield Check("data folder of tasks", "note", f"{message}; chmod o+x it, or choose another folder by --data")
    for sentence in few_inodes(folder):
        yield Check("inodes", "bad", sentence)
    try:
        datafolder.read_key(folder)
        yield Check("key", "good", "readable; keep a copy of it apart from backups")
    except CorralError as error:
        yield Check("key", "bad", error.message)
    database = folder / "corral.db"
    if not settings.database_url and database.exists():
        yield _database(database)


def _blobs(settings: Settings) -> Iterator[Check]:
    if not settings.blobs:
        return
    from corral.storage.remote_folder import open_folder

    try:
        asyncio.run(open_folder(settings.blobs))
        yield Check("blob store", "good", f"{settings.blobs} can be written and read")
    except CorralError as error:
        yield Check("blob store", "bad", error.message)


def _sign_in(settings: Settings) -> Iterator[Check]:
    if not settings.oidc_issuer:
        return
    from corral.app import openid_settings
    from corral.service.openid.provider import Provider
    from corral.systemclock import SystemClock

    async def ask() -> None:
        provider = Provider(openid_settings(settings), SystemClock())
        try:
            await provider.metadata()
        finally:
            await provider.close()

    try:
        asyncio.run(ask())
        yield Check("sign-in", "good", f"{settings.oidc_issuer} answers as an OpenID provider")
    except CorralError as error:
        yield Check("sign-in", "bad", error.message)


def _database(path: Path) -> Check:
    from corral.store.database_file import damage

    found = damage(path)
    if found:
        return Check("store", "bad", f"{path} is damaged ({found}); restore a backup with `corral restore`")
    return Check("store", "good", f"{path}, {path.stat().st_size / 1024**2:.1f} MiB, no damage found")


def _server(settings: Settings) -> Iterator[Check]:
    record = supervisor.running(settings.data_folder)
    if record is None:
        yield Check("server", "note", "does not run; `corral up` starts it")
        return
    yield Check("server", "good", f"runs at {record['url']} (pid {record['pid']})")
    try:
        said = ask_control(settings, "GET", "/ping")
        message = "leads and answers" if said["ready"] else "answers, and is still starting"
        state = "good" if said["ready"] else "note"
        if said.get("reasons"):
            state, message = "bad", " ".join(said["reasons"])
        yield Check("control", state, message)
    except CorralError as error:
        yield Check("control", "bad", f"{error.message} Look into {settings.data_folder}/logs/control.log")
    yield _front(record["url"])
    yield from _halves(settings, record)


def _front(url: str) -> Check:
    """Check front by /readyz; its certificate may be for another name than the local address."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        ).open(f"{url}/readyz", timeout=_ASK_SECONDS) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as error:
        with error, contextlib.suppress(ValueError):
            return Check("front", "bad", " ".join(json.load(error).get("reasons", ())) or f"answers {error.code}")
        return Check("front", "bad", f"answers {error.code}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Check("front", "bad", f"does not answer at {url} ({error}); look into its log")
    if said.get("degraded"):
        return Check("front", "bad", " ".join(said["reasons"]))
    return Check("front", "good", "answers")


def _halves(settings: Settings, record: dict[str, Any]) -> Iterator[Check]:
    """Checks of front and control: their restarts, and their open file descriptors."""
    for name, told in record.get("replaced", {}).items():
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told["at"]))
        times = "once" if told["times"] == 1 else f"{told['times']} times"
        message = f"started again {times} since the server began, last at {when}: {told['why']}"
        yield Check(name, "note", f"{message}; see {settings.data_folder}/logs/{name}.log")
    for name, pid in supervisor.children_of(record["pid"]).items():
        with contextlib.suppress(OSError):
            used, limit = descriptors_of(pid)
            few = limit - used < FEW_DESCRIPTORS
            hint = "; raise its limit (ulimit -n) and restart it" if few else ""
            yield Check(f"{name}'s descriptors", "bad" if few else "good", f"{used} of {limit} are open{hint}")


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn refusals of the store into Conflict, since they are no defects of Corral."""
    from corral.store import StoreRefused

    try:
        yield
    except StoreRefused as error:
        raise Conflict(error.code, error.message) from None


def _must_be_stopped(settings: Settings) -> None:
    record = supervisor.running(settings.data_folder)
    if record is not None:
        raise Conflict("server-runs", f"The server runs (pid {record['pid']}); end it with `corral down` first.")
