"""The command line on a real server: sessions in tasks, files, logs, listings, and output for scripts."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.endtoend.platform import CORRAL, Job, Platform, one
from tests.waiting import pause

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def shell(platform: Platform) -> Iterator[Job]:
    """A running job with a file in its folder."""
    command = "echo 42 > answer; echo ready; exec sleep 1000"
    job = platform.submit(one("shell", command, role={"env": {"COLOUR": "teal"}}))
    platform.printed_running(job, "main-0", "ready")
    yield job


def test_a_command_runs_inside_the_task_and_its_exit_code_is_ours(platform: Platform, shell: Job) -> None:
    assert platform.corral("exec", "shell", "main-0", "--", "sh", "-c", "cat answer; echo $COLOUR") == "42\nteal\n"
    platform.corral("exec", "shell", "main-0", "--", "sh", "-c", "exit 7", code=7)
    platform.corral("exec", "shell", "main-0", "--", "sh", "-c", "kill -9 $$", code=137)
    assert platform.corral("exec", "shell", "main-0", "--", "sort", given="b\na\n") == "a\nb\n"
    platform.refused("exec", "shell", "main-1", "--", "true", code=3)
    platform.refused("exec", "nobody", "main-0", "--", "true", code=3)


def test_a_command_that_reads_no_input_ends_with_its_caller(platform: Platform, shell: Job) -> None:
    words = ("exec", "shell", "main-0", "--", "sh", "-c", "echo $$; exec sleep 777")
    with subprocess.Popen(
        [CORRAL, *words], env=platform.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as caller:
        assert caller.stdin is not None and caller.stdout is not None
        command = Path("/proc", caller.stdout.readline().decode().strip())
        _fill(caller.stdin.fileno())
        assert command.exists()
        caller.send_signal(signal.SIGINT)
        caller.wait(60)
    begun = time.monotonic()
    while command.exists():
        assert time.monotonic() - begun < 120, "the command runs without its caller"
        time.sleep(pause(begun))


def test_a_terminal_is_passed_on(platform: Platform, shell: Job) -> None:
    session = platform.terminal("exec", "shell", "main-0")
    session.expect(r"[#$] ")
    session.sendline("tty; stty size; echo sum $((40 + 2))")
    session.expect("/dev/pts/")
    session.expect("40 160")
    session.expect("sum 42")
    # The command itself prints: a shell that has only read its line has no foreground process to interrupt yet.
    waiting = "echo began $((40 + 3)); while :; do sleep 0.1; done"
    session.sendline(f"sh -c 'trap \"echo caught $((40 + 4)); exit 0\" INT; {waiting}'")
    session.expect("began 43")
    session.interrupt()
    session.expect("caught 44")
    session.sendline("exit 5")
    assert session.ended() == 5


def test_files_are_copied_out_of_a_task_and_into_it(platform: Platform, shell: Job, tmp_path: Path) -> None:
    platform.corral("cp", "shell/main-0:answer", str(tmp_path))
    assert (tmp_path / "answer").read_text() == "42\n"
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "x").write_bytes(bytes(range(256)) * 1000)
    platform.corral("cp", str(tmp_path / "tree"), "shell/main-0:")
    platform.corral("cp", "shell/main-0:tree", str(tmp_path / "back"))
    assert (tmp_path / "back" / "deep" / "x").read_bytes() == bytes(range(256)) * 1000
    platform.refused("cp", "shell/main-0:nothing", str(tmp_path), code=2)


def test_of_a_job_of_one_task_files_are_copied_without_naming_it(
    platform: Platform, shell: Job, tmp_path: Path
) -> None:
    platform.corral("cp", "shell:answer", str(tmp_path))
    assert (tmp_path / "answer").read_text() == "42\n"
    (tmp_path / "fix").write_text("fixed")
    platform.corral("cp", str(tmp_path / "fix"), "shell:")
    platform.corral("cp", "shell:fix", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "fixed"


def test_of_a_job_of_several_tasks_the_task_is_asked_for(platform: Platform, tmp_path: Path) -> None:
    job = platform.submit(one("pair", "sleep 600", role={"replicas": 2}))
    platform.until(job, lambda now: now["tasks"]["running"] == 2)
    said = platform.refused("cp", "pair:answer", str(tmp_path), code=2)
    assert "Name a task of pair: main-0, main-1." in said


def test_the_attempts_of_as_many_tasks_as_asked_for_are_listed_and_more_are_mentioned(platform: Platform) -> None:
    job = platform.submit(one("trio", "echo ready; exec sleep 600", role={"replicas": 3}))
    for index in range(3):
        platform.printed(job, f"main-{index}", "ready")
    some = platform.run("attempts", "trio", "--limit", "2")
    assert some.stderr == "These are the first 2 tasks; name a TASK, or more with --limit.\n"
    assert [line.split()[0] for line in some.stdout.splitlines()[1:]] == ["main-0", "main-1"]
    every = platform.run("attempts", "trio")
    assert (every.stderr, len(every.stdout.splitlines())) == ("", 4)


def test_the_logs_of_two_tasks_are_followed_to_the_end(platform: Platform) -> None:
    gate = platform.folder / "last-line"
    command = f"echo begun; until [ -e {gate} ]; do sleep 0.02; done; echo ended"
    job = platform.submit(one("two", command, role={"replicas": 2}))
    process = subprocess.Popen(
        [CORRAL, "logs", "-f", "two"], env=platform.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = {process.stdout.readline(), process.stdout.readline()}
    assert lines == {"main-0 | begun\n", "main-1 | begun\n"}
    gate.touch()
    rest, _ = process.communicate(timeout=240)
    assert sorted(rest.splitlines()) == ["main-0 | ended", "main-1 | ended"]
    assert process.returncode == 0
    assert platform.ended(job)["state"] == "succeeded"
    assert platform.corral("logs", "two", "main-1", "--tail", "1") == "ended\n"


def test_a_followed_job_gives_its_result(platform: Platform) -> None:
    assert platform.corral("run", "--", "echo", "hello") == "hello\n"
    failed = platform.run("run", "--", "sh", "-c", "echo oops; exit 9")
    assert failed.returncode == 1 and failed.stdout == "oops\n" and "exit code 9" in failed.stderr
    file = platform.folder / "job.yaml"
    file.write_text("name: follows\nframework: shell\nroles: {main: {command: echo from a file}}\n")
    assert platform.corral("submit", "-f", str(file)) == "from a file\n"


def test_events_tell_a_jobs_life_in_order(platform: Platform) -> None:
    job = platform.ran(one("life", "true"))
    kinds = [event["kind"] for event in json.loads(platform.corral("events", "life", "-o", "json"))]
    wanted = ["job.submitted", "job.placed", "task.started", "job.started", "job.completed"]
    assert [kind for kind in kinds if kind in wanted] == wanted
    table = platform.corral("events", "life")
    assert "main-0" in table and "job.completed" in table
    assert job["id"] in platform.corral("ls", "-q", "life", "-o", "name")


def test_events_are_followed_as_they_happen(platform: Platform) -> None:
    process = subprocess.Popen(
        [CORRAL, "events", "-f", "-o", "json", platform.ran(one("watched", "true"))["id"]],
        env=platform.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        process.stdout.readline()
        platform.corral("restart", "watched")
        kinds: list[str] = []
        while "job.completed" not in kinds[1:]:
            line = process.stdout.readline()
            if line.startswith("{"):
                kinds.append(json.loads(line)["kind"])
        assert "job.restarting" in kinds and "task.started" in kinds
    finally:
        process.kill()
        process.communicate()


def test_top_shows_what_runs_and_what_is_free(platform: Platform, shell: Job) -> None:
    shown = platform.corral("top", "--once")
    assert "1 running, 0 waiting" in shown and shell["id"] in shown and "devices [" in shown
    screen = platform.terminal("top", "--interval", "0.2")
    screen.expect("1 running, 0 waiting")
    screen.expect("shell")
    screen.interrupt()
    assert screen.ended() in (0, 130)


@pytest.mark.parametrize(
    "words",
    [["ls"], ["nodes"], ["users"], ["token"], ["secret"], ["get", "shell"], ["nodes", "local/node1"],
     ["events", "shell"], ["explain", "shell"], ["users", "use"]],
    ids=" ".join,
)  # fmt: skip
def test_every_listing_has_four_forms(platform: Platform, shell: Job, words: list[str]) -> None:
    platform.client.put_secret("listed", "x")
    data = json.loads(platform.corral(*words, "-o", "json"))
    same = yaml.safe_load(platform.corral(*words, "-o", "yaml"))
    assert data and type(same) is type(data) and len(same) == len(data)
    names = platform.corral(*words, "-o", "name").split()
    assert len(names) == (len(data) if isinstance(data, list) else 1)
    table = platform.corral(*words)
    assert table and "\x1b" not in table


def test_the_same_key_makes_one_job(platform: Platform) -> None:
    text = json.dumps(one("once", "true"))
    words = ["submit", "-", "--idempotency-key", "k-1", "-o", "name"]
    first = platform.corral(*words, given=text)
    assert platform.corral(*words, given=text) == first
    other = platform.refused(*words, given=json.dumps(one("other", "true")))
    assert "key" in other


def test_a_live_job_keeps_its_name_to_itself(platform: Platform, shell: Job) -> None:
    assert "shell" in platform.refused("submit", "-", given=json.dumps(one("shell", "true")))


def test_removed_jobs_are_gone_and_live_ones_are_not_removed(platform: Platform, shell: Job) -> None:
    platform.refused("rm", "shell")
    platform.corral("rm", "--stop", "shell")
    platform.refused("get", shell["id"], code=3)
    assert shell["id"] in platform.corral("ls", "--removed")
    platform.refused("ls", "--removed", "--live", code=2)


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_shell_is_taught_to_complete(platform: Platform, kind: str) -> None:
    script = platform.corral("completion", kind)
    assert "_CORRAL_COMPLETE" in script and "corral" in script


def test_the_shell_completes_commands(platform: Platform) -> None:
    env = {**platform.env, "_CORRAL_COMPLETE": "bash_complete", "COMP_WORDS": "corral re", "COMP_CWORD": "1"}
    done = subprocess.run([CORRAL], env=env, capture_output=True, text=True, check=False)
    assert {"restart", "restore"} <= set(re.findall(r"plain,(\S+)", done.stdout))


def test_a_stranger_is_refused(platform: Platform) -> None:
    env = {**platform.env, "CORRAL_URL": platform.url, "CORRAL_TOKEN": "crl_wrong"}
    done = subprocess.run([CORRAL, "ls"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 4 and "Traceback" not in done.stderr


def test_a_sign_in_link_leads_to_where_the_server_listens(platform: Platform) -> None:
    link = platform.corral("sign-in-link", "--data", str(platform.data)).strip()
    assert link.startswith(f"{platform.url}/sign-in#link=")


def _fill(pipe: int) -> int:
    """Write to a pipe whose other side does not block until it takes no more for a second; the bytes that it took."""
    taken = 0
    while select.select([], [pipe], [], 1)[1]:
        taken += os.write(pipe, bytes(4096))
    return taken
