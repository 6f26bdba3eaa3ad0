"""The metrics of machines, under the names, labels and units of Prometheus' node exporter.

They are what rules and boards for clusters usually read of it, for sites that run no node exporter.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from corral.model.metrics.family import Family, Kind

_EXPORTER: Final = "node exporter"


class NodeMetric(StrEnum):
    """The names of all metrics of machines."""

    CPU = "node_cpu_seconds_total"
    MEMORY_TOTAL = "node_memory_MemTotal_bytes"
    MEMORY_FREE = "node_memory_MemFree_bytes"
    MEMORY_AVAILABLE = "node_memory_MemAvailable_bytes"
    MEMORY_BUFFERS = "node_memory_Buffers_bytes"
    MEMORY_CACHED = "node_memory_Cached_bytes"
    DISK_READ = "node_disk_read_bytes_total"
    DISK_WRITTEN = "node_disk_written_bytes_total"
    FILE_SYSTEM = "node_filesystem_size_bytes"
    FILE_SYSTEM_AVAILABLE = "node_filesystem_avail_bytes"
    FILE_SYSTEM_READ_ONLY = "node_filesystem_readonly"
    FILE_SYSTEM_ERROR = "node_filesystem_device_error"
    LINK_DOWN = "node_network_carrier_down_changes_total"
    NETWORK_IN = "node_network_receive_bytes_total"
    NETWORK_OUT = "node_network_transmit_bytes_total"
    PORT_IN = "node_infiniband_port_data_received_bytes_total"
    PORT_OUT = "node_infiniband_port_data_transmitted_bytes_total"
    PORT_STATE = "node_infiniband_state_id"
    PORT_DOWNED = "node_infiniband_link_downed_total"
    PORT_ERRORS = "node_infiniband_port_receive_errors_total"
    UNAME = "node_uname_info"
    THROTTLED = "corral_node_throttled_seconds_total"
    DISK_ERRORS = "corral_node_disk_errors_total"
    CLOCK = "node_timex_offset_seconds"
    CLOCK_IN_STEP = "node_timex_sync_status"


def _gauge(name: NodeMetric, meaning: str, *labels: str) -> Family:
    return Family(name, Kind.GAUGE, meaning, labels, named_by=_EXPORTER)


def _counter(name: NodeMetric, meaning: str, *labels: str) -> Family:
    return Family(name, Kind.COUNTER, meaning, labels, named_by=_EXPORTER)


def _own(name: NodeMetric, meaning: str, *labels: str) -> Family:
    return Family(name, Kind.COUNTER, meaning, labels)


_FILE_SYSTEM: Final = ("device", "fstype", "mountpoint")

NODE_FAMILIES: Final = (
    _counter(NodeMetric.CPU, "Processor time of a machine by mode.", "cpu", "mode"),
    _gauge(NodeMetric.MEMORY_TOTAL, "Memory of a machine."),
    _gauge(NodeMetric.MEMORY_FREE, "Memory of a machine that nothing uses."),
    _gauge(NodeMetric.MEMORY_AVAILABLE, "Memory that programs can be given without swapping."),
    _gauge(NodeMetric.MEMORY_BUFFERS, "Memory of the kernel's buffers."),
    _gauge(NodeMetric.MEMORY_CACHED, "Memory of cached files."),
    _counter(NodeMetric.DISK_READ, "Bytes read from a disk.", "device"),
    _counter(NodeMetric.DISK_WRITTEN, "Bytes written to a disk.", "device"),
    _gauge(NodeMetric.FILE_SYSTEM, "Size of a file system on a disk or a server.", *_FILE_SYSTEM),
    _gauge(NodeMetric.FILE_SYSTEM_AVAILABLE, "What users may still write to a file system.", *_FILE_SYSTEM),
    _gauge(NodeMetric.FILE_SYSTEM_READ_ONLY, "1 if a file system cannot be written to, else 0.", *_FILE_SYSTEM),
    _gauge(
        NodeMetric.FILE_SYSTEM_ERROR,
        "1 if a file system does not say how full it is, such as a server's that does not answer, else 0.",
        *_FILE_SYSTEM,
    ),
    _counter(NodeMetric.LINK_DOWN, "How often the link of a network interface went down.", "device"),
    _counter(NodeMetric.NETWORK_IN, "Bytes received by a network interface.", "device"),
    _counter(NodeMetric.NETWORK_OUT, "Bytes sent by a network interface.", "device"),
    _counter(NodeMetric.PORT_IN, "Bytes received by an RDMA port.", "device", "port"),
    _counter(NodeMetric.PORT_OUT, "Bytes sent by an RDMA port.", "device", "port"),
    _gauge(NodeMetric.PORT_STATE, "State of an RDMA port: 1 down, 2 init, 3 armed, 4 active.", "device", "port"),
    _counter(NodeMetric.PORT_DOWNED, "How often the link of an RDMA port failed.", "device", "port"),
    _counter(NodeMetric.PORT_ERRORS, "Packets with errors that an RDMA port received.", "device", "port"),
    _own(
        NodeMetric.THROTTLED,
        "Seconds for which heat held the clocks of a processor package down, where Intel's processors count it.",
        "package",
    ),
    _own(
        NodeMetric.DISK_ERRORS,
        "Errors that the kernel counted: `commands` to a SCSI or SATA disk that ended with an error, as some of `smartctl` "
        "do on healthy disks, or errors of a `file-system` (ext4).",
        "device",
        "kind",
    ),
    _gauge(NodeMetric.UNAME, "Always 1; the machine's name and kernel.", "nodename", "release", "machine"),
    _gauge(NodeMetric.CLOCK, "Offset of the machine's clock from its time source, as the kernel knows it."),
    _gauge(NodeMetric.CLOCK_IN_STEP, "1 if a time source keeps the machine's clock, else 0."),
)
