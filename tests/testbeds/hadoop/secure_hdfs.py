"""A NameNode and a DataNode that ask for Kerberos, with the realm of a KDC of the test.

Their programs call each other as `localhost`, the name in their principals. Helpers act as HDFS's superuser by `kinit`
and `curl`, so that they use nothing of what is tested.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.kerberos import REALM, Kdc

_BYTES: Final = "Content-Type: application/octet-stream"
CORRAL: Final = "corral"
"""The Hadoop user whom HDFS lets act for others."""


class SecureHdfs(Hdfs):
    """An HDFS whose NameNode is called with tickets only; its superuser is `nn`."""

    host = "localhost"

    def __init__(self, kdc: Kdc) -> None:
        self._kdc = kdc
        self._keytab = kdc.keytab("nn/localhost", "dn/localhost", "HTTP/localhost")
        self._cache = kdc.cache("superuser", self._keytab, "nn/localhost", life="10h")
        self.environment = {"JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={kdc.configuration}"}
        super().__init__(self.environment)
        self.client_configuration = self._home / "conf-client"
        """A folder with what clients of its own protocol must know."""
        settings = {
            "fs.defaultFS": self.native,
            "hadoop.security.authentication": "kerberos",
            "dfs.namenode.kerberos.principal": f"nn/localhost@{REALM}",
        }
        write_configuration(self.client_configuration / "core-site.xml", settings)
        write_configuration(self.client_configuration / "hdfs-site.xml", {})

    def write(self, path: str, content: bytes) -> None:
        """Write a small file as the superuser."""
        address = f"{self.url}/webhdfs/v1{quote(path)}?op=CREATE&overwrite=true"
        self._curl("-X", "PUT", "-L", "--data-binary", "@-", "-H", _BYTES, address, given=content)

    def read(self, path: str) -> bytes:
        """The content of a file, as the superuser reads it."""
        return self._curl("-L", f"{self.url}/webhdfs/v1{quote(path)}?op=OPEN")

    @property
    def url(self) -> str:
        """The NameNode's address for WebHDFS."""
        return self.web.replace("webhdfs", "http")

    def core(self) -> Mapping[str, object]:
        """The settings of core-site.xml that all daemons of the cluster have."""
        return self._core()

    def ask(self, method: str, path: str, operation: str, **parameters: str) -> Any:
        """One call of the NameNode's REST interface as its superuser; returns the JSON. Raises OSError for a refusal."""
        query = urlencode({"op": operation, **parameters})
        return self.call(method, f"/webhdfs/v1{quote(path)}?{query}")

    def call(self, method: str, path: str, base: str = "") -> Any:
        """One call of a path of the NameNode, or of another daemon, as the superuser. Raises OSError for a refusal."""
        url = f"{base or self.url}{path}"
        got = self._curl("-X", method, url)
        return json.loads(got) if got else None

    def _curl(self, *more: str, given: bytes = b"") -> bytes:
        """What curl prints, with the superuser's ticket. Raises OSError for a refusal."""
        words = ["curl", "-sS", "--fail-with-body", "--negotiate", "-u", ":", "-m", "30", *more]
        env = {"PATH": "/usr/bin:/bin", **self._kdc.environment, "KRB5CCNAME": self._cache}
        done = subprocess.run(words, env=env, input=given, capture_output=True, timeout=300, check=False)
        if done.returncode != 0:
            raise OSError(f"curl {more[-1]}: {done.stderr.decode()}{done.stdout[:500].decode(errors='replace')}")
        return done.stdout

    def _jmx(self, query: str) -> Any:
        return self.call("GET", f"/jmx?qry={query}")

    def _core(self) -> Mapping[str, object]:
        return {
            "fs.defaultFS": self.native,
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "hadoop.http.authentication.kerberos.keytab": self._keytab,
            f"hadoop.proxyuser.{CORRAL}.hosts": "*",
            f"hadoop.proxyuser.{CORRAL}.groups": "*",
            "hadoop.proxyuser.rm.hosts": "*",
            "hadoop.proxyuser.rm.groups": "*",
        }

    def _settings(self) -> Mapping[str, object]:
        return {
            **super()._settings(),
            "dfs.namenode.kerberos.principal": f"nn/localhost@{REALM}",
            "dfs.namenode.keytab.file": self._keytab,
            "dfs.datanode.kerberos.principal": f"dn/localhost@{REALM}",
            "dfs.datanode.keytab.file": self._keytab,
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "dfs.web.authentication.kerberos.keytab": self._keytab,
            "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true",
            "dfs.datanode.hostname": "localhost",
        }
