"""Of the figures of another machine those are kept that are looked at later, and not more than there is room for."""

from __future__ import annotations

from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.monitor.series.of_machines import MOST_SERVERS, kept_of_machine

GPU = ("amd", "0", "renderD128", "MI300X")


def kept(*values: Value) -> list[Value]:
    return list(kept_of_machine(Samples(values))[1].values)


def test_of_clocks_that_are_held_down_the_reasons_are_kept_that_are_signs() -> None:
    reasons = ("heat", "prochot", "power", "current", "unknown", "made-up")
    found = kept(*(Value(DeviceMetric.HELD_DOWN, (*GPU, reason), 1.0) for reason in reasons))
    assert [each.labels[4] for each in found] == ["heat", "prochot", "unknown"]


def test_of_file_systems_of_servers_a_few_are_kept_and_of_disks_all() -> None:
    sizes = [NodeMetric.FILE_SYSTEM, NodeMetric.FILE_SYSTEM_AVAILABLE]
    of_servers = [Value(size, (f"nas:/{n}", "nfs4", f"/n{n}"), 1.0) for n in range(32) for size in sizes]
    of_disks = [Value(size, (f"/dev/sd{n}", "ext4", f"/d{n}"), 1.0) for n in range(32) for size in sizes]
    assert kept(*of_servers, *of_disks) == [*of_servers[: 2 * MOST_SERVERS], *of_disks]
