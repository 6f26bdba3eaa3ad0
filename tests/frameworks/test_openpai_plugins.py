"""OpenPAI's runtime plugins, each with its real program: sshd, git and TensorBoard."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.compat.openpai.language.names import VERSION
from corral.frameworks import framework
from tests.frameworks.environments import environment
from tests.frameworks.openpai_tasks import gang_of, plugin, protocol, tasks_of, with_plugins
from tests.reserved import free_port

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
needs_ssh = pytest.mark.skipif(SSHD is None or not shutil.which("ssh"), reason="apt-get install openssh-server")
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="apt-get install git")
SSH_AND_BARRIER = plugin("ssh", jobssh=True, sshbarrier=True)
pytestmark = [pytest.mark.timeout(180), pytest.mark.processes]


# ---- ssh


@needs_ssh
def test_tasks_reach_each_other_by_role_and_index_once_all_can_be_reached(tmp_path: Path) -> None:
    ssh = plugin("ssh", jobssh=True, sshbarrier=True)
    other = "if [ $PAI_CURRENT_TASK_ROLE_NAME = ps ]; then o=worker-1; else o=ps-0; fi"
    commands = [other, 'ssh $o "cat /proc/self/environ" | tr "\\0" "\\n" | grep ^PAI_SSH_SEEN']
    roles = {"worker": {"instances": 2}, "ps": {}}
    with tasks_of(tmp_path, protocol(commands, roles=roles, extras=with_plugins(ssh))) as tasks:
        codes = tasks.run()
        assert set(codes.values()) == {0}, "\n".join(map(tasks.told, codes))
        assert str(tasks.work("worker-1")) in tasks.output("ps-0")
        assert str(tasks.work("ps-0")) in tasks.output("worker-0")


@needs_ssh
def test_what_comes_by_ssh_has_the_marker_of_the_attempt_that_it_came_to(tmp_path: Path) -> None:
    ssh = plugin("ssh", jobssh=True, sshbarrier=True)
    commands = ["ssh worker-$((1 - PAI_TASK_INDEX)) 'echo it is $CORRAL_ATTEMPT'"]
    roles = {"worker": {"instances": 2}}
    with tasks_of(tmp_path, protocol(commands, roles=roles, extras=with_plugins(ssh))) as tasks:
        assert set(tasks.run().values()) == {0}, tasks.told("worker-0")
        assert "it is attempt-of-worker-1" in tasks.output("worker-0")
        assert "it is attempt-of-worker-0" in tasks.output("worker-1")


@needs_ssh
def test_files_are_copied_between_tasks_and_the_users_own_settings_are_left_alone(tmp_path: Path) -> None:
    ssh = plugin("ssh", jobssh=True, sshbarrier=True)
    commands = [
        "[ $PAI_TASK_INDEX = 1 ] && exit 0",
        "echo carried >it && scp -q it worker-1:$(dirname $PAI_WORK_DIR)/../copied",
    ]
    with tasks_of(tmp_path, protocol(commands, roles={"worker": {"instances": 2}}, extras=with_plugins(ssh))) as tasks:
        tasks.env["HOME"] = str(tmp_path / "home")
        assert set(tasks.run().values()) == {0}, tasks.told("worker-0")
    assert (tmp_path / "copied").read_text() == "carried\n"
    assert not (tmp_path / "home" / ".ssh" / "config").exists()


@needs_ssh
def test_tasks_of_protocol_1_are_entered_without_asking_for_it(tmp_path: Path) -> None:
    commands = ["[ $PAI_TASK_INDEX = 1 ] && sleep 200", "until ssh worker-1 echo entered; do sleep 0.2; done"]
    said = protocol(commands, roles={"worker": {"instances": 2}})
    with tasks_of(tmp_path, said, {VERSION: "1"}) as tasks:
        tasks.start()
        tasks.wait_until("worker-0", "entered")


def test_an_image_without_sshd_is_no_matter_to_a_job_of_protocol_1(tmp_path: Path) -> None:
    bare = folder_with(tmp_path / "bin", "sh", "env", "id", "sed", "mv", "mkdir", "chmod", "rm", "cat")
    with tasks_of(tmp_path / "tasks", protocol(["echo ran"]), {VERSION: "1"}) as tasks:
        tasks.env["PATH"] = str(bare)
        files = tasks.rendered["worker-0"].plug_in_steps["files"]
        files["before-0-ssh.sh"] = files["before-0-ssh.sh"].replace(":/usr/sbin:/sbin", "")
        assert tasks.run() == {"worker-0": 0}, tasks.told("worker-0")
        assert (tasks.output("worker-0"), tasks.errors("worker-0")) == ("ran\n", "")


@needs_ssh
def test_a_host_that_is_not_of_the_job_is_not_let_in(tmp_path: Path) -> None:
    with tasks_of(tmp_path, protocol(["sleep 200"], extras=with_plugins(plugin("ssh", jobssh=True)))) as tasks:
        tasks.start()
        port = tasks.ports["worker-0"]["ssh"][0]
        key = tmp_path / "strange"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        refused = reached(port, key, seconds=120, expected=255)
        assert "Permission denied" in refused.stderr


@needs_ssh
@pytest.mark.parametrize("kind", ["custom", "system"])
def test_the_user_reaches_the_task_with_a_key_of_their_own(tmp_path: Path, kind: str) -> None:
    key = tmp_path / "own"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_suffix(".pub").read_text().strip()
    user = {"type": "custom", "value": public} if kind == "custom" else {"type": "system"}
    said = protocol(["sleep 200"], extras=with_plugins(plugin("ssh", jobssh=False, userssh=user)))
    with tasks_of(tmp_path, said) as tasks:
        if kind == "system":
            tasks.rendered["worker-0"].plug_in_steps["ssh"]["keys"] = public  # as submission writes into the job
        tasks.start()
        entered = reached(tasks.ports["worker-0"]["ssh"][0], key, seconds=120, expected=0)
        assert entered.stdout == "in\n"


@needs_ssh
def test_the_barrier_gives_up_after_its_time_with_a_code_of_its_own(tmp_path: Path) -> None:
    # The task's own server is asked first; a busy machine takes seconds for that.
    ssh = plugin("ssh", jobssh=True, sshbarrier=True, sshbarrierTimeout=0.2)
    extras = with_plugins(ssh)
    with tasks_of(tmp_path, protocol(["true"], roles={"worker": {"instances": 2}}, extras=extras)) as tasks:
        tasks.processes["worker-1"] = subprocess.Popen(["sleep", "200"], start_new_session=True)  # it has no sshd
        tasks.start("worker-0")
        assert tasks.processes["worker-0"].wait(150) == 249, tasks.told("worker-0")
        assert "worker-1 could not be reached by ssh" in tasks.errors("worker-0")


@needs_ssh
def test_a_barrier_whose_own_server_has_ended_says_so_at_once(tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "sshd").write_text("#!/bin/sh\nexit 1\n")
    (broken / "sshd").chmod(0o700)
    with tasks_of(tmp_path / "tasks", protocol(["true"], extras=with_plugins(SSH_AND_BARRIER))) as tasks:
        tasks.env["PATH"] = f"{broken}:{os.environ['PATH']}"
        assert tasks.run() == {"worker-0": 249}
        assert "sshd of this task has ended" in tasks.errors("worker-0")


def test_without_sshd_a_task_runs_on_unless_its_plugin_says_otherwise(tmp_path: Path) -> None:
    bare = folder_with(tmp_path / "bin", "sh", "bash", "env", "id", "sed", "mv", "mkdir", "chmod", "rm", "cat", "date")
    strict = plugin("ssh", jobssh=True) | {"failurePolicy": "fail"}
    for each, code in ((plugin("ssh", jobssh=True), 0), (strict, 1)):
        said = protocol(["echo ran"], extras=with_plugins(each))
        folder = tmp_path / str(code)
        with tasks_of(folder, said) as tasks:
            tasks.env["PATH"] = str(bare)
            for text in tasks.rendered["worker-0"].plug_in_steps["files"]:
                script = tasks.rendered["worker-0"].plug_in_steps["files"]
                script[text] = script[text].replace(":/usr/sbin:/sbin", "")
            assert tasks.run() == {"worker-0": code}, tasks.told("worker-0")
            assert "needs the program sshd" in tasks.errors("worker-0")


def test_a_job_without_ssh_has_no_key_and_no_server(tmp_path: Path) -> None:
    nothing = plugin("ssh", jobssh=False, userssh={})
    with tasks_of(tmp_path, protocol(["ls -A .openpai"], extras=with_plugins(nothing))) as tasks:
        assert tasks.run() == {"worker-0": 0}
        assert tasks.output("worker-0").split() == ["task.sh", "user.sh"]


def test_only_the_roles_that_a_plugin_names_have_it() -> None:
    extras = with_plugins(plugin("ssh", ["ps"], jobssh=True))
    members, _ = gang_of(protocol(["true"], roles={"worker": {}, "ps": {}}, extras=extras))
    asked = {task.role: framework("openpai").render(members, task).plug_in_steps for task in members.tasks}
    assert asked["worker"]["ssh"] == {} and set(asked["worker"]["files"]) == {"task.sh", "user.sh"}
    assert asked["ps"]["ssh"] == {"roles": ["ps"], "jobssh": True, "keys": ""}


# ---- git


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "repository"
    own = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    env = {**os.environ, **own, "HOME": str(tmp_path)}

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", folder, *words], env=env, check=True, capture_output=True)

    folder.mkdir()
    git("init", "-q", "-b", "main")
    for number in ("one", "two"):
        (folder / "train.py").write_text(f"print('{number}')\n")
        git("add", ".")
        git("commit", "-q", "-m", number)
    git("tag", "v2")
    yield folder


@needs_git
@pytest.mark.parametrize("where", ["", "there/code"])
def test_a_repository_is_there_before_the_command(tmp_path: Path, repository: Path, where: str) -> None:
    uri = f"file://{repository}"
    clone = plugin(
        "git", repo_uri=uri, options=["--depth 1", "-b", "v2"], clone_dir=str(tmp_path / where) if where else ""
    )
    commands = ["cd $PAI_CODE_FOLDER", "python3 train.py", "git rev-list --count HEAD", "pwd"]
    with tasks_of(tmp_path, protocol(commands, extras=with_plugins(clone))) as tasks:
        assert tasks.run() == {"worker-0": 0}, tasks.told("worker-0")
        folder = tmp_path / where if where else tasks.work("worker-0") / "code"
        assert tasks.output("worker-0").split() == ["two", "1", str(folder)]


@needs_git
def test_a_repository_that_is_not_there_ends_the_task_before_its_command(tmp_path: Path) -> None:
    clone = plugin("git", repo_uri=f"file://{tmp_path}/nowhere")
    with tasks_of(tmp_path, protocol(["echo ran"], extras=with_plugins(clone))) as tasks:
        assert tasks.run() == {"worker-0": 128}
        assert "ran" not in tasks.output("worker-0")
        assert "before-0-git.sh failed (exit code 128)" in tasks.errors("worker-0")


@needs_git
def test_a_repositorys_secret_is_filled_in_inside_the_task_alone(tmp_path: Path, repository: Path) -> None:
    name = repository.name
    clone = plugin("git", repo_uri=f"file://{tmp_path}/<% $secrets.where %>")
    said = protocol(["ls $PAI_CODE_FOLDER"], secrets={"where": name}, extras=with_plugins(clone))
    with tasks_of(tmp_path, said) as tasks:
        (step,) = (text for file, text in tasks.rendered["worker-0"].plug_in_steps["files"].items() if "git" in file)
        assert f"file://{tmp_path}/<% $secrets.where %>" in step
        assert tasks.run() == {"worker-0": 0}, tasks.told("worker-0")
        assert "train.py" in tasks.output("worker-0")


# ---- tensorboard


@pytest.mark.frameworks
@pytest.mark.parametrize("port", ["chosen", "given"])
def test_tensorboard_answers_in_the_first_task_of_the_first_role(tmp_path: Path, port: str) -> None:
    folders = {"one": str(tmp_path / "one"), "two": str(tmp_path / "two")}
    board = plugin("tensorboard", logdir=folders)
    said = protocol(["sleep 200"], roles={"worker": {"instances": 2}, "ps": {}}, extras=with_plugins(board))
    if port == "given":
        board["parameters"]["port"] = free_port()
    with tasks_of(tmp_path, said) as tasks:
        tasks.env["PATH"] = f"{environment('tensorboard')}:{os.environ['PATH']}"
        tasks.start()
        told = tasks.ports["worker-0"].get("tensorboard", [board["parameters"].get("port")])[0]
        page = answer(f"http://127.0.0.1:{told}/data/environment", 150)
        assert folders["one"] in page and folders["two"] in page
        assert all("tensorboard" not in tasks.errors(name).lower() for name in ("worker-1", "ps-0"))
        assert f"TensorBoard is at http://127.0.0.1:{told}" in tasks.errors("worker-0")


def test_without_tensorboard_a_task_runs_on_and_says_so(tmp_path: Path) -> None:
    board = plugin("tensorboard", port=1234, logdir={"a": "/a"})
    with tasks_of(tmp_path, protocol(["echo ran"], extras=with_plugins(board))) as tasks:
        tasks.env["PATH"] = "/usr/bin:/bin"
        assert tasks.run() == {"worker-0": 0}
        assert tasks.output("worker-0") == "ran\n"
        assert "needs the program tensorboard" in tasks.errors("worker-0")


# ---- cmd


def test_commands_run_before_and_on_success_after_in_one_shell(tmp_path: Path) -> None:
    before = plugin("cmd", preCommands=["export KEPT=yes", "echo before"], postCommands=["echo after $KEPT"])
    events = plugin(
        "cmd",
        callbacks=[
            {"event": "taskStarts", "commands": ["echo starts"]},
            {"event": "taskSucceeds", "commands": ["echo succeeds"]},
        ],
    )
    with tasks_of(tmp_path, protocol(["echo command $KEPT"], extras=with_plugins(before, events))) as tasks:
        assert tasks.run() == {"worker-0": 0}, tasks.told("worker-0")
        assert tasks.output("worker-0").splitlines() == ["before", "starts", "command yes", "after yes", "succeeds"]


def test_a_command_that_fails_has_nothing_after_it(tmp_path: Path) -> None:
    after = plugin("cmd", callbacks=[{"event": "taskSucceeds", "commands": ["echo after"]}])
    with tasks_of(tmp_path, protocol(["exit 7"], extras=with_plugins(after))) as tasks:
        assert tasks.run() == {"worker-0": 7}
        assert tasks.output("worker-0") == ""


@pytest.mark.parametrize(("policy", "code", "output"), [("fail", 5, ""), ("ignore", 0, "command\n")])
def test_a_plugin_that_fails_ends_the_task_unless_told_to_be_ignored(
    tmp_path: Path, policy: str, code: int, output: str
) -> None:
    broken = plugin("cmd", preCommands=["(exit 5)"]) | {"failurePolicy": policy}
    with tasks_of(tmp_path, protocol(["echo command"], extras=with_plugins(broken))) as tasks:
        assert tasks.run() == {"worker-0": code}
        assert tasks.output("worker-0") == output


def test_what_follows_a_success_may_fail_the_task(tmp_path: Path) -> None:
    after = plugin("cmd", postCommands=["(exit 9)"])
    with tasks_of(tmp_path, protocol(["true"], extras=with_plugins(after))) as tasks:
        assert tasks.run() == {"worker-0": 9}


def test_prerequisites_bring_commands_and_what_they_require_comes_first(tmp_path: Path) -> None:
    def brings(name: str, *require: str) -> dict[str, object]:
        callbacks = [
            {"event": "taskStarts", "commands": [f"echo {name} starts"]},
            {"event": "taskSucceeds", "commands": [f"echo {name} succeeded"]},
        ]
        kind = {"name": name, "type": "script", "plugin": "com.microsoft.pai.runtimeplugin.cmd"}
        return {**kind, "require": list(require), "callbacks": callbacks}

    given = [brings("second", "first"), brings("first"), brings("unused")]
    said = protocol(["echo command"], roles={"worker": {"prerequisites": ["second"]}}, prerequisites=given)
    with tasks_of(tmp_path, said) as tasks:
        assert tasks.run() == {"worker-0": 0}, tasks.told("worker-0")
        told = ["first starts", "second starts", "command", "first succeeded", "second succeeded"]
        assert tasks.output("worker-0").splitlines() == told


# ---- all plugins together


def test_secrets_are_filled_in_inside_the_task_and_are_in_no_argument(tmp_path: Path) -> None:
    secrets = {"token": "it's $HOME `x`", "deep": {"er": "d33p"}, "many": ["m0", "m1"]}
    commands = [
        "cat <<'END'",
        "<% $secrets.token %> <%$secrets.deep.er%> <% $secrets.many[1] %> <% $secrets.none %>",
        "END",
    ]
    look = "tr '\\0' ' ' </proc/$$/cmdline; tr '\\0' ' ' </proc/$PPID/cmdline; env; ls .openpai"
    with tasks_of(tmp_path, protocol([*commands, look], secrets=secrets)) as tasks:
        assert tasks.run() == {"worker-0": 0}, tasks.told("worker-0")
        first, rest = tasks.output("worker-0").split("\n", 1)
    assert first == "it's $HOME `x` d33p m1 <% $secrets.none %>"
    assert "d33p" not in rest and rest.split()[-1] == "task.sh", "the script that held them is gone"


def test_a_secret_that_the_command_prints_is_masked_in_what_is_stored(tmp_path: Path) -> None:
    with tasks_of(tmp_path, protocol(["echo <% $secrets.a %>; exit 1"], secrets={"a": "hidden"})) as tasks:
        assert tasks.run() == {"worker-0": 1}
        assert "hidden" in tasks.output("worker-0")
        assert "hidden" not in tasks.message("worker-0") and "******" in tasks.message("worker-0")


def test_deployment_commands_are_part_of_the_command(tmp_path: Path) -> None:
    role = {"worker": {"preCommands": ["echo before"], "postCommands": ["echo after"]}}
    said = protocol(["echo command"], deployments=[{"name": "d", "taskRoles": role}], defaults={"deployment": "d"})
    with tasks_of(tmp_path, said) as tasks:
        assert tasks.run() == {"worker-0": 0}
        assert tasks.output("worker-0").split() == ["before", "command", "after"]


def test_plugins_run_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    each = [plugin("cmd", preCommands=[f"echo {number}"]) for number in (3, 1, 2)]
    with tasks_of(tmp_path, protocol(["true"], extras=with_plugins(*each))) as tasks:
        assert tasks.run() == {"worker-0": 0}
        assert tasks.output("worker-0").split() == ["3", "1", "2"]


def folder_with(folder: Path, *programs: str) -> Path:
    """A folder that contains only these programs."""
    folder.mkdir()
    for name in programs:
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return folder


def reached(port: int, key: Path, *, seconds: float, expected: int) -> subprocess.CompletedProcess[str]:
    """The result of ssh once the server listens."""
    quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    deadline = time.monotonic() + seconds
    while True:
        words: list[str | Path] = [
            "ssh",
            "-F",
            "/dev/null",
            *quiet,
            "-i",
            key,
            "-o",
            "IdentitiesOnly=yes",
            "-p",
            str(port),
        ]
        done = subprocess.run([*words, "127.0.0.1", "echo in"], capture_output=True, text=True)
        if not re.search("refused|closed by|reset", done.stderr):
            assert done.returncode == expected, done.stderr
            return done
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.1)


def answer(url: str, seconds: float) -> str:
    """The page at an address, once there is one."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as page:
                return str(page.read().decode())
        except OSError:
            assert time.monotonic() < deadline, f"nothing answers at {url}"
            time.sleep(0.2)
