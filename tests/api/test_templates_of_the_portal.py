"""The portal's templates are seen by those that they are for, bounded, and deleted by their owners alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from click.testing import CliRunner

from corral.cli.templates import templates_command
from tests.api.harness import Server
from tests.api.openpai_caller import Pai, signed_in

PIXEL = b"\x89PNG\r\n\x1a\n\x00"
URI = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
BASE = "/api/v3/templates"


@pytest.fixture(scope="module")
def ann(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ann")
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def ben(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ben")
    yield caller
    caller.close()


def item(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "job", "name": name, "description": f"about {name}", "file": "name: a\n", **more}


def names(caller: Pai, query: str = "") -> list[str]:
    return [each["name"] for each in caller.get(f"{BASE}?{query}")["items"]]


def test_a_private_template_is_seen_by_its_owner_alone_in_every_way_to_read_it(ann: Pai, ben: Pai) -> None:
    assert ann.call("POST", BASE, json=item("secretplan", isPublic=False)).status_code == 201
    assert names(ann, "q=secretplan") == ["secretplan"]
    assert names(ben, "q=secretplan") == []
    assert ben.get("/api/v2/template?query=secretplan")["items"] == []
    for path in (f"{BASE}/job/secretplan", f"{BASE}/job/secretplan/picture", "/api/v2/template/job/secretplan"):
        assert ben.call("GET", path).status_code == 404, path
    assert ben.call("DELETE", f"{BASE}/job/secretplan").status_code == 404
    assert ann.get(f"{BASE}/job/secretplan")["mayChange"] is True


def test_a_version_that_was_private_stays_so_when_a_later_one_is_shared(ann: Pai, ben: Pai) -> None:
    first = ann.call("POST", BASE, json=item("opened", isPublic=False)).json()["version"]
    later = ann.call("POST", BASE, json=item("opened", file="name: b\n")).json()["version"]
    assert ann.get(f"{BASE}/job/opened")["versions"] == [later, first]
    assert ben.get(f"{BASE}/job/opened")["versions"] == [later]
    for path in (f"{BASE}/job/opened?version={first}", f"/api/v2/template/job/opened?version={first}"):
        assert ben.call("GET", path).status_code == 404, path
    assert ann.call("DELETE", f"{BASE}/job/opened").status_code == 204


def test_a_picture_is_kept_and_sent_as_an_image_that_runs_nothing(ann: Pai, ben: Pai) -> None:
    pictured = item("pictured", pictures={"a.png": URI}, tags=["vision"])
    assert ann.call("POST", BASE, json=pictured).status_code == 201
    (line,) = [each for each in ben.get(f"{BASE}?q=vision")["items"] if each["name"] == "pictured"]
    assert (line["hasPicture"], line["tags"], line["owner"]) == (True, ["vision"], "ann")
    answer = ben.call("GET", f"{BASE}/job/pictured/picture")
    assert (answer.content, answer.headers["content-type"]) == (PIXEL, "image/png")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert names(ben, "q=ivborw0kggo") == [], "bytes of pictures are no words"
    assert ann.call("GET", f"{BASE}/job/secretplan/picture").status_code == 404


def test_fields_of_another_shape_are_refused_by_one_sentence(ann: Pai) -> None:
    for more in (
        {"pictures": {"a": "data:image/svg+xml;base64,AAAA"}},
        {"pictures": {"a": "https://example.org/a.png"}},
        {"pictures": {str(at): URI for at in range(21)}},
        {"pictures": [URI]},
        {"isPublic": "no"},
        {"groupList": "vision"},
        {"groupList": [1]},
    ):
        answer = ann.call("POST", BASE, json=item("shapes", **more))
        assert answer.status_code == 400, more
        assert answer.json()["code"] == "template"
    assert ann.call("POST", BASE, json=item("shapes", groupList=["strangers"])).status_code == 403
    assert ann.call("POST", BASE, content=b"{").status_code == 400
    assert ann.call("GET", f"{BASE}?whose=nobody").status_code == 400
    assert ann.call("GET", f"{BASE}?page=0").status_code == 422


def test_refusals_say_what_to_do_and_openpais_api_has_its_own_words(ann: Pai) -> None:
    path = "/api/v2/template"
    ann.call("POST", BASE, json=item("words")).raise_for_status()
    for name, called in (("none", "none"), ("words?version=0", "words of version 0")):
        told = ann.call("GET", f"{BASE}/job/{name}").json()["message"]
        assert told == f"There is no template job/{called} that you may see; `corral templates` lists them."
        theirs = ann.call("GET", f"{path}/job/{name}").json()
        assert theirs == {"code": 404, "message": "Failed to find any matched template."}
    told = ann.call("GET", f"{BASE}/song/none").json()["message"]
    assert told == "The type of a template is one of job, dockerimage, script, data, output, not 'song'."
    assert ann.call("GET", f"{path}/song").json()["message"] == "Found illegal type value in the request."
    for odd in ({"type": "job"}, ["job"], "job"):
        told = ann.call("POST", BASE, json=odd).json()["message"]
        assert told == "A template is a mapping with a type and a name, each a text."
        assert ann.call("POST", path, json=odd).json()["message"] == "Failed to parse template content."


@pytest.mark.parametrize("name", [".", "..", " ", " a", "a ", "a/b", "a\tb", "x" * 256])
def test_a_name_that_no_address_can_have_is_refused(ann: Pai, name: str) -> None:
    answer = ann.call("POST", BASE, json=item(name))
    assert (answer.status_code, answer.json()["message"][:24]) == (400, "A template's name has 1 ")


def test_a_name_of_signs_that_addresses_encode_is_found_and_deleted_by_them(ann: Pai) -> None:
    assert ann.call("POST", BASE, json=item("a%2Fb?c#d;é")).status_code == 201
    path = f"{BASE}/job/{quote('a%2Fb?c#d;é', safe='')}"
    assert ann.get(path)["item"]["name"] == "a%2Fb?c#d;é"
    assert ann.call("DELETE", path).status_code == 204


def test_only_the_owner_and_administrators_delete_a_template(server: Server, ann: Pai, ben: Pai) -> None:
    assert ann.call("POST", BASE, json=item("lasting")).status_code == 201
    assert ben.call("DELETE", f"{BASE}/job/lasting").status_code == 403
    assert names(ben, "q=lasting") == ["lasting"]
    assert names(ann, "q=lasting&whose=mine") == ["lasting"]
    assert names(ben, "q=lasting&whose=mine") == []
    assert ann.call("DELETE", f"{BASE}/job/lasting").status_code == 204
    assert names(ann, "q=lasting") == []
    nobody = Pai(server.url)
    assert nobody.call("GET", BASE).status_code == 401
    nobody.close()


def test_the_audit_log_has_who_shared_and_deleted_a_template(server: Server, ann: Pai) -> None:
    version = ann.call("POST", BASE, json=item("audited-template")).json()["version"]
    assert ann.call("DELETE", f"{BASE}/job/audited-template").status_code == 204
    assert ann.call("DELETE", f"{BASE}/job/audited-template").status_code == 404
    root = signed_in(server, "auditor-of-templates", role="admin")
    lines = root.get("/api/v3/audit?resource=template:job/audited-template")["items"]
    assert [(each["actor"], each["action"]) for each in lines] == [
        ("ann", "template.delete"),
        ("ann", "template.share"),
    ]
    assert lines[1]["detail"] == {"version": version}
    root.close()


def test_templates_are_shared_found_printed_and_deleted_by_command(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CORRAL_URL", server.url)
    monkeypatch.setenv("CORRAL_TOKEN", server.token("commander"))
    file = tmp_path / "job.yaml"
    file.write_text("name: commanded\ncommand: echo 1\n")

    def corral(*words: str) -> str:
        done = CliRunner().invoke(templates_command, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    corral("share", str(file), "--about", "first of commander", "--tag", "commanding", "--private")
    file.write_text("name: commanded\ncommand: echo 2\n")
    corral("share", str(file), "--about", "second of commander", "--tag", "commanding")
    corral("share", str(file), "--name", "commanded-too", "--private")
    (line,) = corral("--search", "commanding", "--whose", "mine").splitlines()[1:]
    assert line.split() == ["job", "commanded", "commander", "everybody", "second", "of", "commander"]
    assert corral("file", "commanded") == file.read_text()
    first = json.loads(corral("show", "commanded", "-o", "json"))["versions"][1]
    assert corral("file", "job/commanded", "--version", first) == "name: commanded\ncommand: echo 1\n"
    shown = corral("show", "commanded")
    assert "second of commander" in shown and first in shown
    assert len(json.loads(corral("--whose", "mine", "-o", "json"))) == 2
    assert len(json.loads(corral("--whose", "mine", "--limit", "1", "-o", "json"))) == 1
    corral("rm", "commanded", "commanded-too")
    assert corral("--whose", "mine", "-o", "name") == ""
    file.write_text("command: echo\n")
    for words in (["share", str(file)], ["file", "commanded"], ["share", str(file), "--private", "--group", "a"]):
        assert CliRunner().invoke(templates_command, words).exit_code != 0, words


def test_a_template_of_the_first_marketplace_is_a_job_file_itself(
    server: Server, ann: Pai, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRAL_URL", server.url)
    monkeypatch.setenv("CORRAL_TOKEN", server.token("commander"))
    whole = {"type": "job", "name": "whole", "protocolVersion": "2", "taskRoles": {"worker": {"instances": 1}}}
    assert ann.call("POST", BASE, json=whole).status_code == 201
    assert ann.call("POST", BASE, json={"type": "data", "name": "bare"}).status_code == 201
    printed = CliRunner().invoke(templates_command, ["file", "whole"], catch_exceptions=False).stdout
    assert yaml.safe_load(printed) == whole
    assert CliRunner().invoke(templates_command, ["file", "data/bare"]).exit_code != 0
    for path in ("job/whole", "data/bare"):
        assert ann.call("DELETE", f"{BASE}/{path}").status_code == 204
