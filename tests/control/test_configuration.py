"""Control applies the stored documents at every start and while it runs; running jobs are only affected on request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from corral.control.configuration import DescribedEngines
from corral.control.core.configuration import planner_settings, scheduler_policy
from corral.control.guarantee_check import broken_guarantees
from corral.control.initial_configuration import BY_FILE, seed
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.model.configuration import canonical, configuration_of, read_configuration
from corral.model.document_revisions import DocumentChange
from corral.model.inventory import Inventory
from corral.scheduler import Policy, find_policy
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import identity, load_document, load_site
from tests.control.harness import House, PaperEngine, short

RESEARCH = "kind: Queue\nname: research\nlimit: {devices: 4}\n"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await made.open()
    yield made
    await made.close()


class Described:
    """An engine whose nodes come from a document, although nothing here describes them."""

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        return ()

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        return frozenset({"local"})

    def completed(self, inventory: Inventory) -> Inventory:
        return inventory


async def _apply(house: House, text: str, *, preempt: bool = False) -> None:
    loaded = load_document(text)
    now = await house.store.all_documents()
    names = {identity(each) for each in loaded}
    others = [each for each in now.revisions if (each.kind, each.name) not in names]
    after = configuration_of([*loaded, *read_configuration(others).queues.values()])
    await house.store.put_documents(
        [DocumentChange(*identity(each), canonical(each)) for each in loaded],
        actor="root",
        at=1.0,
        queues=after.queue_records(),
        preempt=preempt,
    )


async def _in_research(house: House, *devices: int) -> list[JobId]:
    return [
        await house.submit(short(f"job{number}", devices=each, queue="research")) for number, each in enumerate(devices)
    ]


async def test_a_queue_that_is_applied_bounds_its_jobs_without_a_restart(house: House) -> None:
    await house.begin()
    await _apply(house, RESEARCH)
    first, second = await _in_research(house, 4, 2)
    await house.until(first, "running")
    assert (await house.until(second, "waiting")).phase == "waiting"
    await _apply(house, RESEARCH.replace("4", "6"))
    await house.until(second, "running")


async def test_the_documents_are_taken_over_by_the_next_control(house: House) -> None:
    await house.begin()
    await _apply(house, f"{RESEARCH}---\nkind: Policy\norder: fifo\nbackfill: false\n")
    await house.abandon()
    control = await house.begin()
    assert (control.policy.name, control.policy.backfill) == ("fifo", False)
    assert control.world.cluster.queues.specs["research"].limit == {"devices": 4}


async def test_a_policy_is_followed_on_line_and_its_deletion_too(house: House) -> None:
    control = await house.begin()
    first = control.policy
    await _apply(house, "kind: Policy\norder: deadline\n")
    await house.until(await house.submit(short("one", end_with=0)), "succeeded")
    assert control.policy.name == "deadline"
    await house.store.put_documents([DocumentChange("Policy", "default", None)], actor="root", at=2.0)
    await house.until(await house.submit(short("two", end_with=0)), "succeeded")
    assert control.policy == first


async def test_a_document_that_cannot_be_read_leaves_what_is_in_force(house: House) -> None:
    control = await house.begin()
    await _apply(house, RESEARCH)
    await house.until(await house.submit(short("first", end_with=0)), "succeeded")
    strange = DocumentChange("Queue", "strange", '{"kind":"Queue","name":"strange","ofAnotherVersion":1}')
    await house.store.put_documents([strange], actor="root", at=2.0)
    await house.until(await house.submit(short("one", end_with=0)), "succeeded")
    assert set(control.world.cluster.queues.specs) == {"default", "research"}


async def test_a_policy_that_is_not_installed_here_stops_nothing_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str = "fair") -> Policy:
        if name == "fifo":
            raise InvalidInput("unknown-policy", "There is no policy 'fifo'.")
        return find_policy(name)

    monkeypatch.setattr("corral.control.core.configuration.find_policy", installed)
    control = await house.begin()
    await _apply(house, f"kind: Policy\norder: fifo\n---\n{RESEARCH}")
    await house.until(await house.submit(short("one", end_with=0)), "succeeded")
    assert control.policy.name == find_policy().name
    assert control.world.cluster.queues.specs["research"].limit == {"devices": 4}


async def test_jobs_above_a_lowered_limit_run_on_unless_they_were_told_to_yield(house: House) -> None:
    await house.begin()
    await _apply(house, RESEARCH.replace("4", "8"))
    jobs = await _in_research(house, 4, 2, 1)
    for job in jobs:
        await house.until(job, "running")
    await _apply(house, RESEARCH)
    await house.until(await house.submit(short("between", end_with=0)), "succeeded")
    assert not house.engine.stopped
    await _apply(house, RESEARCH.replace("4", "5"), preempt=True)
    yielded = await house.until(jobs[1], "waiting")
    assert yielded.run.yielded is not None and yielded.run.yielded.rule == "configuration"
    assert {(await house.until(job, "running", "waiting")).phase for job in (jobs[0], jobs[2])} == {"running"}


async def test_an_elastic_job_above_a_lowered_limit_gives_up_tasks_and_runs_on(house: House) -> None:
    await house.begin()
    await _apply(house, RESEARCH.replace("4", "8"))
    job = await house.submit(short("elastic", replicas={"min": 2, "max": 6}, devices=1, queue="research"))
    await house.until(job, "running")
    await _apply(house, RESEARCH.replace("4", "3"), preempt=True)
    while len(await _placed(house, job)) > 3:
        await house.store.wakeup.wait(0.05)
    assert await _placed(house, job) == [0, 1, 2]
    (receipt,) = (await house.store.receipts(job=job)).items
    assert (receipt.rule, receipt.devices) == ("configuration", 3)
    assert [task.index for task in receipt.tasks] == [3, 4, 5]
    assert (await house.until(job, "running")).run.attempt == 0


async def _placed(house: House, job: JobId) -> list[int]:
    live = await house.store.load_job(job)
    assert live is not None
    return sorted(key.index for key, task in live.tasks.items() if task.holds)


async def test_the_check_names_what_is_held_by_right_and_leaves_the_cluster_alone(house: House) -> None:
    control = await house.begin()
    await _apply(house, RESEARCH.replace("4", "8") + "deserved: {devices: 6}\n")
    for job in await _in_research(house, 4, 2):
        await house.until(job, "running")
    cluster, before = control.world.cluster, control.configured.now
    digest = cluster.digest()

    def broken(text: str) -> list[tuple[str, int, int]]:
        found = broken_guarantees(cluster, before, configuration_of(load_document(text)), 10.0)
        return [(each.message.partition(", and ")[2], each.needed, each.available) for each in found]

    assert broken(RESEARCH.replace("4", "8") + "deserved: {devices: 6}\nweight: 3\n") == []
    assert broken(RESEARCH + "deserved: {devices: 3}\n") == [
        ("what it deserves would be 3: they may be reclaimed", 6, 3),
        ("its limit would be 4: 1 job would yield", 6, 4),
    ]
    assert cluster.digest() == digest


async def test_the_check_knows_which_cells_are_owned_and_which_can_be_had(house: House) -> None:
    control = await house.begin()
    await _apply(house, "kind: VirtualCluster\nname: vision\ncells: [{level: node, count: 2}]\n")
    for name in ("one", "two"):
        await house.until(await house.submit(short(name, devices=4, queue="vision")), "running")

    def broken(text: str) -> list[tuple[str, str, int, int, bool]]:
        found = broken_guarantees(
            control.world.cluster, control.configured.now, configuration_of(load_document(text)), 10.0
        )
        return [(each.queue, each.level, each.needed, each.available, each.preemptible) for each in found]

    own = "kind: VirtualCluster\nname: vision\ncells: [{level: node, count: 2}]\n"
    assert broken(own) == []
    assert broken(own.replace("count: 2", "count: 1")) == [("vision", "node", 2, 1, True)]
    assert broken(own.replace("count: 2", "count: 3")) == [("", "node", 1, 0, False)]
    assert broken(own.replace("level: node", "level: island")) == [
        ("vision", "", 2, 0, False),
        ("vision", "node", 2, 0, True),
    ]


async def test_no_more_is_promised_than_the_machines_that_were_found_have(house: House) -> None:
    control = await house.begin()

    def broken(devices: int) -> list[tuple[str, int, int]]:
        text = f"kind: Queue\nname: a\ndeserved: {{devices: {devices}}}\n---\n{RESEARCH}deserved: {{devices: 4}}\n"
        found = broken_guarantees(
            control.world.cluster, control.configured.now, configuration_of(load_document(text)), 10.0
        )
        return [(each.level, each.needed, each.available) for each in found if not each.preemptible]

    assert broken(4) == [] and broken(5) == [("devices", 9, 8)]


async def test_nodes_that_a_document_drops_stay_closed_until_their_tasks_end(house: House) -> None:
    house.presenter = Described()
    control = await house.begin()
    job = await house.submit(short("stays", devices=4))
    await house.until(job, "running")
    (held,) = control.world.held_nodes()
    house.engine.drop_node(held)
    await house.until(await house.submit(short("other", devices=4)), "running")
    late = await house.submit(short("late", devices=4))
    await house.until(late, "waiting")
    row = await house.store.node(held)
    assert row is not None and not row.node.ready and "no Cluster document" in row.node.ready_reason
    await house.abandon()
    control = await house.begin()
    assert control.machines.removed == {held} and control.machines.lost(held, house.clock.now() + 1e6) == ""
    house.engine.end(next(each for each in house.engine.running if str(job) in each), 0)
    await house.until(job, "succeeded")
    await house.until(await house.submit(short("after", end_with=0)), "succeeded")
    assert await house.store.node(held) is None and control.machines.removed == frozenset()


async def test_a_document_puts_the_nodes_that_an_engine_found_into_racks(house: House) -> None:
    house.presenter = DescribedEngines({})
    control = await house.begin()
    wide = await house.submit(short("wide", devices=4, replicas=2, topology={"required": "rack"}))
    await house.until(wide, "waiting")
    text = "kind: Cluster\nnode: {devices: {count: 4, model: A100}}\nracks: {r9: {nodes: [node0, node1, node7]}}\n"
    await _apply(house, text)
    await house.until(wide, "running")
    nodes = control.machines.nodes
    assert {name: node.cells for name, node in nodes.items()} == {
        "local/node0": (("rack", "r9"),), "local/node1": (("rack", "r9"),)
    }  # fmt: skip
    assert {device.model for node in nodes.values() for device in node.devices} == {"A100"}
    (found,) = control.presenter.described({})
    assert [node.cells for node in found.nodes] == [(("rack", "rack0"),), (("rack", "rack1"),)]


CLUSTER = "kind: Cluster\nnode: {devices: 4}\nnodes: [node1, node2]\n"


async def _seed(house: House, text: str | None) -> str:
    given = [] if text is None else load_site(text, filename="cluster.yaml")
    return await seed(house.store, given, file="cluster.yaml", clock=house.clock)


async def _stored(house: House) -> tuple[int, str]:
    found = await house.store.document("Cluster", "local")
    assert found is not None
    return found.revision, found.actor


async def test_a_file_is_the_first_revision_and_the_same_file_no_other(house: House) -> None:
    assert await _seed(house, CLUSTER) == "" and await _seed(house, "# the same\n" + CLUSTER) == ""
    assert await _stored(house) == (1, BY_FILE)
    assert await _seed(house, None) == ""
    assert [queue.name for queue in await house.store.queues()] == ["default"]


async def test_a_changed_file_is_taken_over_while_nobody_else_changed_the_document(house: House) -> None:
    await _seed(house, CLUSTER)
    said = await _seed(house, CLUSTER.replace("node2]", "node2, node3]"))
    assert said == "Cluster/local has changed in cluster.yaml: it is now at revision 2."
    assert await _stored(house) == (2, BY_FILE)


async def test_a_document_that_somebody_applied_wins_over_the_file_and_the_start_says_so(house: House) -> None:
    await _seed(house, CLUSTER)
    await _apply(house, CLUSTER.replace("4", "8"))
    said = await _seed(house, CLUSTER)
    assert "the stored document applies: root made its revision 2" in said and "`corral apply cluster.yaml`" in said
    assert await _stored(house) == (2, "root")


async def test_a_document_that_somebody_deleted_does_not_come_back_with_the_file(house: House) -> None:
    await _seed(house, CLUSTER)
    await house.store.put_documents([DocumentChange("Cluster", "local", None)], actor="root", at=2.0)
    assert "root deleted it in its revision 2" in await _seed(house, CLUSTER)
    assert (await house.store.documents()).items == []


async def test_every_document_of_a_file_is_seeded_and_decided_for_itself(house: House) -> None:
    both = f"{CLUSTER}---\n{RESEARCH}"
    assert await _seed(house, both) == ""
    assert [queue.name for queue in await house.store.queues()] == ["default", "research"]
    await _apply(house, RESEARCH.replace("4", "2"))
    said = await _seed(house, both.replace("[node1, node2]", "[node1, node2, node3]"))
    assert "Cluster/local has changed" in said and "Queue/research differs" in said
    assert (await _stored(house))[0] == 2


async def test_a_cluster_that_names_no_kind_is_read_as_one(house: House) -> None:
    assert await _seed(house, CLUSTER.replace("kind: Cluster\n", "")) == ""
    assert await _stored(house) == (1, BY_FILE)


async def test_a_changed_file_that_breaks_a_quota_is_not_taken_over(house: House) -> None:
    await _seed(house, CLUSTER)
    await _apply(house, "kind: Queue\nname: research\ndeserved: {devices: 8}\n")
    said = await _seed(house, CLUSTER.replace("[node1, node2]", "[node1]"))
    assert said.startswith("cluster.yaml was not taken over") and "8" in said and "4" in said
    assert await _stored(house) == (1, BY_FILE)


def test_a_policy_document_says_what_the_scheduler_does() -> None:
    default = find_policy()
    assert scheduler_policy(None, default) is default
    (document,) = load_document("kind: Policy\norder: fair\npreemption: false\nconsolidation: true\n")
    policy = scheduler_policy(document, default)  # type: ignore[arg-type]
    assert (policy.fair, policy.preemption, policy.consolidation, policy.backfill) == (True, False, True, True)


def test_the_preset_hived_beside_two_clusters_is_refused_by_its_name() -> None:
    cells = "cellTypes: {box: {child: V100, count: 4, node: true}}\ncells: [{type: box, name: n1}]\n"
    clusters = [f"kind: Cluster\nengine: {engine}\n{cells}" for engine in ("east", "west")]
    assert planner_settings(find_policy(), configuration_of(load_document("\n---\n".join(clusters)))) is None
    text = "\n---\n".join([*clusters, "kind: Policy\npreset: hived\n"])
    with pytest.raises(
        InvalidInput, match="one Cluster document of cell types; those there are: east, west"
    ) as refused:
        planner_settings(find_policy("hived"), configuration_of(load_document(text)))
    assert refused.value.code == "hived-needs-one-cluster"


def test_a_preset_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (document,) = load_document("kind: Policy\npreset: hived\n")

    def none_found(name: str = "") -> Policy:
        raise InvalidInput("unknown-policy", f"There is no policy {name!r}.")

    monkeypatch.setattr("corral.control.core.configuration.find_policy", none_found)
    with pytest.raises(InvalidInput):
        scheduler_policy(document, find_policy())  # type: ignore[arg-type]
