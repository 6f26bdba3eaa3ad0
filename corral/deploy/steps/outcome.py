"""What came of the steps of each host, and what a failure says: one sentence and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from corral.deploy.checks.connection import Refusal
from corral.deploy.steps.step import HostPlan, Step
from corral.spec.errors import shorten

State = Literal["prepared", "failed", "not reached", "obstructed"]
_AGAIN: Final = "then run up again"
_KNOWN: Final[tuple[tuple[str, str, str], ...]] = (
    ("No space left on device|not have enough free space", "its disk is full", f"Free some space (df -h), {_AGAIN}."),
    ("corral: busy|Could not get lock", "another step or another installation still runs on it",
     f"Wait for its end (ps -ef), {_AGAIN}."),
    ("corral: changed", "someone changed the file since it was looked at", "Run up again to compare with the new file."),
    ("Unable to locate package|has no installation candidate|Depends: .* (but it is not|is not) ", "a package is missing",
     f"Put its .deb file into the folder of --packages, {_AGAIN}."),
    ("Temporary failure resolving|Could not connect to|Failed to fetch|Unable to fetch",
     "it reaches no source of packages", "Give the packages as .deb files in a folder (--packages)."),
    ("does not match system|wrong architecture", "a package is of another architecture",
     f"Put the .deb files of its architecture into the folder of --packages, {_AGAIN}."),
    ("Read-only file system", "its file system is mounted read-only", f"Mount it for writing (dmesg tells why), {_AGAIN}."),
    ("a password is required|not in the sudoers", "sudo asks for a password",
     f"Let the account use sudo without one, {_AGAIN}."),
    ("Module .* not found", "its kernel has not the module", f"Install the modules of the running kernel, {_AGAIN}."),
    ("corral: its pods are not ready", "its pods did not get ready",
     f"See why (the host's log has their events), {_AGAIN}."),
    ("corral: damaged", "what was sent did not arrive as it is in the bundle", "Run up again."),
    ("corral: kubeadm has another version", "the bundle's kubeadm has another version than the list asks for",
     "Take the bundle of the version in the list (kubernetes.version)."),
    ("corral: another digest of", "an image has another digest than the bundle's list says",
     "Make the image's archive in the bundle again (ctr images export, docker save), then run up again."),
    ("corral: no registry to fill", "the registry takes no images at 127.0.0.1, maybe as its port is taken there",
     "Choose another port (registry.port), or stop what has it; then run up again."),
    ("corral: no CRI", "containerd runs without its part for Kubernetes",
     "See journalctl -u containerd; fs.inotify.max_user_instances may be too low (sysctl). Mend it, then run up again."),
    (r"\[ERROR Port-(\d+)\]|[Cc]annot bind (socket|UNIX socket)|bind: address already in use",
     "another program listens at a port that it needs",
     f"Find the program (corral deploy check) and stop it, {_AGAIN}."),
    ("swapoff: .*Cannot allocate memory", "it has not the memory to take back what is in swap",
     f"Stop what needs the memory, {_AGAIN}."),
)  # fmt: skip


_ERROR: Final = re.compile(r"\[ERROR [A-Za-z0-9-]+\]: |error execution phase \S+: (?!\[preflight\])")
"""A line of kubeadm that says what is wrong."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one host's steps."""

    state: State
    done: tuple[str, ...] = ()
    """The titles of the steps that were done now."""
    refusal: Refusal | None = None
    """Why it did not go on."""


def failure_of(step: Step, output: str) -> Refusal:
    """Why a step failed, from what it printed."""
    for pattern, says, remedy in _KNOWN:
        if re.search(pattern, output):
            return Refusal(f"cannot {step.title}: {says}", remedy)
    return Refusal(f"cannot {step.title}: it said {last_error(output)}", f"Read the host's log, {_AGAIN}.")


def last_error(output: str) -> str:
    """The line of an output that says most likely what is wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # kubeadm ends with advice about its options.
    lines = [line for line in lines if _ERROR.match(line)] or lines
    return shorten("".join(char for char in lines[-1] if char.isprintable()), 200) if lines else "nothing"


def log_entry(now: datetime, says: str, output: str) -> str:
    """The lines of a host's log that tell of something that was done there, and of what it printed."""
    shown = "".join(char if char.isprintable() or char == "\n" else "·" for char in output)
    return f"{now.strftime('%Y-%m-%dT%H:%M:%SZ')} {says}\n" + "".join(f"  {line}\n" for line in shown.splitlines())


def without_effect(outcome: Outcome, plan: HostPlan) -> Outcome:
    """The outcome of a host by a look at it afterwards: a step that is still needed has failed."""
    if outcome.state != "prepared" or not (plan.bars or plan.doable):
        return outcome
    what = plan.bars[0] if plan.bars else f"it is still needed to {plan.doable[0].title}"
    return Outcome(
        "failed", outcome.done, Refusal(f"all steps were done, but {what}", f"Read the host's log, {_AGAIN}.")
    )


def document(cluster: str, plans: Iterable[HostPlan], outcomes: dict[str, Outcome], logs: str) -> dict[str, Any]:
    """The outcome for programs."""
    return {
        "cluster": cluster,
        "logs": logs,
        "hosts": [
            {
                "name": plan.name,
                "roles": list(plan.roles),
                "state": outcomes[plan.name].state,
                "done": list(outcomes[plan.name].done),
                "later": [step.title for step in plan.later],
                **_why(outcomes[plan.name].refusal),
            }
            for plan in plans
        ],
    }


def _why(refusal: Refusal | None) -> dict[str, str]:
    return {} if refusal is None else {"message": refusal.message, "remedy": refusal.remedy}
