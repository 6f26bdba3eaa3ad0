"""Write an exported journal anew, with new names and with the hashes that a core has that is told the new inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import msgspec

from corral.control.core.core import Core
from corral.control.journal.anonymous.names import Found, Names, Renamed
from corral.control.journal.anonymous.records import Anonymous
from corral.control.journal.beginnings import core_of
from corral.control.journal.blocks import BlockReader, BlockWriter
from corral.control.journal.decisions import WaitingReasons, decisions_of, digest_of, first_waits
from corral.control.journal.records import Begun, Decision, Record, Step, decoded, encoded, folded
from corral.control.journal.rules import Rules
from corral.kernel.errors import CorralError, InvalidInput
from corral.kernel.garbage import rarely_collected
from corral.spec.errors import shorten

UNKNOWN: Final = bytes(8)
"""The hash of a step that this Corral does not decide as the journal does."""
_TOLD: Final = 500
"""Steps between two calls of who is told."""


def anonymise(
    source: BinaryIO, target: BinaryIO, key: bytes, *, told: Callable[[int], None] = lambda steps: None
) -> int | None:
    """Copy a journal under new names made with a secret key, which is written nowhere; `told` hears of steps now and then.

    Each step is decided again by a core that is told the new names, for its hash. Returns the number of the first step
    that this core decides otherwise than the journal says, up to new names; None if there is none. From it to the next
    beginning hashes are `UNKNOWN`. Raises InvalidInput for a journal that cannot be read or made anonymous.
    """
    try:
        return _anonymised(source, target, key, told)
    except CorralError:
        raise
    except Exception as error:  # the records of a broken journal may hold anything
        why = shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")
        raise InvalidInput("broken-journal", f"The journal cannot be made anonymous: {why}.") from None


def _anonymised(source: BinaryIO, target: BinaryIO, key: bytes, told: Callable[[int], None]) -> int | None:
    found = Found()
    with rarely_collected():
        reader = Anonymous(Names(found))
        for record in _records(source):
            reader.record(record)
        run = _Copy(Anonymous(Names(Renamed(key, found))), BlockWriter(target), told)
        for record in _records(source):
            run.take(record)
        run.blocks.close()
    return run.differs_from


class _Copy:
    def __init__(self, anonymous: Anonymous, blocks: BlockWriter, told: Callable[[int], None]) -> None:
        self.blocks = blocks
        self.differs_from: int | None = None
        self._anonymous = anonymous
        self._told = told
        self._core: Core | None = None
        self._waiting = WaitingReasons()
        self._rules = Rules()
        self._steps = 0

    def take(self, record: Record) -> None:
        """Write one record."""
        made = self._anonymous.record(record)
        if isinstance(made, Step):
            made = self._decided(made)
            self._steps += 1
            if not self._steps % _TOLD:
                self._told(self._steps)
        else:
            begun = made if isinstance(made, Begun) else made.begun
            if begun is made or self._core is None:
                self._rules = begun.rules
                self._core = core_of(begun)
                self._waiting = WaitingReasons(begun.state.jobs)
        self.blocks.add(encoded(made))

    def _decided(self, step: Step) -> Step:
        """The step with its hash, and with what it decides in the new names."""
        if self._core is None:
            return msgspec.structs.replace(step, digest=UNKNOWN)
        try:
            batch = self._core.step(folded(step.inputs, self._rules), step.at)
        except Exception:  # the inputs of a broken journal may be anything
            batch = None
        now = () if batch is None else decisions_of(batch)
        waits = () if batch is None else self._waiting.follow(batch)
        if batch is None or _commands(now) != _commands(step.decisions):
            self._core = None
            self.differs_from = self.differs_from or step.number
            return msgspec.structs.replace(step, digest=UNKNOWN)
        return msgspec.structs.replace(step, digest=digest_of(batch), decisions=(*now, *first_waits(now, waits)))


def _commands(decisions: tuple[Decision, ...]) -> list[tuple[str, str, str, tuple[int, ...]]]:
    """What was started where and what was stopped, in an order that the names of nodes do not change."""
    return sorted((each.verb, each.attempt, each.node, each.devices) for each in decisions)


def _records(source: BinaryIO) -> Iterator[Record]:
    source.seek(0)
    for data in BlockReader(source):
        yield decoded(data)
