"""The goodput of a job is what its paper says, and elastic jobs get the sizes with the highest sum of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.ids import JobId, TaskKey
from corral.scheduler import Policy, WorkReported
from corral.scheduler.policy.goodput import EXPLORED, Goodput, StepTime, efficiency, fit, with_profile
from corral.scheduler.policy.goodput_sizes import GoodputSizes
from corral.scheduler.policy.history import JobHistory
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

GOODPUT = Policy("goodput", preemption=True, allot=GoodputSizes())


def test_the_efficiency_of_a_batch_is_that_of_pollux_equation_7() -> None:
    assert efficiency(1000.0, 100.0, 100.0) == 1.0
    assert efficiency(1000.0, 100.0, 200.0) == pytest.approx(1100 / 1200)
    assert efficiency(0.0, 128.0, 1024.0) == pytest.approx(1 / 8), "without noise a larger batch brings nothing more"
    assert efficiency(1e12, 128.0, 1024.0) == pytest.approx(1.0), "with much noise it brings as much as it has examples"


def test_one_measurement_promises_perfect_scaling_and_a_second_one_corrects_it() -> None:
    assert fit({(2, 1): 10.0}) == StepTime(0.2)
    found = fit({(2, 1): 10.0, (4, 1): 16.0})
    assert found is not None
    assert [found.at(devices, 1) for devices in (2, 4, 8)] == pytest.approx([0.2, 0.25, 0.35])
    assert fit({}) is None and fit({(2, 1): 0.0}) is None


STEPS = st.builds(StepTime, *[st.floats(0.01, 10.0)] * 3)
SIZES = st.lists(st.tuples(st.integers(1, 64), st.integers(1, 2)), min_size=1, max_size=20, unique=True)


@given(STEPS, SIZES)
def test_measurements_of_a_model_are_fitted_exactly(step: StepTime, sizes: list[tuple[int, int]]) -> None:
    found = fit({size: size[0] / step.at(*size) for size in sizes})
    assert found is not None
    for size in sizes:
        assert found.at(*size) == pytest.approx(step.at(*size), rel=1e-3)


@given(
    st.dictionaries(st.tuples(st.integers(1, 64), st.integers(1, 8)), st.floats(1e-9, 1e15), min_size=1, max_size=64)
)
def test_any_measurements_give_times_above_zero(throughput: dict[tuple[int, int], float]) -> None:
    found = fit(throughput)
    assert found is None or (min(found) >= 0 and found.at(1, 1) + found.at(1, 2) > 0)


def test_the_goodput_of_a_job_with_little_noise_grows_ever_more_slowly() -> None:
    history = JobHistory(throughput={(4, 1): 400.0}, gradient_noise=100.0, batch_size=400.0)
    found = Goodput.of(history, 1, 8)
    assert found is not None and found.most == 4 * EXPLORED
    assert [found.at(n) for n in (0, 1, 2, 4)] == pytest.approx([0, 100, 200 * 200 / 300, 400 * 200 / 500])
    without_noise = Goodput.of(JobHistory(throughput={(4, 1): 400.0}), 1, 8)
    assert without_noise is not None and without_noise.at(8) == pytest.approx(800.0)


def test_two_nodes_cost_what_was_measured_on_two_nodes() -> None:
    history = JobHistory(throughput={(4, 1): 400.0, (8, 2): 400.0})
    found = Goodput.of(history, 1, 4)
    assert found is not None
    assert [found.at(devices) for devices in (4, 8)] == pytest.approx([400.0, 400.0])


def report(life: Life, job: str, at: float, **values: float) -> None:
    life.planner.fold(WorkReported(JobId(job), at, **values))


def test_devices_go_to_the_job_whose_gradients_are_noisy() -> None:
    life = Life([node("n1", devices=8)], policy=GOODPUT)
    for name in ("calm", "noisy"):
        life.submit(gang(name, role(8, minimum=1)))
    life.settle(0.0)
    life.settle(1.0)
    sizes = life.sizes()
    assert sum(sizes.values()) == 8, "nothing is known yet: as many as fit"
    for name, noise in (("calm", 10.0), ("noisy", 10_000.0)):
        size = sizes[name]
        report(life, name, 30.0, throughput=100.0 * size, batch_size=64.0 * size, gradient_noise=noise)
    for now in (60.0, 120.0):
        life.settle(now)
    assert life.sizes()["noisy"] > life.sizes()["calm"]
    assert sum(life.sizes().values()) <= 8


def test_a_job_that_does_not_scale_gives_up_what_brings_it_nothing() -> None:
    life = Life([node("n1", devices=8)], policy=GOODPUT)
    life.submit(gang("el", role(8, minimum=2)))
    life.settle(0.0)
    assert life.sizes() == {"el": 8}
    report(life, "el", 30.0, throughput=110.0)
    life.settle(60.0)
    assert life.sizes() == {"el": 8}, "one measurement says nothing of other sizes"
    life.give_way(JobId("el"), tuple(TaskKey("worker", index) for index in range(4, 8)))
    report(life, "el", 95.0, throughput=109.0)
    life.settle(120.0)
    assert life.sizes() == {"el": 2}


def test_a_job_without_reports_or_devices_is_left_to_the_room() -> None:
    life = Life([node("n1", devices=8)], policy=GOODPUT)
    life.submit(gang("silent", role(4, minimum=1)))
    life.settle(0.0)
    life.settle(60.0)
    assert life.sizes() == {"silent": 4}


def test_sizes_settle_although_measurements_scatter() -> None:
    life = Life([node("n1", devices=8)], policy=GOODPUT)
    for name in ("a", "b"):
        life.submit(gang(name, role(8, minimum=1)))
    life.settle(0.0)
    seen = []
    for step in range(10):
        for name, speed in (("a", 100.0 + step % 3), ("b", 102.0 - step % 3)):
            size = life.sizes()[name]
            report(life, name, 60.0 * step + 40, throughput=speed * size, batch_size=64.0 * size, gradient_noise=500.0)
        life.settle(60.0 * step + 60)
        seen.append(tuple(life.sizes().values()))
    assert len(set(seen[4:])) == 1 and abs(seen[-1][0] - seen[-1][1]) <= 2


def test_t2_a_job_that_suffers_on_several_nodes_gets_one_and_a_job_that_does_not_spreads() -> None:
    """T2 of scheduling.md: the slow-down by placement decides, as VGG's and ResNet's do in Themis' figure 2."""
    life = Life([node(f"n{number}", devices=4) for number in range(4)], policy=GOODPUT)
    for name in ("vgg", "resnet"):
        life.submit(gang(name, role(8, minimum=1)))
    life.settle(0.0)
    assert life.sizes() == {"vgg": 8, "resnet": 8}
    report(life, "vgg", 30.0, throughput=400.0)
    report(life, "resnet", 30.0, throughput=800.0)
    for name in ("vgg", "resnet"):
        life.give_way(JobId(name), tuple(TaskKey("worker", index) for index in range(4, 8)))
        nodes = {hold.node for hold in life.cluster.holds(JobId(name)).values()}
        assert len(nodes) == 1, "four devices of one node are left"
        report(life, name, 95.0, throughput=400.0)
    life.settle(120.0)
    life.settle(180.0)
    assert life.sizes() == {"vgg": 4, "resnet": 8}


def test_a_declared_profile_counts_until_a_size_is_reported_and_is_put_in_the_unit_of_reports() -> None:
    profile = ((1, 1, 1.0), (2, 1, 1.8), (4, 1, 3.0))
    assert with_profile(JobHistory(batch_size=64.0), profile) == JobHistory(
        throughput={(1, 1): 1.0, (2, 1): 1.8, (4, 1): 3.0}
    )
    reported = JobHistory(throughput={(2, 1): 90.0}, batch_size=64.0, gradient_noise=100.0)
    found = with_profile(reported, profile)
    assert list(found.throughput.items()) == [((1, 1), 50.0), ((4, 1), pytest.approx(150.0)), ((2, 1), 90.0)]
    assert (found.batch_size, found.gradient_noise) == (64.0, 100.0), "of the size that was reported last"
    elsewhere = with_profile(JobHistory(throughput={(3, 1): 240.0}), ((1, 1, 100.0), (2, 1, 200.0)))
    assert elsewhere.throughput == {(1, 1): pytest.approx(80.0), (2, 1): pytest.approx(160.0), (3, 1): 240.0}
    assert with_profile(reported, ()) is reported


@pytest.mark.parametrize(
    ("profile", "size"), [(((1, 1, 10.0), (2, 1, 10.5)), 1), (((1, 1, 10.0), (4, 1, 40.0)), 8), ((), 8)]
)
def test_a_job_begins_with_the_size_that_its_profile_makes_worth_it(
    profile: tuple[tuple[int, int, float], ...], size: int
) -> None:
    life = Life([node("n1", 8)], policy=GOODPUT)
    life.submit(gang("a", role(8, minimum=1), scaling=profile))
    life.settle()
    assert life.sizes() == {"a": size}


def test_a_profile_that_is_beyond_all_measure_of_the_reports_is_left_out() -> None:
    reported = JobHistory(throughput={(1, 1): 1e9})
    assert with_profile(reported, ((1, 1, 1e-300), (2, 1, 1.0))) == reported
    assert with_profile(reported, ((1, 1, 0.0), (2, 1, 1.0))) == reported
