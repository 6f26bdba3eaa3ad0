"""Read the table of `npu-smi info`, Huawei's tool for Ascend NPUs.

Each NPU has two rows of three cells: number and name, health, power and temperature; then chip, bus and use, memory and
HBM as `USED / TOTAL` in MB. Format: Huawei, "npu-smi Command Reference", `npu-smi info`.
"""

from __future__ import annotations

import re
from typing import Final

from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, number, word

MOST_BYTES: Final = 2**20
NPU_SMI: Final = ("npu-smi", "info")
_MB: Final = 2**20
_PAIR: Final = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")


def parse_npu_smi(document: bytes) -> tuple[DeviceFigures, ...]:
    """Return the figures of the NPUs of a table; chips of one NPU are devices of their own, in its order.

    Raises ValueError for a text that is too long or has no table of NPUs.
    """
    if len(document) > MOST_BYTES:
        raise ValueError(f"npu-smi wrote more than {MOST_BYTES // 2**20} MiB")
    text = document.decode("utf-8", "replace")
    table, _, _ = text.partition("Process id")
    if "npu-smi" not in table:
        raise ValueError("npu-smi wrote no table of NPUs")
    rows = [cells for line in table.splitlines() if len(cells := line.strip().strip("|").split("|")) == 3]
    values = [row for row in rows if row[0].strip()[:1].isdigit()][: 2 * MOST_DEVICES]
    pairs = zip(values[::2], values[1::2], strict=False)
    return tuple(_npu(index, first, second) for index, (first, second) in enumerate(pairs))


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
