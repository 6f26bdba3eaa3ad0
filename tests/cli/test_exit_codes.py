"""The exit codes of `corral`, from a real process against a real server, because scripts branch on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from corral.cli.exit_codes import exit_code
from corral.cli.main import run
from corral.kernel import errors
from tests.api.harness import Server, serving
from tests.terminals import Terminal

JOB = "name: {}\nframework: shell\nroles:\n  worker: {{command: 'true'}}\n"


class Person:
    """A user at a shell, signed in to the test's server."""

    def __init__(self, server: Server, home: Path, token: str) -> None:
        self.server = server
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CORRAL_URL": server.url,
            "CORRAL_TOKEN": token,
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        }

    def types(
        self, *arguments: str, stdin: str = "", without: Sequence[str] = (), **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `corral ARGUMENTS`."""
        environment = {name: value for name, value in self.environment.items() if name not in without} | extra
        return subprocess.run(
            [sys.executable, "-m", "corral.cli.main", *arguments],
            capture_output=True,
            text=True,
            input=stdin,
            env=environment,
            cwd=self.home,
            timeout=240,
        )


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Alice, at a server without control."""
    with serving(tmp_path_factory.mktemp("front")) as server:
        home = tmp_path_factory.mktemp("home")
        (home / "job.yaml").write_text(JOB.format("from-a-file"))
        (home / "bad.yaml").write_text("name: bad\nframework: shell\nroles:\n  worker: {comand: 'true'}\n")
        with server.client("alice") as alice:
            alice.submit(JOB.format("mine"))
        with server.client("bob") as bob:
            bob.submit(JOB.format("bobs"))
        yield Person(server, home, server.token("alice"))


CASES = {
    "version": (0, ["version"]),
    "help": (0, ["--help"]),
    "help of a command": (0, ["submit", "--help"]),
    "a list": (0, ["ls"]),
    "those since a day": (0, ["ls", "--since", "2026-01-01", "--until", "2100-01-01T00:00:00Z"]),
    "those since no time": (2, ["ls", "--since", "noon"]),
    "one job": (0, ["get", "mine"]),
    "its events": (0, ["events", "mine"]),
    "a good file": (0, ["validate", "job.yaml"]),
    "its canonical form": (0, ["convert", "job.yaml"]),
    "its short form": (0, ["convert", "--short", "job.yaml"]),
    "two forms at once": (2, ["convert", "--short", "--complete", "job.yaml"]),
    "a script for a shell": (0, ["completion", "bash"]),
    "no such command": (2, ["sumbit"]),
    "no such option": (2, ["ls", "--nonsense"]),
    "a missing argument": (2, ["get"]),
    "a file that is not there": (2, ["submit", "nowhere.yaml"]),
    "a bad file": (2, ["validate", "bad.yaml"]),
    "a bad file, submitted": (2, ["submit", "bad.yaml"]),
    "a task that is none": (2, ["logs", "mine", "worker"]),
    "a job that is not there": (3, ["get", "nobodys"]),
    "a node that is not there": (3, ["nodes", "local/none"]),
    "another's job": (4, ["stop", "bobs"]),
    "a live job, removed": (4, ["rm", "mine"]),
    "what only administrators see": (4, ["users"]),
    "a task that is not there": (3, ["exec", "mine", "worker-0", "--", "true"]),
}


@pytest.mark.parametrize("what", CASES)
def test_each_outcome_has_its_code_and_no_traceback(person: Person, what: str) -> None:
    code, arguments = CASES[what]
    done = person.types(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) or code == 0 or arguments[0] == "validate"


def test_nobody_there_is_5_and_says_how_to_start_one(person: Person) -> None:
    done = person.types("ls", CORRAL_URL="http://127.0.0.1:9")
    assert done.returncode == 5
    assert "corral up" in done.stderr


def test_not_signed_in_is_4_and_says_how(person: Person) -> None:
    done = person.types("ls", without=["CORRAL_TOKEN"])
    assert done.returncode == 4
    assert "corral login" in done.stderr


def test_without_a_sign_in_and_a_server_it_is_5_and_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("CORRAL_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("CORRAL_TOKEN", raising=False)
    assert run(["ls"]) == 5
    assert "start one: corral up --detach" in capsys.readouterr().err


def test_a_token_that_is_wrong_is_4(person: Person) -> None:
    assert person.types("ls", CORRAL_TOKEN="crl_wrong").returncode == 4


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInput("a", "b"), 2),
        (errors.TooLarge("a", "b"), 2),
        (errors.NotFound("a", "b"), 3),
        (errors.Unauthenticated("a", "b"), 4),
        (errors.Forbidden("a", "b"), 4),
        (errors.Conflict("a", "b"), 4),
        (errors.TooManyRequests("a", "b"), 4),
        (errors.Unavailable("a", "b"), 5),
        (errors.CorralError("a", "b"), 1),
    ],
)
def test_every_error_has_an_exit_code(error: errors.CorralError, code: int) -> None:
    assert exit_code(error) == code


def test_every_output_form_of_a_list(person: Person) -> None:
    table = person.types("ls", "-u", "alice").stdout
    assert "NAME" in table and "mine" in table and "\x1b" not in table
    as_json = json.loads(person.types("ls", "-u", "alice", "-o", "json").stdout)
    names = person.types("ls", "-u", "alice", "-o", "name").stdout.split()
    assert [job["id"] for job in as_json] == names
    assert "name: mine" in person.types("ls", "-u", "alice", "-o", "yaml").stdout


def test_submit_prints_the_id_alone_and_the_same_key_gives_the_same_job(person: Person) -> None:
    first = person.types("submit", "-", "--idempotency-key", "k", stdin=JOB.format("from-stdin"))
    again = person.types("submit", "-", "--idempotency-key", "k", stdin=JOB.format("from-stdin"))
    assert first.returncode == again.returncode == 0
    assert first.stdout == again.stdout
    assert person.types("get", first.stdout.strip(), "-o", "name").stdout == first.stdout


def test_run_needs_no_file(person: Person) -> None:
    done = person.types("run", "--detach", "--name", "quick", "--replicas", "2", "-e", "A=1", "--", "echo", "a b", "$A")
    assert done.returncode == 0, done.stderr
    spec = json.loads(person.types("get", "quick", "-o", "json").stdout)["document"]["spec"]
    assert spec["roles"][0]["command"] == ["echo", "a b", "$A"]
    assert spec["roles"][0]["env"] == {"A": "1"}
    assert spec["replicaSpec"]["replicas"] == 2


def test_code_is_sent_once_and_named_by_its_content(person: Person) -> None:
    folder = person.home / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('hi')\n")
    (folder / "job.yaml").write_text(JOB.format("with-code") + "code: .\n")
    assert person.types("submit", "project/job.yaml").returncode == 0
    (folder / "job.yaml").write_text(JOB.format("with-code-2") + "code: .\n")
    uris = {
        json.loads(person.types("get", name, "-o", "json").stdout)["document"]["spec"]["code"]["uri"]
        for name in ("with-code",)
    }
    (uri,) = uris
    assert (person.server.folder / "code" / f"{uri.removeprefix('blob:')}.tar.gz").is_file()


def test_a_link_signs_in_once_and_is_remembered_privately(person: Person) -> None:
    with person.server.client("root") as root:
        link = root.login_link("alice")["link"]
    address = f"{person.server.url}/sign-in#link={link}"
    bare = ["CORRAL_URL", "CORRAL_TOKEN"]
    assert person.types("login", address, without=bare).returncode == 0
    assert person.types("login", address, without=bare).returncode == 4
    assert "mine" in person.types("ls", without=bare).stdout
    file = person.home / ".config" / "corral" / "config.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert person.types("login", "--logout", without=bare).returncode == 0
    assert person.types("ls", without=bare).returncode == 4


def test_a_file_is_validated_without_a_server(person: Person) -> None:
    done = person.types("validate", "bad.yaml", without=["CORRAL_URL", "CORRAL_TOKEN"])
    assert done.returncode == 2
    assert "bad.yaml:4:" in done.stdout and "command" in done.stdout


def test_a_refused_file_is_called_by_its_name(person: Person) -> None:
    assert "bad.yaml:4:" in person.types("submit", "bad.yaml").stderr
    assert "standard input:4:" in person.types("submit", "-", stdin=(person.home / "bad.yaml").read_text()).stderr


def test_the_schema_needs_no_file_and_the_form_does(person: Person) -> None:
    assert json.loads(person.types("convert", "--schema", "-o", "json").stdout)["properties"]
    assert person.types("convert").returncode == 2


@pytest.mark.parametrize("word", ["list", "ls"])
def test_a_group_lists_when_asked_to(person: Person, word: str) -> None:
    assert person.types("token", word, "-o", "json").stdout == person.types("token", "-o", "json").stdout


def test_an_empty_answer_says_whether_it_was_the_filter(person: Person) -> None:
    assert "No job matches" in person.types("ls", "-u", "nobody").stderr


def test_an_array_says_where_its_jobs_are(person: Person) -> None:
    text = JOB.format("many") + "array: 3\n"
    done = person.types("submit", "-", stdin=text)
    assert f"corral ls --tag array:{done.stdout.strip()}" in done.stderr


def test_an_interrupt_is_one_word_even_while_the_command_loads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Pressed:
        def find_spec(self, *_: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Pressed()])
    monkeypatch.delitem(sys.modules, "corral.cli.command_table", raising=False)
    assert run(["ls"]) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_waiting_jobs_say_why(person: Person) -> None:
    assert "scheduler" in person.types("get", "mine").stdout


def test_colours_are_only_for_terminals_that_want_them(person: Person) -> None:
    def shown(**more: str) -> str:
        environment = person.environment | {"TERM": "xterm"} | more
        terminal = Terminal([sys.executable, "-m", "corral.cli.main", "ls"], environment)
        text: str = terminal.read()
        terminal.ended()
        return text

    assert "\x1b[" in shown()
    assert "\x1b[" not in shown(NO_COLOR="1")


def test_the_command_line_starts_without_what_it_does_not_need(person: Person) -> None:
    done = person.types("ls", PYTHONPROFILEIMPORTTIME="1")
    for heavy in ("rich", "pydantic", "httpx2", "msgspec", "yaml", "websockets", "asyncio", "fastapi", "pathspec"):
        assert not any(line.endswith(f" {heavy}") for line in done.stderr.splitlines()), heavy
