"""A YARN that asks for Kerberos runs the agents of a server that calls it by a keytab, and the server reads them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.endtoend.platform import ROOT
from tests.engines.yarn.served import OnYarn, processes, until
from tests.reserved import free_port
from tests.testbeds.hadoop.secure_hdfs import CORRAL
from tests.testbeds.hadoop.secure_yarn import SecureYarn
from tests.testbeds.kerberos import REALM, Kdc

pytestmark = pytest.mark.timeout(600)
AGENT = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "corral.cli.main", "node-agent", "--seconds", "0.5")


def services(yarn: SecureYarn) -> list[str]:
    """The services of agents that YARN runs."""
    return [each["name"] for each in yarn.live_apps() if "-agents-" in each["name"]]


def test_an_agent_runs_on_each_node_and_tells_the_server_of_it(realm: Kdc, yarn: SecureYarn, tmp_path: Path) -> None:
    port = free_port()
    words = ["--yarn-principal", f"{CORRAL}@{REALM}", "--yarn-keytab", f"{realm.home}/{CORRAL}.keytab"]
    realm.keytab(f"{CORRAL}/localhost")
    env = {
        **realm.environment, "CORRAL_YARN_SERVICE_PRINCIPAL": f"{{user}}/localhost@{REALM}",
        "CORRAL_YARN_SERVICE_KEYTAB": f"file://{realm.home}/{{user}}-localhost.keytab",
        "CORRAL_YARN_AGENT_COMMAND": shlex.join(AGENT), "CORRAL_YARN_AGENT_PORT": str(port),
    }  # fmt: skip
    server = OnYarn(tmp_path, yarn, *words, "--yarn-user", CORRAL, env=env)
    server.up()
    try:

        def told() -> list[str] | None:
            items = server.client.series(["node_memory_MemTotal_bytes"])["items"]
            return [name for each in items if (name := each["labels"].get("node", "")).endswith("nm1")] or None

        assert until(told)
        assert len(processes(lambda words: b"node-agent" in words and str(port).encode() in b" ".join(words))) == 1
    finally:
        server.down()
        server.env["CORRAL_YARN_AGENT_COMMAND"] = ""
        server.up()
        try:  # the next server ends them
            until(lambda: True if not services(yarn) else None)
        finally:
            server.down()
