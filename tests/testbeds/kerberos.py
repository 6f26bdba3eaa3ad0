"""A real KDC for tests: Debian's MIT Kerberos with a realm of its own on a loopback port.

Nothing of the machine's own Kerberos is used: each program finds the realm by `environment`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from corral.storage.kerberos.tickets import Identity
from tests.reserved import free_port
from tests.testbeds.kubernetes import remains
from tests.testbeds.kubernetes.daemons import Daemon

REALM: Final = "CORRAL.TEST"
_HOMES: Final = "corral-kdc-"
_PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_SECONDS: Final = 300


def missing() -> str:
    """The missing Debian packages, "" when all are installed."""
    needs = {"krb5-kdc": "krb5kdc", "krb5-admin-server": "kadmin.local", "krb5-user": "kinit", "curl": "curl"}
    absent = [package for package, program in needs.items() if shutil.which(program, path=_PATH) is None]
    return f"the Debian packages {' and '.join(absent)} are not installed" if absent else ""


class Kdc:
    """A KDC; keytabs and ticket caches are files in its folder."""

    def __init__(self) -> None:
        for left in list(remains.orphans(_HOMES)):
            shutil.rmtree(left, ignore_errors=True)
        self.home = Path(tempfile.mkdtemp(prefix=_HOMES))
        remains.write_owner(self.home)
        self._port = free_port()
        self.configuration = self.home / "krb5.conf"
        self.configuration.write_text(_CLIENTS.format(realm=REALM, port=self._port))
        (self.home / "kdc.conf").write_text(_KDC.format(realm=REALM, port=self._port, home=self.home))
        self.environment = {"KRB5_CONFIG": str(self.configuration), "KRB5CCNAME": f"FILE:{self.home}/no-cache"}
        """What a client of the realm without any ticket needs."""
        self._env = {**os.environ, **self.environment, "KRB5_KDC_PROFILE": str(self.home / "kdc.conf"), "PATH": _PATH}
        command = [shutil.which("krb5kdc", path=_PATH) or "krb5kdc", "-n", "-P", self.home / "krb5kdc.pid"]
        self._daemon = Daemon("krb5kdc", command, self.home, self._env)
        try:
            self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "only for tests")
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Kdc:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop it and remove its folder."""
        self._daemon.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def start(self) -> None:
        """Start the KDC, unless it runs."""
        self._daemon.start(self._listens)

    def stop(self) -> None:
        """Stop the KDC; its principals stay."""
        self._daemon.stop()

    def keytab(self, *principals: str, life: str = "") -> Path:
        """Make principals, unless they are there, and a new keytab of them, which has the first one's name."""
        path = self.home / f"{principals[0].replace('/', '-')}.keytab"
        path.unlink(missing_ok=True)
        for each in principals:
            if f"Principal: {each}@{REALM}" not in self._run("kadmin.local", "getprinc", each, check=False):
                terms = ["-maxlife", life] if life else []
                self._run("kadmin.local", "addprinc", "-randkey", *terms, each)
            self._run("kadmin.local", "ktadd", "-k", str(path), "-norandkey", each)
        return path

    def renew_key(self, principal: str) -> None:
        """Give a principal another key, after which its keytabs are too old."""
        self._run("kadmin.local", "cpw", "-randkey", principal)

    def cache(self, name: str, keytab: Path, principal: str, *, life: str = "1h") -> str:
        """Get a ticket into a cache by kinit; returns the cache's name for KRB5CCNAME."""
        cache = f"FILE:{self.home}/{name}.cache"
        self._run("kinit", "-c", cache, "-l", life, "-k", "-t", str(keytab), principal)
        return cache

    def identity(self, principal: str) -> Identity:
        """The identity of a principal that has a keytab."""
        return Identity(f"{principal}@{REALM}", f"{self.home}/{principal}.keytab")

    def issued(self, principal: str) -> int:
        """How many first tickets the KDC has given to a principal."""
        given = f"{principal}@{REALM} for krbtgt/"
        lines = (self.home / "krb5kdc.log").read_text(errors="replace").splitlines()
        return sum("AS_REQ" in line and ": ISSUE: " in line and given in line for line in lines)

    def _run(self, program: str, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            [shutil.which(program, path=_PATH) or program, *words],
            env=self._env, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise RuntimeError(f"{program} {words[:1]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=5):
            return True
        return False


_CLIENTS: Final = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""

_KDC: Final = """
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {home}/principal
  key_stash_file = {home}/stash
  acl_file = {home}/kadm5.acl
  max_life = 10h
  max_renewable_life = 7d
 }}
[logging]
 kdc = STDERR
"""
