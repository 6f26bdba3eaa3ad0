"""A list of accounts is previewed line by line, and then applied as a whole or not at all."""

from __future__ import annotations

import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput
from corral.model.accounts import Group
from corral.service.service import Service
from tests.service.conftest import ANN, ROOT

LIST = b"""name,role,groups,email,disabled
carla,,vision,carla@example.org,
ann,admin,+vision,,
bob,,,,yes
root,admin,,,
"""


async def test_each_line_says_what_it_would_do_before_all_is_done(service: Service) -> None:
    await service.context.store.put_group(Group("vision"))
    tried = await service.account_batches.apply(ROOT, LIST, dry_run=True)
    assert not tried.applied
    assert [(line.line, line.name, line.action) for line in tried.lines] == [
        (2, "carla", "create"),
        (3, "ann", "change"),
        (4, "bob", "change"),
        (5, "root", "unchanged"),
    ]
    assert tried.lines[1].changes == ("role: user to admin", "groups: default to default vision admingroup")
    assert await service.context.store.user("carla") is None
    done = await service.account_batches.apply(ROOT, LIST, links=True)
    assert done.applied
    assert [bool(line.link) for line in done.lines] == [True, False, False, False]
    users = {user.name: user for user in await service.context.store.all_users()}
    assert (users["carla"].groups, users["ann"].role, users["bob"].disabled) == (("vision",), "admin", True)
    assert (await service.sessions.sign_in_link(done.lines[0].link)).user == "carla"
    told = [line for line in (await service.audit_log.page(ROOT)).items if line.detail.get("batch")]
    assert sorted((line.action, line.resource) for line in told) == [
        ("user.change", "user:ann"),
        ("user.change", "user:bob"),
        ("user.create", "user:carla"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann,,visoin,,", "There is no group visoin"),
        ("ann,boss,,,", "admin or user"),
        ("../x,,,,", "A user name has"),
        ("carla,,,nowhere,", "is not a mail address"),
        ("carla,,,@,", "is not a mail address"),
        ("carla,,nogroup,,", "make it first"),
        ("carla,,,,maybe", "yes or no"),
        ("carla,,+vision vision,,", "not both"),
        ("carla,,admingroup,,", "Write admin under role"),
    ],
)
async def test_one_bad_line_is_refused_and_stops_all(service: Service, line: str, said: str) -> None:
    await service.context.store.put_group(Group("vision"))
    text = f"name,role,groups,email,disabled\nfirst,,,,\n{line}\n".encode()
    tried = await service.account_batches.apply(ROOT, text, dry_run=True)
    assert [each.action for each in tried.lines] == ["create", "refused"]
    assert said in tried.lines[1].message
    with pytest.raises(InvalidInput, match=r"Nothing was changed: 1 of 2 lines"):
        await service.account_batches.apply(ROOT, text)
    assert await service.context.store.user("first") is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"role\nadmin\n",
        b"name,nmae\n",
        b"name\n\xff\n",
        b'name\n"open\n',
        b"name\na,b\n",
        b"name\n" + b"x\n" * 1001,
    ],
)
async def test_what_is_no_list_is_refused(service: Service, text: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        await service.account_batches.apply(ROOT, text, dry_run=True)
    assert refused.value.code == "bad-csv"


async def test_the_last_administrator_stays_one_and_others_send_no_lists(service: Service) -> None:
    with pytest.raises(Conflict, match="No enabled administrator would be left"):
        await service.account_batches.apply(ROOT, b"name,role\ncarla,\nroot,user\n")
    assert await service.context.store.user("carla") is None
    with pytest.raises(Forbidden):
        await service.account_batches.apply(ANN, b"name\ncarla\n", dry_run=True)


async def test_a_name_stands_once_in_a_list(service: Service) -> None:
    tried = await service.account_batches.apply(ROOT, b"name\ncarla\ncarla\n", dry_run=True)
    assert tried.lines[1].message == "carla is in line 2 already."


async def test_an_account_of_a_list_never_has_the_id_of_another(service: Service) -> None:
    """Its folders are named by the id: a namesake of a deleted account would read the old one's files."""
    await service.accounts.create(ROOT, "old")
    await service.accounts.delete(ROOT, "old")
    await service.account_batches.apply(ROOT, b"name\nold\nnew\n")
    users = {user.name: user for user in await service.context.store.all_users()}
    assert (users["old"].id, users["old"].folder, users["new"].id) == ("old-2", "old-2", "new")
