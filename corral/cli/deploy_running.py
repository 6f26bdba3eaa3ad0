"""The commands of `corral deploy` for a cluster that runs: its state, its nodes, its backups and its certificates."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from corral.cli.command_group import CommandGroup
from corral.cli.deploy_options import (
    bundle_option,
    chosen_hosts,
    hosts_argument,
    hosts_option,
    packages_option,
    skip_option,
    survey_of,
    timeout_option,
)
from corral.cli.output import output_option
from corral.kernel.errors import InvalidInput, NotFound


@click.command("status")
@hosts_argument
@timeout_option
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

    return status(chosen_hosts(hosts, ()), hosts, timeout=timeout, output=output)


@click.command("reset")
@hosts_argument
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

    whole = chosen_hosts(hosts, ())
    return reset(whole, {host.name for host in chosen_hosts(hosts, names).hosts}, hosts, cluster)


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@hosts_argument
def backup_command(file: Path, hosts: Path) -> int:
    """Write what a new cluster cannot make again to FILE: Corral's store and key, the portal's key, the authorities' keys.

    With Hadoop in the list HDFS' metadata are in it, too; where only they cannot be had, FILE has the rest, and it ends
    with 4. Corral and jobs go on. FILE is readable for this account alone; what is in it is listed with its SHA-256. Logs
    and code of jobs are not in it: they are in the folder corral-data of Corral's host.

    \b
    corral deploy backup lab.backup
    """
    from corral.cli.deploy_backup import backup

    return backup(chosen_hosts(hosts, ()), hosts, file)


@click.command("restore")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@hosts_argument
@click.option("--cluster", metavar="NAME", help="The cluster's name, in agreement; without it, it is asked for.")
@click.option("--only", type=click.Choice(("corral", "hdfs")), help="Restore this part alone.")
@click.option("--from-cluster", "other", default="", metavar="NAME", help="The backup is of the cluster of this name.")
def restore_command(file: Path, hosts: Path, cluster: str | None, only: str | None, other: str) -> int:
    """Restore accounts, queues and history of the backup FILE in a cluster in which `up` has installed Corral.

    The server stops meanwhile; its database of before is kept under another name. Tasks that the backup does not know are
    ended. HDFS' metadata are restored where the list has Hadoop and the backup has them; an HDFS that the NameNode has
    still is left as it is unless --only hdfs asks for it. What each part loses is told before the cluster's name is asked
    for. An altered file is refused, and one of another cluster unless --from-cluster names that.

    \b
    corral deploy restore lab.backup --cluster lab
    corral deploy restore lab.backup --only corral
    """
    from corral.cli.deploy_backup import restore

    return restore(chosen_hosts(hosts, ()), hosts, file, cluster, other, only)


@click.command("diff")
@hosts_argument
@bundle_option
@timeout_option
@output_option
def diff_command(hosts: Path, bundle: Path | None, timeout: float, output: str) -> int:
    """Show how the machines differ from what the list HOSTS (hosts.yaml) describes; nothing on them is changed.

    Files are compared by their SHA-256, units, versions and settings by what they are, nodes with those of Kubernetes, and
    certificates that end within 30 days are named; with a bundle programs and images too. Ends as diff does: with 0 where
    nothing differs, with 1 where something does, and with 2 where a host or Kubernetes did not tell.

    \b
    corral deploy diff --bundle bundle
    """
    from corral.cli.deploy_diff import diff

    try:
        from corral.cli.deploy_up import Given

        whole, found = chosen_hosts(hosts, ()), Given(None, bundle).bundle()
    except NotFound as error:
        raise InvalidInput(error.code, error.message) from None
    return diff(whole, hosts, survey_of(whole, hosts, seconds=timeout, ports=False), found, timeout, output)


@click.command("add-node")
@click.argument("names", metavar="HOST...", nargs=-1, required=True)
@hosts_option
@packages_option
@bundle_option
@skip_option
@click.option(
    "--validate", is_flag=True,
    help="Let Corral validate it, too: by the administrator's sign-in of this account.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@timeout_option
@output_option
def add_node_command(
    names: tuple[str, ...], hosts: Path, packages: Path | None, bundle: Path | None, skipped: tuple[str, ...],
    validate: bool, dry_run: bool, timeout: float, output: str,
) -> int:  # fmt: skip
    """Add HOST of the list to the running cluster as a worker.

    It is checked, joins closed to tasks, is validated by a pod that must start, reach the cluster's DNS and have logs, and
    is then offered to the scheduler. With --validate Corral's validation job must succeed on it first (corral nodes
    validate). After a cut, or a failure that is mended, run it again. Ends with 4 when a host was not added, and with 5
    when none could be reached.

    \b
    corral deploy add-node gpu3 --bundle bundle
    corral deploy add-node gpu3 --bundle bundle --validate
    """
    from corral.cli.deploy_nodes import add
    from corral.cli.deploy_up import Given

    whole = chosen_hosts(hosts, ())
    chosen = [host.name for host in chosen_hosts(hosts, names).hosts]
    with ExitStack() as stack:
        validation = None
        if validate:
            from corral.cli.connection import connect
            from corral.cli.deploy_validation import Validation, require_engine

            client = stack.enter_context(connect())
            require_engine(client)
            validation = Validation(client)
        return add(
            whole, chosen, hosts, lambda ports: survey_of(whole, hosts, seconds=timeout, ports=ports),
            Given(packages, bundle), skipped, output, dry_run=dry_run, validation=validation,
        )  # fmt: skip


_drain_option = click.option(
    "--drain-timeout",
    "seconds",
    type=click.IntRange(1, 86400),
    default=600,
    show_default=True,
    help="Seconds that it may take to be emptied.",
)
_end_tasks_option = click.option(
    "--end-tasks", is_flag=True, help="End tasks on it that no controller would start again."
)


@click.command("upgrade")
@hosts_argument
@click.option("--host", "names", metavar="NAME", multiple=True, help="Upgrade this host alone; can be repeated.")
@packages_option
@bundle_option
@skip_option
@_drain_option
@_end_tasks_option
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@timeout_option
@output_option
def upgrade_command(
    hosts: Path, names: tuple[str, ...], packages: Path | None, bundle: Path | None, skipped: tuple[str, ...],
    seconds: int, end_tasks: bool, dry_run: bool, timeout: float, output: str,
) -> int:  # fmt: skip
    """Upgrade the running cluster to the version of Kubernetes in the list HOSTS (hosts.yaml), and to Corral's image there.

    All nodes are checked first, and nothing is done where one is refused. Then one node after the other, control planes
    first: it takes no new pods, its tasks are waited for, it is drained, upgraded, validated by a pod, and takes pods
    again. The first failure ends it; after that, or after a cut, run it again. Ends with 4 when a host was not upgraded.

    \b
    corral deploy upgrade --bundle bundle-1.34.5 --dry-run
    corral deploy upgrade --bundle bundle-1.34.5 --drain-timeout 86400
    """
    from corral.cli.deploy_portal import with_certificate
    from corral.cli.deploy_up import Given
    from corral.cli.deploy_upgrade import Wish, upgrade

    whole = with_certificate(chosen_hosts(hosts, ()), hosts)
    chosen = frozenset(host.name for host in chosen_hosts(hosts, names).hosts)
    return upgrade(
        whole, hosts, lambda ports: survey_of(whole, hosts, seconds=timeout, ports=ports), Given(packages, bundle),
        Wish(chosen, skipped, seconds, end_tasks, dry_run), output,
    )  # fmt: skip


@click.command("remove-node")
@click.argument("names", metavar="HOST...", nargs=-1, required=True)
@hosts_option
@click.option("--cluster", metavar="NAME", help="The cluster's name, in agreement.")
@_drain_option
@_end_tasks_option
@click.option("--lost", is_flag=True, help="The machine is gone: take it out of the cluster alone.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@timeout_option
@output_option
def remove_node_command(
    names: tuple[str, ...], hosts: Path, cluster: str | None, seconds: int, end_tasks: bool, lost: bool, dry_run: bool,
    timeout: float, output: str,
) -> int:  # fmt: skip
    """Remove HOST, a worker or one of several control planes, from the running cluster, and leave it as `up` found it.

    It takes no new pods, is drained, reset, and taken out of Kubernetes. A worker of Hadoop is reset once HDFS has copied
    its blocks to others and no container of YARN runs on it. Asks for the cluster's name. After a cut, or a failure that
    is mended, run it again. Ends with 4 when a host was not removed, and with 5 when none could be reached.

    \b
    corral deploy remove-node gpu2 --cluster lab
    corral deploy remove-node gpu3 --cluster lab --lost
    """
    from corral.cli.deploy_nodes import remove

    whole = chosen_hosts(hosts, ())
    chosen = [host.name for host in chosen_hosts(hosts, names).hosts]
    if not dry_run and cluster is None:
        cluster = click.prompt("The name of the cluster that nodes are removed from", err=True)
    return remove(
        whole, chosen, hosts, lambda ports: survey_of(whole, hosts, seconds=timeout, ports=ports), output,
        cluster=cluster, seconds=seconds, end_tasks=end_tasks, lost=lost, dry_run=dry_run,
    )  # fmt: skip


@click.group("certs", cls=CommandGroup)
def certs_group() -> None:
    """Look after the certificates of the cluster's control planes."""


@certs_group.command("status")
@hosts_argument
@timeout_option
@output_option
def certs_status_command(hosts: Path, timeout: float, output: str) -> int:
    """Show when the certificates of the control planes end; those that end within 30 days are marked.

    Those of the cluster's own registry are shown, too. Ends with 4 when one has ended, or a control plane does not tell.

    \b
    corral deploy certs status
    """
    from corral.cli.deploy_status import certificates

    return certificates(chosen_hosts(hosts, ()), hosts, timeout=timeout, output=output)


@certs_group.command("renew")
@hosts_argument
def certs_renew_command(hosts: Path) -> int:
    """Renew all certificates that kubeadm made, and restart each control plane, one after the other.

    Running jobs go on. Kubernetes does not answer for some seconds where there is one control plane.

    \b
    corral deploy certs renew
    """
    from corral.cli.deploy_status import renew

    return renew(chosen_hosts(hosts, ()), hosts)


COMMANDS = (
    status_command, reset_command, backup_command, restore_command, diff_command, add_node_command, remove_node_command,
    upgrade_command,
    certs_group,
)  # fmt: skip
