"""Why: the store's tests run on a real PostgreSQL: Debian's server on a temporary folder and a loopback port.

The server refuses to run as root, so it runs as `postgres` (or `nobody`) there; it is ended by its own pid.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg


def binaries() -> Path | None:
    """The folder of Debian's newest server binaries; None when they are not installed."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0), default=None)


class PostgresServer:
    """One server with a folder of its own; `stop` and `start` may be called as often as wanted."""

    def __init__(self) -> None:
        folder = binaries()
        assert folder is not None, "PostgreSQL is not installed"
        self._bin = folder
        self._user = _unprivileged()
        self._home = Path(tempfile.mkdtemp(prefix="corral-pg-"))
        self._data = self._home / "data"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases: set[str] = set()
        if self._user is not None:
            os.chown(self._home, self._user.pw_uid, self._user.pw_gid)
        locale = ["-E", "UTF8", "--locale=C.UTF-8"]
        self._run("initdb", "-D", str(self._data), "-U", "corral", "-A", "trust", "-N", *locale)
        self.start()

    def url(self, database: str) -> str:
        """The URL of a database of this server."""
        return f"postgresql://corral@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """Make a database, or empty it when it is there (a database is a thousand files); returns its URL."""
        if database in self._databases:
            with psycopg.connect(self.url(database), autocommit=True) as connection:
                connection.execute("DROP SCHEMA public CASCADE")
                connection.execute("CREATE SCHEMA public")
        else:
            self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "corral", database)
            self._databases.add(database)
        return self.url(database)

    @property
    def running(self) -> bool:
        """Whether the server process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._home),
            "max_connections": "60",
            "shared_buffers": "32MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [*self._as_user(), str(self._bin / "postgres"), "-D", str(self._data), *options]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        ready = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        deadline = time.monotonic() + 60
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self._home / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server; SIGINT breaks its connections, as an outage does."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(60)

    def close(self) -> None:
        """End the server and remove its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._home, ignore_errors=True)

    def _as_user(self) -> list[str]:
        if self._user is None:
            return []
        return ["setpriv", f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups", "--"]

    def _run(self, name: str, *arguments: str) -> None:
        command = [*self._as_user(), str(self._bin / name), *arguments]
        done = subprocess.run(command, cwd=self._home, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{name} failed: {done.stderr[-2000:]}")


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is neither a user postgres nor a user nobody to run the server as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
