"""The engine with a real kubelet: containers' output, exit codes, exec and port forwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from corral.engines.base import ExecSession
from corral.engines.local import processes
from corral.kernel.ids import AttemptId
from corral.model.launch import Exited, PortRequest, RuntimePlan, SecretDelivery
from tests.engines.kubernetes.engine_harness import Harness, launch, until
from tests.storage.moody import Machine, Moody
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet]


@pytest.fixture
def at(control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path) -> Harness:
    return Harness(control_plane, namespace, tmp_path)


async def output(session: ExecSession) -> str:
    return b"".join([data async for data in session.output()]).decode()


async def test_a_task_prints_and_ends_with_its_code(at: Harness, kubelet_node: KubeletNode) -> None:
    script = "echo one; echo $CORRAL_ROLE $CORRAL_PORT_HTTP; printf last; exit 3"
    task = launch(kubelet_node.name, "sh", "-c", script, ports=(PortRequest("http"),))
    async with at:
        exited = await at.run(task)
        assert (exited.code, exited.reason) == (3, "")
        assert at.log(task.attempt) == "one\nworker 20000\nlast"
        assert exited.log_bytes == len(at.log(task.attempt))
        await at.engine.forget([task.attempt])
        await until(lambda: _gone(at))


async def test_a_pod_goes_when_its_log_is_archived(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path
) -> None:
    remote = Moody()
    script = "echo kept; until [ -e /tmp/go ]; do sleep 0.1; done; echo and this"
    task = launch(kubelet_node.name, "sh", "-c", script)
    async with Harness(control_plane, namespace, tmp_path / "one", archive=remote.archive()) as one:
        await one.engine.start(task)
        await one.started(task.attempt)
        remote.away = True
        await until(lambda: _did(one, task.attempt, "touch", "/tmp/go"))
        assert (await one.exited(task.attempt)).code == 0, "no end waits for the archive"
        await one.engine.forget([task.attempt])
        await one.engine.forget([task.attempt])
        assert one.archiver is not None and not await one.archiver.settle(task.attempt, 2.0)
        assert await one.pods(), "its log is here alone"
    async with Harness(control_plane, namespace, tmp_path / "two", archive=remote.archive()) as two:
        assert task.attempt in two.engine.attempts(), "whoever leads next finds it again"
        remote.away = False
        assert (await two.exited(task.attempt)).code == 0
        await two.engine.forget([task.attempt])
        await until(lambda: _gone(two))
        await until(lambda: _unknown(two, task.attempt))
    assert await Machine(tmp_path / "three", remote.archive()).read(task.attempt) == b"kept\nand this\n"


async def _gone(at: Harness) -> bool:
    return await at.pods() == []


async def _unknown(at: Harness, attempt: AttemptId) -> bool:
    # The engine forgets an attempt when its watch reports the deletion, a moment after the API server lists no pod.
    return attempt not in at.engine.attempts()


async def test_words_and_values_reach_the_task_as_they_are(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "echo", "$(CORRAL_ROLE)", "$$HOME", "two  spaces", env={"A": "$(B)"})
    async with at:
        assert (await at.run(task)).code == 0
        assert at.log(task.attempt) == "$(CORRAL_ROLE) $$HOME two  spaces\n"


async def test_a_program_without_any_handler_ends_at_term(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "sleep", "600")
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await at.engine.stop(task.attempt, grace_seconds=600)  # longer than the test waits for the exit
        assert (await at.exited(task.attempt)).code == 143


async def test_a_stop_leaves_the_grace_and_keeps_the_last_words(at: Harness, kubelet_node: KubeletNode) -> None:
    script = "trap 'echo saving; sleep 1; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    task = launch(kubelet_node.name, "sh", "-c", script)
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await until(lambda: "ready" in at.log(task.attempt))
        await at.engine.stop(task.attempt, grace_seconds=60)
        assert (await at.exited(task.attempt)).code == 0
        assert at.log(task.attempt) == "ready\nsaving\nsaved\n"


async def test_a_signal_of_the_jobs_choice_comes_first_and_the_grace_outlives_the_server(
    at: Harness, control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path
) -> None:
    script = "trap 'echo saving' USR1; trap 'echo term' TERM; echo ready; while :; do sleep 0.1; done"
    task = launch(kubelet_node.name, "sh", "-c", script)
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await until(lambda: "ready" in at.log(task.attempt))
        await at.engine.stop(task.attempt, grace_seconds=20, signal="USR1")
        await until(lambda: "saving" in at.log(task.attempt))
        assert at.count(Exited, task.attempt) == 0
    async with Harness(control_plane, namespace, tmp_path) as after:
        assert (await after.exited(task.attempt)).code == 137
    assert at.log(task.attempt).count("saving") == 1


async def test_a_task_deaf_to_term_is_killed_after_its_grace(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await until(lambda: "ready" in at.log(task.attempt))
        await at.engine.stop(task.attempt, grace_seconds=2)
        exited = await at.exited(task.attempt)
        assert exited.code == 137


async def test_a_log_is_followed_and_goes_on_with_the_next_server(
    at: Harness, control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path
) -> None:
    script = (
        "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.1;"
        " while [ $i = 20 ] && [ ! -e /tmp/go ]; do sleep 0.1; done; done"
    )
    task = launch(kubelet_node.name, "sh", "-c", script)
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await until(lambda: "line 5\n" in at.log(task.attempt))
    read = at.log(task.attempt)
    assert "line 20" not in read
    async with Harness(control_plane, namespace, tmp_path) as after:
        await until(lambda: _did(after, task.attempt, "touch", "/tmp/go"))
        exited = await after.exited(task.attempt)
    assert at.log(task.attempt) == "".join(f"line {index}\n" for index in range(40))
    assert exited.log_bytes == len(at.log(task.attempt))


async def test_a_log_is_copied_at_the_end_only_or_never_where_that_is_set(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path
) -> None:
    async with Harness(control_plane, namespace, tmp_path, log_copying="end") as at:
        task = launch(kubelet_node.name, "sh", "-c", "echo one; echo two >&2; exit 3")
        exited = await at.run(task)
        assert (exited.code, exited.log_bytes) == (3, 8)
        assert sorted(at.log(task.attempt).splitlines()) == ["one", "two"], "two streams have no order between them"
    async with Harness(control_plane, namespace, tmp_path, log_copying="off") as at:
        task = launch(kubelet_node.name, "echo", "one")
        assert (await at.run(task)).code == 0
        assert f"kubectl logs -n {namespace} corral-{task.attempt} -c task" in at.log(task.attempt)


async def test_commands_run_beside_a_task(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "sleep", "600", env={"GREETING": "hello"})
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        session = await at.engine.exec(task.attempt, ["sh", "-c", "echo $GREETING; echo wrong >&2; exit 7"], tty=False)
        assert sorted((await output(session)).splitlines()) == ["hello", "wrong"]
        assert await session.exit_code() == 7
        await session.close()


async def test_input_reaches_a_command_and_ends(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "sleep", "600")
    sent = b"0123456789" * 20_000
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        session = await at.engine.exec(task.attempt, ["wc", "-c"], tty=False)
        await session.send(sent)
        await session.send(b"")
        assert (await output(session)).strip() == str(len(sent))
        assert await session.exit_code() == 0
        await session.close()


async def test_a_terminal_has_a_size(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "sleep", "600")
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        session = await at.engine.exec(task.attempt, ["sh"], tty=True)
        await session.resize(33, 77)
        said, typed = "", [b"exit 4\n", b"tty && echo it is a term''inal\n"]
        async for data in session.output():
            said += data.decode()
            if typed and said.count("/ # ") > 2 - len(typed):  # input before the shell's prompt may be lost
                await session.send(typed.pop())
        assert "it is a terminal" in said
        assert await session.exit_code() == 4
        await session.close()


async def test_a_container_that_is_killed_is_transient(at: Harness, kubelet_node: KubeletNode) -> None:
    task = launch(kubelet_node.name, "sh", "-c", "echo up; exec sleep 600")
    async with at:
        await at.engine.start(task)
        uid = (await at.started(task.attempt)).process
        await until(lambda: "up" in at.log(task.attempt))
        for pid in kubelet_node.container_pids(uid):
            if "sleep" in processes.arguments(pid):
                os.kill(pid, signal.SIGKILL)
        exited = await at.exited(task.attempt)
        assert (exited.code, exited.signal) == (137, 9)


async def test_the_kubelet_restarts_and_the_task_runs_on(at: Harness, kubelet_node: KubeletNode) -> None:
    script = "echo before; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo after; exit 9"
    task = launch(kubelet_node.name, "sh", "-c", script)
    async with at:
        await at.engine.start(task)
        await at.started(task.attempt)
        await until(lambda: "before" in at.log(task.attempt))
        kubelet_node.restart_kubelet()  # in the main thread: the daemon ends with the thread that started it
        await until(lambda: _did(at, task.attempt, "touch", "/tmp/go"))
        assert (await at.exited(task.attempt)).code == 9
        assert at.log(task.attempt) == "before\nafter\n"


async def _did(at: Harness, which: AttemptId, *words: str) -> bool:
    """A kubelet that has just started does not know its pods yet, and reports that."""
    session = await at.engine.exec(which, words, tty=False)
    said, code = await output(session), await session.exit_code()
    await session.close()
    assert code == 0 or "pod does not exist" in said, said
    return code == 0


async def test_an_image_that_cannot_be_had_ends_the_task_with_the_reason(
    at: Harness, kubelet_node: KubeletNode
) -> None:
    task = launch(kubelet_node.name, "true", image="127.0.0.1:1/none/such:1")
    async with at:
        await at.engine.start(task)
        await until(lambda: _waits_for_image(at, task.attempt))
        await at.engine.stop(task.attempt, grace_seconds=1)
        assert (await at.exited(task.attempt)).code == -210


async def _waits_for_image(at: Harness, which: str) -> bool:
    for pod in await at.pods():
        for status in pod["status"].get("containerStatuses", ()):
            if status["state"].get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff"):
                return True
    return False


async def test_secrets_come_as_variables_and_files(at: Harness, kubelet_node: KubeletNode) -> None:
    secrets = (SecretDelivery("hunter2", env="PASSWORD"), SecretDelivery("s3cret", file="/etc/token"))
    script = 'echo "$PASSWORD $(cat /etc/token)"'
    task = launch(kubelet_node.name, "sh", "-c", script, secrets=secrets, runtime=RuntimePlan())
    async with at:
        assert (await at.run(task)).code == 0
        assert at.log(task.attempt) == "hunter2 s3cret\n"


async def test_a_task_that_needs_the_runtime_says_so_in_an_image_without_python(
    at: Harness, kubelet_node: KubeletNode
) -> None:
    task = launch(kubelet_node.name, "true", runtime=RuntimePlan(barrier=True), job_token="t")
    async with at:
        assert (await at.run(task)).code == 255
        assert "needs Python 3 in its image" in at.log(task.attempt)
