"""Property tests for any event order: safety (nothing bad ever happens) and liveness (the job ends once faults stop)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from corral.launcher import LaunchPolicy, RetryView, RoleView
from corral.model.events import (
    DependencyFailed,
    HoldReleased,
    MigrateRequested,
    Preempted,
    RestartRequested,
    ResumeRequested,
    ScaleRequested,
    StopRequested,
    SuspendRequested,
    TimePassed,
)
from corral.model.plan import Rule
from corral.model.states import JobState
from tests.examples import examples
from tests.launcher.driver import view
from tests.launcher.unreliable import Control

RETRIES = st.builds(RetryView, st.sampled_from([-2, -1, 0, 1, 2]), st.booleans())
CODES = st.sampled_from([0, 0, 1, 137, 139, 201, 220, 223, -1001, 251])


@st.composite
def roles(draw: st.DrawFn, name: str) -> RoleView:
    replicas = draw(st.integers(1, 3))
    return RoleView(
        name,
        replicas,
        min_replicas=draw(st.sampled_from([None, 1])),
        retry=draw(RETRIES),
        min_failed=draw(st.integers(-1, 3)),
        min_succeeded=draw(st.integers(-1, 3)),
    )


class Guarantees(RuleBasedStateMachine):
    """One job, an unreliable engine, and users who change their minds."""

    @initialize(
        first=roles("a"),
        second=st.none() | roles("b"),
        retry=RETRIES,
        hold=st.sampled_from(["", "", "dependency"]),
        duration=st.sampled_from([0, 0, 50]),
        deadline=st.sampled_from([0.0, 20.0]),
        wait=st.sampled_from([0.0, 1.0, 40.0]),
    )
    def begin(
        self,
        first: RoleView,
        second: RoleView | None,
        retry: RetryView,
        hold: str,
        duration: int,
        deadline: float,
        wait: float,
    ) -> None:
        spec = view(*filter(None, (first, second)), retry=retry, max_duration_seconds=duration)
        self.control = Control(
            spec, hold=hold, policy=LaunchPolicy((60, 900), start_deadline=deadline, retry_first=wait)
        )

    # -- the scheduler ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.control.waiting)
    @rule(data=st.data())
    def place(self, data: Any) -> None:
        """Place a gang whole, unless it is elastic or already running."""
        waiting = sorted(self.control.waiting)
        joins = self.control.run.state is not JobState.CREATION_REQUESTED
        elastic = [key for key in waiting if joins or self.control.spec.roles[key.role].min_replicas is not None]
        left_out = set(data.draw(st.lists(st.sampled_from(elastic), unique=True)) if elastic else [])
        chosen = [key for key in waiting if key not in left_out]
        if chosen:
            self.control.place(*chosen, node=data.draw(st.sampled_from(["local/n1", "local/n2"])))

    # -- the outbox ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.control.pending())
    @rule(data=st.data(), acknowledged=st.booleans())
    def carry_out(self, data: Any, acknowledged: bool) -> None:
        """Not acknowledged: control was killed between the action and its record."""
        self.control.carry_out(data.draw(st.sampled_from(self.control.pending())), acknowledged=acknowledged)

    @rule()
    def carry_out_everything(self) -> None:
        for key in self.control.pending():
            while self.control.outbox[key]:
                self.control.carry_out(key)

    @precondition(lambda self: self.control.unstarted())
    @rule(data=st.data(), code=st.sampled_from([-200, -1005, -120, -1002]))
    def refuse(self, data: Any, code: int) -> None:
        self.control.refuse(data.draw(st.sampled_from(self.control.unstarted())), code)

    @precondition(lambda self: self.control.unstarted())
    @rule(data=st.data())
    def lose_place(self, data: Any) -> None:
        self.control.lose_place(data.draw(st.sampled_from(self.control.unstarted())))

    # -- the engine ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.control.engine.running())
    @rule(data=st.data(), code=CODES)
    def finish(self, data: Any, code: int) -> None:
        self.control.engine.finish(data.draw(st.sampled_from(self.control.engine.running())), code)

    @precondition(lambda self: self.control.engine.sent)
    @rule(data=st.data(), lost=st.sampled_from([False, False, True]))
    def deliver(self, data: Any, lost: bool) -> None:
        """In any order, perhaps never."""
        event = self.control.engine.sent.pop(data.draw(st.integers(0, len(self.control.engine.sent) - 1)))
        if not lost:
            self.control.send(event)

    @precondition(lambda self: self.control.engine.told)
    @rule(data=st.data())
    def deliver_again(self, data: Any) -> None:
        """However late."""
        self.control.send(data.draw(st.sampled_from(self.control.engine.told)))

    @rule()
    def a_quiet_moment(self) -> None:
        """Place everything, carry out all commands and deliver all events."""
        if self.control.waiting:
            self.control.place()
        self.carry_out_everything()
        sent = self.control.engine.sent.copy()
        self.control.engine.sent.clear()
        for event in sent:
            self.control.send(event)

    @rule()
    def reopen(self) -> None:
        """Restart control: commands in flight are lost, and the engine reports every attempt that was not forgotten."""
        self.control.engine.sent.clear()
        self.control.engine.report_all()

    @rule(data=st.data(), older=st.sampled_from([0, 0, 0, 1]), grace=st.sampled_from([None, 0.0, 5.0]))
    def preempt(self, data: Any, older: int, grace: float | None) -> None:
        """The whole gang, or some tasks, in any state."""
        control = self.control
        tasks = data.draw(st.lists(st.sampled_from(sorted(control.tasks)), unique=True, max_size=2))
        attempt, retries, before = control.run.attempt, control.run.retries, control.run.yields
        event = Preempted(attempt - older, Rule.PRIORITY, "somebody else", tuple(tasks), grace_seconds=grace)
        control.send(event)
        assert control.run.retries.accountable == retries.accountable
        assert not older or control.run.yields == before

    # -- users and clocks --------------------------------------------------------------------------------------------------

    @rule(
        event=st.sampled_from(
            [
                StopRequested("ada"),
                RestartRequested("ada"),
                HoldReleased(),
                DependencyFailed("no"),
                SuspendRequested("ada"),
                ResumeRequested("ada"),
                SuspendRequested("budgets", Rule.BUDGET, "its budget is used up"),
                ResumeRequested("budgets", Rule.BUDGET, "its budget allows more"),
            ]
        )
    )
    def wish(self, event: Any) -> None:
        self.control.send(event)

    @precondition(lambda self: self.control.tasks)
    @rule(data=st.data())
    def migrate(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.control.tasks)))
        self.control.send(MigrateRequested(key, "ada"))

    @rule(data=st.data(), replicas=st.integers(1, 5), remove=st.lists(st.integers(0, 4), max_size=2))
    def scale(self, data: Any, replicas: int, remove: list[int]) -> None:
        name = data.draw(st.sampled_from(sorted(self.control.run.roles)))
        self.control.send(ScaleRequested(name, replicas, "ada", tuple(remove)))

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 900.0]))
    def time_passes(self, seconds: float) -> None:
        self.control.now += seconds
        self.control.send(TimePassed())

    # -- invariants --------------------------------------------------------------------------------------------------------

    @invariant()
    def every_end_that_nobody_ordered_is_the_true_one(self) -> None:
        control = self.control
        for attempt, code in control.history.items():
            if attempt in control.engine.codes and attempt not in control.ordered:
                assert code == control.engine.codes[attempt]

    @invariant()
    def a_completed_job_has_nothing_running_and_holds_nothing(self) -> None:
        if self.control.run.state is JobState.COMPLETED:
            assert not self.control.engine.running() and not self.control.held and not self.control.waiting
            assert self.control.run.completion is not None

    def teardown(self) -> None:
        if not hasattr(self, "control"):
            return
        control = self.control
        control.send(HoldReleased())
        control.send(ResumeRequested("ada"))
        control.send(ResumeRequested("budgets", Rule.BUDGET, "its budget allows more"))
        policies = [control.spec.retry, *(role.retry for role in control.spec.roles.values())]
        if any(policy.max_retries == -2 for policy in policies):
            control.send(StopRequested("ada"))
        control.settle()
        assert control.run.state is JobState.COMPLETED
        assert not control.busy()
        assert set(control.engine.ran) <= set(control.history), "the end of an attempt was lost"


TestGuarantees = Guarantees.TestCase
TestGuarantees.settings = settings(max_examples=examples(100), stateful_step_count=60, deadline=None)
