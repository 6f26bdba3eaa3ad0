"""Construct the front and control processes: the only module that knows every concrete class.

The supervisor starts it as `python -m corral.app front|control`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from corral import datafolder, lifecycle, logs, supervisor
from corral.kernel.errors import Conflict, CorralError, InvalidInput
from corral.kernel.ids import JobId
from corral.kernel.tokens import job_secret, mint_job_token
from corral.pulse import with_pulse
from corral.rotation import Rotation
from corral.running import begin, new_loop, once, refusal, tell_ready, until_told, when
from corral.settings import Settings
from corral.supervisor import PARENT, end_with_parent, listen

if TYPE_CHECKING:
    from corral.api.application import WebSettings
    from corral.api.rate_limits import CallLimits
    from corral.api.stream_limits import StreamCaps
    from corral.control.bridge import Bridge
    from corral.control.control_api import ReplicaListener
    from corral.control.loop import Control
    from corral.control.mail_notices import Notices
    from corral.control.system_accounts import Accounts
    from corral.engines.base import Engine
    from corral.engines.kubernetes.api.transport import Transport
    from corral.engines.kubernetes.settings import KubernetesSettings
    from corral.engines.local.device_monitor import DeviceMonitor
    from corral.engines.local.engine import LocalEngine
    from corral.front import ControlSocket, LeaderClient
    from corral.model.inventory import Inventory
    from corral.model.store_writes import Holder
    from corral.service.jobs.account_limits import Allowance
    from corral.service.logs.log_source import SharedLogs
    from corral.service.openid import OpenId, OpenIdSettings
    from corral.service.service import Service
    from corral.spec.cluster import ClusterDocument
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
    from corral.api import create_app
    from corral.front import ControlSocket, LeaderClient, Server, configuration, listener_of, portal_folder
    from corral.kernel.garbage import map_large_blocks
    from corral.service.context import Context
    from corral.service.health_events import HealthWatch
    from corral.service.mutual_tls import write_tls_files
    from corral.service.openpai.tenant import OpenPai
    from corral.service.service import Service
    from corral.store import open_store
    from corral.systemclock import SystemClock
    from corral.workers.pool import Workers

    map_large_blocks()
    clock = SystemClock()
    place = await _blob_place(settings)
    store = await open_store(settings.store_url, clock=clock, run_folder=settings.run_folder, role="front")
    blobs = _code_in(settings, place)
    blobs.open()
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
        logs=_logs_for_readers(settings, place, control_client),
        token_days=settings.token_days,
        fresh_minutes=settings.fresh_sign_in_minutes,
        code_limit=settings.code_limit_bytes,
        several_users=settings.trust_users or os.getuid() == 0 or settings.engine != "local",
        folder=settings.data_folder,
        workers=Workers(settings.worker_processes, settings.worker_queue),
        allowance=_allowance(settings),
    )
    service = Service(context)
    application = create_app(
        service,
        openpai=OpenPai(service, fs_uri=settings.openpai_fs_uri),
        clock=clock,
        portal_folder=portal_folder(),
        connect=control_client.connect,
        folder=settings.data_folder,
        code_limit=settings.code_limit_bytes,
        secure=settings.scheme == "https",
        web=_web(settings, service),
        limits=_call_limits(settings),
        caps=_stream_caps(settings),
    )
    server = Server(configuration(application, settings))
    try:
        listener = listener_of(settings)
        link = (await service.sessions.first_link(settings.administrator, uid=os.getuid())).link
        url = os.environ.get("CORRAL_LISTENING_URL", "")
        told = when(server.ready, lambda: begin({"link": f"{url}/sign-in#link={link}"}))
        health = HealthWatch(service.readiness.check, store.tell_of_server, clock, f"front on {socket.gethostname()}")
        await until_told(server.serve_on(listener), health.run(), told)
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
        openpai_anonymous_reads=settings.openpai_anonymous_reads,
        openpai_return_urls=_listed(settings.openpai_return_urls),
        openpai_origins=_listed(settings.openpai_origins),
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


def _allowance(settings: Settings) -> Allowance:
    from corral.service.jobs.account_limits import Allowance

    return Allowance(
        settings.tasks_per_user,
        settings.code_bytes_per_user,
        settings.log_limit_bytes,
        settings.folder_limit_bytes if settings.engine == "local" else settings.pod_storage_limit_bytes,
    )


def _call_limits(settings: Settings) -> CallLimits:
    from corral.api.rate_limits import CallLimits, Calls

    return CallLimits(
        Calls(settings.calls_per_minute, settings.lists_per_minute, settings.submits_per_hour),
        Calls(settings.openpai_calls_per_minute, settings.openpai_lists_per_minute, settings.openpai_submits_per_hour),
    )


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
    from corral.control.control_api import ControlApi
    from corral.control.initial_configuration import seed
    from corral.control.lease import Leadership
    from corral.control.loop import Control
    from corral.control.retention import Housekeeping
    from corral.control.system_accounts import Accounts
    from corral.control.task_launch import LaunchContext
    from corral.engines.local.containers import container_runtime
    from corral.engines.local.device_monitor import DeviceMonitor
    from corral.launcher import LaunchPolicy
    from corral.scheduler import find_policy
    from corral.service.secret_box import SecretBox
    from corral.storage.log_files import LogStore
    from corral.storage.log_sources import LogSources
    from corral.store import open_store
    from corral.store.cluster_views import CONTAINER_RUNTIME
    from corral.systemclock import SystemClock

    clock = SystemClock()
    place = await _blob_place(settings)
    code = _code_in(settings, place)
    store = await open_store(settings.store_url, clock=clock, run_folder=settings.run_folder, role="control")
    key = await _key(settings, store)
    local = settings.engine == "local"
    accounts = Accounts(store, SecretBox(key), allot=local and os.getuid() == 0 and not settings.trust_users)
    logs_of = LogStore(settings.data_folder / "blobs" / "logs")
    leadership = Leadership(store, address=settings.leader_address, settle=_engine_settler(settings, store))
    archiver = _archiver(logs_of, place, leadership.left)
    engine: Engine
    if local:
        engine = here = _local_engine(settings, accounts, logs_of, code)
        device_monitor = DeviceMonitor(here.set_inventory)
    else:
        engine, device_monitor = (
            await _kubernetes_engine(settings, store, logs_of, code, archiver, leadership.left),
            None,
        )
    control = Control(
        store,
        {engine.name: engine},
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
        presenter=_Local(device_monitor, engine.name) if device_monitor else None,
    )
    control.context = LaunchContext(
        api_url=settings.advertise or os.environ.get("CORRAL_LISTENING_URL", ""),
        job_token=lambda job: mint_job_token(key, JobId(job), clock.now() + JOB_TOKEN_SECONDS),
        open_secrets=accounts.secrets,
        nodes=control.node,
        ready_user=accounts.ready,
        job_secret=lambda job: job_secret(key, JobId(job)),
        queue_secrets=control.image_pull_secrets,
        storage=control.storage,
        api_certificate=_own_certificate(settings),
    )
    log_sources = LogSources(logs_of, archiver.archive if archiver else None)
    control_api = ControlApi(
        control, settings.run_folder / "control.sock", _replica_listener(settings, key), log_sources
    )
    keeping = Housekeeping(control, archiver or logs_of, code, retention_seconds=settings.retention_days * 86_400)
    try:
        await leadership.settle()
        given = _given(settings)
        said = await seed(
            store,
            given.documents,
            file=str(settings.cluster or ""),
            clock=clock,
            replaces=given.replaces_virtual_clusters,
        )
        await store.put_setting(CONTAINER_RUNTIME, (container_runtime() or "") if local else settings.engine)
        ready = leadership.decided if settings.control_address else control.ready
        told = when(ready, lambda: begin({"note": said} if said else {}))
        beside = [device_monitor.run()] if device_monitor else []
        if archiver is not None:
            beside.append(once(control.ready, archiver.run()))
        if (notices := _notices(settings, control)) is not None:
            beside.append(notices.run())
        if (bridge := await _bridge(settings, control, key, code)) is not None:
            beside.append(bridge.run())
        await until_told(control.run(), control_api.serve(), keeping.run(), *beside, told)
    finally:
        await control.close()
        await store.close()


def _notices(settings: Settings, control: Control) -> Notices | None:
    """Create the mailer of job notices; None without a mail server.

    Raises InvalidInput for unusable mail settings.
    """
    if not settings.mail_server:
        return None
    from corral.control.mail_notices import Notices
    from corral.monitor.mail import SmtpMailer

    secret = settings.mail_password_file
    try:
        password = secret.read_text().strip() if secret else ""
    except OSError as error:
        raise InvalidInput("invalid-setting", f"mail_password_file cannot be read: {error}.") from None
    return Notices(control, SmtpMailer(settings.mail_server, settings.mail_from, password=password))


async def _blob_place(settings: Settings) -> RemoteFolder | None:
    """Open the folder that all replicas share for logs and code; None if it is the data folder.

    Raises InvalidInput, or Unavailable if it cannot be opened.
    """
    if not settings.blobs:
        return None
    from corral.storage.remote_folder import open_folder

    return await open_folder(settings.blobs)


def _code_in(settings: Settings, place: RemoteFolder | None) -> BlobStore:
    from corral.storage.code_archives import BlobStore

    return BlobStore(settings.data_folder / "blobs" / "code", remote=place.below("code") if place else None)


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


def _own_certificate(settings: Settings) -> str:
    """The server's own certificate for tasks; "" without TLS, or if they use another address."""
    if settings.tls_certificate is None or settings.advertise:
        return ""
    end = "-----END CERTIFICATE-----"
    first, found, _ = settings.tls_certificate.read_text().partition(end)
    return first + found


def _given(settings: Settings) -> Loaded:
    """The documents of the file given with --cluster."""
    from corral.spec.configuration_file import Loaded, load_whole_site

    if settings.cluster is None:
        return Loaded([], False)
    return load_whole_site(settings.cluster.read_bytes(), filename=str(settings.cluster))


def _local_engine(settings: Settings, accounts: Accounts, logs_of: LogStore, code: BlobStore) -> LocalEngine:
    """Create the local engine; its inventory is set once the documents are read."""
    from corral.engines.local.engine import LocalEngine

    return LocalEngine(
        settings.data_folder / "engine",
        (),
        logs=logs_of,
        uid_of=accounts.uid_of,
        port_range=(settings.port_range_start, settings.port_range_end),
        blobs=code,
        log_limit_bytes=settings.log_limit_bytes,
        folder_limit_bytes=settings.folder_limit_bytes,
        process_limit=settings.process_limit,
    )


def _engine_settler(settings: Settings, store: Store) -> Callable[[Holder], Coroutine[Any, Any, None]]:
    """Create the check that refuses this engine while the database's tasks may run at another one."""
    from corral.engines.local.engine_identity import elsewhere, home_of, is_same
    from corral.model.store_writes import home_of_engine

    is_local, folder = settings.engine == "local", settings.data_folder / "engine"
    home = home_of(folder.absolute()) if is_local else home_of_engine(settings.engine)

    async def settle(holder: Holder) -> None:
        other = await store.settle_engine(
            home,
            holder,
            is_same=lambda before, now: before == now or is_same(before, now),
            take_over=settings.engine_take_over,
            engine=settings.engine,
        )
        if other is not None:
            raise Conflict("engine-elsewhere", elsewhere(other))

    return settle


async def _kubernetes_engine(
    settings: Settings,
    store: Store,
    logs_of: LogStore,
    code: BlobStore,
    archiver: LogArchiver | None,
    lease_left: Callable[[], float],
) -> Engine:
    """Create the engine of a cluster; a UID from the store labels its pods."""
    from corral.engines.kubernetes.engine import KubernetesEngine

    server: str = await store.first_setting(SERVER_UID, str(uuid4()))
    transport, cluster = cluster_of(settings, server)
    return KubernetesEngine(
        transport, cluster, logs=logs_of, blobs=code, archiver=archiver, seed=server, lease_left=lease_left
    )


def cluster_of(settings: Settings, server: str) -> tuple[Transport, KubernetesSettings]:
    """The transport to the cluster of the settings, and the engine's settings for the server with this UID.

    Raises InvalidInput for unreadable settings.
    """
    from corral.engines.kubernetes.api.access import kubeconfig_access, service_account_access
    from corral.engines.kubernetes.api.transport import Transport
    from corral.engines.kubernetes.settings import settings_of

    file = settings.kubeconfig or os.environ.get("KUBECONFIG", "")
    if not file and "KUBERNETES_SERVICE_HOST" not in os.environ:
        file = str(Path.home() / ".kube" / "config")
    access = kubeconfig_access(file, settings.kube_context) if file else service_account_access()
    cluster = settings_of(
        server,
        namespace=settings.namespace,
        default_image=settings.default_image,
        image_pull_secrets=settings.image_pull_secrets,
        service_account=settings.pod_service_account,
        runtime_image=settings.runtime_image,
        storage_places=settings.storage_places,
        log_copying=settings.log_copying,
        log_limit_bytes=settings.log_limit_bytes,
        storage_limit_bytes=settings.pod_storage_limit_bytes,
        pod_templates=settings.pod_templates,
        topology=settings.topology_labels,
        devices=settings.device_resources,
    )
    return Transport(access, seed=server), cluster


async def _bridge(settings: Settings, control: Control, key: bytes, code: BlobStore) -> Bridge | None:
    """Create the bridge that makes jobs from Kubernetes objects; None if no namespace is mapped to an account."""
    if settings.engine != "kubernetes":
        return None
    from corral.control.bridge import AccountsOfNamespaces, Bridge
    from corral.engines.kubernetes.engine import KubernetesEngine
    from corral.model.kubernetes_objects import ObjectAddress
    from corral.service.context import Context
    from corral.service.openpai.tenant import OpenPai
    from corral.service.service import Service
    from corral.spec.object_kinds import chosen_kinds

    accounts = AccountsOfNamespaces(settings.object_accounts)
    engine = next(iter(control.engines.values()))
    if not accounts or not isinstance(engine, KubernetesEngine):
        return None
    store, kinds = control.store, chosen_kinds(settings.object_kinds)
    service = Service(Context(store, key=key, clock=control.clock, blobs=code))
    OpenPai(service)  # objects may hold its documents, too
    documents = engine.documents(map(ObjectAddress.of, kinds))
    server = await store.setting(SERVER_UID, "")
    return Bridge(control, service, documents, kinds, accounts, server=server)


class _Local:
    """Presents the local engine's nodes: those that its document describes here, or else the machine as found."""

    def __init__(self, device_monitor: DeviceMonitor, engine: str) -> None:
        self._device_monitor = device_monitor
        self._engine = engine

    def described(self, clusters: Mapping[str, ClusterDocument]) -> tuple[Inventory, ...]:
        return (self._presented(clusters),)

    def present(self, clusters: Mapping[str, ClusterDocument]) -> frozenset[str]:
        from corral.devices.machine_inventory import may_change

        again = may_change(clusters.get(self._engine))
        self._device_monitor.follow(lambda: self._presented(clusters), again=again)
        return frozenset({self._engine})

    def _presented(self, clusters: Mapping[str, ClusterDocument]) -> Inventory:
        from corral.devices.machine_inventory import presented

        return presented(clusters.get(self._engine), self._engine)


def main() -> int:
    """The entry point for the supervisor: `python -m corral.app front|control`."""
    if parent := os.environ.pop(PARENT, ""):
        end_with_parent(int(parent))
    settings = Settings()
    return serve_front(settings) if sys.argv[1:] == ["front"] else serve_control(settings)


if __name__ == "__main__":
    sys.exit(main())
