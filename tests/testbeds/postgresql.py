"""A real PostgreSQL for tests: Debian's server on a temporary folder and a loopback port.

The server refuses to run as root, so it runs as `postgres` (or `nobody`) there; it is ended by its own pid.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg import sql

from tests.databases import migrate
from tests.reserved import free_port


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
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._made, self._template = 0, ""
        if self._user is not None:
            os.chown(self._home, self._user.pw_uid, self._user.pw_gid)
        locale = ["-E", "UTF8", "--locale=C.UTF-8"]
        self._run("initdb", "-D", str(self._data), "-U", "corral", "-A", "trust", "-N", *locale)
        self.start()

    def url(self, database: str) -> str:
        """The URL of a database of this server."""
        return f"postgresql://corral@127.0.0.1:{self.port}/{database}"

    def create(self) -> str:
        """Make an empty database with a new name; returns its URL."""
        return self._create("template0")

    def create_store(self) -> str:
        """Make a new database with the tables of an empty store, copied from a template; returns its URL."""
        if not self._template:
            made = self.create()
            migrate(made)
            self._template = made.rpartition("/")[2]
        return self._create(self._template)

    def empty(self, url: str) -> None:
        """Remove all contents of a database."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    def drop(self, url: str) -> None:
        """Remove a database, even with open connections."""
        self._administer(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(url.rpartition("/")[2])))

    @property
    def running(self) -> bool:
        """Whether the server process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._home),
            "max_connections": "60",
            "shared_buffers": "32MB",
            # Safe when the server is killed; only a power failure of the machine would lose data.
            "fsync": "off",
            "full_page_writes": "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [*self._as_user(), str(self._bin / "postgres"), "-D", str(self._data), *options]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        ready = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        deadline = time.monotonic() + 150
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self._home / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def freeze(self) -> None:
        """Suspend the server and all its sessions; their connections stay."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume them."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        pid = self._process.pid
        os.kill(pid, number)  # first the process that starts others
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), number)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; SIGINT breaks its connections, as an outage does."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(60)

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._home, ignore_errors=True)

    def _create(self, template: str) -> str:
        self._made += 1
        name = f"test_{self._made}"
        names = [sql.Identifier(each) for each in (name, template)]
        # By default each page is written to the log as well, which takes half as much processor time again.
        words = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(*names)
        self._administer(words)
        return self.url(name)

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

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
