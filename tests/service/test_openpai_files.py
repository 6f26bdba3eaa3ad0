"""OpenPAI job files are submitted like any others: their secrets are encrypted with the job, and they wait for devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.compat.openpai.language.protocol import ProtocolError, read_protocol
from corral.compat.openpai.language.translation import to_job, to_protocol
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.model.accounts import User
from corral.model.inventory import Node
from corral.service.secret_box import SecretBox
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, KEY, START, job_text
from tests.spec.openpai_files import MINIMAL, job_file, role_of, samples

HUSH = "hush-hush-value"
WITH_SECRET = job_file(secrets={"token": HUSH}, taskRoles={"worker": role_of(commands=["login <% $secrets.token %>"])})


async def submitted(service: Service, text: str, **terms: Any) -> dict[str, Any]:
    result = await service.submission.submit(ANN, text, no_image=True, **terms)
    assert result.created and result.detail is not None
    return {"id": result.detail.id, "document": result.detail.document}


@pytest.mark.usefixtures("openpai")
async def test_a_file_of_protocol_2_is_a_job_of_its_submitter(service: Service) -> None:
    job = await submitted(service, MINIMAL)
    annotations = job["document"]["metadata"]["annotations"]
    assert job["document"]["spec"]["jobType"] == "openpai"
    assert annotations["openpai.corral.dev/user"] == "ann"
    assert to_protocol(job["document"])["name"] == "j1"


async def test_a_job_is_told_the_clusters_file_system(service: Service) -> None:
    OpenPai(service, fs_uri="hdfs://nn:9000")
    annotations = (await submitted(service, MINIMAL))["document"]["metadata"]["annotations"]
    assert annotations["openpai.corral.dev/default-fs-uri"] == "hdfs://nn:9000"


@pytest.mark.usefixtures("openpai")
async def test_nobody_submits_under_anothers_name_or_keys(service: Service) -> None:
    document = to_job({**read_protocol(MINIMAL), "name": "mine"}, user="bob").document
    document["metadata"]["annotations"]["openpai.corral.dev/ssh-keys"] = "ssh-rsa bob"
    annotations = (await submitted(service, json.dumps(document)))["document"]["metadata"]["annotations"]
    assert annotations["openpai.corral.dev/user"] == "ann"
    assert "openpai.corral.dev/ssh-keys" not in annotations


@pytest.mark.usefixtures("openpai")
async def test_a_job_with_ssh_has_its_submitters_public_keys(service: Service, store: Store) -> None:
    extension = {"sshKeys": [{"title": "laptop", "value": "ssh-rsa AAA ann"}]}
    await store.add_user(User("carl", created_at=START, extension=extension))
    extras = {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": {"jobssh": True}}]}
    carl = ANN.__class__("carl", token_id="t-carl")
    result = await service.submission.submit(carl, job_file(extras=extras), no_image=True)
    assert result.detail is not None
    annotations = result.detail.document["metadata"]["annotations"]
    assert annotations["openpai.corral.dev/ssh-keys"] == "ssh-rsa AAA ann"


async def test_secrets_of_a_file_are_sealed_with_the_job_and_stored_nowhere_in_clear(
    service: Service, store: Store, tmp_path: Path
) -> None:
    job = await submitted(service, WITH_SECRET, idempotency_key="once")
    sealed = await store.secrets(f"job:{job['id']}")
    assert SecretBox(KEY).open(f"job:{job['id']}", "openpai.token", sealed["openpai.token"]) == HUSH
    await service.context.store.last_seq()
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"openpai.token" in written, "the files that were looked into are those of the store"
    assert HUSH.encode() not in written


async def test_secrets_may_be_handed_over_beside_a_document(service: Service, store: Store) -> None:
    made = to_job(read_protocol(WITH_SECRET), user="ann")
    job = await submitted(service, json.dumps(made.document), own_secrets={"token": HUSH})
    sealed = await store.secrets(f"job:{job['id']}")
    assert SecretBox(KEY).open(f"job:{job['id']}", "openpai.token", sealed["openpai.token"]) == HUSH


async def test_a_document_whose_secrets_are_missing_is_refused(service: Service) -> None:
    made = to_job(read_protocol(WITH_SECRET), user="ann")
    with pytest.raises(InvalidInput) as refused:
        await service.submission.submit(ANN, json.dumps(made.document), no_image=True)
    assert refused.value.code == "unknown-secret"


@pytest.mark.usefixtures("openpai")
async def test_a_job_of_openpai_waits_for_room_that_is_not_there(service: Service, machines: list[Node]) -> None:
    with pytest.raises(CorralError) as refused:
        await service.submission.submit(ANN, job_text(devices=64))
    assert refused.value.code == "impossible-request"
    role = role_of(resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": 64})
    job = await submitted(service, job_file(taskRoles={"worker": role}))
    assert job["document"]["spec"]["roles"][0]["resources"]["devices"]["count"] == 64


async def test_a_bad_file_is_refused_with_openpais_words_and_our_line(service: Service) -> None:
    text = MINIMAL.replace("gpu: 0", "gpu: none")
    with pytest.raises(ProtocolError) as refused:
        await service.submission.submit(ANN, text)
    assert json.loads(refused.value.wire)[0]["dataPath"] == ".taskRoles['worker'].resourcePerInstance.gpu"
    found = await service.submission.validate(ANN, text)
    assert not found.valid and found.problems[0].line == 6
    assert (await service.submission.validate(ANN, MINIMAL)).valid


async def test_every_sample_of_both_protocols_is_accepted(service: Service, data_folder: Path) -> None:
    names = set()
    for file in [*samples(data_folder, 1), *samples(data_folder, 2)]:
        found = await service.submission.validate(ANN, file.read_bytes(), filename=file.name)
        assert found.document is not None, found.problems
        names.add(found.document["metadata"]["annotations"]["openpai.corral.dev/name"])
    assert len(names) > 40


async def test_a_storage_that_nobody_granted_is_refused(service: Service) -> None:
    with pytest.raises(NotFound) as refused:
        await service.submission.submit(ANN, job_file(extras={"storages": [{"name": "secret-place"}]}), no_image=True)
    assert refused.value.code == "storage-not-found"
