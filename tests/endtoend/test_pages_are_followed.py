"""Type the commands of README and the pages in an empty folder and check their results."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endtoend.platform import BIN, ROOT
from tests.house.page_commands import Block, blocks, why_not_here
from tests.reserved import task_ports

pytestmark = pytest.mark.timeout(300)

PLACEHOLDER = "http://127.0.0.1:8470/sign-in#link=…"
"""The pages' placeholder for the link that the server prints."""
ENDLESS = ("corral events -f", "corral logs -f", "corral top", "corral forward")
"""Commands that end with Ctrl-C; each counts as started after its first output."""
LINK = re.compile(r"http://\S+/sign-in#link=[^\s']+")
JOB = """
name: digits
framework: shell
parameters: {lr: 0.5}
roles:
  worker:
    replicas: {min: 2, max: 4}
    resources: {cpu: "0.1", devices: 1}
    ports: [tensorboard]
    command: COMMAND
"""
NOTEBOOK = """
name: mynotebook
framework: shell
roles: {main: {resources: {cpu: "0.1"}, ports: [http], command: "echo plot > plot.png; exec sleep 1000"}}
"""
SITE = "kind: Queue\nname: research\ndeserved: {devices: 2}\n"


class Reader:
    """A user with an empty folder, who types one command after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "empty"
        self.folder.mkdir()
        shims = folder / "shims"
        shims.mkdir()
        (shims / "make").write_text(f'#!/bin/sh\nexec {shutil.which("make")} -o setup "$@"\n')  # it is already set up
        (shims / "make").chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CORRAL_", "XDG_"))}
        self.env = kept | task_ports() | {
            "HOME": str(folder),
            "PATH": f"{shims}:{BIN}:{os.environ['PATH']}",
            "CORRAL_DATA_FOLDER": str(folder / "data"),
            "CORRAL_PORT": "0",
            "CORRAL_CLUSTER": str(ROOT / "examples" / "cluster.yaml"),
            "TERM": "xterm",
        }  # fmt: skip
        self.link = ""

    def checkout(self) -> None:
        """Make the folder a checkout of Corral's source, set up."""
        for name in ("Makefile", "examples"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / ".venv").mkdir()
        (self.folder / ".venv" / "bin").symlink_to(BIN)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def types(self, command: str) -> str:
        """Run a command as written, which must succeed; returns its output."""
        command = command.replace(PLACEHOLDER, self.link or PLACEHOLDER)
        if command.removeprefix(".venv/bin/").startswith(ENDLESS):
            return self.begins(command)
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\nended with {done.returncode}\n{done.stdout}"
        if found := LINK.search(done.stdout):
            self.link = found[0]
        return done.stdout

    def begins(self, command: str) -> str:
        """Run a command until its first output, then press Ctrl-C; returns the output."""
        words = command.partition("  ")[0].split()
        process = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, start_new_session=True)
        try:
            assert process.stdout is not None
            while not select.select([process.stdout], [], [], 0)[0]:
                self.types("corral run --cpu 0.1 -- true")  # makes an event for the command to print
            said = os.read(process.stdout.fileno(), 65536).decode()
            process.send_signal(signal.SIGINT)
            # Not on a terminal `corral top` ends by itself, and Python takes a signal no more once it is ending.
            assert process.wait(240) in (0, 130, -signal.SIGINT), command
        finally:
            process.kill()
            process.communicate()
        assert said, command
        return said

    def follows(self, block: Block) -> list[str]:
        """Type every command of a block that one machine can run."""
        return [self.types(command) for command in block.commands if not why_not_here(command)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.types("corral down --stop-jobs")


def of_page(page: str, *headings: str) -> list[Block]:
    """The blocks of a page below these headings, in order."""
    found = [block for block in blocks() if block.page == page and (not headings or block.heading in headings)]
    assert found, page
    return found


def test_the_tour_of_the_readme(reader: Reader) -> None:
    reader.checkout()
    (tour,) = of_page("README.md", "A tour")
    said = "\n".join(reader.follows(tour))
    assert {"rank 0 of 2", "rank 1 of 2"} <= set(re.findall(r"rank \d of \d", said))
    assert "fetched" in said and "succeeded" in said


def test_the_page_of_the_command_line_and_those_that_tend_a_server(reader: Reader) -> None:
    page = {block.heading: block for block in of_page("docs/cli.md")}
    reader.follows(page["Begin"])
    reader.write("job.yaml", JOB.replace("COMMAND", "echo lr <% $parameters.lr %>"))
    reader.write("train.py", "import os\nprint('rank', os.environ['RANK'])\n")
    first, *rest = page["Submit"].commands
    said = [reader.types(first)]
    while "succeeded" not in reader.types("corral get digits"):  # the next command submits it again
        reader.types("corral events digits")
    said += [reader.types(command) for command in rest if not why_not_here(command)]
    assert "lr 0.1" in said[1] and "rank 1" in said[5]
    reader.write("job.yaml", JOB.replace("COMMAND", "echo epoch; echo 42 > model.pt; exec sleep 1000"))
    reader.write("notebook.yaml", NOTEBOOK)
    for file, name in (("job.yaml", "digits"), ("notebook.yaml", "mynotebook")):
        reader.types(f"corral submit {file}")
        while "running" not in reader.types(f"corral get {name}"):
            reader.types(f"corral events {name}")
    while "epoch" not in reader.types("corral logs digits worker-0") + reader.types("corral logs digits worker-1"):
        pass
    reader.write("later.yaml", "name: later\nafter: [digits]\nroles: {main: {command: 'true'}}\n")
    reader.types("corral submit later.yaml")
    reader.follows(page["Look"])
    reader.follows(page["Steer"])
    assert (reader.folder / "model.pt").read_text() == "42\n"
    assert (reader.folder / "plot.png").read_text() == "plot\n"
    reader.follows(page["Tend machines"])
    reader.write("site.yaml", SITE)
    reader.types("corral apply site.yaml")
    reader.write("site.yaml", SITE.replace("2", "3"))
    reader.follows(page["Configure"])
    for block in of_page("docs/configuration.md", "Look back, and go back"):
        reader.follows(block)
    for block in of_page("docs/yielding.md", "Maintenance"):
        reader.follows(block)
    for block in of_page("docs/one-machine.md"):
        reader.follows(block)


def test_a_file_of_alnair_is_converted(reader: Reader) -> None:
    reader.checkout()
    for command in (command for block in of_page("docs/alnair.md") for command in block.commands):
        if not why_not_here(command):
            assert "UnifiedJob" in reader.types(command)
