"""The table of commands, from which `corral` shows its help and imports only the command that is used."""

from __future__ import annotations

from typing import Final

import click

from corral.cli.main import load
from corral.kernel.plug_ins import plug_ins

COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "up": ("server", "Server", "Start Corral on this machine."),
    "down": ("server", "Server", "Stop the server; jobs go on unless --stop-jobs."),
    "serve": ("server", "Server", "Run one of the server's two processes by itself."),
    "sign-in-link": ("server", "Server", "Print a one-time sign-in link for the administrator."),
    "doctor": ("server", "Server", "Check this installation and name what to repair."),
    "deploy": ("deploy", "Server", "Check and prepare bare machines for a cluster."),
    "device-plugin": ("device_plugin", "Server", "Give this Kubernetes node described devices."),
    "node-agent": ("node_agent", "Server", "Tell Prometheus what this node's tasks and devices do."),
    "backup": ("server", "Server", "Write a consistent copy of the store while it is in use."),
    "restore": ("server", "Server", "Bring a backup back."),
    "journal": ("journal", "Server", "Export the journal of decisions, for `corral replay`."),
    "rotate-key": ("server", "Server", "Seal all secrets with a new key."),
    "login": ("accounts", "Account", "Sign in to a server."),
    "users": ("accounts", "Account", "List, make and change accounts."),
    "groups": ("groups", "Account", "List groups with their members and grants."),
    "audit": ("audit", "Account", "List who did what, and what was refused."),
    "token": ("accounts", "Account", "List, make and revoke tokens."),
    "secret": ("accounts", "Account", "List, seal and forget secrets."),
    "notifications": ("notifications", "Account", "List, add and verify channels that tell of jobs."),
    "submit": ("submit", "Jobs", "Submit a job file."),
    "clone": ("submit", "Jobs", "Submit a job's file again."),
    "templates": ("templates", "Jobs", "List job files that people share; share yours."),
    "run": ("submit", "Jobs", "Run a command as a job, without a file."),
    "notebook": ("notebook", "Jobs", "Start a notebook and open it in a browser."),
    "ls": ("jobs", "Jobs", "List jobs."),
    "get": ("jobs", "Jobs", "Show one job, or a configuration document (KIND/NAME)."),
    "logs": ("logs", "Jobs", "Print or follow what a job prints."),
    "attempts": ("logs", "Jobs", "List the attempts of a job's tasks."),
    "events": ("logs", "Jobs", "Show what happened, to a job or to all."),
    "explain": ("jobs", "Jobs", "Say why a job waits and what would start it."),
    "stop": ("jobs", "Jobs", "End jobs."),
    "restart": ("jobs", "Jobs", "Restart jobs."),
    "suspend": ("suspend_and_drain", "Jobs", "Suspend jobs with their checkpoint signal."),
    "resume": ("suspend_and_drain", "Jobs", "Resume suspended jobs."),
    "receipts": ("suspend_and_drain", "Jobs", "Show receipts of preempted jobs: the preemptor and the cost."),
    "order": ("queue_managers", "Jobs", "Move a waiting job within its queue (managers)."),
    "edit": ("edit", "Jobs", "Change a waiting job's priority, duration or queue."),
    "tag": ("tags", "Jobs", "Add and remove tags, by which jobs are found."),
    "scale": ("jobs", "Jobs", "Set how many replicas an elastic job asks for."),
    "rm": ("jobs", "Jobs", "Remove ended jobs."),
    "cache": ("caches", "Jobs", "List bundles of compiled code, and what jobs made of them."),
    "exec": ("exec", "Jobs", "Run a command inside a running task."),
    "ssh": ("ssh", "Jobs", "Enter a running task by OpenSSH's client; set up editors."),
    "profile": ("profile", "Jobs", "See what a running job does now: stacks, flame graphs."),
    "cp": ("cp", "Jobs", "Copy files to or from a running task."),
    "outputs": ("outputs", "Jobs", "List the outputs of a job, look into them, fetch files."),
    "open": ("open_service", "Jobs", "Open a service of a running job in a browser."),
    "tensorboard": ("notebook", "Jobs", "Open TensorBoard for the outputs of jobs."),
    "forward": ("forward", "Jobs", "Reach a port of a running task from here."),
    "nodes": ("cluster", "Cluster", "List nodes, their devices and the jobs on them."),
    "cells": ("queues", "Cluster", "Show the cells as a tree: who owns and who uses them."),
    "queues": ("queues", "Cluster", "Show queues: share, use, borrowing and lending."),
    "limit": ("queue_managers", "Cluster", "Limit what a queue's members hold (managers)."),
    "storages": ("storages", "Cluster", "List storages, look into them, fetch files."),
    "line": ("queues", "Cluster", "Show waiting jobs in order, with reasons."),
    "what-if": ("what_if", "Cluster", "Ask what would become of jobs and queues with changes."),
    "estimates": ("estimate_report", "Cluster", "Show how good the estimates of starts were, by queue."),
    "budget": ("budgets", "Cluster", "Limit the device-hours of queues and users."),
    "metrics": ("metrics", "Cluster", "Show figures of a job or of the server over time."),
    "efficiency": ("efficiency", "Cluster", "Show what jobs asked for beside what they used."),
    "idle": ("idle", "Cluster", "List jobs with idle devices; give one more time."),
    "usage": ("usage_report", "Cluster", "Show who used how many device-hours."),
    "benchmark": ("benchmark", "Cluster", "Measure nodes and name those below their like."),
    "alerts": ("alerts", "Cluster", "List and silence alerts; check rules files."),
    "cordon": ("suspend_and_drain", "Cluster", "Close machines to new tasks."),
    "uncordon": ("suspend_and_drain", "Cluster", "Open machines to new tasks again."),
    "drain": ("suspend_and_drain", "Cluster", "Close machines and have their tasks run elsewhere."),
    "topology": ("topology", "Cluster", "Show the cells that a link matrix or a topology.conf tells."),
    "top": ("cluster", "Cluster", "Watch what runs, live."),
    "apply": ("configuration", "Configuration", "Apply Cluster, Queue, Policy, Storage and Prices documents."),
    "diff": ("configuration", "Configuration", "Show what a file would change, or what changed."),
    "history": ("configuration", "Configuration", "List a document's revisions."),
    "rollback": ("configuration", "Configuration", "Make an earlier revision the current one again."),
    "delete": ("configuration", "Configuration", "Delete documents; their revisions stay."),
    "validate": ("job_files", "Documents", "Check a job file without a server."),
    "convert": ("job_files", "Documents", "Show a job file's canonical form."),
    "crd": ("job_files", "Documents", "Print the definition of UnifiedJob objects for Kubernetes."),
    "sim": ("sim", "Documents", "Simulate policies on traces; reproduce published tables."),
    "policy": ("policy_test", "Documents", "Try queues and policies on a trace, or beside those in force."),
    "replay": ("replay", "Documents", "Replay a journal of decisions and compare each one."),
    **{name: point.load() for name, point in plug_ins("corral.commands").items()},
    "completion": ("version", "Other", "Print a shell's completion script."),
    "version": ("version", "Other", "Print the version."),
}
"""Every command: its module below `corral.cli` or by its full name, its section of the help, and its line there."""


class Root(click.Group):
    """A command group that imports a command only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command."""
        if cmd_name not in COMMANDS:
            return None
        return load(COMMANDS[cmd_name][0], cmd_name.replace("-", "_") + "_command")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` begins with, or fail with a suggestion."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " corral --help lists the commands."
            ctx.fail(f"There is no command {args[0][:50]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, from the table alone."""
        for section in ("Jobs", "Cluster", "Configuration", "Documents", "Account", "Server", "Other"):
            rows = [(name, line) for name, (_, kind, line) in COMMANDS.items() if kind == section]
            with formatter.section(section):
                formatter.write_dl(rows)


@click.command(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def corral() -> None:
    """Run AI jobs on shared accelerators.

    \b
    corral up                                         start a server on this machine
    corral submit -f job.yaml                         run a job file and follow its log
    corral run --devices 1 -- python train.py         run a command without a file

    The server is that of the last `corral login`, or of CORRAL_URL and CORRAL_TOKEN. Exit codes: 0 ok, 1 the job
    failed, 2 usage, 3 not found, 4 refused, 5 server unreachable.
    """
