"""`corral deploy add-node` and `remove-node`: change which hosts are nodes of a running cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import OK, REFUSED, UNREACHABLE
from corral.cli.output import paint, say, show, table
from corral.kernel.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from corral.cli.deploy_up import Given, Look
    from corral.cli.deploy_validation import Validation
    from corral.deploy.checks.connection import Refusal
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Host, Hosts
    from corral.deploy.remote.membership import Measure, Membership
    from corral.deploy.steps.bundle import Bundle
    from corral.deploy.steps.membership import Change, Node
    from corral.deploy.steps.outcome import Outcome
    from corral.deploy.steps.step import HostPlan

_MARKS: Final = {"added": ("✔", "green"), "removed": ("✔", "green"), "upgraded": ("✔", "green")}


def add(
    whole: Hosts, names: Sequence[str], path: Path, look: Look, given: Given, skipped: Sequence[str], output: str,
    *, dry_run: bool, validation: Validation | None = None,
) -> int:  # fmt: skip
    """Check these hosts, join them closed, validate them, and then let the scheduler use them."""
    from corral.deploy.remote.work import logs_at

    chosen = _workers(whole, names)
    path = path.absolute()
    logs = path.with_name(f"{path.stem}.logs")
    bundle, packages = given.bundle(), given.packages()
    measure = None if validation is None else validation.of
    with logs_at(logs):
        survey = look(True)
        joining = _Joining(whole, survey, cluster_of(whole, survey, path, logs), bundle)
        if validation is not None:
            validation.require_new(host.name for host in chosen if not joining.has(host.name))
        left_out = joining.left_out(chosen, skipped)
        plans = {host.name: joining.plan_of(host) for host in chosen if host.name not in left_out}
        if dry_run:
            return _plan_of_adding(
                whole, list(plans.values()), left_out, joining, output, measured=validation is not None
            )
        outcomes = _join(whole, plans, path, logs, packages)
        if any(each.done for each in outcomes.values()):
            joining = _Joining(whole, look(False), joining.cluster, bundle)
        changes = [
            left_out[host.name] if host.name in left_out else joining.offered(host, outcomes[host.name], measure)
            for host in chosen
        ]
    return show_changes(whole, changes, logs, output, "added")


def remove(
    whole: Hosts, names: Sequence[str], path: Path, look: Look, output: str,
    *, cluster: str | None, seconds: int, end_tasks: bool, lost: bool, dry_run: bool,
) -> int:  # fmt: skip
    """Drain these hosts, leave them as `up` found them, and take them out of Kubernetes, one after the other."""
    from corral.deploy.hosts.reader import CONTROL_PLANE
    from corral.deploy.remote.work import logs_at

    chosen = _removable(whole, names)
    if not dry_run and cluster != whole.cluster:
        raise InvalidInput(
            "other-cluster",
            f"The list is of the cluster {whole.cluster}: repeat that name (--cluster) to remove nodes.",
        )
    path = path.absolute()
    logs = path.with_name(f"{path.stem}.logs")
    with logs_at(logs):
        survey = look(False)
        member = _asked(whole, chosen, survey, path, logs, names)
        nodes = asyncio.run(nodes_by_name(member)) if any(host.in_kubernetes for host in chosen) else {}
        changes = [
            _removed(whole, member, host, survey, nodes, seconds, end_tasks=end_tasks, lost=lost, dry_run=dry_run)
            for host in chosen
        ]
    if dry_run:
        return show_plan(whole, changes, output)
    code = show_changes(whole, changes, logs, output, "removed")
    gone = [each.name for each in changes if each.state == "removed"]
    if gone and CONTROL_PLANE in chosen[0].roles:
        say(
            f"Put another control plane in its place in {path.name} and run up; else the next up joins {gone[0]} again."
        )
    elif gone:
        say(
            f"Take {' and '.join(gone)} off {path.name}, else the next up joins {'it' if len(gone) == 1 else 'them'} again."
        )
    return code


def _removable(whole: Hosts, names: Sequence[str]) -> list[Host]:
    """The hosts of these names: workers, also of Hadoop, or one of several control planes. Raises InvalidInput."""
    from corral.deploy.checks.components import control_planes
    from corral.deploy.hosts.reader import CONTROL_PLANE

    found = [host for host in whole.hosts if host.name in names]
    if not any(CONTROL_PLANE in host.roles for host in found) or len(control_planes(whole)) == 1:
        _workers(whole, [host.name for host in found if host.in_kubernetes or not whole.has_hadoop(host)])
        return found
    if len(found) > 1:
        raise InvalidInput("one-by-one", "A control plane is removed alone, and the next one once all others are up.")
    return found


def _workers(whole: Hosts, names: Sequence[str]) -> list[Host]:
    """The hosts of these names. Raises InvalidInput for one that is no worker alone."""
    from corral.deploy.hosts.reader import CONTROL_PLANE

    found = [host for host in whole.hosts if host.name in names]
    for host in found:
        if CONTROL_PLANE in host.roles:
            raise InvalidInput(
                "needed-host", f"{host.name} is a control plane: up makes it, and a reset of all hosts takes it away."
            )
        if "worker" not in host.roles and whole.has_hadoop(host):
            raise InvalidInput(
                "of-hadoop", f"{host.name} is of Hadoop alone: corral deploy up adds it to HDFS and YARN."
            )
        if "worker" not in host.roles:
            raise InvalidInput("no-worker", f"{host.name} does not have the role worker, so it becomes no node.")
    return found


def _asked(
    whole: Hosts, chosen: Sequence[Host], survey: Survey, path: Path, logs: Path, names: Sequence[str]
) -> Membership:  # fmt: skip
    """Where it is asked: the running cluster, or Hadoop's master where none of these hosts is of Kubernetes."""
    from corral.deploy.remote.membership import Membership

    master = whole.named(whole.hadoop.master) if whole.hadoop is not None else None
    if master is None or any(host.in_kubernetes for host in chosen):
        return cluster_of(whole, survey, path, logs, besides=names)
    return Membership(master, path, logs, lambda name, says: say(f"{name}: {says}"))


def cluster_of(whole: Hosts, survey: Survey, path: Path, logs: Path, *, besides: Sequence[str] = ()) -> Membership:
    """The running cluster, by a control plane that was reached, but none of `besides`. Raises Conflict where none is up."""
    from corral.deploy.checks.components import control_planes
    from corral.deploy.remote.membership import Membership
    from corral.deploy.steps.node import started

    for host in control_planes(whole):
        seen = survey.seen.get(host.name)
        if seen is not None and started(seen.facts) and host.name not in besides:
            return Membership(host, path, logs, lambda name, says: say(f"{name}: {says}"))
    refusal = next(iter(survey.refusals.values()), None)
    why = f" ({refusal.message})" if refusal else ""
    raise Conflict("no-cluster", f"No control plane of the list is up{why}: corral deploy up makes the cluster.")


async def nodes_by_name(member: Membership) -> dict[str, Node]:
    """The nodes that Kubernetes has. Raises Conflict where it does not tell."""
    from corral.deploy.remote.membership import nodes_of
    from corral.deploy.remote.ssh import NotReached

    try:
        return await nodes_of(member.plane, member.list_path)
    except NotReached as error:
        raise Conflict("silent-cluster", f"{error.refusal.message}. {error.refusal.remedy}") from None


class _Joining:
    """Hosts that are to join a running cluster, as they were found."""

    def __init__(self, whole: Hosts, survey: Survey, cluster: Membership, bundle: Bundle | None) -> None:
        from corral.deploy.steps.plan import plan_of

        self._whole, self._survey, self.cluster = whole, survey, cluster
        self._plans = {plan.name: plan for plan in plan_of(whole, survey, bundle)}
        self._nodes = asyncio.run(nodes_by_name(cluster))

    def left_out(self, chosen: Sequence[Host], skipped: Sequence[str]) -> dict[str, Change]:
        """The hosts that are not touched, and why."""
        from corral.deploy.checks.before_up import OF_NEW_NODES, refusals_before_up
        from corral.deploy.checks.connection import Refusal
        from corral.deploy.steps.membership import Change

        refused = refusals_before_up(self._whole, self._survey, skipped, OF_NEW_NODES)
        found: dict[str, Change] = {}
        for host in chosen:
            plan = self._plans[host.name]
            if host.name in self._survey.refusals:
                found[host.name] = Change(host.name, "not reached", (), self._survey.refusals[host.name])
            elif plan.obstacles:
                refusal = Refusal(plan.obstacles[0], "Mend it (corral deploy check), then run it again.")
                found[host.name] = Change(host.name, "left out", (), refusal)
            elif host.name in refused and (plan.doable or self.waits(host.name)):
                found[host.name] = Change(host.name, "left out", (), refused[host.name])
        return found

    def plan_of(self, host: Host) -> HostPlan:
        """The steps of a host, which joins closed."""
        from corral.deploy.steps.membership import closed_joining

        return closed_joining(self._plans[host.name])

    def has(self, name: str) -> bool:
        """Whether a host is a node already."""
        return name in self._nodes

    def waits(self, name: str) -> bool:
        """Whether a node has joined and is not validated yet, also after a cut."""
        return name in self._nodes and self._nodes[name].closed

    def offered(self, host: Host, outcome: Outcome, measure: Measure | None) -> Change:
        """Validate and open a host that has joined."""
        from corral.deploy.steps.membership import Change
        from corral.deploy.steps.outcome import without_effect

        outcome = without_effect(outcome, self._plans[host.name])
        refusal = outcome.refusal or self._unjoined(host.name)
        if refusal is not None:
            return Change(host.name, "failed", outcome.done, refusal)
        if not self.waits(host.name):
            return Change(host.name, "added", outcome.done)
        return asyncio.run(self.cluster.offer(host, outcome.done, measure))

    def _unjoined(self, name: str) -> Refusal | None:
        from corral.deploy.checks.connection import Refusal

        if name in self._nodes:
            return None
        if any(step.kind == "kubeadm" and step.needed for step in self._plans[name].steps):
            return Refusal("it has not joined: its programs come from a bundle", "Name the bundle: --bundle FOLDER.")
        return Refusal(
            "its kubelet has joined, and Kubernetes has no such node",
            f"Run corral deploy remove-node {name}, then corral deploy add-node {name}.",
        )


def _join(
    whole: Hosts, plans: Mapping[str, HostPlan], path: Path, logs: Path, packages: Sequence[Path]
) -> dict[str, Outcome]:  # fmt: skip
    from corral.deploy.remote.work import do_steps

    try:
        return asyncio.run(do_steps(whole, plans, path, logs, packages, lambda host, says: say(f"{host}: {says}")))
    except KeyboardInterrupt:
        say("Interrupted. Run it again to go on.")
        raise


def _removed(
    whole: Hosts, member: Membership, host: Host, survey: Survey, nodes: Mapping[str, Node], seconds: int,
    *, end_tasks: bool, lost: bool, dry_run: bool,
) -> Change:  # fmt: skip
    from corral.deploy.checks.connection import Refusal
    from corral.deploy.checks.ours import has_hadoop, made_by_up
    from corral.deploy.steps.leaving import leaving_of
    from corral.deploy.steps.membership import Change, refusal_of_removal, steps_of_removal

    seen = survey.seen.get(host.name)
    leaving = leaving_of(whole, host, survey, lost=lost)
    if seen is not None:
        bar = refusal_of_removal(host.name, seen.facts, lost=lost, leaves=leaving is not None)
        if bar is not None:
            return Change(host.name, "left out", (), bar)
    if isinstance(leaving, Refusal):
        return Change(host.name, "left out", (), leaving)
    if not lost and seen is None:
        refusal = survey.refusals[host.name]
        remedy = f"{refusal.remedy} If the machine is gone: --lost takes it out of the cluster alone."
        return Change(host.name, "not reached", (), Refusal(refusal.message, remedy))
    stands = seen is not None and (
        made_by_up(seen.facts) or has_hadoop(seen.facts) or bool(seen.facts.unfinished)
    )  # fmt: skip
    steps = steps_of_removal(host.name, nodes, stands=stands, lost=lost, leaves=leaving is not None)
    if dry_run:
        return Change(host.name, "removed", steps)
    try:
        return asyncio.run(member.remove(host, steps, seconds, end_tasks=end_tasks, lost=lost, leaving=leaving))
    except KeyboardInterrupt:
        say("Interrupted. Run it again to go on.")
        raise


def _plan_of_adding(
    whole: Hosts, plans: Sequence[HostPlan], left_out: Mapping[str, Change], joining: _Joining, output: str,
    *, measured: bool,
) -> int:  # fmt: skip
    from corral.deploy.steps.membership import MEASURE, OPEN, VALIDATE, Change

    ends = (VALIDATE, *((MEASURE,) if measured else ()), OPEN)
    changes = [
        Change(plan.name, "added", (*(step.title for step in plan.doable), *ends))
        for plan in plans
        if plan.doable or joining.waits(plan.name)
    ]
    return show_plan(whole, [*left_out.values(), *changes], output)


def show_plan(whole: Hosts, changes: Sequence[Change], output: str) -> int:
    """Show what would be done, and do nothing."""
    planned = [each for each in changes if each.refusal is None]
    hosts = [
        {"name": each.name, "steps": list(each.done), **({"message": each.refusal.message} if each.refusal else {})}
        for each in changes
    ]
    if not show({"cluster": whole.cluster, "hosts": hosts}, output, names=[each.name for each in planned]):
        for each in changes:
            click.echo(paint(each.name, bold=True))
            if each.refusal is not None:
                click.echo(f"  {paint('✘', 'red')} {each.refusal.message}\n    {each.refusal.remedy}")
            for title in each.done:
                click.echo(f"  {paint('+', 'green')} {title}")
        say(f"{sum(len(each.done) for each in changes)} steps on {len(changes)} hosts. Nothing was done.")
    return REFUSED if len(planned) < len(changes) else OK


def show_changes(whole: Hosts, changes: Sequence[Change], logs: Path, output: str, verb: str) -> int:
    """Show what came of the hosts; returns the exit code."""
    failed = [each for each in changes if each.refusal is not None]
    data = {"cluster": whole.cluster, "logs": str(logs), "hosts": [each.to_document() for each in changes]}
    if not show(data, output, names=[each.name for each in failed]):
        rows = [
            (paint(*_MARKS.get(each.state, ("✘", "red"))), each.name, each.state, len(each.done),
             each.refusal.message if each.refusal else "")
            for each in changes
        ]  # fmt: skip
        click.echo(table(("", "HOST", "STATE", "DONE", "WHY"), rows))
        if failed:
            click.echo("\nWhat to do:")
        for each in failed:
            click.echo(f"  {each.name}: {each.refusal.remedy if each.refusal else ''}")
        say(f"{len(changes) - len(failed)} of {len(changes)} hosts are {verb}. Logs: {logs}")
    if changes and all(each.state == "not reached" for each in changes):
        return UNREACHABLE
    return REFUSED if failed else OK
