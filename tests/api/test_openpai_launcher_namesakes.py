"""A FrameworkLauncher namespace belongs to an account, not to a later account with the same name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import update

from corral.store import tables
from tests.api.harness import Server
from tests.api.openpai_caller import Pai, signed_in
from tests.api.test_openpai_launcher import changed, framework, job_of, put, refused


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "boss", role="admin")
    yield caller
    caller.close()


def made_again(server: Server, name: str) -> Pai:
    """A new account with the name of a deleted one, whose jobs have ended."""
    ended = update(tables.jobs).where(tables.jobs.c.user == name).values(live=False, phase="stopped")
    server.call(server.store.change(ended))
    server.call(server.store.remove_user(name))
    return signed_in(server, name)


def test_a_namesake_writes_no_framework_of_the_one_before_and_an_administrator_does(server: Server, admin: Pai) -> None:
    zoe = signed_in(server, "zoe")
    for name in ("zoe~old", "zoe~gone", "plain-of-zoe"):
        put(zoe, name, framework())
    again = made_again(server, "zoe")
    for name in ("zoe~old", "zoe~gone", "plain-of-zoe"):
        assert refused(again, "PUT", f"/v1/Frameworks/{name}", json=framework(2))[0] == 403
        assert refused(again, "DELETE", f"/v1/Frameworks/{name}")[0] == 403
    assert "was deleted" in refused(again, "PUT", "/v1/Frameworks/zoe~old", json=framework(2))[1]
    put(again, "zoe~new", framework())
    job = job_of(server, again, "zoe~new")
    assert server.call(server.store.find_job(job)).user == "zoe"
    assert admin.call("DELETE", "/v1/Frameworks/zoe~gone").status_code == 202
    put(admin, "zoe~old", framework(2))
    assert server.call(server.store.find_job(job_of(server, admin, "zoe~old"))).user == "boss"
    third = made_again(server, "zoe")
    assert refused(third, "PUT", "/v1/Frameworks/zoe~new", json=framework(2))[0] == 403


def test_who_was_listed_for_a_namespace_is_not_listed_for_a_namesakes_and_no_namesake_of_theirs_is(
    server: Server, admin: Pai
) -> None:
    yan, xia = signed_in(server, "yan"), signed_in(server, "xia")
    listed = {"namespaceAcls": {"yan": {"users": [{"name": "xia"}]}}}
    changed(admin, "LauncherRequest/AclConfiguration", listed, 200)
    put(yan, "yan~a", framework())
    put(xia, "yan~b", framework())
    xia_again = made_again(server, "xia")
    assert refused(xia_again, "PUT", "/v1/Frameworks/yan~a", json=framework())[0] == 403
    changed(admin, "LauncherRequest/AclConfiguration", listed, 200)
    put(xia_again, "yan~a", framework())
    yan_again = made_again(server, "yan")
    put(yan_again, "yan~c", framework())
    for name in ("yan~a", "yan~b", "yan~c"):
        assert refused(xia_again, "PUT", f"/v1/Frameworks/{name}", json=framework(2))[0] == 403
    assert admin.get("/v1/LauncherRequest")["aclConfiguration"] == listed
