"""`corral deploy up`: do the steps of the plan, tell what is done on each host, and show what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import OK, REFUSED, UNREACHABLE
from corral.cli.output import paint, say, show, table

if TYPE_CHECKING:
    from corral.cli.deploy_portal import ServedPortal
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Hosts
    from corral.deploy.steps.bundle import Bundle
    from corral.deploy.steps.outcome import Outcome
    from corral.deploy.steps.step import HostPlan

_MARKS: Final = {"prepared": ("✔", "green")}
Look = Callable[[bool], "Survey"]
"""Looks at all hosts, and tries the ports between them if that is True."""


@dataclass(frozen=True)
class Given:
    """The folders that things are installed from: packages alone, and a bundle."""

    packages_folder: Path | None
    bundle_folder: Path | None

    def packages(self) -> tuple[Path, ...]:
        """The files of packages; without a folder of their own those of the bundle."""
        from corral.deploy.remote.work import packages_of

        if self.packages_folder is not None:
            return packages_of(self.packages_folder)
        if self.bundle_folder is not None and (self.bundle_folder / "packages").is_dir():
            return packages_of(self.bundle_folder / "packages")
        return ()

    def bundle(self) -> Bundle | None:
        """The programs and images of the bundle."""
        from corral.deploy.remote.bundle import bundle_of

        return None if self.bundle_folder is None else bundle_of(self.bundle_folder)


@dataclass(frozen=True)
class Asked:
    """What `up` is asked for: the list and its path, the hosts of it that are prepared, and how."""

    whole: Hosts
    names: frozenset[str]
    path: Path
    given: Given
    skipped: Sequence[str]
    """Checks whose failures leave no host out."""
    seconds: float
    """The longest that a host may take for an answer."""


def up(asked: Asked, output: str) -> int:
    """Look, do what is needed, look again where something was done, and show what came of it."""
    from corral.deploy.remote.work import logs_at
    from corral.deploy.steps.outcome import document

    logs = asked.path.with_name(f"{asked.path.stem}.logs")
    with logs_at(logs):
        try:
            plans, outcomes, portal, link = asyncio.run(_done(asked, logs, with_link=output == "table"))
        except KeyboardInterrupt:
            say("Interrupted. Run it again to go on.")
            raise
    failed = [plan.name for plan in plans if outcomes[plan.name].state != "prepared"]
    report = document(asked.whole.cluster, plans, outcomes, str(logs)) | (
        {"portal": portal.to_document()} if portal else {}
    )
    if not show(report, output, names=failed):
        _print(plans, outcomes, logs)
        if portal is not None:
            portal.show(asked.path, link)
    if plans and all(outcomes[plan.name].state == "not reached" for plan in plans):
        return UNREACHABLE
    return REFUSED if failed else OK


async def _done(
    asked: Asked, logs: Path, *, with_link: bool
) -> tuple[list[HostPlan], dict[str, Outcome], ServedPortal | None, str]:
    """Do all of it over one connection a host; a host is asked again only where something was done on it."""
    from corral.cli.deploy_options import teller
    from corral.cli.deploy_portal import portal_of
    from corral.deploy.checks.before_up import needs_ports
    from corral.deploy.remote.ssh import Ssh
    from corral.deploy.remote.survey import known_hosts_of, look_again, look_over, with_ports
    from corral.deploy.remote.work import do_steps_over
    from corral.deploy.steps.outcome import without_effect
    from corral.deploy.steps.plan import plan_of

    whole, path, seconds = asked.whole, asked.path, asked.seconds
    packages = asked.given.packages()
    async with Ssh(known_hosts_of(path), path.parent) as ssh:
        # The hashes of a bundle take seconds, and so do the answers of hosts.
        looking = asyncio.create_task(look_over(ssh, whole.hosts, seconds=seconds, told=teller(len(whole.hosts))))
        try:
            bundle = await asyncio.to_thread(asked.given.bundle)
            survey = await looking
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

        def planned(survey: Survey) -> dict[str, HostPlan]:
            return {plan.name: plan for plan in plan_of(whole, survey, bundle) if plan.name in asked.names}

        plans = planned(survey)
        if needs_ports(whole, survey, [name for name, plan in plans.items() if plan.doable], asked.skipped):
            # What listens there ends with its connection, and the others are needed for the steps.
            async with Ssh(known_hosts_of(path), path.parent) as apart:
                survey = await with_ports(apart, whole, survey, seconds=seconds)
        outcomes = _left_out(whole, plans, survey, asked.skipped)
        able = {name: plan for name, plan in plans.items() if name not in outcomes}
        outcomes |= await do_steps_over(
            ssh, whole, able, path, logs, packages, lambda host, says: say(f"{host}: {says}")
        )
        changed = [host for host in whole.hosts if host.name in outcomes and outcomes[host.name].done]
        if changed:
            say("Looking whether all of it holds.")
            survey = await look_again(ssh, changed, survey, seconds=seconds, told=teller(len(changed)))
            plans = planned(survey)
            outcomes = {name: without_effect(each, plans[name]) for name, each in outcomes.items()}
        portal = portal_of(whole, survey, plans, outcomes)
        link = await portal.link(ssh) if portal is not None and with_link else ""
    return list(plans.values()), outcomes, portal, link


def _left_out(
    whole: Hosts, plans: Mapping[str, HostPlan], survey: Survey, skipped: Sequence[str]
) -> dict[str, Outcome]:  # fmt: skip
    """The outcomes of hosts on which nothing is done; a host where nothing is to be done needs no check."""
    from corral.deploy.checks.before_up import passed_over, refusals_before_up
    from corral.deploy.steps.outcome import Outcome

    outcomes = {name: _barred(plan, survey) for name, plan in plans.items() if plan.bars}
    for name, refusal in refusals_before_up(whole, survey, skipped).items():
        if name in plans and name not in outcomes and plans[name].doable:
            outcomes[name] = Outcome("obstructed", (), refusal)
            say(f"{name}: left out: {refusal.message}")
    for each in passed_over(whole, survey, plans.keys()):
        say(f"{each.host}: goes on all the same: {each.check}: {each.message}")
    return outcomes


def _barred(plan: HostPlan, survey: Survey) -> Outcome:
    from corral.deploy.checks.connection import Refusal
    from corral.deploy.steps.outcome import Outcome

    refusal = survey.refusals.get(plan.name)
    if refusal is not None:
        return Outcome("not reached", (), refusal)
    return Outcome("obstructed", (), Refusal(plan.bars[0], "Mend it (corral deploy check), then run up again."))


def _print(plans: Sequence[HostPlan], outcomes: Mapping[str, Outcome], logs: Path) -> None:
    rows = []
    for plan in plans:
        outcome = outcomes[plan.name]
        mark = paint(*_MARKS.get(outcome.state, ("✘", "red")))
        why = outcome.refusal.message if outcome.refusal else ""
        rows.append((mark, plan.name, outcome.state, len(outcome.done), len(plan.later), why))
    click.echo(table(("", "HOST", "STATE", "DONE", "LATER", "WHY"), rows))
    remedies = [(plan.name, refusal.remedy) for plan in plans if (refusal := outcomes[plan.name].refusal)]
    if remedies:
        click.echo("\nWhat to do:")
    for name, remedy in remedies:
        click.echo(f"  {name}: {remedy}")
    good = sum(each.state == "prepared" for each in outcomes.values())
    say(f"{good} of {len(plans)} hosts are prepared. Logs: {logs}")
    if any(step.kind != "chart" for plan in plans for step in plan.later):
        say("Programs and Kubernetes are installed from a bundle (--bundle).")
