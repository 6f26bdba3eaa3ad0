"""What slows tasks on a machine is said in sentences, and so is what differs between the machines of a job."""

from __future__ import annotations

import pytest

from corral.model.preflight.platform import (
    FolderDisk,
    MachineFacts,
    MachineMemory,
    NumaNode,
    PciLink,
    findings_of,
    judge_machines,
)

GIB = 1024**3
WELL = MachineFacts(
    host="n0",
    kernel="6.1.0",
    processor="EPYC",
    processors=64,
    clock="tsc",
    governors={"performance": 64},
    throttled=0,
    huge_pages="madvise",
    memory=MachineMemory(512 * GIB, 400 * GIB, 100 * GIB, 1 * GIB, 8 * GIB, 8 * GIB),
    numa=(NumaNode(0, "0-31", 256 * GIB), NumaNode(1, "32-63", 255 * GIB)),
    pci=(PciLink("0000:01:00.0", "accelerator", "nvidia", "2.5 GT/s", "16.0 GT/s", 16, 16),),
    drivers={"nvidia": "550"},
    pressure={"cpu": 0.9, "io": 0.05},
    work_folder=FolderDisk(1000 * GIB, 500 * GIB),
)


def altered(**changes: object) -> MachineFacts:
    return MachineFacts(**{name: getattr(WELL, name) for name in WELL.__struct_fields__} | changes)  # type: ignore[arg-type]


def test_a_machine_that_is_well_has_no_findings_though_an_idle_accelerator_slows_its_link() -> None:
    assert findings_of(WELL) == [] and findings_of(MachineFacts()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"governors": {"powersave": 60}}, "60 of 64 processors have the governor powersave; performance is faster."),
        ({"throttled": 7}, "Processors were throttled 7 times since the machine started; look at its cooling."),
        ({"clock": "hpet"}, "The clock source is hpet, which is slow to read; tsc is usual."),
        ({"huge_pages": "never"}, "Transparent huge pages are off; madvise lets programs ask for them."),
        ({"memory": MachineMemory(64 * GIB, swap_total=8 * GIB, swap_free=4 * GIB)}, "4Gi of swap are in use."),
        ({"memory": MachineMemory(64 * GIB, dirty=8 * GIB)}, "8Gi of the page cache wait to be written."),
        (
            {"numa": (NumaNode(0, "0", 256 * GIB), NumaNode(1, "1", 128 * GIB))},
            "NUMA node 1 has 128Gi of memory, another one 256Gi.",
        ),
        (
            {"pci": (PciLink("0000:01:00.0", "accelerator", "", "16.0 GT/s", "16.0 GT/s", 8, 16),)},
            "The PCIe link of 0000:01:00.0 (accelerator) has 16.0 GT/s x8; it could have 16.0 GT/s x16.",
        ),
        (
            {"pci": (PciLink("0000:41:00.0", "network", "", "8.0 GT/s", "16.0 GT/s", 16, 16),)},
            "The PCIe link of 0000:41:00.0 (network) has 8.0 GT/s x16; it could have 16.0 GT/s x16.",
        ),
        ({"pressure": {"io": 0.25}}, "In the last minute tasks waited for the disk for 25% of the time."),
        (
            {"work_folder": FolderDisk(1000 * GIB, 20 * GIB)},
            "The disk of the task's folder has 20Gi left of 1000Gi.",
        ),
    ],
)
def test_each_thing_that_slows_tasks_is_one_sentence(changes: dict[str, object], said: str) -> None:
    assert findings_of(altered(**changes)) == [said]


def test_machines_of_a_job_that_differ_are_named_and_each_node_is_shown_once() -> None:
    other = altered(host="n3", kernel="5.15.0", drivers={})
    told = [(f"worker-{at}", f"local/n{at // 2}", WELL) for at in range(6)] + [("worker-6", "local/n3", other)]
    found = judge_machines(told, "2026-11-28T12:00:00.000Z")
    assert [(each.task, each.node) for each in found.machines] == [
        ("worker-0", "local/n0"), ("worker-2", "local/n1"), ("worker-4", "local/n2"), ("worker-6", "local/n3"),
    ]  # fmt: skip
    assert found.differences == (
        "The kernel differs: 6.1.0 on local/n0 and 2 more; 5.15.0 on local/n3.",
        "The driver nvidia differs: 550 on local/n0 and 2 more; none on local/n3.",
    )
    assert judge_machines(told[:6], "").differences == ()
