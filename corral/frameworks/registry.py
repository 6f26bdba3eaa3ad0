"""The registry of frameworks: built-in ones, and plug-ins found by entry points.

A plug-in's `pyproject.toml` has `NAME = "MODULE:CLASS"` under `[project.entry-points."corral.frameworks"]`, where NAME
is the `jobType` and CLASS subclasses `Framework`. A plug-in cannot replace a built-in name.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Final

from corral.frameworks.base import Framework
from corral.frameworks.horovod import Horovod
from corral.frameworks.jax import Jax
from corral.frameworks.mpi import Cntk, Mpi
from corral.frameworks.notebook import Notebook
from corral.frameworks.pytorch import PyTorch
from corral.frameworks.shell import External, Shell
from corral.frameworks.tensorflow import TensorFlow
from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import broken, load, plug_ins
from corral.spec.errors import did_you_mean, shorten

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

GROUP: Final = "corral.frameworks"
"""The entry-point group of framework plug-ins."""

_BUILT_IN: Final = {
    kind.job_type: kind
    for kind in (
        PyTorch,
        TensorFlow,
        Jax,
        Mpi,
        Horovod,
        Cntk,
        Notebook,
        Shell,
        External,
    )
}


def job_types() -> tuple[str, ...]:
    """Every `jobType` that can run here, in alphabetical order."""
    return tuple(sorted({*_BUILT_IN, *plug_ins(GROUP)}))


@cache
def framework(job_type: str) -> Framework:
    """The framework for `job_type`, built in or from an installed plug-in.

    Raises InvalidInput if there is none, or if its plug-in cannot be loaded.
    """
    built_in = _BUILT_IN.get(job_type)
    if built_in is not None:
        return built_in()
    plug_in = plug_ins(GROUP).get(job_type)
    if plug_in is None:
        known = job_types()
        raise InvalidInput(
            "unknown-job-type",
            f'no framework is called "{shorten(job_type)}"{did_you_mean(job_type, known)}; known are {", ".join(known)}',
        )
    return _loaded(plug_in)


def port_counts(job: UnifiedJob) -> dict[str, int]:
    """By role, the most ports that a task needs besides the role's own.

    Empty if the framework can no longer be loaded; launching the job's tasks reports that.
    """
    try:
        found = framework(job.spec.job_type)
    except InvalidInput:
        return {}
    return found.port_counts(job)


def one_group(job: UnifiedJob) -> bool:
    """Whether no task of the job can go on, or be restarted alone, once another has ended."""
    try:
        found = framework(job.spec.job_type)
    except InvalidInput:
        return False
    return sum(job.gang_size().values()) > 1 and found.one_group(job)


def retries_at_once(job: UnifiedJob) -> bool:
    """Whether the first retry in a row after a transient failure is immediate."""
    try:
        return framework(job.spec.job_type).retries_at_once(job)
    except InvalidInput:
        return False


def splits_logs(job_type: str) -> bool:
    """Whether the standard output and standard error of these jobs' tasks always have separate logs."""
    try:
        return framework(job_type).split_logs
    except InvalidInput:
        return False


def _loaded(point: EntryPoint) -> Framework:
    made = load(point, "framework")
    if not isinstance(made, Framework):
        raise broken(point, "framework", "does not give a corral.frameworks.Framework")
    return made
