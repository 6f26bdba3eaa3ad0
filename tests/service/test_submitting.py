"""A submission that could never run is refused in one sentence before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput
from corral.kernel.ids import JobId
from corral.model.accounts import Group, QueueRecord
from corral.model.inventory import Node
from corral.model.records import JobFilter
from corral.service.actor import Actor
from corral.service.secret_box import SecretBox
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.store import Store
from corral.store.cluster_views import CONTAINER_RUNTIME
from tests.service.conftest import ANN, BOB, KEY, START, FakeControl, job_text


@pytest.fixture(autouse=True)
def calls_of_workers() -> None:
    """Processes make the calls of workers, as on a server."""


async def _refused(service: Service, text: str, actor: Actor = ANN, **terms: Any) -> CorralError:
    before = await service.context.store.last_seq()
    with pytest.raises(CorralError) as refused:
        await service.submission.submit(actor, text, **terms)
    assert await service.context.store.last_seq() == before, "nothing may be stored of a refused job"
    return refused.value


async def test_an_accepted_job_is_stored_and_shown(service: Service) -> None:
    result = await service.submission.submit(ANN, job_text(replicas=3, more="tags: [a, b]\n"))
    assert result.created and result.detail is not None
    detail = result.detail
    assert (detail.name, detail.user, detail.state, detail.queue) == ("digits", "ann", "waiting", "default")
    assert (detail.tasks.total, detail.tasks.waiting, detail.tags) == (3, 3, ("a", "b"))
    assert detail.document["kind"] == "UnifiedJob"
    assert detail.roles[0].name == "worker" and detail.roles[0].replicas == 3
    assert detail.waiting is not None and detail.waiting.code == "submitted"
    (live,) = await service.context.store.load_live()
    assert live.id == detail.id and msgspec.json.decode(live.doc) == detail.document
    assert msgspec.json.decode(msgspec.json.encode(detail))["createdAt"].endswith("Z")


@pytest.mark.usefixtures("openpai")
async def test_no_document_has_a_tag_by_which_the_server_itself_knows_jobs(service: Service) -> None:
    error = await _refused(service, job_text(more="tags: [a, 'openpai:legacy']\n"))
    assert (error.status, error.code) == (400, "own-tag")
    assert error.message == "Tags that begin with openpai: are the server's own; choose another."
    given = await service.submission.submit(ANN, job_text(more="tags: [a]\n"), own_tags=("openpai:legacy",))
    assert given.detail is not None and given.detail.tags == ("a", "openpai:legacy")


async def test_a_bad_document_is_refused_with_its_line(service: Service) -> None:
    error = await _refused(service, "name: x\nroles:\n  worker:\n    comand: [a]\n")
    assert isinstance(error, SpecError) and error.problems[0].line == 4
    found = await service.submission.validate(ANN, "name: x\nroles:\n  worker:\n    comand: [a]\n")
    assert not found.valid and found.problems[0].line == 4 and "command" in found.problems[0].message
    assert (await service.submission.validate(ANN, job_text())).document is not None


async def test_others_are_served_while_a_large_document_is_read(service: Service) -> None:
    reading = asyncio.create_task(
        service.submission.validate(ANN, job_text(more=f"tags: [{', '.join(['a'] * 20_000)}]\n"))
    )
    await asyncio.sleep(0)
    ticks = 0
    while not reading.done():
        await asyncio.sleep(0.001)
        ticks += 1
    assert ticks > 1 and not (await reading).valid


async def test_an_unknown_framework_is_refused(service: Service) -> None:
    assert isinstance(await _refused(service, job_text(more="framework: pytorhc\n")), SpecError)


async def test_queues_are_known_and_granted(service: Service, store: Store) -> None:
    assert (await _refused(service, job_text(more="queue: gold\n"))).code == "unknown-queue"
    await store.put_queues([QueueRecord("default"), QueueRecord("gold")])
    await service.submission.submit(ANN, job_text("one", more="queue: gold\n"))
    await store.put_group(Group("vips", ("gold",)))
    error = await _refused_after_audit(service, job_text("two", more="queue: gold\n"))
    assert isinstance(error, Forbidden) and "queue-not-granted" in error.message
    vip = Actor("ann", queues=("gold",))
    assert (await service.submission.submit(vip, job_text("three", more="queue: gold\n"))).created


async def _refused_after_audit(service: Service, text: str) -> CorralError:
    with pytest.raises(CorralError) as refused:
        await service.submission.submit(ANN, text)
    return refused.value


IMPOSSIBLE = [
    (job_text(devices=3), "3"),
    (job_text(devices=2, replicas=3), "room for 2"),
    (job_text().replace("cpu: 1", "cpu: 9"), "9 processors"),
    (job_text().replace("cpu: 1", "memory: 17Gi"), "17Gi"),
    (job_text(devices=1, replicas=5), "room for 4"),
    (job_text().replace("devices: 0", "devices: {count: 1, model: H100}"), "H100"),
    (job_text().replace("command:", "nodeSelector: {zone: mars}\n    command:"), "mars"),
]


@pytest.mark.parametrize(("text", "word"), IMPOSSIBLE)
async def test_what_no_machine_could_hold_needs_wait_for_capacity(
    service: Service, machines: list[Node], text: str, word: str
) -> None:
    error = await _refused(service, text)
    assert isinstance(error, Conflict) and error.code == "impossible-request" and word in error.message, error.message
    with pytest.raises(Conflict) as refused:
        await service.submission.submit(ANN, text, dry_run=True)
    assert (refused.value.code, refused.value.message) == (error.code, error.message)
    trial = (await service.submission.submit(ANN, text, dry_run=True, wait_for_capacity=True)).trial
    assert trial is not None and trial.would_start is False and trial.reasons is not None and not trial.reasons.possible
    assert (await service.submission.submit(ANN, text, wait_for_capacity=True)).created


@pytest.mark.parametrize(
    "text", [job_text(devices=2, replicas=2), job_text(devices=1, replicas=4), job_text(replicas=16)]
)
async def test_what_the_empty_machines_could_hold_is_accepted(
    service: Service, machines: list[Node], text: str
) -> None:
    assert (await service.submission.submit(ANN, text)).created


async def test_a_dry_run_says_what_the_scheduler_would_do(
    service: Service, machines: list[Node], fake_control: FakeControl
) -> None:
    assert await _trial(service, job_text()) == (None, "")  # nobody to ask
    fake_control.answers["/trial"] = {"binding": {"code": "starts-now", "message": "There is room.", "counts": {}}}
    assert await _trial(service, job_text()) == (True, "")
    fake_control.answers["/trial"] = {"binding": {"code": "not-enough-devices", "message": "0 are free.", "counts": {}}}
    assert await _trial(service, job_text(devices=1)) == (False, "0 are free.")
    await service.submission.submit(ANN, job_text("first"))
    later = job_text("later", more="after: [first]\n")
    assert await _trial(service, later) == (False, "Waits for 1 other job to end.")


async def _trial(service: Service, text: str) -> tuple[bool | None, str]:
    trial = (await service.submission.submit(ANN, text, dry_run=True)).trial
    assert trial is not None
    return trial.would_start, trial.reasons.binding.message if trial.reasons else ""


async def test_a_level_that_no_machine_has_is_refused_when_control_says_so(
    service: Service, machines: list[Node], fake_control: FakeControl
) -> None:
    binding = {"code": "unknown-level", "message": "There is no topology level 'rak'.", "counts": {}}
    fake_control.answers["/fit"] = {"binding": binding, "others": [], "ahead": 0, "possible": False}
    text = job_text(more="topology: {required: rak}\n")
    error = await _refused(service, text)
    assert isinstance(error, InvalidInput) and error.code == "unknown-level"
    told = "There is no topology level 'rak'. To wait for a machine that has it: --wait-for-capacity."
    assert error.message == told
    assert (await service.submission.submit(ANN, text, wait_for_capacity=True)).created, "a machine may come with it"


async def test_a_gang_that_only_the_scheduler_knows_to_be_impossible_is_refused(
    service: Service, machines: list[Node], fake_control: FakeControl
) -> None:
    text = job_text(devices=2, replicas=2, more="topology: {required: rack}\n")
    binding = {"code": "no-cell-holds-gang", "message": "No rack has 4 devices; the largest has 2.", "counts": {}}
    fake_control.answers["/fit"] = {"binding": binding, "others": [], "ahead": 0, "possible": False}
    error = await _refused(service, text)
    assert error.code == "impossible-request" and "No rack has 4 devices" in error.message
    fake_control.answers["/fit"] = None
    assert (await service.submission.submit(ANN, text)).created


async def test_an_elastic_job_needs_room_for_its_least_size(service: Service, machines: list[Node]) -> None:
    text = job_text(devices=1).replace("replicas: 1", "replicas: {min: 2, max: 100}")
    assert (await service.submission.submit(ANN, text)).created


async def test_a_dry_run_stores_nothing(service: Service) -> None:
    result = await service.submission.submit(ANN, job_text(), dry_run=True)
    assert result.trial is not None and result.trial.document["metadata"]["name"] == "digits"
    assert (await service.jobs.page(ANN, JobFilter())).items == []


async def test_an_image_needs_a_container_runtime_or_no_image(service: Service, store: Store) -> None:
    text = job_text().replace("command:", "image: python:3\n    command:")
    error = await _refused(service, text)
    assert error.code == "no-container-runtime" and "--no-image" in error.message
    without = await service.submission.submit(ANN, text, no_image=True)
    assert without.detail is not None and not without.detail.document["spec"]["roles"][0]["image"]
    await store.put_setting(CONTAINER_RUNTIME, "docker")
    kept = await service.submission.submit(BOB, text)
    assert kept.detail is not None and kept.detail.document["spec"]["roles"][0]["image"] == "python:3"


async def test_a_name_is_taken_while_its_job_lives(service: Service) -> None:
    await service.submission.submit(ANN, job_text())
    assert (await _refused(service, job_text())).code == "name-taken"
    assert (await service.submission.submit(BOB, job_text())).created


async def test_a_repeated_request_gives_the_same_job(service: Service) -> None:
    first = await service.submission.submit(ANN, job_text(), idempotency_key="k")
    again = await service.submission.submit(ANN, job_text(), idempotency_key="k")
    assert first.detail is not None and again.detail is not None
    assert (again.created, again.detail.id) == (False, first.detail.id)
    assert (await _refused(service, job_text("other"), idempotency_key="k")).code == "idempotency-key-reused"
    assert (await _refused(service, job_text(), idempotency_key="k", no_image=True)).code == "idempotency-key-reused"


async def test_dependencies_are_stored_by_id(service: Service) -> None:
    first = await service.submission.submit(ANN, job_text("first"))
    assert first.detail is not None
    second = await service.submission.submit(ANN, job_text("second", more="dependsOn: [first]\n"))
    assert second.detail is not None and second.detail.depends_on == (first.detail.id,)
    assert second.detail.waiting is not None and second.detail.waiting.code == "dependency"
    live = await service.context.store.load_job(JobId(second.detail.id))
    assert live is not None and live.run.hold == "dependency"
    assert (await _refused(service, job_text("third", more="dependsOn: [nothing]\n"))).code == "unknown-dependency"


async def test_secrets_are_copied_sealed_for_the_job(service: Service, store: Store) -> None:
    text = job_text().replace("command:", "secrets: [{name: KEY, env: KEY}]\n    command:")
    assert (await _refused(service, text)).code == "unknown-secret"
    await service.secrets.put(ANN, "KEY", "value")
    made = await service.submission.submit(ANN, text)
    assert made.detail is not None
    await service.secrets.delete(ANN, "KEY")
    owner = f"job:{made.detail.id}"
    sealed = await store.secrets(owner)
    assert SecretBox(KEY).open(owner, "KEY", sealed["KEY"]) == "value"
    assert "value" not in msgspec.json.encode(made.detail.document).decode()


async def test_an_array_becomes_jobs_that_wait_for_room(service: Service) -> None:
    made = await service.submission.submit(
        ANN, job_text("sweep", more="array: {size: 5, maxParallel: 2}\n"), idempotency_key="k"
    )
    assert made.detail is not None and made.detail.name == "sweep-0"
    again = await service.submission.submit(
        ANN, job_text("sweep", more="array: {size: 5, maxParallel: 2}\n"), idempotency_key="k"
    )
    assert again.detail is not None and not again.created and again.detail.id == made.detail.id
    live = await service.context.store.load_live()
    documents = [msgspec.json.decode(job.doc) for job in live]
    assert [job.name for job in live] == [f"sweep-{n}" for n in range(5)]
    assert [[need["job"] for need in each["spec"]["dependsOn"]] for each in documents] == [
        [], [], [live[0].id], [live[1].id], [live[2].id],
    ]  # fmt: skip
    assert documents[3]["spec"]["roles"][0]["env"]["CORRAL_ARRAY_INDEX"] == "3"
    tagged = await service.jobs.page(ANN, JobFilter(tag=f"array:{made.detail.id}"))
    assert len(tagged.items) == 5
    taken = await _refused(service, job_text("sweep", more="array: {size: 2}\n"))
    assert taken.code == "name-taken"
    assert (await _refused(service, job_text("n" * 62, more="array: {size: 100}\n"))).code == "name-too-long"
    long = f"env: {{LONG: {'x' * 20_000}}}\narray: {{size: 1000}}\n"
    assert (await _refused(service, job_text("long", more=long))).code == "array-too-large"


async def _chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_code_must_have_been_uploaded_by_the_same_user(service: Service, store: Store) -> None:
    digest = "a" * 64
    assert (await _refused(service, job_text(more="code: .\n"))).code == "code-not-uploaded"
    assert (await _refused(service, job_text(), code_digest=digest)).code == "no-such-code"
    await store.put_blob(digest, "ann", 10, START)
    made = await service.submission.submit(ANN, job_text(more="code: .\n"), code_digest=digest)
    assert made.detail is not None and made.detail.document["spec"]["code"]["uri"] == f"blob:{digest}"
    assert (await _refused(service, job_text("x"), BOB, code_digest=digest)).code == "no-such-code"


async def test_an_archive_that_is_none_is_refused(service: Service) -> None:
    with pytest.raises(InvalidInput):
        await service.code_archives.put(ANN, _chunks(b"not", b" an archive"))
    assert await service.code_archives.size(ANN, "a" * 64) is None


async def test_a_job_above_a_bound_of_its_queue_is_refused_unless_it_waits(
    service: Service, machines: list[Node], fake_control: FakeControl, store: Store
) -> None:
    await store.put_queues([QueueRecord("default", {"parent": "lab"}), QueueRecord("lab", {"limit": {"cpu": 2}})])
    said = "The limit of queue lab allows 2 processors, and this job needs 4 to start."
    fake_control.answers["/fit"] = {
        "binding": {"code": "queue-limit", "message": said, "counts": {}},
        "possible": False,
    }
    error = await _refused(service, job_text(devices=0))
    assert error.code == "impossible-request" and error.message.startswith(said)
    assert (await service.submission.submit(ANN, job_text(devices=0), wait_for_capacity=True)).created
    fake_control.answers["/fit"] = None
    assert (await service.submission.submit(ANN, job_text("second", devices=0))).created
    await store.put_queues([QueueRecord("default", {"parent": "lab"}), QueueRecord("lab", {"limit": {"cpu": 1}})])
    fake_control.answers["/fit"] = {
        "binding": {"code": "queue-limit", "message": said, "counts": {}},
        "possible": False,
    }
    assert (await _refused(service, job_text("third", devices=0))).code == "impossible-request"
