"""What a machine is like is read from /proc and /sys: of a recorded tree every fact, and of the machine of the test."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from corral.runtime.platform_facts import facts_of

MEMINFO = """MemTotal:       527988520 kB
MemAvailable:   501203912 kB
Cached:         210113004 kB
Dirty:              1204 kB
SwapTotal:       8388604 kB
SwapFree:        2097152 kB
Hugetlb:         4194304 kB
"""
FILES = {
    "proc/sys/kernel/hostname": "gpu-07\n",
    "proc/sys/kernel/osrelease": "5.15.0-105-generic\n",
    "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/kernel/numa_balancing": "1\n",
    "proc/cpuinfo": "".join(
        f"processor\t: {at}\nmodel name\t: AMD EPYC 7543\nphysical id\t: {at // 2}\n\n" for at in range(4)
    ),
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "12\n",
    "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "3\n",
    "proc/meminfo": MEMINFO,
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       263994260 kB\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:       131997130 kB\n",
    "sys/devices/system/node/node1/cpulist": "2-3\n",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
    "sys/bus/pci/devices/0000:01:00.0/current_link_speed": "2.5 GT/s PCIe\n",
    "sys/bus/pci/devices/0000:01:00.0/max_link_speed": "16.0 GT/s PCIe\n",
    "sys/bus/pci/devices/0000:01:00.0/current_link_width": "8\n",
    "sys/bus/pci/devices/0000:01:00.0/max_link_width": "16\n",
    "sys/bus/pci/devices/0000:01:00.0/numa_node": "1\n",
    "sys/bus/pci/devices/0000:00:1f.0/class": "0x060100\n",
    "sys/block/nvme0n1/size": "3750748848\n",
    "sys/block/nvme0n1/queue/rotational": "0\n",
    "sys/block/nvme0n1/queue/scheduler": "[none] mq-deadline\n",
    "sys/block/loop0/size": "8\n",
    "sys/module/nvidia/version": "550.54.15\n",
    "proc/pressure/io": "some avg10=1.00 avg60=25.50 avg300=2.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}  # fmt: skip


def recorded(root: Path, files: dict[str, str] = FILES) -> dict[str, Any]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return facts_of(str(root), str(root))


def test_every_fact_of_a_recorded_machine_is_read(tmp_path: Path) -> None:
    found = recorded(tmp_path)
    assert found.pop("workFolder")["bytes"] > 0
    assert found == {
        "host": "gpu-07", "kernel": "5.15.0-105-generic", "os": "Ubuntu 22.04.4 LTS", "clock": "tsc",
        "hugePages": "never", "swappiness": 60, "numaBalancing": 1, "processor": "AMD EPYC 7543", "processors": 4,
        "sockets": 2, "governors": {"performance": 1, "powersave": 1}, "throttled": 15,
        "memory": {
            "total": 527988520 * 1024, "available": 501203912 * 1024, "pageCache": 210113004 * 1024,
            "dirty": 1204 * 1024, "swapTotal": 8388604 * 1024, "swapFree": 2097152 * 1024,
            "hugePagesReserved": 4194304 * 1024,
        },
        "numa": [
            {"node": 0, "processors": "0-1", "memory": 263994260 * 1024},
            {"node": 1, "processors": "2-3", "memory": 131997130 * 1024},
        ],
        "pci": [
            {
                "address": "0000:01:00.0", "kind": "accelerator", "driver": "", "speed": "2.5 GT/s PCIe",
                "mostSpeed": "16.0 GT/s PCIe", "width": 8, "mostWidth": 16, "numaNode": 1,
            }
        ],
        "disks": [{"name": "nvme0n1", "bytes": 3750748848 * 512, "rotational": False, "scheduler": "none"}],
        "drivers": {"nvidia": "550.54.15"}, "pressure": {"io": 0.255},
    }  # fmt: skip


def test_a_machine_that_tells_nothing_has_no_facts_but_its_name_and_disk(tmp_path: Path) -> None:
    assert set(recorded(tmp_path, {})) <= {"host", "processors", "workFolder"}
    odd = {
        "proc/cpuinfo": "\x00\xff" * 50,
        "proc/sys/vm/swappiness": "many\n",
        "sys/bus/pci/devices/x/class": "0x030000",
        "sys/bus/pci/devices/x/current_link_width": "",
        "sys/devices/system/node/node0/meminfo": "nothing",
        "proc/pressure/cpu": "some",
    }
    found = recorded(tmp_path / "odd", odd)
    assert "swappiness" not in found and "pci" not in found and found["numa"][0]["memory"] == 0


def test_what_is_told_of_a_large_machine_fits_a_report(tmp_path: Path) -> None:
    files = dict(FILES)
    for at in range(300):
        here = f"sys/bus/pci/devices/0000:{at:04x}:00.0"
        links = ("class", "0x020000"), ("current_link_width", "16"), ("max_link_width", "16")
        files |= {f"{here}/{name}": text for name, text in links}
        files |= {f"{here}/{name}": "x" * 500 for name in ("current_link_speed", "max_link_speed")}
        files[f"sys/block/nvme{at}n1/size"] = "1000"
    found = recorded(tmp_path, files)
    assert (len(found["pci"]), len(found["disks"])) == (32, 16)
    assert len(json.dumps(found)) < 15_000


def test_this_machine_is_read() -> None:
    found = facts_of(".")
    assert found["kernel"] == os.uname().release
    assert found["processors"] >= 1 and found["memory"]["total"] > found["memory"]["pageCache"] > 0
    assert found["workFolder"]["free"] > 0
