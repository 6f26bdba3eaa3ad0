"""Read the topology table of a node as `nvidia-smi topo -m` and similar tools print it.

Devices are GPU0, GPU1, … or NPU0, …. Columns of network cards show which devices share a PCIe switch where NVLink hides
it. The column *NUMA Affinity* gives the NUMA nodes. A matrix whose two directions differ was cut or edited, so it is
refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from corral.spec.device_topology import Wiring
from corral.spec.errors import Path, Problem, SpecError
from corral.spec.link_quality import APART, NVLINK, SAME_SWITCH, UNKNOWN, Matrix, quality

MOST_BYTES = 1024 * 1024
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DEVICE = re.compile(r"(?:GPU|NPU)(\d{1,4})", re.ASCII)
_CARD = re.compile(r"(?:NIC|mlx|hfi|ib)[\w.]*", re.ASCII)
_WHOLE = re.compile(r"\d{1,4}", re.ASCII)
_NUMA = "NUMA Affinity"


@dataclass(frozen=True)
class _Row:
    line: int
    name: str
    words: tuple[str, ...]


def read_table(text: str, filename: str = "topology") -> Wiring:
    """Parse the output of `nvidia-smi topo -m`, `rocm-smi --showtopotype` or `npu-smi info -t topo`.

    Raises SpecError, with the line and both devices, when the table is not square, not symmetric, or has unknown words.
    """
    if len(text) > MOST_BYTES:
        raise SpecError([Problem(f"longer than {MOST_BYTES} bytes", filename=filename)])
    head, rows = _rows(text, filename)
    columns = {name: at for at, name in enumerate(head) if _DEVICE.fullmatch(name)}
    found = {row.name: row for row in rows if _DEVICE.fullmatch(row.name)}
    if list(found) != list(columns):
        raise SpecError([Problem("the table does not have one line for each of its columns", filename=filename)])
    problems: list[Problem] = []
    values = {(a, b): _quality(found[a], columns[b], b, problems, filename) for a in columns for b in columns if a != b}
    if not problems:
        problems = _one_sided(values, found, columns, filename)
    if problems:
        raise SpecError(problems)
    links: Matrix = tuple(tuple(values.get((a, b), 0) for b in columns) for a in columns)
    return Wiring(tuple(columns), links, _pcie(links, head, list(found.values())), _numa(head, list(found.values())))


def _rows(text: str, filename: str) -> tuple[list[str], list[_Row]]:
    """The column headings, and the lines below them that begin with a name."""
    head: list[str] = []
    rows: list[_Row] = []
    for number, line in enumerate(_COLOUR.sub("", text).splitlines(), 1):
        words = _words(line)
        if not head:
            if len(words) > 1 and words[0] == "" and _DEVICE.fullmatch(words[1]):
                head = words[1:]
            elif words and _DEVICE.fullmatch(words[0]):
                head = words
        elif words and words[0]:
            rows.append(_Row(number, words[0], tuple(words[1:])))
    if not head:
        raise SpecError([Problem("the table has no line of devices (GPU0, GPU1, …)", filename=filename)])
    return head, rows


def _words(line: str) -> list[str]:
    """Split a line at tabs if it has any, else at spaces."""
    if "\t" in line:
        return [word.strip() for word in line.split("\t")]
    return line.replace("CPU Affinity", "CPU-Affinity").replace(_NUMA, "NUMA-Affinity").split()


def _quality(row: _Row, column: int, other: str, problems: list[Problem], filename: str) -> int:
    path: Path = (row.name, other)
    if column >= len(row.words) or not row.words[column]:
        problems.append(Problem("missing; the line is cut short", path, row.line, 1, filename))
        return 0
    try:
        return quality(row.words[column])
    except ValueError as error:
        problems.append(Problem(str(error), path, row.line, 1, filename))
        return 0


def _one_sided(
    values: dict[tuple[str, str], int], found: dict[str, _Row], columns: dict[str, int], filename: str
) -> list[Problem]:
    """Problems of pairs whose two directions differ."""
    return [
        Problem(
            f"the table is not symmetric: {found[a].words[columns[b]]} there, {found[b].words[columns[a]]} back",
            (a, b), found[a].line, 1, filename,
        )
        for (a, b), value in values.items()
        if values[b, a] != value and columns[a] < columns[b]
    ]  # fmt: skip


def _pcie(links: Matrix, head: list[str], rows: list[_Row]) -> Matrix:
    """The paths over PCIe; two devices near the same network card share its switch, which NVLink hides."""
    cards = [at for at, name in enumerate(head) if _CARD.fullmatch(name)]
    near = [{at for at in cards if at < len(row.words) and _near(row.words[at])} for row in rows]
    size = range(len(rows))
    return tuple(
        tuple(UNKNOWN if a == b else links[a][b] if links[a][b] < NVLINK else _by_cards(near[a], near[b]) for b in size)
        for a in size
    )


def _by_cards(one: set[int], other: set[int]) -> int:
    if one & other:
        return SAME_SWITCH
    return APART if one and other else UNKNOWN


def _near(word: str) -> bool:
    try:
        return SAME_SWITCH <= quality(word) < NVLINK
    except ValueError:
        return False


def _numa(head: list[str], rows: list[_Row]) -> tuple[int, ...]:
    """The NUMA node of each device from its column; () when the column, or one of its numbers, is missing."""
    column = next((at for at, name in enumerate(head) if name.replace("-", " ") == _NUMA), None)
    if column is None:
        return ()
    words = [row.words[column] if column < len(row.words) else "" for row in rows]
    return tuple(int(word) for word in words) if all(_WHOLE.fullmatch(word) for word in words) else ()
