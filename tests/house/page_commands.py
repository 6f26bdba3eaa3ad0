"""The commands of README and the pages, as written, and the reason why some do not run on one machine."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL: Final = {"sh", "bash", "console"}

ELSEWHERE: Final = {
    "make demo": "trains with PyTorch, which it fetches; `make demo` is a check of its own",
    "make test": "runs all tests, this one too",
    "make setup": "made the environment that this test runs in",
    "make wheel": "builds an image afterwards, with docker",
    "pip install": "fetches packages; tests/house/test_install.py installs both distributions",
    "python -m venv": "fetches JAX",
    "helm": "needs a cluster; tests/engines/kubernetes/test_chart_installed.py installs the chart",
    "kubectl": "needs a cluster",
    "nvidia-smi": "needs a driver; tests/cli/test_topology_is_shown.py reads its tables",
    "curl": "is sent to HOST:PORT; tests/api/test_openpai_accounts_tokens.py signs in so",
    "export CORRAL_": "begins a server with a cluster or an OpenID provider",
    "corral up --engine kubernetes": "needs a cluster; tests/engines/kubernetes/test_server_on_a_cluster.py starts it so",
    "corral up --engine yarn": "needs a Hadoop cluster; tests/engines/yarn/test_server_on_yarn.py starts it so",
    "corral doctor --engine yarn": "needs a Hadoop cluster; tests/engines/yarn/test_doctor.py runs it",
    "corral up && corral doctor": "asks an OpenID provider; tests/endtoend/test_openid_sign_in.py has one",
    "corral doctor --engine kubernetes": "needs a cluster; tests/engines/kubernetes/test_doctor.py runs it",
    'corral login "$(kubectl': "needs a cluster",
    "corral crd": "goes to a cluster; tests/spec/test_crd.py prints it",
    "corral convert digits.yaml | kubectl": "needs a cluster",
    "corral submit -f examples/alnair/base.yaml": "trains with libraries that are not installed here",
    "corral deploy plan": "needs machines that SSH reaches; tests/deploy/test_check_over_ssh.py has some",
    "corral deploy up": "needs machines that SSH reaches; tests/deploy/test_up_on_hosts.py has some",
    "corral deploy check": "needs machines that SSH reaches; tests/deploy/test_check_over_ssh.py has some",
    "corral deploy init --from": "needs another system's list; tests/deploy/test_host_lists.py has them",
    "corral openpai": "needs files of an OpenPAI cluster; tests/endtoend/test_openpai_import.py has them",
}
"""Commands by their beginning: the reason why they do not run here."""


class Block(NamedTuple):
    """One fenced block: the page, the heading above it, and its commands."""

    page: str
    heading: str
    commands: tuple[str, ...]


def pages() -> list[Path]:
    """README and every hand-written page below docs."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks() -> list[Block]:
    """Every fenced block of shell commands."""
    found = []
    for path in pages():
        text = path.read_text()
        for fence in _FENCE.finditer(text):
            if fence[1] in _SHELL:
                headings = re.findall(r"^#+ (.*)$", text[: fence.start()], re.MULTILINE)
                page = path.relative_to(ROOT).as_posix()
                found.append(Block(page, headings[-1] if headings else "", tuple(_commands(fence[2]))))
    return found


def _commands(text: str) -> list[str]:
    """The command lines: all, or where some begin with `$ ` those; a line that ends in a backslash continues."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def why_not_here(command: str) -> str:
    """The reason why a command does not run on one machine; "" when it does."""
    return next((why for beginning, why in ELSEWHERE.items() if command.startswith(beginning)), "")


def calls(command: str) -> list[list[str]]:
    """The words of each call of `corral` in a shell line, without redirections and substitutions."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    found: list[list[str]] = []
    words: list[str] | None = None
    begins = True
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            words, begins = None, word in ("|", "&&", "||", ";", "&", "(")
        elif words is not None:
            words.append(word)
        elif begins and word in ("corral", ".venv/bin/corral"):
            words = []
            found.append(words)
        else:
            begins = False
    return [[word for word in words if word != "…"] for words in found]
