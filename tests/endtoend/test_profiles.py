"""`corral profile`: where the ranks of a running job stand, and where its time goes, without having prepared anything."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from corral.client import Client
from tests.endtoend.platform import Job, Platform, one

HANGS = """\
import os, threading
rank = os.environ["CORRAL_TASK_INDEX"]
def all_reduce(): threading.Event().wait()
def load_shard_again(): threading.Event().wait()
print("ready", flush=True)
load_shard_again() if rank == "1" else all_reduce()
"""
SPINS = """\
def decode_image():
    while True: pass
print("ready", flush=True)
decode_image()
"""


def program(platform: Platform, name: str, text: str, **role: object) -> Job:
    """A running job whose tasks run a Python program."""
    script = platform.folder / f"{name}.py"
    script.write_text(text)
    job = platform.submit(one(name, [sys.executable, str(script)], role=role))
    tasks = int(str(role.get("replicas", 1)))
    for index in range(tasks):
        platform.printed(job, f"main-{index}", "ready")
    platform.until(job, lambda found: found["tasks"]["running"] == tasks)  # a log may be there before its state
    return job


def test_the_odd_rank_of_a_gang_that_hangs_is_told_first(platform: Platform) -> None:
    program(platform, "hangs", HANGS, replicas=3)
    told = platform.run("profile", "hangs", "--what", "stacks").stdout
    odd, others = (part.splitlines() for part in told.strip().split("\n\n"))
    assert odd[0].startswith("main-1 process ")
    assert any("load_shard_again (" in line for line in odd)
    assert others[0].startswith("main-0 process ")
    assert ", main-2 process " in others[0]
    assert any("all_reduce (" in line for line in others)


def test_a_profile_names_the_busy_function_and_is_kept_until_it_is_removed(platform: Platform, tmp_path: Path) -> None:
    program(platform, "spins", SPINS)
    facts = json.loads(platform.run("profile", "spins", "--duration", "1s", "-o", "json").stdout)
    first = facts["functions"][0]
    assert first["name"].startswith("decode_image (")
    assert first["own"] > 0.5
    assert facts["frames"][0]["samples"] == facts["samples"]
    assert any(each["name"] == first["name"] for each in facts["frames"])
    assert facts["id"] in platform.corral("profile", "list", "spins")
    assert "decode_image" in platform.corral("profile", "show", facts["id"])
    second = json.loads(platform.run("profile", "spins", "--duration", "1s", "-o", "json").stdout)["id"]
    assert "decode_image (" in platform.corral("profile", "show", facts["id"], "--compare", second)
    platform.corral("profile", "download", facts["id"], "--to", str(tmp_path))
    flames = tmp_path / f"{facts['id']}-flame-graph.svg"
    assert "decode_image" in flames.read_text()
    assert stat.S_IMODE(flames.stat().st_mode) == 0o600
    platform.corral("profile", "rm", facts["id"])
    platform.refused("profile", "show", facts["id"], code=3)
    assert facts["id"] not in platform.corral("profile", "list", "spins")


GROWS = """\
import time
kept = []
def load_dataset():
    kept.append(b"x" * 2**20)
    time.sleep(0.02)
    if len(kept) > 50: kept.clear()
print("ready", flush=True)
while True: load_dataset()
"""


def test_memory_is_told_by_function_and_holder_and_against_what_was_asked_for(platform: Platform) -> None:
    program(platform, "grows", GROWS, resources={"memory": "1Gi"})
    facts = json.loads(platform.run("profile", "grows", "--what", "memory", "--duration", "2s", "-o", "json").stdout)
    assert facts["memory"][0]["grown"] > 2**20
    assert any(each["name"].startswith("load_dataset (") for each in facts["functions"])
    (advice,) = facts["advice"]
    assert (advice["subject"], advice["of"]) == ("memory-slack", "memory")
    told = platform.corral("profile", "show", facts["id"])
    assert "that grew." in told and "HELD BY" in told and "of the 1Gi that it asked for" in told


def test_what_a_task_gets_of_its_machine_is_shown_with_advice_about_memory_that_it_does_not_use(
    platform: Platform,
) -> None:
    program(platform, "spins", SPINS, resources={"memory": "1Gi"})
    facts = json.loads(platform.run("profile", "spins", "--what", "system", "--duration", "1s", "-o", "json").stdout)
    (rank,) = facts["curves"]
    assert rank["rank"] == "main-0"
    assert max(max(each["points"]) for each in rank["curves"] if each["name"] == "processors in use") > 0
    assert "memory-slack" in [each["subject"] for each in facts["advice"]]
    assert "processors in use" in platform.corral("profile", "show", facts["id"])
    platform.refused("profile", "show", facts["id"], "--compare", facts["id"], code=2)


def test_who_may_not_enter_a_task_may_not_profile_it_and_who_does_is_noted(platform: Platform) -> None:
    program(platform, "spins", SPINS)
    kept = json.loads(platform.run("profile", "spins", "--duration", "1s", "-o", "json").stdout)["id"]
    platform.corral("users", "add", "guest")
    link = platform.corral("users", "link", "guest").strip().partition("#link=")[2]
    with Client(platform.url) as guest:
        guest.login(link=link)
        refused = platform.run("profile", "spins", "--task", "main-0", env={"CORRAL_TOKEN": guest.token})
        unread = platform.run("profile", "show", kept, env={"CORRAL_TOKEN": guest.token})
        assert guest.profiles()["items"] == []
    for each in (refused, unread):
        assert each.returncode == 4
        assert "guest may not profile the tasks of the job spins" in each.stderr
    noted = [each for each in platform.client.audit(limit=20)["items"] if each["action"] == "job.profile"]
    assert [(each["actor"], each["allowed"]) for each in noted[:4]] == [
        ("guest", False), ("guest", False), ("root", True), ("root", True),
    ]  # fmt: skip
    assert [each["detail"].get("read") for each in noted[2:4]] == ["report", None]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--duration", "61s"), "--duration is 1s to 60s"),
        (("--task", "main-0", "--all"), "Name one task with --task, or ask for --all."),
    ],
)
def test_options_out_of_bounds_are_refused(platform: Platform, words: tuple[str, ...], told: str) -> None:
    refused = platform.run("profile", "any", *words)
    assert refused.returncode == 2
    assert told in refused.stderr


def test_a_task_without_python_is_told_in_one_sentence(platform: Platform) -> None:
    job = platform.submit(one("plain", "echo ready; exec sleep 1000"))
    platform.printed(job, "main-0", "ready")
    platform.until(job, lambda found: found["tasks"]["running"] == 1)  # a log may be there before its state
    told = platform.run("profile", "plain")
    why = "No Python process runs in this task. A profile of the kind system takes any program."
    assert (told.returncode, told.stderr) == (1, f"main-0: {why}\n")
