"""Users and groups are created, changed and deleted through OpenPAI's API as its clients expect."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from corral.model.accounts import QueueRecord
from tests.api.harness import Server
from tests.api.openpai_caller import PASSWORD, Pai, login, signed_in

USERS = "/api/v2/users"
GROUPS = "/api/v2/groups"
ANYBODY = {
    "grouplist": ["default"],
    "email": "",
    "extension": {},
    "admin": False,
    "virtualCluster": ["default"],
    "storageConfig": [],
}


@pytest.fixture(scope="module", autouse=True)
def clusters(server: Server) -> None:
    """Two virtual clusters beside the default one, for groups to grant."""
    server.call(server.store.put_queues([QueueRecord(name) for name in ("default", "vc1", "vc2")]))
    for name in ("vc1", "vc2"):
        signed_in(server, "root").post(
            GROUPS, {"groupname": name, "extension": {"acls": {"admin": False, "virtualClusters": [name]}}}
        )


@pytest.fixture(scope="module")
def root(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "root")
    yield caller
    caller.close()


@pytest.fixture
def user(server: Server, root: Pai, request: pytest.FixtureRequest) -> str:
    """An account of this test's own, named after it."""
    name = request.node.name.partition("[")[0].removeprefix("test_")[:63]
    assert root.post(USERS, {"username": name, "password": PASSWORD}) == "User is created successfully"
    return str(name)


def signed(server: Server, name: str, password: str = PASSWORD) -> Pai:
    return Pai(server.url, login(server, name, password)["token"])


def test_an_account_is_made_as_asked(server: Server, root: Pai) -> None:
    asked = {
        "username": "Made_by-OpenPAI.1", "password": "secret", "email": "made@example.com", "admin": True,
        "virtualCluster": ["vc1"], "extension": {"sshKeys": [{"title": "mine"}]},
    }  # fmt: skip
    assert root.post(USERS, asked) == "User is created successfully"
    shown = root.get(f"{USERS}/Made_by-OpenPAI.1")
    assert shown == {
        "username": "Made_by-OpenPAI.1", "grouplist": ["default", "vc1", "admingroup"], "email": "made@example.com",
        "extension": {"sshKeys": [{"title": "mine"}]}, "admin": True, "virtualCluster": ["default", "vc1", "vc2"],
        "storageConfig": [],
    }  # fmt: skip
    assert shown in root.get(USERS)
    assert login(server, "Made_by-OpenPAI.1", "secret")["admin"] is True
    assert root.get("/api/v1/user/Made_by-OpenPAI.1") == shown


def test_a_name_is_taken_once(root: Pai, user: str) -> None:
    refused = root.refused("POST", USERS, json={"username": user, "password": PASSWORD})
    assert refused == (409, "ConflictUserError", f"User name {user} already exists.")


def test_of_several_at_once_one_gets_the_name(root: Pai) -> None:
    asked = {"username": "wanted", "password": PASSWORD}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: root.call("POST", USERS, json=asked), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    told = {answer.json()["message"] for answer in answers if answer.status_code == 409}
    assert told == {"User name wanted already exists."}


@pytest.mark.parametrize(
    "change",
    [
        {"username": ""},
        {"username": "a b"},
        {"username": "a/b"},
        {"username": "é"},
        {"username": ".."},
        {"username": "x" * 127},
        {"username": None},
        {"password": "short"},
        {"password": None},
        {"password": 7},
        {"email": "nobody"},
        {"admin": "perhaps"},
        {"virtualCluster": "vc1"},
        {"extension": []},
        {"extension": {"large": "x" * 300_000}},
    ],
)
def test_an_account_out_of_bounds_is_refused(root: Pai, change: dict[str, object]) -> None:
    asked = {"username": "never_made", "password": PASSWORD, **change}
    status, name, message = root.refused("POST", USERS, json={k: v for k, v in asked.items() if v is not None})
    assert (status, name) == (400, "InvalidParametersError") and message.startswith("Invalid request parameters. ")
    assert root.refused("GET", f"{USERS}/never_made")[0] == 404


def test_names_at_their_limit_are_taken(root: Pai) -> None:
    for name in ("x" * 126, "0", "_.-", "-"):
        assert root.post(USERS, {"username": name, "password": "123456"})
        assert root.get(f"{USERS}/{name}")["username"] == name


def test_an_unknown_virtual_cluster_is_refused(root: Pai, user: str) -> None:
    refused = root.refused("PUT", f"{USERS}/{user}/virtualcluster", json={"virtualCluster": ["vc1", "vc9"]})
    assert refused == (400, "NoVirtualClusterError", "Virtual cluster vc9 is not found.")
    assert root.get(f"{USERS}/{user}")["virtualCluster"] == ["default"]


def test_who_is_not_there_is_not_found(root: Pai) -> None:
    body = {"email": "", "groupname": "vc1", "grouplist": [], "virtualCluster": [], "admin": True, "extension": {}}
    calls = [
        ("GET", ""), ("DELETE", ""), ("PUT", "/group"), ("DELETE", "/group"), ("PUT", "/grouplist"), ("PUT", "/extension"),
        ("PUT", "/virtualcluster"), ("PUT", "/email"), ("PUT", "/admin"),
    ]  # fmt: skip
    for method, path in calls:
        refused = root.refused(method, f"{USERS}/nobody{path}", json=body)
        assert refused == (404, "NoUserError", "User nobody is not found."), path
    update = {"data": {"username": "nobody", "email": ""}, "patch": True}
    assert root.refused("PUT", USERS, json=update)[:2] == (404, "NoUserError")


def test_a_patch_changes_what_it_names(server: Server, root: Pai, user: str) -> None:
    message = root.put(USERS, {"data": {"username": user, "email": "a@b.c", "extension": {"a": 1}}, "patch": True})
    assert message == f"update user {user} successfully."
    root.put(USERS, {"data": {"username": user, "extension": {"b": 2}}, "patch": True})
    assert root.get(f"{USERS}/{user}") == ANYBODY | {"username": user, "email": "a@b.c", "extension": {"a": 1, "b": 2}}


def test_an_update_that_is_no_patch_needs_everything(server: Server, root: Pai, user: str) -> None:
    data = {"username": user, "email": "", "virtualCluster": ["vc2"], "admin": False, "extension": {"only": 1}}
    status, name, message = root.refused("PUT", USERS, json={"data": data})
    assert (status, name) == (400, "InvalidParametersError") and "password" in message
    root.put(USERS, {"data": data | {"password": "another"}, "patch": False})
    assert root.get(f"{USERS}/{user}") == ANYBODY | {
        "username": user,
        "grouplist": ["default", "vc2"],
        "virtualCluster": ["default", "vc2"],
        "extension": {"only": 1},
    }
    assert login(server, user, "another")


def test_a_new_password_ends_the_sessions_and_not_the_programs(server: Server, root: Pai, user: str) -> None:
    caller = signed(server, user)
    program = Pai(server.url, caller.call("POST", "/api/v2/tokens/application").json()["token"])
    wrong = {"data": {"username": user, "newPassword": "another", "oldPassword": "guess!"}, "patch": True}
    refused = caller.refused("PUT", f"{USERS}/me", json=wrong)
    assert refused == (403, "ForbiddenUserError", "Pls input the correct password.")
    without = {"data": {"username": user, "newPassword": "another"}, "patch": True}
    assert caller.refused("PUT", f"{USERS}/me", json=without) == refused
    right = {"data": {"username": user, "newPassword": "another", "oldPassword": PASSWORD}, "patch": True}
    assert caller.put(f"{USERS}/me", right) == f"update user {user} successfully."
    assert caller.refused("GET", USERS)[0] == 401
    assert program.get(f"{USERS}/{user}")["username"] == user
    caller = signed(server, user, "another")
    assert caller.refused("PUT", f"{USERS}/{user}/password", json={"newPassword": PASSWORD}) == refused
    caller.put(f"{USERS}/{user}/password", {"newPassword": PASSWORD, "oldPassword": "another"})
    root.put(f"{USERS}/{user}/password", {"newPassword": "by root"})
    assert login(server, user, "by root")


def test_people_change_their_own_address_and_extension_and_nobody_elses(server: Server, root: Pai, user: str) -> None:
    caller = signed(server, user)
    caller.put(f"{USERS}/me", {"data": {"username": user, "email": "me@example.com"}, "patch": True})
    caller.put(f"{USERS}/{user}/email", {"email": "me@example.org"})
    caller.put(f"{USERS}/{user}/extension", {"extension": {"jobSSH": True}})
    caller.put(f"{USERS}/{user}/extension", {"extension": {"sshKeys": []}})
    mine = caller.get(f"{USERS}/{user}")
    assert (mine["email"], mine["extension"]) == ("me@example.org", {"jobSSH": True, "sshKeys": []})
    missing = caller.refused("PUT", f"{USERS}/me", json={"data": {"username": user, "email": ""}})
    assert missing[:2] == (400, "InvalidParametersError") and "newPassword" in missing[2]
    password, others = "Pls input the correct password.", "Can't update other user's data"
    for path, body, words in (
        ("me", {"data": {"username": "root", "email": ""}, "patch": True}, others),
        ("root/email", {"email": ""}, password),
        ("root/extension", {"extension": {}}, "Non-admin is not allow to do this operation."),
        ("root/password", {"newPassword": "another", "oldPassword": PASSWORD}, password),
    ):
        assert caller.refused("PUT", f"{USERS}/{path}", json=body) == (403, "ForbiddenUserError", words)
    assert root.get(f"{USERS}/root")["email"] == ""


def test_others_see_neither_address_nor_extension(server: Server, root: Pai, user: str) -> None:
    root.put(USERS, {"data": {"username": user, "email": "a@b.c", "extension": {"secret": 1}}, "patch": True})
    other = signed_in(server, "onlooker")
    assert other.get(f"{USERS}/{user}") == ANYBODY | {"username": user}
    assert [each for each in other.get(USERS) if each["username"] == user] == [ANYBODY | {"username": user}]


def test_administrators_are_not_removed_before_they_are_none(server: Server, root: Pai, user: str) -> None:
    assert root.put(f"{USERS}/{user}/admin", {"admin": True})
    assert root.get(f"{USERS}/{user}")["grouplist"] == ["default", "admingroup"]
    refused = root.refused("DELETE", f"{USERS}/{user}")
    assert refused == (403, "RemoveAdminError", f"Admin {user} is not allowed to remove.")
    assert root.put(f"{USERS}/{user}/admin", {"admin": False})
    caller = signed(server, user)
    assert root.delete(f"{USERS}/{user}", status=200) == "user is removed successfully"
    assert root.refused("GET", f"{USERS}/{user}") == (404, "NoUserError", f"User {user} is not found.")
    assert caller.refused("GET", USERS)[0] == 401


def test_the_last_administrator_stays_one(root: Pai) -> None:
    for name in root.get(USERS):
        if name["admin"] and name["username"] != "root":
            root.put(f"{USERS}/{name['username']}/admin", {"admin": False})
    assert root.refused("PUT", f"{USERS}/root/admin", json={"admin": False})[:2] == (403, "RemoveAdminError")
    assert root.refused("PUT", f"{USERS}/root/grouplist", json={"grouplist": []})[:2] == (403, "RemoveAdminError")


def test_an_account_joins_and_leaves_groups(server: Server, root: Pai, user: str) -> None:
    address = f"{USERS}/{user}"
    assert root.put(f"{address}/group/", {"groupname": "vc1"}) == f"User {user} is added into group vc1"
    assert root.get(address)["virtualCluster"] == ["default", "vc1"]
    assert root.put(f"{address}/group", {"groupname": "admingroup"})
    assert signed(server, user).get(GROUPS) and root.get(address)["admin"] is True
    assert root.delete(f"{address}/group/", {"groupname": "vc1"}) == f"User {user} is removed from group vc1"
    assert root.get(address)["grouplist"] == ["default", "admingroup"]
    assert root.put(f"{address}/grouplist/", {"grouplist": ["vc2", "vc1"]}) == "update user grouplist successfully."
    shown = root.get(address)
    assert (shown["grouplist"], shown["admin"], shown["virtualCluster"]) == (
        ["vc2", "vc1"],
        False,
        ["default", "vc1", "vc2"],
    )
    for body, path in (({"groupname": "vc9"}, "group"), ({"grouplist": ["vc1", "vc9"]}, "grouplist")):
        assert root.refused("PUT", f"{address}/{path}", json=body) == (404, "NoGroupError", "Group vc9 is not found.")
    assert root.get(address) == shown


def test_accounts_and_groups_are_at_the_addresses_of_the_yarn_era_too(root: Pai, user: str) -> None:
    root.put(f"/api/v2/user/{user}/group", {"groupname": "vc1"})
    assert root.get(f"/api/v2/user/{user}") == root.get(f"{USERS}/{user}")
    assert root.get("/rest-server/api/v2/group/vc1") == root.get(f"{GROUPS}/vc1")
    assert user in {each["username"] for each in root.get("/api/v2/group/vc1/userlist")}


def test_virtual_clusters_are_given_by_their_groups(server: Server, root: Pai, user: str) -> None:
    assert root.put(f"{USERS}/{user}/virtualcluster", {"virtualCluster": ["vc1", "vc2"]})
    assert root.get(f"{USERS}/{user}")["grouplist"] == ["default", "vc1", "vc2"]
    assert root.call("PUT", f"/api/v1/user/{user}/virtualClusters", json={"virtualClusters": "vc2"}).json() == {
        "message": "update user virtual clusters successfully"
    }
    assert root.get(f"{USERS}/{user}")["virtualCluster"] == ["default", "vc2"]
    actor = server.call(server.service.authentication.authenticate(signed(server, user).token))
    assert "vc2" in actor.queues and "vc1" not in actor.queues
    assert root.get(f"{USERS}/{user}")["grouplist"] == ["default", "vc2"]
    words = "Admin's virtual clusters cannot be updated."
    refused = root.refused("PUT", f"{USERS}/root/virtualcluster", json={"virtualCluster": ["vc1"]})
    assert refused == (403, "ForbiddenUserError", words)


@pytest.fixture
def open_clusters(server: Server) -> Iterator[None]:
    """Virtual clusters that no group grants, so that everybody may use them."""
    names = ("default", "vc1", "vc2")
    server.call(server.store.put_queues([QueueRecord(name) for name in (*names, "open_1", "vision")]))
    yield
    server.call(server.store.put_queues([QueueRecord(name) for name in names]))


def test_who_is_given_what_everybody_has_takes_it_from_nobody(
    server: Server, root: Pai, user: str, open_clusters: None
) -> None:
    other = root.post(USERS, {"username": "stays_as_it_was", "password": PASSWORD})
    assert other and "open_1" in root.get(f"{USERS}/stays_as_it_was")["virtualCluster"]
    root.put(f"{USERS}/{user}/virtualcluster", {"virtualCluster": ["open_1", "default"]})
    root.post(USERS, {"username": "made_with_it", "password": PASSWORD, "virtualCluster": ["open_1"]})
    root.post(GROUPS, {"groupname": "with_default", "extension": {"acls": {"virtualClusters": ["default", "vc1"]}}})
    for name in (user, "made_with_it", "stays_as_it_was"):
        assert root.get(f"{USERS}/{name}")["virtualCluster"] == ["default", "open_1", "vision"]
    assert root.get(f"{GROUPS}/with_default")["extension"]["acls"]["virtualClusters"] == ["vc1"]
    assert {"open_1", "vision"}.isdisjoint(group["groupname"] for group in root.get(GROUPS))
    root.delete(f"{GROUPS}/with_default")


def test_a_virtual_clusters_group_is_the_one_of_its_name(
    server: Server, root: Pai, user: str, open_clusters: None
) -> None:
    storages = {"virtualClusters": ["vision"], "storageConfigs": ["secret"]}
    root.post(GROUPS, {"groupname": "a_team", "extension": {"acls": storages}})
    root.post(GROUPS, {"groupname": "open_1", "extension": {"acls": {"storageConfigs": ["others"]}}})
    for name in ("new_in_vision", user):
        if name != user:
            asked = {"username": name, "password": PASSWORD, "virtualCluster": ["vision", "open_1"]}
            assert root.post(USERS, asked) == "User is created successfully"
        else:
            root.put(f"{USERS}/{name}/virtualcluster", {"virtualCluster": ["vision", "open_1"]})
        shown = root.get(f"{USERS}/{name}")
        assert (shown["grouplist"], shown["storageConfig"]) == (["default", "vision"], [])
        assert shown["virtualCluster"] == ["default", "open_1", "vision"]
    for name in ("a_team", "open_1", "vision"):
        root.delete(f"{GROUPS}/{name}")


def test_an_account_with_an_unknown_virtual_cluster_finds_no_group_of_it(root: Pai) -> None:
    asked = {"username": "never_there", "password": PASSWORD, "virtualCluster": ["vc1", "vc9"]}
    assert root.refused("POST", USERS, json=asked) == (404, "NoGroupError", "Group vc9 is not found.")
    assert root.refused("GET", f"{USERS}/never_there")[:2] == (404, "NoUserError")


def test_a_password_that_stays_as_it_is_ends_no_session(server: Server, root: Pai, user: str) -> None:
    caller = signed(server, user)
    whole = {"username": user, "email": "", "virtualCluster": [], "admin": False, "extension": {}, "password": PASSWORD}
    root.put(USERS, {"data": whole, "patch": False})
    own = {"username": user, "email": "", "oldPassword": PASSWORD, "newPassword": PASSWORD}
    caller.put(f"{USERS}/me", {"data": own, "patch": False})
    caller.put(f"{USERS}/{user}/password", {"newPassword": PASSWORD, "oldPassword": PASSWORD})
    assert caller.get(f"{USERS}/{user}")["username"] == user


def test_ones_own_account_is_changed_without_an_extension(server: Server, root: Pai, user: str) -> None:
    caller = signed(server, user)
    caller.put(f"{USERS}/{user}/extension", {"extension": {"kept": 1}})
    own = {"username": user, "email": "new@b.c", "oldPassword": PASSWORD, "newPassword": "another"}
    assert caller.put(f"{USERS}/me", {"data": own, "patch": False}) == f"update user {user} successfully."
    shown = root.get(f"{USERS}/{user}")
    assert (shown["email"], shown["extension"]) == ("new@b.c", {"kept": 1})


def test_forms_have_nested_keys_and_lists(server: Server, root: Pai) -> None:
    fields = {
        "username": "by_form", "password": PASSWORD, "admin": "false", "virtualCluster[]": ["vc1", "vc2"],
        "extension[keys][0][title]": "mine", "extension[mail]": "x",
    }  # fmt: skip
    assert root.call("POST", USERS, data=fields).status_code == 201
    change = {"data[username]": "by_form", "data[email]": "a@b.c", "patch": "true"}
    assert root.call("PUT", USERS, data=change).status_code == 201
    shown = root.get(f"{USERS}/by_form")
    assert (shown["email"], shown["virtualCluster"]) == ("a@b.c", ["default", "vc1", "vc2"])
    assert shown["extension"] == {"keys": [{"title": "mine"}], "mail": "x"}
    bad = {"username": "by_form", "extension[a][b][c][d][e][f]": "x"}
    assert root.refused("POST", USERS, data=bad)[:2] == (400, "InvalidParametersError")
    assert root.refused("POST", USERS, data={"password": "x" * 200_000})[:2] == (413, "InvalidParametersError")


def test_version_1_makes_changes_and_removes_accounts(server: Server, root: Pai) -> None:
    address, asked = "/api/v1/user", {"username": "older", "password": PASSWORD, "admin": False, "modify": False}
    assert root.put(address, asked) == "update successfully"
    assert root.refused("PUT", address, json=asked)[:2] == (409, "ConflictUserError")
    assert root.put(address, asked | {"modify": True, "password": "another"}) == "update successfully"
    assert login(server, "older", "another")["admin"] is False
    assert root.refused("PUT", address, json=asked | {"modify": True, "username": "nobody"})[:2] == (404, "NoUserError")
    assert root.call("DELETE", address, json={"username": "older"}).json() == {"message": "remove successfully"}
    assert root.refused("DELETE", address, json={"username": "older"})[:2] == (404, "NoUserError")
    assert root.refused("DELETE", address, json={"username": "root"})[:2] == (403, "RemoveAdminError")


def test_the_groups_that_are_always_there(server: Server, root: Pai) -> None:
    shown = {group["groupname"]: group for group in signed_in(server, "onlooker").get(GROUPS)}
    assert shown["default"]["extension"]["acls"] == {
        "admin": False, "virtualClusters": ["default"], "storageConfigs": [],
    }  # fmt: skip
    assert shown["admingroup"]["extension"]["acls"]["admin"] is True
    assert shown["admingroup"]["extension"]["acls"]["virtualClusters"] == ["default", "vc1", "vc2"]
    for name in ("default", "admingroup"):
        refused = root.refused("DELETE", f"{GROUPS}/{name}")
        assert refused == (403, "ForbiddenKeyError", f"Key {name} is system reserved and should not be modified!")


def test_a_group_is_made_changed_and_removed(server: Server, root: Pai, user: str) -> None:
    asked = {
        "groupname": "team_1", "description": "A team", "externalName": "dept-7",
        "extension": {"mail": "x", "acls": {"admin": False, "virtualClusters": ["vc1"], "storageConfigs": ["nfs", "s3"]}},
    }  # fmt: skip
    assert root.post(GROUPS, asked) == "group is created successfully"
    assert root.get(f"{GROUPS}/team_1") == asked and asked in root.get(GROUPS)
    refused = root.refused("POST", GROUPS, json=asked)
    assert refused == (409, "ConflictUserError", "Group name team_1 already exists.")
    root.put(f"{USERS}/{user}/group", {"groupname": "team_1"})
    shown = root.get(f"{USERS}/{user}")
    assert (shown["virtualCluster"], shown["storageConfig"]) == (["default", "vc1"], ["nfs", "s3"])
    update = {"data": {"groupname": "team_1", "extension": {"mail": "y"}}, "patch": True}
    assert root.put(GROUPS, update) == "update group team_1 successfully."
    assert root.get(f"{GROUPS}/team_1") == asked | {"extension": asked["extension"] | {"mail": "y"}}  # type: ignore[operator]
    root.put(GROUPS, {"data": {"groupname": "team_1", "extension": {"acls": {"admin": True}}}})
    acls = {"admin": True, "virtualClusters": [], "storageConfigs": []}
    assert root.get(f"{GROUPS}/team_1") == {
        "groupname": "team_1", "description": "", "externalName": "", "extension": {"acls": acls},
    }  # fmt: skip
    assert root.get(f"{USERS}/{user}")["admin"] is True
    caller = signed(server, user)
    assert caller.get(f"{GROUPS}/team_1/userlist") == [{"username": user, "clusterAdmin": True}]
    assert root.delete(f"{GROUPS}/team_1") == "group is removed successfully"
    assert root.refused("GET", f"{GROUPS}/team_1") == (404, "NoGroupError", "Group team_1 is not found.")
    assert caller.refused("GET", f"{GROUPS}/default/userlist")[:2] == (403, "ForbiddenUserError")
    root.post(GROUPS, {"groupname": "team_1", "extension": {"acls": {"admin": True}}})
    assert root.get(f"{USERS}/{user}")["admin"] is False
    assert root.get(f"{GROUPS}/team_1/userlist") == []


def test_one_part_of_a_group_is_changed_by_its_own_address(root: Pai) -> None:
    root.post(GROUPS, {"groupname": "parts", "extension": {"a": 1}})
    root.put(f"{GROUPS}/parts/description", {"data": "words"})
    root.put(f"{GROUPS}/parts/externalname", {"data": "elsewhere"})
    root.put(f"{GROUPS}/parts/extension/acls/virtualClusters", {"data": ["vc2"]})
    root.put(f"{GROUPS}/parts/extension/deep/er", {"data": {"x": [1]}})
    acls = {"admin": False, "virtualClusters": ["vc2"], "storageConfigs": []}
    assert root.get(f"{GROUPS}/parts") == {
        "groupname": "parts", "description": "words", "externalName": "elsewhere",
        "extension": {"a": 1, "acls": acls, "deep": {"er": {"x": [1]}}},
    }  # fmt: skip
    root.put(f"{GROUPS}/parts/extension", {"data": {"b": 2, "acls": {"storageConfigs": ["nfs"]}}})
    assert root.get(f"{GROUPS}/parts")["extension"] == {
        "b": 2, "acls": {"admin": False, "virtualClusters": [], "storageConfigs": ["nfs"]},
    }  # fmt: skip
    said = root.put(f"{GROUPS}/parts/extension", {"extension": {"c": 3}})
    assert said == "update group extension data successfully."
    said = root.put(f"{GROUPS}/parts/description", {"description": "other words"})
    assert said == "update group description data successfully."
    said = root.put(f"{GROUPS}/parts/externalname", {"externalName": ""})
    assert said == "update group externalNameData data successfully."
    shown = root.get(f"{GROUPS}/parts")
    assert (shown["description"], shown["externalName"]) == ("other words", "")
    assert shown["extension"].keys() == {"b", "c", "acls"} and shown["extension"]["acls"]["storageConfigs"] == ["nfs"]
    for path, body in (
        ("extension/b/c", {"data": 1}),
        ("extension/acls/virtualClusters", {"data": "vc1"}),
        ("extension/acls", {"data": {"admin": "perhaps"}}),
        ("extension", {"data": 1}),
        ("extension", {}),
        ("extension", {"extension": [1]}),
        ("description", {}),
        ("description", {"data": ["words"]}),
        ("externalname", {"externalName": 5 * 1000 * "x"}),
        ("extension/a/b/c/d/e/f/g/h/i", {"data": 1}),
    ):
        assert root.refused("PUT", f"{GROUPS}/parts/{path}", json=body)[:2] == (400, "InvalidParametersError"), path


def test_changing_the_default_group_does_not_close_what_is_open(server: Server, root: Pai) -> None:
    shown = root.get(f"{GROUPS}/default")
    root.put(GROUPS, {"data": shown | {"description": "everybody"}, "patch": False})
    root.put(GROUPS, {"data": {"groupname": "default", "extension": {"x": 1}}, "patch": True})
    assert root.get(f"{GROUPS}/default")["description"] == "everybody"
    assert server.call(server.store.admission()).granted == {"vc1", "vc2"}
    everybody = [each["username"] for each in root.get(f"{GROUPS}/default/userlist")]
    assert "root" in everybody


@pytest.mark.parametrize("name", ["", "a-b", "a b", "é", "a/b", None])
def test_a_group_with_a_bad_name_is_refused(root: Pai, name: str | None) -> None:
    body = {} if name is None else {"groupname": name}
    assert root.refused("POST", GROUPS, json=body)[:2] == (400, "InvalidParametersError")


def test_a_group_that_is_not_there_is_not_found(root: Pai) -> None:
    for method, path, body in (
        ("GET", "/nothing", None), ("DELETE", "/nothing", None),
        ("PUT", "/nothing/description", {"data": ""}), ("PUT", "", {"data": {"groupname": "nothing"}}),
    ):  # fmt: skip
        refused = root.refused(method, f"{GROUPS}{path}", json=body)
        assert refused == (404, "NoGroupError", "Group nothing is not found.")
    assert root.get(f"{GROUPS}/nothing/userlist") == []


def job(name: str, cluster: str) -> str:
    """A job in OpenPAI's language for a virtual cluster."""
    return f"""
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: d, uri: "ubuntu:22.04"}}]
taskRoles:
  worker: {{instances: 1, dockerImage: d, resourcePerInstance: {{cpu: 1, memoryMB: 512, gpu: 0}}, commands: ["echo hi"]}}
defaults: {{virtualCluster: {cluster}}}
"""


def test_what_a_group_grants_decides_who_may_submit(server: Server, root: Pai, user: str) -> None:
    caller = signed(server, user)

    def submit(name: str) -> int:
        headers = {"content-type": "text/yaml"}
        answer = caller.call("POST", "/api/v2/jobs", content=job(name, "vc1"), headers=headers)
        assert answer.status_code == 202 or answer.json()["code"] == "ForbiddenUserError", answer.text
        return answer.status_code

    ours = "name: at-v3\nqueue: vc1\nroles: {worker: {command: echo, resources: {cpu: 1}}}\n"
    assert submit("before") == 403
    assert caller.call("POST", "/api/v3/jobs", content=ours).status_code == 403
    root.put(f"{USERS}/{user}/group", {"groupname": "vc1"})
    assert submit("within") == 202
    assert caller.call("POST", "/api/v3/jobs", content=ours).status_code == 201
    root.put(f"{GROUPS}/vc1/extension/acls/virtualClusters", {"data": ["vc2"]})
    root.post(GROUPS, {"groupname": "others", "extension": {"acls": {"virtualClusters": ["vc1"]}}})
    assert submit("after") == 403
    root.put(f"{GROUPS}/vc1/extension/acls/virtualClusters", {"data": ["vc1"]})
    root.delete(f"{GROUPS}/others")
    root.put(f"{USERS}/{user}/grouplist", {"grouplist": ["admingroup"]})
    assert submit("as-administrator") == 202
