"""The JSON shapes of jobs, machines and accounts in the API.

The service builds these values (see `corral.model.records`) and the API encodes them; the OpenAPI document's schemas
are generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import field

from corral.model.cordons import CordonView
from corral.model.receipts import ReceiptView
from corral.model.records import JobDocument, JobSummary, Record, ShareView, one_of


class RoleView(Record, frozen=True):
    """One role of a job: the number of tasks it should have (`target`), and task counts by state.

    `stopped` are tasks that were asked to end; they are not among `failed`.
    """

    name: str
    replicas: int
    target: int
    total: int = 0
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    elastic: bool = False
    min_replicas: int = 0
    max_replicas: int = 0


class PlacementRecord(Record, frozen=True):
    """The node and devices of one task; `rank` is its number in topology order, None if the framework has no ranks."""

    role: str
    index: int
    node: str
    devices: tuple[int, ...] = ()
    host: str = ""
    ports: dict[str, tuple[int, ...]] = {}
    state: str = ""
    rank: int | None = None
    share: ShareView | None = None
    """The task's fraction of its one device; null is the whole device."""


class ReasonView(Record, frozen=True):
    """One constraint that keeps a job waiting, with the counts that show it."""

    code: str
    message: str
    counts: Mapping[str, int | float] = {}


class ReasonsView(Record, frozen=True):
    """Why a job waits, the binding constraint first; `possible` is False if even an empty cluster could not hold it."""

    binding: ReasonView
    others: tuple[ReasonView, ...] = ()
    ahead: int = 0
    """The number of gangs before it; in stored reasons, as of the time when the reason was found."""
    possible: bool = True


class JobStatus(Record, frozen=True):
    """The scheduler's result for a job: `placements` has task counts by role and node id, including ending tasks."""

    placements: dict[str, dict[str, int]] = {}


class WorkView(Record, frozen=True):
    """What a job's program last said of its work; null: not said."""

    at: str
    """When it said it."""
    progress: float | None = None
    """The fraction of its work that is done, from 0 to 1."""
    step: float | None = None
    steps: float | None = None
    """The steps of the whole work."""
    throughput: float | None = None
    """Work per second, in the job's own unit."""
    loss: float | None = None
    gradient_noise: float | None = None
    """The gradient noise scale, in examples."""
    batch_size: float | None = None
    """Examples of one step, of all tasks together."""
    active: float | None = None
    """1 while somebody works in the job, such as in the kernels of a notebook; 0 while nobody does."""


class JobDetail(JobSummary, frozen=True, kw_only=True):
    """All data of one job except its events and logs; `placement` has the first 2,000 tasks."""

    document: JobDocument = {}
    """The present document: `replicaSpec` has the requested replicas and the scheduler's `targetReplicas`."""
    status: JobStatus = JobStatus()
    attempt: int = 0
    roles: tuple[RoleView, ...] = ()
    placement: tuple[PlacementRecord, ...] = ()
    reasons: ReasonsView | None = None
    links: dict[str, str] = {}
    retries_left: int | None = None
    """None: no limit."""
    depends_on: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes on its placement: unmet preferences, and whether device fractions are enforced.

    After a submission also the documents of the file that were left out.
    """
    suspended: bool = False
    checkpointed_at: str | None = None
    """When the current attempt last reported a checkpoint."""
    work: WorkView | None = None
    """What its program last said of its work; null: it reported nothing."""
    waited_seconds: float = 0.0
    """Seconds of all finished waits for placement, other jobs and next attempts, without running and suspended time."""
    waiting_since: str | None = None
    """When the present wait began."""
    receipts: tuple[ReceiptView, ...] = ()
    """Its ten latest preemptions."""
    allowed: tuple[str, ...] = ()
    """The caller's permissions on it, whatever its state.

    Possible values are `stop`, `restart`, `suspend`, `resume`, `scale`, `delete`, `tag`, `exec`, `logs`, `environment`
    and, for managers of its queue, `order`.
    """


class Trial(Record, frozen=True):
    """The result of a dry run: the canonical document, whether it would start now, and the reasons if not."""

    document: JobDocument
    would_start: bool | None = None
    """None: unknown, because no scheduler answers."""
    reasons: ReasonsView | None = None
    notes: tuple[str, ...] = ()
    """Documents of the file that belong to other programs and were left out."""


class ProblemView(Record, frozen=True):
    """One problem of a document; `line` and `column` count from 1, 0 is unknown."""

    path: str
    message: str
    line: int = 0
    column: int = 0
    file: str = ""


class Validation(Record, frozen=True):
    """Whether a document is valid and, if so, its canonical form."""

    valid: bool
    problems: tuple[ProblemView, ...] = ()
    document: JobDocument | None = None
    notes: tuple[str, ...] = ()
    """Documents of the file that belong to other programs and were left out."""


class JobFile(Record, frozen=True):
    """The file that a job was submitted with; secrets are replaced by `******`."""

    job: str
    text: str
    parameters: dict[str, str] = {}
    """The parameters given beside the file."""
    code: str = ""
    """The digest of the code that was uploaded with it."""
    secrets: int = 0
    """The number of placeholders with a stored secret; the owner can submit the file again with `from`."""
    edits: tuple[str, ...] = ()
    """What was changed of the job since, in sentences, the earliest first; the file has none of it. The last 20."""


class ForecastView(Record, frozen=True):
    """A forecast: the scheduler's state, played forward in courses that differ in drawn run times.

    Forecasts and what-if answers of equal revision look at the same state at the same time; those of equal seeds too draw
    the same courses.
    """

    at: str
    """The time of that state."""
    revision: str
    seeds: int = 1
    """How many courses were drawn, from seed 0 on."""


class EstimateView(Record, frozen=True):
    """When a waiting job is likely to start: the time (`at`), its certainty (`basis`) and its grounds (`message`)."""

    basis: str
    message: str
    at: str | None = None
    seconds: float | None = None
    """Seconds from now."""
    after: tuple[JobSummary, ...] = ()
    """The last jobs that must end first, or those that have no known end; at most five."""
    p10: str | None = None
    """The time by which it starts in a tenth of the forecast's courses. Null: none is known."""
    p50: str | None = None
    """The median; `at` of an expected start. `at-latest` counts also the grace of jobs that use all their time."""
    p90: str | None = None
    forecast: ForecastView | None = None
    """Null: it is sure without one, or there is none."""


class ChangeView(Record, frozen=True):
    """One change that would start the job now, checked with the scheduler itself."""

    path: str
    """The field of the job file, or of a queue (`Queue/NAME: limit.devices`)."""
    before: str | int | float = field(name="from")
    after: str | int | float = field(name="to")
    message: str = ""


class Explanation(Record, frozen=True):
    """Why a job is in its state, as one sentence and in parts."""

    job: str
    state: str
    message: str
    reasons: ReasonsView | None = None
    ahead: tuple[JobSummary, ...] = ()
    estimate: EstimateView | None = None
    changes: tuple[ChangeView, ...] = ()
    """The smallest changes that would start it now, at most three, the smallest first."""
    receipts: tuple[ReceiptView, ...] = ()
    """Its preemptions from which it has not come back yet."""


class VersionView(Record, frozen=True):
    """The server's version and features."""

    version: str
    api: str
    features: tuple[str, ...] = ()


class SignedIn(Record, frozen=True):
    """A new token, shown only once."""

    token: str
    user: str
    role: str
    expires_at: str


class OidcView(Record, frozen=True):
    """Whether sign-in with OpenID Connect is enabled, and the label of its button."""

    enabled: bool
    label: str = ""


class Me(Record, frozen=True):
    """The caller."""

    user: str
    role: str
    groups: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """The queues that the caller manages; `*` is all."""


class Amount(Record, frozen=True):
    """An amount in use and its limit; a limit of 0 is none."""

    used: int
    limit: int = 0


class AccountUse(Record, frozen=True):
    """An account's use of its quotas."""

    tasks: Amount
    """Waiting and running tasks."""
    code_bytes: Amount
    """Bytes of uploaded code that are stored."""
    submissions: Amount = Amount(0)
    """Submissions in the hour that began with the first of them."""
    log_bytes_of_stream: int = 0
    """Bytes kept of each stream of a task's log, the newest; 0 is no limit."""
    folder_bytes_of_task: int = 0
    """Bytes that a task may have in its working folder, or a pod in all that it writes to its node; 0 is no limit."""
    folder: str = ""
    """The account's folder on storages with one folder per user."""


class UserView(Record, frozen=True):
    """One account."""

    name: str
    role: str
    groups: tuple[str, ...] = ()
    uid: int | None = None
    created_at: str = ""
    disabled: bool = False
    has_password: bool = False
    folder: str = ""
    """Its folder on storages with one folder per user; unique even if a deleted account had its name."""
    max_priority: int | None = None
    """The highest priority of its jobs; null: its groups decide."""
    email: str = ""


class GroupView(Record, frozen=True):
    """One group, its members and its grants; `*` is all."""

    name: str
    description: str = ""
    external_name: str = ""
    queues: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """The queues that its members manage."""
    storages: tuple[str, ...] = ()
    admin: bool = False
    """Whether its members are administrators."""
    members: tuple[str, ...] = ()
    """The first thousand, by name."""
    member_count: int = 0
    max_priority: int | None = None
    """The highest priority of its members' jobs; null sets no bound."""


class BatchLine(Record, frozen=True):
    """The effect of one line of an account list."""

    line: int
    name: str
    action: Annotated[str, one_of("create", "change", "unchanged", "refused")]
    changes: tuple[str, ...] = ()
    """In words, such as `role: user to admin`."""
    message: str = ""
    """Why it is refused."""
    link: str = ""
    """The token of a new account's one-time sign-in link, if links were requested."""


class Batch(Record, frozen=True):
    """The effect of an account list, which is applied wholly or not at all."""

    lines: tuple[BatchLine, ...]
    applied: bool
    """Whether it was stored; never in a dry run."""


class StorageView(Record, frozen=True):
    """A storage that the caller may use."""

    name: str
    type: str
    description: str = ""
    share: bool = True
    """Whether all users share one folder; otherwise each has a folder of their own."""
    read_only: bool = False
    default: bool = False
    """Whether the caller's jobs mount it by default."""
    browsable: bool = False
    """Whether the server can read its folder."""
    groups: tuple[str, ...] = ()
    """For administrators: the groups that grant it."""


class FileView(Record, frozen=True):
    """One entry of a storage's folder."""

    name: str
    kind: Annotated[str, one_of("folder", "file", "link", "other")]
    """A link is never followed."""
    size: int
    changed_at: str


class UserChanged(UserView, frozen=True):
    """One account after a change."""

    notice: str = ""
    """After a new password: the sessions and tokens that it ended, and the tokens that are still valid."""


class LoginLink(Record, frozen=True):
    """A one-time sign-in link; shown only once."""

    link: str
    expires_at: str


class TokenView(Record, frozen=True):
    """One token of the caller; the secret itself is only in `NewToken`."""

    id: str
    name: str
    kind: str
    user: str
    created_at: str
    expires_at: str | None = None
    last_used_at: str | None = None


class NewToken(TokenView, frozen=True, kw_only=True):
    """A new token; `token` is shown only once."""

    token: str


class SecretView(Record, frozen=True):
    """One sealed secret of the caller, without its value."""

    name: str
    updated_at: str = ""


class Holding(Record, frozen=True):
    """The task that holds a device or, with `share`, a fraction of it; null is the whole device."""

    id: str
    name: str
    user: str
    role: str
    index: int
    share: ShareView | None = None


class DeviceView(Record, frozen=True):
    """One accelerator of a node, and the tasks that hold it."""

    index: int
    id: str
    kind: str
    model: str = ""
    memory_bytes: int = 0
    healthy: bool = True
    health_reason: str = ""
    described: bool = False
    cells: dict[str, str] = {}
    node: str = ""
    parent: int = -1
    """The index of the device that it is a slice of; -1 is none."""
    free: bool = False
    """Whether it is healthy and can be allocated whole: no fraction, slice or parent of it is in use."""
    job: Holding | None = None
    others: tuple[Holding, ...] = ()
    """The other tasks that hold fractions of it."""


class Amounts(Record, frozen=True):
    """CPU (thousandths), memory (bytes) and whole devices; slices are not counted in addition."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    devices: int = 0


class MismatchView(Record, frozen=True):
    """One difference (`what`) between a machine's report and its configuration."""

    what: str
    configured: str
    reported: str


class NodeJob(Record, frozen=True):
    """A job with tasks on a node: the number of these tasks, and of the node's devices they hold."""

    id: str
    name: str
    user: str
    tasks: int
    devices: int | float = 0
    """Fractions of devices count as fractions: 2.5."""


class NodeView(Record, frozen=True):
    """One machine; `name` is ENGINE/NODE, `levels` the cells above it (rack and so on)."""

    name: str
    engine: str
    ready: bool = True
    """As reported by its engine; a cordoned node may be ready, yet takes no new tasks."""
    reason: str = ""
    cordon: CordonView | None = None
    levels: dict[str, str] = {}
    labels: dict[str, str] = {}
    total: Amounts = Amounts()
    free: Amounts = Amounts()
    devices: tuple[DeviceView, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    mismatches: tuple[MismatchView, ...] = ()
    """Differences between report and configuration; a node with any is not ready."""
    tasks: int = 0
    jobs: tuple[NodeJob, ...] = ()
    """The jobs with tasks on it, by name; draining the node would move these."""
    seen_at: str = ""


class CellView(Record, frozen=True):
    """One cell of the cluster's tree: its level (root, engine, rack, node, numa, …), its name and its content."""

    level: str
    name: str
    devices: int = 0
    free: int = 0
    ready: bool = True
    cells: tuple[CellView, ...] = ()
    holds: tuple[DeviceView, ...] = ()
    """The devices directly in it."""


class Top(Record, frozen=True):
    """The live table: totals, and the running jobs with the devices they hold."""

    at: str
    total: Amounts
    free: Amounts
    waiting: int = 0
    running: int = 0
    jobs: tuple[JobSummary, ...] = ()


class Readiness(Record, frozen=True):
    """Whether the server can answer calls, with the reasons if not, or if it is degraded."""

    ready: bool
    reasons: tuple[str, ...] = ()
    degraded: bool = False
    """Whether stored data can be read but something else does not work; `reasons` says what."""


class PortsView(Record, frozen=True):
    """The ports of a running task, for users who may enter it."""

    ports: dict[str, tuple[int, ...]]
    path: str = ""
    """For a notebook: the URL path after its port's address, with its token."""


class ServiceView(Record, frozen=True):
    """A port of a running task that the job file declares, which a browser may open."""

    task: str
    name: str
    port: int


class ServicesView(Record, frozen=True):
    """The services of the first running tasks of a job."""

    items: tuple[ServiceView, ...]


class OpenedService(Record, frozen=True):
    """An address that opens a service in one browser, once."""

    url: str
    expires_at: str


class SshAccessView(Record, frozen=True):
    """A certificate with which the owner of a key may enter a running task by SSH, for a few minutes."""

    job: str
    task: str
    host_key: str
    """The public key of the cluster, as a line of `known_hosts` has it after the host."""
    certificate: str
    expires_at: str


class PeersView(Record, frozen=True):
    """The started tasks of a job attempt, for the tasks themselves."""

    attempt: int
    complete: bool
    """Whether every task of the gang has started."""
    peers: tuple[PlacementRecord, ...] = ()
