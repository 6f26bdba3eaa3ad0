"""A job that names a pinned cell of its queue goes only there, whatever guest is in it."""

from __future__ import annotations

import pytest
from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.configuration import configuration_of
from corral.model.plan import Rule
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import could_ever_fit
from corral.spec.configuration_file import load_document
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role
from tests.scheduler.test_hived_decides import SITE, HivedLife

FAST, SLOW = "local|node:local/n2", "local|node:local/n3"
LAB = QueueSpec("lab", cells=(CellQuota("node", 1),), pinned_cells=(FAST, SLOW), pinned_names=("fast", "slow"))


def _life(*queues: QueueSpec) -> Life:
    return Life([node(f"n{at}", 4) for at in range(4)], [LAB, QueueSpec("guests"), *queues])


def _named(job: str, cell: str, tasks: int = 4, **fields: object) -> GangRequest:
    minimum = fields.pop("minimum", None)
    ask = role(tasks, 1, minimum=minimum)  # type: ignore[arg-type]
    return gang(job, ask, pinned_cell=cell, **({"queue": "lab"} | fields))  # type: ignore[arg-type]


def _nodes(life: Life, job: str) -> set[str]:
    return {hold.node.removeprefix("local/") for hold in life.cluster.holds(JobId(job)).values()}


@pytest.mark.parametrize(("cell", "place"), [("fast", "n2"), ("slow", "n3"), (SLOW, "n3")])
def test_it_goes_to_the_cell_that_it_names_and_has_a_right_to_it(cell: str, place: str) -> None:
    life = _life()
    life.submit(_named("job", cell, 2))
    life.settle(0.0)
    assert _nodes(life, "job") == {place}
    assert life.cluster.gangs.by_job[JobId("job")].guaranteed


def test_it_waits_for_that_cell_though_others_of_its_queue_are_free() -> None:
    life = _life()
    life.submit(_named("first", "fast", 3), _named("second", "fast", 2, at=1.0))
    life.settle(1.0)
    assert set(life.running) == {"first"}
    entry = life.queue.first(JobId("second"))
    assert entry is not None and entry.reported is not None
    told = entry.reported.binding
    assert told.code == "pinned-cell"
    assert told.message == "Needs 2 devices in the pinned cell fast; 1 of 4 are free there."
    life.end("first")
    life.settle(2.0)
    assert _nodes(life, "second") == {"n2"}


def test_guests_in_it_yield_and_nobody_else_does() -> None:
    life = _life()
    life.submit(*(gang(f"guest{at}", role(1, 4), at=float(at), queue="guests", priority=500) for at in range(4)))
    life.settle(0.0)
    (sitting,) = [job for job in life.running if _nodes(life, job) == {"n2"}]
    life.submit(_named("job", "fast", at=9.0))
    evictions = life.cycle(9.0).evictions
    assert [(each.job, each.rule) for each in evictions] == [(sitting, Rule.GUARANTEE)]
    life.yielded()
    life.settle(10.0)
    assert _nodes(life, "job") == {"n2"}


def test_a_stronger_job_of_the_queue_takes_it_from_a_weaker_one() -> None:
    life = _life()
    life.submit(_named("weak", "fast", priority=1))
    life.settle(0.0)
    life.submit(_named("strong", "fast", priority=100, at=1.0))
    assert [(each.job, each.rule) for each in life.cycle(1.0).evictions] == [("weak", Rule.PRIORITY)]
    life.yielded()
    life.settle(2.0)
    assert _nodes(life, "strong") == {"n2"}


def test_a_queue_below_the_owner_may_name_it_and_others_may_not() -> None:
    life = _life(QueueSpec("team", "lab"))
    life.submit(_named("below", "slow", queue="team"), _named("foreign", "slow", queue="guests", at=1.0))
    life.settle(1.0)
    assert _nodes(life, "below") == {"n3"} and "foreign" not in life.running
    refused = could_ever_fit(life.cluster, _named("foreign", "slow", queue="guests"))
    assert refused is not None
    assert refused.binding.message == "The queue guests has no pinned cell slow; it has none."
    wrong = could_ever_fit(life.cluster, _named("wrong", "quick"))
    assert wrong is not None and wrong.binding.code == "no-pinned-cell"
    assert "those it has are fast, slow" in wrong.binding.message
    large = could_ever_fit(life.cluster, _named("large", "fast", 5))
    assert large is not None and large.binding.message == "Needs 5 devices in the pinned cell fast, which has 4."
    assert could_ever_fit(life.cluster, _named("fits", "fast", 4)) is None


def test_an_elastic_job_takes_as_much_of_it_as_there_is() -> None:
    life = _life()
    life.submit(_named("first", "fast", 1), _named("elastic", "fast", 8, minimum=2, at=1.0))
    life.settle(1.0)
    assert _nodes(life, "elastic") == {"n2"} and life.sizes()["elastic"] == 3
    life.end("first")
    life.settle(2.0)
    assert life.sizes()["elastic"] == 4 and _nodes(life, "elastic") == {"n2"}


def test_the_names_are_those_of_the_documents() -> None:
    text = (
        "kind: Cluster\ncellTypes: {box: {child: V100, count: 4, node: true}}\n"
        "cells: [{type: box, name: a}, {type: box, name: b, pinned: mine}]\n---\n"
        "kind: VirtualCluster\nname: lab\npinnedCells: [mine]\n"
    )
    specs = {spec.name: spec for spec in configuration_of(load_document(text)).queue_specs()}
    assert (specs["lab"].pinned_names, specs["lab"].pinned_cells) == (("mine",), ("local|node:local/b",))


# -- under HiveD's preset ---------------------------------------------------------------------------------------------


BOTH = SITE.replace(
    "prod: {virtualCells: [{cellType: RACK.BOX, cellNumber: 2}]}",
    "prod: {virtualCells: [{cellType: RACK.BOX, cellNumber: 2}], pinnedCells: [{pinnedCellId: PIN}]}",
).replace("  own: {pinnedCells: [{pinnedCellId: PIN}]}\n", "")


def test_under_the_preset_hived_it_goes_there_as_well() -> None:
    life = HivedLife(BOTH)
    plain = gang("plain", role(1, 4), queue="prod", priority=10)
    life.submit(plain, structs.replace(plain, job=JobId("named"), pinned_cell="PIN"))
    life.submit(structs.replace(plain, job=JobId("wrong"), pinned_cell="OTHER"))
    life.settle()
    assert life.nodes_of("named") == ["n2"] and life.nodes_of("plain") != ["n2"]
    assert "wrong" not in life.running
    life.submit(structs.replace(plain, job=JobId("later"), pinned_cell="PIN", submitted_at=5.0))
    life.settle(5.0)
    assert "later" not in life.running, "other cells are free, and it does not want them"


@pytest.mark.parametrize("lazily", [True, False])
def test_a_job_says_itself_that_it_would_rather_run_on_as_a_guest(lazily: bool) -> None:
    life = HivedLife()
    weak = [
        gang(f"weak{at}", role(1, 4), queue="prod", priority=1, at=float(at), lazy_preemption=lazily) for at in (0, 1)
    ]
    life.submit(*weak)
    life.settle(1.0)
    life.submit(gang("strong", role(1, 4), queue="prod", priority=100, at=2.0))
    found = life.cycle(2.0)
    if lazily:
        assert not found.evictions and len(found.placements[0].placement.demoted) == 1
        assert len(life.running) == 3
    else:
        assert [each.rule for each in found.evictions] == [Rule.PRIORITY]
