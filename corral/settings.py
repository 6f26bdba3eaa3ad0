"""Why: every value that an administrator may choose stands in one class, so the reference page cannot miss one."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_PORT = 8470


def default_data_folder() -> Path:
    """`corral` in the folder that the XDG base directory specification gives for a user's data."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "corral"


class Settings(BaseSettings):
    """Corral's settings: from the command line, else from `CORRAL_…` variables, else these defaults."""

    model_config = SettingsConfigDict(env_prefix="CORRAL_", extra="ignore", frozen=True)

    data_folder: Path = Field(
        default_factory=default_data_folder,
        description="Where the embedded store, keys, logs and the local engine's records live, private to its owner; "
        "`$XDG_DATA_HOME/corral`, else `~/.local/share/corral`.",
    )
    database_url: str = Field(
        default="",
        description="`postgresql://…` for an external store; empty for SQLite inside the data folder.",
    )
    host: str = Field(default="127.0.0.1", description="The address the API and the portal listen on.")
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535, description="The port they listen on; 0 takes a free one.")
    advertise: str = Field(
        default="",
        description="The URL under which tasks reach the server; empty: the address it listens on.",
    )
    tls_certificate: Path | None = Field(default=None, description="PEM file of the certificate chain: serve HTTPS.")
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's private key.")
    cluster: Path | None = Field(
        default=None,
        description="Configuration documents for the first start (Cluster, Queue, Policy); what was applied since wins. "
        "Empty: what is stored, else this machine as found.",
    )
    trust_users: bool = Field(
        default=False,
        description="Allow several accounts although tasks cannot run under separate system users.",
    )
    administrator: str = Field(
        default_factory=getpass.getuser,
        description="The account that the first sign-in link opens, mapped to the system user that starts the server.",
    )
    port_range_start: int = Field(
        default=20000, ge=1024, le=65000, description="The first of the ports that local tasks are given."
    )
    port_range_end: int = Field(
        default=29999, ge=1024, le=65535, description="The last of the ports that local tasks are given."
    )
    grace_seconds: float = Field(
        default=30.0, ge=0, description="How long a stopped task may take before it is killed, unless its job says."
    )
    conflict_delay_minimum: float = Field(
        default=60.0, ge=0, description="The shortest wait in seconds before a retry after a transient conflict."
    )
    conflict_delay_maximum: float = Field(
        default=900.0, ge=0, description="The longest wait in seconds before a retry after a transient conflict."
    )
    transient_floor: float = Field(default=0.0, ge=0, description="A wait in seconds before every transient retry.")
    start_deadline: float = Field(
        default=600.0,
        ge=0,
        description="How many seconds a placed task may take to start before it counts as a conflict; 0 is no limit.",
    )
    not_ready_seconds: float = Field(
        default=60.0,
        ge=0,
        description="How long a node may be not ready before the jobs on it are moved, as their `badHardware` says.",
    )
    retention_days: float = Field(
        default=30.0, ge=0, description="How long ended jobs keep their tasks and logs; 0 keeps them for ever."
    )
    log_limit_bytes: int = Field(
        default=0,
        ge=0,
        description="How much of a running task's log is kept, the newest of each stream; 0 keeps everything.",
    )
    code_limit_bytes: int = Field(
        default=512 * 1024**2, ge=1024, description="The largest code archive that may be uploaded."
    )
    token_days: float = Field(default=90.0, gt=0, description="How long a token made by signing in is valid.")
    log_level: str = Field(default="info", description="debug, info, warning or error.")

    @property
    def store_url(self) -> str:
        """The store's URL: the external database, or the SQLite file of the data folder."""
        return self.database_url or f"sqlite:///{self.data_folder / 'corral.db'}"

    @property
    def run_folder(self) -> Path:
        """Where the sockets and the supervisor's record are."""
        return self.data_folder / "run"

    @property
    def scheme(self) -> str:
        """`https` with a certificate, else `http`."""
        return "https" if self.tls_certificate else "http"
