"""The metrics of accelerators, which the collector of a node measures.

`gpu_*`, `nvidiasmi_*` and `rocmsmi_*` are names of job-exporter, a part of Microsoft's PAI; `DCGM_FI_DEV_*` are those
that NVIDIA's DCGM exporter gives by default (`etc/default-counters.csv`), with its labels. `corral_device_*` tell the
same of the devices of every vendor.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from corral.model.metrics.family import Family, Kind

DCGM_LABELS: Final = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname")
_DEVICE_LABELS: Final = ("vendor", "device", "id", "model")
_EXPORTER: Final = "job-exporter"
_DCGM: Final = "DCGM exporter"


class DeviceMetric(StrEnum):
    """The names of all metrics of devices."""

    USE = "corral_device_use_ratio"
    MEMORY_USED = "corral_device_memory_used_bytes"
    MEMORY = "corral_device_memory_bytes"
    TEMPERATURE = "corral_device_temperature_celsius"
    POWER = "corral_device_power_watts"
    CLOCK = "corral_device_clock_hertz"
    REPLAYS = "corral_device_pcie_replays_total"
    PCIE_ERRORS = "corral_device_pcie_errors_total"
    ECC = "corral_device_ecc_errors_total"
    HELD_DOWN = "corral_device_held_down_ratio"
    CONFIGURED = "configured_gpu_count"
    GPU = "gpu_utilization"
    GPU_MEMORY = "gpu_mem_utilization"
    EXTERNAL = "gpu_used_by_external_process_count"
    NVIDIA = "nvidiasmi_utilization_gpu"
    NVIDIA_MEMORY = "nvidiasmi_utilization_memory"
    NVIDIA_TEMPERATURE = "nvidiasmi_temperature"
    NVIDIA_ECC = "nvidiasmi_ecc_error_count"
    NVIDIA_LEAK = "nvidiasmi_memory_leak_count"
    NVIDIA_STATE = "nvidiasmi_performance_state"
    AMD = "rocmsmi_utilization_gpu"
    AMD_MEMORY = "rocmsmi_utilization_memory"
    AMD_TEMPERATURE = "rocmsmi_temperature"
    AMD_ECC = "rocmsmi_ecc_error_count"
    SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
    MEM_CLOCK = "DCGM_FI_DEV_MEM_CLOCK"
    MEMORY_TEMP = "DCGM_FI_DEV_MEMORY_TEMP"
    GPU_TEMP = "DCGM_FI_DEV_GPU_TEMP"
    POWER_USAGE = "DCGM_FI_DEV_POWER_USAGE"
    ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    PCIE_REPLAY = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
    GPU_UTIL = "DCGM_FI_DEV_GPU_UTIL"
    MEM_COPY_UTIL = "DCGM_FI_DEV_MEM_COPY_UTIL"
    ENC_UTIL = "DCGM_FI_DEV_ENC_UTIL"
    DEC_UTIL = "DCGM_FI_DEV_DEC_UTIL"
    XID = "DCGM_FI_DEV_XID_ERRORS"
    FB_FREE = "DCGM_FI_DEV_FB_FREE"
    FB_USED = "DCGM_FI_DEV_FB_USED"
    ECC_SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
    ECC_DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
    REMAPPED_UNCORRECTABLE = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
    REMAPPED_CORRECTABLE = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
    REMAP_FAILURE = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
    NVLINK = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"


def _own(name: DeviceMetric, meaning: str) -> Family:
    return Family(name, Kind.GAUGE, meaning, _DEVICE_LABELS)


def _job_exporter(name: DeviceMetric, meaning: str, *labels: str) -> Family:
    return Family(name, Kind.GAUGE, meaning, labels or ("minor_number",), named_by=_EXPORTER)


def _dcgm(name: DeviceMetric, meaning: str, kind: Kind = Kind.GAUGE) -> Family:
    return Family(name, kind, meaning, DCGM_LABELS, named_by=_DCGM)


_VENDER: Final = ("minor_number", "vender")
"""The second label's spelling is job-exporter's."""

DEVICE_FAMILIES: Final = (
    _own(DeviceMetric.USE, "Use of a device, from 0 to 1."),
    _own(DeviceMetric.MEMORY_USED, "Memory of a device that is in use."),
    _own(DeviceMetric.MEMORY, "Memory of a device."),
    _own(DeviceMetric.TEMPERATURE, "Temperature of a device."),
    _own(DeviceMetric.POWER, "Power that a device takes."),
    _own(DeviceMetric.CLOCK, "Clock of an AMD GPU or an Ascend NPU; that of NVIDIA's has DCGM's name."),
    Family(
        DeviceMetric.REPLAYS,
        Kind.COUNTER,
        "Repeated transfers on PCI Express of an AMD GPU or an Ascend NPU; those of NVIDIA's have DCGM's name.",
        _DEVICE_LABELS,
    ),
    Family(
        DeviceMetric.PCIE_ERRORS,
        Kind.COUNTER,
        "Errors on PCI Express that the kernel counted of a device, by severity: `correctable`, `nonfatal` or `fatal`.",
        (*_DEVICE_LABELS, "severity"),
    ),
    Family(
        DeviceMetric.ECC,
        Kind.COUNTER,
        "Memory errors of an AMD GPU or an Ascend NPU, by type: `corrected` or `uncorrected`.",
        (*_DEVICE_LABELS, "type"),
    ),
    Family(
        DeviceMetric.HELD_DOWN,
        Kind.GAUGE,
        "Part of the time in which the clocks of an AMD GPU or an Ascend NPU were held down, from 0 to 1, by reason: "
        "`heat`, `prochot` (the board's signal), `power`, `current` or `unknown`.",
        (*_DEVICE_LABELS, "reason"),
    ),
    Family(
        DeviceMetric.CONFIGURED,
        Kind.GAUGE,
        "Devices that the cluster document gives the machine, else those found when the collector began.",
        named_by=_EXPORTER,
    ),
    _job_exporter(DeviceMetric.GPU, "Use of a GPU in percent (0 to 100).", *_VENDER),
    _job_exporter(DeviceMetric.GPU_MEMORY, "Used memory of a GPU in percent of all.", *_VENDER),
    Family(
        DeviceMetric.EXTERNAL,
        Kind.GAUGE,
        "1 for a process that uses a GPU and belongs to no task.",
        ("minor_number", "pid"),
        in_totals=False,
        named_by=_EXPORTER,
    ),
    _job_exporter(DeviceMetric.NVIDIA, "Use of an NVIDIA GPU in percent (0 to 100)."),
    _job_exporter(DeviceMetric.NVIDIA_MEMORY, "Used memory of an NVIDIA GPU in percent of all."),
    _job_exporter(DeviceMetric.NVIDIA_TEMPERATURE, "Temperature of an NVIDIA GPU in degrees Celsius."),
    _job_exporter(
        DeviceMetric.NVIDIA_ECC,
        "Memory errors since the driver was loaded, by type: `single` (corrected) or `double` (not corrected).",
        "node_name",
        "minor_number",
        "type",
    ),
    _job_exporter(DeviceMetric.NVIDIA_LEAK, "1 if a GPU that no process uses holds more than 20 MiB of its memory."),
    _job_exporter(
        DeviceMetric.NVIDIA_STATE,
        "Performance state of an NVIDIA GPU (0 is the fastest), with the reasons for which its clocks are held down.",
        "node_name",
        "minor_number",
        "clocks_throttle_reasons",
    ),
    _job_exporter(DeviceMetric.AMD, "Use of an AMD GPU in percent (0 to 100)."),
    _job_exporter(DeviceMetric.AMD_MEMORY, "Used memory of an AMD GPU in percent of all."),
    _job_exporter(DeviceMetric.AMD_TEMPERATURE, "Temperature of an AMD GPU (edge sensor) in degrees Celsius."),
    _job_exporter(
        DeviceMetric.AMD_ECC,
        "Memory errors of an AMD GPU since the driver was loaded, by type: `single` (corrected) or `double` (not).",
        "node_name",
        "minor_number",
        "type",
    ),
    _dcgm(DeviceMetric.SM_CLOCK, "Clock of the multiprocessors in MHz."),
    _dcgm(DeviceMetric.MEM_CLOCK, "Clock of the memory in MHz."),
    _dcgm(DeviceMetric.MEMORY_TEMP, "Temperature of the memory in degrees Celsius."),
    _dcgm(DeviceMetric.GPU_TEMP, "Temperature of the GPU in degrees Celsius."),
    _dcgm(DeviceMetric.POWER_USAGE, "Power in watts."),
    _dcgm(DeviceMetric.ENERGY, "Energy since the driver was loaded, in millijoules.", Kind.UNTYPED),
    _dcgm(DeviceMetric.PCIE_REPLAY, "Repeated transfers on PCI Express.", Kind.UNTYPED),
    _dcgm(DeviceMetric.GPU_UTIL, "Use of the GPU in percent."),
    _dcgm(DeviceMetric.MEM_COPY_UTIL, "Use of the memory's bandwidth in percent."),
    _dcgm(DeviceMetric.ENC_UTIL, "Use of the encoder in percent."),
    _dcgm(DeviceMetric.DEC_UTIL, "Use of the decoder in percent."),
    _dcgm(DeviceMetric.XID, "Number of the last Xid error that the collector saw; 0: none."),
    _dcgm(DeviceMetric.FB_FREE, "Free memory in MiB."),
    _dcgm(DeviceMetric.FB_USED, "Used memory in MiB."),
    _dcgm(DeviceMetric.ECC_SBE, "Corrected memory errors since the driver was loaded.", Kind.UNTYPED),
    _dcgm(DeviceMetric.ECC_DBE, "Memory errors since the driver was loaded that were not corrected.", Kind.UNTYPED),
    _dcgm(DeviceMetric.REMAPPED_UNCORRECTABLE, "Rows remapped for errors that were not corrected.", Kind.UNTYPED),
    _dcgm(DeviceMetric.REMAPPED_CORRECTABLE, "Rows remapped for corrected errors.", Kind.UNTYPED),
    _dcgm(DeviceMetric.REMAP_FAILURE, "1 if a row could not be remapped."),
    _dcgm(DeviceMetric.NVLINK, "Data over all NVLinks, in KiB since the driver was loaded.", Kind.UNTYPED),
)
