"""Write and read an error block: YAML between two marks that tells programs why a task failed.

The block follows the sentence for people in the diagnostics of a task's end.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

START, END = "[PAI_RUNTIME_ERROR_START]", "[PAI_RUNTIME_ERROR_END]"
UNKNOWN_FAILURE = 255
"""The exit code of a task whose command failed for an unknown reason."""
COMMAND_INVALID = 220
KNOWN_CODES = frozenset(
    (128, 130, 131, 132, 134, 135, 136, 137, 139, 141, 143, 200, 201, 210, *range(220, 227), *range(228, 236))
) | frozenset(range(249, 257))
"""The positive codes with a row in the exit table, and FrameworkController's three."""
_NOT_FOUND = 127
_NO_COMMAND = re.compile(r"command (?:was )?not found", re.IGNORECASE)
_CODE_IN_BLOCK = re.compile(r"\[PAI_RUNTIME_ERROR_START\]\nexitCode: (\d+)\n")
_MOST_LINE = 300
_MOST_LOG = 1024
_INDENT = "  "
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class RuntimeFault(NamedTuple):
    """The runtime's knowledge of a failure; empty text and None mean unknown."""

    exit_code: int
    trigger: str = ""
    """The phrase of the pattern that matched, or the step of the runtime that failed."""
    user_exit_code: int | None = None
    """The exit code of the command itself."""
    user_line: str = ""
    """The line of the user's log that matched."""
    platform_line: str = ""
    """The runtime's own message."""
    user_log: str = ""
    platform_log: str = ""


def container_code(code: int, log: str = "") -> int:
    """The exit code in the block of a task whose command ended with `code`; `log` is its output.

    A code with a row in the exit table, 0 and negative codes are unchanged. 127 of a shell that found no command
    becomes 220 (the user's failure); any other code becomes 255 (unknown).
    """
    if code <= 0 or code in KNOWN_CODES:
        return code
    return COMMAND_INVALID if code == _NOT_FOUND and _NO_COMMAND.search(log) else UNKNOWN_FAILURE


def told_code(code: int, diagnostics: str) -> int:
    """The exit code that programs are told for an end stored as `code` with `diagnostics`.

    A block in the diagnostics decides, because the runtime had the log's whole end.
    """
    block = _CODE_IN_BLOCK.search(diagnostics)
    if block is not None and code == _NOT_FOUND and int(block[1]) in KNOWN_CODES:
        return int(block[1])
    return container_code(code, diagnostics)


def error_block(fault: RuntimeFault) -> str:
    """Format a failure as a block, with its marks."""
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
    """The diagnostics without the block, for people."""
    before, start, rest = diagnostics.partition(START)
    after = rest.partition(END)[2] if start else ""
    return f"{before.rstrip()}{after}".strip()


def read_error(diagnostics: str) -> dict[str, Any] | None:
    """The fields of the block; None if there is none, or if its end is cut off."""
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
    """Quote text for YAML as JSON, with characters escaped that only YAML rejects; keep the end of a long text."""
    shown = json.dumps(text if len(text) <= most else f"...{text[-most:]}", ensure_ascii=False)
    shown = _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", shown)
    return shown.replace("[PAI_RUNTIME_ERROR_", "\\u005bPAI_RUNTIME_ERROR_")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
