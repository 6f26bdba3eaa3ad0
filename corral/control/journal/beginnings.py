"""Build a core as a journal says that one began."""

from __future__ import annotations

import msgspec

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.machines import Machines
from corral.control.journal.records import Begun, recovered_from
from corral.control.journal.rules import Rules


def core_of(begun: Begun, rules: Rules | None = None, fixed: Configured | None = None) -> Core:
    """A core as it began or was at a checkpoint, or one that begins under other `rules` or a `fixed` configuration.

    Raises InvalidInput for documents or a policy that this Corral cannot follow.
    """
    recovered = recovered_from(begun.state, rules or begun.rules)
    if fixed is not None:
        recovered = msgspec.structs.replace(recovered, configured=fixed)
    core = Core(recovered, begun.launch, Machines.recalled(begun.remembered), begun.at)
    if begun.underway is not None and rules is None and fixed is None:
        core.go_on(begun.underway)
    return core.fork(unexplained=True) if begun.unexplained else core
