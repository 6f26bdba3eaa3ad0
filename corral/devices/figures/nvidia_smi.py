"""Read the XML of `nvidia-smi -q -x`, for machines where NVML cannot be loaded (a container with the tool alone).

Format: NVIDIA's nvsmi_device_v11.dtd and v12.dtd. Newer drivers call the throttle reasons `clocks_event_reason_…`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, number, whole, word
from corral.devices.figures.nvml import REASON

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MOST_BYTES: Final = 4 * 2**20
"""Bytes of a document that is read."""
_MIB: Final = 2**20


def parse_nvidia_smi(document: bytes) -> tuple[DeviceFigures, ...]:
    """Return the figures of the GPUs of a document.

    Raises ValueError for a document that is too long, declares entities, or is no XML.
    """
    from xml.etree import ElementTree  # few machines need it, and servers are to stay small

    if len(document) > MOST_BYTES:
        raise ValueError(f"nvidia-smi wrote more than {MOST_BYTES // _MIB} MiB")
    if b"<!ENTITY" in document:
        raise ValueError("the document of nvidia-smi declares entities, which nvidia-smi never does")
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise ValueError(f"the document of nvidia-smi is no XML: {error}") from None
    return tuple(_gpu(index, gpu) for index, gpu in enumerate(root.findall("gpu")[:MOST_DEVICES]))


def _gpu(index: int, gpu: Element) -> DeviceFigures:
    def text(*paths: str) -> str:
        return next((found.strip() for path in paths if (found := gpu.findtext(path))), "")

    used, total = whole(text("fb_memory_usage/used")), whole(text("fb_memory_usage/total"))
    return DeviceFigures(
        vendor="nvidia",
        index=index,
        id=word(text("uuid")),
        model=word(text("product_name")),
        minor=whole(text("minor_number")),
        bus=word(gpu.get("id", "")),
        use=number(text("utilization/gpu_util")),
        memory_use=number(text("utilization/memory_util")),
        encoder_use=number(text("utilization/encoder_util")),
        decoder_use=number(text("utilization/decoder_util")),
        memory_used=None if used is None else used * _MIB,
        memory_total=None if total is None else total * _MIB,
        temperature=number(text("temperature/gpu_temp")),
        memory_temperature=number(text("temperature/memory_temp")),
        power=number(
            text("gpu_power_readings/power_draw", "gpu_power_readings/average_power_draw", "power_readings/power_draw")
        ),
        clock=number(text("clocks/sm_clock")),
        memory_clock=number(text("clocks/mem_clock")),
        pcie_replays=whole(text("pci/replay_counter")),
        ecc_corrected=_errors(gpu, "single_bit", "correctable"),
        ecc_uncorrected=_errors(gpu, "double_bit", "uncorrectable"),
        remapped_corrected=whole(text("remapped_rows/remapped_row_corr")),
        remapped_uncorrected=whole(text("remapped_rows/remapped_row_unc")),
        remap_failed={"yes": True, "no": False}.get(text("remapped_rows/remapped_row_failure").lower()),
        state=whole(text("performance_state").removeprefix("P")),
        throttled=_throttled(gpu),
        processes=tuple(
            pid for each in gpu.findall("processes/process_info")[:1000] if (pid := whole(each.findtext("pid")))
        ),
    )


def _errors(gpu: Element, old: str, new: str) -> int | None:
    """Memory errors since the driver was loaded: one total in older drivers, one count for each memory in newer."""
    total = whole(gpu.findtext(f"ecc_errors/volatile/{old}/total"))
    if total is not None:
        return total
    counts = [
        found
        for each in gpu.findall("ecc_errors/volatile/*")
        if each.tag.endswith(("_" + new, "_" + new + "_parity", "_" + new + "_secded"))
        and (found := whole(each.text)) is not None
    ]
    return sum(counts) if counts else None


def _throttled(gpu: Element) -> tuple[str, ...]:
    found = [*gpu.findall("clocks_throttle_reasons/*"), *gpu.findall("clocks_event_reasons/*")]
    return tuple(
        REASON + word(each.tag).removeprefix(REASON).removeprefix("clocks_event_reason_")
        for each in found[:32]
        if (each.text or "").strip() == "Active"
    )
