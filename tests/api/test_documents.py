"""Configuration over REST: writes need the revision that the caller has read; errors have the common format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from corral.client import Client
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.service.control_client import NoControl
from tests.api.harness import Server


class AgreeingControl(NoControl):
    """A control that finds no broken guarantee."""

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        return []


@pytest.fixture(autouse=True)
def control(server: Server) -> None:
    server.service.context.control = AgreeingControl()


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {server.token('root')}"}
    with httpx2.Client(base_url=f"{server.url}/api/v3", headers=headers, trust_env=False) as client:
        yield client


def _queue(name: str, devices: int = 4) -> str:
    return f"kind: Queue\nname: {name}\ndeserved: {{devices: {devices}}}\n"


def _actions(applied: dict[str, Any]) -> list[tuple[str, int]]:
    return [(each["action"], each["revision"]) for each in applied["documents"]]


def test_documents_are_applied_read_compared_rolled_back_and_deleted(root: Client, alice: Client) -> None:
    assert _actions(root.apply(_queue("a") + "---\n" + _queue("b"), note="first")) == [("created", 1), ("created", 1)]
    assert _actions(root.apply(_queue("a", 5))) == [("changed", 2)]
    assert {each["name"] for each in alice.documents(kind="queue")["items"]} >= {"a", "b"}
    shown = alice.configuration("queue", "a")
    assert shown["revision"] == 2 and shown["text"].startswith(
        "apiVersion: corral.dev/v1alpha1\nkind: Queue\nname: a\n"
    )
    assert alice.configuration("queue", "a", revision=1)["note"] == "first"
    assert "-  devices: 4\n+  devices: 5\n" in alice.configuration_diff("queue", "a")["diff"]
    assert alice.configuration_diff("queue", "a", before=0, after=1)["diff"].startswith("--- nothing")
    assert alice.diff(_queue("a", 5))["documents"][0]["diff"] == ""
    assert _actions(root.roll_back("queue", "a", 1)) == [("changed", 3)]
    assert [each["revision"] for each in alice.configuration_history("queue", "a")["items"]] == [3, 2, 1]
    assert "a" not in {each["name"] for each in alice.documents(kind="queue", deleted=True)["items"]}
    assert _actions(root.delete_configuration("queue", "a")) == [("deleted", 4)]
    gone = alice.documents(kind="queue", deleted=True)["items"]
    assert ("a", 4, True) in [(each["name"], each["revision"], each["deleted"]) for each in gone]
    with pytest.raises(NotFound):
        alice.configuration("queue", "a")


def test_only_administrators_change_them(root: Client, alice: Client) -> None:
    root.apply(_queue("kept"))
    for change in (
        lambda: alice.apply(_queue("kept", 9)),
        lambda: alice.put_configuration("queue", "kept", _queue("kept", 9)),
        lambda: alice.roll_back("queue", "kept", 1),
        lambda: alice.delete_configuration("queue", "kept"),
    ):
        with pytest.raises(Forbidden, match="administrators-only"):
            change()
    assert root.configuration("queue", "kept")["revision"] == 1


def test_the_revision_is_the_entity_tag_that_guards_a_change(http: httpx2.Client) -> None:
    made = http.put("/documents/queue/guarded", content=_queue("guarded"), headers={"If-None-Match": "*"})
    assert made.status_code == 200 and made.headers["etag"] == '"1"'
    again = http.put("/documents/queue/guarded", content=_queue("guarded", 5), headers={"If-None-Match": "*"})
    assert (again.status_code, again.json()["code"]) == (409, "revision-changed")
    seen = http.get("/documents/queue/guarded").headers["etag"]
    changed = http.put("/documents/queue/guarded", content=_queue("guarded", 6), headers={"If-Match": seen})
    assert changed.headers["etag"] == '"2"'
    late = http.delete("/documents/queue/guarded", headers={"If-Match": seen})
    assert (late.status_code, late.json()["code"], late.json()["revision"]) == (409, "revision-changed", 2)
    for headers in ({"If-Match": "soon"}, {"If-None-Match": '"1"'}, {"If-Match": "1", "If-None-Match": "*"}):
        refused = http.put("/documents/queue/guarded", content=_queue("guarded"), headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid-guard")


def test_a_file_of_several_documents_is_applied_only_at_the_revisions_that_were_read(root: Client) -> None:
    both = _queue("left") + "---\n" + _queue("right")
    root.apply(both, revisions={"Queue/left": 0, "queue/right": 0})
    root.apply(_queue("right", 5))
    moved = _queue("left", 3) + "---\n" + _queue("right", 6)
    with pytest.raises(Conflict) as late:
        root.apply(moved, revisions={"Queue/left": 1, "Queue/right": 1})
    assert (late.value.code, late.value.details["revision"]) == ("revision-changed", 2)
    assert root.configuration("queue", "left")["revision"] == 1, "all or nothing"
    assert _actions(root.apply(moved, revisions={"Queue/left": 1, "Queue/right": 2})) == [
        ("changed", 2),
        ("changed", 3),
    ]
    assert _actions(root.apply(both, revisions={"Queue/left": 2})) == [("changed", 3), ("changed", 4)]
    with pytest.raises(InvalidInput, match="does not hold Queue/other"):
        root.apply(both, revisions={"Queue/other": 1})


def test_a_revision_that_is_none_is_refused(http: httpx2.Client) -> None:
    for said in (
        "Queue/a",
        "Queue/a:",
        "Queue/a:-1",
        "Queue/a:1:2",
        "Queue/a:9999999999",
        ":1",
        "a:1",
        "Queue/\u00e4:1",
    ):
        refused = http.post("/documents", params={"revision": said}, content=_queue("a"))
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid-guard"), said
    unknown = http.post("/documents", params={"revision": "Kue/a:1"}, content=_queue("a"))
    assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown-kind")


def test_a_dry_run_answers_what_would_be_and_has_no_entity_tag(http: httpx2.Client) -> None:
    tried = http.put("/documents/queue/tried?dryRun=true", content=_queue("tried"))
    assert tried.json()["dryRun"] and _actions(tried.json()) == [("created", 0)] and "etag" not in tried.headers
    assert http.get("/documents/queue/tried").status_code == 404


def test_a_refusal_has_the_problems_or_the_findings(root: Client) -> None:
    with pytest.raises(InvalidInput) as bad:
        root.apply("kind: Queue\nname: x\nwieght: 2\n")
    assert bad.value.details["problems"][0]["line"] == 3  # type: ignore[index]
    cluster = "kind: Cluster\nnode: {devices: 4}\nnodes: [node1]\n"
    with pytest.raises(Conflict) as broken:
        root.apply(f"{cluster}---\n{_queue('greedy', 1000)}")
    assert broken.value.code == "guarantee-broken"
    assert broken.value.details["findings"][0]["queue"] == "greedy"  # type: ignore[index]
    with pytest.raises(InvalidInput, match='did you mean "Queue"'):
        root.documents(kind="quueue")
