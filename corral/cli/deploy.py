"""`corral deploy`: a list of hosts, a check of them, a plan of what a cluster needs on each, and doing its steps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.exit_codes import OK, REFUSED, UNREACHABLE
from corral.cli.output import output_option, paint, say, show, table
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound
from corral.kernel.plug_ins import plug_ins

if TYPE_CHECKING:
    from corral.deploy.checks.connection import Refusal
    from corral.deploy.checks.findings import Finding
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Host, Hosts
    from corral.deploy.steps.bundle import Bundle
    from corral.deploy.steps.step import HostPlan

_MARKS: Final = {"ok": ("✔", "green"), "warning": ("!", "yellow"), "failure": ("✘", "red")}
_BYTES: Final = 1024 * 1024
"""Bytes of a list of hosts, or of a file that one is read from."""


@click.group("deploy")
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
        data, notes = read_inventory(_content(from_inventory), str(from_inventory))
        origin = str(from_inventory)
    elif chosen:
        ((name, paths),) = chosen.items()
        data, notes = plug_ins("corral.host_lists")[name].load().read([(str(path), _content(path)) for path in paths])
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


_hosts_argument = click.argument("hosts", type=click.Path(dir_okay=False, path_type=Path), default="hosts.yaml")
_timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    help="Seconds that a host may take for an answer.",
)


_bundle_option = click.option(
    "--bundle",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Install programs and images from this folder.",
)


@deploy_command.command("check")
@_hosts_argument
@click.option("--host", "names", metavar="NAME", multiple=True, help="Look at this host alone; can be repeated.")
@click.option("--ports/--no-ports", default=True, show_default=True, help="Try the ports between all pairs of hosts.")
@click.option("--all", "everything", is_flag=True, help="Show what is good, too.")
@_timeout_option
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

    chosen = _chosen(hosts, names)
    survey = _survey(chosen, hosts, seconds=timeout, ports=ports)
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
@_hosts_argument
@click.option(
    "--host", "names", metavar="NAME", multiple=True, help="Show the steps of this host alone; can be repeated."
)
@_bundle_option
@click.option("--all", "everything", is_flag=True, help="Show the steps that are done already, too.")
@_timeout_option
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


@deploy_command.command("up")
@_hosts_argument
@click.option("--host", "names", metavar="NAME", multiple=True, help="Prepare this host alone; can be repeated.")
@click.option(
    "--packages",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Install packages from the .deb files of this folder, not from the sources of the hosts.",
)
@_bundle_option
@click.option("--dry-run", is_flag=True, help="Show the plan, and do nothing.")
@_timeout_option
@output_option
def up_command(
    hosts: Path, names: tuple[str, ...], packages: Path | None, bundle: Path | None, dry_run: bool, timeout: float,
    output: str,
) -> int:  # fmt: skip
    """Make the machines of the list HOSTS (hosts.yaml) a cluster of Kubernetes.

    What is so already is left alone, so it can be run again at any time, also after it was cut. A host that fails does
    not stop the others, and each has a log in a folder beside the list. Without a bundle the hosts are only prepared:
    packages, swap, modules, settings of the kernel. Ends with 4 when a host is not prepared, and with 5 when none could
    be reached.

    \b
    corral deploy up
    corral deploy up --bundle bundle --host gpu1
    """
    from corral.cli.deploy_up import Given, up

    given = Given(packages, bundle)
    if dry_run:
        return _plan(hosts, names, given.bundle(), everything=False, timeout=timeout, output=output)
    whole = _chosen(hosts, ())
    chosen = {host.name for host in _chosen(hosts, names).hosts}
    return up(whole, chosen, hosts, lambda: _survey(whole, hosts, seconds=timeout, ports=False), given, output)


@deploy_command.command("status")
@_hosts_argument
@_timeout_option
@output_option
def status_command(hosts: Path, timeout: float, output: str) -> int:
    """Show every component of the cluster on the machines of the list HOSTS (hosts.yaml): health, version, since when.

    Units are asked of systemd on each host, nodes and the system's pods of Kubernetes. Ends with 4 when a component is
    not well, and with 5 when no host could be reached.

    \b
    corral deploy status
    corral deploy status lab.yaml -o json
    """
    from corral.cli.deploy_status import status

    return status(_chosen(hosts, ()), hosts, timeout=timeout, output=output)


@deploy_command.command("reset")
@_hosts_argument
@click.option("--host", "names", metavar="NAME", multiple=True, help="Reset this worker alone; can be repeated.")
@click.option(
    "--cluster",
    prompt="The name of the cluster that is reset",
    metavar="NAME",
    help="The cluster's name, in agreement.",
)
def reset_command(hosts: Path, names: tuple[str, ...], cluster: str) -> int:
    """Take back what `up` made on the machines of the list HOSTS (hosts.yaml); all that runs there ends, and its data goes.

    Files are restored or removed, and so are packages, settings of the kernel, links and rules of the network. Asks for
    the cluster's name. A worker that is reset alone is no longer a node; drain it first. Ends with 4 when a host failed;
    run it again then.

    \b
    corral deploy reset --host gpu2 --cluster lab
    """
    from corral.cli.deploy_reset import reset

    whole = _chosen(hosts, ())
    return reset(whole, {host.name for host in _chosen(hosts, names).hosts}, hosts, cluster)


@deploy_command.group("certs")
def certs_group() -> None:
    """Look after the certificates of the cluster's control planes."""


@certs_group.command("status")
@_hosts_argument
@_timeout_option
@output_option
def certs_status_command(hosts: Path, timeout: float, output: str) -> int:
    """Show when the certificates of the control planes end; those that end within 30 days are marked.

    Ends with 4 when one has ended, or a control plane does not tell.

    \b
    corral deploy certs status
    """
    from corral.cli.deploy_status import certificates

    return certificates(_chosen(hosts, ()), hosts, timeout=timeout, output=output)


@certs_group.command("renew")
@_hosts_argument
def certs_renew_command(hosts: Path) -> int:
    """Renew all certificates that kubeadm made, and restart each control plane, one after the other.

    Running jobs go on. Kubernetes does not answer for some seconds where there is one control plane.

    \b
    corral deploy certs renew
    """
    from corral.cli.deploy_status import renew

    return renew(_chosen(hosts, ()), hosts)


def _plan(
    hosts: Path, names: tuple[str, ...], bundle: Bundle | None, *, everything: bool, timeout: float, output: str
) -> int:
    """Look at the hosts, and show the steps of those named."""
    from corral.deploy.steps.plan import plan_of

    whole = _chosen(hosts, ())
    chosen = {host.name for host in _chosen(hosts, names).hosts}
    survey = _survey(whole, hosts, seconds=timeout, ports=False)
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


def _chosen(path: Path, names: Sequence[str]) -> Hosts:
    """Read the list, and keep the hosts of these names, or all."""
    from corral.deploy.hosts.reader import load_hosts
    from corral.spec.errors import did_you_mean, shorten

    found = load_hosts(_content(path), filename=str(path))
    for name in names:
        if found.named(name) is None:
            hint = did_you_mean(name, [host.name for host in found.hosts])
            raise NotFound("no-such-host", f"{path} has no host {shorten(name)}{hint or '.'}")
    return replace(found, hosts=tuple(host for host in found.hosts if not names or host.name in names))


def _survey(hosts: Hosts, path: Path, *, seconds: float, ports: bool) -> Survey:
    """Look at the hosts, and tell on standard error of each that answered or did not."""
    from corral.deploy.remote.survey import look_at

    begun: list[str] = []

    def told(host: Host, refusal: Refusal | None) -> None:
        begun.append(host.name)
        says = "answered" if refusal is None else f"not reached: {refusal.message}"
        say(f"[{len(begun)}/{len(hosts.hosts)}] {host.name}: {says}")

    return asyncio.run(look_at(hosts, path.absolute(), seconds=seconds, ports=ports, told=told))


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


def _content(path: Path) -> bytes:
    """Return the bytes of a file; the parser refuses one byte more than it takes."""
    try:
        with path.open("rb") as opened:
            return opened.read(_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("no-such-file", f"There is no file {path}.") from None
    except OSError as error:
        raise InvalidInput("unreadable-file", f"{path} cannot be read: {error.strerror}.") from None


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
