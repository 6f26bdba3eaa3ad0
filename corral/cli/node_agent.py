"""`corral node-agent`: run the process that tells Prometheus what a node's tasks and devices do."""

from __future__ import annotations

from pathlib import Path

import click

from corral.kernel.errors import InvalidInput


@click.command("node-agent")
@click.option(
    "--listen",
    default="127.0.0.1:9102",
    show_default=True,
    metavar="HOST:PORT",
    help="Where `/metrics` is served. An address that other machines reach needs --token-file.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="A file with the bearer token of callers who are told the series of users and jobs; others get the rest.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    default=5.0,
    show_default=True,
    help="Seconds between two rounds of measuring; more where a round costs much.",
)
@click.option(
    "--parts",
    default="devices,tasks,machine",
    show_default=True,
    help="What is measured; leave out what another exporter on this node has.",
)
@click.option(
    "--dcgm-exporter",
    default="",
    metavar="URL",
    help="Read GPUs from DCGM exporter at this address (http://127.0.0.1:9400/metrics) instead of NVIDIA's library.",
)
@click.option(
    "--amd-exporter",
    default="",
    metavar="URL",
    help="Read GPUs from AMD's device metrics exporter at this address (http://127.0.0.1:5000/metrics) instead of the "
    "kernel's files.",
)
@click.option(
    "--node-exporter",
    default="",
    metavar="URL",
    help="Read the machine from node exporter at this address (http://127.0.0.1:9100/metrics) instead of the kernel's "
    "files.",
)
@click.option(
    "--dcgm-folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Write the jobs of each GPU to this folder, for DCGM exporter's --hpc-job-mapping-dir.",
)
@click.option(
    "--amd-folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Write the job of each GPU to this folder, for AMD's exporter (/var/run/exporter).",
)
@click.option(
    "--node",
    default="",
    metavar="NAME",
    help="The node's name as its engine has it; without it `NODE_NAME`, or the machine's name.",
)
@click.option(
    "--fix-gpu-clocks",
    is_flag=True,
    help="Let the server set the highest clocks of slow NVIDIA GPUs here, for alerts that are routed to "
    "fix-nvidia-gpu-low-perf. It runs nvidia-smi as this process's user, and needs root and --token-file.",
)
@click.option(
    "--checks",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Run the check scripts of this folder (docs/health.md), and tell the server of problems.",
)
@click.option(
    "--check-seconds",
    type=click.FloatRange(1, 86_400),
    default=60.0,
    show_default=True,
    help="Seconds between two rounds of check scripts.",
)
@click.option(
    "--check-limit-seconds",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    help="Seconds that a check script may take.",
)
@click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="How much to log, as JSON lines on standard error.",
)
def node_agent_command(
    listen: str,
    token_file: Path | None,
    seconds: float,
    parts: str,
    dcgm_exporter: str,
    amd_exporter: str,
    node_exporter: str,
    dcgm_folder: Path | None,
    amd_folder: Path | None,
    node: str,
    fix_gpu_clocks: bool,
    checks: Path | None,
    check_seconds: float,
    check_limit_seconds: float,
    log_level: str,
) -> int:
    """Measure this node's tasks, devices and the machine itself, for Prometheus and a server.

    A server whose tasks run on its own machine does this by itself. Needs root to see the tasks of other users. Runs
    until SIGTERM.

    \b
    corral node-agent
    corral node-agent --listen 0.0.0.0:9102 --token-file /etc/corral/agent.token --parts devices,tasks
    """
    from corral import nodeagent

    host, port = _address(listen)
    options = nodeagent.Options(
        host,
        port,
        token_file,
        seconds,
        parts,
        log_level,
        dcgm_folder,
        amd_folder,
        node,
        fix_gpu_clocks,
        dcgm_exporter,
        amd_exporter,
        node_exporter,
        checks,
        check_seconds,
        check_limit_seconds,
    )
    return nodeagent.run(options)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidInput(
            "bad-listen-address", f"--listen needs HOST:PORT, as in 127.0.0.1:9102, instead of {text[:100]!r}."
        )
    return host.strip("[]"), int(port)
