"""A server whose jobs run in the containers of a YARN that asks for Kerberos, as the Hadoop users of their accounts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.endtoend.platform import ROOT
from tests.engines.yarn.served import OnYarn
from tests.testbeds.hadoop.secure_hdfs import CORRAL, SecureHdfs
from tests.testbeds.hadoop.secure_yarn import SecureYarn
from tests.testbeds.kerberos import REALM, Kdc

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(realm: Kdc, cluster: SecureYarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnYarn]:
    """A server that calls the cluster by a keytab; everybody's jobs run as Ada."""
    realm.start()
    words = ["--yarn-principal", f"{CORRAL}@{REALM}", "--yarn-keytab", f"{realm.home}/{CORRAL}.keytab"]
    stage = f"env PYTHONPATH={ROOT} {sys.executable} -m corral.storage stage"
    realm.keytab("ada/localhost")
    services = {
        "CORRAL_YARN_SERVICE_PRINCIPAL": f"{{user}}/localhost@{REALM}",
        "CORRAL_YARN_SERVICE_KEYTAB": f"file://{realm.home}/{{user}}-localhost.keytab",
    }
    env = {**realm.environment, **services, "CORRAL_YARN_STAGE_COMMAND": stage, "CORRAL_LOCALITY_SECONDS": "60"}
    made = OnYarn(tmp_path_factory.mktemp("server"), cluster, *words, "--yarn-users", "*=ada", env=env)
    made.up()
    yield made
    made.down()


def on_yarn(name: str, command: str, **fields: Any) -> dict[str, Any]:
    role = {"resources": {"cpu": "1", "memory": "128Mi", "devices": 1}, "command": command}
    return {"name": name, "framework": "shell", "roles": {"main": role}, "nodes": ["nm1"], **fields}


def test_a_jobs_data_come_from_hdfs_and_go_back_by_the_tokens_of_its_container(
    server: OnYarn, hdfs: SecureHdfs, realm: Kdc
) -> None:
    hdfs.write("/ada/digits/a.txt", b"7\n")
    script = "test ! -e $HADOOP_TOKEN_FILE_LOCATION && exit 9; mkdir model && tr 7 8 <data/a.txt >model/weights"
    job = server.ran(
        on_yarn(
            "staged",
            script,
            inputs=[{"uri": f"{hdfs.web}/ada/digits", "path": "data"}],
            outputs=[{"path": "model", "uri": f"{hdfs.web}/ada/model"}],
        )
    )
    assert job["state"] == "succeeded", server.log(job)
    assert hdfs.owner("/ada/model/weights") == "ada"
    assert hdfs.read("/ada/model/weights") == b"8\n"
    assert "delegation=" not in server.log(job)
    assert realm.issued("ada/localhost") > 0, "the service's master has tickets of its own"


def test_a_job_that_may_not_read_its_input_fails_with_hadoops_words(server: OnYarn, hdfs: SecureHdfs) -> None:
    job = server.ran(on_yarn("closed", "true", inputs=[{"uri": f"{hdfs.web}/closed/secret", "path": "data"}]))
    assert job["state"] == "failed"
    assert "Permission denied: user=ada" in server.log(job)
