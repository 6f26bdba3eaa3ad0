"""`corral sim sweep`: play a trace under every combination of policies, assumptions and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from corral.cli.exit_codes import OK
from corral.cli.output import show, table
from corral.cli.sim_options import Number, pool_options, question_of, question_options
from corral.cli.sim_pool import Figures, play
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.sim.confidence import Estimate
    from corral.sim.groups import Group
    from corral.sim.sweep import Combination


def _read_knobs(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Read each `NAME=VALUE,VALUE...`, where the command has an option `--NAME` that takes a number."""
    known = _numbers(ctx.command)
    found: dict[str, tuple[float, ...]] = {}
    for text in given:
        name, _, values = text.partition("=")
        if name not in known:
            raise click.BadParameter(f"There is no knob {name!r}; the knobs are {', '.join(known)}.", ctx, param)
        if name in found:
            raise click.BadParameter(f"The knob {name} is given twice; give it all its values at once.", ctx, param)
        found[name] = tuple(dict.fromkeys(known[name].type(each, param, ctx) for each in values.split(",")))
    return found


def _read_seeds(ctx: click.Context, param: click.Parameter, text: str) -> Sequence[int]:
    """Read `FIRST..LAST`, or numbers with commas between them."""
    seed = click.IntRange(0, 2**62)
    first, dots, last = text.partition("..")
    if not dots:
        return tuple(dict.fromkeys(seed(each, param, ctx) for each in text.split(",")))
    found = range(seed(first, param, ctx), seed(last, param, ctx) + 1)
    if not found:
        raise click.BadParameter(f"{text} ends before it begins.", ctx, param)
    return found


def _numbers(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options that take a number in a range, by their names without dashes."""
    options = (each for each in command.params if isinstance(each.type, Number))
    return {option.opts[0].removeprefix("--"): option for option in options}


class _Row(NamedTuple):
    """A simulation that was played, and its figures."""

    policy: str
    knobs: Mapping[str, float]
    """With the seed."""
    figures: Figures


@click.command("sweep")
@click.option("--policy", "policies", multiple=True, required=True, metavar="NAME", help="Repeat it for each policy.")
@click.option("--knob", "knobs", callback=_read_knobs, multiple=True, metavar="NAME=VALUE,...",
              help="Values of a numeric option below: restart-cost=0,30,60. Repeat it for each knob.")  # fmt: skip
@click.option("--seeds", callback=_read_seeds, default="0", show_default=True, metavar="FIRST..LAST",
              help="The seeds of random draws: 1..5, or 1,3,7.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the combinations and play nothing.")
@pool_options
@question_options
def sweep_command(
    policies: Sequence[str],
    knobs: dict[str, tuple[float, ...]],
    seeds: Sequence[int],
    dry_run: bool,
    results: Path | None,
    resume: bool,
    processes: int,
    output: str,
    **options: Any,
) -> int:
    """Play a trace under every combination of policies, values of knobs, and seeds.

    Each line has the means over the seeds, with their 95 % confidence intervals (Student's t) and the number n of seeds.
    All policies play the same jobs, and draw the same random numbers from a seed. An interrupt ends the processes and
    prints what is finished, with exit code 130. With --results and --resume the same command then plays only the others.
    """
    from corral.sim.groups import grouped
    from corral.sim.sweep import combinations

    planned = combinations(tuple(dict.fromkeys(policies)), knobs, seeds)
    if dry_run:
        _print_plan(planned, output)
        return OK
    numbers = _numbers(sweep_command)
    asked = {}
    for each in planned:
        values = {str(numbers[knob].name): value for knob, value in each.knobs}
        asked[question_of(each.policy, {**options, **values, "seed": each.seed})] = each
    found, code = play(list(asked), results, resume, processes, lambda question: asked[question].file_name)
    rows = [
        _Row(each.policy, {**dict(each.knobs), "seed": each.seed}, found[question])
        for question, each in asked.items()
        if question in found
    ]
    groups = grouped(rows)
    if not show([_record(group) for group in groups], output):
        _print(groups)
    if code == OK and len(seeds) > 1 and all(_is_fixed(group) for group in groups):
        click.echo("Every seed gave the same result: nothing in these options is random.", err=True)
    return code


_HOURS: Final = {"mean_jct": "MEAN JCT", "p99_jct": "P99 JCT", "mean_queueing": "MEAN QUEUEING", "makespan": "MAKESPAN"}


def _print_plan(planned: Sequence[Combination], output: str) -> None:
    """Print each policy and setting with its seeds."""
    seeds: dict[tuple[str, tuple[tuple[str, float], ...]], list[int]] = {}
    for each in planned:
        seeds.setdefault((each.policy, each.knobs), []).append(each.seed)
    rows = [{"policy": policy, "knobs": dict(knobs), "seeds": found} for (policy, knobs), found in seeds.items()]
    if not show(rows, output):
        headings = ("POLICY", *(knob.upper() for knob, _ in planned[0].knobs), "SEEDS")
        lines = [
            (policy, *(f"{value:g}" for _, value in knobs), ", ".join(map(str, found)))
            for (policy, knobs), found in seeds.items()
        ]
        click.echo(table(headings, lines, right=frozenset(range(1, len(headings) - 1))))
        click.echo(f"{counted(len(planned), 'simulation')}.", err=True)


def _settings(group: Group[_Row]) -> dict[str, float]:
    return {knob: value for knob, value in group.members[0].knobs.items() if knob != "seed"}


def _is_fixed(group: Group[_Row]) -> bool:
    return len({member.figures["digest"] for member in group.members}) == 1


def _record(group: Group[_Row]) -> dict[str, Any]:
    """Return a group as JSON, with every knob of the sweep."""
    from corral.sim.groups import record_of

    return {**record_of(group, [member.figures for member in group.members]), "knobs": _settings(group)}


def _print(groups: Sequence[Group[_Row]]) -> None:
    from corral.sim.groups import estimates

    knobs = list(_settings(groups[0])) if groups else []
    headings = ("POLICY", *map(str.upper, knobs), "N", "ENDED", *_HOURS.values(), "UTILISATION", "INTERRUPTIONS")
    lines = []
    for group in groups:
        runs = [member.figures for member in group.members]
        found = estimates(runs)
        lines.append((
            group.policy,
            *(f"{_settings(group)[knob]:g}" for knob in knobs),
            len(runs),
            f"{sum(run['ended'] for run in runs)}/{sum(run['jobs'] for run in runs)}",
            *(_interval(found[name], 1 / 3600, ",.2f", " h") for name in _HOURS),
            _interval(found["utilisation"], 100, ".1f", " %"),
            _interval(found["interruptions"], 1, ",.1f", ""),
        ))  # fmt: skip
    click.echo(table(headings, lines, right=frozenset(range(1, len(headings)))))


def _interval(found: Estimate, times: float, shown: str, unit: str) -> str:
    """Return the mean with its interval, if more than one seed makes one."""
    mean = format(found.mean * times, shown)
    return f"{mean}{unit}" if found.half_width is None else f"{mean} ± {found.half_width * times:{shown}}{unit}"
