"""A YARN that asks for Kerberos, over an HDFS that does: its daemons call each other as `localhost`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from tests.testbeds.hadoop.secure_hdfs import SecureHdfs
from tests.testbeds.hadoop.yarn import Yarn
from tests.testbeds.kerberos import REALM, Kdc

_HTTP: Final = f"HTTP/localhost@{REALM}"


class SecureYarn(Yarn):
    """A ResourceManager that is called with tickets only, and NodeManagers."""

    host = "localhost"

    def __init__(self, hdfs: SecureHdfs, kdc: Kdc, nodes: int = 0) -> None:
        self.secure_hdfs = hdfs
        self.environment = hdfs.environment
        self._keytab = kdc.keytab("rm/localhost", "nm/localhost", "HTTP/localhost")
        super().__init__(hdfs, nodes)

    def _shared(self) -> Mapping[str, object]:
        keytab, shared = self._keytab, super()._shared()
        options = "yarn.service.am.java.opts"
        return {
            **shared,
            # a master's environment is its container's
            options: f"{self.environment['JAVA_TOOL_OPTIONS']} {shared[options]}",
            # not in HDFS, where the ResourceManager's user may make no folder
            "yarn.node-labels.fs-store.root-dir": f"file://{self.home}/labels",
            "yarn.node-attribute.fs-store.root-dir": f"file://{self.home}/attributes",
            "yarn.resourcemanager.principal": f"rm/localhost@{REALM}",
            "yarn.resourcemanager.keytab": keytab,
            "yarn.resourcemanager.webapp.spnego-principal": _HTTP,
            "yarn.resourcemanager.webapp.spnego-keytab-file": keytab,
            "yarn.nodemanager.principal": f"nm/localhost@{REALM}",
            "yarn.nodemanager.keytab": keytab,
            "yarn.nodemanager.webapp.spnego-principal": _HTTP,
            "yarn.nodemanager.webapp.spnego-keytab-file": keytab,
        }

    def ask(self, path: str, *, method: str = "GET", body: Any = None, user: str = "", **query: str) -> Any:
        """One call of the ResourceManager's REST interface as HDFS's superuser. Raises OSError for a refusal."""
        assert body is None and not user
        return self.secure_hdfs.call(method, f"{path}?{urlencode(query)}", self.url)

    def _core(self) -> Mapping[str, object]:
        return self.secure_hdfs.core()
