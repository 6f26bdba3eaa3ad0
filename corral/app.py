"""Construct the front and control processes: the only module that knows every concrete class.

The supervisor forks it, and restarts it as `python -m corral.app front|control`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from corral import datafolder, lifecycle, logs, supervisor
from corral.chosen_engines import (
    ChosenEngine,
    allots_uids,
    chosen_engines,
    container_runtime,
    disk_limit,
    several_users,
)
from corral.forking import set_title
from corral.kernel.errors import Conflict, CorralError, InvalidInput
from corral.kernel.garbage import collect_rarely
from corral.kernel.ids import JobId
from corral.kernel.tokens import derive_key, job_secret, mint_job_token
from corral.own_certificate import own_certificate
from corral.pulse import with_pulse
from corral.rotation import Rotation
from corral.running import begin, new_loop, once, refusal, tell_ready, until_told, when
from corral.settings import Settings
from corral.supervisor import PARENT, end_with_parent, listen

if TYPE_CHECKING:
    from corral.api.application import WebSettings
    from corral.api.rate_limits import Calls
    from corral.api.stream_limits import StreamCaps
    from corral.control.bridge import Bridge
    from corral.control.control_api import ReplicaListener
    from corral.control.journal_keeper import JournalKeeper
    from corral.control.loop import Control
    from corral.control.system_accounts import Accounts
    from corral.engines.kind import BuiltEngine
    from corral.front import ControlSocket, LeaderClient
    from corral.kernel.clock import Clock
    from corral.service.logs.log_source import SharedLogs
    from corral.service.openid import OpenId, OpenIdSettings
    from corral.service.service import Service
    from corral.spec.configuration_file import Loaded
    from corral.storage.code_archives import BlobStore
    from corral.storage.log_archiver import LogArchiver
    from corral.storage.log_files import LogStore
    from corral.storage.log_sources import LogSources
    from corral.storage.remote_folder import RemoteFolder
    from corral.store import Store

JOB_TOKEN_SECONDS: Final = 400 * 86_400.0
"""Lifetime of a job's token in seconds; the server refuses it once the job is over."""
SERVER_UID: Final = "server.uid"
"""The store's setting with the UID that labels this server's pods."""
REFUSED: Final = 78
"""The exit code of a process that cannot start with its settings (EX_CONFIG)."""
REPLACED: Final = 75
"""The exit code of a control that another one has replaced (EX_TEMPFAIL)."""


def serve_front(settings: Settings) -> int:
    """Serve the API and the portal until a signal ends it; the exit code."""
    return _guarded(settings, "front", _front)


def serve_control(settings: Settings) -> int:
    """Schedule, launch and watch until a signal ends it; the exit code."""
    return _guarded(settings, "control", _control)


def _guarded(settings: Settings, what: str, serve: Callable[[Settings], Coroutine[Any, Any, None]]) -> int:
    """Run front or control; a refusal is reported to the supervisor and printed as one sentence."""
    collect_rarely()
    logs.configure(settings.log_level)
    try:
        lifecycle.check_replicas(settings)
        datafolder.prepare(settings.data_folder)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            log = Rotation(settings.data_folder / "logs" / f"{what}.log", settings.server_log_bytes)
            runner.run(with_pulse(serve(settings), log))
    except (CorralError, BaseExceptionGroup) as error:
        refused = refusal(error)
        if refused is None:
            raise
        print(f"corral {what}: {refused.message}", file=sys.stderr)
        if refused.code == "leadership-lost":
            return REPLACED
        tell_ready({"code": refused.code, "message": refused.message, "status": refused.status})
        return REFUSED
    return 0


async def _front(settings: Settings) -> None:
    from corral.kernel.garbage import map_large_blocks
    from corral.store import open_store
    from corral.systemclock import SystemClock

    map_large_blocks()
    clock = SystemClock()
    chosen = chosen_engines(settings)
    place = await _blob_place(settings)
    store = await open_store(settings.store_url, clock=clock, run_folder=settings.run_folder, role="front")

    # Loaded only now: a new store's tables are made while control, which has more to load, does so.
    from corral.api import create_app
    from corral.api.tenants import routes_of
    from corral.front import ControlSocket, LeaderClient, Server, allowance_of, configuration, listener_of
    from corral.portal import portal_folder
    from corral.service.context import Context
    from corral.service.health_events import HealthWatch
    from corral.service.mutual_tls import write_tls_files
    from corral.service.people.monitoring_token import MonitoringToken
    from corral.service.service import Service
    from corral.service.tenant_settings import tenant_options
    from corral.service.tenants import compose_tenants
    from corral.workers.pool import Workers

    blobs, caches, profiles = (_blobs_in(settings, place, kind) for kind in ("code", "caches", "profiles"))
    for each in (blobs, caches, profiles):
        each.open()
    key = await _key(settings, store)
    control_client: ControlSocket | LeaderClient
    if settings.control_address:
        control_client = LeaderClient(store.leader, write_tls_files(key, settings.run_folder, "front"))
    else:
        control_client = ControlSocket(settings.run_folder / "control.sock")
    context = Context(
        store,
        key=key,
        clock=clock,
        control=control_client,
        blobs=blobs,
        caches=caches,
        profiles=profiles,
        logs=_logs_for_readers(settings, place, control_client),
        token_days=settings.token_days,
        fresh_minutes=settings.fresh_sign_in_minutes,
        code_limit=settings.code_limit_bytes,
        several_users=several_users(settings, chosen),
        folder=settings.data_folder,
        workers=Workers(settings.worker_processes, settings.worker_queue),
        allowance=allowance_of(settings, disk_limit(chosen)),
    )
    service = Service(context)
    options = tenant_options(settings.of_others)
    application = create_app(
        service,
        tenants=routes_of(compose_tenants(service, options), options),
        clock=clock,
        portal_folder=portal_folder(),
        connect=control_client.connect,
        is_here=control_client.is_here,
        folder=settings.data_folder,
        code_limit=settings.code_limit_bytes,
        cache_limit=settings.cache_limit_bytes,
        secure=settings.scheme == "https",
        web=_web(settings, service),
        limits=_call_limits(settings),
        caps=_stream_caps(settings),
        agents=_agents(chosen, key),
        relay=control_client,
    )
    if settings.monitoring_token_file is not None:  # after the tenants, whose tokens are no token of monitoring
        authentication = service.authentication
        authentication.accept_monitoring(
            MonitoringToken(settings.monitoring_token_file, clock, authentication.has_form)
        )
    ports = application.state.job_ports
    server = Server(configuration(application, settings), ports)
    try:
        listener = listener_of(settings)
        link = (await service.sessions.first_link(settings.administrator, uid=os.getuid())).link
        url = os.environ.get("CORRAL_LISTENING_URL", "")
        told = when(server.ready, lambda: begin({"link": f"{url}/sign-in#link={link}"}))
        health = HealthWatch(service.readiness.check, store.tell_of_server, clock, f"front on {socket.gethostname()}")
        store.begin_to_serve("front")
        await until_told(server.serve_on(listener), health.run(), told, ports.keep(service.job_services.alive))
    finally:
        await service.close()
        await control_client.close()
        await store.close()


async def _key(settings: Settings, store: Store) -> bytes:
    """Read the server's key, or create it for a store without sealed secrets.

    Raises Conflict if it is missing or damaged, and closes the store.
    """
    folder = settings.data_folder
    try:
        if not (folder / "key").exists():
            sealed = await store.sealed_count()
            if sealed and not os.environ.get(supervisor.NEW):
                raise Conflict(
                    "key-missing",
                    f"The key {folder / 'key'} is missing, and {sealed} secrets of the store are sealed with it: put it "
                    "back from its backup, or go on without those secrets with `corral up --new`.",
                )
            datafolder.make_key(folder)
        return datafolder.read_key(folder)
    except CorralError:
        await store.close()
        raise


def _web(settings: Settings, service: Service) -> WebSettings:
    """The settings of browser sign-in.

    Raises InvalidInput if the provider's settings are not usable.
    """
    from corral.api.application import WebSettings

    openid: OpenId | None = None
    if settings.oidc_issuer:
        from corral.service.openid import OpenId

        openid = OpenId(openid_settings(settings), service.context.secret_box, service.context.clock)
    return WebSettings(
        public_url=settings.public_url or settings.advertise,
        oidc=openid,
        oidc_redirect_url=settings.oidc_redirect_url,
        services_domain=settings.services_domain,
        job_ports=settings.job_ports,
    )


def openid_settings(settings: Settings) -> OpenIdSettings:
    """The administrator's settings of the OpenID provider.

    Raises InvalidInput if they are not usable.
    """
    from corral.service.openid import OpenIdSettings

    secret = settings.oidc_client_secret_file
    return OpenIdSettings(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=_secret_in(secret) if secret else "",
        scopes=settings.oidc_scopes,
        user_claim=settings.oidc_user_claim,
        groups_claim=settings.oidc_groups_claim,
        admin_groups=_listed(settings.oidc_admin_groups),
        allowed_groups=_listed(settings.oidc_allowed_groups),
        link_by_name=settings.oidc_link_by_name,
        label=settings.oidc_label,
    ).checked()


def _secret_in(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("invalid-setting", f"oidc_client_secret_file cannot be read: {error}.") from None


def _listed(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; empty entries are dropped."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _call_limits(settings: Settings) -> Calls:
    from corral.api.rate_limits import Calls

    return Calls(settings.calls_per_minute, settings.lists_per_minute, settings.submits_per_hour)


def _stream_caps(settings: Settings) -> StreamCaps:
    from corral.api.stream_limits import StreamCaps

    return StreamCaps(
        events=settings.events_per_user,
        logs=settings.logs_per_user,
        exec=settings.exec_per_user,
        forward=settings.forwards_per_user,
        in_all=settings.streams,
    )


async def _control(settings: Settings) -> None:
    from corral.control.configuration import DescribedEngines
    from corral.control.control_api import ControlApi
    from corral.control.health.beside import HealthSettings, watch_beside
    from corral.control.initial_configuration import seed
    from corral.control.input_locations import locate_inputs
    from corral.control.lease import Leadership
    from corral.control.loop import Control
    from corral.control.metrics.control_metrics import MeasureSettings, measure
    from corral.control.metrics.series_sources import series_sources
    from corral.control.part_time_limit import PartTimeLimit
    from corral.control.retention import Housekeeping
    from corral.control.system_accounts import Accounts
    from corral.control.task_launch import LaunchContext
    from corral.control.watchers import ReportSettings, watchers
    from corral.engines.settlement import Settlement
    from corral.launcher import LaunchPolicy
    from corral.model.compile_caches import cache_terms
    from corral.scheduler import find_policy
    from corral.service.secret_box import SecretBox
    from corral.storage.log_files import LogStore
    from corral.storage.log_sources import LogSources
    from corral.store import open_store
    from corral.store.cluster_views import CONTAINER_RUNTIME
    from corral.systemclock import SystemClock

    clock = SystemClock()
    chosen = chosen_engines(settings)
    place = await _blob_place(settings)
    code, *kept = (_blobs_in(settings, place, kind) for kind in ("code", "caches", "profiles"))
    store = await open_store(settings.store_url, clock=clock, run_folder=settings.run_folder, role="control")
    key = await _key(settings, store)
    accounts = Accounts(store, SecretBox(key), allot=allots_uids(settings, chosen))
    logs_of = LogStore(settings.data_folder / "blobs" / "logs")
    kinds = {each.kind.name: each.kind for each in chosen}
    settlement = Settlement(store, kinds, settings.data_folder, take_over=settings.engine_take_over)
    leadership = Leadership(store, address=settings.leader_address, settle=settlement.settle)
    journal = _journal(settings, clock)
    archiver = _archiver(logs_of, place, leadership.left)
    built = await _built(settings, chosen, store, accounts, logs_of, code, archiver, leadership.left, key)
    control = Control(
        store,
        {each.engine.name: each.engine for each in built},
        leadership,
        clock=clock,
        launch_policy=LaunchPolicy(
            conflict_delay=(settings.conflict_delay_minimum, settings.conflict_delay_maximum),
            transient_floor=settings.transient_floor,
            retry_first=settings.retry_first,
            retry_most=settings.retry_most,
            retry_reset=settings.retry_reset,
            retry_keeps_place=settings.retry_keeps_place,
            start_deadline=settings.start_deadline,
            default_grace=settings.grace_seconds,
        ),
        policy=find_policy(),
        not_ready_seconds=settings.not_ready_seconds,
        presenter=DescribedEngines({each.engine.name: each.inventory for each in built if each.inventory}),
        journal=journal,
    )
    control.context = LaunchContext(
        api_url=settings.advertise or os.environ.get("CORRAL_LISTENING_URL", ""),
        job_token=lambda job: mint_job_token(key, JobId(job), clock.now() + JOB_TOKEN_SECONDS),
        open_secrets=accounts.secrets,
        nodes=control.node,
        ready_user=accounts.ready,
        job_secret=lambda job: job_secret(key, JobId(job)),
        queue_secrets=control.image_pull_secrets,
        cache_terms_of=lambda own, queue: cache_terms(own, control.compile_cache(queue), settings.compile_cache),
        storage=control.storage,
        api_certificate=own_certificate(settings),
    )
    log_sources = LogSources(logs_of, archiver.archive if archiver else None)
    health, watches = watch_beside(control, log_sources, HealthSettings.of(settings))
    series = series_sources(settings)
    control_api = ControlApi(
        control,
        settings.run_folder / "control.sock",
        _replica_listener(settings, key),
        log_sources,
        {each.engine.name: each.agents for each in built if each.agents},
        settings.forecast_seconds,
        health,
        *series,
    )
    systems = [each.name_nodes for each in built if each.name_nodes]
    locations = locate_inputs(control, systems, settings.name_nodes, settings.locality_seconds)
    limit = PartTimeLimit()
    runtime = asyncio.create_task(asyncio.to_thread(container_runtime, chosen))  # its answer may take seconds
    days = settings.retention_days
    keeping = Housekeeping(
        control, archiver or logs_of, code, *kept, retention_seconds=days * 86_400, profile_days=settings.profile_days
    )
    try:
        limit.install()
        await leadership.settle()
        given, file = _given(settings), str(settings.cluster or "")
        said = await seed(store, given.documents, file=file, clock=clock, replaces=given.replaces_virtual_clusters)
        await store.put_setting(CONTAINER_RUNTIME, await runtime)
        ready = leadership.decided if settings.control_address else control.ready
        told = when(ready, lambda: begin({"note": said} if said else {}))
        beside = [each.run() for each in built if each.run]
        beside.append(control.estimates.run(control.ready))
        if archiver is not None:
            beside.append(once(control.ready, archiver.run()))
        beside += [journal.run()] if journal is not None else []
        routes = None
        if settings.alert_actions is not None:
            from corral.control.alerts.of_files import read_routes

            routes = read_routes(settings.alert_actions, mail=bool(settings.mail_server))
        beside += _notices(settings, control, key, routes.webhooks if routes is not None else {})
        here = [each.kind.name for each in chosen if each.kind.on_this_machine]
        beside += measure(control, control_api.metrics, here, MeasureSettings.of(settings), health)
        beside += watches
        beside += watchers(control, control_api, ReportSettings.of(settings), place, health)
        if settings.alert_rules is not None or settings.alert_actions is not None:
            from corral.control.alerts.of_files import keeper_of_files

            files = settings.alert_rules, routes
            past = None if series.store is None else series.store.read
            keeper = keeper_of_files(*files, control, control_api.metrics, url=control.context.api_url, kept=past)
            beside.append(keeper.run(control.ready))
        if (bridge := await _bridge(built, control, key, code)) is not None:
            beside.append(bridge.run())
        store.begin_to_serve("control")
        await until_told(control.run(), control_api.serve(), keeping.run(), *beside, told)
    finally:
        await control.close()
        if locations is not None:
            await locations.close()
        await store.close()
        limit.close()


def _journal(settings: Settings, clock: Clock) -> JournalKeeper | None:
    """What keeps the journal of decisions; None if none is to be kept."""
    from corral import __version__
    from corral.control.journal.folder import JournalFolder
    from corral.control.journal.rules import Rules
    from corral.control.journal_keeper import JournalKeeper

    if not settings.journal_days:
        return None
    seconds = settings.journal_days * 86_400
    folder = JournalFolder(settings.data_folder / "journal", most_bytes=settings.journal_bytes, most_seconds=seconds)
    return JournalKeeper(folder, Rules(), __version__, clock)


def _notices(
    settings: Settings, control: Control, key: bytes, receivers: Mapping[str, str]
) -> list[Coroutine[Any, Any, None]]:
    """What tells people of their jobs, and `receivers` of alerts: the notifier, and with mail the notices of tenants.

    Raises InvalidInput for unusable settings of mail or notifications.
    """
    from corral.control.notifications import mailer_of, notify
    from corral.kernel.plug_ins import plug_ins

    mailer = mailer_of(settings.mail_server, settings.mail_from, settings.mail_password_file)
    url = settings.public_url or settings.advertise or os.environ.get("CORRAL_LISTENING_URL", "")
    notices = [notify(control, key, mailer, private=settings.notify_private, url=url, receivers=receivers)]
    if mailer is not None:
        notices += [point.load()(control, mailer).run() for point in plug_ins("corral.notices").values()]
    return notices


async def _blob_place(settings: Settings) -> RemoteFolder | None:
    """Open the folder that all replicas share for logs and code; None if it is the data folder.

    Raises InvalidInput, or Unavailable if it cannot be opened.
    """
    if not settings.blobs:
        return None
    from corral.storage.remote_folder import open_folder

    return await open_folder(settings.blobs)


def _blobs_in(settings: Settings, place: RemoteFolder | None, kind: str = "code") -> BlobStore:
    from corral.storage.code_archives import blob_store

    return blob_store(settings.data_folder, place, kind)


def _logs_for_readers(
    settings: Settings, place: RemoteFolder | None, control_client: ControlSocket | LeaderClient
) -> SharedLogs | LogSources:
    """The log source of front; with replicas, growing logs are on the leader's machine."""
    from corral.service.logs.log_source import SharedLogs
    from corral.storage.log_archive import LogArchive
    from corral.storage.log_files import LogStore
    from corral.storage.log_sources import LogSources

    here = LogStore(settings.data_folder / "blobs" / "logs")
    archive = LogArchive(place.below("logs")) if place else None
    return SharedLogs(here, archive, control_client.pull) if settings.control_address else LogSources(here, archive)


def _archiver(logs_of: LogStore, place: RemoteFolder | None, lease_left: Callable[[], float]) -> LogArchiver | None:
    """Create the archiver that copies logs to the shared folder; None if that is the data folder."""
    if place is None:
        return None
    from corral.storage.log_archive import LogArchive
    from corral.storage.log_archiver import LogArchiver

    return LogArchiver(logs_of, LogArchive(place.below("logs")), leads=lambda: lease_left() > 0)


def _replica_listener(settings: Settings, key: bytes) -> ReplicaListener | None:
    """Where control answers the fronts of other replicas; None without replicas."""
    if not settings.control_address:
        return None
    from corral.control.control_api import ReplicaListener
    from corral.service.mutual_tls import write_tls_files

    return ReplicaListener(listen(*settings.control_endpoint), write_tls_files(key, settings.run_folder, "control"))


def _given(settings: Settings) -> Loaded:
    """The documents of the file given with --cluster."""
    from corral.spec.configuration_file import Loaded, load_whole_site

    if settings.cluster is None:
        return Loaded([], False)
    return load_whole_site(settings.cluster.read_bytes(), filename=str(settings.cluster))


async def _built(
    settings: Settings,
    chosen: Sequence[ChosenEngine],
    store: Store,
    accounts: Accounts,
    logs_of: LogStore,
    code: BlobStore,
    archiver: LogArchiver | None,
    lease_left: Callable[[], float],
    key: bytes,
) -> list[BuiltEngine]:
    """Construct the engines; the first that asks for the server's UID has one stored."""
    from corral.engines.kind import EngineContext

    async def server() -> str:
        uid: str = await store.first_setting(SERVER_UID, str(uuid4()))
        return uid

    context = EngineContext(
        folder=settings.data_folder,
        api_url=settings.advertise or os.environ.get("CORRAL_LISTENING_URL", ""),
        logs=logs_of,
        code=code,
        archiver=archiver,
        uid_of=accounts.uid_of,
        lease_left=lease_left,
        server=server,
        log_limit_bytes=settings.log_limit_bytes,
        api_certificate=own_certificate(settings),
        secret=lambda engine: derive_key(key, f"engine {engine}"),
    )
    return [await each.kind.build(context, each.settings) for each in chosen]


def _agents(chosen: Sequence[ChosenEngine], key: bytes) -> dict[str, Callable[[str], str]]:
    """For each engine whose agents call this server, the function that knows them by their tokens."""
    return {
        each.kind.name: partial(each.kind.agent, derive_key(key, f"engine {each.kind.name}"))
        for each in chosen
        if each.kind.has_agents
    }


async def _bridge(built: Sequence[BuiltEngine], control: Control, key: bytes, code: BlobStore) -> Bridge | None:
    """Create the bridge that makes jobs from an engine's objects; None if no namespace is mapped to an account."""
    objects = next((each.objects for each in built if each.objects and each.objects.accounts), None)
    if objects is None:
        return None
    from corral.control.bridge import AccountsOfNamespaces, Bridge
    from corral.model.kubernetes_objects import ObjectAddress
    from corral.service.context import Context
    from corral.service.service import Service
    from corral.service.tenants import compose_tenants
    from corral.spec.object_kinds import chosen_kinds

    accounts = AccountsOfNamespaces(objects.accounts)
    if not accounts:
        return None
    store, kinds = control.store, chosen_kinds(objects.kinds)
    service = Service(Context(store, key=key, clock=control.clock, blobs=code))
    compose_tenants(service)  # objects may hold their documents, too
    documents = objects.documents(map(ObjectAddress.of, kinds))
    return Bridge(control, service, documents, kinds, accounts, server=await store.setting(SERVER_UID, ""))


def serve(name: str) -> int:
    """Run front or control with the settings of the environment; the exit code."""
    return (serve_front if name == "front" else serve_control)(Settings())


def main() -> int:
    """The entry point for the supervisor: `python -m corral.app front|control`."""
    if parent := os.environ.pop(PARENT, ""):
        end_with_parent(int(parent))
    (name,) = sys.argv[1:]
    set_title("corral", name)
    return serve(name)


if __name__ == "__main__":
    sys.exit(main())
