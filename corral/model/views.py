"""Why: pages and programs are shown jobs, machines and accounts in shapes that are written once and documented from here.

These values are the API's JSON (see `corral.model.records`): the service makes them, the API encodes them, the OpenAPI
document's schemas are generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from corral.model.cordons import CordonView
from corral.model.receipts import ReceiptView
from corral.model.records import JobSummary, Record, ShareView


class RoleView(Record, frozen=True):
    """One role of a job: how many tasks it should have (`target`) and how they stand."""

    name: str
    replicas: int
    target: int
    total: int = 0
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    elastic: bool = False
    min_replicas: int = 0
    max_replicas: int = 0


class PlacementRecord(Record, frozen=True):
    """Where one task runs; `rank` is its number in topology order, None where the framework knows none."""

    role: str
    index: int
    node: str
    devices: tuple[int, ...] = ()
    host: str = ""
    ports: dict[str, tuple[int, ...]] = {}
    state: str = ""
    rank: int | None = None
    share: ShareView | None = None
    """The part that the task has of its one device; null is the whole."""


class ReasonView(Record, frozen=True):
    """One constraint that keeps a job waiting, with the counts that show it."""

    code: str
    message: str
    counts: Mapping[str, int | float] = {}


class ReasonsView(Record, frozen=True):
    """Why a job waits: the binding constraint first; `possible` is False when no empty cluster would hold it."""

    binding: ReasonView
    others: tuple[ReasonView, ...] = ()
    ahead: int = 0
    """How many gangs are before it; in what is stored of a job, as of the time when the reason was found."""
    possible: bool = True


class JobStatus(Record, frozen=True):
    """What the scheduler made of a job: `placements` has the tasks of every role by node id, those that end included."""

    placements: dict[str, dict[str, int]] = {}


class JobDetail(JobSummary, frozen=True, kw_only=True):
    """Everything about one job but its events and logs; `placement` has the first 2,000 tasks."""

    document: dict[str, Any] = {}
    """As it stands: `replicaSpec` has the replicas asked for now and the scheduler's `targetReplicas`."""
    status: JobStatus = JobStatus()
    attempt: int = 0
    roles: tuple[RoleView, ...] = ()
    placement: tuple[PlacementRecord, ...] = ()
    reasons: ReasonsView | None = None
    links: dict[str, str] = {}
    retries_left: int | None = None
    """None: without limit."""
    depends_on: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is to be known of its places: what it preferred and did not get, whether anything enforces its parts.

    In the answer to its submission also the documents of the file that were left out.
    """
    suspended: bool = False
    checkpointed_at: str | None = None
    """When the current attempt last said that it had saved its work."""
    waited_seconds: float = 0.0
    """The sum of its waits that are over: for places, other jobs and next attempts; not what it ran or was suspended."""
    waiting_since: str | None = None
    """When the wait began that is going on."""
    receipts: tuple[ReceiptView, ...] = ()
    """The latest ten times that it had to yield."""
    allowed: tuple[str, ...] = ()
    """What the caller may do with it, whatever state it is in: of `stop`, `restart`, `suspend`, `resume`, `scale`,
    `delete`, `tag`, `exec`, `logs`, `environment` and, for managers of its queue, `order`."""


class Trial(Record, frozen=True):
    """What a dry run found: the canonical document, whether it would start now, and what is in the way."""

    document: dict[str, Any]
    would_start: bool | None = None
    """None: nobody could say (no scheduler answers)."""
    reasons: ReasonsView | None = None
    notes: tuple[str, ...] = ()
    """Which documents of the file are another program's and left out."""


class ProblemView(Record, frozen=True):
    """One thing wrong with a document; `line` and `column` count from 1, 0 is unknown."""

    path: str
    message: str
    line: int = 0
    column: int = 0
    file: str = ""


class Validation(Record, frozen=True):
    """Whether a document can be accepted; if so its canonical form."""

    valid: bool
    problems: tuple[ProblemView, ...] = ()
    document: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    """Which documents of the file are another program's and left out."""


class JobFile(Record, frozen=True):
    """The file that a job was submitted as, with `******` where a secret was."""

    job: str
    text: str
    parameters: dict[str, str] = {}
    """Those that were given beside the file."""
    code: str = ""
    """The digest of the code that was uploaded with it."""
    secrets: int = 0
    """How many placeholders it has whose secrets are kept; its owner submits it again with `from`."""


class EstimateView(Record, frozen=True):
    """When a waiting job is likely to start: `at`, how sure that is (`basis`), and what it rests on (`message`)."""

    basis: str
    message: str
    at: str | None = None
    seconds: float | None = None
    """From now."""
    after: tuple[JobSummary, ...] = ()
    """The jobs whose end it is waited for last, or that have no known end; at most five."""


class ChangeView(Record, frozen=True):
    """One thing that, were it otherwise, would let the job start now, proven by the scheduler itself."""

    path: str
    """The field of the job file, or of a queue (`Queue/NAME: limit.devices`)."""
    before: str | int | float = field(name="from")
    after: str | int | float = field(name="to")
    message: str = ""


class Explanation(Record, frozen=True):
    """Why a job stands where it stands, as one sentence and in parts."""

    job: str
    state: str
    message: str
    reasons: ReasonsView | None = None
    ahead: tuple[JobSummary, ...] = ()
    estimate: EstimateView | None = None
    changes: tuple[ChangeView, ...] = ()
    """The smallest changes that would start it now, at most three, the smallest first."""
    receipts: tuple[ReceiptView, ...] = ()
    """The times it had to yield and is not yet back."""


class VersionView(Record, frozen=True):
    """What server answers, and what it can do."""

    version: str
    api: str
    features: tuple[str, ...] = ()


class SignedIn(Record, frozen=True):
    """A token that was just made, shown this once."""

    token: str
    user: str
    role: str
    expires_at: str


class OidcView(Record, frozen=True):
    """Whether one may sign in with OpenID Connect, and what the button for it says."""

    enabled: bool
    label: str = ""


class Me(Record, frozen=True):
    """The caller."""

    user: str
    role: str
    groups: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """The queues whose manager the caller is; `*` is all."""


class Amount(Record, frozen=True):
    """What is used, and how much may be; a limit of 0 is none."""

    used: int
    limit: int = 0


class AccountUse(Record, frozen=True):
    """What an account has of what one account may have."""

    tasks: Amount
    """Waiting and running."""
    code_bytes: Amount
    """Uploaded and kept."""
    submissions: Amount = Amount(0)
    """In the hour that began with the first of them."""
    log_bytes_of_stream: int = 0
    """Of each stream of a task's log so many bytes are kept, the newest; 0 is no limit."""
    folder_bytes_of_task: int = 0
    """A task may have so many in its working folder, as a pod in all that it writes to its node; 0 is no limit."""
    folder: str = ""
    """The folder that the account has on storages which give each user one."""


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
    """The folder that it has on storages which give each user one; its own also where a deleted account had its name."""
    max_priority: int | None = None
    """The highest priority of its jobs; null leaves it to its groups."""
    email: str = ""


class GroupView(Record, frozen=True):
    """One group: who is in it, and what they may use; `*` is all."""

    name: str
    description: str = ""
    external_name: str = ""
    queues: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """The queues whose managers its members are."""
    storages: tuple[str, ...] = ()
    admin: bool = False
    """Whether its members are administrators."""
    members: tuple[str, ...] = ()
    """The first thousand, by name."""
    member_count: int = 0
    max_priority: int | None = None
    """The highest priority of its members' jobs; null says nothing."""


class BatchLine(Record, frozen=True):
    """What a line of a list of accounts does, or would do."""

    line: int
    name: str
    action: str
    """`create`, `change`, `unchanged` or `refused`."""
    changes: tuple[str, ...] = ()
    """In words, such as `role: user to admin`."""
    message: str = ""
    """Why it is refused."""
    link: str = ""
    """The one-time sign-in link's token of an account that was made, when links were asked for."""


class Batch(Record, frozen=True):
    """What a list of accounts does, all of it or nothing."""

    lines: tuple[BatchLine, ...]
    applied: bool
    """Whether it was stored; never in a dry run."""


class StorageView(Record, frozen=True):
    """A storage that the caller may use."""

    name: str
    type: str
    description: str = ""
    share: bool = True
    """Whether all users see the same; else each has a folder of their own."""
    read_only: bool = False
    default: bool = False
    """Whether the caller's jobs get it unasked."""
    browsable: bool = False
    """Whether the server reaches its folder."""
    groups: tuple[str, ...] = ()
    """The groups that grant it, for administrators."""


class FileView(Record, frozen=True):
    """One thing in a storage's folder."""

    name: str
    kind: str
    """`folder`, `file`, `link` (which nobody follows here) or `other`."""
    size: int
    changed_at: str


class UserChanged(UserView, frozen=True):
    """One account after a change."""

    notice: str = ""
    """After a new password: what it ended, and which tokens are still valid."""


class LoginLink(Record, frozen=True):
    """A one-time sign-in link; shown this once."""

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
    """A token that was just made; `token` is shown this once."""

    token: str


class SecretView(Record, frozen=True):
    """One sealed secret of the caller: never its value."""

    name: str
    updated_at: str = ""


class Holding(Record, frozen=True):
    """The task that holds a device, or the part `share` of it; null is the whole."""

    id: str
    name: str
    user: str
    role: str
    index: int
    share: ShareView | None = None


class DeviceView(Record, frozen=True):
    """One accelerator of a node, and who holds it."""

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
    """Whether it is healthy and can be given whole: nobody holds a part or a slice of it, or what it is a slice of."""
    job: Holding | None = None
    others: tuple[Holding, ...] = ()
    """Those who hold parts of it besides."""


class Amounts(Record, frozen=True):
    """Processors (thousandths), memory (bytes) and whole devices; slices do not count besides."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    devices: int = 0


class MismatchView(Record, frozen=True):
    """One thing (`what`) that a machine reports otherwise than configured."""

    what: str
    configured: str
    reported: str


class NodeJob(Record, frozen=True):
    """A job with tasks on a node: how many of them are there, and how many of the node's devices they hold."""

    id: str
    name: str
    user: str
    tasks: int
    devices: int | float = 0
    """Parts of devices count as parts: 2.5."""


class NodeView(Record, frozen=True):
    """One machine; `name` is ENGINE/NODE, `levels` the cells above it (rack and so on)."""

    name: str
    engine: str
    ready: bool = True
    """As its engine says; a node that is cordoned may be ready and takes no new tasks all the same."""
    reason: str = ""
    cordon: CordonView | None = None
    levels: dict[str, str] = {}
    labels: dict[str, str] = {}
    total: Amounts = Amounts()
    free: Amounts = Amounts()
    devices: tuple[DeviceView, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    mismatches: tuple[MismatchView, ...] = ()
    """What the machine reports otherwise than its document says: such a node is not ready."""
    tasks: int = 0
    jobs: tuple[NodeJob, ...] = ()
    """Whose tasks they are, by the jobs' names: what draining the node would move."""
    seen_at: str = ""


class CellView(Record, frozen=True):
    """One cell of the cluster's tree: `level` (root, engine, rack, node, numa, …), its name, and what is inside it."""

    level: str
    name: str
    devices: int = 0
    free: int = 0
    ready: bool = True
    cells: tuple[CellView, ...] = ()
    holds: tuple[DeviceView, ...] = ()
    """The devices directly in it."""


class Top(Record, frozen=True):
    """The live table: totals, and the jobs that run with what they hold."""

    at: str
    total: Amounts
    free: Amounts
    waiting: int = 0
    running: int = 0
    jobs: tuple[JobSummary, ...] = ()


class Uploaded(Record, frozen=True):
    """A blob that is stored now."""

    digest: str
    size: int


class Readiness(Record, frozen=True):
    """Whether calls can be answered, and what is wrong: why not, or what does not work beside them."""

    ready: bool
    reasons: tuple[str, ...] = ()
    degraded: bool = False
    """What is stored can be read, and something else does not work, as the reasons say."""


class PortsView(Record, frozen=True):
    """The ports of a running task, for those who may enter it."""

    ports: dict[str, tuple[int, ...]]
    path: str = ""
    """Of a notebook: what comes after the address that its port is reached at, its token included."""


class PeersView(Record, frozen=True):
    """The started tasks of a job attempt, for the tasks themselves."""

    attempt: int
    complete: bool
    """Whether every task of the gang has started."""
    peers: tuple[PlacementRecord, ...] = ()
