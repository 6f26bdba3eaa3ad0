"""Arrays (several jobs from one file) and dependencies between jobs."""

from __future__ import annotations

import json

import pytest

from tests.endtoend.platform import Platform, one

pytestmark = pytest.mark.timeout(300)


def test_an_array_runs_the_file_once_for_each_index(platform: Platform) -> None:
    first = platform.submit(one("sweep", "echo $CORRAL_ARRAY_INDEX of $CORRAL_ARRAY_SIZE", array=3))
    members = [f"sweep-{index}" for index in range(3)]
    for index, name in enumerate(members):
        assert platform.ended(name)["state"] == "succeeded"
        assert platform.log(name) == f"{index} of 3\n"
    listed = platform.corral("ls", "--tag", f"array:{first['id']}", "--order", "name", "-o", "json")
    assert [name in listed for name in members] == [True] * 3


def test_an_array_runs_no_more_jobs_at_once_than_it_may(platform: Platform) -> None:
    gate = platform.folder / "gate"
    command = f"until [ -e {gate}-$CORRAL_ARRAY_INDEX ]; do sleep 0.02; done"
    platform.submit(one("narrow", command, array={"size": 4, "maxParallel": 2}))
    for name in ("narrow-0", "narrow-1"):
        platform.until(name, lambda job: job["state"] == "running")
    held = platform.client.job("narrow-2")
    assert held["state"] == "waiting" and held["waiting"]["code"] == "dependency"
    (platform.folder / "gate-0").touch()
    platform.until("narrow-2", lambda job: job["state"] == "running")
    assert platform.client.job("narrow-3")["state"] == "waiting"
    for index in (1, 2, 3):
        (platform.folder / f"gate-{index}").touch()
    for index in range(4):
        assert platform.ended(f"narrow-{index}")["state"] == "succeeded"


def test_the_jobs_of_an_array_are_stopped_by_their_tag(platform: Platform) -> None:
    first = platform.submit(one("endless", "sleep 1000", array=3))
    names = platform.corral("ls", "--live", "--tag", f"array:{first['id']}", "-o", "name").split()
    assert len(names) == 3
    platform.corral("stop", "--wait", *names)
    assert {platform.client.job(name)["state"] for name in names} == {"stopped"}


def test_a_job_waits_for_another_to_succeed(platform: Platform) -> None:
    gate = platform.folder / "prepared"
    platform.submit(one("prepare", f"until [ -e {gate} ]; do sleep 0.02; done; echo done > {gate}"))
    after = platform.submit(one("train", f"cat {gate}", after=["prepare"]))
    assert after["state"] == "waiting" and after["waiting"]["code"] == "dependency"
    assert "waits" in platform.corral("explain", "train").lower()
    gate.touch()
    assert platform.ended(after)["state"] == "succeeded"
    assert platform.log(after) == "done\n"


def test_a_job_whose_dependency_failed_is_stopped_before_it_runs(platform: Platform) -> None:
    gate = platform.folder / "fail-now"
    platform.submit(one("breaks", f"until [ -e {gate} ]; do sleep 0.02; done; exit 3"))
    needs = platform.submit(one("needs-it", "echo never", after=["breaks"]))
    anyway = platform.submit(one("anyway", "echo anyway", after=[{"job": "breaks", "condition": "ended"}]))
    gate.touch()
    failed = platform.ended(needs)
    assert failed["state"] == "stopped" and "breaks" in failed["exit"]["message"]
    assert failed["startedAt"] is None and platform.log(needs) == ""
    assert platform.ended(anyway)["state"] == "succeeded"
    late = platform.submit(one("too-late", "echo never", after=["breaks"]))
    assert platform.ended(late)["state"] == "stopped"


def test_a_job_that_was_removed_is_no_dependency(platform: Platform) -> None:
    gone = platform.ran(one("soon-gone", "true"))
    platform.corral("rm", gone["id"])
    assert "soon-gone" in platform.refused(
        "submit", "-", code=2, given=json.dumps(one("orphan", "true", after=["soon-gone"]))
    )


def test_a_dependency_that_never_was_is_refused_by_name(platform: Platform) -> None:
    assert "nobody" in platform.refused(
        "submit", "-", code=2, given=json.dumps(one("orphan", "true", after=["nobody"]))
    )


def test_commands_take_the_name_of_an_array_for_all_its_jobs(platform: Platform) -> None:
    platform.submit(one("seeds", "echo seed $CORRAL_ARRAY_INDEX; exec sleep 1000", array=3))
    for index in range(3):
        platform.printed_running(f"seeds-{index}", "main-0", "seed")
    shown = platform.corral("get", "seeds")
    assert "An array of 3 jobs: 3 running." in shown and "seeds-2" in shown
    logs = platform.run("logs", "seeds")
    assert logs.stdout == "".join(f"==> seeds-{index} <==\nseed {index}\n" for index in range(3))
    for command in ("explain", "events", "attempts", "receipts"):
        assert "seeds is an array of 3 jobs; name one of them: seeds-0, " in platform.refused(command, "seeds", code=3)
    assert "No job of seeds is over (3 running); stop them first, or use --stop." in platform.refused("rm", "seeds")
    platform.corral("suspend", "seeds")
    platform.corral("resume", "seeds")
    platform.corral("stop", "--wait", "seeds")
    assert {platform.client.job(f"seeds-{index}")["state"] for index in range(3)} == {"stopped"}
    assert "All jobs of seeds are over already (3 stopped)." in platform.refused("stop", "seeds")
    platform.corral("rm", "seeds")
    platform.refused("get", "seeds", code=3)
    platform.refused("stop", "seeds", code=3)


def test_jobs_are_listed_by_their_labels(platform: Platform) -> None:
    platform.ran(one("mine", "true", labels={"team": "vision", "example.com/stage": "dev"}))
    platform.ran(one("other", "true", labels={"team": "speech"}))
    wanted = platform.client.job("mine")["id"]
    assert platform.corral("ls", "-l", "team=vision", "-o", "name").split() == [wanted]
    assert platform.corral("ls", "-l", "team=vision", "-l", "example.com/stage=dev", "-o", "name").split() == [wanted]
    assert platform.corral("ls", "-l", "team=vision", "-l", "example.com/stage=prod", "-o", "name") == ""
    assert "NAME=VALUE" in platform.refused("ls", "-l", 'te"am=x', code=2)


def test_programs_are_given_every_job(platform: Platform) -> None:
    first = platform.submit(one("many", "true", array=60))
    for index in range(60):
        platform.ended(f"many-{index}")
    assert len(platform.corral("ls", "--tag", f"array:{first['id']}", "-o", "name").split()) == 60
    assert len(json.loads(platform.corral("ls", "--tag", f"array:{first['id']}", "-n", "7", "-o", "json"))) == 7


def test_options_behind_the_command_are_the_commands(platform: Platform) -> None:
    assert platform.corral("run", "--cpu", "0.1", "echo", "--replicas", "2", "--unknown") == "--replicas 2 --unknown\n"
    half = json.loads(platform.corral("run", "-d", "0.5", "--detach", "-o", "json", "--", "true"))
    document = platform.client.document(half["id"])
    assert document["spec"]["roles"][0]["resources"]["devices"]["share"]["computePercent"] == 50


def test_an_array_is_one_line_of_a_list_that_asks_for_it(platform: Platform) -> None:
    first = platform.submit(one("grid", "exit $CORRAL_ARRAY_INDEX", array=3))
    for index in range(3):
        platform.ended(f"grid-{index}")
    alone = platform.ran(one("grid-like", "true"))
    lines = platform.client.jobs(q="grid", arrays=True)["items"]
    assert [line["id"] for line in lines] == [alone["id"], first["id"]] and lines[0]["array"] is None
    wanted = {"name": "grid", "tag": f"array:{first['id']}", "states": {"succeeded": 1, "failed": 2}}
    assert lines[1]["array"] == wanted
    (failed,) = platform.client.jobs(q="grid", state=["failed"], arrays=True)["items"]
    assert failed["name"] == "grid-1" and failed["array"] == wanted
    assert len(platform.client.jobs(q="grid")["items"]) == 4
