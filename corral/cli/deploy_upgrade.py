"""`corral deploy upgrade`: bring a running cluster to the version of the list, one node after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corral.cli.deploy_nodes import cluster_of, nodes_by_name, show_changes, show_plan
from corral.cli.output import say
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.cli.deploy_up import Given, Look
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Hosts
    from corral.deploy.remote.upgrade import Upgrade
    from corral.deploy.steps.bundle import Bundle
    from corral.deploy.steps.membership import Change, Node
    from corral.deploy.steps.step import HostPlan


@dataclass(frozen=True)
class Wish:
    """What is asked of an upgrade besides the list and the bundle."""

    names: frozenset[str]
    """The hosts that are upgraded."""
    skipped: Sequence[str]
    seconds: int
    end_tasks: bool
    dry_run: bool


def upgrade(whole: Hosts, path: Path, look: Look, given: Given, wish: Wish, output: str) -> int:
    """Check all nodes first, then upgrade each, control planes before workers; the first failure ends it."""
    from corral.deploy.remote.upgrade import Upgrade
    from corral.deploy.remote.work import logs_at

    path = path.absolute()
    logs = path.with_name(f"{path.stem}.logs")
    bundle, packages = given.bundle(), given.packages()
    if bundle is None:
        raise InvalidInput("no-bundle", "An upgrade is installed from a bundle: name it (--bundle).")
    with logs_at(logs):
        survey = look(False)
        member = cluster_of(whole, survey, path, logs)
        work = _Work(whole, bundle, wish, survey, asyncio.run(nodes_by_name(member)))
        plans, refused = work.plans, work.refused()
        if refused or wish.dry_run:
            return _planned(work, plans, refused, output)
        upgrading = Upgrade(whole, member, packages, wish.seconds, wish.end_tasks)
        try:
            changes = _upgraded(work, plans, upgrading)
            if all(each.refusal is None for each in changes):
                changes = _with_charts(work, changes, look, upgrading)
        except KeyboardInterrupt:
            say("Interrupted. Run it again to go on.")
            raise
    return show_changes(whole, changes, logs, output, "upgraded")


@dataclass(frozen=True)
class _Work:
    whole: Hosts
    bundle: Bundle
    wish: Wish
    survey: Survey
    nodes: Mapping[str, Node]

    @property
    def wanted(self) -> str:
        return f"v{self.whole.kubernetes.version}"

    @property
    def all_plans(self) -> tuple[HostPlan, ...]:
        """The plans of all nodes, in order."""
        from corral.deploy.steps.plan import upgrade_plan_of

        return upgrade_plan_of(self.whole, self.survey, self.bundle)

    @property
    def plans(self) -> list[HostPlan]:
        """The plans of the hosts that are to be upgraded, in order."""
        return [each for each in self.all_plans if each.name in self.wish.names]

    def titles(self, plan: HostPlan) -> tuple[str, ...]:
        """What is still to be done of a host."""
        from corral.deploy.steps.upgrade import steps_of_upgrade

        return steps_of_upgrade(plan, self.nodes[plan.name], self.wanted)

    def refused(self) -> list[Change]:
        """The hosts that keep the upgrade from beginning, and why."""
        from corral.deploy.checks.before_up import OF_UPGRADES, STOPPING, refusals_before_up
        from corral.deploy.steps.membership import Change
        from corral.deploy.steps.upgrade import obstacles_to_upgrade

        names, looked = self.wish.names, self.survey
        found = obstacles_to_upgrade(self.whole, self.bundle, self.plans, self.nodes, names)
        for name, refusal in refusals_before_up(self.whole, looked, self.wish.skipped, STOPPING, OF_UPGRADES).items():
            found.setdefault(name, refusal)
        # A node that is not upgraded now needs the new images all the same.
        lost = [Change(name, "not reached", (), why) for name, why in looked.refusals.items() if name in self.nodes]
        return lost + [Change(name, "left out", (), why) for name, why in found.items() if name in names]


def _planned(work: _Work, plans: Sequence[HostPlan], refused: Sequence[Change], output: str) -> int:
    """Show what would be done, or why nothing is."""
    from corral.deploy.steps.membership import Change

    barred = {each.name for each in refused}
    able = [Change(plan.name, "upgraded", work.titles(plan)) for plan in plans if plan.name not in barred]
    return show_plan(work.whole, [*refused, *(each for each in able if each.done)], output)


def _upgraded(work: _Work, plans: Sequence[HostPlan], upgrading: Upgrade) -> list[Change]:
    from corral.deploy.checks.connection import Refusal
    from corral.deploy.steps.membership import Change

    changes: list[Change] = []
    images = asyncio.run(upgrading.images(work.all_plans))
    bad = {name: each for name, each in images.items() if each.refusal is not None}
    if bad:
        return [Change(name, "failed", each.done, each.refusal) for name, each in bad.items()]
    failed = ""
    for plan in plans:
        host = work.whole.named(plan.name)
        assert host is not None
        if failed:
            why = Refusal(f"{failed} failed before it", f"Mend {failed}, then run it again.")
            changes.append(Change(plan.name, "left out", (), why))
            continue
        done = images[plan.name].done if plan.name in images else ()
        changes.append(asyncio.run(upgrading.node(host, plan, work.titles(plan), done)))
        if changes[-1].refusal is not None:
            failed = plan.name
    return changes


def _with_charts(work: _Work, changes: list[Change], look: Look, upgrading: Upgrade) -> list[Change]:
    """Do what is left of the plan of `up` on these hosts, such as Corral's chart, and look whether all of it holds."""
    from corral.deploy.remote.work import do_steps
    from corral.deploy.steps.membership import Change
    from corral.deploy.steps.outcome import Outcome, without_effect
    from corral.deploy.steps.plan import plan_of

    member = upgrading.member
    plans = {plan.name: plan for plan in plan_of(work.whole, look(False), work.bundle) if plan.name in work.wish.names}
    able = {name: plan for name, plan in plans.items() if plan.doable and not plan.bars}
    outcomes = asyncio.run(do_steps(work.whole, able, member.list_path, member.logs, upgrading.packages, member.told))
    if able:
        say("Looking whether all of it holds.")
        plans = {plan.name: plan for plan in plan_of(work.whole, look(False), work.bundle)}
    found = []
    for each in changes:
        told = without_effect(outcomes.get(each.name, Outcome("prepared")), plans[each.name])
        state = each.state if told.refusal is None else "failed"
        found.append(Change(each.name, state, (*each.done, *told.done), told.refusal))
    return found
