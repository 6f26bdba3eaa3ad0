"""Signs of trouble are found in what agents measure, once they last or recur, and not in what is usual."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from corral.devices.figures.nvidia_smi import parse_nvidia_smi
from corral.model.health.signs import NODE, WEIGHTS, Sign, SignKind
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.monitor.agent.device_samples import device_values
from corral.monitor.agent.machine_files import link_downs
from corral.monitor.agent.machine_samples import machine_values
from corral.monitor.health.figure_signs import Figures, FigureSigns

RECORDED: Final = Path(__file__).resolve().parents[2] / "devices/recorded/nvidia-smi-535.xml"
GIB: Final = 2**30
ROOT: Final = ("/dev/sda1", "ext4", "/")
T0: Final = 1_700_000_000.0


class Watched:
    """Signs of one node, looked for every 30 s."""

    def __init__(self) -> None:
        self.signs, self.now = FigureSigns(), T0

    def look(self, *values: Value, seconds: float = 30.0) -> list[Sign]:
        self.now += seconds
        return list(self.signs.look({"far/n1": Figures(Samples(values))}, self.now))

    def kinds(self, *values: Value, seconds: float = 30.0) -> list[SignKind]:
        return [each.kind for each in self.look(*values, seconds=seconds)]


def recorded(replays: int = 3, *, hot: bool = True) -> list[Value]:
    """What an agent tells of the recorded GPUs."""
    document = RECORDED.read_bytes().replace(b"<replay_counter>3<", f"<replay_counter>{replays}<".encode())
    if not hot:
        held = b"<clocks_event_reason_sw_thermal_slowdown>"
        document = document.replace(held + b"Active", held + b"Not Active")
    return [value for device in parse_nvidia_smi(document) for value in device_values(device, "n1")]


def test_a_device_that_the_hardware_holds_down_for_ten_minutes_is_a_sign() -> None:
    watched = Watched()
    for _ in range(20):
        assert watched.look(*recorded()) == []
    (sign,) = watched.look(*recorded())
    assert (sign.kind, sign.device) == (SignKind.THROTTLED, 0)
    assert sign.reason == "the hardware has held the clocks of device 0 down for ten minutes: sw_thermal_slowdown"


def test_a_device_that_cools_down_between_or_has_its_power_capped_is_none() -> None:
    watched = Watched()
    for look in range(60):
        assert watched.look(*recorded(hot=look % 15 != 0)) == []
    capped = Watched()
    for _ in range(60):
        assert capped.look(*recorded(hot=False)) == []  # the recording has sw_power_cap


def test_a_gap_in_the_figures_begins_the_ten_minutes_anew() -> None:
    watched = Watched()
    for _ in range(19):
        watched.look(*recorded())
    watched.look(seconds=400)
    assert watched.look(*recorded()) == [] and watched.look(*recorded(), seconds=60) == []


def test_many_repeated_transfers_on_pcie_are_a_sign_and_a_few_are_none() -> None:
    watched = Watched()
    assert watched.look(*recorded(3, hot=False)) == []
    assert watched.look(*recorded(83, hot=False)) == []
    (sign,) = watched.look(*recorded(84, hot=False))
    assert (sign.kind, sign.device) == (SignKind.PCIE_ERRORS, 0) and "repeated 81 transfers" in sign.reason
    slowly = Watched()
    for minute in range(60):  # 8 a minute
        assert slowly.look(*recorded(8 * minute, hot=False), seconds=60) == []


def test_a_driver_that_was_loaded_anew_counts_from_nought() -> None:
    watched = Watched()
    watched.look(*recorded(5000, hot=False))
    assert watched.look(*recorded(0, hot=False)) == [] and watched.look(*recorded(80, hot=False)) == []
    assert watched.kinds(*recorded(81, hot=False)) == [SignKind.PCIE_ERRORS]


@pytest.mark.parametrize(
    ("family", "labels", "named"),
    [(NodeMetric.LINK_DOWN, ("eth0",), "eth0"), (NodeMetric.PORT_DOWNED, ("mlx5_0", "1"), "mlx5_0 port 1")],
)
def test_a_link_that_goes_down_three_times_in_an_hour_is_a_sign(
    family: str, labels: tuple[str, ...], named: str
) -> None:
    watched = Watched()
    found = [watched.look(Value(family, labels, float(7 + look // 40)), seconds=30) for look in range(121)]
    assert all(each == [] for each in found[:120])
    (sign,) = found[120]
    assert sign.kind is SignKind.LINK_FLAPS and sign.device == NODE
    assert sign.reason == f"the link of {named} went down 3 times within an hour"
    rarely = Watched()
    assert not any(rarely.look(Value(family, labels, float(look // 15)), seconds=250) for look in range(150))


def disk(size: float, left: float, *, closed: bool = False) -> tuple[Value, ...]:
    return (
        Value(NodeMetric.FILE_SYSTEM, ROOT, size),
        Value(NodeMetric.FILE_SYSTEM_AVAILABLE, ROOT, left),
        Value(NodeMetric.FILE_SYSTEM_READ_ONLY, ROOT, float(closed)),
    )


def test_a_disk_that_is_nearly_full_is_a_sign_and_a_large_one_with_room_is_none() -> None:
    watched = Watched()
    (sign,) = watched.look(*disk(100 * GIB, 4 * GIB))
    assert sign.kind is SignKind.FULL_DISK
    assert sign.reason == "the file system / on /dev/sda1 has 4.0 % left (4.0 GiB)"
    for room in (disk(100 * GIB, 6 * GIB), disk(2000 * GIB, 30 * GIB), disk(GIB, 0, closed=True), disk(0, 0)):
        assert watched.kinds(*room) in ([], [SignKind.READ_ONLY_DISK])
    assert watched.look(Value(NodeMetric.FILE_SYSTEM, ROOT, 1.0)) == []


def test_a_disk_that_becomes_read_only_is_a_sign_and_one_that_always_was_is_none() -> None:
    watched, image = Watched(), Watched()
    assert watched.look(*disk(100 * GIB, 50 * GIB)) == []
    (sign,) = watched.look(*disk(100 * GIB, 50 * GIB, closed=True))
    assert sign.kind is SignKind.READ_ONLY_DISK
    assert sign.reason == "the file system / on /dev/sda1 has become read-only"
    assert image.look(*disk(GIB, 0, closed=True)) == [] and image.look(*disk(GIB, 0, closed=True)) == []


def clocks(*ahead: float) -> Iterable[tuple[str, str]]:
    nodes = {f"far/n{number}": Figures(Samples(), each) for number, each in enumerate(ahead)}
    return [(each.node, each.reason) for each in FigureSigns().look(nodes, T0)]


def test_a_clock_that_differs_is_a_sign_unless_the_servers_own_is_wrong() -> None:
    assert clocks(0.0, 12.5) == [("far/n1", "its clock is 12.5 s ahead of the server's")]
    assert clocks(0.0, 0.5, -2.0, 0.0) == [("far/n2", "its clock is 2.0 s behind the server's")]
    assert clocks(0.0, 1.0) == [] and clocks() == []
    assert clocks(60.0) == [] and clocks(60.0, 61.0, 0.0) == []  # most differ: it is the server's


def test_what_is_no_number_of_a_device_is_a_sign_of_the_node() -> None:
    watched = Watched()
    labels = ("all", "GPU-1", "", "nvidia0", "A100", "n1")
    watched.look(Value(DeviceMetric.PCIE_REPLAY, labels, 0.0))
    (sign,) = watched.look(Value(DeviceMetric.PCIE_REPLAY, labels, 500.0))
    assert sign.device == NODE


def test_a_clock_of_the_server_that_is_set_back_forgets_what_was_seen() -> None:
    watched = Watched()
    watched.look(Value(NodeMetric.LINK_DOWN, ("eth0",), 0.0))
    assert watched.look(Value(NodeMetric.LINK_DOWN, ("eth0",), 50.0), seconds=-3600) == []


def test_every_sign_has_a_weight() -> None:
    assert set(WEIGHTS) == set(SignKind)


def test_the_agent_counts_links_that_went_down_of_interfaces_with_hardware(tmp_path: Path) -> None:
    for name, count, real in (("eth0", "4\n", True), ("veth1", "9\n", False), ("odd", "no number", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "carrier_down_count").write_text(count)
        if real:
            (tmp_path / name / "device").mkdir()
    assert link_downs(str(tmp_path)) == {"eth0": 4} and link_downs(str(tmp_path / "none")) == {}
    values = machine_values(net=str(tmp_path))
    assert Value(NodeMetric.LINK_DOWN, ("eth0",), 4.0) in values
    read_only = {each.labels for each in values if each.family == NodeMetric.FILE_SYSTEM_READ_ONLY}
    assert read_only == {each.labels for each in values if each.family == NodeMetric.FILE_SYSTEM}
