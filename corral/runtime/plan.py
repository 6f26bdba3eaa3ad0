"""Why: the engine tells the runtime what to do in one private file, so nothing of it is in arguments or environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    """What the runtime does around the command; paths are absolute, "" or empty means: not asked for."""

    attempt: str
    command: list[str]
    work: str
    """The task's own folder: code and data go into it."""
    directory: str = ""
    """Where the command runs, `work` if unsaid."""
    owner: int = -1
    """The uid that the folder is given to once it is filled, when the command runs under another one (in a container)."""
    entry_file: str = ""
    """With it the command is a container client: `env`, not our own environment, is the job's, and goes into this file,
    which the shell inside runs."""
    env: dict[str, str] = field(default_factory=dict)
    code_handle: int = -1
    """The open file that holds the code archive (the task's user may not read the blob store)."""
    code_digest: str = ""
    """The SHA-256 of the archive where it is too large to be given: it is fetched from the server."""
    code_target: str = ""
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    storages: list[tuple[str, str, bool]] = field(default_factory=list)
    """URI, folder, and whether it is only read: copied there before the command, if it is there, and back after it."""
    stage_command: list[str] = field(default_factory=list)
    """The program that moves data: followed by SOURCE and DESTINATION, it answers 0 when all is there."""
    barrier: bool = False
    barrier_timeout_seconds: float = 600.0
    resolve: list[str] = field(default_factory=list)
    """The tasks (`worker-0`) whose addresses must be known; `*` is all."""
    openpai: dict[str, Any] = field(default_factory=dict)
    """What OpenPAI's runtime would do for the command: roles, ports, scripts, plug-ins; empty for other jobs."""
    kept_secrets: dict[str, str] = field(default_factory=dict)
    """By name what scripts are completed with and what is delivered in no other way."""
    checkpoint: str = ""
    """The file or folder that changes when the job has saved its work."""
    exit_patterns: bool = False
    log: str = ""
    """Where the command's output is, to look for exit patterns."""
    api_url: str = ""
    api_certificate: str = ""
    """The one certificate (PEM) that the server at `api_url` shows; "" is any that this machine trusts."""
    token_file: str = ""
    secrets_file: str = ""
    job_secret_file: str = ""
    result_file: str = ""
    pass_signals: bool = False
    """Whether signals come to the runtime alone (it is a container's first process), and the command must be told."""
    shared: str = ""
    """The folder that is shared with the command's container, when the runtime is in one beside it."""
    program: list[str] = field(default_factory=list)
    """The words that run the runtime where the command is; empty: those that ran this one."""

    @classmethod
    def read(cls, path: str) -> Plan:
        """The plan in a file, which is removed.

        Raises OSError, ValueError.
        """
        with open(path, encoding="utf-8") as file:
            raw: dict[str, Any] = json.load(file)
        os.unlink(path)
        for pairs in ("inputs", "outputs"):
            raw[pairs] = [(str(first), str(second)) for first, second in raw.get(pairs, [])]
        raw["storages"] = [(str(uri), str(path), bool(kept)) for uri, path, kept in raw.get("storages", [])]
        return cls(**raw)


def take(path: str) -> str:
    """The content of a private file, which is removed; "" when there is none."""
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        content = file.read()
    os.unlink(path)
    return content
