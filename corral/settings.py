"""The server's settings: every option that an administrator may choose."""

from __future__ import annotations

import getpass
import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from corral.rotation import DEFAULT_LOG_BYTES

DEFAULT_PORT = 8470
_ENGINE: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def default_data_folder() -> Path:
    """The folder `corral` in the user's data folder by the XDG base directory specification."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "corral"


def _names(given: Any) -> Any:
    """The engines named in a variable: separated by commas, or a list in JSON."""
    if not isinstance(given, str):
        return given
    return json.loads(given) if given.lstrip().startswith("[") else given.replace(",", " ").split()


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("name an engine, such as local")
    if wrong := [name for name in names if not _ENGINE.fullmatch(name)]:
        raise ValueError(f"{wrong[0][:50]!r} is no name of an engine")
    return tuple(dict.fromkeys(names))


class Settings(BaseSettings):
    """Corral's settings: command-line options override `CORRAL_…` variables, which override these defaults."""

    # Options of engines and tenants are carried along: those declare and check them.
    model_config = SettingsConfigDict(env_prefix="CORRAL_", extra="allow", frozen=True)

    data_folder: Path = Field(
        default_factory=default_data_folder,
        description="Where the embedded store, keys, logs and the local engine's records live, private to its owner; "
        "`$XDG_DATA_HOME/corral`, else `~/.local/share/corral`.",
    )
    database_url: str = Field(
        default="",
        description="`postgresql://…` for an external store; empty for SQLite inside the data folder.",
    )
    blobs: str = Field(
        default="",
        description="Where logs and code are kept: a storage URI (`s3://BUCKET/PREFIX`, `hdfs://…`, `webhdfs://…`, "
        "`swebhdfs://…`, `file:///…`), opened with what the environment says (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, "
        "`HADOOP_…`). Empty: in the data folder. What tasks of this machine still write stays in the data folder until "
        "they end.",
    )
    host: str = Field(default="127.0.0.1", description="The address the API and the portal listen on.")
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535, description="The port they listen on; 0 takes a free one.")
    advertise: str = Field(
        default="",
        description="The URL under which tasks reach the server; empty: the address it listens on. Where `tls_certificate` "
        "names its host, tasks accept that certificate alone.",
    )
    control_address: str = Field(
        default="",
        pattern=r"^$|^([0-9A-Za-z.-]+|\[?[0-9a-fA-F:.]+\]?):[0-9]{1,5}$",
        description="With replicas: `HOST:PORT` of this machine where the fronts of the others reach this control, by "
        "mutual TLS between those who have the same `key`. It needs PostgreSQL, and the same `blobs` URI for all (or one "
        "shared folder `blobs` in their data folders).",
    )
    tls_certificate: Path | None = Field(default=None, description="PEM file of the certificate chain: serve HTTPS.")
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's private key.")
    trusted_proxies: str = Field(
        default="",
        description="Addresses and networks of the reverse proxies in front of the server, separated by commas, such as "
        "`127.0.0.1,10.0.0.0/8`: only their `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. Empty: none.",
    )
    connections: int = Field(
        default=4096,
        ge=16,
        description="The most connections that may be open at once. Further ones get a 503, and so does each one for which "
        "the system allows no open file.",
    )
    strangers_per_address: int = Field(
        default=256,
        ge=0,
        description="The most open connections of one address without a sign-in, except those of `trusted_proxies`; "
        "further ones get a 429. 0 is no limit.",
    )
    connections_per_user: int = Field(
        default=1024,
        ge=0,
        description="The most connections that may be open at once for one user, or for the tasks of one job. A connection "
        "counts for the one whose call it carried last; those of `trusted_proxies` do not count. Further ones "
        "get a 429. 0 is no limit.",
    )
    reading_seconds: float = Field(
        default=60.0,
        gt=0,
        description="A reader (of events, a log, a command, a forwarded port) that takes less than 8 KiB of "
        "the data waiting "
        "for it in this number of seconds is cut off.",
    )
    events_per_user: int = Field(default=100, ge=1, description="The most event streams that one user may have open.")
    logs_per_user: int = Field(default=100, ge=1, description="The most logs that one user may read at once.")
    exec_per_user: int = Field(default=50, ge=1, description="The most commands in tasks that one user may have open.")
    forwards_per_user: int = Field(
        default=200, ge=1, description="The most connections to ports of tasks that one user may have open."
    )
    streams: int = Field(
        default=3000,
        ge=1,
        description="The most streams of all kinds that may be open at once; further ones get a 503.",
    )
    cluster: Path | None = Field(
        default=None,
        description="Configuration documents for the first start (Cluster, Queue, Policy, Storage, Prices). Documents that "
        "were applied later take precedence. Empty: the stored ones, else this machine as found.",
    )
    engine: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names), AfterValidator(_distinct)] = Field(
        default=("local",),
        description="Where tasks run, one engine or several, separated by commas: `local` is as processes of this machine, "
        "`kubernetes` as pods of a Kubernetes cluster; plug-ins bring others.",
    )
    engine_take_over: bool = Field(
        default=False,
        description="Start although tasks of the database ran on another machine, in another data folder or on another "
        "engine that is gone for good: they count as lost and are started again. Without it such a server is refused.",
    )
    trust_users: bool = Field(
        default=False,
        description="Allow several accounts although tasks cannot run under separate system users.",
    )
    administrator: str = Field(
        default_factory=getpass.getuser,
        description="The account that the first sign-in link opens, mapped to the system user that starts the server.",
    )
    grace_seconds: float = Field(
        default=30.0,
        ge=0,
        description="Seconds that a stopped task may take to end before it is killed, if its job names no other number.",
    )
    conflict_delay_minimum: float = Field(
        default=60.0, ge=0, description="The shortest wait in seconds before a retry after a transient conflict."
    )
    conflict_delay_maximum: float = Field(
        default=900.0, ge=0, description="The longest wait in seconds before a retry after a transient conflict."
    )
    transient_floor: float = Field(default=0.0, ge=0, description="A wait in seconds before every transient retry.")
    retry_first: float = Field(
        default=1.0, ge=0, description="Seconds before the first retry in a row; each further one waits twice as long."
    )
    retry_most: float = Field(default=300.0, ge=0, description="The longest of these waits, in seconds.")
    retry_reset: float = Field(
        default=600.0, ge=0, description="An attempt that ran for this many seconds resets the wait to `retry_first`."
    )
    retry_keeps_place: float = Field(
        default=60.0,
        ge=0,
        description="A task keeps its devices during a wait for its retry of at most this many seconds.",
    )
    start_deadline: float = Field(
        default=600.0,
        ge=0,
        description="Seconds that a placed task may take to start before it counts as a conflict; 0 is no limit.",
    )
    not_ready_seconds: float = Field(
        default=60.0,
        ge=0,
        description="Seconds that a node may be not ready before the jobs on it are moved, as their `badHardware` says.",
    )
    retention_days: float = Field(
        default=30.0, ge=0, description="Days for which ended jobs keep their tasks and logs; 0 keeps them forever."
    )
    log_limit_bytes: int = Field(
        default=10 * 1024**3,
        ge=0,
        description="The most bytes of a running task's log that are kept, the newest of each stream; 0 keeps everything.",
    )
    code_limit_bytes: int = Field(
        default=512 * 1024**2, ge=1024, description="The largest code archive that may be uploaded."
    )
    code_bytes_per_user: int = Field(
        default=20 * 1024**3,
        ge=0,
        description="The most bytes of uploaded code that one user may keep at once; 0 is no limit.",
    )
    compile_cache: Literal["none", "job", "user"] = Field(
        default="none",
        description="What `compileCache` is for jobs that do not set it, in queues that do not either: `none`, `job` or "
        "`user`.",
    )
    cache_limit_bytes: int = Field(
        default=1024**3, ge=1024, description="The largest bundle of compiled code that a task may publish."
    )
    cache_bytes_per_user: int = Field(
        default=10 * 1024**3,
        ge=0,
        description="The most bytes of compiled code kept of one user; the least recently used goes first. 0 is no limit.",
    )
    profile_bytes_per_user: int = Field(
        default=1024**3,
        ge=0,
        description="The most bytes of profiles kept of one user's jobs; the oldest go first. 0 is no limit.",
    )
    profile_days: float = Field(default=30.0, gt=0, description="Days for which a profile of a job is kept.")
    tasks_per_user: int = Field(
        default=20_000,
        ge=0,
        description="The most tasks of the waiting and running jobs of one user together; 0 is no limit.",
    )
    worker_processes: int = Field(
        default=2,
        ge=1,
        le=64,
        description="The number of processes that check code archives and read large documents, each with limits of memory "
        "and processor time.",
    )
    worker_queue: int = Field(
        default=16,
        ge=0,
        le=1000,
        description="The most requests that may wait for one of these processes; further ones get a 503.",
    )
    token_days: float = Field(default=90.0, gt=0, description="Days for which a token made by signing in is valid.")
    fresh_sign_in_minutes: float = Field(
        default=10.0,
        ge=0,
        description="Minutes after a sign-in in which users may set their password without the old one.",
    )
    public_url: str = Field(
        default="",
        pattern=r"^$|^https?://[^?#]+$",
        description="The URL under which browsers reach the server; empty: `advertise`, else the address of each call.",
    )
    services_domain: str = Field(
        default="",
        description="A domain whose names all lead to this server, such as `jobs.example.org`: each job has an origin "
        "below it, where browsers open its notebook and other services. It needs a `public_url` with `https://` that "
        "is not below it. Empty: services are opened only where browsers reach the server by a loopback address.",
    )
    job_ports: str = Field(
        default="",
        description="Ports of this server, such as `20000-20099`: each job whose services are opened has one of them as "
        "its origin, where browsers do not reach the server by a loopback address and there is no `services_domain`. It "
        "needs a certificate (`tls_certificate`); services have no cookies there. Empty: none.",
    )
    oidc_issuer: str = Field(
        default="",
        description="Sign-in with OpenID Connect: the provider's issuer, an `https://` URL under which it has "
        "`/.well-known/openid-configuration`. Empty: none. At the provider, `PUBLIC_URL/api/v3/oidc/callback` is the "
        "redirect URI, `PUBLIC_URL/sign-in` where it sends browsers after a sign-out, and "
        "`PUBLIC_URL/api/v3/oidc/frontchannel-logout` its front-channel logout URI.",
    )
    oidc_client_id: str = Field(default="", description="The client id of this server at the provider.")
    oidc_client_secret_file: Path | None = Field(
        default=None, description="A file of the client's secret; none for a public client (PKCE is always used)."
    )
    oidc_redirect_url: str = Field(
        default="",
        pattern=r"^$|^https?://[^?#]+$",
        description="The redirect URI, if the provider has another one registered. Calls to "
        "`/api/v2/authn/oidc/return` and "
        "`/rest-server/api/v1/authn/oidc/return` are answered alike.",
    )
    oidc_scopes: str = Field(
        default="openid profile email", description="The scopes that are asked for, separated by spaces."
    )
    oidc_user_claim: str = Field(
        default="preferred_username",
        description="The claim with the user name; the part before an `@` is taken. A dot in its name leads "
        "into an object.",
    )
    oidc_groups_claim: str = Field(
        default="",
        description="The claim with the groups, such as `groups` or `realm_access.roles`. A group is matched by its "
        "external name, else by its own name. Each sign-in sets the account's groups to those of the claim; without the "
        "claim to none. Empty: administrators manage groups.",
    )
    oidc_admin_groups: str = Field(
        default="",
        description="Groups of that claim whose members are administrators, separated by commas; no other account is one. "
        "Empty: the claim does not decide about administrators.",
    )
    oidc_allowed_groups: str = Field(
        default="",
        description="Groups of that claim whose members may sign in, separated by commas; empty: all users may.",
    )
    oidc_link_by_name: bool = Field(
        default=False,
        description="Whether the first sign-in under the name of an unlinked account takes that account, unless it has a "
        "password or is an administrator's. Without it, such a sign-in is refused.",
    )
    oidc_label: str = Field(
        default="", max_length=60, description="What the portal's button says; empty: `Sign in with` and the host."
    )
    mail_server: str = Field(
        default="",
        pattern=r"^$|^smtps?://\S+$",
        description="The server that sends mail to people about their jobs: `smtp://USER@HOST:PORT`, or `smtps://`. "
        "Empty: no mail.",
    )
    mail_from: str = Field(default="", description="The sender of the mail, such as `corral@example.org`.")
    mail_password_file: Path | None = Field(default=None, description="A file of the password of the server's user.")
    notify_private: str = Field(
        default="",
        description="Private networks to which notifications may be sent, such as `10.20.0.0/16, fd00:1::/48`. Webhooks "
        "elsewhere must have public addresses and begin with `https://`.",
    )
    report_mail_to: str = Field(
        default="",
        description="Addresses that are mailed a report each week, separated by commas: utilisation, fairness, idle "
        "devices, efficiency (docs/efficiency.md). Empty: nobody.",
    )
    report_mail_at: str = Field(
        default="monday 07:00", description="When the report of the last whole week is made: a day and a time in UTC."
    )
    alert_rules: Path | None = Field(
        default=None,
        description="A file of alert rules in Prometheus' format that the scheduler evaluates every 30 s over its own "
        "metrics (docs/alerts.md). Empty: no rules.",
    )
    alert_actions: Path | None = Field(
        default=None,
        description="A file of routes that says which alerts stop or tag jobs and cordon nodes (docs/alerts.md). Empty: "
        "alerts do nothing.",
    )
    calls_per_minute: int = Field(
        default=0, ge=0, description="The most calls of one user in a minute at Corral's own API; 0 is no limit."
    )
    lists_per_minute: int = Field(
        default=0, ge=0, description="The most of these calls that may be lists of jobs; 0 is no limit of their own."
    )
    submits_per_hour: int = Field(
        default=10_000,
        ge=0,
        description="The most jobs that one user may submit in an hour at Corral's own API, an array counting as one; 0 is "
        "no limit.",
    )
    server_log_bytes: int = Field(
        default=DEFAULT_LOG_BYTES,
        ge=0,
        description="The largest size of each of the server's own logs (`logs/` in the data folder: front, control, "
        "supervisor) before it is moved aside. Three such files are kept of each. 0 never moves them.",
    )
    journal_days: float = Field(
        default=14.0,
        ge=0,
        description="Days for which the journal of the scheduler's inputs and decisions is kept (`journal/` in the data "
        "folder), for `corral journal export` and `corral replay`; 0 keeps none.",
    )
    journal_bytes: int = Field(
        default=10**9, ge=0, description="The most bytes of the journal; the oldest of it is deleted first."
    )
    series: bool = Field(
        default=True,
        description="Keep the metrics of the scheduler and what jobs report over time (`series.db` in the data folder, at "
        "most 400 MB), for `corral metrics`.",
    )
    prometheus: str = Field(
        default="",
        pattern=r"^$|^https?://\S+$",
        description="The address of a Prometheus that scrapes this server, such as `http://prometheus:9090`: `corral "
        "metrics` reads there what is more than 90 days old. Empty: nothing is read.",
    )
    prometheus_token_file: Path | None = Field(
        default=None, description="A file with the bearer token for that Prometheus, or USER:PASSWORD, if it needs one."
    )
    monitoring_token_file: Path | None = Field(
        default=None,
        description="A file with a token of 16 to 1,000 characters, with which a Prometheus reads the whole page of "
        "`/metrics` and its Alertmanager tells alerts; it is good for nothing else.",
    )
    locality_seconds: float = Field(
        default=1.0,
        ge=0,
        le=60,
        description="Seconds that a new job with inputs at `hdfs://` or `webhdfs://` waits at most until its place is "
        "chosen, so that the NameNode can say where they are; 0 does not ask. Asked are those of the engine `yarn` and "
        "of `name_nodes`.",
    )
    name_nodes: str = Field(
        default="",
        description="URLs of the WebHDFS of a NameNode, `http://HOST:9870`, separated by commas for a pair: it is asked "
        "where the inputs of jobs are, as `HADOOP_USER_NAME` or the server's own user.",
    )
    forecast_seconds: float = Field(
        default=3.0,
        ge=0.1,
        le=3600,
        description="Seconds between the beginnings of two forecasts of when jobs start (`corral explain`, `corral line`), "
        "while somebody asks and the state changes. Those that take less than a fifth of it follow each other sooner.",
    )
    metrics_seconds: float = Field(
        default=5.0,
        ge=0,
        le=3600,
        description="Seconds between two rounds in which a server with tasks of its own machine measures them, the machine "
        "and its devices (docs/monitoring.md); more where rounds would take more than half a percent of a core. 0 measures "
        "nothing.",
    )
    metrics_parts: str = Field(
        default="devices,tasks,machine",
        description="What is measured, separated by commas. Leave out `devices` where a vendor's exporter is scraped, and "
        "`machine` where a node exporter is.",
    )
    metrics_dcgm_exporter: str = Field(
        default="",
        description="Where DCGM exporter tells of this machine's GPUs, such as `http://127.0.0.1:9400/metrics`. It is read "
        "instead of NVIDIA's library (docs/monitoring.md).",
    )
    metrics_amd_exporter: str = Field(
        default="",
        description="Where AMD's device metrics exporter tells of this machine's GPUs, such as "
        "`http://127.0.0.1:5000/metrics`. It is read instead of the kernel's files (docs/monitoring.md).",
    )
    metrics_node_exporter: str = Field(
        default="",
        description="Where node exporter tells of this machine, such as `http://127.0.0.1:9100/metrics`. It is read "
        "instead of the kernel's files (docs/monitoring.md).",
    )
    metrics_dcgm_folder: Path | None = Field(
        default=None,
        description="The folder in which DCGM exporter looks for the jobs of each GPU (its `--hpc-job-mapping-dir`). Files "
        "there whose names are numbers are Corral's alone.",
    )
    metrics_amd_folder: Path | None = Field(
        default=None,
        description="The folder in which AMD's device metrics exporter looks for the job of each GPU "
        "(`/var/run/exporter`). Files there whose names are numbers are Corral's alone.",
    )
    agents: str = Field(
        default="",
        description="Where the agents of other machines (`corral node-agent`) are asked for their figures, separated by "
        "commas: `http://HOST:PORT`. Each network address of a host is an agent; with `{node}` for the host there is one "
        "for each node (docs/monitoring.md).",
    )
    agents_token_file: Path | None = Field(
        default=None,
        description="The file of the bearer token with which agents are asked: that of their --token-file.",
    )
    health: str = Field(
        default="cordon",
        pattern="^(off|watch|prefer|cordon)$",
        description="What is done about nodes with signs of trouble: `off` nothing, `watch` signs and scores are written "
        "down, `prefer` suspected nodes come last as well, `cordon` bad ones are closed as well.",
    )
    health_half_life_hours: float = Field(
        default=6.0, gt=0, le=8760, description="Hours in which the score of a node or device halves."
    )
    health_prefer_score: float = Field(
        default=4.0, gt=0, description="The score from which a node is suspected, and takes tasks after all others."
    )
    health_cordon_score: float = Field(
        default=10.0,
        gt=0,
        description="The score from which a node is closed; one failed start is 3, a node's fault 4.",
    )
    health_failed_starts: int = Field(
        default=3,
        ge=2,
        le=100,
        description="Different jobs whose starts fail one after another until a node is closed.",
    )
    health_most_cordoned: int = Field(
        default=2, ge=0, description="Nodes closed for their health at once at most, and never more than half of all."
    )
    health_validation: str = Field(
        default="built-in",
        description="The job file that validates closed nodes, `built-in` for the built-in check, `suite:NAME` for a "
        "benchmark suite (`quick`, `full`, `devices` or a file), or `none`.",
    )
    health_checks: Path | None = Field(
        default=None,
        description="A folder of check scripts (exit 0: well, 1: a problem, other: unknown), run for nodes of the local "
        "engine. It must be root's or the server's own, and not writable by others.",
    )
    health_check_seconds: float = Field(
        default=60.0, ge=1, description="Seconds between two rounds of the check scripts."
    )
    health_check_limit_seconds: float = Field(
        default=10.0, gt=0, le=3600, description="Seconds that a check script may take."
    )
    log_level: str = Field(default="info", description="debug, info, warning or error.")

    @property
    def of_others(self) -> dict[str, Any]:
        """The options given for engines and tenants, which declare them."""
        return dict(self.model_extra or {})

    @property
    def store_url(self) -> str:
        """The store's URL: the external database, or the SQLite file of the data folder."""
        return self.database_url or f"sqlite:///{self.data_folder / 'corral.db'}"

    @property
    def run_folder(self) -> Path:
        """The folder of the sockets and the supervisor's record."""
        return self.data_folder / "run"

    @property
    def control_endpoint(self) -> tuple[str, int]:
        """The host and port of `control_address`."""
        host, _, port = self.control_address.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def leader_address(self) -> str:
        """The address of this control in the leadership row, while it leads."""
        return _joined(*self.control_endpoint) if self.control_address else str(self.run_folder / "control.sock")

    @property
    def address(self) -> str:
        """The URL of the listening address."""
        return f"{self.scheme}://{_joined(self.host, self.port)}"

    @property
    def scheme(self) -> str:
        """`https` with a certificate, else `http`."""
        return "https" if self.tls_certificate else "http"


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
