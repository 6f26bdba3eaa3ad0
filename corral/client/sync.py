"""The sync client: one object per server, whose methods are the API's calls."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from corral.client import config, operations
from corral.client.calls import Call, worded
from corral.client.operations.jobs import ENDED
from corral.client.operations.later import LaterCalls
from corral.client.patience import PATIENCE
from corral.client.transport import Transport
from corral.client.upload_course import UploadCourse
from corral.kernel.errors import CorralError, NotFound, TooManyRequests, Unavailable

if TYPE_CHECKING:
    from types import TracebackType

    from corral.client.exec import ExecStream
    from corral.client.schema import (
        EventRecord,
        JobDetail,
        ShadowReport,
        SignedIn,
        Uploaded,
        WhatIfAnswer,
        WhatIfProgress,
    )

P = ParamSpec("P")
Answer = TypeVar("Answer")


def _asks(operation: Callable[P, Call[Answer]]) -> Callable[Concatenate[Client, P], Answer]:
    """Return the client method that sends an operation's call and returns its answer."""

    def method(self: Client, /, *args: P.args, **named: P.kwargs) -> Answer:
        return self._ask(operation(*args, **named))

    return worded(method, operation)


def _streams(operation: Callable[P, Call[bytes]]) -> Callable[Concatenate[Client, P], Iterator[bytes]]:
    """Return the client method that sends an operation's call and yields its answer piece by piece."""

    def method(self: Client, /, *args: P.args, **named: P.kwargs) -> Iterator[bytes]:
        return self._transport.stream(operation(*args, **named), timeout=None)

    return worded(method, operation)


class Client:
    """Corral's API as methods; without arguments, the client uses the server of the current sign-in.

    Every method raises the error of `corral.kernel.errors` that the server answered with, and Unavailable when the
    server is unreachable. Use it as a context manager, or call `close`. It is not thread-safe.

    `timeout` is the number of seconds to wait for an answer, `patience` that to wait for a server that starts or whose
    database is busy for a moment; `waiting` is called with its refusal before each such wait.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        ca: str = "",
        timeout: float = 30.0,
        patience: float = PATIENCE,
        waiting: Callable[[Unavailable], None] = lambda refused: None,
    ) -> None:
        if not url:
            here = config.current()
            url, token, ca = here.url, token or here.token, ca or here.ca
        self.url = url.rstrip("/")
        self.token = token
        self.ca = ca
        self._timeout, self._patience, self._waiting = timeout, patience, waiting
        self._transport = self._connected()

    def _connected(self) -> Transport:
        return Transport(
            self.url, self.token, ca=self.ca, timeout=self._timeout, patience=self._patience, waiting=self._waiting
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    # -- session and accounts

    version = _asks(operations.accounts.version)

    def login(self, *, link: str = "", user: str = "", password: str = "") -> SignedIn:
        """Sign in with a one-time link's token, or with user and password; this client then uses the new token."""
        signed = self._ask(operations.accounts.login(link=link, user=user, password=password))
        self.token = signed["token"]
        self._transport.close()
        self._transport = self._connected()
        return signed

    logout = _asks(operations.accounts.logout)
    me = _asks(operations.accounts.me)
    users = _asks(operations.accounts.users)
    use_of_user = _asks(operations.accounts.use_of_user)
    user = _asks(operations.accounts.user)
    create_user = _asks(operations.accounts.create_user)
    change_user = _asks(operations.accounts.change_user)
    delete_user = _asks(operations.accounts.delete_user)
    login_link = _asks(operations.accounts.login_link)
    tokens = _asks(operations.accounts.tokens)
    create_token = _asks(operations.accounts.create_token)
    revoke_token = _asks(operations.accounts.revoke_token)
    secrets = _asks(operations.accounts.secrets)
    put_secret = _asks(operations.accounts.put_secret)
    delete_secret = _asks(operations.accounts.delete_secret)
    audit = _asks(operations.accounts.audit)
    groups = _asks(operations.teams.groups)
    group = _asks(operations.teams.group)
    create_group = _asks(operations.teams.create_group)
    change_group = _asks(operations.teams.change_group)
    delete_group = _asks(operations.teams.delete_group)
    order_job = _asks(operations.teams.order_job)
    queue_limits = _asks(operations.teams.queue_limits)
    limit_queue = _asks(operations.teams.limit_queue)
    templates = _asks(operations.templates.templates)
    template = _asks(operations.templates.template)
    share_template = _asks(operations.templates.share_template)
    delete_template = _asks(operations.templates.delete_template)
    storages = _asks(operations.teams.storages)
    storage_files = _asks(operations.teams.storage_files)
    storage_file = _streams(operations.teams.storage_file)
    job_outputs = _asks(operations.teams.job_outputs)
    output_files = _asks(operations.teams.output_files)
    output_preview = _asks(operations.teams.output_preview)
    output_file = _streams(operations.teams.output_file)
    batch_users = _asks(operations.teams.batch_users)
    import_openpai = _asks(operations.accounts.import_openpai)

    # -- jobs

    submit = _asks(operations.jobs.submit)
    validate = _asks(operations.jobs.validate)
    jobs = _asks(operations.jobs.jobs)
    history = _asks(operations.jobs.history)
    job = _asks(operations.jobs.job)
    document = _asks(operations.jobs.document)
    job_file = _asks(operations.jobs.job_file)
    tasks = _asks(operations.jobs.tasks)
    attempts = _asks(operations.jobs.attempts)
    job_events = _asks(operations.jobs.job_events)
    server_events = _asks(operations.jobs.server_events)
    placement = _asks(operations.jobs.placement)
    explain = _asks(operations.jobs.explain)
    stop = _asks(operations.jobs.stop)
    restart = _asks(operations.jobs.restart)
    suspend = _asks(operations.jobs.suspend)
    resume = _asks(operations.jobs.resume)
    receipts = _asks(operations.jobs.receipts)
    job_ranks = _asks(operations.jobs.job_ranks)
    job_preflight = _asks(operations.jobs.job_preflight)
    job_hangs = _asks(operations.jobs.job_hangs)
    hang_bundle = _streams(operations.jobs.hang_bundle)
    scale = _asks(operations.jobs.scale)
    edit = _asks(operations.jobs.edit)
    tag = _asks(operations.jobs.tag)
    filters = _asks(operations.jobs.filters)
    save_filter = _asks(operations.jobs.save_filter)
    forget_filter = _asks(operations.jobs.forget_filter)
    delete = _asks(operations.jobs.delete)

    def wait(
        self, ref: str, *, timeout: float | None = None, tell: Callable[[JobDetail], None] | None = None
    ) -> JobDetail:
        """Wait until a job has ended; `tell` gets the job after each of its events and each heartbeat.

        Raises TimeoutError after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        job = self.job(ref)
        while True:
            try:
                for event in self._feed(job=job["id"], timeout=60.0):
                    if event is None or event["kind"].startswith("job."):
                        job = self.job(job["id"])
                        if tell is not None:
                            tell(job)
                        if job["state"] in ENDED:
                            return job
                    if until is not None and time.monotonic() > until:
                        raise TimeoutError(f"{job['name']} has not ended in {timeout:g} seconds; it goes on.")
            except Unavailable:
                if until is not None and time.monotonic() > until:
                    raise
                time.sleep(1.0)  # the server is unreachable; the job may still run

    # -- logs, events, code, terminals

    log = _streams(operations.streams.log)

    def events(self, *, after: int | None = None, job: str = "", timeout: float | None = None) -> Iterator[EventRecord]:
        """Return events as they happen, of all jobs or of one, after event `after` or from now on."""
        return (event for event in self._feed(after=after, job=job, timeout=timeout) if event is not None)

    def has_code(self, digest: str) -> bool:
        """Return whether the server has an archive already."""
        try:
            self._ask(operations.streams.has_code(digest))
        except NotFound:
            return False
        return True

    def put_code(self, pieces: Iterable[bytes], size: int, digest: str = "") -> Uploaded:
        """Upload a code archive (tar.gz) of `size` bytes; `digest` is its SHA-256, if known."""
        answer: Uploaded = json.loads(self._transport.upload(operations.streams.put_code(size, digest), pieces))
        return answer

    def send_code(
        self, file: IO[bytes], size: int, digest: str, tell: Callable[[int], None] = lambda done: None
    ) -> None:
        """Upload a code archive unless the server has it, from where an earlier upload of it broke off.

        Goes on by itself after a broken connection. `tell` gets the number of bytes that the server has.
        """
        course = UploadCourse(size, self._patience, tell)
        while True:
            try:
                offset = course.seen(self._upload_progress(digest), time.monotonic())
                if offset is not None:
                    rest = operations.streams.append_to_upload(digest, offset, size)
                    self._transport.upload(rest, course.pieces(file, offset))
                return
            except CorralError as error:
                pause = course.pause(error, time.monotonic())
            time.sleep(pause)

    def _upload_progress(self, digest: str) -> Mapping[str, str] | None:
        try:
            _, headers, _ = self._transport.send(operations.streams.upload_progress(digest))
        except NotFound:
            return None
        return {name.lower(): value for name, value in headers.items()}

    def exec(self, ref: str, role: str, index: int, command: Sequence[str], *, tty: bool = False) -> ExecStream:
        """Run a command in a running task."""
        from corral.client.exec import ExecStream

        path = operations.streams.enter(ref, role, index, command, tty=tty).path
        return ExecStream(self.url + path, self.token, ca=self.ca)

    def reach(self, ref: str, role: str, index: int, port: str) -> ExecStream:
        """Open a TCP connection to a port of a running task, by name or number."""
        from corral.client.exec import ExecStream

        return ExecStream(self.url + operations.streams.reach(ref, role, index, port).path, self.token, ca=self.ca)

    def ssh(self, ref: str, role: str, index: int) -> ExecStream:
        """Open the stream that carries an SSH connection into a running task."""
        from corral.client.exec import ExecStream

        return ExecStream(self.url + operations.streams.enter_by_ssh(ref, role, index).path, self.token, ca=self.ca)

    ssh_access = _asks(operations.streams.ssh_access)
    ports = _asks(operations.streams.ports)
    services = _asks(operations.streams.services)
    open_service = _asks(operations.streams.open_service)
    start_tensorboard = _asks(operations.streams.start_tensorboard)

    # -- cluster

    nodes = _asks(operations.cluster.nodes)
    node = _asks(operations.cluster.node)
    devices = _asks(operations.cluster.devices)
    device_timeline = _asks(operations.cluster.device_timeline)
    server_parts = _asks(operations.cluster.server_parts)
    cluster = _asks(operations.cluster.cluster)
    cluster_use = _asks(operations.cluster.cluster_use)
    node_health = _asks(operations.cluster.node_health)
    node_history = _asks(operations.cluster.node_history)
    change_health = _asks(operations.cluster.change_health)
    queues = _asks(operations.cluster.queues)
    queue = _asks(operations.cluster.queue)
    queue_history = _asks(operations.cluster.queue_history)
    line = _asks(operations.cluster.line)
    cells = _asks(operations.cluster.cells)
    ledger = _asks(operations.cluster.ledger)
    cordon = _asks(operations.cluster.cordon)
    uncordon = _asks(operations.cluster.uncordon)
    drain = _asks(operations.cluster.drain)
    top = _asks(operations.cluster.top)
    what_if = _asks(operations.what_if.what_if)
    start_what_if = _asks(operations.what_if.start_what_if)
    what_if_state = _asks(operations.what_if.what_if_state)
    what_if_questions = _asks(operations.what_if.what_if_questions)
    cancel_what_if = _asks(operations.what_if.cancel_what_if)
    start_policy_shadow = _asks(operations.policy_shadow.start_policy_shadow)
    policy_shadow_state = _asks(operations.policy_shadow.policy_shadow_state)
    policy_shadows = _asks(operations.policy_shadow.policy_shadows)
    cancel_policy_shadow = _asks(operations.policy_shadow.cancel_policy_shadow)
    begin_running_shadow = _asks(operations.policy_shadow.begin_running_shadow)
    running_shadow = _asks(operations.policy_shadow.running_shadow)
    running_shadow_report = _asks(operations.policy_shadow.running_shadow_report)
    stop_running_shadow = _asks(operations.policy_shadow.stop_running_shadow)
    estimates = _asks(operations.what_if.estimates)
    usage = _asks(operations.usage.usage)
    charges = _asks(operations.usage.charges)
    efficiency = _asks(operations.usage.efficiency)
    efficiency_report = _asks(operations.usage.efficiency_report)
    fairness = _asks(operations.usage.fairness)
    idle_jobs = _asks(operations.usage.idle_jobs)
    extend_idle = _asks(operations.usage.extend_idle)
    budgets = _asks(operations.usage.budgets)
    set_budget = _asks(operations.usage.set_budget)
    top_up_budget = _asks(operations.usage.top_up_budget)
    remove_budget = _asks(operations.usage.remove_budget)
    series = _asks(operations.usage.series)
    benchmark_overview = _asks(operations.benchmarks.benchmark_overview)
    keep_benchmark = _asks(operations.benchmarks.keep_benchmark)
    benchmark_standing = _asks(operations.benchmarks.benchmark_standing)
    benchmark_history = _asks(operations.benchmarks.benchmark_history)
    compare_benchmarks = _asks(operations.benchmarks.compare_benchmarks)
    benchmark_results = _asks(operations.benchmarks.benchmark_results)
    remove_benchmark = _asks(operations.benchmarks.remove_benchmark)
    job_cache = _asks(operations.caches.job_cache)
    caches = _asks(operations.caches.caches)
    remove_cache = _asks(operations.caches.remove_cache)
    take_profile = _asks(operations.profiles.take_profile)
    profiles = _asks(operations.profiles.profiles)
    profile = _asks(operations.profiles.profile)
    profile_report = _asks(operations.profiles.profile_report)
    profile_file = _streams(operations.profiles.profile_file)
    compare_profiles = _asks(operations.profiles.compare_profiles)
    remove_profile = _asks(operations.profiles.remove_profile)
    channels = _asks(operations.notifications.channels)
    add_channel = _asks(operations.notifications.add_channel)
    change_channel = _asks(operations.notifications.change_channel)
    verify_channel = _asks(operations.notifications.verify_channel)
    send_channel_code = _asks(operations.notifications.send_channel_code)
    test_channel = _asks(operations.notifications.test_channel)
    remove_channel = _asks(operations.notifications.remove_channel)
    notifications = _asks(operations.notifications.notifications)
    alerts = _asks(operations.alerts.alerts)
    alert_history = _asks(operations.alerts.alert_history)
    silences = _asks(operations.alerts.silences)
    silence = _asks(operations.alerts.silence)
    unsilence = _asks(operations.alerts.unsilence)

    def follow_what_if(self, *, tell: Callable[[WhatIfProgress], None] | None = None, **question: Any) -> WhatIfAnswer:
        """Ask a question of `what_if`'s parameters and wait for its answer; `tell` gets its progress on the way.

        It is cancelled on the server when the wait ends early, as by Ctrl-C. Raises the error that it was refused with, and
        Unavailable when the server does not answer for a minute.
        """
        return self._followed(operations.what_if.LATER, self.start_what_if(**question)["id"], tell)

    def follow_policy_shadow(
        self, *, tell: Callable[[WhatIfProgress], None] | None = None, **question: Any
    ) -> ShadowReport:
        """Compare a candidate by `start_policy_shadow`'s parameters and wait for the report; like `follow_what_if`."""
        return self._followed(operations.policy_shadow.LATER, self.start_policy_shadow(**question)["id"], tell)

    def _followed(
        self, kind: LaterCalls[Answer], question: str, tell: Callable[[WhatIfProgress], None] | None
    ) -> Answer:  # fmt: skip
        """Follow a question to its end; returns its answer. It is cancelled when the wait ends early."""
        try:
            return kind.answer_of(self._ended(kind, question, tell))
        except BaseException:
            with contextlib.suppress(CorralError):
                self._ask(kind.cancel(question))
            raise

    def _ended(
        self, kind: LaterCalls[Answer], question: str, tell: Callable[[WhatIfProgress], None] | None
    ) -> Any:  # fmt: skip
        silent_since: float | None = None
        while True:
            try:
                with contextlib.suppress(TooManyRequests):  # of streams: then it is asked again and again
                    for state in self._events_of(kind.events(question), timeout=60.0):
                        if state is not None and tell is not None:
                            tell(state["progress"])
                status = self._ask(kind.state(question))
                if status["state"] != operations.later.RUNNING:
                    return status
                silent_since = None
            except Unavailable:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() > silent_since + operations.later.PATIENCE:
                    raise
            time.sleep(1.0)

    # -- configuration

    documents = _asks(operations.configuration.documents)
    configuration = _asks(operations.configuration.configuration)
    apply = _asks(operations.configuration.apply)
    put_configuration = _asks(operations.configuration.put_configuration)
    diff = _asks(operations.configuration.diff)
    configuration_history = _asks(operations.configuration.configuration_history)
    configuration_diff = _asks(operations.configuration.configuration_diff)
    roll_back = _asks(operations.configuration.roll_back)
    delete_configuration = _asks(operations.configuration.delete_configuration)

    def _ask(self, call: Call[Answer]) -> Answer:
        _, _, body = self._transport.send(call)
        answer: Any = json.loads(body) if body else None
        return answer  # type: ignore[no-any-return]  # the API's own tests check the shapes

    def _feed(
        self, *, after: int | None = None, job: str = "", timeout: float | None = None
    ) -> Iterator[EventRecord | None]:
        """Return the event stream; None is a heartbeat, and the first one comes at once."""
        return self._events_of(operations.streams.events(after=after, job=job), timeout=timeout)

    def _events_of(self, call: Call[bytes], *, timeout: float | None) -> Iterator[Any]:
        """Yield the data of each event of a stream; None is a heartbeat."""
        feed = operations.streams.Feed()
        for piece in self._transport.stream(call, timeout=timeout):
            yield from feed.read(piece)
