"""Start Corral on this machine, train a model on two workers, report the result, and stop everything.

The job rests after each epoch, so that its loss and its tasks' processor use become curves: the portal draws them, and
the report too.
`make demo` runs it with the server's own environment. PyTorch is never installed there: the demo uses a `python` on
PATH that can import it, or else makes an environment of its own below $CORRAL_CACHE (else ~/.cache/corral). It exits
with 0 only if the model learned: accuracy above 0.9.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from corral.cli.sparkline import sparkline
from corral.client import Client

EXAMPLES: Final = Path(__file__).resolve().parent
PACKAGES: Final = ("torch", "sklearn", "numpy")
LEARNED: Final = 0.9
PARAMETERS: Final = {"epochs": "16", "pause": "3"}
"""Of the job: some 50 seconds, because figures are kept in steps of 15."""
CURVES: Final = {"corral_job_loss": "loss", "task_cpu_percent": "CPU of {}, %"}
"""What is drawn at the end, and how it is called; `{}` is the task."""
EPOCH: Final = re.compile(r"epoch (\d+)/(\d+) loss [0-9.]+ accuracy ([0-9.]+)")

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Run the demo; returns the exit code of the process."""
    options = argparse.ArgumentParser(description="Train a small model on two workers, from an empty machine.")
    options.add_argument("--keep", action="store_true", help="leave the server running, and its data folder in place")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that SIGTERM, too, stops everything that was started
    python = python_with_torch()
    with server(python, keep=given.keep) as (url, link):
        client = Client(url)
        with client:
            client.login(link=link.partition("#link=")[2])
            console.print(f"Corral is ready at [bold]{url}[/]")
            console.print(f"Watch it in the portal, sign in once: {sign_in_link(client)}")
            job_id = submit(url, client.token)
            accuracy = follow(client, job_id)
            job = client.wait(job_id)
            report(job, accuracy, client, kept=given.keep)
    if job["state"] != "succeeded" or accuracy <= LEARNED:
        console.print(
            f"[red]The model did not learn:[/] {job['state']}, accuracy {accuracy:.4f}, over {LEARNED} wanted"
        )
        return 1
    return 0


# -- PyTorch, beside the server's environment


def python_with_torch() -> Path:
    """The folder of a `python` that can import the example's packages; makes an environment if there is none."""
    own = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "examples" / "pytorch"
    found = shutil.which("python")
    for python in (Path(found) if found else None, own / "bin" / "python"):
        if python is not None and can_import(python):
            console.print(f"PyTorch is here already: {python}")
            return python.parent
    requirements = EXAMPLES / "pytorch" / "requirements.txt"
    console.print(f"Installing PyTorch for the example into {own}: about 2.5 GB to load, 5 GB on disk")
    begun = time.monotonic()
    uv = Path(sys.executable).with_name("uv")
    clean = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    for command in install_commands(uv if uv.exists() else None, own, requirements):
        if subprocess.run(command, env=clean).returncode:
            sys.exit("PyTorch could not be installed, see above; or put a `python` that has it first on PATH")
    os.sync()  # else the server's first commits would wait behind gigabytes on their way to the disk
    size = sum(file.stat().st_size for file in own.rglob("*") if file.is_file() and not file.is_symlink())
    console.print(f"Installed {size / 1e9:.1f} GB in {time.monotonic() - begun:.0f} s")
    return own / "bin"


def can_import(python: Path) -> bool:
    """Whether an interpreter has the packages; they are looked for, not loaded."""
    if not python.exists():
        return False
    looked = f"import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, {PACKAGES!r})))"
    return subprocess.run([python, "-c", looked], stderr=subprocess.DEVNULL).returncode == 0


def install_commands(uv: Path | None, folder: Path, requirements: Path) -> Iterator[list[str | Path]]:
    """The commands that make the environment; both tools show sizes and progress on a terminal."""
    python = folder / "bin" / "python"
    if uv is not None:
        yield [uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder]
        yield [uv, "pip", "install", "--python", python, "-r", requirements]
    else:
        yield [sys.executable, "-m", "venv", "--clear", folder]
        yield [python, "-m", "pip", "install", "--disable-pip-version-check", "-r", requirements]


# -- the server


@contextmanager
def server(bin_folder: Path, *, keep: bool) -> Iterator[tuple[str, str]]:
    """A server on a free port with a data folder of its own, whose tasks find `python` in `bin_folder`.

    Yields its address and one-time link. Afterwards the server, its jobs and the folder are removed.
    """
    folder = Path(tempfile.mkdtemp(prefix="corral-demo-"))
    env = {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
    env["PATH"] = f"{bin_folder}{os.pathsep}{env.get('PATH', os.defpath)}"
    data = ["--data", str(folder / "data")]
    cluster = EXAMPLES / "cluster.yaml"
    stop = not keep
    try:
        up = corral("up", "--detach", "--port", "0", "--cluster", str(cluster), *data, "-o", "json", env=env)
        facts = json.loads(up)
        yield facts["url"], facts["link"]
    except Refused as refused:
        if "up" in refused.words:  # the error names a log file: keep it
            console.print(f"What it wrote stays in {folder}")
            keep = stop = False
        raise
    finally:
        if keep:
            console.print(f"Left running; stop it: corral down --stop-jobs --data {folder / 'data'}")
        elif stop:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would leave the server behind
            corral("down", "--stop-jobs", *data, env=env)
            shutil.rmtree(folder)


class Refused(SystemExit):
    """A command that failed with a message; the demo exits with its code."""

    def __init__(self, code: int, words: tuple[str, ...]) -> None:
        super().__init__(code)
        self.words = words


def corral(*words: str, env: dict[str, str]) -> str:
    """Run a command of the `corral` beside this interpreter; returns its output.

    Raises Refused when it fails.
    """
    command = [str(Path(sys.executable).with_name("corral")), *words]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Refused(done.returncode, words)
    return done.stdout


def sign_in_link(client: Client) -> str:
    """A fresh one-time link for the user; this program used up the first one."""
    return f"{client.url}/sign-in#link={client.login_link(client.me()['user'])['link']}"


# -- the job


def submit(url: str, token: str) -> str:
    """Submit the example with its folder packed, as a user would; returns the job's id."""
    env = dict(os.environ, CORRAL_URL=url, CORRAL_TOKEN=token)
    given = [word for name, value in PARAMETERS.items() for word in ("--set", f"{name}={value}")]
    return corral("submit", str(EXAMPLES / "pytorch" / "job.yaml"), *given, "-o", "name", env=env).strip()


def follow(client: Client, job_id: str) -> float:
    """Show the log under a progress line until the job has ended; returns the last accuracy in it."""
    accuracy, rest = 0.0, ""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        line = progress.add_task("digits: starting", total=None)
        for piece in client.log(job_id, follow=True):
            *whole, rest = (rest + piece.decode(errors="replace")).split("\n")
            for text in whole:
                progress.console.print(text, markup=False, style="dim")
                if found := EPOCH.search(text):
                    accuracy = float(found[3])
                    told = f"digits: accuracy {accuracy:.3f}"
                    progress.update(line, description=told, completed=int(found[1]), total=int(found[2]))
    return accuracy


def report(job: Any, accuracy: float, client: Client, *, kept: bool) -> None:
    """Print accuracy, placement, run time, curves and the portal's address."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("job", f"{job['name']} ({job['id']}): {job['state']}")
    table.add_row("accuracy", f"{accuracy:.4f}")
    for place in job.get("placement", []):
        devices = ", ".join(str(device) for device in place["devices"])
        table.add_row(f"{place['role']}-{place['index']}", f"{place['node']}, device {devices}")
    if job["startedAt"] and job["endedAt"]:
        ran = datetime.fromisoformat(job["endedAt"]) - datetime.fromisoformat(job["startedAt"])
        table.add_row("run time", f"{ran.total_seconds():.1f} s")
    for name, values in curves(client, job["id"]).items():
        table.add_row(name, f"{sparkline(values, 40)}  {values[0]:.3g} → {values[-1]:.3g}")
    console.print(table)
    page = f"{portal(client.url)}jobs/{job['id']}"
    if kept:
        console.print(f"Its curves in the portal: {page}\nSign in once: {sign_in_link(client)}")
    else:
        console.print(
            f"The portal drew its curves at {page}; it ends now, and `make demo DEMO=--keep` leaves it running"
        )


def curves(client: Client, job_id: str) -> dict[str, list[float]]:
    """What the job reported and what its tasks took, over time, by what it is called."""
    found: dict[str, list[float]] = {}
    for each in client.series(list(CURVES), job=job_id)["items"]:
        values = [value for value in each["mean"] if value is not None]
        if values:
            labels = each["labels"]
            task = f"{labels.get('role_name', 'task')}-{labels.get('task_index', '')}"
            found[CURVES[each["family"]].format(task)] = values
    return found


def portal(url: str) -> str:
    """The portal's address: the server's own."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("Stopped before its end.")
        sys.exit(130)
