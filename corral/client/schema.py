"""The shapes of the API's answers, generated from the OpenAPI document; `make docs` writes them anew."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AlertView(TypedDict):
    """An alert: a condition of a rule that holds for some labels, or held until a short while ago."""

    fingerprint: str
    """A short name of the alert, the same for the same labels."""
    name: str
    """The name of its rule."""
    state: Literal["pending", "firing", "resolved"]
    """`pending`: the condition holds, but not yet for the rule's `for`."""
    severity: str
    """Its label `severity`, such as info, warn, error or fatal."""
    labels: dict[str, str]
    annotations: dict[str, str]
    value: float | None
    """The value of the rule's expression; null where the source tells none."""
    since: str
    """When its condition began to hold."""
    firedAt: str | None
    resolvedAt: str | None
    source: Literal["rules", "alertmanager"]
    """`rules`: Corral's own evaluator; `alertmanager`: the webhook."""
    silencedBy: list[str]
    """The ids of the silences that it is under."""


class Amount(TypedDict):
    """An amount in use and its limit; a limit of 0 is none."""

    used: int
    limit: int


class Amounts(TypedDict):
    """CPU (thousandths), memory (bytes) and whole devices; slices are not counted in addition."""

    cpuMillis: int
    memoryBytes: int
    devices: int


class AppliedDocument(TypedDict):
    """The result for one document of a file; `action` is `created`, `changed`, `unchanged` or `deleted`."""

    kind: str
    name: str
    revision: int
    """The current revision afterwards; in a dry run the one before."""
    action: str
    diff: str


class ArrayView(TypedDict):
    """The array that a list entry stands for: its name, the tag of its jobs, and job counts by state."""

    name: str
    tag: str
    states: dict[str, int]


class AuditRecord(TypedDict):
    """One authorization decision about a call that changes something, or that was refused."""

    seq: int
    at: str
    actor: str
    action: str
    resource: str
    rule: str
    allowed: bool
    detail: dict[str, Any]


class BatchLine(TypedDict):
    """The effect of one line of an account list."""

    line: int
    name: str
    action: Literal["create", "change", "unchanged", "refused"]
    changes: list[str]
    """In words, such as `role: user to admin`."""
    message: str
    """Why it is refused."""
    link: str
    """The token of a new account's one-time sign-in link, if links were requested."""


class BenchmarkChange(TypedDict):
    """The medians of a metric in two runs."""

    metric: str
    unit: str
    before: float | None
    after: float | None
    gain: float | None
    """The change for the better as a part of the value before; negative is worse."""


class BenchmarkMetric(TypedDict):
    """A measurement over all nodes."""

    metric: str
    unit: str
    largerIsBetter: bool
    nodes: int
    least: float
    median: float
    most: float
    slow: int
    """Nodes with findings."""


class BenchmarkNodeResult(TypedDict):
    """What was measured on one node: the value of each metric, such as `cpu-stream/triad_bw:0`."""

    node: str
    metrics: dict[str, float]
    sku: NotRequired[str]


class BenchmarkPoint(TypedDict):
    """A value of a measurement on a node, in one run."""

    node: str
    sku: str
    run: str
    at: str
    value: float
    rank: int
    slow: bool
    """Whether it breaks a rule beside the baseline of its SKU of now."""


class BenchmarkRunView(TypedDict):
    """A run of a benchmark suite."""

    id: str
    at: str
    user: str
    suite: str
    nodes: int
    figures: int
    problems: list[str]
    """What failed, in one sentence each."""


class BenchmarkStanding(TypedDict):
    """The last value of a measurement on a node, beside its baseline and its data sheet."""

    node: str
    sku: str
    metric: str
    rank: int
    """The process or device with the worst value, or -1."""
    value: float
    unit: str
    largerIsBetter: bool
    at: str
    run: str
    baseline: float | None
    """The median of the last values of all nodes of its SKU; null where no other node has it."""
    alike: int
    """Other nodes of its SKU that have the measurement."""
    change: float | None
    """The difference from the baseline as a part of it."""
    expected: float | None
    """What the data sheet of its device promises."""
    least: float | None
    """The least value of a healthy device of the model."""
    source: str
    """The data sheet."""
    findings: list[str]
    """Which rules it breaks; empty for a good value."""


class BenchmarkStandings(TypedDict):
    """Last values, those with findings first."""

    items: list[BenchmarkStanding]


class BenchmarkWays(TypedDict):
    """Every way between some nodes, or between the devices of one, in two runs: a row for each end from which it leads."""

    benchmark: str
    node: str
    """The node whose devices they are; "" for ways between nodes."""
    unit: str
    largerIsBetter: bool
    names: list[str]
    """The nodes or devices, for rows and for columns."""
    before: list[list[float | None]]
    after: list[list[float | None]]
    gain: list[list[float | None]]
    """The change for the better as a part of the value before; negative is worse."""


class BenchmarkedNode(TypedDict):
    """A node with results."""

    node: str
    sku: str
    at: str
    """When it was measured last."""
    measurements: int
    slow: int
    """Measurements with findings."""
    findings: list[str]
    """The first of the findings."""


class CacheBundle(TypedDict):
    """One bundle of compiled code; its content never changes."""

    id: str
    share: Literal["job", "user", "group"]
    of: str
    """The job's id, the user or the group that shares it."""
    key: str
    facts: dict[str, str]
    """What the key is made of: image, versions, devices, driver, processor."""
    digest: str
    """The SHA-256 of its bytes."""
    size: int
    files: int
    user: str
    """Whose task published it."""
    job: str
    publishedAt: str
    usedAt: str
    uses: int
    """Tasks that it was given to."""


class CacheList(TypedDict):
    """Bundles of compiled code, the last used ones first, and what the caller's own take of the quota."""

    items: list[CacheBundle]
    bytes: int
    mostBytes: int
    """The quota in bytes; 0 is no limit."""


class CacheOffer(TypedDict):
    """The bundle for a task, and the key under which the task may publish another one."""

    key: str
    digest: str
    """"" is no bundle."""
    size: int
    mostBytes: int
    """The largest bundle that may be published."""
    refusal: str
    """Why the task has no cache; "" if it has one."""


class CacheUse(TypedDict):
    """What one attempt of a task made of the cache."""

    attempt: str
    role: str
    index: int
    at: str
    key: str
    hit: bool
    """Whether a bundle was restored."""
    facts: dict[str, str]
    """What the key is made of."""
    digest: str
    """The bundle that was found; "" is none."""
    bytes: int
    files: int
    restoreSeconds: float | None
    newFiles: int | None
    """Files that the task compiled itself; null: not known yet."""
    firstStepSeconds: float | None
    """From the command's start to the first step that it reported; null: none was reported."""
    coldSeconds: float | None
    """The same of the last task of this command that had no bundle; null: none is known."""
    savedSeconds: float | None
    """`coldSeconds` without the seconds of restore and first step; null where one of them is not known."""
    published: str
    """The bundle that it published; "" is none."""
    publishedBytes: int
    refused: str
    """Why the bundle was not taken; "" if it was."""


class CellShare(TypedDict):
    """
    The cells of one type that a queue owns on an engine, as counts of cells.

    `owned` = `bound` + `free` + `lent` + `missing`. Bound cells hold its jobs (or are pinned). Free ones could be bound
    at once, and lent ones after their guests left. Missing ones could not even then (bad or absent hardware).
    """

    engine: str
    level: str
    model: str
    """"" if its devices are of several models."""
    devices: int | float
    """Devices per cell; a slice is a fraction of a device."""
    owned: int
    bound: int
    free: int
    lent: int
    missing: int


ChangeView = TypedDict(
    "ChangeView",
    {
        "path": str,
        "from": str | int | float,
        "to": str | int | float,
        "message": str,
    },
)


class ChannelView(TypedDict):
    """A channel as its owner sees it."""

    name: str
    kind: Literal["mail", "webhook", "slack", "teams", "apprise"]
    address: str
    """Without its secret parts."""
    verified: bool
    events: list[Literal["started", "succeeded", "failed", "stopped", "retried", "preempted", "idle", "hung", "ended"]]
    waitingSeconds: int
    jobs: str
    createdAt: str


class Charge(TypedDict):
    """The use of one user in one queue, on a day in UTC or the part of it that was asked for."""

    begin: str
    end: str
    user: str
    queue: str
    model: str
    """The device model; "" is none or unknown."""
    meter: str
    """`device-hours`, `cpu-hours` or `memory-gib-hours`; the latter two as asked for."""
    quantity: float
    """Hours."""
    lost: float
    """The part of device-hours in attempts that came to nothing."""
    unitPrice: float
    """The price of an hour; 0 where no rate has one."""
    cost: float
    used: float
    """The part of the hours that was used, as far as it was measured; it is not priced."""
    idle: float
    """The part of device-hours in which a device's use was below 5 %, in attempts that did not come to nothing."""
    energyKwh: float
    """Of device-hours the energy, where the devices tell their power."""


class ChargePage(TypedDict):
    """The charges of some whole days; `next` is the time from which to go on, "" after the last."""

    currency: str
    """By ISO 4217; `XXX` where there are no prices."""
    items: list[Charge]
    next: str


class CordonView(TypedDict):
    """A cordon in the API: its author, reason and start; `drain` is "", `now` or `after-jobs`."""

    by: str
    why: str
    at: str
    drain: Literal["", "now", "after-jobs"]
    graceSeconds: float | None


class Counts(TypedDict):
    """How many decisions both made, or one of them alone."""

    alike: int
    """Made by both at about the same time."""
    elsewhere: int
    """Those of the alike that placed tasks on other nodes."""
    onlyInForce: int
    onlyCandidate: int


class DeviceScore(TypedDict):
    """The score of one device."""

    device: int
    score: float


class DeviceStay(TypedDict):
    """A job on devices of one node for a time."""

    job: str
    """Its id."""
    name: str
    user: str
    queue: str
    node: str
    devices: list[int]
    """Indexes of the node's devices."""
    begin: str
    end: str | None
    """Null: it still runs, or an expected one ends after the forecast does."""


class DeviceUse(TypedDict):
    """One task on a device; `share` is its fraction of the device's computing power in percent, 100 for the whole."""

    job: str
    name: str
    user: str
    queue: str
    role: str
    index: int
    priority: int
    standing: Literal["guaranteed", "guest", ""]
    """`guaranteed` in a cell of its queue, `guest` outside; "" on an engine without owned cells."""
    leaving: bool
    """Whether it was told to end."""
    share: int


class Difference(TypedDict):
    """A decision that one of both made alone; with both times, one that they made at different times."""

    kind: str
    """`start`, `preempt` or `resize`."""
    job: str
    name: str
    user: str
    queue: str
    inForce: str | None
    """When it was made; None: it was not."""
    candidate: str | None
    why: str
    """Why a job still waited under the other one, or why it gave devices back; "" if that is not known."""


class DocumentDiff(TypedDict):
    """The unified diff of two revisions; "" if they are equal."""

    kind: str
    name: str
    before: int
    """The earlier revision; 0 for none."""
    after: int
    """The later revision; 0 for one that is not stored."""
    diff: str


class DocumentSummary(TypedDict):
    """One revision of a document, as lists and histories show it."""

    kind: str
    name: str
    revision: int
    at: str
    actor: str
    note: str
    deleted: bool


class DocumentView(TypedDict):
    """One revision with the document itself; `text` is the same document as YAML."""

    kind: str
    name: str
    revision: int
    at: str
    actor: str
    note: str
    deleted: bool
    document: dict[str, Any]
    text: str


class EditedField(TypedDict):
    """One field that an edit changes, with both values as people write them."""

    field: str
    """`priority`, `maxDuration` or `queue`."""
    before: str
    after: str


class EfficiencySum(TypedDict):
    """The sum over the jobs of one user, or over all."""

    key: str
    """The user; "" is everybody."""
    deviceSeconds: float
    lostDeviceSeconds: float
    measuredDeviceSeconds: float
    """Device-seconds of roles whose use was measured, of the jobs that are listed."""
    usedDeviceSeconds: float
    """How much of those was used."""


class ErrorShape(TypedDict):
    """The body of every refusal."""

    code: str
    """A stable error code in kebab case, for programs."""
    message: str
    """One sentence for people, which says how to proceed."""


class EventRecord(TypedDict):
    """One event of a job; `seq` follows commit order, so a stream resumed after a `seq` skips nothing."""

    seq: int
    job: str
    at: str
    kind: str
    actor: str
    message: str
    role: str
    index: int
    attempt: str
    data: dict[str, Any]


ExitView = TypedDict(
    "ExitView",
    {
        "code": int,
        "phrase": str,
        "class": str,
        "message": str,
    },
)


class FairnessRow(TypedDict):
    """One queue at the top of the tree; the queues below it count for it."""

    queue: str
    owed: float
    """Device-seconds."""
    got: float
    """Device-seconds that its jobs held."""
    ratio: float | None
    """What it got divided by what it was owed; null where nothing was owed."""
    started: int
    """Jobs that started in the week."""
    waitP50: float | None
    """Seconds from submission to start; null where no job started."""
    waitP95: float | None
    worstFinishTimeRatio: float | None
    """Of its jobs that succeeded in the week: seconds from submission to end, by those that it needed its devices for."""
    worstJob: str


class Figures(TypedDict):
    """One queue, or all of them, under one of both."""

    started: int
    waitP50: float | None
    """Of the jobs that started; None: none did."""
    waitP95: float | None
    preempted: int
    devices: float
    """The devices in use."""
    waiting: int
    """Jobs that wait at the end."""


class FilePreview(TypedDict):
    """What a page shows of a file: a part of its text, some rows of its table, or that it is a picture."""

    kind: Literal["text", "table", "picture", "other"]
    """`other` is not shown."""
    size: int
    text: str
    columns: list[str]
    rows: list[list[str]]
    cut: bool
    """Whether the file has more than is shown."""


class FileView(TypedDict):
    """One entry of a storage's folder."""

    name: str
    kind: Literal["folder", "file", "link", "other"]
    """A link is never followed."""
    size: int
    changedAt: str


class FolderDisk(TypedDict):
    """The disk that has the task's folder, in bytes."""

    bytes: int
    free: int


class ForecastView(TypedDict):
    """
    A forecast: the scheduler's state, played forward in courses that differ in drawn run times.

    Forecasts and what-if answers of equal revision look at the same state at the same time; those of equal seeds too draw
    the same courses.
    """

    at: str
    """The time of that state."""
    revision: str
    seeds: int
    """How many courses were drawn, from seed 0 on."""


class GoalTry(TypedDict):
    """One value that the search for a goal tried."""

    value: int
    held: bool
    measured: float | None
    """The left side of the goal; null: never, or the value is refused."""
    wanted: float | None
    """Its right side."""
    refused: str
    """Why documents with this value are refused; "" if they are not."""


class GroupView(TypedDict):
    """One group, its members and its grants; `*` is all."""

    name: str
    description: str
    externalName: str
    queues: list[str]
    manages: list[str]
    """The queues that its members manage."""
    storages: list[str]
    admin: bool
    """Whether its members are administrators."""
    members: list[str]
    """The first thousand, by name."""
    memberCount: int
    maxPriority: int | None
    """The highest priority of its members' jobs; null sets no bound."""


class GuaranteeFinding(TypedDict):
    """A guarantee that a change would break: `queue` needs `needed` cells of `level`, and `available` exist."""

    message: str
    queue: str
    level: str
    model: str
    needed: int | float
    available: int | float
    preemptible: bool
    """Whether the change is possible by preempting the jobs that stand in its way."""


class Hang(TypedDict):
    """One time that a job hung."""

    at: str
    """When it was found."""
    silentSeconds: float
    """How long it had shown no progress."""
    why: str
    """What its ranks did, in one sentence."""
    odd: list[str]
    """The tasks that the others wait for; none if all are alike."""
    collective: str
    """The collective in which the odd tasks stand, or were last."""
    number: int
    """The number of that collective in its group by the flight recorder; 0 is not known."""
    place: str
    """The line of the program where they stand."""
    action: Literal["warn", "restart", "suspend"]
    """What was done about it."""
    bundle: str
    """The name of the bundle of stacks, logs and figures; "" if it could not be kept."""
    bytes: int


class HangList(TypedDict):
    """The times that a job hung, the latest first."""

    items: list[Hang]


class HealthEntryView(TypedDict):
    """One entry of a node's history in the API."""

    at: str
    what: Literal[
        "start-failed",
        "node-exit",
        "claimed-exit",
        "vanished",
        "xid",
        "ecc",
        "device",
        "slow-task",
        "hang",
        "check-failed",
        "throttled",
        "pcie-errors",
        "link-flaps",
        "clock-skew",
        "full-disk",
        "read-only-disk",
        "disk-errors",
        "hanging-mount",
        "health-event",
        "moved",
    ]
    reason: str
    device: int | None
    weight: float
    """What it added to the score; 0: too many nodes had the same trouble at once."""
    job: str
    before: str
    after: str
    by: str


class HealthEventsTaken(TypedDict):
    """How many signs events gave."""

    signs: int
    """Events of healthy components give none."""


class HealthView(TypedDict):
    """The health of a node in the API."""

    node: str
    state: Literal["healthy", "suspected", "cordoned", "repairing", "validating"]
    score: float
    """The sum of all scores of the node and its devices, now."""
    since: str | None
    by: str
    why: str
    devices: list[DeviceScore]
    """The devices with a score of their own."""
    job: str
    """The validation job that runs or ran last; "" is none."""


class IdleJob(TypedDict):
    """One job whose devices are idle, or whose owner was warned."""

    job: str
    name: str
    user: str
    queue: str
    state: Literal["busy", "idle", "warned", "extended", "acted"]
    since: str | None
    """When its devices became idle."""
    idle: int
    """Devices that are idle."""
    held: int
    wastedDeviceSeconds: float
    warnedAt: str | None
    actedAt: str | None
    extendedAt: str | None
    extendedUntil: str | None
    reason: str
    """Why its owner asked for more time."""
    dryRun: bool
    """Whether nothing is done about it, and administrators alone are told."""
    action: Literal["warn", "stop", "shrink", "suspend", ""]
    """What is done about it after the grace, or was done at `actedAt`; `warn` is nothing more, "" is not known."""
    actsAt: str | None
    """When it is done unless the devices are used; null: nothing is to come."""


class IdleList(TypedDict):
    """Jobs with idle devices, those first that waste the most."""

    items: list[IdleJob]


class Imported(TypedDict):
    """The result for one imported object."""

    kind: str
    name: str
    result: Literal["changed", "created", "kept", "left", "refused", "unchanged"]
    message: str


class ImportedPage(TypedDict):
    """The results of one call, in the order of its objects."""

    items: list[Imported]


class JobAntiAffinity(TypedDict):
    """Jobs that this job keeps away from, and that keep away from it."""

    tags: NotRequired[list[str]]
    """Jobs that carry one of these tags."""
    level: NotRequired[str]
    """No cell of this level is shared with them."""


class JobArray(TypedDict):
    """One document run many times, each with its own index."""

    size: NotRequired[int]
    """How many jobs, with indexes from 0; 0 is no array."""
    maxParallel: NotRequired[int]
    """How many may run at once; 0 is no limit."""


class JobBarrier(TypedDict):
    """Whether replicas wait at the start until all have an address."""

    enabled: NotRequired[bool]
    """Commands start only when every replica has an address."""
    timeoutSeconds: NotRequired[int]
    """The longest wait; then the attempt fails as transient."""


class JobCache(TypedDict):
    """What the tasks of one job made of the cache, the last ones first."""

    share: Literal["none", "job", "user", "group"]
    source: Literal["job", "queue", "server"]
    """Whether `share` is the job's own word, or the default of its queue or of the server."""
    queue: str
    """The queue whose default it is: the job's own or one above it; "" with another source."""
    hits: int
    tasks: int
    bytes: int
    """Bytes that were restored."""
    savedSeconds: float | None
    """Of the tasks of which it is known; null: of none."""
    uses: list[CacheUse]


class JobCheckpoint(TypedDict):
    """How a replica is asked to end, and how Corral sees that it has saved its work."""

    signal: NotRequired[str]
    """The signal that asks for a checkpoint, such as SIGUSR1; "" sends only SIGTERM."""
    graceSeconds: NotRequired[int]
    """Seconds between being asked to end and being killed; -1: as the server's setting `grace_seconds` says (30 unless it was changed)."""
    path: NotRequired[str]
    """A file or folder that changes with every checkpoint (within the working directory unless absolute): work saved is not lost when the job yields, and who loses least yields first. "" is none."""


class JobCode(TypedDict):
    """The program's files, unpacked before the command starts."""

    uri: NotRequired[str]
    """A folder on the submitting machine, or a blob; "" is none."""
    target: NotRequired[str]
    """Where it is unpacked; "" is the working directory."""


class JobCompileCache(TypedDict):
    """Whether compiled code is kept for later tasks, and who shares it."""

    share: NotRequired[Literal["default", "none", "job", "user", "group"]]
    """default leaves it to the queue, to the queues above it, and then to the server; none keeps nothing; job keeps it for the job's other tasks and later attempts, user for all jobs of its owner, and group for those jobs of the group's members that name the group too."""
    group: NotRequired[str]
    """The group, with share: group. Each of its members runs code in the jobs that read the cache."""


class JobCompletion(TypedDict):
    """How many ended replicas of a role end the whole job."""

    minFailed: NotRequired[int]
    """The number of failed replicas that fails the job; below 1 none does."""
    minSucceeded: NotRequired[int]
    """The number of succeeded replicas that ends the job; below 1 all must."""


class JobDependency(TypedDict):
    """Another job that must end first."""

    job: str
    """The other job's name or id."""
    condition: NotRequired[Literal["succeeded", "ended"]]
    """Start when it has succeeded, or when it has ended in any way."""


class JobExpression(TypedDict):
    """A requirement on a node's label; a node must meet all of them."""

    key: str
    """The label."""
    operator: NotRequired[Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]]
    """As in Kubernetes; Gt and Lt compare whole numbers."""
    values: NotRequired[list[str]]
    """One of them (In), none of them (NotIn), or the one bound."""


class JobFairness(TypedDict):
    """One job that succeeded in the week."""

    job: str
    name: str
    user: str
    queue: str
    devices: float
    seconds: float
    """From submission to end."""
    neededSeconds: float
    """For which it needed its devices."""
    rho: float
    """
    Its finish-time fairness: `seconds` by those that it would have taken on an equal share of the devices that was its
    alone. 1 is as on such a share, above it is worse.
    """


class JobFile(TypedDict):
    """The file that a job was submitted with; secrets are replaced by `******`."""

    job: str
    text: str
    parameters: dict[str, str]
    """The parameters given beside the file."""
    code: str
    """The digest of the code that was uploaded with it."""
    secrets: int
    """The number of placeholders with a stored secret; the owner can submit the file again with `from`."""
    edits: list[str]
    """What was changed of the job since, in sentences, the earliest first; the file has none of it. The last 20."""


class JobInput(TypedDict):
    """Data fetched before the command starts."""

    uri: str
    """Where the data is, such as file:///data/digits."""
    path: str
    """Where the replica finds it."""


class JobKubernetes(TypedDict):
    """Options that only the Kubernetes engine reads."""

    podTemplate: NotRequired[dict[str, Any]]
    """A pod template the role's pods are made from; Corral's own fields win."""
    forceAfterSeconds: NotRequired[int]
    """Seconds after which a pod that was told to end counts as ended, though it may still run; -1: never."""


class JobMeasuredSize(TypedDict):
    """The speed of a job at one size."""

    devices: int
    """The devices of all its tasks together."""
    nodes: NotRequired[int]
    """The nodes that they are on."""
    throughput: float
    """Its work per second at that size, in any unit."""


class JobMetadata(TypedDict):
    """Name, labels and annotations of a job."""

    name: str
    """The job's name: a DNS label of at most 63 characters."""
    labels: NotRequired[dict[str, str]]
    """Short labels that lists can be filtered by."""
    annotations: NotRequired[dict[str, str]]
    """Free text that tools keep with the job."""


class JobNetwork(TypedDict):
    """Requirements on the network between the replicas."""

    rdma: NotRequired[Literal["none", "preferred", "required"]]
    """Remote direct memory access."""


class JobNotifications(TypedDict):
    """What the job's owner is told of it; without any of it the preferences of the owner's channels apply."""

    events: NotRequired[
        list[Literal["started", "succeeded", "failed", "stopped", "retried", "preempted", "idle", "hung", "ended"]]
    ]
    """What is told; `ended` is succeeded, failed or stopped."""
    waitingSeconds: NotRequired[int]
    """Tell it when the job has waited this long; 0 is never."""
    channels: NotRequired[list[str]]
    """The owner's channels that are told; none: all of them."""
    quiet: NotRequired[bool]
    """Tell nothing at all of this job."""


class JobOutput(TypedDict):
    """Data kept after the command has ended."""

    path: str
    """Where the replica leaves it."""
    uri: str
    """Where it is kept, such as file:///data/models."""


class JobPort(TypedDict):
    """Free ports of the node that Corral picks and tells to the replica and its peers."""

    name: str
    """What the ports are called."""
    count: NotRequired[int]
    """How many."""
    start: NotRequired[int]
    """The number that they begin at; 0: whichever are free. A taken one is waited for."""


class JobPreflight(TypedDict):
    """What each task checks before its command begins."""

    checks: NotRequired[list[Literal["network", "platform"]]]
    """network measures latency and bandwidth between all tasks; platform reads what each machine is like."""
    timeoutSeconds: NotRequired[int]
    """How long the checks may delay the command, with the wait for the other tasks."""
    required: NotRequired[bool]
    """Whether a task fails when a check cannot be completed; otherwise its command starts."""


class JobReplicaSpec(TypedDict):
    """The number of tasks of the counted role, and the bounds within which the scheduler may choose it."""

    role: NotRequired[str]
    """The role that is counted; the first one if unsaid."""
    replicas: NotRequired[int]
    """The number asked for; `corral scale` sets it."""
    minReplicas: NotRequired[int]
    """The fewest it can run with; replicas if unsaid."""
    maxReplicas: NotRequired[int]
    """The most it can use; replicas if unsaid."""
    targetReplicas: NotRequired[dict[str, int]]
    """Replicas by node id; only the scheduler writes it."""


class JobReport(TypedDict):
    """How the program tells how far it is: by `corral.report`, by a file, or by lines of its log."""

    enabled: NotRequired[bool]
    """Whether tasks can `import corral` and call `corral.report(step=…, throughput=…, loss=…)`."""
    file: NotRequired[str]
    """A JSON file that the program writes instead, with the values by their names, within the working directory unless absolute. "" is none."""
    pattern: NotRequired[str]
    """A regular expression that finds the values in a line of the log of the first task of each role; its groups bear their names, such as `step (?P<step>[0-9]+)`. "" is none."""
    steps: NotRequired[int]
    """How many steps the work has, unless the program says so; 0: not known."""
    tensorboard: NotRequired[list[str]]
    """Folders whose event files of TensorBoard become curves of the job, beside the working folder: absolute, such as one in a mounted storage, within the working directory, or a URI of S3 or HDFS."""


class JobRetryPolicy(TypedDict):
    """When a failed or ended attempt is retried (FrameworkController's rules)."""

    fancy: NotRequired[bool]
    """Transient failures are retried without being counted, permanent ones never."""
    maxRetries: NotRequired[int]
    """Counted retries after failures; -1 without end, -2 even after success."""


class JobSecret(TypedDict):
    """A stored secret given to each replica as a variable or a file, never in arguments."""

    name: str
    """The secret's name in Corral's store."""
    env: NotRequired[str]
    """The variable that holds it."""
    file: NotRequired[str]
    """The file that holds it, below the secrets folder."""


class JobShare(TypedDict):
    """A share of one device; an unset share of computing power or memory equals the other one."""

    computePercent: NotRequired[int]
    """Of its computing power; 0 is unsaid."""
    memoryPercent: NotRequired[int]
    """Of its memory; 0 is unsaid."""
    memory: NotRequired[str]
    """Its memory as an amount instead, such as 10Gi; "" is unsaid."""
    policy: NotRequired[Literal["pack", "spread"]]
    """pack: on devices that others have parts of already, so that the rest stay whole; spread: on the emptiest."""


class JobSharing(TypedDict):
    """With whom the job shares its nodes."""

    exclusive: NotRequired[bool]
    """Its nodes are shared with no other job."""
    oneTaskPerNode: NotRequired[bool]
    """No two of its tasks are on one node (FrameworkLauncher's antiaffinityAllocation)."""
    antiAffinity: NotRequired[JobAntiAffinity]
    """Jobs to keep away from."""


class JobStatus(TypedDict):
    """The scheduler's result for a job: `placements` has task counts by role and node id, including ending tasks."""

    placements: dict[str, dict[str, int]]


class JobStorageUse(TypedDict):
    """A storage of a job, and the path at which its tasks find it."""

    name: str
    """The Storage document; "" stands for every storage that is one of the user's defaults."""
    mountPath: NotRequired[str]
    """Where the tasks find it; "" is /mnt/NAME."""


class JobToleration(TypedDict):
    """A taint of nodes that the tasks tolerate, as in Kubernetes."""

    key: NotRequired[str]
    """The taint's key; "" with Exists is any."""
    operator: NotRequired[Literal["Equal", "Exists"]]
    """Whether the value matters."""
    value: NotRequired[str]
    """The taint's value."""
    effect: NotRequired[Literal["", "NoSchedule", "NoExecute", "PreferNoSchedule"]]
    """The taint's effect; "" is any."""
    tolerationSeconds: NotRequired[int]
    """How long the tasks stay on a node with a NoExecute taint before they yield; -1: forever."""


class JobTopologyGroup(TypedDict):
    """Groups of consecutive replicas that are placed closer together than the rest."""

    size: NotRequired[int]
    """Replicas in one group; 0 is no grouping."""
    required: NotRequired[str]
    """The level that each group must be inside."""


class JobTopologySpread(TypedDict):
    """Replicas in different cells, so that the failure of one cell does not hit all."""

    level: NotRequired[str]
    """The replicas go to different cells of this level; "" is anywhere."""
    maxSkew: NotRequired[int]
    """The largest difference in replicas between two cells that take them; 0: as even as possible."""


class LedgerLine(TypedDict):
    """Device-seconds lent to, or borrowed from, one other queue, and the devices lent or borrowed now."""

    queue: str
    deviceSeconds: float
    devices: int | float
    since: str


class LedgerView(TypedDict):
    """Lending and borrowing of one queue, by the other queue."""

    queue: str
    at: str
    lentDeviceSeconds: float
    borrowedDeviceSeconds: float
    lent: list[LedgerLine]
    borrowed: list[LedgerLine]


class LoginLink(TypedDict):
    """A one-time sign-in link; shown only once."""

    link: str
    expiresAt: str


class MachineDisk(TypedDict):
    """A disk of the machine."""

    name: str
    bytes: int
    rotational: bool
    scheduler: str


class MachineMemory(TypedDict):
    """Memory in bytes."""

    total: int
    available: int
    pageCache: int
    dirty: int
    """Changed pages of files that wait to be written."""
    swapTotal: int
    swapFree: int
    hugePagesReserved: int


class Me(TypedDict):
    """The caller."""

    user: str
    role: str
    groups: list[str]
    manages: list[str]
    """The queues that the caller manages; `*` is all."""


class MemoryHolder(TypedDict):
    """What holds memory, in bytes before and after the profile."""

    kind: str
    name: str
    before: int
    after: int


class MismatchView(TypedDict):
    """One difference (`what`) between a machine's report and its configuration."""

    what: str
    configured: str
    reported: str


class Moved(TypedDict):
    """A job that starts at another time."""

    job: str
    name: str
    user: str
    queue: str
    seconds: float
    """Earlier under the candidate if above 0."""
    complete: bool
    """False: it started under one of both only, so the difference is at least so large."""


class NetworkLevel(TypedDict):
    """The usual figures of the ways of one level: medians."""

    level: str
    ways: int
    bytesPerSecond: float
    latencySeconds: float | None


class NetworkWay(TypedDict):
    """The network from one task to another."""

    source: str
    target: str
    level: str
    """The narrowest level that both are in: node, rack and so on; "cluster" when they share none."""
    bytesPerSecond: float
    latencySeconds: float | None
    """Half of a round trip."""
    slow: str
    """Why it is slower than the topology lets expect; "" where it is not."""


class NewChannelView(TypedDict):
    """A channel that was just made."""

    name: str
    kind: Literal["mail", "webhook", "slack", "teams", "apprise"]
    address: str
    """Without its secret parts."""
    verified: bool
    events: list[Literal["started", "succeeded", "failed", "stopped", "retried", "preempted", "idle", "hung", "ended"]]
    waitingSeconds: int
    jobs: str
    createdAt: str
    signingKey: str
    """The key of a webhook's signatures; it is told only here."""


class NewToken(TypedDict):
    """A new token; `token` is shown only once."""

    id: str
    name: str
    kind: str
    user: str
    createdAt: str
    expiresAt: str | None
    lastUsedAt: str | None
    token: str


class NodeJob(TypedDict):
    """A job with tasks on a node: the number of these tasks, and of the node's devices they hold."""

    id: str
    name: str
    user: str
    tasks: int
    devices: int | float
    """Fractions of devices count as fractions: 2.5."""


class NotificationView(TypedDict):
    """One message in the history of a person's notifications."""

    id: int
    at: str
    channel: str
    event: str
    """What happened: one of the events, `code` for a verification, or `test`."""
    job: str
    subject: str
    state: Literal["queued", "sent", "failed", "dropped"]
    """`failed` was tried in vain, `dropped` was never tried."""
    tries: int
    nextTry: str | None
    error: str
    """Why the last try failed."""


class NumaNode(TypedDict):
    """One NUMA node."""

    node: int
    processors: str
    """Such as 0-15,32-47."""
    memory: int


class OidcView(TypedDict):
    """Whether sign-in with OpenID Connect is enabled, and the label of its button."""

    enabled: bool
    label: str


class OpenedService(TypedDict):
    """An address that opens a service in one browser, once."""

    url: str
    expiresAt: str


class OtherApplication(TypedDict):
    """A running or waiting application of the cluster that is not Corral's."""

    id: str
    name: str
    user: str
    queue: str
    kind: str
    """What the cluster calls it: MAPREDUCE, SPARK, …"""
    state: str
    startedAt: str
    containers: int
    used: Amounts


class OutputView(TypedDict):
    """A place where a job keeps results: an output of its document, or a storage that its tasks may write."""

    index: int
    uri: str
    """Empty for a storage."""
    path: str
    """Where the tasks have it."""
    storage: str
    """The storage that it is, or is in; empty: none that the caller may use."""
    browsable: bool
    message: str
    """Why it is not shown."""


class PastAlertView(TypedDict):
    """An alert that fired."""

    fingerprint: str
    """A short name of the alert, the same for the same labels."""
    name: str
    """The name of its rule."""
    severity: str
    labels: dict[str, str]
    annotations: dict[str, str]
    value: float | None
    """The value of the rule's expression; null where the source tells none."""
    firedAt: str
    endedAt: str | None
    """null while it fires."""
    source: Literal["rules", "alertmanager"]


class PciLink(TypedDict):
    """The link of a PCI device: what it runs at, and what it could."""

    address: str
    kind: str
    driver: str
    speed: str
    mostSpeed: str
    width: int
    mostWidth: int
    numaNode: int | None


class PortsView(TypedDict):
    """The ports of a running task, for users who may enter it."""

    ports: dict[str, list[int]]
    path: str
    """For a notebook: the URL path after its port's address, with its token."""


class ProblemView(TypedDict):
    """One problem of a document; `line` and `column` count from 1, 0 is unknown."""

    path: str
    message: str
    line: int
    column: int
    file: str


class ProfileAdvice(TypedDict):
    """One piece of advice, with the figure that led to it and the share of the time that it may save."""

    subject: Literal[
        "data-loading",
        "imbalance",
        "communication",
        "copies",
        "device-use",
        "stalls",
        "memory-slack",
        "one-thread",
        "page-cache",
        "disk",
        "throttling",
        "run-queue",
    ]
    figure: float
    gain: float
    rank: str
    """The rank that it is about; "" for all."""
    text: str
    of: Literal["time", "memory"]
    """What the gain is a share of: the time, or the memory that the task asked for."""


class ProfileCurve(TypedDict):
    """A figure over the time of a profile: the means of equally long spans, and the greatest single value."""

    name: str
    unit: str
    points: list[float]
    most: float


class ProfileDifference(TypedDict):
    """A share of the time in two profiles."""

    name: str
    before: float
    after: float


class ProfileFile(TypedDict):
    """A file of a profile."""

    name: str
    size: int


class ProfileFrame(TypedDict):
    """A rectangle of the flame graph: `begin` and `samples` are its place in the width of all samples."""

    name: str
    depth: int
    begin: int
    samples: int


class ProfileFunction(TypedDict):
    """A function's share of all samples: at the stack's top (`own`), and anywhere in the stack."""

    name: str
    own: float
    total: float


class ProfilePathPart(TypedDict):
    """A part of the critical path over the ranks: what one of them did while the others waited for it."""

    rank: str
    part: Literal["computing", "exposed_communication", "copies", "data_waits", "idle"]
    seconds: float
    share: float
    """Of the whole path."""
    names: list[str]
    """The operators, kernels or collectives with most of that time."""


class ProfilePlace(TypedDict):
    """Threads of several ranks that have the same stack, innermost frame first."""

    thread: str
    active: bool
    frames: list[str]
    ranks: list[str]


class ProfileProblem(TypedDict):
    """Why a process or a task is not in a profile, or only in part."""

    rank: str
    problem: str


class ProfileTop(TypedDict):
    """An operator, kernel or collective, with its whole time in seconds and its calls."""

    name: str
    seconds: float
    calls: int


class ProfileView(TypedDict):
    """A profile of a running job."""

    id: str
    job: str
    jobName: str
    what: Literal["python", "stacks", "torch", "jax", "tensorflow", "memory", "system"]
    seconds: int
    """For how long samples are taken; 0 for stacks."""
    state: Literal["taking", "reading", "done", "failed"]
    takenBy: str
    takenAt: str
    """When it was asked for."""
    startsAt: str
    """When its samples begin: PyTorch's traces begin on all ranks at the same moment."""
    tasks: list[str]
    ranks: int
    """Processes of which something was read."""
    problem: str
    """Why there is nothing in it; "" if there is."""
    problems: list[ProfileProblem]
    files: list[ProfileFile]
    size: int
    """Bytes that are kept of it."""


class QueueEstimates(TypedDict):
    """How good the estimates of one queue were. Times are in seconds; a median is null where nothing is to be counted."""

    queue: str
    given: int
    """Estimates that were stored in this time."""
    jobs: int
    """The jobs that they are of."""
    started: int
    """Those whose job has started since."""
    waiting: int
    """Those whose job still waits; of these only those past their P90 are judged."""
    notStarted: int
    """Those whose job ended without a start; they are not judged."""
    held: int
    """Intervals from P10 to P90 in which the job started."""
    early: int
    """Intervals before which it started."""
    late: int
    """Intervals after which it started, or still waits."""
    coverage: float | None
    """The part of the judged intervals that held; 0.8 is aimed at."""
    width: float | None
    """The median of P90 - P10; null also when most reach beyond the horizon."""
    pastWidth: float | None
    """P90 - P10 of the waits themselves, from the estimate to the start: what an interval has to be narrower than."""
    bias: float | None
    """The median of the start less P50; positive: jobs start later than they are told."""
    error: float | None
    """The median of how far the start was from P50."""


class QueueFigures(TypedDict):
    """One queue until the horizon, the mean over the seeds. Waits are in seconds; of jobs that still wait so far."""

    started: float
    ended: float
    preemptions: float
    waiting: float
    """Jobs that wait at the horizon."""
    waitP50: float | None
    waitP95: float | None
    devices: float
    """Devices in use, the mean over time."""
    lent: float
    borrowed: float


class QueueHistoryWeek(TypedDict):
    """One week of a queue with the queues below it; it begins on Monday in UTC."""

    week: str
    """Such as `2026-W48`."""
    begin: str
    started: int
    """Jobs that started for the first time in it."""
    waitP50: float | None
    """Seconds from submission to start; null where no job started."""
    waitP95: float | None
    used: float
    """Device-seconds that its jobs held."""
    borrowed: float | None
    """Device-seconds beyond its own; null where the server kept no series."""
    lent: float | None
    """Device-seconds of its own that others held; null as above."""


class QueueLimits(TypedDict):
    """The most that may be held in a queue, by resource: by all its jobs, by one user's, by one group's."""

    limit: NotRequired[dict[str, str]]
    userLimit: NotRequired[dict[str, str]]
    groupLimit: NotRequired[dict[str, str]]


class QueueOutcome(TypedDict):
    """One queue before and after the changes."""

    name: str
    before: QueueFigures
    after: QueueFigures


class QueueRow(TypedDict):
    """One queue under both."""

    queue: str
    inForce: Figures
    candidate: Figures


class QueueStanding(TypedDict):
    """One queue's entitlement and current use, including the queues below it."""

    name: str
    parent: str
    depth: int
    """The number of queues above it."""
    weight: float
    guaranteed: dict[str, int | float]
    """Reserved for it, never lent."""
    deserved: dict[str, int | float]
    """Its own amounts, lent while idle. Devices of cells that it owns are in `ownedDevices` instead."""
    limit: dict[str, int | float]
    """The most that it may hold."""
    borrowingLimit: dict[str, int | float]
    """The most that it may hold above its deserved amounts."""
    used: dict[str, int | float]
    fair: dict[str, float]
    """Its fair share given the demand of all queues: its deserved amounts, plus a part by weight of the rest."""
    borrowed: dict[str, int | float]
    """Its use beyond its own amounts: beyond deserved, and for devices also beyond the cells that it owns."""
    lent: dict[str, int | float]
    """Its own devices that others use; devices only."""
    lentTo: dict[str, int | float]
    """The lent amounts by borrowing queue."""
    borrowedFrom: dict[str, int | float]
    """The borrowed devices by owning queue; "" is devices that no queue owns."""
    cells: list[CellShare]
    pinned: list[str]
    """The ids of its pinned cells."""
    ownedDevices: int | float
    """Devices in all cells that it owns."""
    running: int
    """Jobs that hold resources."""
    guests: int
    """Running jobs with tasks outside guaranteed cells; 0 if the queue owns no cells."""
    waiting: int
    """Jobs that wait to start, wholly or in part."""
    wanted: dict[str, int | float]
    """The amounts that all waiting jobs need to begin."""


class QueueView(TypedDict):
    """One queue, the numbers of its running and waiting jobs, and its entitlement and use."""

    name: str
    running: int
    waiting: int
    devices: int | float
    doc: dict[str, Any]
    standing: QueueStanding | None
    """The scheduler's figures, including the queues below it; None while it does not answer."""
    membersOnly: bool
    """Whether only members of groups that grant or manage it may submit to it."""
    maySubmit: bool
    """Whether the caller may submit jobs to it, and it takes new jobs."""
    managers: list[str]
    """Its managers besides administrators, at most 100; only in answers about a single queue."""


class RankCurves(TypedDict):
    """The figures of one rank over time."""

    rank: str
    seconds: float
    curves: list[ProfileCurve]


class RankMemory(TypedDict):
    """The memory of one process in bytes, without swap."""

    rank: str
    used: int
    """At the end of the profile."""
    peak: int
    """The most that it ever had."""
    grown: int
    """All growth of private memory, also where some was given back."""
    kept: int
    """By how much private memory was larger at the end; negative where it was smaller."""
    holders: list[MemoryHolder]
    """By kind, the largest first."""
    names: list[MemoryHolder]
    """The largest mappings."""


class RankScore(TypedDict):
    """The pace of one task beside its peers'."""

    task: str
    node: str
    step: float
    """The step that it reported last."""
    stepsPerSecond: float | None
    """Over its last reports of at most five minutes; null until it has made two."""
    score: float | None
    """
    Its pace by the median of the others': 0.5 is half as fast; null without a peer to compare it with.

    Where each task reports its waits, it is the pace that the task would have without waits for the others.
    """
    behindSeconds: float
    """How long before the latest report of its gang its own was made."""
    waits: float | None
    """The part of the time of those reports in which it waited for other tasks; null unless it reports that."""


class RankScores(TypedDict):
    """The tasks of a running job that report their steps, the slowest first."""

    items: list[RankScore]


class RankTimeline(TypedDict):
    """Equal spans of a rank's trace: the share of each that every part takes. The rest is idle."""

    computing: list[float]
    exposedCommunication: list[float]
    copies: list[float]
    dataWaits: list[float]


class RankTimes(TypedDict):
    """What one rank did in the seconds of its trace; the parts from `computing` to `idle` add up to `seconds`."""

    rank: str
    seconds: float
    computing: float
    exposedCommunication: float
    copies: float
    dataWaits: float
    idle: float
    communication: float
    """All communication, hidden or not."""
    device: bool
    """Whether the trace has a device's work; else computing is that of the processors."""
    steps: int
    operators: list[ProfileTop]
    kernels: list[ProfileTop]
    collectives: list[ProfileTop]
    timeline: RankTimeline


class Readiness(TypedDict):
    """Whether the server can answer calls, with the reasons if not, or if it is degraded."""

    ready: bool
    reasons: list[str]
    degraded: bool
    """Whether stored data can be read but something else does not work; `reasons` says what."""


class ReasonView(TypedDict):
    """One constraint that keeps a job waiting, with the counts that show it."""

    code: str
    message: str
    counts: dict[str, int | float]


class ReasonsView(TypedDict):
    """Why a job waits, the binding constraint first; `possible` is False if even an empty cluster could not hold it."""

    binding: ReasonView
    others: list[ReasonView]
    ahead: int
    """The number of gangs before it; in stored reasons, as of the time when the reason was found."""
    possible: bool


class ReceiptView(TypedDict):
    """One receipt; `state` is `away`, `returned` or `ended`, `awaySeconds` the time without its devices."""

    id: str
    job: str
    name: str
    user: str
    queue: str
    attempt: int
    rule: str
    message: str
    at: str
    state: Literal["away", "returned", "ended"]
    devices: int | float
    tasks: list[str]
    byJob: str
    byQueue: str
    byUser: str
    costDeviceSeconds: float
    backAt: str | None
    returnedAt: str | None
    awaySeconds: float | None
    """None if the job ended without coming back."""


class RoleView(TypedDict):
    """
    One role of a job: the number of tasks it should have (`target`), and task counts by state.

    `stopped` are tasks that were asked to end; they are not among `failed`.
    """

    name: str
    replicas: int
    target: int
    total: int
    waiting: int
    running: int
    succeeded: int
    failed: int
    stopped: int
    elastic: bool
    minReplicas: int
    maxReplicas: int


class SavedFilter(TypedDict):
    """A filter of the list of jobs; a field that is empty filters nothing."""

    name: str
    state: NotRequired[list[Literal["waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped"]]]
    user: NotRequired[str]
    queue: NotRequired[str]
    q: NotRequired[str]
    """A part of the name, or the beginning of the id."""
    tag: NotRequired[str]
    order: NotRequired[Literal["", "newest", "oldest", "name", "priority", "ended"]]
    group: NotRequired[Literal["", "user", "sweep"]]
    """What the portal's list gathers jobs by."""
    priority: NotRequired[Literal["", "crit", "prod", "test", "oppo"]]
    """A priority class, with those above it; `oppo` is what is below 0."""


class SecretView(TypedDict):
    """One sealed secret of the caller, without its value."""

    name: str
    updatedAt: str


class SeriesView(TypedDict):
    """One series; its columns have one value for each step, and null where there is none."""

    family: str
    labels: dict[str, str]
    mean: list[float | None]
    low: list[float | None]
    """The least value of each step."""
    high: list[float | None]
    """The greatest value of each step."""


class ServerPart(TypedDict):
    """One part of the server."""

    kind: Literal["front", "scheduler", "store", "engine", "agent", "machine", "containers", "exporter"]
    """
    An agent is `corral node-agent` on another machine, whose figures the scheduler asks for. The machine is the
    scheduler's own; containers and exporters are what runs there: what starts containers of jobs, and what is read
    instead of measuring.
    """
    name: str
    state: Literal["ok", "degraded", "away"]
    """`degraded` works with the `reasons` as limits; `away` does not answer."""
    version: str
    """"" where the part tells none; of a machine that of its kernel."""
    reasons: list[str]
    """What does not work, one sentence each."""
    runsOn: list[str]
    """Of a machine and of an agent's: its operating system, its kernel and drivers of devices, with their versions."""


class ServiceView(TypedDict):
    """A port of a running task that the job file declares, which a browser may open."""

    task: str
    name: str
    port: int


class ServicesView(TypedDict):
    """The services of the first running tasks of a job."""

    items: list[ServiceView]


class ShareView(TypedDict):
    """The fraction of a device that a task has, in percent."""

    computePercent: float
    memoryPercent: float


class SharedQueue(TypedDict):
    """A queue of the cluster's own scheduler."""

    name: str
    """With the queues above it: `root.research`."""
    state: str
    capacity: float
    """Percent of the whole cluster that it is promised."""
    usedPercent: float
    """Percent of the whole cluster that its applications use, Corral's among them."""
    used: Amounts
    running: int
    """Applications that run in it; `pending` wait."""
    pending: int
    corral: bool
    """Whether Corral puts jobs into it: by the engine's settings, or at present."""


class SharedTemplate(TypedDict):
    """A template that was just stored."""

    type: str
    name: str
    version: str
    contributor: str
    """The account that shared its first version."""


class SignedIn(TypedDict):
    """A new token, shown only once."""

    token: str
    user: str
    role: str
    expiresAt: str


class SilenceView(TypedDict):
    """A silence: alerts that meet all its matchers are told to nobody until it ends."""

    id: str
    matchers: list[str]
    """Such as `alertname=~"Node.*"`; the operators are =, !=, =~ and !~."""
    by: str
    reason: str
    begins: str
    ends: str


class Spread(TypedDict):
    """Quantiles over the seeds, in seconds; null: later than the horizon, or never."""

    p10: float | None
    p50: float | None
    p90: float | None


class SshAccessView(TypedDict):
    """A certificate with which the owner of a key may enter a running task by SSH, for a few minutes."""

    job: str
    task: str
    hostKey: str
    """The public key of the cluster, as a line of `known_hosts` has it after the host."""
    certificate: str
    expiresAt: str


class Stay(TypedDict):
    """A job on devices of one node. Times are in seconds from now."""

    job: str
    """Its id."""
    name: str
    user: str
    queue: str
    node: str
    devices: list[int]
    """Indexes of the node's devices."""
    begin: float
    end: float | None
    """Null: after the horizon."""


class StorageView(TypedDict):
    """A storage that the caller may use."""

    name: str
    type: str
    description: str
    share: bool
    """Whether all users share one folder; otherwise each has a folder of their own."""
    readOnly: bool
    default: bool
    """Whether the caller's jobs mount it by default."""
    browsable: bool
    """Whether the server can read its folder."""
    groups: list[str]
    """For administrators: the groups that grant it."""


class Taken(TypedDict):
    """How many alerts the webhook took."""

    firing: int
    resolved: int


class TaskAmounts(TypedDict):
    """Amounts of one task; null is what nobody asked for, measured or can say."""

    devices: float | None
    cpus: float | None
    memoryBytes: int | None


class TaskCounts(TypedDict):
    """
    Task counts of a job or role by state; `waiting` includes tasks that are starting.

    `stopped` are tasks that were asked to end, by a person or because the job was over; they are not among `failed`.
    """

    total: int
    waiting: int
    running: int
    succeeded: int
    failed: int
    stopped: int


class TaskRecord(TypedDict):
    """One task of a job's current attempt; `state` is the launcher's task state."""

    role: str
    index: int
    state: str
    attempt: int
    node: str
    devices: list[int]
    host: str
    ports: dict[str, list[int]]
    startedAt: str | None
    endedAt: str | None
    exit: ExitView | None
    retries: int
    countedRetries: int
    """The retries that count against maxRetries."""
    retryAt: str | None
    """When its next attempt begins, while it waits for a delayed retry."""
    createdAt: str | None
    share: ShareView | None
    """Its fraction of its one device; null is the whole device."""


class TemplateDetail(TypedDict):
    """One template in one of its versions."""

    owner: str
    changedAt: str
    mayChange: bool
    versions: list[str]
    """The newest first."""
    item: dict[str, Any]
    """The template as it was sent, with its `version`."""


class TemplateView(TypedDict):
    """A template in a list."""

    type: str
    name: str
    contributor: str
    version: str
    description: str | None
    owner: str
    isPublic: bool
    groupList: list[str]
    tags: list[str]
    """Its categories and tags."""
    hasPicture: bool


class TimelineNode(TypedDict):
    """A node of a timeline, and how many devices it has."""

    name: str
    devices: int


class TokenView(TypedDict):
    """One token of the caller; the secret itself is only in `NewToken`."""

    id: str
    name: str
    kind: str
    user: str
    createdAt: str
    expiresAt: str | None
    lastUsedAt: str | None


class TopUpView(TypedDict):
    """Device-hours that somebody added to a budget for this window."""

    deviceHours: float
    at: str
    actor: str
    reason: str


class UploadProgress(TypedDict):
    """How far the upload of an archive is."""

    digest: str
    size: int
    """Bytes that the server has."""
    complete: bool
    """Whether the archive is whole, checked and stored."""


class Uploaded(TypedDict):
    """A stored blob."""

    digest: str
    size: int


class UsageRow(TypedDict):
    """The use of one user, queue, job, tag, node or device model."""

    key: str
    """
    Its name, of a job its id.

    "" has no name: jobs without a tag, jobs that were removed since, or devices of no known model.
    """
    name: str
    """The name of a job."""
    deviceSeconds: float
    """Seconds of whole devices; half a device for two seconds is one."""
    lostDeviceSeconds: float
    """The part in attempts that failed, were preempted, or were lost with their node."""
    taskSeconds: float
    cpuSeconds: float
    """Seconds of the processors that the tasks asked for, not of those that they used."""
    memoryGibSeconds: float
    """Seconds of the memory that the tasks asked for, in GiB."""
    measuredTaskSeconds: float
    """The part of the tasks' seconds in which they were measured; what follows is of this part alone."""
    usedCpuSeconds: float
    """Seconds of processors that the tasks used."""
    usedMemoryGibSeconds: float
    """Seconds of memory that the tasks used, in GiB."""
    energyJoules: float
    """Energy of the devices that the tasks held, where these tell their power."""
    measuredDeviceSeconds: float
    """The part of the devices' seconds in which their use was measured; what follows is of this part alone."""
    usedDeviceSeconds: float
    """Seconds of devices by their use: a device of which 40 % are in use for ten seconds counts four."""
    idleDeviceSeconds: float
    """Seconds of devices whose use was below 5 %, in attempts that are not lost: with the lost ones all that was wasted."""
    cost: float | None
    """What it costs by the Prices document; null where there is none."""


class UseOverTime(TypedDict):
    """The whole cluster over time; the mean over the seeds at each time."""

    devices: float
    """Devices that tasks can use."""
    used: list[float]
    waiting: list[float]
    """Jobs that wait."""


class UserChanged(TypedDict):
    """One account after a change."""

    name: str
    role: str
    groups: list[str]
    uid: int | None
    createdAt: str
    disabled: bool
    hasPassword: bool
    folder: str
    """Its folder on storages with one folder per user; unique even if a deleted account had its name."""
    maxPriority: int | None
    """The highest priority of its jobs; null: its groups decide."""
    email: str
    notice: str
    """After a new password: the sessions and tokens that it ended, and the tokens that are still valid."""


class UserFairness(TypedDict):
    """One user whose jobs succeeded in the week."""

    user: str
    jobs: int
    rhoP50: float
    worstRho: float
    worstJob: str


class UserView(TypedDict):
    """One account."""

    name: str
    role: str
    groups: list[str]
    uid: int | None
    createdAt: str
    disabled: bool
    hasPassword: bool
    folder: str
    """Its folder on storages with one folder per user; unique even if a deleted account had its name."""
    maxPriority: int | None
    """The highest priority of its jobs; null: its groups decide."""
    email: str


class VersionView(TypedDict):
    """The server's version and features."""

    version: str
    api: str
    features: list[str]


class WaitingView(TypedDict):
    """Why a job waits: the binding constraint, and the number of gangs ahead of it."""

    code: str
    message: str
    ahead: int
    """As of the time when the reason was found; `explain` counts again."""
    possible: bool
    """Whether the machines known at that time could hold the job if they were empty."""


class WhatIfProgress(TypedDict):
    """How far a question is."""

    fraction: float
    """Of the courses that are played, from 0 to 1; with a goal, of the most attempts that its search may take."""
    stage: Literal["waiting", "preparing", "reading", "before", "after", "comparing"]
    course: int
    """The number of the course that is played, from 1; 0 before the first one."""
    courses: int
    """How many courses are played, each before and after the changes."""
    attempt: int
    """The number of the value that the search for a goal tries, from 1; 0 without a goal."""
    mostAttempts: int
    trying: str
    """The value that is tried, in words."""
    says: str
    """All of it as a sentence."""


class WhatIfRefusal(TypedDict):
    """Why a question has no answer: the error that it would have had at once."""

    status: int
    """The HTTP status of the error."""
    code: str
    message: str
    problems: list[ProblemView]
    """The problems of its documents."""


class WorkView(TypedDict):
    """What a job's program last said of its work; null: not said."""

    at: str
    """When it said it."""
    progress: float | None
    """The fraction of its work that is done, from 0 to 1."""
    step: float | None
    steps: float | None
    """The steps of the whole work."""
    throughput: float | None
    """Work per second, in the job's own unit."""
    loss: float | None
    gradientNoise: float | None
    """The gradient noise scale, in examples."""
    batchSize: float | None
    """Examples of one step, of all tasks together."""
    active: float | None
    """1 while somebody works in the job, such as in the kernels of a notebook; 0 while nobody does."""


class AccountUse(TypedDict):
    """An account's use of its quotas."""

    tasks: Amount
    """Waiting and running tasks."""
    codeBytes: Amount
    """Bytes of uploaded code that are stored."""
    submissions: Amount
    """Submissions in the hour that began with the first of them."""
    logBytesOfStream: int
    """Bytes kept of each stream of a task's log, the newest; 0 is no limit."""
    folderBytesOfTask: int
    """Bytes that a task may have in its working folder, or a pod in all that it writes to its node; 0 is no limit."""
    folder: str
    """The account's folder on storages with one folder per user."""


class AlertList(TypedDict):
    """All alerts that the caller may see, those that fire first."""

    items: list[AlertView]


class Applied(TypedDict):
    """The result of applying a file of documents; in a dry run, the result that it would have."""

    documents: list[AppliedDocument]
    dryRun: bool
    findings: list[GuaranteeFinding]
    """The guarantees that were broken because the caller asked for `preempt`."""


class AttemptRecord(TypedDict):
    """One run of one task, in any attempt of the job."""

    id: str
    jobAttempt: int
    role: str
    index: int
    attempt: int
    node: str
    devices: list[int]
    host: str
    ports: dict[str, list[int]]
    startedAt: str | None
    endedAt: str | None
    exit: ExitView | None


class Batch(TypedDict):
    """The effect of an account list, which is applied wholly or not at all."""

    lines: list[BatchLine]
    applied: bool
    """Whether it was stored; never in a dry run."""


class BenchmarkComparison(TypedDict):
    """Two runs beside each other, the largest loss first."""

    before: BenchmarkRunView
    after: BenchmarkRunView
    changes: list[BenchmarkChange]
    ways: list[BenchmarkWays]


class BenchmarkHistory(TypedDict):
    """What runs measured of one metric, oldest first."""

    metric: str
    unit: str
    largerIsBetter: bool
    points: list[BenchmarkPoint]
    cut: bool
    """Whether there are older values that are not told."""


class BenchmarkOverview(TypedDict):
    """The last results of all nodes; nodes with findings come first."""

    nodes: list[BenchmarkedNode]
    metrics: list[BenchmarkMetric]
    runs: list[BenchmarkRunView]
    """The newest runs, newest first."""
    days: int
    """For how long results are kept."""


class BenchmarkRunResults(TypedDict):
    """What a kept run measured, by node: of a large run a part."""

    run: BenchmarkRunView
    results: list[BenchmarkNodeResult]
    nextOffset: int | None
    """The figure at which the next part begins; null after the last one."""


class BudgetView(TypedDict):
    """A budget in its present window, in device-hours."""

    kind: str
    """`queue` or `user`."""
    name: str
    window: str
    """`day`, `week` or `month`, in UTC; weeks begin on Monday."""
    begin: str
    end: str
    allowed: float
    """What may be used in this window, with what was added."""
    deviceHours: float
    """What may be used in every window."""
    used: float
    promised: float
    """What live jobs may still use in this window, by their maxDuration."""
    left: float
    warnAt: float
    """The part of it from which submissions are warned."""
    state: str
    """`open`, `warned` or `used-up`."""
    topUps: list[TopUpView]
    setAt: str
    """When it was last set."""
    setBy: str
    whenUsedUp: Literal["warn", "hold"]
    """What becomes of jobs that run while it is used up: `warn` their owners, or `hold` them."""


class CellDevice(TypedDict):
    """One device of a cell; `state` is `free`, `used`, `leaving`, `unhealthy` or `closed` (its node takes no tasks)."""

    index: int
    id: str
    kind: str
    model: str
    state: Literal["free", "used", "leaving", "unhealthy", "closed"]
    reason: str
    """Why it is unhealthy or closed."""
    owner: str
    """The queue that its cell is bound to now."""
    pinned: bool
    uses: list[DeviceUse]


class CellState(TypedDict):
    """One cell with its device counts, owners and users, and the cells in it to the requested depth."""

    id: str
    """Its id for the parameter `under`: `ENGINE|LEVEL:NAME`; "" for the whole cluster."""
    level: str
    name: str
    devices: int
    free: int
    """Devices that can be allocated now."""
    used: int
    leaving: int
    """Devices whose tasks were told to end."""
    guests: int
    """Devices used by guests."""
    unhealthy: int
    closed: int
    """Devices of nodes that take no new tasks."""
    owners: dict[str, int]
    """By queue, the number of its devices bound to that queue."""
    owner: str
    """The queue that the whole cell is bound to."""
    pinned: bool
    whole: bool
    """Whether its type is owned by some queue and no bound cell overlaps it, so that it could be bound."""
    queues: dict[str, int | float]
    """By queue, the number of its devices in use; tasks with a fraction of a device count that fraction."""
    state: Literal["", "cordoned", "not-ready", "unknown"]
    """Of a node or an engine: `cordoned`, `not-ready` or `unknown`; "" if it is healthy."""
    reason: str
    inside: int
    """The number of cells or devices directly in it; `cells` and `holds` may have fewer: query with `under`."""
    cells: list[CellState]
    holds: list[CellDevice]


class CellTree(TypedDict):
    """A part of the cell tree; pass `next` as `after` for more children of the requested cell."""

    at: str
    cell: CellState
    next: str | None


class ClusterUse(TypedDict):
    """How one cluster is used beside Corral."""

    engine: str
    queues: list[SharedQueue]
    applications: list[OtherApplication]
    """The ones that use most memory first."""
    leftOut: int
    """Further applications that are not listed."""
    others: Amounts
    """What all applications that are not Corral's use."""
    corral: Amounts
    """What Corral's own applications use, the masters of its services among them."""
    trouble: str
    """Why the cluster could not be asked; "" when it answered."""


class DeviceTimeline(TypedDict):
    """What ran on the devices of some nodes, and what is expected to run there."""

    at: str
    """When it was asked for: the past ends here."""
    begin: str
    end: str
    nodes: list[TimelineNode]
    """By name."""
    past: list[DeviceStay]
    """Attempts of tasks, the latest first. Those of jobs that were removed are not known any more."""
    pastLeftOut: int
    expected: list[DeviceStay]
    """From the first course of the forecast, the earliest first; it goes on with what runs now."""
    expectedLeftOut: int
    forecastUntil: str | None
    """How far the forecast looks ahead; null without one."""
    trouble: str
    """Why there is no forecast; "" where there is one, or where nothing of the time is to come."""
    next: str | None


class EditView(TypedDict):
    """The result of an edit of a waiting job; `changes` is empty if the job had these values already."""

    id: str
    name: str
    changes: list[EditedField]
    dryRun: bool
    """Whether this was a dry run, which stores nothing."""


class EstimateReport(TypedDict):
    """How good the estimates of the last days were, by queue."""

    at: str
    days: int
    queues: list[QueueEstimates]
    """By name; only queues with estimates."""
    total: QueueEstimates
    """All of these queues together."""


class FairnessReport(TypedDict):
    """The fairness of a week, which begins on Monday in UTC."""

    begin: str
    end: str
    items: list[FairnessRow]
    jain: float | None
    """Jain's index of the ratios, from 1/n (one queue got all) to 1 (all ratios are equal); null without a ratio."""
    worstFinishTimeRatio: float | None
    waitP50: float | None
    waitP95: float | None
    users: list[UserFairness]
    """The worst off first, at most 1,000."""
    jobs: list[JobFairness]
    """The worst off first: ten of everybody's, or at most 1,000 of one user's."""
    unknown: list[str]
    """What the records do not tell."""


class GoalOutcome(TypedDict):
    """The least that reaches a goal. The rest of the answer is about this least, or about the most that was tried."""

    goal: str
    vary: str
    reached: bool
    least: int | None
    """Nodes to add, or the value of the queue's field; null: nothing that was tried reaches the goal."""
    complete: bool
    """Whether the search came to its end; else less may do as well, or more may reach it."""
    unit: str
    """Of the measured values: `seconds` or `number`."""
    says: str
    """The outcome as a sentence."""
    tries: list[GoalTry]
    """In the order in which they were tried."""


class Holding(TypedDict):
    """The task that holds a device or, with `share`, a fraction of it; null is the whole device."""

    id: str
    name: str
    user: str
    role: str
    index: int
    share: ShareView | None


class HourRow(TypedDict):
    """One clock hour, or the part of it that was compared."""

    at: str
    seconds: float
    decisions: Counts
    inForce: Figures
    candidate: Figures
    devices: int
    """The devices that could be used at its end."""
    queues: list[QueueRow]


class JobDevices(TypedDict):
    """The accelerators of one replica."""

    count: NotRequired[int]
    """How many devices one replica gets; all of them or none."""
    kind: NotRequired[str]
    """The kind of device, such as gpu or npu; "" is any."""
    model: NotRequired[str]
    """The model, such as A100 or described-a100; "" is any."""
    ids: NotRequired[list[str]]
    """Named devices: indexes within the node or ids; each replica gets exactly these of its node."""
    bitmap: NotRequired[str]
    """The same as bits, such as 0x33 for the devices 0, 1, 4 and 5; its bits and count agree; 0 is by count."""
    share: NotRequired[JobShare]
    """A part of one device instead of whole ones."""


class JobNodeRules(TypedDict):
    """Which nodes the tasks may be on."""

    include: NotRequired[list[str]]
    """Only these nodes, with or without the engine's name."""
    exclude: NotRequired[list[str]]
    """None of these nodes."""
    expressions: NotRequired[list[JobExpression]]
    """What their labels have to be, besides nodeSelector."""
    tolerations: NotRequired[list[JobToleration]]
    """The taints that the tasks do not mind."""


class JobOutcome(TypedDict):
    """When one job starts, in seconds from now. Of other people's jobs ordinary users see no name and no user."""

    id: str
    name: str
    user: str
    queue: str
    devices: float
    waitedSeconds: float
    added: bool
    """Whether the question submits it; then it has no time before."""
    before: Spread
    after: Spread
    neverBefore: bool
    """Whether it never starts as things are, since no nodes could hold it even if nothing ran."""
    neverAfter: bool
    """The same with the changes."""


class JobResources(TypedDict):
    """The resources of one replica."""

    cpu: NotRequired[str]
    """Processors: "2", "0.5" or "500m"; "0" reserves and limits nothing."""
    memory: NotRequired[str]
    """Memory: "512Mi" or "2Gi"; "0" reserves and limits nothing."""
    disk: NotRequired[str]
    """Disk space: "20Gi"; "0" reserves nothing."""
    other: NotRequired[dict[str, int]]
    """Any other resource that nodes count, by its name, such as {licences: 2}."""
    devices: NotRequired[JobDevices]


class JobSummary(TypedDict):
    """One entry of the job list."""

    id: str
    name: str
    user: str
    queue: str
    priority: int
    jobType: str
    state: Literal["waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped"]
    createdAt: str
    startedAt: str | None
    endedAt: str | None
    tasks: TaskCounts
    devices: int | float
    """Devices that the job holds when all tasks of its requested size run; fractions of devices count as fractions."""
    retries: int
    """Retries of the job and of single tasks together."""
    taskRetries: int
    """Retries of single tasks only."""
    exit: ExitView | None
    waiting: WaitingView | None
    tags: list[str]
    devicesHeld: int | float
    """Devices that its tasks hold now: fewer while an elastic job is below its size, or when some tasks are over."""
    array: ArrayView | None
    """Set only in a list with one entry per array."""


class JobTopology(TypedDict):
    """How close together, or how far apart, the replicas are placed."""

    required: NotRequired[str]
    """The level all must be inside, such as node or rack; "" is anywhere."""
    preferred: NotRequired[str]
    """The level tried first; not being inside it is noted, not an error."""
    group: NotRequired[JobTopologyGroup]
    """Groups of consecutive replicas."""
    spread: NotRequired[JobTopologySpread]
    """Replicas of a role that are apart; a job's holds for each role."""
    sameModel: NotRequired[bool]
    """All devices are of one model, whichever."""


class MachineFacts(TypedDict):
    """What a task read of its machine; what it could not read is empty."""

    host: str
    kernel: str
    os: str
    processor: str
    processors: int
    sockets: int | None
    clock: str
    governors: dict[str, int]
    """How many processors have which governor of their frequency."""
    throttled: int | None
    """How often processors were throttled since the machine started."""
    hugePages: str
    """Of transparent huge pages: always, madvise or never."""
    swappiness: int | None
    numaBalancing: int | None
    memory: MachineMemory
    numa: list[NumaNode]
    pci: list[PciLink]
    disks: list[MachineDisk]
    drivers: dict[str, str]
    """Versions of the drivers of devices and networks."""
    pressure: dict[str, float]
    """The part of the last minute in which some task waited for cpu, memory or io."""
    workFolder: FolderDisk


class MachineReport(TypedDict):
    """A machine of the job."""

    task: str
    node: str
    facts: MachineFacts
    findings: list[str]


class NetworkReport(TypedDict):
    """The network between the tasks of a job, as they measured it before their commands began."""

    at: str
    tasks: int
    seconds: float
    """How long the slowest task took for it."""
    levels: list[NetworkLevel]
    """From the narrowest to the widest."""
    ways: list[NetworkWay]
    ring: list[NetworkWay]
    """The ways of the ring while all tasks send at once."""
    findings: list[str]
    """What is slower than the topology lets expect, or could not be measured, in sentences."""


class PlacementRecord(TypedDict):
    """The node and devices of one task; `rank` is its number in topology order, None if the framework has no ranks."""

    role: str
    index: int
    node: str
    devices: list[int]
    host: str
    ports: dict[str, list[int]]
    state: str
    rank: int | None
    share: ShareView | None
    """The task's fraction of its one device; null is the whole device."""


class PlatformReport(TypedDict):
    """The machines of a job, as its tasks found them before their commands began."""

    at: str
    machines: list[MachineReport]
    differences: list[str]
    """In what machines differ that should be alike, in sentences."""


class PreflightReport(TypedDict):
    """What the tasks of a job's current attempt checked before their commands began."""

    attempt: int
    checks: list[str]
    """What the job asks to be checked."""
    network: NetworkReport | None
    """null until a task told what it measured."""
    platform: PlatformReport | None
    """null until a task told what its machine is like."""


class ProfileComparison(TypedDict):
    """Two profiles of one kind: of traces the shares of time of all ranks, of samples the functions' own shares."""

    what: Literal["python", "stacks", "torch", "jax", "tensorflow", "memory", "system"]
    before: str
    """The profile that is compared with."""
    after: str
    differences: list[ProfileDifference]
    """The greatest difference first."""


class ProfileList(TypedDict):
    """Profiles, newest first, and what those of the user's jobs take of the quota."""

    items: list[ProfileView]
    bytes: int
    mostBytes: int
    """The quota in bytes; 0 is no limit."""
    days: float
    """After so many days a profile is removed."""


class ProfileReport(TypedDict):
    """What was read of a profile; parts that its kind does not have are empty."""

    what: Literal["python", "stacks", "torch", "jax", "tensorflow", "memory", "system"]
    ranks: list[str]
    places: list[ProfilePlace]
    """Where threads stand; the places of the fewest ranks come first."""
    samples: int
    """How many samples the flame graph has; of memory, how many KiB grew."""
    functions: list[ProfileFunction]
    """The functions with the most samples of their own; of memory, those beneath which it grew most."""
    frames: list[ProfileFrame]
    """The flame graph, each frame before those below it."""
    reports: list[RankTimes]
    imbalance: float
    advice: list[ProfileAdvice]
    """The greatest gain first."""
    path: list[ProfilePathPart]
    """The critical path over the ranks, the longest part first; empty where they have no collectives in common."""
    memory: list[RankMemory]
    curves: list[RankCurves]


class QueueHistory(TypedDict):
    """Weeks of a queue, the latest first; the first is not over."""

    queue: str
    weeks: list[QueueHistoryWeek]
    unknown: list[str]
    """What the records do not tell."""


class RoleEfficiency(TypedDict):
    """The tasks of one role."""

    role: str
    tasks: int
    """Tasks that ran in the time of the report."""
    measuredTasks: int
    """Those of them with figures."""
    deviceSeconds: float
    lostDeviceSeconds: float
    """The part in attempts that failed, were preempted, or were lost with their node."""
    usedDeviceSeconds: float | None
    """The device-seconds times the mean use of the devices; null where no use was measured."""
    taskSeconds: float
    devicePercent: float | None
    """The mean use of the devices."""
    deviceMemoryPercent: float | None
    """The most memory of a device that was in use."""
    asked: TaskAmounts
    """What each task asked for."""
    mean: TaskAmounts
    """What a task used on average; of devices, how many whole ones."""
    most: TaskAmounts
    """The most that a task used; of devices, how many were ever in use."""
    wouldDo: TaskAmounts
    """A smaller request that would have done; null where what was asked fits, or nothing can be said."""


class RunningShadow(TypedDict):
    """The running shadow of a server, or the last one that ended."""

    state: Literal["running", "done", "failed", "stopped"]
    candidate: str
    user: str
    """Who began it."""
    askedAt: str
    begin: str
    """From when on both are compared."""
    end: str
    """When it ends by itself."""
    anew: bool
    reportedAt: str | None
    """Up to when its report goes; None: there is none yet."""
    nextAt: str | None
    """When the next report is made; None: it has ended, or one is being made."""
    progress: WhatIfProgress | None
    """How far the report is that is being made."""
    trouble: str
    """Why the last report could not be made, though it goes on."""
    error: WhatIfRefusal | None
    """Why it failed."""


class SeriesAnswer(TypedDict):
    """Series on a common grid of times."""

    begin: str
    """When the first step begins."""
    end: str
    """When the last step ends."""
    step: int
    """The length of a step in seconds."""
    items: list[SeriesView]
    leftOut: int
    """Further series that fit the question."""


class ShadowReport(TypedDict):
    """A candidate beside the policy in force."""

    begin: str
    end: str
    inForce: str
    """The policy that decided at the beginning."""
    candidate: str
    within: float
    """Seconds by which decisions that are alike may differ."""
    decisions: dict[str, Counts]
    """By kind."""
    undecided: int
    """Decisions of the last seconds, of which is not known whether both make them."""
    hours: list[HourRow]
    total: HourRow
    differences: list[Difference]
    """The first ones."""
    differencesLeftOut: int
    """Later decisions that one of both made alone."""
    earlier: int
    """Jobs that start earlier under the candidate, by more than `within`."""
    later: int
    same: int
    gains: list[Moved]
    losses: list[Moved]
    assumptions: list[str]
    notes: list[str]
    problem: str
    """Why it ends early, in one sentence; "" if it does not."""


class ShadowStatus(TypedDict):
    """A comparison that a server makes."""

    id: str
    state: Literal["running", "done", "failed", "cancelled"]
    askedAt: str
    progress: WhatIfProgress
    answer: ShadowReport | None
    """Once it is done; lists and events have none."""
    error: WhatIfRefusal | None
    """Once it has failed."""


class SilenceList(TypedDict):
    """The silences that have not ended."""

    items: list[SilenceView]


class TemplatePage(TypedDict):
    """A page of templates, the best matches first."""

    totalCount: int
    pageNo: int
    pageSize: int
    items: list[TemplateView]


class Timeline(TypedDict):
    """What runs where, as things are and with the changes, in the courses of the first seed."""

    nodes: list[TimelineNode]
    """The nodes with devices, at most 500."""
    before: list[Stay]
    after: list[Stay]
    leftOut: int
    """Stays that are not told: those after the first 2,000 of a course, and those on nodes that are not told."""


class Top(TypedDict):
    """The live table: totals, and the running jobs with the devices they hold."""

    at: str
    total: Amounts
    free: Amounts
    waiting: int
    running: int
    jobs: list[JobSummary]


class UsageReport(TypedDict):
    """The use from one time to another."""

    begin: str
    end: str
    by: str
    total: UsageRow
    items: list[UsageRow]
    """The largest first."""
    leftOut: int
    """Further rows, which are in the total alone."""
    currency: str
    """Of the costs, by ISO 4217; "" where there are no prices."""


class WhatIfAnswer(TypedDict):
    """What is to be expected as things are, beside what is to be expected with the changes."""

    at: str
    cursor: int
    """The last request of a user that the answer knows of."""
    horizonSeconds: float
    seeds: int
    changes: list[str]
    """The changes, each as a clause."""
    assumptions: list[str]
    """What was assumed, each as a sentence."""
    queues: list[QueueOutcome]
    jobs: list[JobOutcome]
    """The waiting and the submitted jobs, in their order: the first 1,000, and those that gain or lose most."""
    jobsLeftOut: int
    gains: list[str]
    """The ids of those that start earlier by most (P50), at most ten."""
    losses: list[str]
    """The ids of those that start later by most, at most ten."""
    times: list[float]
    """Seconds from now of the following."""
    before: UseOverTime
    after: UseOverTime
    timeline: Timeline | None
    """Where it was asked for."""
    goal: GoalOutcome | None
    """Where the question had a goal."""
    revision: str
    """The revision of the state that it looks at; forecasts of equal revision and seeds say the same as `before`."""


class WhatIfStatus(TypedDict):
    """A question that is answered later."""

    id: str
    state: Literal["running", "done", "failed", "cancelled"]
    askedAt: str
    progress: WhatIfProgress
    answer: WhatIfAnswer | None
    """Once it is done; lists and events have none."""
    error: WhatIfRefusal | None
    """Once it has failed."""


class BudgetList(TypedDict):
    """Budgets by kind, name and window."""

    items: list[BudgetView]


class DeviceView(TypedDict):
    """One accelerator of a node, and the tasks that hold it."""

    index: int
    id: str
    kind: str
    model: str
    memoryBytes: int
    healthy: bool
    healthReason: str
    described: bool
    cells: dict[str, str]
    node: str
    parent: int
    """The index of the device that it is a slice of; -1 is none."""
    free: bool
    """Whether it is healthy and can be allocated whole: no fraction, slice or parent of it is in use."""
    job: Holding | None
    others: list[Holding]
    """The other tasks that hold fractions of it."""


class EstimateView(TypedDict):
    """When a waiting job is likely to start: the time (`at`), its certainty (`basis`) and its grounds (`message`)."""

    basis: str
    message: str
    at: str | None
    seconds: float | None
    """Seconds from now."""
    after: list[JobSummary]
    """The last jobs that must end first, or those that have no known end; at most five."""
    p10: str | None
    """The time by which it starts in a tenth of the forecast's courses. Null: none is known."""
    p50: str | None
    """The median; `at` of an expected start. `at-latest` counts also the grace of jobs that use all their time."""
    p90: str | None
    forecast: ForecastView | None
    """Null: it is sure without one, or there is none."""


class Explanation(TypedDict):
    """Why a job is in its state, as one sentence and in parts."""

    job: str
    state: str
    message: str
    reasons: ReasonsView | None
    ahead: list[JobSummary]
    estimate: EstimateView | None
    changes: list[ChangeView]
    """The smallest changes that would start it now, at most three, the smallest first."""
    receipts: list[ReceiptView]
    """Its preemptions from which it has not come back yet."""


class JobEfficiency(TypedDict):
    """One job."""

    job: str
    name: str
    user: str
    queue: str
    state: Literal["waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped"]
    deviceSeconds: float
    lostDeviceSeconds: float
    usedDeviceSeconds: float | None
    """Of all its roles; null where no use of a device was measured."""
    measuredDeviceSeconds: float
    """Device-seconds of the roles whose use was measured."""
    longestSeconds: float
    """The time of its longest attempt of a task, which `maxDuration` bounds."""
    maxDurationSeconds: int
    """0 is no limit."""
    wouldDoSeconds: int | None
    """A shorter `maxDuration` that would have done."""
    roles: list[RoleEfficiency]
    words: list[str]
    """The same in sentences, the largest waste of devices first."""


class JobRole(TypedDict):
    """A role in the canonical form: equal tasks, numbered from 0."""

    name: str
    """The role's name, unique in the job."""
    replicas: NotRequired[int]
    """How many tasks; left out for the one role that replicaSpec counts."""
    image: NotRequired[str]
    """The container image; "" is the engine's default or none."""
    imagePullSecrets: NotRequired[list[str]]
    """Names of the secrets that open the image's registry."""
    resources: NotRequired[JobResources]
    """What each task gets of its node."""
    processesPerReplica: NotRequired[int]
    """Processes the launcher starts per task; 0 is one per device, at least one."""
    command: NotRequired[list[str]]
    """What one process runs: the program and its arguments."""
    workingDir: NotRequired[str]
    """The folder the command starts in; "" is where the code was unpacked."""
    env: NotRequired[dict[str, str]]
    """Environment variables."""
    secrets: NotRequired[list[JobSecret]]
    """Stored secrets given to each task."""
    ports: NotRequired[list[JobPort]]
    """Free ports each task is given."""
    shm: NotRequired[str]
    """Shared memory, such as "1Gi"; "" is the engine's default."""
    topology: NotRequired[JobTopology]
    """Narrower closeness for this role alone, besides the job's."""
    completion: NotRequired[JobCompletion]
    """How many ended tasks of this role end the job."""
    retryPolicy: NotRequired[JobRetryPolicy]
    """When one ended task is tried again."""
    maxTaskSeconds: NotRequired[int]
    """The longest run of one attempt of a task: then it is ended as failed (-1004), and retryPolicy decides. 0 is no limit."""
    nodeSelector: NotRequired[dict[str, str]]
    """Labels that each task's node must have."""
    nodes: NotRequired[JobNodeRules]
    """Which nodes its tasks may be on, besides the job's own rules."""
    pinnedCell: NotRequired[str]
    """The pinned cell that its tasks have to be in; "" is the job's."""
    affinityGroup: NotRequired[str]
    """Under the preset hived: roles of one name are one affinity group, placed together apart from the others."""
    kubernetes: NotRequired[JobKubernetes]
    """What only the Kubernetes engine reads."""


class JobSpec(TypedDict):
    """The spec of a job: its roles, framework, scheduling and options."""

    jobType: NotRequired[str]
    """The framework that starts it: pytorch, tensorflow, jax, mpi, horovod, cntk, shell, notebook, external, or a plug-in's."""
    queue: NotRequired[str]
    """The queue (virtual cluster) whose share it uses."""
    priority: NotRequired[str]
    """crit (120), prod (100), test (10), oppo (-1), or any integer; "" is test."""
    preemptible: NotRequired[bool]
    """Whether others may have it yield under their queues' rules; in cells that others own it always may."""
    pinnedCell: NotRequired[str]
    """The pinned cell that all of it has to be in, one of its virtual cluster's; "" is any place."""
    lazyPreemption: NotRequired[bool]
    """Under the preset hived: whether it runs on as a guest, instead of being ended, when a job of higher priority of the same virtual cluster takes its cells."""
    topology: NotRequired[JobTopology]
    """How close together the whole job is, all roles counted together."""
    speeds: NotRequired[dict[str, float]]
    """How fast it works on each model of device, in work per second of any unit; 0: it cannot run on that model. Policies for several models read it."""
    scaling: NotRequired[list[JobMeasuredSize]]
    """How fast it works at several sizes, as measured before. A policy that sizes elastic jobs by their goodput or as Themis does reads it until the job reports its own throughput there."""
    gang: NotRequired[bool]
    """Whether its tasks get their places all at once; without, each starts as soon as there is one for it."""
    roles: list[JobRole]
    """The roles, in order."""
    replicaSpec: NotRequired[JobReplicaSpec]
    """How many tasks the counted role has."""
    maxDurationSeconds: NotRequired[int]
    """The longest run of the job; then it is ended as failed. 0 is no limit."""
    idleSeconds: NotRequired[int]
    """The job is suspended when its tasks report for this long that nobody works in them, as notebooks do by themselves; at least 1m. 0 is never."""
    hangAfterSeconds: NotRequired[int]
    """How long its tasks may show no progress, by a reported step, their logs or their devices, before the job hangs, at most; 0 leaves it to the queue."""
    deadlineSeconds: NotRequired[int]
    """The job should end within this time of its submission. The order deadline starts the most urgent job first. 0 is no deadline."""
    code: NotRequired[JobCode]
    """The program's files."""
    inputs: NotRequired[list[JobInput]]
    """Data fetched before the start."""
    outputs: NotRequired[list[JobOutput]]
    """Data kept after the end."""
    storages: NotRequired[list[JobStorageUse]]
    """Storages that the tasks have, each at a path of its own."""
    nodes: NotRequired[JobNodeRules]
    """Which nodes the job may be on."""
    sharing: NotRequired[JobSharing]
    """With which jobs the job shares its nodes."""
    network: NotRequired[JobNetwork]
    """What is needed of the network."""
    retryPolicy: NotRequired[JobRetryPolicy]
    """When the whole job is tried again."""
    checkpoint: NotRequired[JobCheckpoint]
    """How tasks are asked to end."""
    report: NotRequired[JobReport]
    """How the program tells how far it is."""
    profile: NotRequired[bool]
    """Whether `corral profile --what torch` can have traces of the tasks' PyTorch."""
    compileCache: NotRequired[JobCompileCache]
    """Whether what its tasks compile is kept for later tasks."""
    preflight: NotRequired[JobPreflight]
    notifications: NotRequired[JobNotifications]
    """What the owner is told of it, on the owner's channels."""
    badHardware: NotRequired[Literal["auto", "replace", "keep"]]
    """When a node is lost or a device turns unhealthy under the job: replace moves it elsewhere, keep lets it run on; auto moves it off a lost node and keeps it on an unhealthy device."""
    exitTable: NotRequired[Literal["standard", "openpai", "frameworkcontroller", "frameworklauncher"]]
    """The table of exit codes: which failures are transient, and which are permanent. `openpai` is the former name of `standard`, and deprecated."""
    barrier: NotRequired[JobBarrier]
    """Whether tasks wait for each other at the start."""
    tags: NotRequired[list[str]]
    """Words to find the job by."""
    parameters: NotRequired[dict[str, str]]
    """Values that `<% $parameters.NAME %>` stands for anywhere in the document."""
    dependsOn: NotRequired[list[JobDependency]]
    """Jobs that must have ended before this one starts."""
    array: NotRequired[JobArray]
    """Run this document many times."""


class LineEntry(TypedDict):
    """One job of the waiting list. Its amounts are those it needs to begin, or all that it could still get."""

    position: int
    """Its position in the waiting list of all queues, from 1: the order in which the next cycle visits jobs."""
    job: str
    name: str
    user: str
    queue: str
    priority: int
    submittedAt: str
    tasks: int
    devices: int | float
    """Fractions of devices count as fractions: 2.5."""
    cpuMillis: int
    memoryBytes: int
    model: str
    """The requested device model; "" is any."""
    level: str
    """The level whose one cell must hold the whole gang; "" is none."""
    grows: bool
    """Whether it runs already and waits for more tasks."""
    yielding: bool
    """Whether other jobs were told to end for it; its place is reserved."""
    reason: ReasonView | None
    """The binding constraint; None before the first cycle that looks at it."""
    possible: bool
    """Whether it could run on the machines known now if they were empty."""
    estimate: EstimateView | None
    """When it is likely to start; its `after` is empty."""


class NodeView(TypedDict):
    """One machine; `name` is ENGINE/NODE, `levels` the cells above it (rack and so on)."""

    name: str
    engine: str
    ready: bool
    """As reported by its engine; a cordoned node may be ready, yet takes no new tasks."""
    reason: str
    cordon: CordonView | None
    levels: dict[str, str]
    labels: dict[str, str]
    total: Amounts
    free: Amounts
    devices: list[DeviceView]
    links: list[list[int]]
    mismatches: list[MismatchView]
    """Differences between report and configuration; a node with any is not ready."""
    tasks: int
    jobs: list[NodeJob]
    """The jobs with tasks on it, by name; draining the node would move these."""
    seenAt: str


class PeersView(TypedDict):
    """The started tasks of a job attempt, for the tasks themselves."""

    attempt: int
    complete: bool
    """Whether every task of the gang has started."""
    peers: list[PlacementRecord]


class ShadowComparisons(TypedDict):
    """The caller's own comparisons that this server keeps, oldest first."""

    items: list[ShadowStatus]


class WaitingLine(TypedDict):
    """One page of the waiting list of `total` jobs; pass `next` as `after` to read the next page."""

    at: str
    total: int
    items: list[LineEntry]
    next: str | None
    forecast: ForecastView | None
    """The forecast from which the estimates come; None if there is none yet."""


class WhatIfQuestions(TypedDict):
    """The caller's own questions that this server keeps, oldest first."""

    items: list[WhatIfStatus]


class CellView(TypedDict):
    """One cell of the cluster's tree: its level (root, engine, rack, node, numa, …), its name and its content."""

    level: str
    name: str
    devices: int
    free: int
    ready: bool
    cells: list[CellView]
    holds: list[DeviceView]
    """The devices directly in it."""


class EfficiencyReport(TypedDict):
    """The jobs of a user, a queue or everybody from one time to another."""

    begin: str
    end: str
    total: EfficiencySum
    users: list[EfficiencySum]
    """The users with the most device-seconds first."""
    items: list[JobEfficiency]
    """The jobs with the most device-seconds first."""
    leftOut: int
    """Further jobs, which are in the sums of device-seconds alone."""


class JobDocument(TypedDict):
    """A job, complete and consistent: the document that is stored, scheduled and launched."""

    apiVersion: NotRequired[Literal["corral.dev/v1alpha1"]]
    """The version of this language."""
    kind: NotRequired[Literal["UnifiedJob"]]
    """Always UnifiedJob."""
    metadata: JobMetadata
    """What the job is called."""
    spec: JobSpec
    """What it runs and how."""


class Trial(TypedDict):
    """The result of a dry run: the canonical document, whether it would start now, and the reasons if not."""

    document: JobDocument
    wouldStart: bool | None
    """None: unknown, because no scheduler answers."""
    reasons: ReasonsView | None
    notes: list[str]
    """Documents of the file that belong to other programs and were left out."""


class Validation(TypedDict):
    """Whether a document is valid and, if so, its canonical form."""

    valid: bool
    problems: list[ProblemView]
    document: JobDocument | None
    notes: list[str]
    """Documents of the file that belong to other programs and were left out."""


class JobDetail(TypedDict):
    """All data of one job except its events and logs; `placement` has the first 2,000 tasks."""

    id: str
    name: str
    user: str
    queue: str
    priority: int
    jobType: str
    state: Literal["waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped"]
    createdAt: str
    startedAt: str | None
    endedAt: str | None
    tasks: TaskCounts
    devices: int | float
    """Devices that the job holds when all tasks of its requested size run; fractions of devices count as fractions."""
    retries: int
    """Retries of the job and of single tasks together."""
    taskRetries: int
    """Retries of single tasks only."""
    exit: ExitView | None
    waiting: WaitingView | None
    tags: list[str]
    devicesHeld: int | float
    """Devices that its tasks hold now: fewer while an elastic job is below its size, or when some tasks are over."""
    array: ArrayView | None
    """Set only in a list with one entry per array."""
    document: JobDocument
    """The present document: `replicaSpec` has the requested replicas and the scheduler's `targetReplicas`."""
    status: JobStatus
    attempt: int
    roles: list[RoleView]
    placement: list[PlacementRecord]
    reasons: ReasonsView | None
    links: dict[str, str]
    retriesLeft: int | None
    """None: no limit."""
    dependsOn: list[str]
    notes: list[str]
    """
    Notes on its placement: unmet preferences, and whether device fractions are enforced.

    After a submission also the documents of the file that were left out.
    """
    suspended: bool
    checkpointedAt: str | None
    """When the current attempt last reported a checkpoint."""
    work: WorkView | None
    """What its program last said of its work; null: it reported nothing."""
    waitedSeconds: float
    """Seconds of all finished waits for placement, other jobs and next attempts, without running and suspended time."""
    waitingSince: str | None
    """When the present wait began."""
    receipts: list[ReceiptView]
    """Its ten latest preemptions."""
    allowed: list[str]
    """
    The caller's permissions on it, whatever its state.

    Possible values are `stop`, `restart`, `suspend`, `resume`, `scale`, `delete`, `tag`, `exec`, `logs`, `environment`
    and, for managers of its queue, `order`.
    """
