"""OpenPAI's job files at the command line of a real server: submitted, checked and explained unchanged, with secrets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.endtoend.platform import Platform
from tests.spec.openpai_files import job_file, role_of

pytestmark = pytest.mark.timeout(300)
HUSH = "hush-hush-value-of-a-file"
SMALL = {"cpu": 1, "memoryMB": 64, "gpu": 0}


def written(folder: Path, text: str, name: str = "job.yaml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_a_file_of_protocol_2_is_submitted_with_its_secret_and_its_parameter(server: Platform, tmp_path: Path) -> None:
    commands = ['printf %s "<% $secrets.token %>" | sha256sum', "echo lr=<% $parameters.lr %>", "echo $PAI_JOB_NAME"]
    text = job_file(
        name="With_Secret",
        parameters={"lr": 0.5},
        secrets={"token": HUSH},
        taskRoles={"worker": role_of(commands=commands, resourcePerInstance=SMALL)},
    )
    done = server.run("submit", "-f", "--no-image", written(tmp_path, text), "--set", "lr=0.25")
    assert done.returncode == 0, done.stdout + done.stderr
    assert hashlib.sha256(HUSH.encode()).hexdigest() in done.stdout
    assert "lr=0.25" in done.stdout and "~With_Secret" in done.stdout
    (job,) = [each for each in server.client.jobs()["items"] if each["name"].startswith("with-secret-")]
    assert HUSH not in json.dumps(server.client.job(job["id"]))
    server.forgotten()
    kept = [file for file in server.folder.rglob("*") if file.is_file() and not file.is_symlink()]
    assert any(file.suffix == ".db" for file in kept)
    assert not [file for file in kept if HUSH.encode() in file.read_bytes()]


def test_a_file_comes_back_with_its_comments_and_is_submitted_again_with_its_secret(
    server: Platform, tmp_path: Path
) -> None:
    commands = ['printf %s "<% $secrets.token %>" | sha256sum', "echo lr=<% $parameters.lr %>"]
    role = role_of(commands=commands, resourcePerInstance=SMALL)
    text = job_file(name="Kept_1", parameters={"lr": 0.5}, secrets={"token": HUSH}, taskRoles={"worker": role})
    text = f"# what I tried\n{text}# {HUSH}\n"
    server.corral("submit", "--no-image", written(tmp_path, text), "--set", "lr=0.25")
    done = server.run("get", "Kept_1", "--file")
    assert done.stdout == text.replace(f"token: {HUSH}", 'token: "******"').replace(HUSH, "******")
    assert "--set lr=0.25" in done.stderr and "--from" in done.stderr
    again = written(tmp_path, done.stdout.replace("Kept_1", "Kept_2"), "again.yaml")
    assert "--from JOB" in server.refused("submit", "--no-image", again, code=2)
    assert "ok: " in server.corral("validate", again, "--from", "Kept_1")
    words = ("check", again, "--from", "Kept_1", "--dry-run", "--no-image")
    assert "The job would" in server.corral("openpai", *words)
    assert "again.yaml:" in server.run("validate", again, "--from", "absent").stdout
    done = server.run("submit", "-f", "--no-image", again, "--from", "Kept_1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert hashlib.sha256(HUSH.encode()).hexdigest() in done.stdout and "lr=0.5" in done.stdout


def test_a_file_of_protocol_1_is_submitted_comments_and_all(server: Platform, tmp_path: Path) -> None:
    role = {"name": "main", "command": "echo $PAI_CURRENT_TASK_ROLE_NAME $COLOUR", "memoryMB": 64, "shmMB": 0}
    job = {"jobName": "old.one", "image": "any", "jobEnvs": {"COLOUR": "teal"}, "taskRoles": [role]}
    text = json.dumps(job, indent=1).replace('"image"', '// where it runs\n "image"')
    done = server.run("submit", "-f", "--no-image", written(tmp_path, text, "job.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "main teal" in done.stdout


def test_a_check_tells_what_a_file_becomes_and_asks_the_server_too(server: Platform, tmp_path: Path) -> None:
    role = role_of(resourcePerInstance=SMALL, taskRetryCount=1)
    file = written(tmp_path, job_file(taskRoles={"worker": role}, prerequisites=NO_IMAGE))
    told = json.loads(server.corral("openpai", "check", file, "-o", "json"))
    assert (told["valid"], told["job"]) == (True, "j1")
    assert told["uses"][0]["field"] == "taskRoles.worker.taskRetryCount"
    asked = json.loads(server.corral("openpai", "check", file, "--dry-run", "--no-image", "-o", "json"))
    assert asked["trial"]["wouldStart"] is True
    shown = server.corral("openpai", "check", file, "--dry-run", "--no-image")
    assert "The job would start now" in shown
    assert "Protocol: 2" in shown and "taskRoles.worker.taskRetryCount" in shown


def test_a_bad_file_is_refused_with_the_line_to_blame(server: Platform, tmp_path: Path) -> None:
    text = job_file(taskRoles={"worker": role_of(instances=0)})
    file = written(tmp_path, text)
    line = text[: text.index("instances")].count("\n") + 1
    for words in (("submit", file), ("validate", file), ("openpai", "check", file)):
        done = server.run(*words)
        assert done.returncode == 2
        assert f"job.yaml:{line}:" in done.stdout + done.stderr
        assert "taskRoles.worker.instances: should be >= 1" in done.stdout + done.stderr


NO_IMAGE = [{"type": "dockerimage", "name": "d", "uri": "any"}]
