"""A ResourceManager and a NameNode that ask for Kerberos: what the engine and its doctor ask them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from corral.engines.kind import DoctorOptions, Finding
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.kind import YarnKind, YarnOptions
from corral.kernel.errors import Forbidden, NotFound, Unavailable
from tests.testbeds.hadoop.secure_hdfs import CORRAL
from tests.testbeds.hadoop.secure_yarn import SecureYarn
from tests.testbeds.kerberos import REALM, Kdc

pytestmark = pytest.mark.timeout(300)
PRINCIPAL = f"{CORRAL}@{REALM}"


def examined(yarn: SecureYarn, *, probe: bool = False, **settings: Any) -> dict[str, list[Finding]]:
    where = {"yarn_resource_managers": yarn.url, "yarn_name_nodes": yarn.secure_hdfs.url}
    found: dict[str, list[Finding]] = {}
    for each in asyncio.run(YarnKind().doctor(YarnOptions(**where, **settings), DoctorOptions(probe=probe))):
        found.setdefault(each.name, []).append(each)
    return found


def test_all_that_the_doctor_asks_is_answered_with_a_keytab(yarn: SecureYarn, kdc: Kdc) -> None:
    by_keytab = {"yarn_principal": PRINCIPAL, "yarn_keytab": f"{kdc.home}/{CORRAL}.keytab"}
    found = examined(yarn, probe=True, **by_keytab, yarn_users="ada=ada")
    assert not [each for findings in found.values() for each in findings if each.state == "bad"]
    assert found["container"][0].state == "good"
    assert f"tickets of {PRINCIPAL}" in found["Kerberos"][0].message
    assert {each.message for each in found["user"]} == {"ada has /user/ada", "corral has /user/corral"}
    assert all(found[name][0].state == "good" for name in ("ResourceManager", "service API", "HDFS folder", "queue"))


def test_without_a_ticket_the_settings_are_named(yarn: SecureYarn) -> None:
    found = examined(yarn)
    for name in ("ResourceManager", "NameNode"):
        assert found[name][0].state == "bad" and "set yarn_principal and yarn_keytab" in found[name][0].message


async def test_services_are_asked_for_as_the_user_of_a_job(yarn: SecureYarn, kdc: Kdc) -> None:
    rest = HadoopRest("ResourceManager", [yarn.url], CORRAL, kdc.identity(CORRAL))
    try:
        with pytest.raises(NotFound):
            await rest.ask("GET", "/app/v1/services/none", user="ada")
    finally:
        await rest.close()
    ada = HadoopRest("ResourceManager", [yarn.url], "ada", kdc.identity("ada"))
    try:
        with pytest.raises(Forbidden, match=r"allow it by hadoop\.proxyuser"):
            await ada.ask("GET", "/ws/v1/cluster/apps", user=CORRAL)
    finally:
        await ada.close()


async def test_a_resource_manager_that_was_restarted_gets_a_new_ticket(yarn: SecureYarn, kdc: Kdc) -> None:
    rest = HadoopRest("ResourceManager", [yarn.url], CORRAL, kdc.identity(CORRAL))
    try:
        before = await rest.ask("GET", "/ws/v1/cluster/info")
        yarn.resource_manager.kill()
        try:
            with pytest.raises(Unavailable, match="does not answer"):
                await rest.ask("GET", "/ws/v1/cluster/info")
        finally:
            await asyncio.to_thread(yarn.start)  # it signs its cookies with another secret now
        after = await rest.ask("GET", "/ws/v1/cluster/info")
    finally:
        await rest.close()
    assert after["clusterInfo"]["startedOn"] > before["clusterInfo"]["startedOn"]
