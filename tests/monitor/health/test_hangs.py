"""Which tasks hang: those that report no step any more while the rest of their gang goes on."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.ids import JobId, TaskKey
from corral.model.health.ledger import HealthTerms
from corral.model.health.signs import SignKind
from corral.model.store_writes import Intent, IntentKind
from corral.monitor.health.hangs import Hangs
from corral.monitor.health.watch import Watch

JOB = JobId("gang")


class Gang:
    """A gang whose tasks report a step every `seconds`, each on a node of its own."""

    def __init__(self, tasks: int = 4, seconds: float = 30.0) -> None:
        self.hangs, self.now, self.seconds = Hangs(), 0.0, seconds
        self.steps = dict.fromkeys((TaskKey("worker", number) for number in range(tasks)), 0)
        self.away: set[TaskKey] = set()
        self.total: float | None = None

    def node_of(self, job: JobId, key: TaskKey) -> str:
        return "" if key in self.away else f"local/node{key.index}"

    def run(self, seconds: float, silent: Iterable[int] = ()) -> list[int]:
        """Go on while some tasks are silent; returns the tasks that were found to hang."""
        still, found = set(silent), []
        for _ in range(int(seconds / self.seconds)):
            self.now += self.seconds
            for key in self.steps:
                if key.index not in still:
                    self.steps[key] += 1
                    node = self.node_of(JOB, key)
                    self.hangs.reported(JOB, 0, key, node, float(self.steps[key]), self.now, self.total)
            found += [each.key.index for each in self.hangs.look(self.node_of, self.now)]
        return found


def test_a_silent_task_is_named_once_and_again_only_after_it_went_on() -> None:
    gang = Gang()
    assert gang.run(3_000) == []
    assert gang.run(600, silent=[2]) == []
    assert gang.run(300, silent=[2]) == [2]
    assert gang.run(3_000, silent=[2]) == []
    assert gang.run(600) == []
    assert gang.run(60_000, silent=[2]) == [2]


def test_long_steps_and_long_pauses_of_before_make_the_time_longer() -> None:
    slow = Gang(seconds=300.0)
    slow.run(3_000)
    assert slow.run(19 * 300.0, silent=[1]) == [] and slow.run(900.0, silent=[1]) == [1]
    paused = Gang()
    paused.run(600)
    assert paused.run(570, silent=[1]) == [], "a long evaluation"
    paused.run(600)
    assert paused.run(2_900, silent=[1]) == [] and paused.run(600, silent=[1]) == [1]


def test_a_gang_that_stops_as_a_whole_or_for_the_most_part_blames_no_node() -> None:
    gang = Gang()
    gang.run(3_000)
    assert gang.run(20_000, silent=range(4)) == []
    most = Gang()
    most.run(3_000)
    assert most.run(20_000, silent=[0, 1, 2]) == []


def test_a_task_that_finished_its_work_is_away_or_is_alone_does_not_hang() -> None:
    finished = Gang()
    finished.total = 100.0
    finished.run(3_000)
    assert finished.run(20_000, silent=[3]) == []
    away = Gang()
    away.run(3_000)
    away.away.add(TaskKey("worker", 1))
    assert away.run(20_000, silent=[1]) == []
    assert Gang(tasks=1).run(3_000) == []


def test_a_task_that_never_had_a_pace_does_not_hang() -> None:
    gang = Gang()
    gang.run(60)
    assert gang.run(20_000, silent=[0]) == []


@given(st.integers(2, 6), st.lists(st.tuples(st.sets(st.integers(0, 5)), st.integers(1, 60)), max_size=8))
def test_never_are_more_than_half_of_a_gang_named_at_once(tasks: int, course: list[tuple[set[int], int]]) -> None:
    gang = Gang(tasks)
    gang.run(300)
    for silent, often in course:
        for _ in range(often):
            named = gang.run(gang.seconds, silent)
            assert 2 * len(named) <= tasks and set(named) <= silent


def test_a_hanging_task_is_a_sign_of_its_node_and_device_that_names_its_job() -> None:
    watch = Watch(HealthTerms())
    for step in range(60):
        at = 30.0 * step
        others = [["worker", 1, float(step), at, None], ["worker", 2, float(min(step, 9)), at, None]]
        report = {"at": at, "step": float(step)}
        data = {"jobAttempt": 0, "role": "worker", "index": 0, "report": report, "others": others}
        watch.heard(
            [Intent(step, JOB, IntentKind.WORK_REPORTED, "runtime", at, data)],
            lambda job, key: f"local/n{key.index}",
            at,
        )
        watch.hanging(lambda job, key: f"local/n{key.index}", lambda job, key: 5, at)
    (entry,) = [each for each in watch.ledger.entries if each.what == SignKind.HANG]
    assert (entry.node, entry.device, entry.job) == ("local/n2", 5, JOB)
    assert entry.reason == "worker-2 reported no step for 10m while its peers went on; one took 30 s before"
