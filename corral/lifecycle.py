"""Start and stop the server: `corral up`, `corral down`, and the checks before a start."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

from corral import datafolder, supervisor
from corral.chosen_engines import check_engines
from corral.forking import fork, has_one_thread
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, TooLarge, Unavailable
from corral.service.tenant_settings import tenant_options
from corral.settings import Settings

_FROM_FILES = {
    "tls_certificate": "--tls-cert",
    "tls_key": "--tls-key",
    "cluster": "--cluster",
    "alert_rules": "--alert-rules",
    "alert_actions": "--alert-actions",
}


def up(settings: Settings, *, detach: bool, new: bool = False) -> dict[str, Any]:
    """Start the server; detached, return `{url, pid, link}` when it is ready, else this process becomes the server.

    `new`: start with a new database even if an earlier server left data; without it that raises Conflict
    `not-a-new-folder`. Raises CorralError if it cannot start: data folder, port, certificate, store or cluster
    document.
    """
    check(settings)
    check_beginning(settings, new=new)
    datafolder.prepare(settings.data_folder)
    if new:
        os.environ[supervisor.NEW] = "1"
    orders, forks = _orders(settings, foreground=not detach), has_one_thread()
    if not detach:
        sys.exit(supervisor.become(orders, forks=forks))
    reading, writing = os.pipe()
    with open(settings.data_folder / "logs" / "supervisor.log", "ab") as log:
        process = fork(lambda: supervisor.become(orders, forks=forks), output=writing, errors=log.fileno())
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.readline()
    facts: dict[str, Any] = json.loads(said) if said else {}
    if "url" not in facts:
        process.wait()
        raise _not_started(facts, settings)
    return facts


def _not_started(said: dict[str, Any], settings: Settings) -> CorralError:
    """The error of a failed start, of the kind that the child reported, so that the exit code fits."""
    message = said.get("message", f"The server did not start; see {settings.data_folder}/logs/.")
    kinds = {kind.status: kind for kind in (InvalidInput, NotFound, TooLarge, Unavailable)}
    if "code" not in said or said["code"] == "cannot-start":
        return CorralError("cannot-start", message)
    return kinds.get(said.get("status", 500), Conflict)(said["code"], message)


class Down(NamedTuple):
    """The result of `down`."""

    ran: bool
    """Whether a server was running."""
    left: tuple[str, ...] = ()
    """The jobs that had not ended when the time to stop them was over."""


def down(settings: Settings, *, stop_jobs: float | None) -> Down:
    """Stop the server of the data folder. Jobs run on, unless `stop_jobs` gives the seconds in which they must end.

    Raises Unavailable if the server does not end, or if jobs must be stopped and control does not answer.
    """
    if supervisor.running(settings.data_folder) is None:
        return Down(False)
    left = () if stop_jobs is None else _stop_all(settings, stop_jobs)
    return Down(supervisor.stop(settings.data_folder), left)


def _stop_all(settings: Settings, seconds: float) -> tuple[str, ...]:
    """Stop every job; the jobs that are not over after `seconds`.

    Raises Unavailable if control does not answer.
    """
    answer = ask_control(settings, "POST", f"/stop-all?wait={seconds:.3f}", seconds=seconds + 30.0)
    return tuple(answer["left"])


def ask_control(settings: Settings, method: str, path: str, *, seconds: float = 10.0) -> Any:
    """Send one request to control on its Unix socket.

    Raises Unavailable if it does not answer, CorralError if it refuses.
    """
    connection = _UnixConnection(settings.run_folder / "control.sock", seconds)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        body = json.loads(answer.read() or b"null")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable("no-control", f"Control does not answer ({error}); see `corral doctor`.") from None
    finally:
        connection.close()
    if answer.status >= 400:
        raise CorralError(str(body.get("code", "refused")), str(body.get("message", "Control refused.")))
    return body


def check(settings: Settings) -> None:
    """Refuse unusable settings before anything starts.

    Raises InvalidInput naming the setting, Conflict if a server already runs on the data folder.
    """
    for name, option in _FROM_FILES.items():
        path: Path | None = getattr(settings, name)
        if path is not None and not os.access(path, os.R_OK):
            raise InvalidInput("file-unreadable", f"{path} ({option}) cannot be read.")
    _check_certificate(settings)
    if settings.database_url and not settings.database_url.startswith(("postgresql:", "postgresql+")):
        raise InvalidInput("bad-database-url", "database_url must be postgresql://…; leave it empty for SQLite.")
    check_replicas(settings)
    check_engines(settings)
    tenant_options(settings.of_others)
    if settings.cluster is not None:
        from corral.spec.configuration_file import load_site
        from corral.spec.errors import SpecError

        try:
            load_site(settings.cluster.read_bytes(), filename=str(settings.cluster))
        except SpecError as error:
            raise InvalidInput("bad-cluster-document", str(error)) from None
    _check_alert_files(settings)
    running = supervisor.running(settings.data_folder)
    if running is not None:
        raise Conflict(
            "already-running",
            f"Corral already runs at {running['url']} (pid {running['pid']}); end it with `corral down`, or use --data.",
        )


def _check_alert_files(settings: Settings) -> None:
    from corral.spec.errors import SpecError

    try:
        if (rules := settings.alert_rules) is not None:
            from corral.monitor.rules.rules_file import parse_rules

            parse_rules(rules.read_bytes(), str(rules))
        if (routes := settings.alert_actions) is not None:
            from corral.monitor.rules.routes import parse_routes

            parse_routes(routes.read_bytes(), str(routes))
    except SpecError as error:
        raise InvalidInput("bad-alert-file", str(error)) from None


def check_beginning(settings: Settings, *, new: bool) -> None:
    """Refuse to create a new database if the data folder has traces of a server with another one.

    Raises Conflict `not-a-new-folder`.
    """
    left = datafolder.left_behind(settings.data_folder)
    if settings.database_url:
        left = [each for each in left if each != "a key"]  # replicas are given their key before their first start
    if new or not left or _has_database(settings):
        return
    what = left[0] if len(left) == 1 else f"{', '.join(left[:-1])} and {left[-1]}"
    where = "the database is empty" if settings.database_url else "its database is gone"
    raise Conflict(
        "not-a-new-folder",
        f"{settings.data_folder} has {what} of an earlier server, and {where}: restore a backup (`corral restore`), use "
        "another folder (--data), or start empty with --new, which ends its tasks and keeps none of its jobs.",
    )


def _has_database(settings: Settings) -> bool:
    """Whether a store already exists; one that does not answer reports that itself at the start."""
    if not settings.database_url:
        return (settings.data_folder / "corral.db").exists()
    from corral.store.schema import is_empty

    return not is_empty(settings.database_url)


def check_replicas(settings: Settings) -> None:
    """Refuse several controls without the PostgreSQL store that they must share.

    Raises InvalidInput naming the setting.
    """
    if settings.control_address and not settings.database_url:
        message = (
            "With replicas (control_address) the store must be PostgreSQL: SQLite has one machine. Set database_url."
        )
        raise InvalidInput("replicas-need-postgresql", message)
    if settings.control_address and settings.job_ports:
        message = "With replicas (control_address) jobs have no ports of their own: set services_domain, not job_ports."
        raise InvalidInput("invalid-setting", message)


def _check_certificate(settings: Settings) -> None:
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise InvalidInput("tls-incomplete", "TLS needs both --tls-cert and --tls-key.")
    if settings.tls_certificate is None or settings.tls_key is None:
        return
    import ssl

    try:
        # Without a password, OpenSSL would ask for one on the terminal of a server that has none.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_certificate, settings.tls_key, lambda: b"")
    except (ssl.SSLError, ValueError) as error:
        what = error.reason if isinstance(error, ssl.SSLError) and error.reason else error
        raise InvalidInput(
            "bad-certificate",
            f"{settings.tls_certificate} (--tls-cert) and {settings.tls_key} (--tls-key) cannot be used ({what}): "
            "give a PEM certificate chain and its private key without a password.",
        ) from None


def environment_of(settings: Settings) -> dict[str, str]:
    """The settings as environment variables for a child process, with absolute paths."""
    values: dict[str, str] = {}
    for name, value in settings.model_dump().items():
        if value is None:
            continue
        values[f"CORRAL_{name.upper()}"] = _written(value)
    return values


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value.absolute()) if isinstance(value, Path) else str(value)


def _orders(settings: Settings, *, foreground: bool) -> dict[str, Any]:
    return {
        "data_folder": str(settings.data_folder.absolute()),
        "host": settings.host,
        "port": settings.port,
        "scheme": settings.scheme,
        "foreground": foreground,
        "environment": environment_of(settings),
    }


class _UnixConnection(http.client.HTTPConnection):
    """HTTP to a Unix socket."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("control", timeout=seconds)
        self._path = str(path)

    def connect(self) -> None:
        """Connect to the socket's path."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
