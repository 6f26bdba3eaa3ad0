"""Tell the vendor of a device, and the variables by which its runtime shows a process the devices of its own alone."""

from __future__ import annotations

from collections.abc import Sequence

from corral.model.inventory import Device


def vendor(device: Device) -> str:
    """Return `nvidia`, `amd`, `ascend`, or "" when neither the id nor the model tells."""
    if device.id.startswith(("GPU-", "MIG-")):
        return "nvidia"
    words = f"{device.kind} {device.model}".lower()
    if device.kind == "npu" or "ascend" in words:
        return "ascend"
    if any(word in words for word in ("amd", "instinct", "radeon", "gfx")):
        return "amd"
    if any(word in words for word in ("nvidia", "tesla", "geforce", "quadro")):
        return "nvidia"
    return ""


def variables(name: str, devices: Sequence[str]) -> dict[str, str]:
    """Return the variables of a vendor that leave a process these devices, given by their numbers or ids.

    HIP counts from 0 those devices that ROCr leaves: the node's numbers in both variables would hide all but the first
    (ROCm, "GPU isolation techniques").
    """
    shown = ",".join(devices)
    if name == "nvidia":
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": shown}
    if name == "amd":
        return {"ROCR_VISIBLE_DEVICES": shown, "HIP_VISIBLE_DEVICES": ",".join(map(str, range(len(devices))))}
    return {"ASCEND_RT_VISIBLE_DEVICES": shown} if name == "ascend" else {}
