"""Who reads which series, and what control is asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.kernel.errors import CorralError, Forbidden, InvalidInput
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.job_figures import JOB_FIGURES
from corral.model.series import MOST_POINTS, SeriesQuestion
from corral.service.actor import Actor
from corral.service.control_client import NoControl
from corral.service.service import Service
from tests.service.conftest import ANN, ROOT
from tests.store.makers import new_job


class Asked(NoControl):
    """Control, which has no series and remembers the questions for them."""

    def __init__(self) -> None:
        self.questions: list[SeriesQuestion] = []

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        assert path == "/series"
        self.questions.append(msgspec.convert(body, SeriesQuestion))
        return [[], 3]


@pytest.fixture
def control(service: Service) -> Asked:
    made = Asked()
    service.context.control = made
    return made


async def test_a_jobs_series_are_for_its_owner_its_queues_managers_and_administrators(
    service: Service, control: Asked
) -> None:
    job = new_job(user="ann", queue="research")
    await service.context.store.submit(job)
    bob = Actor("bob", token_id="t-bob")
    manager = msgspec.structs.replace(bob, manages=("research",))
    for actor in (ANN, ROOT, manager):
        assert (await service.series.report(actor, (), job=job.id)).left_out == 3
        assert control.questions[-1].job == job.id and not control.questions[-1].families
    itself = Actor("ann", role="job", kind="job", token_id="t-job", job=job.id)
    for actor in (bob, msgspec.structs.replace(bob, manages=("other",)), itself):
        with pytest.raises(Forbidden):
            await service.series.report(actor, ("corral_job_loss",), job=job.id)
    assert len(control.questions) == 3


@pytest.mark.parametrize("name", [*FAMILIES, *JOB_FIGURES])
async def test_without_a_job_no_family_tells_of_jobs_and_those_of_machines_are_for_administrators(
    service: Service, control: Asked, name: str
) -> None:
    labels = {*FAMILIES[name].labels} if name in FAMILIES else {"job"}
    if labels & {"job", "job_instance_id"}:
        with pytest.raises(InvalidInput, match="name the job"):
            await service.series.report(ROOT, (name,))
        return
    await service.series.report(ROOT, (name,))
    if labels <= {"queue", "resource", "phase", "reason", "rule", "result", "engine", "state", "of"}:
        await service.series.report(ANN, (name,))
    else:
        with pytest.raises(Forbidden):
            await service.series.report(ANN, (name,))


@pytest.mark.parametrize(
    ("asked", "step"),
    [
        ({}, 15),
        ({"begin": "2023-11-14T20:00:00Z", "end": "2023-11-14T21:46:40Z"}, 30),
        ({"begin": "2023-11-01", "end": "2023-11-01T01:00:00Z"}, 600),
        ({"begin": "2023-08-15"}, 28_800),
        ({"begin": "2001-06-15"}, 28 * 86_400),
        ({"step": "1h"}, 3600),
    ],
)
async def test_the_step_follows_from_the_period_unless_it_is_given(
    service: Service, control: Asked, asked: dict[str, str], step: int
) -> None:
    answer = await service.series.report(ROOT, ("corral_jobs",), labels=("queue=a=b",), **asked)
    (question,) = control.questions
    assert answer.step == question.step == step and question.labels == {"queue": "a=b"}
    assert 0 < question.steps <= MOST_POINTS and question.end >= question.begin


@pytest.mark.parametrize(
    ("families", "asked", "said"),
    [
        ((), {}, "Name a job or a family"),
        (("loss",), {}, "There is no metric 'loss'"),
        (("corral_jobs",) * 21, {}, "At most 20 families"),
        (("corral_jobs",), {"labels": ("queue",)}, "NAME=VALUE"),
        (("corral_jobs",), {"begin": "soon"}, "from is a time"),
        (("corral_jobs",), {"end": "0001-01-01"}, "to is a time"),
        (("corral_jobs",), {"begin": "2001-09-02", "end": "2001-09-01"}, "has no length"),
        (("corral_jobs",), {"step": "soon"}, "is not a duration"),
        (("corral_jobs",), {"step": "20s"}, "multiple of 15 s"),
        (("corral_jobs",), {"step": "0"}, "multiple of 15 s"),
        (("corral_jobs",), {"step": "15s", "begin": "2023-10-01"}, "at most 1500 steps"),
    ],
)
async def test_a_question_without_meaning_is_refused_in_a_sentence(
    service: Service, control: Asked, families: tuple[str, ...], asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(CorralError, match=said) as refused:
        await service.series.report(ROOT, families, **asked)
    assert refused.value.message.endswith(".") and not control.questions
