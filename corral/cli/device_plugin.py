"""`corral device-plugin`: run the process that publishes a node's devices to Kubernetes."""

from __future__ import annotations

from pathlib import Path

import click

from corral.cli.exit_codes import OK, REFUSED
from corral.cli.output import say
from corral.kernel.errors import InvalidInput

_folder = click.Path(file_okay=False, path_type=Path)


@click.command("device-plugin")
@click.option(
    "--describe",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The Devices document: which devices there are, and what containers get with each.",
)
@click.option(
    "--kubelet-root",
    type=_folder,
    default=Path("/var/lib/kubelet"),
    show_default=True,
    help="The kubelet's root folder.",
)
@click.option(
    "--cdi-dir",
    type=_folder,
    default=Path("/var/run/cdi"),
    show_default=True,
    help="Where the container runtime looks for CDI documents.",
)
@click.option("--kubeconfig", default="", metavar="FILE", help="How to reach the cluster; a pod needs none.")
@click.option("--context", default="", help="The kubeconfig's context; default: its current one.")
@click.option("--node", default="", help="This node's name; default: NODE_NAME, or the machine's name.")
@click.option(
    "--check",
    type=click.Choice(("live", "ready")),
    default=None,
    help="Ask the device plugin that runs here, and end: 0 yes, 4 not ready, 5 no answer.",
)
@click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="How much to log, as JSON lines on standard error.",
)
def device_plugin_command(
    describe: Path,
    kubelet_root: Path,
    cdi_dir: Path,
    kubeconfig: str,
    context: str,
    node: str,
    check: str | None,
    log_level: str,
) -> int:
    """Give this Kubernetes node devices that have no driver of their own (a DRA driver for its kubelet).

    Publishes the devices that a document describes as ResourceSlices, and gives each to one claim at a time. Containers
    of the claim get the variables, device files and mounts of the document. Runs until SIGTERM; reloads the document on
    SIGHUP and when it changes. Needs root, Kubernetes 1.34 and containerd 1.7 or later.

    \b
    corral device-plugin --describe devices.yaml --kubeconfig /etc/kubernetes/admin.conf
    corral device-plugin --describe devices.yaml --check ready
    """
    try:
        if check is not None:
            return _check(describe, kubelet_root, check)
        from corral import deviceplugin
    except ModuleNotFoundError as error:
        needs = f"The device plugin needs the package's extra ({error.name} is missing)"
        raise InvalidInput("no-grpc", f"{needs}: pip install 'corral[kubernetes]'.") from None
    name = node or deviceplugin.node_name()
    return deviceplugin.run(deviceplugin.Options(describe, name, kubelet_root, cdi_dir, kubeconfig, context, log_level))


def _check(describe: Path, kubelet_root: Path, service: str) -> int:
    """Check the running plugin; a probe does this every half minute, so few modules are imported."""
    from corral.devices.dra.device_groups import read_devices
    from corral.devices.dra.health_check import check

    good = check(kubelet_root, read_devices(describe).driver, "" if service == "live" else service)
    say(f"The device plugin is {'' if good else 'not '}{service}.")
    return OK if good else REFUSED
