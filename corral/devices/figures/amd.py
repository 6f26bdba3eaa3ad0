"""Read the figures of AMD GPUs from the kernel's files, without ROCm; `rocm-smi`'s JSON where the kernel has none.

Sources: the Linux amdgpu driver's `gpu_busy_percent`, `mem_info_vram_*`, `gpu_metrics` and hwmon files
(Documentation/gpu/amdgpu/thermal.rst and driver-misc.rst), and the keys of `rocm-smi --json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from corral.devices.figures import gpu_metrics
from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, number, whole, word

DRM: Final = Path("/sys/class/drm")
MOST_BYTES: Final = 4 * 2**20
_AMD: Final = "0x1002"
_CARD: Final = re.compile(r"card(\d{1,5})")
_MOST_FILE: Final = 4096
ROCM_SMI: Final = (
    *("rocm-smi", "--showuse", "--showmemuse", "--showmeminfo", "vram", "--showtemp", "--showpower", "--showuniqueid"),
    *("--showproductname", "--showbus", "--json"),
)


class AmdReader:
    """The AMD GPUs of this machine, by the kernel's files."""

    def __init__(self, drm: Path = DRM) -> None:
        self._drm = drm
        self._held_down = gpu_metrics.HeldDownSince()

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of all AMD GPUs in the order of their cards; () where there is none."""
        return tuple(self._figures(index, card) for index, card in enumerate(self._cards()))

    def close(self) -> None:
        """Nothing stays open."""

    def _cards(self) -> list[Path]:
        try:
            names = sorted(
                (int(match[1]), path) for path in self._drm.iterdir() if (match := _CARD.fullmatch(path.name))
            )
        except OSError:
            return []
        cards = (path / "device" for _, path in names[:MOST_DEVICES])
        return [card for card in cards if _read(card / "vendor") == _AMD]

    def _figures(self, index: int, card: Path) -> DeviceFigures:
        monitor = next(iter(sorted((card / "hwmon").glob("hwmon*"))[:1]), card)
        memory = _errors(_read(card / "ras" / "umc_err_count"))
        unique = _read(card / "unique_id")
        return DeviceFigures(
            vendor="amd",
            index=index,
            id=word(f"AMD-{unique}" if unique else f"AMD-{index}"),
            model=word(_read(card / "product_name") or "AMD GPU"),
            bus=word(card.resolve().name),
            use=number(_read(card / "gpu_busy_percent")),
            memory_use=number(_read(card / "mem_busy_percent")),
            memory_used=whole(_read(card / "mem_info_vram_used")),
            memory_total=whole(_read(card / "mem_info_vram_total")),
            temperature=_scaled(monitor / "temp1_input", 1e3),
            memory_temperature=_scaled(monitor / "temp3_input", 1e3),
            power=_scaled(monitor / "power1_average", 1e6) or _scaled(monitor / "power1_input", 1e6),
            clock=_scaled(monitor / "freq1_input", 1e6),
            memory_clock=_scaled(monitor / "freq2_input", 1e6),
            pcie_replays=whole(_read(card / "pcie_replay_count")),
            ecc_corrected=memory.get("ce"),
            ecc_uncorrected=memory.get("ue"),
            held_down=self._held_down.told(str(card), _read_bytes(card / "gpu_metrics", gpu_metrics.MOST_BYTES)),
        )


def parse_rocm_smi(document: bytes) -> tuple[DeviceFigures, ...]:
    """Return the figures of the cards of `rocm-smi … --json`.

    Raises ValueError for a document that is too long, no JSON, or no object.
    """
    if len(document) > MOST_BYTES:
        raise ValueError(f"rocm-smi wrote more than {MOST_BYTES // 2**20} MiB")
    begin = document.find(b"{")  # warnings stand before it
    try:
        told = msgspec.json.decode(document[max(0, begin) :], type=dict[str, dict[str, Any]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the document of rocm-smi is not what was expected: {error}") from None
    cards = sorted((int(match[1]), told[name]) for name in told if (match := _CARD.fullmatch(name)))
    return tuple(_card(index, card) for index, (_, card) in enumerate(cards[:MOST_DEVICES]))


def _card(index: int, card: Mapping[str, Any]) -> DeviceFigures:
    def value(*names: str) -> Any:
        return next((card[name] for name in names if name in card), "")

    unique = word(value("Unique ID"))
    return DeviceFigures(
        vendor="amd",
        index=index,
        id=f"AMD-{unique.removeprefix('0x')}" if unique and unique != "N/A" else f"AMD-{index}",
        model=word(value("Card Series", "Card series", "Card Model", "Card model") or "AMD GPU"),
        bus=word(value("PCI Bus")),
        use=number(value("GPU use (%)")),
        memory_use=number(value("GPU Memory Read/Write Activity (%)", "GPU memory use (%)")),
        memory_used=whole(value("VRAM Total Used Memory (B)")),
        memory_total=whole(value("VRAM Total Memory (B)")),
        temperature=number(value("Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)")),
        memory_temperature=number(value("Temperature (Sensor memory) (C)")),
        power=number(value("Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)")),
    )


def _errors(text: str) -> dict[str, int]:
    """The counts of `ue: 0` and `ce: 0`, a line each."""
    pairs = (line.partition(":") for line in text.splitlines()[:16])
    return {name.strip(): found for name, _, count in pairs if (found := whole(count)) is not None}


def _scaled(path: Path, by: float) -> float | None:
    found = number(_read(path))
    return None if found is None else found / by


def _read(path: Path) -> str:
    return _read_bytes(path, _MOST_FILE).decode("ascii", "replace").strip()


def _read_bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""
