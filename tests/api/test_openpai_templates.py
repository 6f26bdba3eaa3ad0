"""Job templates of OpenPAI's marketplace are shared, searched and read with the fields that its pages use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from corral.compat.openpai.service.template_fields import LONGEST_SHOWN
from corral.compat.openpai.service.templates import MOST_BYTES, MOST_VERSIONS_BYTES, PAGE
from corral.compat.openpai.tables.key_values import KeyValues
from tests.api.harness import Server
from tests.api.openpai_caller import Pai, signed_in


def template(name: str, **more: Any) -> dict[str, Any]:
    return {"protocol_version": "v2", "type": "job", "name": name, "description": f"about {name}", **more}


@pytest.fixture(scope="module")
def ann(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ann")
    yield caller
    caller.close()


def shared(caller: Pai, item: Any, status: int = 201) -> Any:
    answer = caller.call("POST", "/api/v2/template", json=item)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_template_is_shared_and_read_back_in_each_of_its_versions(ann: Pai) -> None:
    first = shared(ann, template("mnist", lr=1))
    assert (set(first), first["contributor"]) == ({"type", "name", "version", "contributor"}, "ann")
    second = shared(ann, template("mnist", lr=2), 200)
    assert second["version"] != first["version"]
    assert ann.get("/api/v2/template/job/mnist") == {**template("mnist", lr=2), "version": second["version"]}
    assert ann.get(f"/api/v2/template/job/mnist?version={first['version']}")["lr"] == 1
    assert ann.get("/rest-server/api/v2/template/job/mnist")["lr"] == 2


def test_templates_are_listed_by_type_and_searched_by_words(ann: Pai) -> None:
    for at in range(PAGE + 2):
        shared(ann, template(f"page{at}", type="script"))
    listed = ann.get("/api/v2/template/script")
    assert (listed["totalCount"], listed["pageNo"], listed["pageSize"]) == (PAGE + 2, 1, PAGE)
    assert len(listed["items"]) == PAGE
    assert len(ann.get("/api/v2/template/script?pageno=2")["items"]) == 2
    shared(ann, template("other", description="uses resnet"))
    shared(ann, template("resnet"))
    found = ann.get("/api/v2/template?query=RESNET")
    assert [each["name"] for each in found["items"]] == ["resnet", "other"]
    assert set(found["items"][0]) == {"type", "name", "contributor", "version", "description", "score"}
    assert ann.get("/api/v2/template?query=resnet&type=script")["items"] == []


def test_what_is_no_template_or_not_there_is_refused_in_the_marketplaces_words(server: Server, ann: Pai) -> None:
    for path, status, message in (
        ("/api/v2/template", 400, 'Failed to extract "query" parameter in the request.'),
        ("/api/v2/template?query=a&type=song", 400, "Found illegal type value in the request."),
        ("/api/v2/template/song", 400, "Found illegal type value in the request."),
        ("/api/v2/template/job/nothing", 404, "Failed to find any matched template."),
        ("/api/v2/template/job/mnist?version=0", 404, "Failed to find any matched template."),
    ):
        answer = ann.call("GET", path)
        assert (answer.status_code, answer.json()) == (status, {"code": status, "message": message})
    for item in ({}, [], {"type": "job"}, {"name": "a", "type": 1}):
        assert ann.call("POST", "/api/v2/template", json=item).json()["message"] == "Failed to parse template content."
    assert ann.call("POST", "/api/v2/template", json=template("big", text="x" * MOST_BYTES)).status_code == 400
    assert ann.call("POST", "/api/v2/template", content=b"{").status_code == 400
    nobody = Pai(server.url)
    assert nobody.refused("GET", "/api/v2/template?query=a")[:2] == (401, "UnauthorizedUserError")
    assert nobody.refused("POST", "/api/v2/template", json=template("x"))[:2] == (401, "UnauthorizedUserError")
    nobody.close()


def test_nobody_changes_what_another_shared(server: Server, ann: Pai) -> None:
    shared(ann, template("anns"))
    ben = signed_in(server, "ben")
    assert ben.call("POST", "/api/v2/template", json=template("anns", stolen=True)).status_code == 403
    assert "stolen" not in ben.get("/api/v2/template/job/anns")
    ben.close()


def test_one_account_and_all_together_share_so_many_templates_and_no_more(
    server: Server, ann: Pai, monkeypatch: pytest.MonkeyPatch
) -> None:
    carl = signed_in(server, "carl")
    shared(carl, template("carls"))
    monkeypatch.setattr(server.openpai.templates, "most_templates_of_one", 1)
    assert "at most 1 templates" in shared(carl, template("more"), 409)["message"]
    shared(carl, template("carls", lr=2), 200)
    monkeypatch.undo()
    shared(carl, template("more"))
    monkeypatch.setattr(server.openpai.templates, "most_templates", 2)
    assert "all together 2" in shared(carl, template("third"), 409)["message"]
    shared(ann, template("mnist", lr=7), 200)
    assert carl.refused("GET", "/api/v2/template/job/third")[0] == 404
    carl.close()


def test_the_versions_of_a_template_are_bounded_together_and_the_oldest_go(server: Server, ann: Pai) -> None:
    versions = []
    for at in range(MOST_VERSIONS_BYTES // MOST_BYTES + 3):
        item = template("long", lr=at, text="x" * (MOST_BYTES - 1000))
        versions.append(shared(ann, item, 201 if at == 0 else 200)["version"])
    body = server.call(KeyValues(server.store).key_value("template", "job/long")).body
    assert MOST_VERSIONS_BYTES // 2 < len(body) < MOST_VERSIONS_BYTES + 10_000
    assert ann.call("GET", f"/api/v2/template/job/long?version={versions[0]}").status_code == 404
    assert ann.get(f"/api/v2/template/job/long?version={versions[-2]}")["lr"] == len(versions) - 2
    assert ann.get("/api/v2/template/job/long")["version"] == versions[-1]


def test_lists_and_searches_read_no_template_whole(server: Server, ann: Pai, monkeypatch: pytest.MonkeyPatch) -> None:
    shared(ann, template("light", script="Échelle 50%_done"))

    async def whole(*_: Any) -> None:
        raise AssertionError("a template was read")

    monkeypatch.setattr(KeyValues, "key_values", whole)
    monkeypatch.setattr(KeyValues, "key_value", whole)
    for words in ("échelle", "50%_DONE", "light échelle"):
        found = ann.get(f"/api/v2/template?query={quote(words)}")["items"]
        assert [each["name"] for each in found] == ["light"], words
    for words in ("50_%", "échelle nowhere"):
        assert ann.get(f"/api/v2/template?query={quote(words)}")["items"] == []
    assert ann.get("/api/v2/template/job")["totalCount"] > 0
    many = ann.call("GET", "/api/v2/template", params={"query": " ".join(map(str, range(21)))})
    assert many.status_code == 400
    long = template("wordy", description="y" * 100_000, contributor=["z" * 100_000])
    assert shared(ann, long)["contributor"] == "ann"
    (line,) = ann.get("/api/v2/template?query=wordy")["items"]
    assert (line["contributor"], len(line["description"])) == ("ann", LONGEST_SHOWN)
