"""A new account with a deleted one's name inherits nothing."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import update

from corral.compat.openpai.language.names import FOLDER, V1
from corral.compat.openpai.service.tenant import OpenPai
from corral.control.system_accounts import FIRST_ALLOTTED, Accounts
from corral.kernel.errors import Conflict, Forbidden, NotFound
from corral.kernel.ids import JobId
from corral.model.accounts import Group, User
from corral.model.storages import mount_of
from corral.service.actor import Actor
from corral.service.service import Service
from corral.spec.storage import StorageUse
from corral.store import Store, tables
from tests.service.conftest import ANN, ROOT, START, job_text


async def _end(store: Store, job: str) -> None:
    """End a job as if it had been stopped before it ran."""
    await store.change(update(tables.jobs).where(tables.jobs.c.id == job).values(live=False, phase="Stopped"))


async def test_a_namesake_owns_no_job_of_the_one_before(service: Service, store: Store) -> None:
    made = await service.submission.submit(ANN, job_text(), idempotency_key="again")
    assert made.detail is not None
    old = made.detail.id
    with pytest.raises(Conflict) as refused:
        await store.remove_user("ann")
    assert refused.value.code == "user-has-jobs"
    await _end(store, old)
    await service.accounts.delete(ROOT, "ann")
    await service.accounts.create(ROOT, "ann")
    for ref in (old, "digits", "ann~digits"):
        for work in (
            service.job_commands.stop(ANN, ref),
            service.context.job_for(ANN, ref, "job.logs"),
            service.context.job_for(ANN, ref, "job.exec"),
        ):
            with pytest.raises(Forbidden):
                await work
    await service.context.job_for(ROOT, old, "job.logs")
    new = await service.submission.submit(ANN, job_text(), idempotency_key="again")
    assert new.detail is not None and new.detail.id != old
    await service.context.job_for(ANN, new.detail.id, "job.logs")


async def test_a_namesake_reads_no_code_of_the_one_before(service: Service, store: Store) -> None:
    for _ in range(2):
        await store.put_blob("sha256:abc", "ann", 1, START)
        assert await store.use_blob("sha256:abc", "ann", START) is not None
        await service.accounts.delete(ROOT, "ann")
        await service.accounts.create(ROOT, "ann")
        assert await store.use_blob("sha256:abc", "ann", START) is None


async def test_a_uid_is_never_given_twice(service: Service, store: Store) -> None:
    accounts = Accounts(store, service.context.secret_box, allot=True)
    given = []
    for _ in range(3):
        for name in ("ann", "bob"):
            await accounts.ready(name)
            given.append(accounts.uid_of(name))
        for name in ("bob", "ann"):
            await service.accounts.delete(ROOT, name)
            await service.accounts.create(ROOT, name)
    assert given == list(range(FIRST_ALLOTTED, FIRST_ALLOTTED + 6))


async def test_starts_at_the_same_moment_share_a_lookup_that_begins_after_them(
    service: Service, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    read = store.user

    async def user(name: str) -> User | None:
        looked.append(name)
        return await read(name)

    monkeypatch.setattr(store, "user", user)
    accounts = Accounts(store, service.context.secret_box, allot=True)
    calls = [accounts.ready(name) for name in ("ann", "bob", "ann", "zoe", "ann", "zoe")]
    came = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(each, NotFound) for each in came] == [False, False, False, True, False, True]
    assert looked == ["ann", "bob", "zoe"]
    first = asyncio.create_task(accounts.ready("ann"))
    while len(looked) < 4:  # it reads, so the next one may not take its answer
        await asyncio.sleep(0)
    await asyncio.gather(accounts.ready("ann"), first)
    assert looked[3:] == ["ann", "ann"]


async def test_a_uid_that_was_set_by_hand_is_not_given_later(service: Service, store: Store) -> None:
    await store.add_user(User("eve", uid=FIRST_ALLOTTED + 7, created_at=START))
    await service.accounts.delete(ROOT, "eve")
    assert (await store.allot_uid("ann", FIRST_ALLOTTED)).uid == FIRST_ALLOTTED + 8


HOME = "kind: Storage\nname: home\ntype: folder\npath: /srv/home\nshare: false\n"
USED = "storages: [home]\n"


async def test_a_namesake_has_a_folder_of_its_own_on_storages_and_is_told_which(service: Service, store: Store) -> None:
    await service.configuration.apply(ROOT, HOME)
    await store.put_group(Group("all", storages=("home",)))
    ann, jobs, folders = Actor("ann", storages=("home",)), [], []
    for _ in range(3):
        made = await service.submission.submit(ann, job_text(more=USED))
        assert made.detail is not None
        jobs.append(JobId(made.detail.id))
        folders.append((await service.accounts.get(ROOT, "ann")).folder)
        assert (await service.accounts.use_of(ANN, "ann")).folder == folders[-1]
        granted = await service.storages.get(ann, "home")
        (live,) = await store.load_live()
        assert granted.folder == mount_of(granted.storage, StorageUse(name="home"), live.account).folder == folders[-1]
        await _end(store, jobs[-1])
        await service.accounts.delete(ROOT, "ann")
        assert (await service.accounts.create(ROOT, "ann")).folder not in folders
    assert folders == ["ann", "ann-2", "ann-3"]
    assert [record.account for record in await store.load_jobs(jobs)] == folders, "each has what its account had"


async def test_a_folder_of_a_namesake_is_given_to_no_account_that_is_called_like_it(service: Service) -> None:
    await service.accounts.delete(ROOT, "ann")
    assert (await service.accounts.create(ROOT, "ann")).folder == "ann-2"
    assert (await service.accounts.create(ROOT, "ann-2")).folder == "ann-2-2"
    assert (await service.accounts.get(ROOT, "bob")).folder == "bob"


@pytest.mark.parametrize("way", ["by OpenPAI's API", "as a file"])
async def test_the_output_folder_of_a_namesakes_job_of_openpais_first_version_is_its_own(
    service: Service, store: Store, way: str
) -> None:
    openpai = OpenPai(service, fs_uri="hdfs://namenode:9000")
    told = []
    for name in ("a", "b"):
        text = json.dumps({"jobName": name, "image": "an/image", "taskRoles": [{"name": "main", "command": "true"}]})
        if way == "as a file":
            await service.submission.submit(ANN, text, wait_for_capacity=True, no_image=True)
        else:
            await openpai.v1.submit(ANN, text.encode())
        (live,) = await store.load_live()
        annotations = json.loads(live.doc)["metadata"]["annotations"]
        told.append((json.loads(annotations[V1])["outputDir"], annotations.get(FOLDER)))
        await _end(store, live.id)
        await service.accounts.delete(ROOT, "ann")
        await service.accounts.create(ROOT, "ann")
    root = "hdfs://namenode:9000/Output"
    assert told == [(f"{root}/ann/a", None), (f"{root}/ann-2/b", "ann-2")]
