"""Failures before an OpenPAI task's command have OpenPAI's exit codes; a sidecar can prepare a task too."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from corral.engines.kubernetes.pods.exit_codes import PodExit, explained
from corral.engines.kubernetes.pods.manifest import secret_keys
from corral.engines.kubernetes.pods.runtime import Runtimes, needs_runtime
from corral.kernel.ids import AttemptId
from corral.model.launch import RuntimePlan, SecretDelivery, TaskLaunch
from corral.runtime.beside import ENTRY, READY, _begin
from corral.runtime.error_block import read_error
from corral.runtime.peers import Api
from corral.runtime.plan import Plan
from corral.runtime.run import Failed, _prepare_plug_in
from tests.frameworks.openpai_tasks import Tasks, plugin, protocol, tasks_of, with_plugins

TASK = "corral.compat.openpai.runtime.task"
OWNER = 54_321
TWO = {"worker": {"instances": 2}}


def test_a_gang_that_does_not_come_together_is_a_conflict(tmp_path: Path) -> None:
    with tasks_of(tmp_path, protocol(["echo ran"], roles=TWO)) as tasks:
        tasks.barrier_seconds = 0.3
        tasks.start("worker-0")
        assert tasks.wait() == {"worker-0": 251}
        assert "ran" not in tasks.output("worker-0")
        assert_fault(tasks, 251, "waited 0.3 s for the other tasks")


def test_a_server_that_does_not_answer_is_a_passing_failure_of_the_barrier(tmp_path: Path) -> None:
    with tasks_of(tmp_path, protocol(["echo ran"], roles=TWO)) as tasks:
        tasks.barrier_seconds = 0.3
        tasks.silence()
        tasks.start("worker-0")
        assert tasks.wait() == {"worker-0": 250}
        assert_fault(tasks, 250, "the server did not answer")


def test_a_port_that_is_in_use_is_told_before_the_command(tmp_path: Path) -> None:
    with tasks_of(tmp_path, protocol(["echo ran"])) as tasks, socket.socket() as other:
        other.bind(("127.0.0.1", tasks.ports["worker-0"]["http"][0]))
        other.listen()
        assert tasks.run() == {"worker-0": 253}
        assert tasks.output("worker-0") == ""
        assert_fault(tasks, 253, "(http) of this task is in use by another program")


def assert_fault(tasks: Tasks, code: int, line: str) -> None:
    fault = read_error(tasks.message("worker-0"))
    assert fault is not None and fault["exitCode"] == code
    assert line in fault["matchedPlatformLogString"] and "originUserExitCode" not in fault


@pytest.mark.parametrize("pattern", [True, False])
def test_the_end_of_a_command_is_told_in_openpais_words(tmp_path: Path, pattern: bool) -> None:
    said = "IndexError: list index out of range" if pattern else "nothing known"
    with tasks_of(tmp_path, protocol([f"echo '{said}'", "exit 4"])) as tasks:
        code = 233 if pattern else 4
        assert tasks.run() == {"worker-0": code}
        wanted = {"exitCode": code if pattern else 255, "originUserExitCode": 4, "errorLogs": {"user": said}}
        if pattern:
            wanted |= {"trigger": "ContainerIndexOutOfRange", "matchedUserLogString": said}
        assert read_error(tasks.message("worker-0")) == wanted


def test_a_success_tells_nothing(tmp_path: Path) -> None:
    with tasks_of(tmp_path, protocol(["echo 'IndexError: list index out of range'"])) as tasks:
        assert tasks.run() == {"worker-0": 0}
        assert tasks.message("worker-0") == ""


def test_a_sidecar_prepares_what_any_user_of_the_image_can_read(tmp_path: Path) -> None:
    extras = with_plugins(plugin("cmd", preCommands=["export GREETING=hello"]))
    commands = ["echo $GREETING <% $secrets.who %> $PAI_WORK_DIR", "ls $PAI_RUNTIME_DIR"]
    said = protocol(commands, secrets={"who": "you"}, extras=extras)
    with tasks_of(tmp_path / "tasks", said) as tasks:
        tasks.processes["worker-0"] = subprocess.Popen(["sleep", "60"], start_new_session=True)
        shared, task = tmp_path / "shared", tasks.rendered["worker-0"]
        shared.mkdir()
        plan = Plan(
            attempt="j.0.worker.0.0",
            command=list(task.command),
            work=str(tmp_path / "work"),
            directory=str(tmp_path / "work"),
            shared=str(shared),
            barrier=True,
            plug_in=task.plug_in,
            plug_in_steps=task.plug_in_steps,
            error_block=True,
            kept_secrets=tasks.secrets,
        )
        api = Api(f"http://127.0.0.1:{tasks.port}", "token")
        before = os.umask(0)
        try:
            _begin(plan, api, str(shared / ENTRY), str(shared / READY))
        finally:
            os.umask(before)
        folder_mode = (shared / "openpai").stat().st_mode & 0o777
        modes = {file.name: file.stat().st_mode & 0o777 for file in (shared / "openpai").iterdir()}
        done = subprocess.run(["sh", shared / ENTRY], capture_output=True, text=True, check=False)
    assert set(modes) == {"task.sh", "user.sh", "before-0-cmd.sh"} and set(modes.values()) == {0o644}
    assert folder_mode == 0o777, "the script that held a secret is removed by whoever runs it"
    assert done.stdout.split() == ["hello", "you", str(tmp_path / "work"), "before-0-cmd.sh", "task.sh"], done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root writes for other users; run as root")
@pytest.mark.parametrize("place", [".openpai", ".openpai/ssh"])
def test_what_is_written_for_a_user_goes_nowhere_that_the_user_may_not_write(place: str) -> None:
    asked = {
        "roles": [{"name": "worker", "corral": "worker", "tasks": 1, "ports": {}}],
        "role": "worker",
        "index": 0,
        "files": {"task.sh": "true\n"},
        "ssh": {"roles": ["worker"], "jobssh": True, "keys": "ssh-ed25519 AAAA"},
    }
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        mine, work = folder / "mine", folder / "work"
        mine.mkdir()
        work.mkdir()
        plan = Plan(attempt="a", command=["$(plug-in)"], work=str(work), owner=OWNER, plug_in=TASK, plug_in_steps=asked)
        (work / place).parent.mkdir(exist_ok=True)
        (work / place).symlink_to(mine)
        for each in (work, *work.rglob("*")):
            os.chown(each, OWNER, OWNER, follow_symlinks=False)
        with pytest.raises(Failed, match="scripts could not be written"):
            _prepare_plug_in(plan, plan.command, {}, "key")
        assert list(mine.iterdir()) == [] and mine.stat().st_uid == 0
        (work / place).unlink()
        _prepare_plug_in(plan, plan.command, {}, "key")
        written = [work / ".openpai", *(work / ".openpai").rglob("*")]
        assert len(written) > 5 and {each.stat().st_uid for each in written} == {OWNER}
    assert os.geteuid() == os.getegid() == 0


def launch_of(steps: dict[str, object]) -> TaskLaunch:
    return TaskLaunch(
        attempt=AttemptId("0123456789abc.0.worker.0.0"),
        user="bob",
        node="k8s/n1",
        command=("$(plug-in)",),
        env={},
        image="busybox",
        secrets=(
            SecretDelivery("kept-value", file=".openpai/secrets/deep.er%2Fx"),
            SecretDelivery("given-value", env="GIVEN"),
        ),
        runtime=RuntimePlan(plug_in=TASK, plug_in_steps=steps, error_block=True),
        api_url="http://server",
        job_token="token",
        job_secret="secret",
    )


async def test_a_pod_is_given_what_the_task_may_have_and_the_runtime_the_rest() -> None:
    launch = launch_of({"role": "worker"})
    assert needs_runtime(launch)
    assert [secret.value for secret in secret_keys(launch).values()] == ["given-value"]
    made = await Runtimes(None).secret(launch, {}, {})
    plan = json.loads(base64.b64decode(made["data"]["plan"]))
    assert (plan["plug_in"], plan["plug_in_steps"]) == (TASK, {"role": "worker"})
    assert plan["kept_secrets"] == {"deep.er/x": "kept-value"}


@pytest.mark.parametrize("block", [True, False])
def test_the_end_of_a_pod_is_told_in_openpais_words_where_its_job_is_openpais(block: bool) -> None:
    known = explained(PodExit(1, ""), b"ImportError: no module\n", block=block)
    plain = explained(PodExit(3, ""), b"", block=block)
    assert (known.code, plain.code) == (232, 3)
    assert known.reason.startswith("the command ended with 1; its log says: ImportError: no module")
    if block:
        wanted = {"exitCode": 232, "trigger": "ContainerImportError", "originUserExitCode": 1}
        assert read_error(known.reason) == wanted | {"matchedUserLogString": "ImportError: no module"}
        assert read_error(plain.reason) == {"exitCode": 255, "originUserExitCode": 3}
    else:
        assert read_error(known.reason) is None and plain.reason == ""
