"""`corral doctor --engine yarn` says for each thing that is missing what to set."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from corral.engines.kind import DoctorOptions, Finding
from corral.engines.yarn.kind import YarnKind, YarnOptions
from tests.engines.yarn.harness import YarnPlace
from tests.reserved import free_port
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = [pytest.mark.timeout(300)]
READ = DoctorOptions(probe=False)


def examined(yarn: Yarn, options: DoctorOptions = READ, **settings: Any) -> dict[str, Finding]:
    """The findings by name; of several of a name the worst."""
    given = {
        "yarn_resource_managers": yarn.url,
        "yarn_name_nodes": yarn.hdfs.web.replace("webhdfs", "http"),
        **settings,
    }
    found: dict[str, Finding] = {}
    for finding in asyncio.run(YarnKind().doctor(YarnOptions(**given), options)):
        known = found.get(finding.name)
        if known is None or known.state != "bad":
            found[finding.name] = finding
    return found


def bad(found: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.message for name, finding in found.items() if finding.state == "bad"}


def test_a_cluster_that_has_everything_is_good_and_starts_a_container(yarn: Yarn) -> None:
    yarn.hdfs.add_folder(f"/user/{yarn.user}", yarn.user)
    options = [DoctorOptions(probe=True, url=yarn.url), DoctorOptions(probe=True)]
    with ThreadPoolExecutor() as pool:
        found, without_url = pool.map(lambda each: examined(yarn, each), options)
    wrong = {name: each for name, each in found.items() if each.state != "good"}
    assert set(wrong) <= {"container"}, wrong  # the ResourceManager is no Corral: it has no /healthz
    assert "does not reach" in found["container"].message
    assert without_url["container"].state == "good"


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({"yarn_queue": "nowhere"}, "queue", "no queue nowhere"),
        ({"yarn_queues": "vc=gone"}, "queue", "no queue gone"),
        ({"yarn_users": "ada=nobody1"}, "user", "hdfs dfs -mkdir -p /user/nobody1"),
        ({"yarn_node_attribute": "nm.yarn.io/other"}, "node attribute", "yarn.nodemanager.node-attributes.provider"),
        ({"yarn_user": "stranger"}, "HDFS folder", "Permission denied"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_change(yarn: Yarn, settings: Any, name: str, words: str) -> None:
    assert words in bad(examined(yarn, **settings))[name]


def test_a_folder_that_service_masters_of_mapped_users_cannot_write_is_named(yarn: Yarn) -> None:
    yarn.hdfs.add_folder("/user/ada", "ada")
    yarn.hdfs.ask("PUT", yarn.masters_folder, "SETPERMISSION", permission="755")
    try:
        message = bad(examined(yarn, yarn_users="ada=ada"))["service masters"]
    finally:
        yarn.hdfs.ask("PUT", yarn.masters_folder, "SETPERMISSION", permission="1777")
    assert f"hdfs dfs -chmod 1777 {yarn.masters_folder}" in message
    assert examined(yarn, yarn_users="ada=ada")["service masters"].state == "good"


def test_a_resource_type_that_yarn_does_not_count_is_noted(yarn: Yarn) -> None:
    found = examined(yarn, yarn_device_resource="nvidia.com/gpu")["devices"]
    assert (found.state, "resource-types.xml" in found.message) == ("note", True)


def test_a_file_in_the_place_of_a_folder_is_named(yarn: Yarn) -> None:
    yarn.hdfs.write("/taken", b"a file")
    assert "a file is where a folder is needed" in bad(examined(yarn, yarn_folder="/taken"))["HDFS folder"]


def test_a_quota_without_room_is_named(yarn: Yarn) -> None:
    yarn.hdfs.add_folder("/narrow", yarn.user)
    yarn.hdfs.ask("PUT", "/narrow", "SETQUOTA", namespacequota="1")
    assert "raise the quota" in bad(examined(yarn, yarn_folder="/narrow"))["HDFS folder"]


def test_safe_mode_is_named(yarn: Yarn) -> None:
    with in_safe_mode(yarn):
        assert "safe mode" in bad(examined(yarn))["HDFS folder"]


@contextlib.contextmanager
def in_safe_mode(yarn: Yarn) -> Iterator[None]:
    yarn.hdfs.set_safe_mode(True)
    try:
        yield
    finally:
        yarn.hdfs.set_safe_mode(False)


def test_daemons_that_do_not_answer_are_named(yarn: Yarn) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    found = bad(examined(yarn, yarn_resource_managers=nowhere, yarn_name_nodes=nowhere))
    assert all(f"{name} at {nowhere} does not answer" in found[name] for name in ("ResourceManager", "NameNode"))


async def test_the_engine_tells_the_version_that_the_doctor_reads(yarn: Yarn, tmp_path: Path) -> None:
    async with YarnPlace(yarn, tmp_path).open() as opened:
        told = await opened.raw.version()
    info = json.loads(urlopen(f"{yarn.url}/ws/v1/cluster/info", timeout=60).read())["clusterInfo"]
    assert told == info["resourceManagerVersion"] and told.startswith("3.")
