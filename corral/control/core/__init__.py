"""The control core: a value that inputs and time move forward, without any I/O."""

from corral.control.core.core import Batch, Core
from corral.control.core.inputs import (
    ConfigurationRead,
    CordonsRead,
    Input,
    InputsLocated,
    InputsSought,
    Recovered,
    missing_attempts,
)
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.store import CoreStore
from corral.control.core.world import Job, World

__all__ = [
    "Batch",
    "ConfigurationRead",
    "CordonsRead",
    "Core",
    "CoreStore",
    "Input",
    "InputsLocated",
    "InputsSought",
    "IntentsRead",
    "Job",
    "Machines",
    "MachinesSeen",
    "Recovered",
    "World",
    "missing_attempts",
]
