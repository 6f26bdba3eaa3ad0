"""Ranks follow the topology order, rotated so that the leading task is first; every task sees the same order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.frameworks import Gang
from tests.frameworks.gangs import gang, job, render


@st.composite
def gangs(draw: st.DrawFn, job_type: str = "pytorch") -> Gang:
    names = draw(st.lists(st.sampled_from(["worker", "master", "ps", "w2"]), min_size=1, max_size=3, unique=True))
    sizes = {name: draw(st.integers(1, 6)) for name in names}
    processes = {name: draw(st.integers(1, 3)) for name in names}
    roles = [{"name": n, "replicas": sizes[n], "processesPerReplica": processes[n]} for n in names]
    tasks = [f"{name}-{index}" for name in names for index in range(sizes[name])]
    return gang(job(job_type, roles), *draw(st.permutations(tasks)))


@given(gangs())
def test_ranks_are_a_permutation_of_the_tasks(members: Gang) -> None:
    assert sorted(members.ranks.values()) == list(range(len(members.placement.tasks)))
    assert set(members.ranks) == {task.key for task in members.placement.tasks}


@given(gangs())
def test_the_lowest_index_of_the_first_role_is_rank_0(members: Gang) -> None:
    assert members.leader == (members.job.spec.roles[0].name, 0)
    assert members.ranks[members.leader] == 0


@given(gangs())
def test_neighbours_in_topology_order_are_neighbours_in_the_ring_of_ranks(members: Gang) -> None:
    order = [task.key for task in members.placement.tasks]
    for before, after in zip(order, order[1:] + order[:1], strict=True):
        assert (members.ranks[before] + 1) % len(order) == members.ranks[after]


@given(gangs())
def test_first_processes_follow_the_ranks_without_gaps_or_overlaps(members: Gang) -> None:
    taken = [
        members.first_process[task.key] + local
        for task in members.tasks
        for local in range(members.role(task).processes)
    ]
    assert taken == list(range(members.processes))


@given(gangs("shell"))
def test_all_tasks_agree_on_the_world(members: Gang) -> None:
    rendered = render(members)
    assert {command.env["CORRAL_WORLD_SIZE"] for command in rendered.values()} == {str(len(rendered))}
    assert sorted(int(command.env["CORRAL_RANK"]) for command in rendered.values()) == list(range(len(rendered)))


@given(gangs())
def test_role_ranks_begin_at_the_lowest_index_of_each_role(members: Gang) -> None:
    for role in members.job.spec.roles:
        mine = members.members(role.name)
        assert mine[0].index == 0
        assert [members.role_ranks[key] for key in mine] == list(range(len(mine)))


def test_sparse_indexes_of_an_elastic_job_are_ranked_without_gaps() -> None:
    document = job("shell", [{"name": "worker"}], replicaSpec={"replicas": 3, "minReplicas": 1, "maxReplicas": 8})
    members = gang(document, "worker-7", "worker-0", "worker-3")
    assert {str(key): rank for key, rank in members.ranks.items()} == {"worker-0": 0, "worker-3": 1, "worker-7": 2}
