"""Why: a framework that Corral does not know is a package with an entry point, not a change to Corral.

A plug-in's `pyproject.toml` says, under `[project.entry-points."corral.frameworks"]`, `NAME = "MODULE:CLASS"`, where
NAME is the `jobType` and CLASS subclasses `Framework`. A built-in name cannot be taken over.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final

from corral.frameworks.base import Framework
from corral.frameworks.frameworkcontroller import FrameworkController
from corral.frameworks.frameworklauncher import FrameworkLauncher
from corral.frameworks.horovod import Horovod
from corral.frameworks.jax import Jax
from corral.frameworks.mpi import Cntk, Mpi
from corral.frameworks.notebook import Notebook
from corral.frameworks.openpai import OpenPai
from corral.frameworks.pytorch import PyTorch
from corral.frameworks.shell import External, Shell
from corral.frameworks.tensorflow import TensorFlow
from corral.kernel.errors import InvalidInput
from corral.spec.errors import did_you_mean, shorten

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

GROUP: Final = "corral.frameworks"
"""The entry-point group that plug-ins register in."""

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
        FrameworkController,
        FrameworkLauncher,
        OpenPai,
    )
}


def job_types() -> tuple[str, ...]:
    """Every `jobType` that can be run here, in alphabetical order."""
    return tuple(sorted({*_BUILT_IN, *_plug_ins()}))


@cache
def framework(job_type: str) -> Framework:
    """The framework called `job_type`, built in or from an installed plug-in.

    Raises InvalidInput when there is none, or when its plug-in cannot be loaded.
    """
    built_in = _BUILT_IN.get(job_type)
    if built_in is not None:
        return built_in()
    plug_in = _plug_ins().get(job_type)
    if plug_in is None:
        known = job_types()
        raise InvalidInput(
            "unknown-job-type",
            f'no framework is called "{shorten(job_type)}"{did_you_mean(job_type, known)}; known are {", ".join(known)}',
        )
    return _loaded(plug_in)


def port_counts(job: UnifiedJob) -> dict[str, int]:
    """By role how many ports its tasks need at most besides the role's own.

    None where the framework cannot be loaded any more: the launch of the job's tasks is what says so.
    """
    try:
        found = framework(job.spec.job_type)
    except InvalidInput:
        return {}
    return found.port_counts(job)


def one_group(job: UnifiedJob) -> bool:
    """Whether no task of the job can go on, or come again alone, once another has ended."""
    try:
        found = framework(job.spec.job_type)
    except InvalidInput:
        return False
    return sum(job.gang_size().values()) > 1 and found.one_group(job)


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> Framework:
    try:
        made = point.load()()
    except Exception as error:
        raise InvalidInput(
            "broken-plug-in", f'the plug-in for "{point.name}" ({point.value}) cannot be loaded: {error}'
        ) from error
    if not isinstance(made, Framework):
        raise InvalidInput(
            "broken-plug-in", f'the plug-in for "{point.name}" ({point.value}) is not a corral.frameworks.Framework'
        )
    return made
