"""Why: credentials expire while a server runs for months; this is where they are read, renewed and turned into connections.

kubernetes-asyncio reads kubeconfig files (certificates, tokens, token files, exec plug-ins, OIDC) and service accounts.
It reads most of them once; here they are read again every minute, as client-go does with token files, and at once when
the API server answers 401. Its messages are not passed on whole: some quote the user's entry, token and all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml

from corral.engines.kubernetes.library import library
from corral.kernel.errors import CorralError, InvalidInput, Unauthenticated

READ_AGAIN_SECONDS: Final = 60.0
_READ_BYTES: Final = 2**21
"""As the library has it: an object may be larger than what aiohttp buffers otherwise."""
RENEW_SECONDS: Final = 5.0
"""A server that refuses new credentials too must not have a plug-in run for every call."""
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access:
    """Where the API server is and who Corral is there; `open` before use, `close` after."""

    def __init__(self, load: Callable[[], Any], *, called: str) -> None:
        """`load()` gives a fresh loader of the library; `called` says in errors which credentials these are."""
        self._load = load
        self._called = called
        self._loader: Any = None
        self._configuration: Any = None
        self._marks: tuple[object, ...] = ()
        self._read_at = 0.0
        self._renewed_at = -RENEW_SECONDS
        self._renewal: asyncio.Lock = asyncio.Lock()
        self._pools: dict[int, tuple[Any, Any]] = {}
        self._retired: list[Any] = []
        self.generation = 0
        """Grows with every renewal."""

    @property
    def host(self) -> str:
        """The address of the API server, without a slash at its end."""
        return str(self._configuration.host).rstrip("/")

    async def open(self) -> None:
        """Read the credentials; raises InvalidInput when they cannot be used."""
        await self._read(fresh=True)

    async def close(self) -> None:
        """Close every connection."""
        pools, self._pools = [pool for _, pool in self._pools.values()] + self._retired, {}
        self._retired = []
        for pool in pools:
            await pool.close()

    async def headers(self) -> dict[str, str]:
        """What signs a request, read again when it is older than a minute."""
        if asyncio.get_running_loop().time() - self._read_at > READ_AGAIN_SECONDS:
            async with self._renewal:
                if asyncio.get_running_loop().time() - self._read_at > READ_AGAIN_SECONDS:
                    await self._read_or_keep()
        token = self._configuration.api_key.get("BearerToken", "")
        return {"Authorization": " ".join(token.split())} if token else {}

    async def renew(self, seen: int) -> None:
        """The API server did not accept what generation `seen` gave: read everything afresh, once for all who ask.

        Raises Unauthenticated when they cannot be read now: a plug-in or an identity provider may be away for a while.
        """
        async with self._renewal:
            now = asyncio.get_running_loop().time()
            if self.generation == seen and now - self._renewed_at >= RENEW_SECONDS:
                self.generation += 1
                self._renewed_at = now
                try:
                    await self._read(fresh=True)
                except CorralError as error:
                    raise Unauthenticated(error.code, error.message) from None

    def session(self, connections: int) -> tuple[aiohttp.ClientSession, dict[str, Any]]:
        """The session with at most so many connections, and what each of its requests needs (proxy, server name).

        Certificates that were renewed get new connections; the old ones last until the renewal after that.
        """
        known, pool = self._pools.get(connections, (None, None))
        if pool is None or known != self._marks:
            if pool is not None:
                self._retired.append(pool)
            pool = _frugal(library().rest(self._configuration, maxsize=connections), self.host)
            self._pools[connections] = (self._marks, pool)
        wanted = {"proxy": pool.proxy, "proxy_headers": pool.proxy_headers, "server_hostname": pool.server_hostname}
        return pool.pool_manager, {name: value for name, value in wanted.items() if value}

    async def _read_or_keep(self) -> None:
        """What was good a minute ago is kept when it cannot be read now: the server says when it no longer is."""
        try:
            await self._read(fresh=False)
        except CorralError:
            self._read_at = asyncio.get_running_loop().time()

    async def _read(self, *, fresh: bool) -> None:
        try:
            if fresh or self._loader is None:
                self._loader = self._load()
            elif _would_run_a_plugin(self._loader):
                self._read_at = asyncio.get_running_loop().time()
                return
            configuration = library().configuration()
            done = self._loader.load_and_set(configuration)
            if done is not None:
                await done
        except CorralError:
            raise
        except Exception as error:
            raise InvalidInput("kubernetes-credentials", f"{self._called} cannot be used: {_reason(error)}.") from None
        self._configuration = configuration
        self._marks = _marks(configuration)
        self._read_at = asyncio.get_running_loop().time()
        while len(self._retired) > len(self._pools):
            await self._retired.pop(0).close()


def kubeconfig_access(path: str, context: str = "") -> Access:
    """The cluster and user of a kubeconfig file (several joined by `:`); "" is its current context."""

    def load() -> Any:
        module = library().kube_config
        merged = module.KubeConfigMerger(path)
        if merged.config is None:
            raise InvalidInput("kubernetes-credentials", f"There is no kubeconfig file {path}.")

        def persist(_: object) -> None:
            # An identity provider may give a new refresh token with each use; a kubeconfig that nobody may write to
            # (a mounted one) goes on with the one in memory.
            with contextlib.suppress(OSError):
                merged.save_changes()

        return module.KubeConfigLoader(merged.config, context or None, config_base_path=None, config_persister=persist)

    return Access(load, called=f"The kubeconfig {path}")


def service_account_access(environment: Mapping[str, str] = os.environ, folder: Path = _ACCOUNT) -> Access:
    """The cluster that this process is a pod of."""

    def load() -> Any:
        files = str(folder / "token"), str(folder / "ca.crt")
        return library().in_cluster(*files, try_refresh_token=False, environ=dict(environment))

    return Access(load, called="The pod's service account")


def _marks(configuration: Any) -> tuple[object, ...]:
    """What changes when certificates do."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return (*files, *(Path(file).stat().st_mtime_ns if file and Path(file).is_file() else 0 for file in files))


def _frugal(pool: Any, host: str) -> Any:
    """The pool with the environment's proxy looked up now; the library has a thread look for it before every request.

    That thread reads netrc too, which is a sixth of what a request costs and says nothing that Corral would heed.
    """
    connector = pool.pool_manager.connector
    pool.pool_manager.detach()
    pool.pool_manager = aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=_READ_BYTES)
    pool.proxy = pool.proxy or _proxy_of(host)
    return pool


def _proxy_of(host: str) -> str:
    """The proxy that the environment names for an address; "" for none."""
    address = urlsplit(host)
    if not address.hostname or proxy_bypass(address.hostname):
        return ""
    return getproxies().get(address.scheme, "")


def _would_run_a_plugin(loader: Any) -> bool:
    """Whether reading again would start an exec plug-in whose credential has no end: then only 401 asks for another."""
    user = getattr(loader, "_user", None)
    return user is not None and "exec" in user and not hasattr(loader, "exec_plugin_expiry")


def _reason(error: Exception) -> str:
    """Why the library could not read it, without what it quotes."""
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"it is not YAML (line {mark.line + 1})" if mark else "it is not YAML"
    if isinstance(error, OSError):
        return f"{error.strerror or 'it cannot be read'} ({error.filename or 'unknown file'})"
    if type(error).__name__ == "ConfigException":
        return " ".join(str(error).split(" in /")[0].split())[:200].rstrip(".")
    return f"it lacks what a kubeconfig must have ({type(error).__name__})"
