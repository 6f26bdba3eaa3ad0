"""Read and renew the API server's credentials and open its connections.

kubernetes-asyncio reads kubeconfig files (certificates, tokens, token files, exec plug-ins, OIDC) and service accounts.
It reads most of them once. Here they are read again every minute, as client-go does with token files, and at once when
the API server answers 401. The library's error messages are cut, because some quote the user's entry with its token.
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

from corral.engines.kubernetes.api.client_library import library
from corral.kernel.errors import CorralError, InvalidInput, Unauthenticated

READ_AGAIN_SECONDS: Final = 60.0
_READ_BYTES: Final = 2**21
"""Bytes of the read buffer, the library's own setting: an object may be larger than aiohttp's default buffer."""
RENEW_SECONDS: Final = 5.0
"""Least seconds between renewals.

A server that also refuses new credentials must not start a plug-in for every call.
"""
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access:
    """The API server's address and Corral's credentials for it. Call `open` before use and `close` after."""

    def __init__(self, load: Callable[[], Any], *, called: str) -> None:
        """`load()` returns a fresh loader of the library; `called` names the credentials in errors."""
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
        """The number of renewals."""

    @property
    def host(self) -> str:
        """The address of the API server, without a trailing slash."""
        return str(self._configuration.host).rstrip("/")

    async def open(self) -> None:
        """Read the credentials. Raises InvalidInput when they cannot be used."""
        await self._read(fresh=True)

    async def close(self) -> None:
        """Close all connections."""
        pools, self._pools = [pool for _, pool in self._pools.values()] + self._retired, {}
        self._retired = []
        for pool in pools:
            await pool.close()

    async def headers(self) -> dict[str, str]:
        """Return the authorization header. Credentials older than a minute are read again first."""
        if asyncio.get_running_loop().time() - self._read_at > READ_AGAIN_SECONDS:
            async with self._renewal:
                if asyncio.get_running_loop().time() - self._read_at > READ_AGAIN_SECONDS:
                    await self._read_or_keep()
        token = self._configuration.api_key.get("BearerToken", "")
        return {"Authorization": " ".join(token.split())} if token else {}

    async def renew(self, seen: int) -> None:
        """Read all credentials afresh after the API server refused those of generation `seen`, once for all callers.

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
        """Return a session of at most `connections` connections, and extra request arguments (proxy, server name).

        Renewed certificates get new connections. The old ones stay open until the next renewal.
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
        """Read the credentials again. On failure keep the old ones; the server answers 401 when they expire."""
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
    """Return the access of a kubeconfig's context, "" for the current one. `path` may join several files by `:`."""

    def load() -> Any:
        module = library().kube_config
        merged = module.KubeConfigMerger(path)
        if merged.config is None:
            raise InvalidInput("kubernetes-credentials", f"There is no kubeconfig file {path}.")

        def persist(_: object) -> None:
            # An identity provider may rotate the refresh token at each use. A read-only kubeconfig (a mounted one) goes
            # on with the token in memory.
            with contextlib.suppress(OSError):
                merged.save_changes()

        return module.KubeConfigLoader(merged.config, context or None, config_base_path=None, config_persister=persist)

    return Access(load, called=f"The kubeconfig {path}")


def service_account_access(environment: Mapping[str, str] = os.environ, folder: Path = _ACCOUNT) -> Access:
    """Return the access to the cluster in which this process runs as a pod."""

    def load() -> Any:
        files = str(folder / "token"), str(folder / "ca.crt")
        return library().in_cluster(*files, try_refresh_token=False, environ=dict(environment))

    return Access(load, called="The pod's service account")


def _marks(configuration: Any) -> tuple[object, ...]:
    """Return a value that changes when the certificates do."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return (*files, *(Path(file).stat().st_mtime_ns if file and Path(file).is_file() else 0 for file in files))


def _frugal(pool: Any, host: str) -> Any:
    """Return the pool with the environment's proxy looked up once, now.

    The library would start a thread before every request, which also reads netrc. That is a sixth of a request's cost,
    and Corral does not use netrc.
    """
    connector = pool.pool_manager.connector
    pool.pool_manager.detach()
    pool.pool_manager = aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=_READ_BYTES)
    pool.proxy = pool.proxy or _proxy_of(host)
    return pool


def _proxy_of(host: str) -> str:
    """Return the environment's proxy for an address, "" for none."""
    address = urlsplit(host)
    if not address.hostname or proxy_bypass(address.hostname):
        return ""
    return getproxies().get(address.scheme, "")


def _would_run_a_plugin(loader: Any) -> bool:
    """Return whether reading again would run an exec plug-in whose credential has no expiry.

    Only a 401 should do that.
    """
    user = getattr(loader, "_user", None)
    return user is not None and "exec" in user and not hasattr(loader, "exec_plugin_expiry")


def _reason(error: Exception) -> str:
    """Describe why the library could not read the credentials, without its quotations."""
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"it is not YAML (line {mark.line + 1})" if mark else "it is not YAML"
    if isinstance(error, OSError):
        return f"{error.strerror or 'it cannot be read'} ({error.filename or 'unknown file'})"
    if type(error).__name__ == "ConfigException":
        return " ".join(str(error).split(" in /")[0].split())[:200].rstrip(".")
    return f"it lacks what a kubeconfig must have ({type(error).__name__})"
