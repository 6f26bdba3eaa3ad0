"""Run `corral` in forks of one process of the lane that has loaded its modules: a server starts for a quarter of the cost.

The modules that a command, front and control import take 0.5 to 3 s of processor time, and a whole run starts hundreds of
servers. `corral up` forks front and control from itself, so these have the modules too. Whoever tests how programs are
started runs `python -m corral.cli.main` itself.
"""

from __future__ import annotations

import array
import ast
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
_MOST: Final = 1024 * 1024
"""Bytes of a command's words and environment."""
_LOADED: Final = b"loaded"
"""What the process that forks says once it has the modules: no command's time begins before."""
_ASSEMBLES: Final = "corral/app.py"
"""The module that imports, in its functions, what front and control are made of."""
_COMMANDS: Final = (
    "corral.cli.command_table",
    "corral.cli.server",
    "corral.cli.jobs",
    "corral.cli.logs",
    "corral.client",
    "corral.cli.deploy_nodes",
    "corral.cli.deploy_running",
    "corral.cli.deploy_up",
    "corral.deploy.remote.work",
    "corral.deploy.steps.plan",
)
_ENGINES: Final = ("corral.engines.local.kind", "corral.engines.kubernetes.kind", "corral.engines.yarn.kind")


def corral(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    given: str | None = None,
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """Run `corral WORDS` with `given` as its standard input; raises subprocess.TimeoutExpired after `seconds`."""
    if _differs(env):
        command = [sys.executable, "-m", "corral.cli.main", *words]
        return subprocess.run(
            command, env=env, cwd=cwd, input=given, capture_output=True, text=True, timeout=seconds, check=False
        )
    command = ["corral", *map(str, words)]
    asked = {"words": command[1:], "env": dict(env), "cwd": str(cwd or Path.cwd())}
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with mine, tempfile.TemporaryFile() as read, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        read.write((given or "").encode())
        read.seek(0)
        with its:
            handles = [its.fileno(), read.fileno(), out.fileno(), err.fileno()]
            _warm().send(json.dumps(asked).encode(), handles)
        mine.settimeout(seconds)
        try:
            pid = int(mine.recv(100))
            code = mine.recv(100)
        except TimeoutError:
            with contextlib.suppress(UnboundLocalError, ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, seconds) from None
        said = [_text(file) for file in (out, err)]
    assert code, f"{' '.join(command)} was killed:\n{said[0]}\n{said[1]}"
    return subprocess.CompletedProcess(command, int(code), *said)


def _differs(env: Mapping[str, str]) -> bool:
    """Whether the command needs an interpreter of its own, because it finds other modules or libraries."""
    if env.get("PYTHONPATH") == str(ROOT):
        env = {**env, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    names = [name for name in {*env, *os.environ} if name.startswith(("PYTHON", "LD_"))]
    return any(env.get(name, "") != os.environ.get(name, "") for name in names)


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Warm:
    """The process that forks; it ends with the lane, or when this is closed."""

    def __init__(self) -> None:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(its.fileno())],
                pass_fds=[its.fileno()],
                env=kept | one_thread,
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
            )
        self._socket = mine
        assert mine.recv(100) == _LOADED, "the process that forks commands has ended; its error is above"

    def send(self, asked: bytes, handles: list[int]) -> None:
        """Give the process a command and the files for it."""
        assert len(asked) < _MOST
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MOST)
        self._socket.sendmsg([asked], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))])

    def close(self) -> None:
        """End the process; what it forked goes on."""
        self._socket.close()
        self._process.wait(60)


_LOCK: Final = threading.Lock()


def _warm() -> Warm:
    with _LOCK:
        return _started()


@functools.cache
def _started() -> Warm:
    warm = Warm()
    atexit.register(warm.close)
    return warm


# -- in the process that forks


def main() -> None:
    """Load everything, then fork for each command until the tests' process has closed its end."""
    from corral.api.tenants import GROUP as tenants_of_api
    from corral.forking import load_shared
    from corral.kernel.plug_ins import plug_ins, runtime_modules
    from corral.runtime.build import build_runtime
    from corral.service.tenant_settings import GROUP as tenants_of_settings
    from corral.service.tenants import GROUP as tenants_of_service

    for name in (*_assembled(), *_ENGINES, *_COMMANDS):
        importlib.import_module(name)
    load_shared()
    for group in (tenants_of_api, tenants_of_service, tenants_of_settings):
        for point in plug_ins(group).values():
            point.load()
    with tempfile.TemporaryDirectory() as folder:  # the servers have its byte code then: 0.2 s each
        build_runtime(Path(folder) / "runtime.pyz", runtime_modules())
    gc.collect()
    gc.freeze()
    commands = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody need wait for the children
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted run ends by itself
    commands.send(_LOADED)
    while True:
        data, handles, _, _ = socket.recv_fds(commands, _MOST, 4)
        if not data:
            return
        _begin(json.loads(data), handles)
        for handle in handles:
            os.close(handle)


def _assembled() -> list[str]:
    """The modules that `corral.app` imports from, by its text."""
    nodes = ast.walk(ast.parse((ROOT / _ASSEMBLES).read_text()))
    return sorted({node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module})


def _begin(asked: dict[str, Any], handles: list[int]) -> None:
    from corral.forking import fork

    told, read, out, err = handles
    ran = functools.partial(_run, asked, told, read)
    fork(ran, output=out, errors=err, passed=[told, read], environment=asked["env"])


def _run(asked: dict[str, Any], told: int, read: int) -> int:
    """The life of a command."""
    from corral.cli import main as program

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    line = socket.socket(fileno=told)
    line.send(str(os.getpid()).encode())  # by the command itself, so that it comes before the exit code
    os.dup2(read, 0)
    os.close(read)
    os.chdir(asked["cwd"])
    sys.argv = ["corral", *asked["words"]]
    try:
        program.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    sys.stdout.flush()
    sys.stderr.flush()
    line.send(str(code).encode())
    return code


if __name__ == "__main__":
    main()
