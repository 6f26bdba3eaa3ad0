"""`corral deploy`: a list of hosts, a check of them, a plan of what a cluster needs on each, and doing its steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.command_group import CommandGroup
from corral.cli.deploy_options import (
    bundle_option,
    chosen_hosts,
    content_of,
    hosts_argument,
    packages_option,
    skip_option,
    survey_of,
    timeout_option,
)
from corral.cli.deploy_running import COMMANDS
from corral.cli.exit_codes import OK, REFUSED, UNREACHABLE
from corral.cli.output import output_option, paint, say, show, table
from corral.kernel.errors import Conflict, CorralError, InvalidInput
from corral.kernel.plug_ins import plug_ins

if TYPE_CHECKING:
    from corral.deploy.checks.findings import Finding
    from corral.deploy.steps.bundle import Bundle
    from corral.deploy.steps.step import HostPlan

_MARKS: Final = {"ok": ("✔", "green"), "warning": ("!", "yellow"), "failure": ("✘", "red")}


@click.group("deploy", cls=CommandGroup)
def deploy_command() -> None:
    """Make bare machines a cluster, over SSH."""


def _formats(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each plug-in that reads another system's list of machines."""
    for name, point in sorted(plug_ins("corral.host_lists").items()):
        found = point.load()
        path = click.Path(dir_okay=False, path_type=Path)
        command = click.option(
            f"--from-{name}", f"from_{name}", nargs=len(found.files), type=path,
            metavar=" ".join(found.files), help=found.help,
        )(command)  # fmt: skip
    return command


@deploy_command.command("init")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="hosts.yaml")
@_formats
@click.option(
    "--from-inventory",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read Kubespray's inventory: YAML if its name ends so, else INI.",
)
def init_command(file: Path, from_inventory: Path | None, **others: tuple[Path, ...] | None) -> int:
    """Write a list of hosts to FILE (hosts.yaml), as an example or from another system's list.

    A file that is there is never replaced. What is left out of another list is told on standard error.

    \b
    corral deploy init
    corral deploy init lab.yaml --from-inventory inventory/mycluster/inventory.ini
    """
    from corral.deploy.hosts.kubespray import from_inventory as read_inventory
    from corral.deploy.hosts.reader import hosts_of
    from corral.deploy.hosts.template import EXAMPLE, text_of

    chosen = {name.removeprefix("from_"): paths for name, paths in others.items() if paths}
    if len(chosen) + (from_inventory is not None) > 1:
        raise InvalidInput("several-origins", "Name one list to read from.")
    if from_inventory is not None:
        data, notes = read_inventory(content_of(from_inventory), str(from_inventory))
        origin = str(from_inventory)
    elif chosen:
        ((name, paths),) = chosen.items()
        data, notes = plug_ins("corral.host_lists")[name].load().read([(str(path), content_of(path)) for path in paths])
        origin = " and ".join(str(path) for path in paths)
    else:
        data, notes, origin = {}, [], ""
    if data:
        hosts_of(data, filename=origin)
    _write_new(file, text_of(data, origin) if data else EXAMPLE)
    for note in notes:
        say(note)
    click.echo(f"Wrote {file}. Next: corral deploy check {file}")
    return OK


@deploy_command.command("check")
@hosts_argument
@click.option("--host", "names", metavar="NAME", multiple=True, help="Look at this host alone; can be repeated.")
@click.option("--ports/--no-ports", default=True, show_default=True, help="Try the ports between all pairs of hosts.")
@click.option("--all", "everything", is_flag=True, help="Show what is good, too.")
@timeout_option
@output_option
def check_command(
    hosts: Path, names: tuple[str, ...], ports: bool, everything: bool, timeout: float, output: str
) -> int:
    """Check whether the machines of the list HOSTS (hosts.yaml) can become a cluster; nothing on them is changed.

    Host keys are pinned at the first look, in a file beside the list. Ends with 4 when a check failed, and with 5 when
    no host could be reached. Warnings do not count.

    \b
    corral deploy check
    corral deploy check lab.yaml --host gpu1 --host gpu2
    corral deploy check -o json > report.json
    """
    from corral.deploy.checks.report import count, document, findings_of

    chosen = chosen_hosts(hosts, names)
    survey = survey_of(chosen, hosts, seconds=timeout, ports=ports)
    findings = findings_of(chosen, survey)
    failures = count(findings, "failure")
    if not show(
        document(chosen, findings), output, names=sorted({each.host for each in findings if each.level == "failure"})
    ):
        _print(findings, everything=everything)
        warnings, good = count(findings, "warning"), count(findings, "ok")
        say(
            f"{len(survey.seen)} of {len(chosen.hosts)} hosts answered: "
            f"{failures} failed, {warnings} warnings, {good} good."
        )
    if not survey.seen:
        return UNREACHABLE
    return REFUSED if failures else OK


@deploy_command.command("plan")
@hosts_argument
@click.option(
    "--host", "names", metavar="NAME", multiple=True, help="Show the steps of this host alone; can be repeated."
)
@bundle_option
@click.option("--all", "everything", is_flag=True, help="Show the steps that are done already, too.")
@timeout_option
@output_option
def plan_command(
    hosts: Path, names: tuple[str, ...], bundle: Path | None, everything: bool, timeout: float, output: str
) -> int:
    """Show each step that makes a cluster of the machines in the list HOSTS (hosts.yaml); nothing is done.

    The hosts are looked at, as the check does. Files are shown with their differences, without secrets. Ends with 4
    when something stands in the way of a step.

    \b
    corral deploy plan
    corral deploy plan lab.yaml --host gpu1 --all
    """
    from corral.cli.deploy_up import Given

    found = Given(None, bundle).bundle()
    return _plan(hosts, names, found, everything=everything, timeout=timeout, output=output)


@deploy_command.command("bundle")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--wheels", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Add the wheels of this folder: Corral's own and what they need.",
)  # fmt: skip
@output_option
def bundle_command(folder: Path, file: Path, wheels: Path | None, output: str) -> int:
    """Make one FILE of the bundle in FOLDER, for networks without registries.

    FOLDER has `bin`, `cni`, `images`, and if wanted `packages`, `charts` and `wheels`. What is in FILE is listed with size,
    SHA-256, version and licence, and that list is in it too. `plan`, `up`, `add-node`, `upgrade` and `diff` take it
    (--bundle), and refuse one that was altered or cut off.

    \b
    corral deploy bundle bundle bundle-1.34.4.tar
    corral deploy bundle bundle bundle-1.34.4.tar --wheels wheels
    corral deploy up --bundle bundle-1.34.4.tar
    """
    from corral.deploy.remote.bundle_file import pack

    manifest = pack(folder, file, wheels)
    data = [{"path": path, **entry.to_document()} for path, entry in manifest.files.items()]
    if not show(data, output, names=list(manifest.files)):
        rows = [
            (path, each.size, each.digest[:12], each.version, each.licence) for path, each in manifest.files.items()
        ]
        click.echo(table(("FILE", "BYTES", "SHA-256", "VERSION", "LICENCE"), rows))
        say(f"{file} has {len(manifest.files)} files for {manifest.architecture}.")
    return OK


@deploy_command.command("up")
@hosts_argument
@click.option("--host", "names", metavar="NAME", multiple=True, help="Prepare this host alone; can be repeated.")
@packages_option
@bundle_option
@skip_option
@click.option("--dry-run", is_flag=True, help="Show the plan, and do nothing.")
@timeout_option
@output_option
def up_command(
    hosts: Path, names: tuple[str, ...], packages: Path | None, bundle: Path | None, skipped: tuple[str, ...],
    dry_run: bool, timeout: float, output: str,
) -> int:  # fmt: skip
    """Make the machines of the list HOSTS (hosts.yaml) a cluster of Kubernetes.

    The hosts are checked first, and one whose failure would stop its steps or do harm is left out (see the check).
    What is so already is left alone, so it can be run again at any time, also after it was cut. A host that fails does
    not stop the others, and each has a log in a folder beside the list. Without a bundle the hosts are only prepared:
    packages, swap, modules, settings of the kernel. Where the list asks for Corral, it ends with the portal's address,
    and with a one-time sign-in link until an administrator has signed in. Ends with 4 when a host is not prepared, and
    with 5 when none could be reached.

    \b
    corral deploy up
    corral deploy up --bundle bundle --host gpu1
    """
    from corral.cli.deploy_portal import with_certificate
    from corral.cli.deploy_up import Asked, Given, up

    given = Given(packages, bundle)
    if dry_run:
        return _plan(hosts, names, given.bundle(), everything=False, timeout=timeout, output=output)
    whole = with_certificate(chosen_hosts(hosts, ()), hosts)
    chosen = frozenset(host.name for host in chosen_hosts(hosts, names).hosts)
    return up(Asked(whole, chosen, hosts.absolute(), given, skipped, timeout), output)


def _plan(
    hosts: Path, names: tuple[str, ...], bundle: Bundle | None, *, everything: bool, timeout: float, output: str
) -> int:
    """Look at the hosts, and show the steps of those named."""
    from corral.cli.deploy_portal import with_certificate
    from corral.deploy.steps.plan import plan_of

    whole = with_certificate(chosen_hosts(hosts, ()), hosts)
    chosen = {host.name for host in chosen_hosts(hosts, names).hosts}
    survey = survey_of(whole, hosts, seconds=timeout, ports=False)
    plans = [each for each in plan_of(whole, survey, bundle) if each.name in chosen]
    data = {"cluster": whole.cluster, "hosts": [each.to_document() for each in plans]}
    if not show(data, output, names=[each.name for each in plans if each.changes]):
        for each in plans:
            _print_plan(each, everything=everything)
        say(f"{sum(each.changes for each in plans)} steps on {len(plans)} hosts. Nothing was done.")
    return REFUSED if any(each.obstacles for each in plans) else OK


def _print_plan(plan: HostPlan, *, everything: bool) -> None:
    click.echo(paint(f"{plan.name} ({', '.join(plan.roles)})", bold=True))
    for obstacle in plan.obstacles:
        click.echo(f"  {paint('✘', 'red')} {obstacle}")
    for step in plan.steps:
        if step.needed or everything:
            click.echo(f"  {paint('+', 'green') if step.needed else '='} {step.kind:8} {step.title}")
        if step.detail and step.kind == "kubeadm":
            click.echo(f"             phases: {', '.join(step.detail)}")
        elif step.needed:
            for line in step.detail:
                click.echo(f"               {paint(line, {'+': 'green', '-': 'red'}.get(line[:1], ''))}")
    for note in plan.notes:
        click.echo(f"  · {note}")


def _print(findings: Sequence[Finding], *, everything: bool) -> None:
    shown = [each for each in findings if everything or each.level != "ok"]
    rows = [(paint(*_MARKS[each.level]), each.host, each.check, each.message) for each in shown]
    if rows:
        click.echo(table(("", "HOST", "CHECK", "FINDING"), rows))
    remedies: dict[tuple[str, str], dict[str, None]] = {}
    for each in shown:
        if each.remedy:
            remedies.setdefault((each.check, each.remedy), {})[each.host] = None
    if remedies:
        click.echo("\nWhat to do:")
    for (check, remedy), where in remedies.items():
        names = list(where)
        told = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        click.echo(f"  {check} ({told}): {remedy}")


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        os.link(beside, path)
    except FileExistsError:
        raise Conflict("file-exists", f"{path} is there already; name another file, or remove it first.") from None
    except OSError as error:
        raise CorralError("unwritable-file", f"{path} cannot be written: {error.strerror}.") from None
    finally:
        beside.unlink(missing_ok=True)


for _command in COMMANDS:
    deploy_command.add_command(_command)
