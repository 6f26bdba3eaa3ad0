"""What `up` does of a plan, the script of a step, and what a failure says."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote import work
from corral.deploy.remote.sending import archive_of
from corral.deploy.steps.files import MOST_READ, file_step, without_swap
from corral.deploy.steps.outcome import Outcome, failure_of, without_effect
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.script import script_of
from corral.deploy.steps.step import HostPlan, Step
from corral.kernel.errors import Conflict, InvalidInput, NotFound
from tests.deploy.facts import facts, hosts, of_host

INSTALL = Step("package", "install socat", call=("install_packages", "socat"))


def worker(chosen: Hosts, own: str = "gpu1", *, head: bool = True) -> HostPlan:
    seen = {own: Seen(of_host(2), 0, 0)} | ({"head": Seen(of_host(1), 0, 0)} if head else {})
    return next(plan for plan in plan_of(chosen, Survey(seen)) if plan.name == own)


def test_what_needs_no_kubernetes_is_done_and_the_rest_comes_later() -> None:
    plan = worker(hosts())
    assert [step.call[0] for step in plan.doable] == [
        "install_packages", "write_file", "load_modules", "write_file", "set_kernel",
    ]  # fmt: skip
    assert {step.kind for step in plan.later} == {"program", "file", "service", "kubeadm"}
    assert len(plan.doable) + len(plan.later) == plan.changes


def test_a_control_plane_that_is_off_keeps_a_worker_from_joining_but_not_from_being_prepared() -> None:
    plan = worker(hosts(), head=False)
    assert plan.obstacles and not plan.bars and plan.doable


def test_a_file_is_written_only_over_the_one_that_was_seen() -> None:
    there = b"/dev/sda2 none swap sw 0 0\n# \xff\n"
    own = replace(facts(), files={"/etc/fstab": there})
    wanted = without_swap(there.decode(errors="surrogateescape"))
    step = file_step(own, "/etc/fstab", wanted, done=True)
    assert step.call == ("write_file", "/etc/fstab", hashlib.sha256(there).hexdigest())
    assert step.content == b"# " + there  # bytes that are no UTF-8 stay as they are
    assert file_step(facts(), "/etc/x", "y", done=True).call[2] == "none"


def test_a_table_of_file_systems_that_was_read_in_part_is_never_written() -> None:
    own = replace(of_host(2), files={"/etc/fstab": b"/dev/sda2 none swap sw 0 0\n".ljust(MOST_READ, b"#")})
    (_, plan, _) = plan_of(hosts(), Survey({"gpu1": Seen(own, 0, 0)}))
    assert "too long to be changed" in plan.bars[0]


def test_a_script_that_is_cut_anywhere_does_nothing(tmp_path: Path) -> None:
    target = tmp_path / "made"
    functions = f"alone() {{ :; }}\nwrite_file() {{ cat >{target}; }}"  # the real ones would write to this machine
    script = script_of(
        functions, Step("file", "write", call=("write_file", "p"), content=b"a\n" * 60), from_folder=False
    )
    for size in {*range(0, len(script) - 1, 17), *range(len(script) - 40, len(script) - 1)}:
        subprocess.run(["sh", "-s"], input=script[:size], capture_output=True, check=False)
        assert not target.exists(), size
    subprocess.run(["sh", "-s"], input=script, check=True)
    assert target.exists()


def test_words_of_a_call_are_never_the_shells() -> None:
    script = script_of("", Step("file", "x", call=("write_file", "/a; touch /b $(c) 'd'")), from_folder=True)
    assert b"write_file '/a; touch /b $(c) '\"'\"'d'\"'\"''" in script


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("cp: error writing 'x': No space left on device\n", "its disk is full"),
        ("E: Unable to locate package socat", "a package is missing"),
        (" socat : Depends: libwrap0 (>= 7.6) but it is not installable", "a package is missing"),
        ("W: Failed to fetch http://mirror/x", "reaches no source of packages"),
        ("corral: busy", "still runs"),
        ("active\ncorral: no CRI\n", "without its part for Kubernetes"),
        ("corral: changed", "someone changed the file"),
        ("odd\nit \x1b[31mbroke\n\n", "it said it [31mbroke"),
        ("", "it said nothing"),
    ],
)
def test_a_failure_is_one_sentence_with_its_remedy(output: str, says: str) -> None:
    refusal = failure_of(INSTALL, output)
    assert refusal.message.startswith("cannot install socat: ") and says in refusal.message
    assert refusal.remedy.endswith(".") and "\n" not in refusal.message


def test_a_step_that_had_no_effect_is_a_failure() -> None:
    plan = HostPlan("a", ("worker",), (INSTALL,))
    assert without_effect(Outcome("prepared"), plan).state == "failed"
    assert without_effect(Outcome("prepared"), replace(plan, steps=())).state == "prepared"
    failed = Outcome("failed", (), Refusal("why", "what"))
    assert without_effect(failed, plan) == failed


def test_packages_are_the_files_of_a_folder_without_their_owners(tmp_path: Path) -> None:
    (tmp_path / "a_1%3a2_amd64.deb").write_bytes(b"x" * 700)
    (tmp_path / "notes.txt").write_bytes(b"x")
    (found,) = work.packages_of(tmp_path)
    packed = b"".join(archive_of([(found, found.name), (found, "usr/local/bin/y")]))
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        assert [(each.name, each.uid, each.uname) for each in archive] == [
            ("a_1%3a2_amd64.deb", 0, ""), ("usr/local/bin/y", 0, ""),
        ]  # fmt: skip
        read = archive.extractfile("usr/local/bin/y")
        assert read is not None and read.read() == b"x" * 700


def test_a_folder_without_packages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        work.packages_of(tmp_path / "none")
    with pytest.raises(InvalidInput, match=r"no \.deb file"):
        work.packages_of(tmp_path)
    (tmp_path / "-x.deb").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"Rename '-x\.deb'"):
        work.packages_of(tmp_path)


def test_a_second_up_of_the_same_list_is_refused(tmp_path: Path) -> None:
    with work.logs_at(tmp_path / "logs"), pytest.raises(Conflict, match="Another"), work.logs_at(tmp_path / "logs"):
        pass
    with work.logs_at(tmp_path / "logs"):
        pass
