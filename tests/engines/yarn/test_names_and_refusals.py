"""What is parsed at the door: the settings of the engine, the list of nodes, and Hadoop's refusals."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.inventory import inventory_of, nodes_of
from corral.engines.yarn.kind import YarnKind, YarnOptions, settings_of
from corral.engines.yarn.orders import check_resources
from corral.engines.yarn.service_spec import SlotShape, service_of
from corral.engines.yarn.settings import parse_names
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound, Unauthenticated, Unavailable

WHERE = {"yarn_resource_managers": "http://rm:8088", "yarn_name_nodes": "http://nn1:9870,http://nn2:9870"}


def test_accounts_are_mapped_by_the_first_pattern_that_matches() -> None:
    names = parse_names("yarn_users", "ada=ada_l, team-*=team, *=*", "")
    assert [names.of(name) for name in ("ada", "team-3", "bob")] == ["ada_l", "team", "bob"]
    assert parse_names("yarn_users", "ada=ada_l", "").of("bob") == ""


def test_an_account_that_no_hadoop_user_can_be_called_like_is_refused() -> None:
    with pytest.raises(InvalidInput, match="map it with a pair of its own"):
        parse_names("yarn_users", "*=*", "").of("../ada")


@pytest.mark.parametrize("text", ["ada", "=x", "ada=", "ada=a/b", "ada=a&doas=hdfs", "ada=-x"])
def test_a_mapping_that_cannot_be_one_is_refused_with_its_setting(text: str) -> None:
    with pytest.raises(InvalidInput, match="yarn_users has"):
        YarnKind().check(YarnOptions(**WHERE, yarn_users=text))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"yarn_resource_managers": ""}, "--yarn-resource-managers http://HOST:8088"),
        ({"yarn_name_nodes": ""}, "--yarn-name-nodes http://HOST:9870"),
        ({"yarn_name_nodes": "hdfs://nn:8020"}, 'yarn_name_nodes has "hdfs://nn:8020"; write http://HOST:9870'),
        ({"yarn_resource_managers": "http://rm:8088/path?x"}, "write http://HOST:8088"),
        ({"yarn_principal": "corral"}, 'yarn_principal has "corral"; write NAME@REALM or NAME/HOST@REALM'),
        ({"yarn_principal": "a b@REALM"}, 'yarn_principal has "a b@REALM"'),
        (
            {"yarn_service_principal": "{user}/_HOST@R"},
            "yarn_service_principal and yarn_service_keytab belong together",
        ),
        ({"yarn_service_principal": "{user}@R", "yarn_service_keytab": "file:///{user}"}, "as YARN requires a host"),
        ({"yarn_service_principal": "a/h@R", "yarn_service_keytab": "/k"}, "write file:///FOLDER/{user}.keytab"),
        ({"yarn_keytab": "/etc/corral.keytab"}, "yarn_keytab is the absolute path of the keytab of yarn_principal"),
        ({"yarn_principal": "c@R", "yarn_keytab": "corral.keytab"}, "yarn_keytab is the absolute path"),
        ({"yarn_agent_command": "corral 'node-agent"}, "yarn_agent_command is no command: no closing quotation."),
        ({"yarn_stage_command": 'a "b'}, "yarn_stage_command is no command: no closing quotation."),
    ],
)
def test_the_addresses_of_the_cluster_are_asked_for(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        YarnKind().check(YarnOptions(**{**WHERE, **given}))
    assert said in error.value.message


def test_a_service_has_the_principal_of_its_jobs_user_where_one_is_configured() -> None:
    by_keytab = {"yarn_service_principal": "{user}/_HOST@R", "yarn_service_keytab": "hdfs:///user/{user}/{user}.keytab"}
    settings = settings_of(YarnOptions(**WHERE, **by_keytab), server="s", url="http://here")
    expected = {"principal_name": "ada/_HOST@R", "keytab": "hdfs:///user/ada/ada.keytab"}
    assert service_of(settings, "s", "default", {}, {}, user="ada")["kerberos_principal"] == expected
    without = settings_of(YarnOptions(**WHERE), server="s", url="http://here")
    assert "kerberos_principal" not in service_of(without, "s", "default", {}, {}, user="ada")


def test_a_node_that_a_container_needs_is_never_given_up_by_the_services_master() -> None:
    settings = settings_of(YarnOptions(**WHERE), server="s", url="http://here")
    shapes = {"a-n0": (SlotShape("a", "nm1", 1000, 2**27, 0), 1), "a-n1": (SlotShape("a", "", 1000, 2**27, 0), 1)}
    pinned, free = service_of(settings, "s", "default", shapes, {})["components"]
    assert pinned["configuration"]["properties"] == {"yarn.service.node-blacklist.threshold": "1000000"}
    assert "configuration" not in free, "where YARN chooses the node, it may choose another one"


def test_corral_is_the_hadoop_user_of_its_principal_unless_one_is_named() -> None:
    by_principal = {"yarn_principal": "corral/host.example@EXAMPLE.ORG", "yarn_keytab": "/etc/corral.keytab"}
    found = settings_of(YarnOptions(**WHERE, **by_principal), server="s", url="http://here")
    assert found.user == "corral" and found.identity[:2] == tuple(by_principal.values())
    named = settings_of(YarnOptions(**WHERE, **by_principal, yarn_user="other"), server="s", url="http://here")
    assert named.user == "other"


def test_a_resource_that_no_node_counts_is_refused_by_its_name_once_nodes_are_known() -> None:
    settings = settings_of(YarnOptions(**WHERE, yarn_device_resource="nothing.com/gpu"), server="s", url="http://here")
    shape = SlotShape("main", "nm1", 1000, 2**27, 2)
    check_resources(shape, frozenset(), settings)
    check_resources(shape, frozenset({"memory-mb", "vcores", "nothing.com/gpu"}), settings)
    check_resources(SlotShape("main", "nm1", 1000, 2**27, 0), frozenset({"vcores"}), settings)
    with pytest.raises(InvalidInput, match=r"No node of YARN counts nothing\.com/gpu: declare it"):
        check_resources(shape, frozenset({"memory-mb", "vcores", "yarn.io/gpu"}), settings)


def test_a_token_is_of_one_kind_name_and_server() -> None:
    tokens, others = SlotTokens(b"a" * 32), SlotTokens(b"b" * 32)
    token = tokens.of_slot("job/container_1")
    assert tokens.slot(token) == "job/container_1"
    assert tokens.owner(token) == "slot job/container_1"
    for check, wrong in (
        (tokens.service, token),
        (others.slot, token),
        (tokens.slot, token.replace("container_1", "container_2")),
        (tokens.slot, token.replace("slot.", "service.")),
        (tokens.owner, ""),
        (tokens.owner, "é" * 50),
        (tokens.owner, "slot." + "x" * 10_000),
    ):
        with pytest.raises(Unauthenticated):
            check(wrong)


def node(name: str, *, used_gpus: int, used_mb: int = 0) -> dict[str, Any]:
    def amounts(mb: int, gpus: int) -> dict[str, Any]:
        told = [
            {"name": "memory-mb", "value": mb},
            {"name": "vcores", "value": 8},
            {"name": "yarn.io/gpu", "value": gpus},
        ]
        return {"resourceInformations": {"resourceInformation": told}}

    attribute = {"name": "corral-node", "prefix": "nm.yarn.io", "value": name}
    return {
        "id": f"{name}:1",
        "state": "RUNNING",
        "nodeHostName": f"host-{name}",
        "totalResource": amounts(4096, 4),
        "usedResource": amounts(used_mb, used_gpus),
        "nodeAttributesInfo": {"nodeAttributeInfo": [attribute]},
    }


def test_what_other_applications_use_is_subtracted_and_no_device_of_a_task_here_is_taken_for_theirs() -> None:
    settings = settings_of(YarnOptions(**WHERE), "s", "")
    nodes = nodes_of({"nodes": {"node": [node("nm1", used_gpus=2, used_mb=1024)]}})
    ours = {"nm1": {"yarn.io/gpu": 1, "memory-mb": 256}}
    found = inventory_of(nodes, settings, ours, {"nm1": {3}}).nodes[0]
    assert [device.healthy for device in found.devices] == [True, True, False, True]
    assert found.memory_bytes == found.shm_bytes == (4096 - 768) * 2**20


@pytest.mark.parametrize("answer", [{}, {"nodes": 3}, {"nodes": {"node": [{"id": 1}]}}, []])
def test_a_list_of_nodes_that_is_none_is_told_as_such(answer: Any) -> None:
    with pytest.raises(Unavailable):
        nodes_of(answer)


class Refusing(BaseHTTPRequestHandler):
    """Answers every call in the same way."""

    status, content, kind = 200, b"", "application/json"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def daemon() -> Iterator[tuple[str, type[Refusing]]]:
    handler = type("Handler", (Refusing,), {})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()
        thread.join()


def ask(url: str, path: str) -> CorralError:
    """The refusal of a call."""

    async def call() -> None:
        rest = HadoopRest("NameNode", [url], "me")
        try:
            await rest.ask("GET", path)
        finally:
            await rest.close()

    with pytest.raises(CorralError) as error:
        asyncio.run(call())
    return error.value


def remote(exception: str, message: str) -> bytes:
    return json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()


@pytest.mark.parametrize(
    ("status", "content", "path", "kind", "code"),
    [
        (404, b"<html>not found</html>", "/app/v1/services", Unavailable, "hadoop-no-service-api"),
        (404, b'{"diagnostics": "Service a is not found"}', "/app/v1/services/a", NotFound, "hadoop-refused"),
        (403, remote("SafeModeException", "Name node is in safe mode."), "/x", Unavailable, "hadoop-safe-mode"),
        (403, remote("AccessControlException", "Permission denied: user=x"), "/x", Forbidden, "hadoop-permission"),
        (403, remote("NSQuotaExceededException", "The quota is exceeded"), "/x", Conflict, "hadoop-quota"),
        (
            403,
            remote("StandbyException", "It is in state standby"),
            "/x",
            Unavailable,
            "hadoop-standby",
        ),
        (500, b"no json", "/x", Unavailable, "hadoop-refused"),
        (200, b"no json", "/x", Unavailable, "hadoop-answer"),
    ],
)
def test_each_refusal_of_hadoop_has_its_kind(
    daemon: tuple[str, type[Refusing]], status: int, content: bytes, path: str, kind: type[CorralError], code: str
) -> None:
    url, handler = daemon
    handler.status, handler.content = status, content
    refusal = ask(url, path)
    assert (type(refusal), refusal.code) == (kind, code), refusal.message
