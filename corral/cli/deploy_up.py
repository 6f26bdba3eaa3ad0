"""`corral deploy up`: do the steps of the plan, tell what is done on each host, and show what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import OK, REFUSED, UNREACHABLE
from corral.cli.output import paint, say, show, table

if TYPE_CHECKING:
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Hosts
    from corral.deploy.steps.outcome import Outcome
    from corral.deploy.steps.step import HostPlan

_MARKS: Final = {"prepared": ("✔", "green")}
Look = Callable[[], "Survey"]


def up(whole: Hosts, names: set[str], path: Path, look: Look, packages: Path | None, output: str) -> int:
    """Look, do what is needed on the hosts of these names, look again, and show what came of it."""
    from corral.deploy.remote.work import do_steps, logs_at, packages_of
    from corral.deploy.steps.outcome import document, without_effect
    from corral.deploy.steps.plan import plan_of

    path = path.absolute()
    logs = path.with_name(f"{path.stem}.logs")
    archive = packages_of(packages) if packages is not None else b""
    with logs_at(logs):
        try:
            survey = look()
            plans = {plan.name: plan for plan in plan_of(whole, survey) if plan.name in names}
            outcomes = {name: _barred(plan, survey) for name, plan in plans.items() if plan.bars}
            able = {name: plan for name, plan in plans.items() if name not in outcomes}
            told = asyncio.run(do_steps(whole, able, path, logs, archive, lambda host, says: say(f"{host}: {says}")))
            outcomes |= told
            if any(each.done for each in told.values()):
                say("Looking whether all of it holds.")
                plans = {plan.name: plan for plan in plan_of(whole, look()) if plan.name in names}
                outcomes = {name: without_effect(each, plans[name]) for name, each in outcomes.items()}
        except KeyboardInterrupt:
            say("Interrupted. Run it again to go on.")
            raise
    ordered = list(plans.values())
    failed = [plan.name for plan in ordered if outcomes[plan.name].state != "prepared"]
    if not show(document(whole.cluster, ordered, outcomes, str(logs)), output, names=failed):
        _print(ordered, outcomes, logs)
    if ordered and all(outcomes[plan.name].state == "not reached" for plan in ordered):
        return UNREACHABLE
    return REFUSED if failed else OK


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
    if any(plan.later for plan in plans):
        say("Steps that come later (programs, Kubernetes) are in corral deploy plan; up does not do them yet.")
