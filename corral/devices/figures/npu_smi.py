"""Read what `npu-smi`, Huawei's tool, tells of Ascend NPUs: the table of `npu-smi info`, and what it tells of single chips.

In the table each NPU has two rows of three cells: number and name, health, power and temperature; then chip, bus and use,
memory and HBM as `USED / TOTAL` in MB. Of a single chip it writes lines such as `Retry Count : 415`. Format: Huawei,
"npu-smi Command Reference", `npu-smi info`, `info -t common`, `info -t pcie-err` and `info -t ecc`.
"""

from __future__ import annotations

import logging
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, Held, number, whole, word
from corral.devices.figures.tool_output import output_of

_log = logging.getLogger(__name__)
MOST_BYTES: Final = 2**20
NPU_SMI: Final = ("npu-smi", "info")
_MB: Final = 2**20
_PAIR: Final = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")
_KINDS: Final = ("common", "pcie-err", "ecc")
"""Kinds of details of a chip: each takes a run of the tool."""
_RUNS_AT_ONCE: Final = 6
"""Runs of the tool for details beside one table."""
_SECONDS: Final = 5.0
"""Seconds for the details beside one table."""
_HELD_SECONDS: Final = 300.0
"""Seconds after which it is not known any more whether a chip's clocks are held down."""
_MOST_DETAILS: Final = 65_536
_MOST_LINES: Final = 200
_BUSY: Final = 80.0
"""Percent of use from which an NPU's clock must be near the rated one: an idle one clocks down by itself."""
_SLOW: Final = 0.75
"""The part of the rated clock below which a busy NPU is held down; limits of power take some percent."""


class Chip(NamedTuple):
    """One chip, as npu-smi numbers it."""

    card: int
    chip: int


def parse_npu_smi(document: bytes) -> tuple[DeviceFigures, ...]:
    """Return the figures of the NPUs of a table; chips of one NPU are devices of their own, in its order.

    Raises ValueError for a text that is too long or has no table of NPUs.
    """
    return tuple(_npu(index, *rows) for index, rows in enumerate(_rows(document)))


def _rows(document: bytes) -> list[tuple[list[str], list[str]]]:
    if len(document) > MOST_BYTES:
        raise ValueError(f"npu-smi wrote more than {MOST_BYTES // 2**20} MiB")
    text = document.decode("utf-8", "replace")
    table, _, _ = text.partition("Process id")
    if "npu-smi" not in table:
        raise ValueError("npu-smi wrote no table of NPUs")
    rows = [cells for line in table.splitlines() if len(cells := line.strip().strip("|").split("|")) == 3]
    values = [row for row in rows if row[0].strip()[:1].isdigit()][: 2 * MOST_DEVICES]
    return list(zip(values[::2], values[1::2], strict=False))


def _npu(index: int, first: list[str], second: list[str]) -> DeviceFigures:
    name = first[0].split()
    measured, amounts = first[2].split(), _PAIR.findall(second[2])
    # HBM stands last; boards without any show 0 / 0 there, and their memory before it.
    used, total = next(((int(a), int(b)) for a, b in reversed(amounts) if int(b)), (None, None))
    use = second[2].split()
    return DeviceFigures(
        vendor="ascend",
        index=index,
        id=word(f"davinci{index}"),
        model=word(f"Ascend {name[1]}" if len(name) > 1 else "Ascend"),
        bus=word(second[1]),
        use=number(use[0]) if use else None,
        memory_used=None if used is None else used * _MB,
        memory_total=None if total is None else total * _MB,
        power=number(measured[0]) if measured else None,
        temperature=number(measured[1]) if len(measured) > 1 else None,
    )


def _chip(first: list[str], second: list[str]) -> Chip | None:
    card, chip = whole(first[0].strip()), whole(second[0].strip())
    return None if card is None or chip is None else Chip(card, chip)


class Details(msgspec.Struct, frozen=True):
    """What is told of one chip alone; None is what its model does not tell."""

    clock: float | None = None
    held_down: tuple[tuple[Held, float], ...] | None = None
    pcie_replays: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None


class _Told(NamedTuple):
    """What one run of the tool told of a chip."""

    at: float
    details: Details


class NpuDetails:
    """Adds to each table what is asked of single chips, a few runs of the tool at a time."""

    def __init__(
        self, run: Callable[..., bytes] = output_of, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._run, self._monotonic = run, monotonic
        self._known: dict[tuple[Chip, str], _Told] = {}
        """By chip and kind; those that were asked last are at the end."""
        self._is_slow = False
        """Whether it was logged that the tool is slow."""

    def figures(self, document: bytes) -> tuple[DeviceFigures, ...]:
        """The NPUs of a table with the details of each chip that was asked so far. Raises ValueError for no table."""
        figures = parse_npu_smi(document)
        chips = [_chip(*rows) for rows in _rows(document)]
        questions = {(chip, kind): -1 for chip in chips if chip is not None for kind in _KINDS}
        self._known = {question: told for question, told in self._known.items() if question in questions}
        questions |= {question: place for place, question in enumerate(self._known)}
        self._ask(sorted(questions, key=questions.__getitem__)[:_RUNS_AT_ONCE])
        now = self._monotonic()
        return tuple(
            each if chip is None else self._with_details(each, chip, now)
            for each, chip in zip(figures, chips, strict=True)
        )

    def _ask(self, questions: Sequence[tuple[Chip, str]]) -> None:
        """Ask until the time is over. What was not asked stays as it was, and is asked first after the next table."""
        until, slowest = self._monotonic() + _SECONDS, 0.0
        for count, (chip, kind) in enumerate(questions):
            begun = self._monotonic()
            if count and until - begun <= slowest:
                self._told_slow(count, len(questions))
                return
            try:
                text = self._run(_words(chip, kind), seconds=until - begun)
            except subprocess.TimeoutExpired:
                if count:  # it had less than all the time
                    self._told_slow(count, len(questions))
                    return
                text = b""
            except OSError:
                text = b""
            now = self._monotonic()
            slowest = max(slowest, now - begun)
            self._known.pop((chip, kind), None)
            told = {each: text if each == kind else b"" for each in _KINDS}
            self._known[chip, kind] = _Told(
                now, parse_details(told["common"], told["pcie-err"], told["ecc"], chip.chip)
            )

    def _told_slow(self, answers: int, questions: int) -> None:
        if not self._is_slow:
            self._is_slow = True
            _log.warning(
                "npu-smi answered %d of %d questions within %g s: details of NPUs are older than usual.",
                answers, questions, _SECONDS,
            )  # fmt: skip

    def _with_details(self, device: DeviceFigures, chip: Chip, now: float) -> DeviceFigures:
        found = dict[str, object]()
        for kind in _KINDS:
            told = self._known.get((chip, kind))
            if told is not None:
                found |= {
                    name: value for name, value in msgspec.structs.asdict(told.details).items() if value is not None
                }
                if now - told.at > _HELD_SECONDS:
                    found.pop("held_down", None)
        return msgspec.structs.replace(device, **found)


def _words(chip: Chip, kind: str) -> list[str]:
    words = [*NPU_SMI, "-t", kind, "-i", str(chip.card)]
    return words if kind == "common" else [*words, "-c", str(chip.chip)]  # `common` tells of all chips of a card


def parse_details(common: bytes, pcie_errors: bytes, ecc: bytes, chip: int) -> Details:
    """The details of a chip in what `info -t common`, `-t pcie-err` and `-t ecc` write."""
    clocks, pcie, memory = _values(common, chip), _values(pcie_errors, chip), _values(ecc, chip)
    rated, clock = number(clocks.get("aicore freq(mhz)", "")), number(clocks.get("aicore curfreq(mhz)", ""))
    use = number(clocks.get("aicore usage rate(%)", ""))
    held = None
    if rated and clock is not None and use is not None:
        held = ((Held.UNKNOWN, float(use >= _BUSY and clock < _SLOW * rated)),)
    return Details(
        clock=clock,
        held_down=held,
        pcie_replays=whole(pcie.get("retry count", "")),
        ecc_corrected=_first(memory, ("hbm", "ddr"), "single bit error count"),
        ecc_uncorrected=_first(memory, ("hbm", "ddr"), "double bit error count"),
    )


def _first(values: Mapping[str, str], memories: Sequence[str], name: str) -> int | None:
    found = (whole(values.get(f"{memory} {name}", "")) for memory in memories)
    return next((count for count in found if count is not None), None)


def _values(document: bytes, chip: int) -> dict[str, str]:
    """The values of a chip by name, in small letters; those before the first `Chip ID` are of the card."""
    found: dict[str, str] = {}
    is_ours = True
    for line in document[:_MOST_DETAILS].decode("utf-8", "replace").splitlines()[:_MOST_LINES]:
        name, _, value = line.partition(":")
        key = " ".join(name.lower().split())
        if key == "chip id":
            is_ours = whole(value.strip()) == chip
        elif key == "chip name":  # a section of another chip, such as the board's controller
            is_ours = False
        elif is_ours:
            found.setdefault(key, value.strip())
    return found
