"""Why: OpenPAI's clients find out why a task failed from a block of YAML between two marks; here it is written and read.

It stands behind the sentence that people read, in what the task's end says of itself.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

START, END = "[PAI_RUNTIME_ERROR_START]", "[PAI_RUNTIME_ERROR_END]"
UNKNOWN_FAILURE = 255
"""OpenPAI's runtime ends a container with it whose command failed in no way that it knows."""
COMMAND_INVALID = 220
KNOWN_CODES = frozenset(
    (128, 130, 131, 132, 134, 135, 136, 137, 139, 141, 143, 200, 201, 210, *range(220, 227), *range(228, 236))
) | frozenset(range(249, 257))
"""The positive codes with a row of their own in OpenPAI's table, and the three of FrameworkController."""
_NOT_FOUND = 127
_NO_COMMAND = re.compile(r"command (?:was )?not found", re.IGNORECASE)
_CODE_IN_BLOCK = re.compile(r"\[PAI_RUNTIME_ERROR_START\]\nexitCode: (\d+)\n")
_MOST_LINE = 300
_MOST_LOG = 1024
_INDENT = "  "
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class RuntimeFault(NamedTuple):
    """What the runtime knows of a failure; empty text and None stand for nothing known."""

    exit_code: int
    trigger: str = ""
    """What recognised it: the phrase of a pattern, or the step of the runtime that failed."""
    user_exit_code: int | None = None
    """What the command itself ended with."""
    user_line: str = ""
    """The line of the user's log that told."""
    platform_line: str = ""
    """What the runtime itself said."""
    user_log: str = ""
    platform_log: str = ""


def container_code(code: int, log: str = "") -> int:
    """The exit code that OpenPAI's runtime gives a container whose command ended with `code`; `log` is what it printed.

    A code with a row in OpenPAI's table, 0 and negative codes stay as they are. 127 of a shell that found no command is
    220 (the user's failure); any other code is 255 (unknown).
    """
    if code <= 0 or code in KNOWN_CODES:
        return code
    return COMMAND_INVALID if code == _NOT_FOUND and _NO_COMMAND.search(log) else UNKNOWN_FAILURE


def told_code(code: int, diagnostics: str) -> int:
    """The exit code that OpenPAI's clients are told of an end that is kept as `code` with `diagnostics`.

    The runtime read the whole end of the log, so its block decides where there is one.
    """
    block = _CODE_IN_BLOCK.search(diagnostics)
    if block is not None and code == _NOT_FOUND and int(block[1]) in KNOWN_CODES:
        return int(block[1])
    return container_code(code, diagnostics)


def error_block(fault: RuntimeFault) -> str:
    """The block, marks included."""
    lines = [START, f"exitCode: {fault.exit_code}"]
    if fault.trigger:
        lines.append(f"trigger: {_quoted(fault.trigger, _MOST_LINE)}")
    if fault.user_exit_code is not None:
        lines.append(f"originUserExitCode: {fault.user_exit_code}")
    if fault.user_line:
        lines.append(f"matchedUserLogString: {_quoted(fault.user_line, _MOST_LINE)}")
    if fault.platform_line:
        lines.append(f"matchedPlatformLogString: {_quoted(fault.platform_line, _MOST_LINE)}")
    if fault.user_log or fault.platform_log:
        lines.append("errorLogs:")
        lines += [f"{_INDENT}user: {_quoted(fault.user_log, _MOST_LOG)}"] if fault.user_log else []
        lines += [f"{_INDENT}platform: {_quoted(fault.platform_log, _MOST_LOG)}"] if fault.platform_log else []
    return "\n".join([*lines, END])


def sentence(diagnostics: str) -> str:
    """What stands around the block, for people."""
    before, start, rest = diagnostics.partition(START)
    after = rest.partition(END)[2] if start else ""
    return f"{before.rstrip()}{after}".strip()


def read_error(diagnostics: str) -> dict[str, Any] | None:
    """The fields of the block; None where there is none, or where its end is cut off."""
    _, start, rest = diagnostics.partition(START)
    text, end, _ = rest.partition(END)
    if not start or not end:
        return None
    found: dict[str, Any] = {}
    inner = found
    for line in text.strip().split("\n"):
        name, colon, value = line.strip().partition(":")
        if not colon:
            continue
        if not line.startswith(_INDENT):
            inner = found
        if value.strip():
            inner[name] = _value(value.strip())
        else:
            inner = found[name] = {}
    return found


def _quoted(text: str, most: int) -> str:
    """YAML's double-quoted text is JSON's, without what only YAML takes amiss; of what is too long the end tells most."""
    shown = json.dumps(text if len(text) <= most else f"...{text[-most:]}", ensure_ascii=False)
    shown = _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", shown)
    return shown.replace("[PAI_RUNTIME_ERROR_", "\\u005bPAI_RUNTIME_ERROR_")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
