"""The plan: the engine's instructions to the runtime, in one private file instead of arguments or environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    """The runtime's steps around the command; paths are absolute, and "" or empty means not requested."""

    attempt: str
    command: list[str]
    work: str
    """The task's own folder, for code and data."""
    directory: str = ""
    """The command's working directory; "" is `work`."""
    owner: int = -1
    """The uid that gets the folder once it is filled, if the command runs as another user (in a container)."""
    entry_file: str = ""
    """The script that the shell in a container runs, if the command is a container client.

    Then `env`, not the runtime's own environment, has the job's variables, and is written to this file.
    """
    env: dict[str, str] = field(default_factory=dict)
    code_handle: int = -1
    """The open file with the code archive (the task's user may not read the blob store)."""
    code_digest: str = ""
    """The SHA-256 of an archive that is too large to be passed: it is fetched from the server."""
    code_target: str = ""
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)
    storages: list[tuple[str, str, bool]] = field(default_factory=list)
    """URI, folder, and whether it is read-only: copied to the folder before the command, and back after it."""
    stage_command: list[str] = field(default_factory=list)
    """The program that moves data: called with SOURCE and DESTINATION, it exits with 0 on success."""
    barrier: bool = False
    barrier_timeout_seconds: float = 600.0
    resolve: list[str] = field(default_factory=list)
    """The tasks (`worker-0`) whose addresses must be known; `*` is all."""
    plug_in: str = ""
    """The module of the plug-in that prepares the task (`corral.runtime.plug_in`)."""
    plug_in_steps: dict[str, Any] = field(default_factory=dict)
    """The framework's instructions for the plug-in."""
    error_block: bool = False
    """Whether a failure is also reported as an error block (`corral.runtime.error_block`), for programs that read it."""
    kept_secrets: dict[str, str] = field(default_factory=dict)
    """By name, secrets for completing scripts, which are delivered in no other way."""
    checkpoint: str = ""
    """The checkpoint's file or folder, whose change shows that work was saved."""
    report: dict[str, Any] | None = None
    """Where reports of the work are found beside `corral.report`: `file`, `pattern`, `steps`; None: nothing is watched."""
    notebook: str = ""
    """The path of the task's Jupyter server, whose kernels show whether somebody works in it; "" is none."""
    keeps_files: bool = False
    """Whether files that are in the working folder already are kept when the code is unpacked."""
    profile: bool = False
    """Whether PyTorch in the task is told to ask for the traces that `corral profile` wants."""
    profiler_folder: str = ""
    """The folder, shared with the command's container, in which a sidecar answers PyTorch."""
    preflight: dict[str, Any] | None = None
    """What is checked before the command: `checks`, `seconds`, `required`. None: nothing."""
    compile_cache: dict[str, Any] | None = None
    """What the cache of compiled code depends on beside the node: `image`, `devices`; and its `folder`. None: no cache."""
    exit_patterns: bool = False
    log: str = ""
    """The command's log, to search for exit patterns."""
    api_url: str = ""
    api_certificate: str = ""
    """The only certificate (PEM) accepted from the server at `api_url`; "" means the machine's trust store."""
    token_file: str = ""
    secrets_file: str = ""
    job_secret_file: str = ""
    result_file: str = ""
    pass_signals: bool = False
    """Whether only the runtime gets signals (it is a container's first process) and must pass them on."""
    shared: str = ""
    """The folder shared with the command's container, if the runtime is a sidecar."""
    program: list[str] = field(default_factory=list)
    """The words that run the runtime in the command's container; empty: those of this process."""

    @classmethod
    def read(cls, path: str) -> Plan:
        """Read a plan from a file and remove the file.

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
    """Read and remove a private file; "" if `path` is empty."""
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        content = file.read()
    os.unlink(path)
    return content
