"""The environment of a starting task: parameters, code, data, secrets, ports, peers and limits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.endtoend.forwarding import forwarded, read, visit
from tests.endtoend.platform import Platform, one

pytestmark = pytest.mark.timeout(300)
SECRET = "correct-horse-battery-staple"


def test_parameters_are_set_from_the_command_line(platform: Platform) -> None:
    document = one("tuned", "echo rate <% $parameters.rate %>", parameters={"rate": "0.10"})
    text = json.dumps(document)
    assert "rate 0.5\n" in platform.corral("submit", "-f", "-", "--set", "rate=0.5", given=text)
    assert "rate 0.10\n" in platform.corral("submit", "-f", "-", given=text)
    assert "pace" in platform.refused("submit", "-", "--set", "pace=1", code=2, given=text)


def test_a_task_sees_the_files_that_were_not_ignored_and_no_others(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "model.py").write_text("WIDTH = 3\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\nfind . -type f | sort\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "data.bin").write_bytes(b"\0" * 1000)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("private")
    (tmp_path / ".corralignore").write_text("*.bin\n.corralignore\njob.yaml\n")
    (tmp_path / "job.yaml").write_text("name: packed\nframework: shell\ncode: .\nroles: {main: {command: ./run.sh}}\n")
    first = platform.run("submit", "-f", "job.yaml", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "./pkg/model.py\n./run.sh\n"
    uploads = sent(platform)
    second = platform.run("submit", "-f", "job.yaml", folder=tmp_path)
    assert second.stdout == first.stdout
    assert sent(platform) == uploads
    (tmp_path / "new.py").write_text("")
    assert "./new.py\n" in platform.corral("submit", "-f", "job.yaml", folder=tmp_path)
    assert len(sent(platform)) == len(uploads) + 1


def sent(platform: Platform) -> set[str]:
    return {str(path) for path in (platform.data / "blobs" / "code").rglob("*.tar.gz")}


def test_data_comes_before_and_goes_after_by_uri(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "a.txt").write_text("7\n")
    job = platform.ran(
        one(
            "staged",
            "mkdir model && tr 7 8 < data/a.txt > model/weights",
            inputs=[{"uri": f"file://{tmp_path}/digits", "path": "data"}],
            outputs=[{"path": "model", "uri": f"file://{tmp_path}/kept"}],
        )
    )
    assert job["state"] == "succeeded", platform.log(job)
    assert (tmp_path / "kept" / "weights").read_text() == "8\n"


def test_data_that_is_not_there_fails_the_task_and_says_which(platform: Platform, tmp_path: Path) -> None:
    missing = {"uri": f"file://{tmp_path}/nothing", "path": "data"}
    job = platform.ran(one("unstaged", "echo never", inputs=[missing]))
    assert job["state"] == "failed"
    assert "nothing" in job["exit"]["message"] + platform.log(job)
    assert "never" not in platform.log(job)


def test_secrets_reach_the_task_and_nobody_else(platform: Platform) -> None:
    platform.client.put_secret("hub", SECRET)
    secrets = [{"name": "hub", "env": "HUB"}, {"name": "hub", "file": "keys/token"}]
    command = "echo ${#HUB} $(wc -c < keys/token) $(stat -c %a keys/token); echo ready; exec sleep 1000"
    job = platform.submit(one("secretive", command, role={"secrets": secrets}))
    platform.printed(job, "main-0", "ready\n")
    log = platform.log(job)
    assert log == f"{len(SECRET)} {len(SECRET)} 600\nready\n"
    shown = [platform.corral("get", "secretive", "-o", output) for output in ("json", "yaml", "table")]
    shown += [platform.corral("events", "secretive", "-o", "json"), platform.corral("explain", "secretive")]
    shown += [platform.corral("secret", "-o", "json"), arguments_of_everything()]
    assert [SECRET in text for text in shown] == [False] * len(shown)
    kept = [*platform.data.glob("corral.db*"), *(platform.data / "logs").iterdir()]
    assert len(kept) > 3
    assert [path.name for path in kept if SECRET.encode() in path.read_bytes()] == []


def arguments_of_everything() -> str:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_text(errors="replace"))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
    return "\n".join(found)


def test_an_unknown_secret_is_refused_by_name(platform: Platform) -> None:
    document = one("secretless", "true", secrets={"HUB": "no-such-secret"})
    assert "no-such-secret" in platform.refused("submit", "-", code=2, given=json.dumps(document))


def test_tasks_get_ports_of_their_own_and_find_their_peers(platform: Platform) -> None:
    command = "echo mine $CORRAL_PORT_HTTP peer $(peer:main-0:host) $(peer:main-0:port:http) $(peer:main-1:port:http)"
    job = platform.ran(one("peers", command, barrier=True, role={"replicas": 2, "ports": ["http"]}))
    assert job["state"] == "succeeded", platform.log(job)
    lines = [platform.log(job, f"main-{index}").split() for index in range(2)]
    ports = [line[1] for line in lines]
    assert len(set(ports)) == 2
    assert [line[3:] for line in lines] == [["127.0.0.1", *ports]] * 2
    placed = {
        f"{task['role']}-{task['index']}": task["ports"] for task in platform.client.placement(job["id"])["items"]
    }
    assert placed in ({}, {"main-0": {"http": [int(ports[0])]}, "main-1": {"http": [int(ports[1])]}})


def test_a_barrier_holds_the_first_task_until_the_last_has_begun(platform: Platform) -> None:
    """The second role starts only after the first, so a start without the barrier would show."""
    document = {
        "name": "barrier",
        "framework": "shell",
        "barrier": True,
        "roles": {
            "left": {"command": "echo $(peer:right-0:port:x)", "ports": ["x"], "resources": {"cpu": "0.1"}},
            "right": {"command": "echo $(peer:left-0:port:x)", "ports": ["x"], "resources": {"cpu": "0.1"}},
        },
    }
    job = platform.ran(document)
    tasks = platform.tasks(job)
    assert platform.log(job, "left-0").strip() == str(tasks["right-0"]["ports"]["x"][0])
    assert platform.log(job, "right-0").strip() == str(tasks["left-0"]["ports"]["x"][0])


def test_a_known_fault_in_the_log_names_the_failure(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import no_such_module_at_all\n")
    document = "name: imports\nframework: shell\ncode: .\nroles: {main: {command: python3 train.py}}\n"
    (tmp_path / "job.yaml").write_text(document)
    platform.corral("submit", "-f", "job.yaml", code=1, folder=tmp_path)
    end = platform.client.job("imports")["exit"]
    assert (end["code"], end["phrase"]) == (1, "UserCommandExitWithError") or end["code"] == 232
    assert "no_such_module_at_all" in end["message"]


def test_a_task_over_its_memory_is_ended_as_out_of_memory(platform: Platform) -> None:
    program = "x = []\nwhile True: x.append(bytearray(8 << 20))"
    job = platform.ran(one("greedy", ["python3", "-c", program], role={"resources": {"cpu": 1, "memory": "64Mi"}}))
    assert job["state"] == "failed"
    assert (job["exit"]["code"], job["exit"]["phrase"]) == (-1200, "UserContainerDockerOOMKilled")
    assert "memory" in job["exit"]["message"]


def test_a_task_is_confined_to_its_share_of_a_processor(platform: Platform) -> None:
    """Where no control group can be made, the limit is not enforced and the task is in none."""
    document = one("confined", "cat /proc/self/cgroup", role={"resources": {"cpu": "0.5"}})
    job = platform.ran(document)
    assert job["state"] == "succeeded", platform.log(job)
    groups = re.findall(r"[^\n]*corral[^\n]*", platform.log(job))
    writable = Path("/sys/fs/cgroup/cpu").is_dir() or "cpu" in Path("/sys/fs/cgroup/cgroup.subtree_control").read_text()
    if writable and Path("/sys/fs/cgroup/cpu/corral").exists():
        assert any("cpu" in group or group.startswith("0::") for group in groups), platform.log(job)


def test_described_devices_set_no_vendor_variable(platform: Platform) -> None:
    role = {"resources": {"cpu": "0.1", "devices": 2}}
    job = platform.ran(one("described", "env", role=role))
    log = platform.log(job)
    assert re.search(r"^CORRAL_DEVICES=\d,\d$", log, re.MULTILINE)
    assert "CUDA_VISIBLE_DEVICES" not in log and "NVIDIA_VISIBLE_DEVICES" not in log
    assert "CORRAL_TOKEN" not in log


SERVE = """
import http.server, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.path + chr(10)).encode() * 100_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer((os.environ["CORRAL_HOST"], int(os.environ["CORRAL_PORT_WEB"])), Page)
print("serving", flush=True)
server.serve_forever()
"""


def test_what_a_task_serves_is_reached_from_here(platform: Platform) -> None:
    job = platform.submit(one("web", ["python3", "-c", SERVE], role={"ports": [{"name": "web"}]}))
    platform.printed_running(job, "main-0", "serving\n")
    with forwarded(platform, job["id"], "main-0") as address:
        for name in ("one", "two"):
            assert read(f"{address}/{name}") == f"/{name}\n".encode() * 100_000
    assert f"corral open {job['name']}" in platform.corral("get", job["id"])
    with visit(platform.url, platform.corral("open", job["id"]).strip()) as browser:
        assert browser.get("three?a=1").content == b"/three?a=1\n" * 100_000
    assert "no running service main-0 ssh" in platform.refused("open", job["id"], "main-0", "ssh", code=3)
    assert "was not given a port 22" in platform.refused("forward", job["id"], "main-0", "22", code=3)
    platform.client.stop(job["id"])
    assert platform.ended(job)["state"] == "stopped"
    assert "not running" in platform.refused("forward", job["id"], "main-0", "web")
