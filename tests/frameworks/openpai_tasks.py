"""Run the tasks of an OpenPAI job as the local engine does: under the real runtime, with a server that lists peers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import yaml

from corral.compat.openpai.language.protocol import read_protocol
from corral.compat.openpai.language.translation import to_job
from corral.frameworks import Gang, framework
from corral.spec.job import UnifiedJob
from tests.frameworks.gangs import gang
from tests.reserved import free_port

Protocol = dict[str, Any]
USER = "bob"


def protocol(commands: list[str], *, roles: dict[str, dict[str, Any]] | None = None, **more: Any) -> Protocol:
    """A protocol of one role `worker` with `commands`, or of `roles`, each with its changes to the default."""
    usual = {"dockerImage": "image", "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0}, "commands": commands}
    image = {"type": "dockerimage", "name": "image", "uri": "ubuntu:22.04"}
    return {
        "protocolVersion": 2,
        "name": "a_job",
        "type": "job",
        "prerequisites": [image, *more.pop("prerequisites", [])],
        "taskRoles": {name: usual | said for name, said in (roles or {"worker": {}}).items()},
        **more,
    }


def plugin(name: str, roles: list[str] | None = None, **parameters: Any) -> dict[str, Any]:
    """One entry of the runtime plugins."""
    return {"plugin": name, "parameters": parameters} | ({"taskRoles": roles} if roles else {})


def with_plugins(*plugins: dict[str, Any], **extras: Any) -> dict[str, Any]:
    """The `extras` that request these plugins."""
    return {"com.microsoft.pai.runtimeplugin": list(plugins), **extras}


def gang_of(said: Protocol, *, image: bool = False) -> tuple[Gang, dict[str, str]]:
    """The protocol's gang and the job's own secrets; without its image unless asked for."""
    job = to_job(read_protocol(yaml.safe_dump(said, sort_keys=False)), user=USER)
    for role in job.document["spec"]["roles"]:
        role["image"] = role["image"] if image else ""
    document = UnifiedJob.from_document(job.document)
    names = [f"{role.name}-{index}" for role in document.spec.roles for index in range(document.replicas_of(role.name))]
    return gang(document, *names), job.secrets


class Tasks:
    """The tasks of one job, each a process in a folder of its own."""

    def __init__(self, folder: Path, said: Protocol, notes: dict[str, str] | None = None) -> None:
        """`notes` are additional annotations of the job."""
        self.folder = folder
        self.gang, self.secrets = gang_of(said)
        if notes:
            document = self.gang.job.to_document()
            document["metadata"]["annotations"] |= notes
            self.gang = msgspec.structs.replace(self.gang, job=UnifiedJob.from_document(document))
        self.barrier_seconds = 120.0
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        kind = framework("openpai")
        self.rendered = {str(task.key): kind.render(self.gang, task) for task in self.gang.tasks}
        self.ports = {name: self._draw(name) for name in self.rendered}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _peers(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def start(self, *names: str) -> None:
        """Start the named tasks, or all."""
        for name in names or self.rendered:
            self._start(name)

    def run(self, seconds: float = 150) -> dict[str, int]:
        """Start all and wait for their ends; returns exit codes by name."""
        self.start()
        return self.wait(seconds)

    def wait(self, seconds: float = 150) -> dict[str, int]:
        """Wait for each started task; returns their exit codes. The limit only guards against a hang."""
        deadline = time.monotonic() + seconds
        return {name: each.wait(max(0.1, deadline - time.monotonic())) for name, each in self.processes.items()}

    def wait_until(self, name: str, text: str, seconds: float = 150) -> None:
        """Wait until a task has printed `text`."""
        deadline = time.monotonic() + seconds
        while text not in self.output(name):
            assert time.monotonic() < deadline, self.told(name)
            assert self.processes[name].poll() is None, self.told(name)
            time.sleep(0.05)

    def work(self, name: str) -> Path:
        """The folder of a task."""
        return self.folder / name / "work"

    def output(self, name: str) -> str:
        """Its standard output."""
        return (self.folder / name / "log.stdout").read_text(errors="replace")

    def errors(self, name: str) -> str:
        """Its standard error."""
        return (self.folder / name / "log.stderr").read_text(errors="replace")

    def told(self, name: str) -> str:
        """All output of a task, for a failure's message."""
        return f"--- {name}\n{self.output(name)}\n---\n{self.errors(name)}"

    def message(self, name: str) -> str:
        """The runtime's message about the task's end."""
        text = (self.folder / name / "result").read_text()
        return str(json.loads(text)["message"]) if text else ""

    def environment(self, name: str) -> dict[str, str]:
        """The environment that the task's command wrote by `env -0 >environment`."""
        lines = (self.work(name) / "environment").read_text().split("\0")
        return dict(line.partition("=")[::2] for line in lines if line)

    def end(self) -> None:
        """Kill the remaining processes of every task's session."""
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        self.silence()

    @property
    def port(self) -> int:
        """The port of the server that lists peers."""
        return int(self._server.server_address[1])

    def silence(self) -> None:
        """Make the server answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()

    def peers(self) -> dict[str, Any]:
        """The server's answer: the started tasks, and whether all have started."""
        started = [name for name in self.rendered if name in self.processes]
        records = []
        for name in started:
            role, _, index = name.rpartition("-")
            records.append({"role": role, "index": int(index), "host": "127.0.0.1", "ports": self.ports[name]})
        return {"complete": len(started) == len(self.rendered), "peers": records}

    def _draw(self, name: str) -> dict[str, list[int]]:
        role = self.gang.job.role(name.rpartition("-")[0])
        asked = [(port.name, port.count) for port in role.ports]
        asked += [(port.name, port.count) for port in self.rendered[name].ports]
        return {port: [free_port() for _ in range(count)] for port, count in asked}

    def _start(self, name: str) -> None:
        base, task = self.folder / name, self.rendered[name]
        work = base / "work"
        work.mkdir(parents=True)
        (base / "token").write_text("token")
        (base / "job-secret").write_text("what the tasks of this job share")
        (base / "result").write_text("")
        plan = {
            "attempt": f"{self.gang.job_id}.0.{name.replace('-', '.')}.0",
            "command": task.command,
            "work": str(work),
            "barrier": task.barrier,
            "barrier_timeout_seconds": self.barrier_seconds,
            "resolve": task.resolve,
            "plug_in": task.plug_in,
            "plug_in_steps": task.plug_in_steps,
            "error_block": task.error_block,
            "kept_secrets": self.secrets,
            "exit_patterns": True,
            "log": str(base / "log.stderr"),
            "api_url": f"http://127.0.0.1:{self._server.server_address[1]}",
            "token_file": str(base / "token"),
            "job_secret_file": str(base / "job-secret"),
            "result_file": str(base / "result"),
        }
        (base / "plan").write_bytes(msgspec.json.encode(plan))
        with open(base / "log.stdout", "wb") as out, open(base / "log.stderr", "wb") as err:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "corral.runtime", "run", str(base / "plan")],
                cwd=work,
                env={**self.env, **task.env, "PYTHONPATH": os.getcwd(), "CORRAL_ATTEMPT": f"attempt-of-{name}"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )


@contextlib.contextmanager
def tasks_of(folder: Path, said: Protocol, notes: dict[str, str] | None = None) -> Iterator[Tasks]:
    """The tasks of a job, all gone afterwards."""
    made = Tasks(folder, said, notes)
    try:
        yield made
    finally:
        made.end()


def _peers(tasks: Tasks) -> type[BaseHTTPRequestHandler]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(tasks.peers()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    return Answers
