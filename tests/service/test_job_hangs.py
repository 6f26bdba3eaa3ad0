"""Who sees that a job hung, who reads its bundles, and what a rule for hangs may say."""

from __future__ import annotations

import pytest

from corral.kernel.errors import Forbidden, InvalidInput, NotFound
from corral.model.hangs.records import HUNG
from corral.model.hangs.scores import RankScore, RankScores
from corral.service.service import Service
from corral.spec.job_reader import load_job
from corral.store.hang_records import HangTold
from tests.service.conftest import ANN, BOB, ROOT, START, FakeControl, job_text
from tests.store.makers import new_job

NAME = "20261128-190501"


async def hung(service: Service) -> str:
    """A job of Ann that hung; its id."""
    job = new_job(user="ann")
    await service.context.store.submit(job)
    data = {
        "bundle": NAME,
        "bytes": 9,
        "odd": ["worker-2"],
        "collective": "all_reduce",
        "number": 3,
        "why": "It is behind.",
    }
    await service.context.store.tell_of_hang(HangTold(job.id, HUNG, "It hung.", data), START, actor="hang-watch")
    return job.id


async def test_everybody_sees_who_was_odd_and_those_who_may_enter_its_tasks_read_the_bundle(
    service: Service, fake_control: FakeControl
) -> None:
    job = await hung(service)
    fake_control.answers[f"/hangs/{job}/{NAME}"] = "stacks"
    for actor in (ANN, BOB):
        (found,) = (await service.job_hangs.of_job(actor, job)).items
        assert (found.odd, found.collective, found.number, found.bundle) == (("worker-2",), "all_reduce", 3, NAME)
    for actor in (ANN, ROOT):
        assert await service.job_hangs.bundle(actor, job, NAME) == b'"stacks"'
    with pytest.raises(Forbidden):
        await service.job_hangs.bundle(BOB, job, NAME)
    lines = (await service.context.store.audit()).items
    noted = [(each.actor, each.allowed, each.detail.get("bundle")) for each in lines if each.action == "job.exec"]
    assert noted == [("bob", False, None), ("root", True, NAME), ("ann", True, NAME)]


@pytest.mark.parametrize("name", ["../../key", "latest", "", "20261128-190501.tar.gz"])
async def test_control_is_asked_for_well_formed_names_alone(service: Service, name: str) -> None:
    job = await hung(service)
    with pytest.raises(NotFound, match="A bundle is called like"):
        await service.job_hangs.bundle(ANN, job, name)


async def test_the_scores_of_ranks_are_control_s(service: Service, fake_control: FakeControl) -> None:
    job = await hung(service)
    told = [{"task": "worker-1", "node": "local/n1", "step": 7, "score": 0.5}]
    fake_control.answers[f"/health/ranks/{job}"] = {"items": told}
    assert await service.job_hangs.ranks(BOB, job) == RankScores((RankScore("worker-1", "local/n1", 7.0, score=0.5),))


@pytest.mark.parametrize(
    ("rule", "refusal"),
    [
        ("{atLeast: 4s}", "atLeast is at least 5s, got 4s"),
        ("{atLeast: 1h, atMost: 1m}", r"atMost is at least atLeast \(3600s\), got 60s"),
        ("{action: stop}", "hangs"),
    ],
)
async def test_a_rule_out_of_bounds_is_refused(service: Service, rule: str, refusal: str) -> None:
    with pytest.raises(InvalidInput, match=refusal):
        await service.configuration.apply(ROOT, f"kind: Queue\nname: lab\nhangs: {rule}\n")


def test_a_job_s_own_bound_is_read_in_both_forms() -> None:
    document = load_job(job_text(more="hangAfter: 30m\n"))
    assert document.spec.hang_after_seconds == 1800
    assert load_job(document.to_json()).spec.hang_after_seconds == 1800
