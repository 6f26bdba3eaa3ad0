"""Each account's own folder in a storage is private, whichever names the storage considers equal."""

from __future__ import annotations

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict
from corral.model.accounts import Group, User
from corral.service.actor import Actor
from corral.service.service import Service
from tests.service.conftest import ROOT, job_text

ANN_TOO = Actor("Ann", storages=("home",))
SMB = "type: samba\naddress: //filer/home\n"


async def prepared(service: Service, clock: VirtualClock, terms: str) -> tuple[Actor, Actor]:
    """Ann and ann, the latter created first, who both have the storage."""
    await service.configuration.apply(ROOT, f"kind: Storage\nname: home\n{terms}")
    clock.advance(60)
    await service.context.store.put_group(Group("all", storages=("home",)))
    await service.context.store.add_user(User("Ann", groups=("all",), created_at=clock.now()))
    await service.context.store.change_user("ann", groups=("all",))
    return Actor("ann", storages=("home",)), ANN_TOO


@pytest.mark.parametrize("storages", ["storages: [home]\n", "storages: [{name: ''}]\n"])
async def test_who_came_later_is_not_given_the_folder_of_a_name_in_another_case(
    service: Service, clock: VirtualClock, storages: str
) -> None:
    first, later = await prepared(service, clock, f"{SMB}share: false\n")
    assert (await service.submission.submit(first, job_text(more=storages))).created
    with pytest.raises(Conflict, match="may take your folder for that of ann"):
        await service.submission.submit(later, job_text(more=storages))
    assert (await service.submission.submit(later, job_text())).created, "other jobs need none of it"


@pytest.mark.parametrize("terms", [f"{SMB}share: true\n", "type: folder\npath: /srv/home\nshare: false\n"])
async def test_names_of_another_case_do_no_harm_where_folders_are_not_mistaken(
    service: Service, clock: VirtualClock, terms: str
) -> None:
    for actor in await prepared(service, clock, terms):
        assert (await service.submission.submit(actor, job_text(more="storages: [home]\n"))).created
