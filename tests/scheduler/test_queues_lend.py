"""The ledger of loans between queues: the number of devices that each lends to each now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.units import DEVICE, devices
from corral.model.queues import QueueSpec
from corral.scheduler.queues.lending import lending
from corral.scheduler.queues.queue_tree import QueueTree


def tree(total: int, **queues: tuple[int, int]) -> QueueTree:
    """Queues under the root, each with its deserved and its held devices."""
    built = QueueTree(QueueSpec(name, deserved={"devices": deserved}) for name, (deserved, _) in queues.items())
    built.total[0] = total * DEVICE
    for name, (_, used) in queues.items():
        built.charge(name, "ada", (), [used * DEVICE, *[0] * (len(built.names) - 1)])
    return built


def loans(built: QueueTree) -> dict[tuple[str, str], int | float]:
    """The loans, in devices."""
    return {pair: devices(amount) for pair, amount in lending(built).items()}


def test_nobody_lends_while_everybody_stays_within_their_own() -> None:
    assert loans(tree(16, a=(8, 8), b=(8, 3))) == {}
    assert loans(tree(16, a=(0, 9), b=(0, 3))) == {}, "where nobody deserves anything nothing is lent"


def test_what_nobody_deserves_is_used_first() -> None:
    assert loans(tree(20, a=(8, 11), b=(8, 0))) == {("", "a"): 3}
    assert loans(tree(20, a=(8, 14), b=(8, 0))) == {("", "a"): 4, ("b", "a"): 2}


def test_idle_queues_lend_in_proportion() -> None:
    assert loans(tree(24, a=(8, 14), b=(8, 0), c=(8, 4))) == {("b", "a"): 4, ("c", "a"): 2}


def test_an_inner_queue_borrows_as_one_and_its_own_lend_each_other() -> None:
    specs = [
        QueueSpec("left", deserved={"devices": 8}),
        QueueSpec("right", deserved={"devices": 8}),
        QueueSpec("l1", "left", deserved={"devices": 4}),
        QueueSpec("l2", "left", deserved={"devices": 4}),
    ]
    built = QueueTree(specs)
    built.total[0] = 16 * DEVICE
    built.charge("l1", "ada", (), [10 * DEVICE, 0, 0])
    assert loans(built) == {("right", "left"): 2, ("l2", "l1"): 4}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=6), st.integers(0, 20))
def test_every_device_beyond_ones_own_is_somebodys_and_no_more_is_lent_than_is_idle(
    queues: list[tuple[int, int]], spare: int
) -> None:
    deserved = sum(owned for owned, _ in queues)
    total = max(deserved + spare, sum(used for _, used in queues))
    named = {f"q{at}": queue for at, queue in enumerate(queues)}
    found = lending(tree(total, **named))
    assert all(amount > 0 for amount in found.values())
    for name, (owned, used) in named.items():
        borrowed = sum(amount for (_, borrower), amount in found.items() if borrower == name)
        lent = sum(amount for (lender, _), amount in found.items() if lender == name)
        assert borrowed == (max(0, used - owned) * DEVICE if deserved else 0)
        assert lent <= max(0, owned - used) * DEVICE
