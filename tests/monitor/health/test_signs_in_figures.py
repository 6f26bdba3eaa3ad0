"""Signs of trouble are found in what agents measure, once they last or recur, and not in what is usual."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from corral.devices.figures.amd import AmdReader
from corral.devices.figures.nvidia_smi import parse_nvidia_smi
from corral.model.health.ledger import HealthTerms, Ledger
from corral.model.health.signs import NODE, WEIGHTS, Sign, SignKind
from corral.model.metrics.agent_page import CheckTold
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.monitor.agent.device_samples import device_values
from corral.monitor.agent.machine_files import disk_errors, link_downs, throttled_seconds
from corral.monitor.agent.machine_samples import fault_values, machine_values
from corral.monitor.health import figure_signs
from corral.monitor.health.figure_signs import Figures, FigureSigns

ROOT_FOLDER: Final = Path(__file__).resolve().parents[3]
RECORDED: Final = ROOT_FOLDER / "tests/devices/recorded/nvidia-smi-535.xml"
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
    assert (sign.kind, sign.device) == (SignKind.THROTTLED, NODE)
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


def test_repeated_transfers_of_an_amd_card_are_a_sign_of_it(tmp_path: Path) -> None:
    for number in (0, 1):
        card = tmp_path / f"card{number}" / "device"
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x1002\n")
        (card / "pcie_replay_count").write_text("7\n")
    watched, reader = Watched(), AmdReader(tmp_path)

    def measured() -> list[Value]:
        return [value for device in reader.read() for value in device_values(device, "n1")]

    assert watched.look(*measured()) == []
    (tmp_path / "card1/device/pcie_replay_count").write_text("88\n")
    (sign,) = watched.look(*measured())
    assert (sign.kind, sign.device) == (SignKind.PCIE_ERRORS, 1) and "repeated 81 transfers" in sign.reason


NPU: Final = ("ascend", "3", "davinci3", "Ascend 910B3")


def held_down(reason: str, part: float) -> Value:
    return Value(DeviceMetric.HELD_DOWN, (*NPU, reason), part)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("heat", "heat"),
        ("prochot", "a signal of the board (PROCHOT)"),
        ("unknown", "something of which its tool tells no reason"),
    ],
)
def test_a_device_of_another_vendor_that_is_held_down_for_ten_minutes_is_a_sign(reason: str, words: str) -> None:
    watched = Watched()
    for _ in range(20):
        assert watched.look(held_down(reason, 0.1)) == []
    (sign,) = watched.look(held_down(reason, 0.1))
    assert (sign.kind, sign.device) == (SignKind.THROTTLED, NODE)
    assert sign.reason == f"the clocks of device 3 have been held down for ten minutes by {words}"
    briefly = Watched()
    assert not any(briefly.look(held_down(reason, 0.0 if look % 15 == 0 else 1.0)) for look in range(60))
    little = Watched()
    assert not any(little.look(held_down(reason, 0.09)) for _ in range(60))


@pytest.mark.parametrize("reason", ["heat", "prochot", "unknown", "of NVIDIA"])
def test_limits_of_power_and_heat_of_all_devices_alone_close_no_node(reason: str) -> None:
    watched, ledger, highest = Watched(), Ledger(HealthTerms()), 0.0
    ledger.see_nodes(["far/n1", "far/n2", "far/n3"])
    for look in range(48 * 15):
        values = [Value(NodeMetric.THROTTLED, (package,), 120.0 * look) for package in "01"]
        for number in map(str, range(8)):
            if reason == "of NVIDIA":
                held = ("n1", number, "clocks_throttle_reason_hw_slowdown")
                values.append(Value(DeviceMetric.NVIDIA_STATE, held, 2.0))
            else:
                labels = ("ascend", number, f"davinci{number}", "Ascend 910B3", reason)
                values.append(Value(DeviceMetric.HELD_DOWN, labels, 1.0))
        for sign in watched.look(*values, seconds=240):
            ledger.add(sign)
        highest = max(highest, ledger.score("far/n1", watched.now))
    assert 4.0 < highest < HealthTerms().cordon_score, "two days"
    reasons = [each.reason for each in ledger.entries]
    assert len(reasons) == 48 and reasons[-1].endswith("; and 7 more"), (
        "one an hour, for eight devices and two processors"
    )


@pytest.mark.parametrize("reason", ["power", "current", "made-up"])
def test_a_device_of_another_vendor_at_its_limit_of_power_is_none(reason: str) -> None:
    watched = Watched()
    assert not any(watched.look(held_down(reason, 1.0)) for _ in range(60))


@pytest.mark.parametrize("severity", ["correctable", "nonfatal"])
def test_many_errors_on_pcie_that_the_kernel_counted_are_a_sign_and_a_few_are_none(severity: str) -> None:
    watched = Watched()
    assert watched.look(Value(DeviceMetric.PCIE_ERRORS, (*NPU, severity), 7.0)) == []
    assert watched.look(Value(DeviceMetric.PCIE_ERRORS, (*NPU, severity), 87.0)) == []
    (sign,) = watched.look(Value(DeviceMetric.PCIE_ERRORS, (*NPU, severity), 88.0))
    assert (sign.kind, sign.device) == (SignKind.PCIE_ERRORS, 3)
    assert sign.reason == f"the kernel counted 81 {severity} errors of device 3 on PCI Express within 10m"


@pytest.mark.parametrize(
    ("family", "labels"),
    [
        (DeviceMetric.PCIE_ERRORS, (*NPU, "fatal")),
        (DeviceMetric.ECC, (*NPU, "uncorrected")),
        (DeviceMetric.REPLAYS, NPU),
        (NodeMetric.DISK_ERRORS, ("sda1", "file-system")),
    ],
)
def test_numbers_beyond_all_counters_keep_no_other_sign_from_being_seen(family: str, labels: tuple[str, ...]) -> None:
    signs = FigureSigns()

    def look(count: float, now: float) -> list[Sign]:
        told = Figures(Samples((Value(family, labels, count),)))
        return list(signs.look({"far/n1": told, "far/n2": told}, now))

    assert look(-1e308, T0) == []
    found = look(1e308, T0 + 30)
    assert {each.node for each in found} == {"far/n1", "far/n2"}
    assert all(len(each.reason) < 200 for each in found)


def test_one_fatal_error_on_pcie_is_a_sign() -> None:
    watched = Watched()
    assert watched.look(Value(DeviceMetric.PCIE_ERRORS, (*NPU, "fatal"), 2.0)) == [], "of a time before the first look"
    (sign,) = watched.look(Value(DeviceMetric.PCIE_ERRORS, (*NPU, "fatal"), 3.0))
    assert sign.kind is SignKind.PCIE_ERRORS and "1 fatal error of device 3" in sign.reason and "1h" in sign.reason


def test_a_memory_error_that_was_not_corrected_is_a_sign_and_one_that_was_is_none() -> None:
    watched = Watched()
    for count in (5.0, 900.0):
        assert watched.look(Value(DeviceMetric.ECC, (*NPU, "corrected"), count)) == []
    assert watched.look(Value(DeviceMetric.ECC, (*NPU, "uncorrected"), 1.0)) == []
    (sign,) = watched.look(Value(DeviceMetric.ECC, (*NPU, "uncorrected"), 2.0))
    assert (sign.kind, sign.device) == (SignKind.ECC, 3)
    assert sign.reason == "the memory of device 3 had 1 error within an hour that ECC did not correct"


class Mounting:
    """Nodes that mount file systems of a server, looked for every 30 s."""

    def __init__(self) -> None:
        self.signs, self.now = FigureSigns(), T0

    def look(self, *hangs: bool, mounts: Iterable[tuple[str, str]] = (("nas:/x", "/x"),)) -> list[tuple[str, str]]:
        """The signs, where some of the nodes get no answer."""
        self.now += 30.0
        nodes = {
            f"far/n{number}": Figures(
                Samples(
                    tuple(
                        Value(NodeMetric.FILE_SYSTEM_ERROR, (device, "nfs4", f"{mount}{number}"), float(each))
                        for device, mount in mounts
                    )
                )
            )
            for number, each in enumerate(hangs)
        }
        found = list(self.signs.look(nodes, self.now))
        assert all(each.kind is SignKind.HANGING_MOUNT and each.device == NODE for each in found)
        return [(each.node, each.reason) for each in found]

    def after_ten_minutes(
        self, *hangs: bool, mounts: Iterable[tuple[str, str]] = (("nas:/x", "/x"),)
    ) -> list[tuple[str, str]]:
        for _ in range(20):
            assert self.look(*hangs, mounts=mounts) == []
        return self.look(*hangs, mounts=mounts)


def test_a_mount_that_hangs_on_one_node_is_a_sign_of_it_and_on_most_the_servers_fault() -> None:
    said = "nas:/x at /x1 has an error on this node and none on most others"
    assert Mounting().after_ten_minutes(False, True, False) == [("far/n1", said)]
    for servers in ((False, True), (True,), (True, True, False), (False, False)):
        assert Mounting().after_ten_minutes(*servers) == []


def test_a_mount_that_answers_between_or_hangs_everywhere_for_a_while_is_none() -> None:
    nodes = Mounting()
    assert not any(nodes.look(False, look % 15 != 0, False) for look in range(60))
    assert not any(nodes.look(look % 15 == 0, True, look % 15 == 0) for look in range(60))


def test_all_mounts_of_a_node_are_one_sign() -> None:
    mounts = [(f"nas:/{name}", f"/{name}") for name in ("home", "scratch", "apps", "data", "more")]
    nodes = Mounting()
    said = "nas:/home at /home1, nas:/scratch at /scratch1, nas:/apps at /apps1, and 2 more have errors on this node"
    assert nodes.after_ten_minutes(False, True, False, mounts=mounts) == [
        ("far/n1", f"{said} and none on most others")
    ]  # fmt: skip


def test_file_systems_with_the_name_of_their_kind_are_told_apart_by_their_mounts() -> None:
    signs, found = FigureSigns(), list[Sign]()
    for look in range(30):
        nodes = {}
        for node in range(3):
            values = [
                Value(
                    NodeMetric.FILE_SYSTEM_ERROR, ("beegfs_nodev", "beegfs", mount), float(mount == "/b" and node == 1)
                )
                for mount in ("/a", "/b")
            ]
            nodes[f"far/n{node}"] = Figures(Samples(tuple(values)))
        found = list(signs.look(nodes, T0 + 30 * look))
    assert [each.reason for each in found] == [
        "beegfs_nodev at /b has an error on this node and none on most others"
    ]  # fmt: skip


def test_texts_of_an_agent_are_told_on_one_line() -> None:
    found = Mounting().after_ten_minutes(False, True, False, mounts=[("nas:/x\n\x1b[2J", "/x\r")])
    assert found == [("far/n1", "nas:/x  [2J at /x 1 has an error on this node and none on most others")]
    watched, labels = Watched(), ("eth0\n\x1b[2J",)
    watched.look(Value(NodeMetric.LINK_DOWN, labels, 0.0))
    (sign,) = watched.look(Value(NodeMetric.LINK_DOWN, labels, 3.0))
    assert (sign.source, sign.reason) == (
        "eth0  [2J", "the link of eth0  [2J went down 3 times within an hour",
    )  # fmt: skip


def test_a_servers_file_system_that_is_full_or_read_only_is_no_sign_of_a_node() -> None:
    labels, watched = ("nas:/x", "nfs4", "/x"), Watched()
    for closed in (0.0, 1.0):
        values = (
            Value(NodeMetric.FILE_SYSTEM, labels, 100.0 * GIB),
            Value(NodeMetric.FILE_SYSTEM_AVAILABLE, labels, 0.0),
            Value(NodeMetric.FILE_SYSTEM_READ_ONLY, labels, closed),
        )
        assert watched.look(*values) == []


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


class Tree:
    """Files of the kernel's, as machines with two Intel processors and a SATA disk have them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for cpu, package in ((0, 0), (1, 0), (2, 1), (10, 1)):
            self.write(f"cpu/cpu{cpu}/topology/physical_package_id", f"{package}\n")
            self.heat(cpu, 120)
        self.write("cpu/cpufreq/unrelated", "1\n")
        self.write("block/sda/device/ioerr_cnt", "0x2\n")
        self.write("block/sda/removable", "0\n")
        self.write("block/sdb/device/ioerr_cnt", "0x708\n")  # a card reader without a card, after an hour
        self.write("block/sdb/removable", "1\n")
        self.write("block/nvme0n1/device/state", "live\n")
        self.write("ext4/sda1/errors_count", "0\n")
        self.write("ext4/features/lazy_itable_init", "supported\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def heat(self, cpu: int, milliseconds: int) -> None:
        self.write(f"cpu/cpu{cpu}/thermal_throttle/package_throttle_total_time_ms", f"{milliseconds}\n")

    def values(self) -> list[Value]:
        return fault_values(*(str(self.folder / name) for name in ("cpu", "block", "ext4")))


def test_the_kernels_counts_of_hot_processors_and_of_errors_of_disks_are_read(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert throttled_seconds(str(tmp_path / "cpu")) == {"0": 0.12, "1": 0.12}
    assert disk_errors(str(tmp_path / "block"), str(tmp_path / "ext4")) == {
        ("sda", "commands"): 2, ("sda1", "file-system"): 0,
    }  # fmt: skip
    assert len(tree.values()) == 4
    tree.write("block/sda/device/ioerr_cnt", "two\n")
    tree.write("ext4/sda1/errors_count", "many\n")
    assert disk_errors(str(tmp_path / "block"), str(tmp_path / "ext4")) == {}
    assert throttled_seconds(str(tmp_path / "none")) == {}  # as on machines of other makers, and on virtual ones


def test_a_processor_that_heat_holds_down_for_a_minute_of_ten_is_a_sign_and_a_moment_is_none(tmp_path: Path) -> None:
    watched, tree = Watched(), Tree(tmp_path)
    for look in range(1, 10):
        tree.heat(2, 120 + 6000 * look)
        assert watched.look(*tree.values(), seconds=60) == []
    tree.heat(2, 120 + 6000 + 60_000)
    (sign,) = watched.look(*tree.values(), seconds=50)
    assert (sign.kind, sign.device) == (SignKind.THROTTLED, NODE)
    assert sign.reason == "heat held the clocks of processor 1 down for 60 s within ten minutes"
    slowly, tree = Watched(), Tree(tmp_path / "slowly")
    for look in range(60):
        tree.heat(2, 5000 * look)
        assert slowly.look(*tree.values(), seconds=60) == []


def test_errors_of_a_file_system_are_a_sign_and_commands_that_end_with_errors_are_none(tmp_path: Path) -> None:
    watched, tree = Watched(), Tree(tmp_path)
    assert watched.look(*tree.values()) == []
    tree.write("block/sda/device/ioerr_cnt", "0x40\n")  # as of an hour of smartctl
    assert watched.look(*tree.values()) == []
    tree.write("ext4/sda1/errors_count", "1\n")
    found = {each.reason: (each.kind, each.source) for each in watched.look(*tree.values())}
    assert found == {
        "the kernel counted 1 errors of the file system on sda1 within an hour": (
            SignKind.DISK_ERRORS, "sda1 file-system",
        ),
    }  # fmt: skip


def test_each_run_of_a_check_that_failed_is_one_sign(tmp_path: Path) -> None:
    signs = FigureSigns()

    def look(*checks: CheckTold, seconds: float = 0.0) -> list[tuple[str, str, str]]:
        found = signs.look({"far/n1": Figures(Samples(), 0.0, checks)}, T0 + seconds)
        return [(each.kind, each.source, each.reason) for each in found]

    failed = CheckTold("disk.sh", 1, "sda\nis slow", T0 + 5)
    fine, unknown = CheckTold("fan.sh", 0, "", T0 + 5), CheckTold("odd.sh", None, "it took longer than 10 s", T0 + 5)
    said = ("check-failed", "disk.sh", "check disk.sh: sda is slow")
    assert look(failed, fine, unknown) == [said]
    assert look(failed, fine, unknown, seconds=30) == [], "the same run"
    again = CheckTold("disk.sh", 1, "sda\nis slow", T0 + 65)
    assert look(again, fine, seconds=70) == [said]
    assert look(seconds=100) == [] and look(again, seconds=130) == [], "the agent was silent between"
    assert look(CheckTold("disk.sh", 0, "", T0 + 125), seconds=160) == [] and look(seconds=190) == []


def test_a_run_before_a_server_began_is_the_earlier_servers_sign() -> None:
    signs = FigureSigns()

    def look(at: float, seconds: float) -> int:
        checks = (CheckTold("disk.sh", 1, "sda is slow", T0 + at),)
        return len(list(signs.look({"far/n1": Figures(Samples(), 0.0, checks)}, T0 + seconds)))

    assert [look(-300.0, 0.0), look(-300.0, 30.0), look(60.0, 90.0), look(60.0, 120.0)] == [0, 0, 1, 0]


def test_runs_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_signs, "_MOST_WATCHED", 2)
    signs = FigureSigns()
    for number in range(5):
        failed = (CheckTold(f"{number}.sh", 1, "", T0 + number),)
        assert len(list(signs.look({"far/n1": Figures(Samples(), 0.0, failed)}, T0 + number))) == 1
    assert len(signs._checked) == 2
    assert list(signs.look({}, T0 + 100_000)) == [] and not signs._checked, "after a day"


def test_a_servers_own_clock_says_nothing_of_others(tmp_path: Path) -> None:
    nodes = {"local/here": Figures(Samples(), None), "far/n1": Figures(Samples(), 60.0)}
    assert list(FigureSigns().look(nodes, T0)) == [], "most of the others differ: it is the server's"


def test_every_sign_has_a_weight_which_its_page_tells() -> None:
    assert set(WEIGHTS) == set(SignKind)
    rows = re.findall(r"^\| ([a-z, -]+) \| ([0-9]+) \|", (ROOT_FOLDER / "docs/health.md").read_text(), re.MULTILINE)
    told = {kind: float(weight) for kinds, weight in rows for kind in kinds.split(", ")}
    assert told == {kind: weight for kind, weight in WEIGHTS.items() if kind is not SignKind.HEALTH_EVENT}


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
