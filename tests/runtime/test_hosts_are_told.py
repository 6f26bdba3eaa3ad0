"""What an elastic launcher is told of its hosts: changes that it missed once more, and new names for what starts anew."""

from __future__ import annotations

from itertools import pairwise

from corral.runtime.agent_hosts import AGAIN_SECONDS, MOST_SECONDS, Hosts


def three() -> Hosts:
    """Three tasks, on two of which something runs since the beginning; the list was read then."""
    hosts = Hosts("worker-0", 1)
    hosts.join("worker-1", 2)
    hosts.join("worker-2", 1)
    assert hosts.listed(0.0) == ["worker-0:1", "worker-1:2", "worker-2:1"]
    for name in ("worker-0", "worker-1"):
        hosts.begin(name, 0.0)
    return hosts


def test_a_host_on_which_nothing_is_started_gets_new_names_at_longer_and_longer_intervals() -> None:
    hosts, changes, last = three(), list[float](), "worker-2:1"
    for tick in range(1, 400):
        *_, told = hosts.listed(float(tick))
        if told != last:
            changes.append(float(tick))
            last = told
    assert changes[:4] == [AGAIN_SECONDS, 3 * AGAIN_SECONDS, 7 * AGAIN_SECONDS, 15 * AGAIN_SECONDS]
    assert {after - before for before, after in pairwise(changes[3:])} == {MOST_SECONDS}
    assert hosts.task_of(last.partition(":")[0]) == "worker-2"


def test_a_host_keeps_its_name_while_something_runs_on_it_or_nothing_runs_at_all() -> None:
    hosts = three()
    began = hosts.begin("worker-2", 5.0)
    assert hosts.listed(1000.0) == ["worker-0:1", "worker-1:2", "worker-2:1"]
    hosts.end("worker-2", began, 0, 1000.0)
    assert hosts.listed(1000.0 + AGAIN_SECONDS - 1)[-1] == "worker-2:1"
    idle = Hosts("worker-0", 1)
    assert idle.listed(0.0) == idle.listed(1000.0) == ["worker-0:1"]


def test_hosts_keep_their_names_while_a_ring_starts_on_one_after_the_other() -> None:
    hosts = Hosts("worker-0", 1)
    hosts.join("worker-1", 1)
    both = ["worker-0:1", "worker-1:1"]
    assert hosts.listed(0.0) == both
    begun = 5 * AGAIN_SECONDS  # its launcher takes that long to start
    hosts.begin("worker-0", begun)
    assert hosts.listed(begun) == hosts.listed(begun + AGAIN_SECONDS - 1) == both
    assert hosts.listed(begun + AGAIN_SECONDS) == ["worker-0:1", "worker-1.1:1"]


def test_a_host_on_which_something_failed_has_a_new_name_also_after_it_was_away() -> None:
    hosts = three()
    began = hosts.begin("worker-2", 1.0)
    hosts.remove("worker-2")
    hosts.end("worker-2", began, 255, 2.0)
    assert hosts.listed(2.0) == ["worker-0:1", "worker-1:2"]
    hosts.join("worker-2", 1)
    assert hosts.listed(3.0)[-1] == "worker-2.1:1"


def test_a_command_of_before_a_task_came_again_is_not_counted_as_one_of_now() -> None:
    hosts = three()
    before = hosts.begin("worker-2", 1.0)
    hosts.join("worker-2", 1)
    hosts.begin("worker-2", 2.0)
    hosts.end("worker-2", before, 255, 3.0)
    assert hosts.running == 3
    assert hosts.listed(3.0)[-1] == "worker-2:1"


def test_a_host_that_leaves_is_listed_once_more_if_what_runs_on_it_does_not_end() -> None:
    hosts = three()
    hosts.leave("worker-1")
    assert hosts.staying == ["worker-0:1", "worker-2:1"]
    hosts.begin("worker-2", 1.0)
    short, whole = ["worker-0:1", "worker-2:1"], ["worker-0:1", "worker-1:2", "worker-2:1"]
    assert [hosts.listed(1.0 + second) for second in range(12)] == [short] * int(AGAIN_SECONDS) + [whole, short]
