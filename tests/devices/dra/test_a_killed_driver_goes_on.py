"""A driver killed at any moment knows all claims after a restart, and its CDI documents agree."""

from __future__ import annotations

import asyncio
import collections
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.devices.dra.driver import Asked
from corral.devices.dra.prepared_claims import Ledger
from corral.kernel.errors import Conflict, InvalidInput
from tests.devices.dra.dying import STORY, cluster
from tests.devices.dra.node import DRIVER, Cluster, Node, given

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def dying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    folder = tmp_path_factory.mktemp("dying")
    command = [sys.executable, "-m", "tests.devices.dra.dying", str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield folder, process
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def killed_before(dying: tuple[Path, subprocess.Popen[str]], step: int) -> tuple[Path, list[str]]:
    """The folder of a driver that was killed before this step, and its acknowledged answers."""
    folder, process = dying
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{step}\n")
    process.stdin.flush()
    return folder / str(step), process.stdout.readline().split()


def prepare(node: Node, uid: str) -> None:
    asyncio.run(node.driver.prepare(Asked("x", uid, uid)))


def unprepare(node: Node, uid: str) -> None:
    asyncio.run(node.driver.unprepare(Asked("x", uid, uid)))


def devices_twice(held: dict[str, list[str]]) -> list[str]:
    count = collections.Counter(device for devices in held.values() for device in devices)
    return [device for device, times in count.items() if times > 1]


@pytest.mark.crash
def test_killed_before_any_step_on_the_disk_it_goes_on(dying: tuple[Path, subprocess.Popen[str]]) -> None:
    seen = set()
    for step in range(1, 200):
        root, answered = killed_before(dying, step)
        if answered[-1:] == ["whole"]:
            break
        seen.add(len(answered))
        prepared = {uid for call, uid in STORY[: len(answered)] if call == "prepare"}
        prepared -= {uid for call, uid in STORY[: len(answered)] if call == "unprepare"}
        under_way = {STORY[len(answered)][1]}
        on_disk = {path.stem.rpartition("-")[2] for path in (root / "cdi").glob("*.json")}
        held = {path.stem for path in (root / "plugins" / DRIVER / "claims").glob("*.json")}
        assert prepared - under_way <= on_disk & held, "what was answered is on disk"
        assert on_disk <= held <= prepared | under_way, "no document without its entry, and nothing that was freed"
        node = Node(root, cluster())
        assert node.documents().keys() == node.held().keys() == held
        assert not devices_twice(node.held())
        assert not list(root.rglob("*.tmp"))
        for uid, entry in node.held().items():
            names = {f"CORRAL_DEVICE_{device.upper().replace('-', '_')}={device}" for device in entry}
            assert names <= set(node.documents()[uid]["devices"][0]["containerEdits"]["env"])
        for uid in "abc":
            unprepare(node, uid)
        prepare(node, "b")
        with pytest.raises(Conflict):
            prepare(node, "a")
        node.ledger.close()
    else:
        pytest.fail("the story never came to its end")
    assert seen == set(range(len(STORY)))
    assert step - 1 == 27, "three prepares of six steps and three unprepares of three"


def test_what_was_prepared_is_prepared_after_a_restart_without_asking_the_cluster(tmp_path: Path) -> None:
    known = Cluster()
    known.allocate("a", given("npu-0"))
    known.allocate("b", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    first = node.documents()
    node.restart()
    known.asked.clear()
    prepare(node, "a")
    assert not known.asked and node.documents() == first
    with pytest.raises(Conflict, match="npu-0 is prepared for claim x/a"):
        prepare(node, "b")


def test_documents_that_a_reboot_wiped_are_written_again(tmp_path: Path) -> None:
    """/var/run is in memory; the ledger is on disk."""
    known = Cluster()
    known.allocate("a", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    before = node.documents()
    for path in node.cdi.iterdir():
        path.unlink()
    node.restart(boot="boot-2")
    assert node.documents() == before
    prepare(node, "a")
    assert known.asked == ["a", "a"], "after a reboot the cluster is asked again"


def test_a_document_that_vanishes_is_written_again_when_asked_for(tmp_path: Path) -> None:
    known = Cluster()
    known.allocate("a", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    (document,) = node.cdi.iterdir()
    document.unlink()
    prepare(node, "a")
    assert document.is_file()


def test_strays_of_this_driver_are_swept_and_others_files_are_left(tmp_path: Path) -> None:
    cdi = tmp_path / "cdi"
    cdi.mkdir()
    for name in (
        f"{DRIVER}-claim-gone.json",
        f".{DRIVER}-claim-x.json.7.tmp",
        "nvidia.json",
        f"{DRIVER}x-claim-a.json",
    ):
        (cdi / name).write_text("{}")
    Node(tmp_path, Cluster())
    assert {path.name for path in cdi.iterdir()} == {"nvidia.json", f"{DRIVER}x-claim-a.json"}


@pytest.mark.parametrize("there", [True, False])
def test_a_claim_of_an_earlier_boot_holds_its_devices_as_long_as_it_exists(tmp_path: Path, there: bool) -> None:
    known = Cluster()
    known.allocate("a", given("npu-0"))
    known.allocate("b", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    node.restart(boot="boot-2")
    if not there:
        del known.claims["a"]
        prepare(node, "b")
        assert node.held() == {"b": ["npu-0"]} and node.documents().keys() == {"b"}
        return
    with pytest.raises(Conflict):
        prepare(node, "b")


def test_a_claim_of_this_boot_holds_its_devices_even_when_it_was_deleted(tmp_path: Path) -> None:
    """Its containers may still run: only the kubelet knows."""
    known = Cluster()
    known.allocate("a", given("npu-0"))
    known.allocate("b", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    del known.claims["a"]
    with pytest.raises(Conflict):
        prepare(node, "b")


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"uid": "b"}', b"\xff", json.dumps({"uid": "a", "given": 1}).encode()]
)
def test_a_damaged_entry_stops_the_start_and_names_its_file(tmp_path: Path, content: bytes) -> None:
    known = Cluster()
    known.allocate("a", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    node.ledger.close()
    (path,) = (node.sockets.folder / "claims").glob("*.json")
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.json is damaged"):
        Ledger(node.sockets.folder)
    path.unlink()
    Ledger(node.sockets.folder).close()


def test_an_entry_under_anothers_name_stops_the_start(tmp_path: Path) -> None:
    known = Cluster()
    known.allocate("a", given("npu-0"))
    node = Node(tmp_path, known)
    prepare(node, "a")
    node.ledger.close()
    (path,) = (node.sockets.folder / "claims").glob("*.json")
    path.rename(path.with_name("b.json"))
    with pytest.raises(InvalidInput, match="is about another claim"):
        Ledger(node.sockets.folder)


def test_two_drivers_cannot_have_one_ledger(tmp_path: Path) -> None:
    first = Ledger(tmp_path)
    with pytest.raises(Conflict, match="Another device plugin of this driver runs"):
        Ledger(tmp_path)
    first.close()
    Ledger(tmp_path).close()
