"""The text that does a step: the functions of `do.sh`, and the call of one of them."""

from __future__ import annotations

import base64
import shlex

from corral.deploy.steps.plan import INSTALL
from corral.deploy.steps.step import Step

_END = "CORRAL-CONTENT-ENDS"


def script_of(functions: str, step: Step, *, from_folder: bool) -> bytes:
    """The script of a step that has a call. The brace around it closes at its end: cut anywhere, it does nothing."""
    words = list(step.call)
    if words[0] == INSTALL:
        words.insert(1, "folder" if from_folder else "sources")
    call = " ".join(map(shlex.quote, words))
    if step.content:
        call += f" <<'{_END}'\n{base64.encodebytes(step.content).decode('ascii')}{_END}"
    return _alone(functions, call)


def alone_script_of(functions: str, *words: str) -> bytes:
    """The script of a call that waits for the end of any other."""
    return _alone(functions, " ".join(map(shlex.quote, words)))


def _alone(functions: str, call: str) -> bytes:
    return f"{{\n{functions}\nmain() {{\nalone || return\n{call}\n}}\nmain </dev/null 2>&1\n}}\n".encode()


def question_of(functions: str, *words: str) -> bytes:
    """The script of a call that changes nothing another step minds, so it waits for none."""
    return f"{{\n{functions}\n{' '.join(map(shlex.quote, words))} </dev/null\n}}\n".encode()
