"""Commands that start and maintain a server, on the machine of its data folder.

Only these commands import the server's code, and only when they run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from corral.cli.exit_codes import JOB_FAILED, OK, REFUSED
from corral.cli.output import fields, paint, say
from corral.kernel.errors import Conflict, InvalidInput
from corral.kernel.garbage import collect_rarely

if TYPE_CHECKING:
    from corral.settings import Settings

_file = click.Path(dir_okay=False, path_type=Path)
_folder = click.Path(file_okay=False, path_type=Path)
data_option = click.option("--data", "data_folder", type=_folder, help="The data folder [CORRAL_DATA_FOLDER].")
_Command = TypeVar("_Command", bound=Callable[..., Any])
_SHOWN = 10
"""Jobs listed that did not end in time."""
_STOP_TIMEOUT = 300.0
"""Seconds that `down --stop-jobs` waits for the jobs."""


def _engine_option(text: str) -> Callable[[_Command], _Command]:
    def named(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...] | None:
        return names or None

    return click.option("--engine", multiple=True, metavar="NAME", callback=named, help=text)


_SETTINGS = (
    data_option,
    click.option("--cluster", type=_file, help="Configuration documents for the first start: Cluster, Queue, Policy."),
    click.option("--alert-rules", type=_file, help="Alert rules in Prometheus' format that the scheduler evaluates."),
    click.option("--alert-actions", type=_file, help="Routes that say which alerts stop jobs and cordon nodes."),
    click.option("--prometheus", default=None, metavar="URL", help="A Prometheus with series of over 90 days ago."),
    click.option("--host", default=None, help="The address to listen on; default: 127.0.0.1."),
    click.option("--port", type=click.IntRange(0, 65535), default=None, help="The port; default: 8470; 0 is any."),
    click.option("--advertise", default=None, metavar="URL", help="Where tasks reach the server."),
    click.option("--database-url", default=None, metavar="URL", help="PostgreSQL instead of the embedded SQLite."),
    click.option("--blobs", default=None, metavar="URI", help="Logs and code at s3://… or hdfs://…, not in a folder."),
    _engine_option("Where tasks run: local (default), kubernetes, yarn or a plug-in; repeat it for several."),
    click.option(
        "--kubeconfig", default=None, metavar="FILE", help="The cluster's kubeconfig, with --engine kubernetes."
    ),
    click.option("--namespace", default=None, help="The namespace of the pods; default: corral."),
    click.option(
        "--default-image", default=None, metavar="IMAGE", help="The image of jobs that name none, on Kubernetes."
    ),
    click.option(
        "--object-accounts",
        default=None,
        metavar="NAMESPACE=ACCOUNT",
        help="The account of a namespace's objects.",
    ),
    click.option(
        "--yarn-resource-managers",
        default=None,
        metavar="URL",
        help="The ResourceManager with --engine yarn: http://HOST:8088.",
    ),
    click.option(
        "--yarn-name-nodes", default=None, metavar="URL", help="The NameNode with --engine yarn: http://HOST:9870."
    ),
    click.option("--yarn-user", default=None, metavar="USER", help="The Hadoop user that Corral calls as."),
    click.option("--yarn-principal", default=None, metavar="PRINCIPAL", help="Its Kerberos principal: NAME@REALM."),
    click.option("--yarn-keytab", default=None, metavar="FILE", help="The keytab of the Kerberos principal."),
    click.option(
        "--yarn-users", default=None, metavar="ACCOUNT=USER", help="The Hadoop user that an account's tasks run as."
    ),
    click.option("--yarn-queue", default=None, metavar="QUEUE", help="The YARN queue; default: default."),
    click.option(
        "--yarn-queues", default=None, metavar="QUEUE=QUEUE", help="The YARN queue of one of Corral's queues."
    ),
    click.option("--yarn-folder", default=None, metavar="PATH", help="Corral's folder in HDFS; default: /apps/corral."),
    click.option(
        "--trust-users", is_flag=True, default=None, help="Allow several accounts although tasks share one uid."
    ),
    click.option("--tls-cert", "tls_certificate", type=_file, help="Serve HTTPS with this certificate chain (PEM)."),
    click.option("--tls-key", type=_file, help="The certificate's private key (PEM)."),
    click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning", "error")),
        default=None,
        help="How much to log; default: info.",
    ),
)


def _settings_options(command: Any) -> Any:
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


_new_option = click.option(
    "--new",
    is_flag=True,
    help="Start empty next to the key, logs or engine folder of an earlier server, without asking.",
)


@click.command("up")
@_settings_options
@_new_option
@click.option("--detach", is_flag=True, help="Leave it running in the background.")
@click.option(
    "-o", "--output", type=click.Choice(("table", "json")), default="table", help="How to print it, with --detach."
)
def up_command(detach: bool, new: bool, output: str, **given: Any) -> None:
    """Start Corral on this machine: server, portal, scheduler, and the engine of this machine or of a cluster.

    Prints the URL, and on a new server a one-time sign-in link. Ctrl-C (or `corral down`) ends the server and leaves
    the jobs running; the next `corral up` adopts them.

    \b
    corral up                                  this machine as found
    corral up --cluster examples/cluster.yaml  with racks and described devices
    corral up --engine kubernetes --kubeconfig ~/.kube/config --advertise http://10.0.0.5:8470 --host 0.0.0.0
    corral up --engine yarn --yarn-resource-managers http://rm:8088 --yarn-name-nodes http://nn:9870 --advertise …
    corral up --engine kubernetes --engine local …  on a cluster and on this machine
    """
    collect_rarely()
    settings = make_settings(**given)
    from corral import lifecycle

    try:
        facts = lifecycle.up(settings, detach=detach, new=new)
    except Conflict as error:
        if error.code != "not-a-new-folder" or not sys.stdin.isatty():
            raise
        click.confirm(f"{error.message}\nStart empty?", abort=True, err=True)
        facts = lifecycle.up(settings, detach=detach, new=True)
    if output == "json":
        click.echo(json.dumps(facts))
        return
    click.echo(fields({"Corral is ready": facts["url"], "Sign in (once)": facts.get("link", "")}))
    if facts.get("note"):
        say(f"Note: {facts['note']}")
    if facts.get("link"):
        say(f"From the command line: corral login '{facts['link']}'")


@click.command("down")
@data_option
@click.option("--stop-jobs", is_flag=True, help="Stop all jobs first, and wait until they have ended.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600),
    default=None,
    metavar="SECONDS",
    help="With --stop-jobs: how long to wait for the jobs before the server ends without them; "
    f"default: {_STOP_TIMEOUT:g}.",
)
def down_command(data_folder: Path | None, stop_jobs: bool, timeout: float | None) -> int:
    """Stop the server of the data folder; its jobs continue, unless --stop-jobs."""
    if timeout is not None and not stop_jobs:
        raise click.UsageError("--timeout is for --stop-jobs; without it nothing waits for jobs.")
    timeout = _STOP_TIMEOUT if timeout is None else timeout
    settings = make_settings(data_folder=data_folder)
    from corral import lifecycle

    found = lifecycle.down(settings, stop_jobs=timeout if stop_jobs else None)
    if not found.ran:
        say(f"No server runs on {settings.data_folder}.")
        return OK
    if found.left:
        more = len(found.left) - _SHOWN
        jobs = ", ".join(found.left[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        say(f"The server has ended. Not ended within {timeout:g} s, and taken over by the next corral up: {jobs}.")
        return JOB_FAILED
    say("The server has ended." + ("" if stop_jobs else " Jobs go on; the next corral up takes them over."))
    return OK


@click.command("serve")
@click.argument("what", type=click.Choice(("front", "control")))
@_settings_options
@_new_option
@click.option("--check", is_flag=True, help="Only check whether control answers (for probes); exit code 0 if it does.")
def serve_command(what: str, check: bool, new: bool, **given: Any) -> int:
    """Run one of the server's two processes in the foreground, unsupervised (for containers)."""
    settings = make_settings(**given)
    if check:
        from corral import lifecycle

        lifecycle.ask_control(settings, "GET", "/ping")
        return OK
    from corral import app, lifecycle, supervisor

    if new:
        os.environ[supervisor.NEW] = "1"
    if not settings.database_url:  # containers get their key and their volume for logs before the first start
        lifecycle.check_beginning(settings, new=new)

    return app.serve_front(settings) if what == "front" else app.serve_control(settings)


@click.command("sign-in-link")
@data_option
@click.option(
    "--url", default=None, metavar="URL", help="The server's URL; default: --advertise, else where it listens."
)
@click.option("--first", is_flag=True, help="Print none once an administrator has signed in.")
def sign_in_link_command(data_folder: Path | None, url: str | None, first: bool) -> None:
    """Print a one-time sign-in link for the administrator, on the server's machine (or in its pod).

    Anybody who can read the data folder and reach the store can sign in as the administrator.

    \b
    kubectl -n corral exec deploy/corral -c front -- corral sign-in-link
    """
    settings = make_settings(data_folder=data_folder)
    from corral import supervisor, upkeep

    running = supervisor.running(settings.data_folder) or {}
    address = url or settings.advertise or running.get("url") or settings.address
    if link := upkeep.sign_in_link(settings, address, first=first):
        click.echo(link)


@click.command("doctor")
@data_option
@_engine_option("The engine to check besides the server; repeat it for several.")
@click.option("--kubeconfig", default=None, metavar="FILE", help="The cluster's kubeconfig, with --engine kubernetes.")
@click.option("--namespace", default=None, help="The namespace of the pods; default: corral.")
@click.option("--default-image", default=None, metavar="IMAGE", help="The image of the pod that tries the registry.")
@click.option(
    "--yarn-resource-managers",
    default=None,
    metavar="URL",
    help="The ResourceManager with --engine yarn: http://HOST:8088.",
)
@click.option(
    "--yarn-name-nodes", default=None, metavar="URL", help="The NameNode with --engine yarn: http://HOST:9870."
)
@click.option("--yarn-user", default=None, metavar="USER", help="The Hadoop user that Corral calls as.")
@click.option("--yarn-principal", default=None, metavar="PRINCIPAL", help="Its Kerberos principal: NAME@REALM.")
@click.option("--yarn-keytab", default=None, metavar="FILE", help="The keytab of the Kerberos principal.")
@click.option(
    "--yarn-users", default=None, metavar="ACCOUNT=USER", help="The Hadoop user that an account's tasks run as."
)
@click.option("--yarn-queue", default=None, metavar="QUEUE", help="The YARN queue.")
@click.option("--yarn-queues", default=None, metavar="QUEUE=QUEUE", help="The YARN queue of one of Corral's queues.")
@click.option("--yarn-folder", default=None, metavar="PATH", help="Corral's folder in HDFS.")
@click.option("--advertise", default=None, metavar="URL", help="Where a probe on the cluster reaches the server.")
@click.option("--probe/--no-probe", default=True, help="Run the probe (a pod or a container), or only read.")
@click.option("--probe-node", default="", metavar="NODE", help="The node of the probe; default: any ready node.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="How to print it.",
)
def doctor_command(output: str, probe: bool, probe_node: str, **given: Any) -> int:
    """Check this installation and the cluster that jobs run on; ends with 4 when something must be repaired.

    \b
    corral doctor
    corral doctor --engine kubernetes --kubeconfig ~/.kube/config --default-image registry.example/base:1
    corral doctor --engine yarn --yarn-resource-managers http://rm:8088 --yarn-name-nodes http://nn:9870
    """
    settings = make_settings(**given)
    from corral import upkeep

    checks = upkeep.doctor(settings, probe=probe, probe_node=probe_node)
    bad = any(check.state == "bad" for check in checks)
    if output == "json":
        click.echo(json.dumps([check._asdict() for check in checks], indent=2))
    else:
        marks = {"good": ("✔", "green"), "note": ("·", "yellow"), "bad": ("✘", "red")}
        for check in checks:
            mark, colour = marks[check.state]
            click.echo(f"{paint(mark, colour)} {check.name}: {check.message}")
    return REFUSED if bad else OK


@click.command("backup")
@click.argument("target", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@data_option
@click.option("--with-key", is_flag=True, help="Put the key beside it, so that sealed secrets can be opened again.")
def backup_command(target: Path, data_folder: Path | None, with_key: bool) -> None:
    """Write a consistent copy of the store to TARGET, or to standard output (-), while the server is in use."""
    settings = make_settings(data_folder=data_folder)
    from corral import upkeep

    if str(target) == "-":
        if with_key:
            raise click.UsageError("The key goes beside a file: name one.")
        upkeep.backup_to(settings, sys.stdout.buffer)
        return
    size = upkeep.backup(settings, target, with_key=with_key)
    say(f"{target} has {size / 1024**2:.1f} MiB.")
    if not with_key:
        say("The key is not in it: without it, sealed secrets cannot be opened. Keep it elsewhere, or use --with-key.")


@click.command("restore")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@data_option
@click.option("--yes", is_flag=True, help="Replace what the data folder has without asking.")
def restore_command(source: Path, data_folder: Path | None, yes: bool) -> None:
    """Restore a backup, of a file or of standard input (-), into the data folder of a stopped server.

    The next start adopts running jobs that the backup contains, and ends all others.
    """
    settings = make_settings(data_folder=data_folder)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("This replaces the store; say --yes.")
        click.confirm(f"Replace the store of {settings.data_folder}?", abort=True, err=True)
    from corral import upkeep

    if str(source) == "-":
        upkeep.restore_from(settings, sys.stdin.buffer)
        return
    kept = upkeep.restore(settings, source)
    say(f"The store is that of {source}." + (f" The one before is kept as {kept}." if kept else ""))


@click.command("rotate-key")
@data_option
def rotate_key_command(data_folder: Path | None) -> None:
    """Create a new key and encrypt all secrets with it, while the server is stopped.

    Everything that was signed with the old key becomes invalid.
    """
    settings = make_settings(data_folder=data_folder)
    from corral import upkeep

    say(f"{upkeep.rotate_key(settings)} secrets are sealed with the new key; the old one is forgotten.")


def make_settings(**given: Any) -> Settings:
    """Return the settings of the options and the environment.

    Raises InvalidInput that names the invalid setting, or the package to install.
    """
    try:
        from pydantic import ValidationError

        from corral.settings import Settings
    except ModuleNotFoundError as error:
        raise InvalidInput("no-server", _no_server(error.name or "")) from None
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidInput("invalid-setting", f"The setting {name} cannot be used: {first['msg']}.") from None


def _no_server(missing: str) -> str:
    from importlib import metadata

    try:
        metadata.distribution("corral-client")
    except metadata.PackageNotFoundError:
        return f"The server is not complete here ({missing} is missing); run: pip install --force-reinstall corral."
    return "corral-client has no server in it; run: pip uninstall corral-client, then pip install corral."
