"""The original job file is stored with the job and returned, with placeholders for its secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.compat.openpai.service.errors import OpenPaiRefusal
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.errors import Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.facts import Fact
from corral.model.store_writes import ControlBatch, FactWrite
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.spec.own_file import MASK
from corral.store import Store
from tests.service.conftest import ANN, BOB, ROOT, job_text
from tests.spec.openpai_files import MINIMAL

TEXT = "# mine\n" + job_text(more="# the end\n")
PASSWORD, TOKEN = "correct-horse-battery", "tr0ub4dor&3-value"
AUTH = f"auth: {{username: me, password: {PASSWORD}, registryuri: reg.example}}"
SECRET = (
    "# of openpai\n"
    + MINIMAL.replace('"ubuntu:22.04"}]', f'"reg.example/x", {AUTH}}}]  # {PASSWORD}')
    + f"secrets:\n  token: |  # {TOKEN}\n    {TOKEN}\n"
)


async def submitted(service: Service, text: str | bytes = TEXT, actor: Any = ANN, **terms: Any) -> str:
    result = await service.submission.submit(actor, text, file=True, no_image=True, **terms)
    assert result.created and result.detail is not None
    return result.detail.id


async def remove(store: Store, epoch: int, jobs: list[str]) -> None:
    await store.commit(ControlBatch(epoch, removed_jobs=tuple(JobId(job) for job in jobs)))


async def opened(service: Service, job: str) -> dict[str, str]:
    sealed = await service.context.store.secrets(f"job:{job}")
    return {name: service.context.secret_box.open(f"job:{job}", name, value) for name, value in sealed.items()}


async def test_a_file_is_given_back_byte_for_byte_with_its_parameters(service: Service) -> None:
    text = TEXT.replace("cpu: 1", "cpu: <% $parameters.cores %>") + "parameters: {cores: 1}\n"
    job = await submitted(service, text.encode(), parameters={"cores": "3"})
    found = await service.job_files.get(ANN, job)
    assert (found.job, found.text, found.parameters) == (job, text, {"cores": "3"})
    first = await service.jobs.document(ANN, job)
    again = await service.submission.validate(ANN, found.text, parameters=found.parameters)
    assert again.document == first


async def test_what_was_edited_since_is_told_with_a_file_that_has_none_of_it(
    service: Service, store: Store, epoch: int
) -> None:
    job = await submitted(service)
    assert (await service.job_files.get(ANN, job)).edits == ()
    said = [f"ann changed the job's priority from {at} to {at + 1}." for at in range(22)]
    facts = [FactWrite(JobId(job), float(at), Fact("job.edited", each), "ann") for at, each in enumerate(said)]
    other = FactWrite(JobId(job), 30.0, Fact("job.edit-refused", "The job no longer waits."), "ann")
    await store.commit(ControlBatch(epoch, facts=(*facts, other)))
    found = await service.job_files.get(ANN, job)
    assert (list(found.edits), found.text) == (said[-20:], TEXT)


async def test_a_job_without_a_file_says_where_its_document_is(service: Service) -> None:
    result = await service.submission.submit(ANN, TEXT)
    assert result.detail is not None
    with pytest.raises(NotFound) as refused:
        await service.job_files.get(ANN, result.detail.id)
    assert refused.value.code == "no-job-file" and "-o yaml" in refused.value.message


async def test_a_file_is_read_by_those_who_may_read_the_environment(service: Service) -> None:
    job = await submitted(service)
    with pytest.raises(Forbidden):
        await service.job_files.get(BOB, job)
    assert (await service.job_files.get(ROOT, job)).text == TEXT


async def test_every_job_of_an_array_has_the_one_file_until_the_last_is_removed(
    service: Service, store: Store, epoch: int
) -> None:
    first = await submitted(service, TEXT + "array: {size: 3}\n")
    names = ["digits-0", "digits-1", "digits-2"]
    assert {(await service.job_files.get(ANN, name)).text for name in names} == {TEXT + "array: {size: 3}\n"}
    jobs = [record.id for name in names if (record := await store.find_job(name, "ann"))]
    assert jobs[0] == first
    await remove(store, epoch, jobs[:1])
    assert (await service.job_files.get(ANN, jobs[1])).text.startswith("# mine")
    await remove(store, epoch, jobs[1:])
    assert await store.job_file(first) is None


async def test_no_secret_of_a_file_is_stored_in_clear(service: Service, store: Store, tmp_path: Path) -> None:
    job = await submitted(service, SECRET, idempotency_key="once")
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"# of openpai" in written, "the files that were looked into are those of the store"
    assert PASSWORD.encode() not in written and TOKEN.encode() not in written
    found = await service.job_files.get(ANN, job)
    assert found.secrets == 2 and f'password: "{MASK}"' in found.text and f'token: "{MASK}"' in found.text


async def test_a_file_whose_secret_stands_elsewhere_too_is_not_kept_and_that_is_said(service: Service) -> None:
    text = SECRET + f"description: never use {TOKEN}\n"
    result = await service.submission.submit(ANN, text, file=True, no_image=True)
    assert result.detail is not None and "not kept" in result.detail.notes[0]
    with pytest.raises(NotFound):
        await service.job_files.get(ANN, result.detail.id)


async def test_what_was_kept_is_submitted_again_with_the_secrets_of_its_job(service: Service) -> None:
    first = await submitted(service, SECRET)
    text = (await service.job_files.get(ANN, first)).text.replace("name: j1", "name: j2")
    assert (await service.submission.validate(ANN, text, source=first)).valid
    second = await submitted(service, text, source=first)
    assert (await opened(service, second)) == (await opened(service, first))
    third = await submitted(service, text.replace("name: j2", "name: j3"), source=second)
    assert (await service.job_files.get(ANN, third)).secrets == 2


@pytest.mark.parametrize("source", ["", "nothing", "other"])
async def test_a_placeholder_is_refused_where_its_secret_is_not_known(service: Service, source: str) -> None:
    first = await submitted(service, SECRET)
    await submitted(service, job_text("other"))
    text = (await service.job_files.get(ANN, first)).text.replace("name: j1", "name: j2")
    with pytest.raises(SpecError) as refused:
        await submitted(service, text, source=source)
    assert [problem.line for problem in refused.value.problems] == [5, 9]
    assert "--from JOB" in refused.value.message
    assert not (await service.submission.validate(ANN, text, source=source)).valid
    whys = {
        "": "here; write",
        "nothing": "here: there is no job nothing; write",
        "other": "job other has no secret for",
    }
    assert all(whys[source] in problem.message for problem in refused.value.problems)


async def test_a_document_whose_file_was_not_kept_is_submitted_again_with_the_secrets_of_its_job(
    service: Service,
) -> None:
    first = await submitted(service, SECRET + f"contributor: {TOKEN}\n")
    document = await service.jobs.document(ANN, first)
    document["metadata"] |= {"name": "again"}
    document["metadata"]["annotations"]["openpai.corral.dev/name"] = "again"
    text = json.dumps(document)
    for actor, source, why in (
        (ANN, "", "from; name"),
        (BOB, first, "is ann's"),
        (ROOT, "ann~again", "there is no job"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await submitted(service, text, actor=actor, source=source)
        assert "--from JOB" in refused.value.message and why in refused.value.message
    second = await submitted(service, text, source=first)
    assert (await opened(service, second)) == (await opened(service, first))


async def test_nobody_else_has_the_secrets_of_a_file(service: Service) -> None:
    first = await submitted(service, SECRET)
    text = (await service.job_files.get(ANN, first)).text
    for other in (BOB, ROOT):
        with pytest.raises(SpecError):
            await submitted(service, text, actor=other, source=f"ann~{first}")
        with pytest.raises(SpecError) as refused:
            await submitted(service, text, actor=other, source=first)
        assert f"job {first} is ann's, and only its owner has its secrets" in refused.value.message


async def test_the_secrets_of_a_file_go_with_its_job(service: Service, store: Store, epoch: int) -> None:
    job = await submitted(service, SECRET)
    assert await store.secrets(f"file:{job}")
    await remove(store, epoch, [job])
    assert not await store.secrets(f"file:{job}") and await store.job_file(job) is None


async def test_openpais_own_door_keeps_the_file_and_refuses_placeholders(service: Service, openpai: OpenPai) -> None:
    assert await openpai.jobs.submit(ANN, SECRET.encode()) == "j1"
    found = await service.job_files.get(ANN, "j1")
    assert found.text.startswith("# of openpai") and PASSWORD not in found.text and found.secrets == 2
    with pytest.raises(OpenPaiRefusal) as refused:
        await openpai.jobs.submit(ANN, found.text.replace("name: j1", "name: j2"))
    assert refused.value.code == "InvalidProtocolError" and MASK in refused.value.message


async def test_a_repeated_submit_has_the_first_ones_file(service: Service) -> None:
    first = await submitted(service, SECRET, idempotency_key="k")
    again = await service.submission.submit(ANN, SECRET, file=True, no_image=True, idempotency_key="k")
    assert again.detail is not None and again.detail.id == first and not again.created


async def test_a_file_is_sealed_with_a_new_key_too(service: Service, store: Store) -> None:
    job = await submitted(service, SECRET)
    changed = {owner for owner in [f"file:{job}", f"job:{job}"] if await store.secrets(owner)}
    assert len(changed) == 2
    count = await store.reseal(lambda owner, name, sealed: sealed + "!" if owner.startswith("file:") else sealed)
    assert count >= 4
    assert all(value.endswith("!") for value in (await store.secrets(f"file:{job}")).values())
