"""Measure Slurm's task rate in the same run on the same machine, so that noise hits both.

Debian's slurm-wlm, one node on loopback, everything in a temporary folder; accounting off, no cgroups.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

APT = Path(__file__).resolve().parents[1] / "tests" / "testbeds" / "apt.sh"
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PATIENCE_SECONDS = 300.0
CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,default_queue_depth=5000,defer
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MessageTimeout=60
MaxArraySize=10001
MaxJobCount=20000
MinJobAge=2
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:64
"""


def rate(tasks: int) -> float:
    """Tasks a second of an array job of `tasks` that run `true`, from sbatch to an empty queue.

    Raises RuntimeError when Slurm is missing and cannot be installed, or does not become ready.
    """
    subprocess.run([str(APT), *PACKAGES], check=True)
    if shutil.which("slurmctld") is None:
        raise RuntimeError("Slurm is not installed: apt-get install " + " ".join(PACKAGES))
    with _cluster() as environment:
        command = ["sbatch", f"--array=1-{tasks}", "--output=/dev/null", "--error=/dev/null", "--wrap", "true"]
        begun = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        while subprocess.run(["squeue", "-h"], env=environment, check=True, capture_output=True).stdout.strip():
            if time.perf_counter() - begun > PATIENCE_SECONDS:
                raise RuntimeError(f"Slurm's queue was not empty after {PATIENCE_SECONDS:.0f} s")
            time.sleep(0.1)
        return tasks / (time.perf_counter() - begun)


@contextlib.contextmanager
def _cluster() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="corral-slurm-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        for sub in ("state", "spool", "log"):
            (folder / sub).mkdir()
        host = socket.gethostname().split(".")[0]
        settings = CONFIGURATION.format(
            host=host, folder=folder, controller_port=_port(), node_port=_port(), cpus=os.cpu_count()
        )
        (folder / "slurm.conf").write_text(settings)
        environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        munge = [
            *("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"),
            *(f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/log/munge"),
        ]
        _start(stack, munge, environment, folder)
        _wait(lambda: (folder / "munge.socket").exists(), "munged")
        _start(stack, ["slurmctld", "-D"], environment, folder)
        _start(stack, ["slurmd", "-D", "-N", host], environment, folder)
        _wait(lambda: b"idle" in _output(["sinfo", "-h", "-o", "%t"], environment), "slurmd")
        yield environment


def _start(stack: contextlib.ExitStack, command: list[str], environment: dict[str, str], folder: Path) -> None:
    log = stack.enter_context((folder / "log" / f"{command[0]}.out").open("wb"))
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def end() -> None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)


def _wait(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not ready():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} was not ready within 30 s")
        time.sleep(0.1)


def _output(command: list[str], environment: dict[str, str]) -> bytes:
    return subprocess.run(command, env=environment, check=False, capture_output=True).stdout


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
