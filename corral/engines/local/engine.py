"""The local engine: starts, stops and watches tasks as processes. The work is in the package's other modules.

An attempt runs at most once (its folder is its lock). Its end is reported only when none of its processes is left.
After a crash the next server finds everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import signal as signals
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from corral.engines.base import ExecSession
from corral.engines.local import cgroups, processes, reaper, shim
from corral.engines.local.adoption import recover
from corral.engines.local.attempt_folder import AttemptFolder, EndRecord, LaunchRecord, StopRecord
from corral.engines.local.attempt_monitor import AttemptMonitor
from corral.engines.local.cgroups import CgroupsV1, CgroupsV2
from corral.engines.local.command_line import (
    LaunchTools,
    container_of,
    device_groups,
    needs_runtime,
    prepare,
    require_open,
    session_command,
    session_folder,
)
from corral.engines.local.containers import container_runtime, ran_out_of_memory, remove
from corral.engines.local.environment import base_environment, task_environment
from corral.engines.local.forwarding import check_given, open_connection
from corral.engines.local.kept_folders import KeptFolders
from corral.engines.local.live_attempt import (
    GRACE_OVER,
    MEMORY_OVER,
    NEVER_STARTED,
    LiveAttempt,
    Phase,
    exited,
    signal_named,
    verdict,
)
from corral.engines.local.orphan_containers import OrphanContainers
from corral.engines.local.ports import DEFAULT_RANGE, PortLedger
from corral.engines.local.processes import boot_id, since_boot
from corral.engines.local.sessions import spawn_session
from corral.engines.local.trash import Sweeper
from corral.engines.local.work_folders import LocalWorkFolders
from corral.kernel.errors import Conflict, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.exits import OUT_OF_MEMORY, START_FAILED, STOP_REQUESTED
from corral.model.inventory import LEVELS, Inventory, Node
from corral.model.launch import EngineEvent, InventoryChanged, TaskLaunch
from corral.runtime.process import Identity
from corral.storage.code_archives import BlobStore
from corral.storage.log_files import LogStore

SPLIT_LOGS = "CORRAL_LOGS"
"""A job that sets this variable to `split` has its two streams in two logs."""
_log = logging.getLogger(__name__)
_HOST = "127.0.0.1"
_KILLED = 128 + signals.SIGKILL
_AGAIN_SECONDS = 1.0


class LocalEngine:
    """Runs tasks as processes of this machine, which may present itself as several nodes."""

    def __init__(
        self,
        root: Path,
        nodes: Sequence[Node],
        *,
        logs: LogStore,
        name: str = "local",
        levels: Sequence[str] = (),
        uid_of: Callable[[str], int | None] = lambda user: None,
        port_range: tuple[int, int] = DEFAULT_RANGE,
        blobs: BlobStore | None = None,
        use_cgroups: bool = True,
        log_limit_bytes: int = 0,
        folder_limit_bytes: int = 0,
        process_limit: int = 0,
    ) -> None:
        """`uid_of` maps a user to the uid of the tasks; None is the server's own. `blobs` holds code.

        `use_cgroups` False disables control groups. The last `log_limit_bytes` of a stream's log are kept (0: all). A
        task may have `process_limit` processes and threads (0: no limit; without the pids controller the limit is per
        user), and `folder_limit_bytes` in its working folder (0: no limit).
        """
        self.name = name
        self._root = root
        self._attempts_folder = str(root / "attempts")
        self._trash = str(root / "trash")
        self._ports = PortLedger(*port_range)
        self._inventory = self._with_ports(Inventory(name, tuple(nodes), tuple(levels) or LEVELS))
        self._nodes = {node.name: node for node in nodes}
        self._logs = logs
        self._uid_of = uid_of
        self._tools = LaunchTools(root, blobs, container_runtime, process_limit)
        self._nproc = shim.process_limit(process_limit)
        self._use_cgroups = use_cgroups
        self._cgroups: CgroupsV2 | CgroupsV1 | None = None
        self._live: dict[AttemptId, LiveAttempt] = {}
        self.folders = LocalWorkFolders(self._live)
        self._pids: set[int] = set()
        self._orphans = reaper.OrphanProcesses(self._attempts_folder)
        self._dead: list[LiveAttempt] = []
        self._events: asyncio.Queue[EngineEvent] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._bases: dict[int, dict[str, str]] = {}
        self._monitor = AttemptMonitor(self._running_attempts, self._kill, logs, log_limit_bytes, folder_limit_bytes)
        self._orphan_containers = OrphanContainers(root, self._attempts_folder)
        self._sweeper = Sweeper(self._trash, self._spawn_task)
        self._kept = KeptFolders(root, self._trash, self._sweeper.sweep)
        self.job_over, self.live_jobs = self._kept.job_over, self._kept.live_jobs
        self._shim = ""
        self._nofile = "1024"

    # ---- the protocol

    async def open(self) -> None:
        """Adopt attempts that still run. Afterwards `watch` reports every attempt that was not forgotten.

        Raises Unavailable when the engine's folder is unusable.
        """
        try:
            for folder in (self._root, Path(self._attempts_folder), Path(self._trash)):
                folder.mkdir(parents=True, exist_ok=True, mode=0o711)
                folder.chmod(0o711)
            self._shim = shim.install(self._root / "shim")
            self._logs.open()
        except OSError as error:
            raise _unavailable(error, f"The engine's folder {self._root} cannot be written") from error
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._nofile = str(soft)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        reaper.become_subreaper()
        if self._use_cgroups:
            self._cgroups = cgroups.detect(cgroups.parent_name(self._root))
            if self._cgroups is not None and self._cgroups.limits_processes:
                self._nproc = ""
            self._monitor.memory_is_limited = self._cgroups is not None and self._cgroups.limits_memory
        self._adopt()
        self._monitor.begin(self._running_attempts())
        self._spawn_task(self._adopt_containers(self._orphan_containers.find_some_time(self._live)))
        self._sweeper.sweep()

    async def close(self) -> None:
        """Release all resources without ending a task."""
        loop = asyncio.get_running_loop()
        self._monitor.end()
        for live in self._live.values():
            if live.timer is not None:
                live.timer.cancel()
            if live.handle >= 0:
                loop.remove_reader(live.handle)
                os.close(live.handle)
                live.handle = -1
            if live.phase is Phase.ENDED:
                cgroups.remove(live.record.cgroups)  # if the kernel still held one at the end
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._cgroups is not None:
            cgroups.leave(self._cgroups.parents)

    async def inventory(self) -> Inventory:
        """Return all nodes as last reported."""
        return self._inventory

    def _with_ports(self, inventory: Inventory) -> Inventory:
        """Give nodes that set no number of ports the engine's port range, which they share."""
        every = {"ports": len(self._ports)}
        nodes = (msgspec.structs.replace(node, resources=every | node.resources) for node in inventory.nodes)
        return msgspec.structs.replace(inventory, nodes=tuple(nodes))

    def attempts(self) -> frozenset[AttemptId]:
        """Return every attempt that this machine knows and has not forgotten."""
        return frozenset(self._live)

    def set_inventory(self, inventory: Inventory) -> None:
        """Report a changed machine, such as a failed device or other nodes in a document.

        Removed nodes keep their tasks, and a start that was decided before is still carried out.
        """
        self._nodes |= {node.name: node for node in inventory.nodes}
        inventory = self._with_ports(inventory)
        if inventory != self._inventory:
            self._inventory = inventory
            self._events.put_nowait(InventoryChanged(self.name))

    async def start(self, launch: TaskLaunch) -> None:
        """Start the attempt unless it was started before.

        Raises Unavailable when the machine cannot start it now (no disk space, port or process); nothing was started.
        Raises InvalidInput when the node is not this engine's, and for a task with a pod template.
        """
        if launch.attempt in self._live:
            return
        node = self._nodes.get(launch.node)
        if node is None:
            raise InvalidInput("unknown-node", f"This machine presents no node {launch.node}; look at `corral nodes`.")
        if launch.pod_template:
            raise InvalidInput(
                "pod-template", "kubernetes.podTemplate cannot be had here: tasks are processes, no pods."
            )
        await self._tools.bring_code(launch)
        await self._tools.storages.bring(launch.storages)
        if launch.image:
            await self._adopt_containers(self._orphan_containers.find(self._live))
        if launch.attempt in self._live:  # it was stopped meanwhile, or runs in a container
            return
        uid = self._uid(launch.user)
        ports = self._ports.take(launch.ports)
        live = LiveAttempt(
            launch.attempt, AttemptFolder(self._attempts_folder, launch.attempt), LaunchRecord(""), own=True
        )
        try:
            env = task_environment(launch, {} if launch.image else self._base(uid), ports, node.devices, node.labels)
            live.record = self._record(launch, live.folder, ports, uid)
            if launch.image:
                self._orphan_containers.use()
            self._spawn(live, launch, env)
        except NotFound as error:
            self._refuse(live, error.message)
            return
        except (OSError, Unavailable) as error:
            self._start_failed(live, error)
            return
        self._live[launch.attempt] = live
        self._events.put_nowait(live.started(_HOST))
        self._monitor.begin([live])

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt: send `signal`, then KILL after the grace. One never started ends at once and cannot start.

        A repeated call can only bring the KILL forward. Raises InvalidInput for an unknown signal.
        """
        number = signal_named(signal)
        live = self._live.get(attempt)
        if live is None:
            self._bury(attempt)
            return
        if live.phase is not Phase.RUNNING:
            return
        kill_at = since_boot() + max(0.0, grace_seconds)
        again = live.stop is not None and live.stop.signal == number
        if live.stop is not None:
            kill_at = min(kill_at, live.stop.kill_at)
        stop = StopRecord(number, kill_at)
        try:
            live.folder.write_stop(stop)
        except FileNotFoundError:
            pass  # the folder was removed: the next server ends the attempt without any record
        except OSError as error:
            raise _unavailable(error, "The stop could not be recorded") from error
        live.stop = stop
        self._pursue(live, send=not again)

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Drop the records of ended attempts.

        Raises Conflict when one of them still runs.
        """
        await self.folders.look_before(attempts)
        for attempt in attempts:
            live = self._live.get(attempt)
            if live is None:
                continue
            if live.phase is not Phase.ENDED:
                raise Conflict("still-running", f"{attempt} still runs; stop it before it can be forgotten.")
            live.folder.discard(self._trash)
            cgroups.remove(live.record.cgroups)  # if the kernel still held one at the end
            del self._live[attempt]
        self._sweeper.sweep()

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Yield events from now on. One reader at a time."""
        while True:
            yield await self._events.get()

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Run a command beside the task, in its environment and folder. Raises NotFound when it is not running here."""
        live = self._running(attempt)
        record = live.record
        env = live.environment() | ({"TERM": "xterm-256color"} if tty else {})
        inside = processes.first_child(live.process.pid) if record.mounted and live.process is not None else 0
        words, env = session_command(argv, env, record, inside, self._tools, tty=tty)

        def ended(pid: int) -> None:
            live.sessions.discard(pid)
            self._pids.discard(pid)

        begin = live.folder.path if record.mounted else record.directory
        nproc = "" if record.container else self._nproc
        session, pid = spawn_session(words, env, begin, record.cgroups, tty=tty, ended=ended, nproc=nproc)
        live.sessions.add(pid)
        self._pids.add(pid)
        return session

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Open a TCP connection to one of the task's ports. Raises NotFound if it does not run here or lacks it."""
        self.check_port(attempt, port)
        return await open_connection(port)

    def check_port(self, attempt: AttemptId, port: int) -> None:
        """Check that an attempt runs here and was given the port. Raises NotFound."""
        check_given(attempt, port, self._running(attempt).record.ports)

    def _running_attempts(self) -> list[LiveAttempt]:
        return [live for live in self._live.values() if live.phase is Phase.RUNNING]

    def _running(self, attempt: AttemptId) -> LiveAttempt:
        live = self._live.get(attempt)
        if live is None or live.phase is not Phase.RUNNING or live.process is None:
            raise NotFound("not-running", f"{attempt} is not running on this machine.")
        return live

    # ---- starting

    def _record(
        self, launch: TaskLaunch, folder: AttemptFolder, ports: dict[str, tuple[int, ...]], uid: int
    ) -> LaunchRecord:
        limits = launch.memory_bytes, launch.cpu_millis, self._tools.process_limit
        groups = self._cgroups.make(launch.attempt, *limits) if self._cgroups and not launch.image else ()
        return LaunchRecord(
            node=launch.node,
            ports=ports,
            memory_bytes=launch.memory_bytes,
            container=container_of(launch),
            container_runtime=self._tools.container_runtime() if launch.image else "",
            cgroups=groups,
            uid=uid,
            device_groups=device_groups(launch),
            directory=session_folder(launch, folder),
            runtime=needs_runtime(launch),
            mounted=bool(launch.storages and not launch.image and self._tools.storages.namespace()),
        )

    def _spawn(self, live: LiveAttempt, launch: TaskLaunch, env: dict[str, str]) -> None:
        folder, record = live.folder, live.record
        own_work = bool(launch.image) or not os.path.isabs(launch.working_dir)
        folder.create(record, work=own_work, kept=self._kept.path_of(launch))
        if own_work and record.uid >= 0 and not launch.image:  # the runtime does it for a container, files included
            os.chown(f"{folder.path}/work", record.uid, record.uid)
        stdout, stderr = self._logs.prepare(launch.attempt, split=env.get(SPLIT_LOGS) == "split", uid=record.uid)
        task = prepare(launch, folder, record, env, stderr, self._tools)
        groups = " ".join(f"{group}/cgroup.procs" for group in record.cgroups)
        limits = self._nofile, "" if record.container else self._nproc
        head = ["/bin/sh", self._shim, folder.path, folder.nonce, boot_id(), *limits, task.directory, groups]
        env = {**task.env, processes.FOLDER: folder.path}
        adopts = not record.cgroups and not record.container
        pid = shim.spawn([*head, *task.argv], env, stdout=stdout, stderr=stderr, code=task.code, adopts=adopts)
        try:
            live.handle = os.pidfd_open(pid)
        except OSError:
            processes.kill_group(pid, signals.SIGKILL)
            os.waitpid(pid, 0)
            raise
        born = processes.stat(pid)
        live.process = Identity(boot_id(), pid, born.start if born else 0)
        live.started_at = time.time()
        self._pids.add(pid)
        asyncio.get_running_loop().add_reader(live.handle, self._shim_died, live)

    def _start_failed(self, live: LiveAttempt, error: OSError | Unavailable) -> None:
        """Undo a failed start. Only arguments that are too long end the attempt."""
        if isinstance(error, OSError) and error.errno == errno.E2BIG:
            self._refuse(live, "the command and its environment are too long to start")
            return
        self._ports.release(live.record.ports)
        cgroups.remove(live.record.cgroups)
        if os.path.isdir(live.folder.path):
            live.folder.discard(self._trash)
        if isinstance(error, Unavailable):
            raise error
        raise _unavailable(error, f"{live.attempt} could not be started") from error

    def _refuse(self, live: LiveAttempt, reason: str) -> None:
        """End an attempt that can never start."""
        live.end = EndRecord(START_FAILED, reason)
        live.folder.write_ended(live.end)
        self._live[live.attempt] = live
        self._report(live, live.end, time.time())

    def _base(self, uid: int) -> dict[str, str]:
        if uid not in self._bases:
            self._bases[uid] = base_environment(uid)
        return self._bases[uid]

    def _uid(self, user: str) -> int:
        uid = self._uid_of(user)
        if uid is None or uid == os.getuid():
            return -1
        require_open(self._root, user)
        return uid

    # ---- adopting

    def _adopt(self) -> None:
        groups = cgroups.found(self._cgroups.parents) if self._cgroups else {}
        recovered = recover(self._attempts_folder, self._trash, groups)
        for attempt in groups.keys() - {live.attempt for live in recovered}:
            cgroups.remove(groups[attempt])
        for live in recovered:
            self._live[live.attempt] = live
            self._ports.hold(live.record.ports)
            if live.process is not None:
                live.started_at = live.folder.process_time()
                self._events.put_nowait(live.started(_HOST))
            if live.find_shim():
                asyncio.get_running_loop().add_reader(live.handle, self._shim_died, live)
                self._pursue(live, send=True)
            else:
                self._shim_died(live)

    async def _adopt_containers(self, finding: Coroutine[None, None, list[LiveAttempt]]) -> None:
        """Adopt, in order to end them, attempts of which only the container is left."""
        for live in await finding:
            self._live[live.attempt] = live
            self._shim_died(live)

    # ---- stopping

    def _pursue(self, live: LiveAttempt, *, send: bool) -> None:
        """Carry out the recorded stop of a running attempt."""
        if live.stop is None or live.process is None:
            return
        if live.timer is not None:
            live.timer.cancel()
        if send:
            processes.kill_group(live.process.pid, live.stop.signal)
        delay = max(0.0, live.stop.kill_at - since_boot())
        live.timer = asyncio.get_running_loop().call_later(delay, self._kill, live, EndRecord(137, GRACE_OVER, 9))

    def _kill(self, live: LiveAttempt, end: EndRecord) -> None:
        """Kill all processes of a running attempt except its shim, which then records the exit code and ends."""
        if live.phase is not Phase.RUNNING or live.process is None:
            return
        live.end = live.end or end
        if live.timer is not None:
            live.timer.cancel()
        # Processes forked meanwhile are found at the next call. The repetition stops when the shim ends.
        live.timer = asyncio.get_running_loop().call_later(0.5, self._kill, live, end)
        live.folder.write_ended(live.end)
        pid, start = live.process.pid, live.process.start_time
        for process in reaper.of_attempt(live.attempt, pid, start, live.record.cgroups):
            processes.kill(process.pid, process.start, signals.SIGKILL)
        processes.kill(pid, start, signals.SIGCONT)

    def _bury(self, attempt: AttemptId) -> None:
        live = LiveAttempt(attempt, AttemptFolder(self._attempts_folder, attempt), LaunchRecord(""))
        end = EndRecord(STOP_REQUESTED, NEVER_STARTED)
        try:
            live.folder.bury(end)
        except OSError as error:
            raise _unavailable(error, "The stop could not be recorded") from error
        self._live[attempt] = live
        self._report(live, end, time.time())

    # ---- ending

    def _shim_died(self, live: LiveAttempt) -> None:
        """Handle the shim's end, in one batch with all others of this round of the loop."""
        loop = asyncio.get_running_loop()
        if live.handle >= 0:
            loop.remove_reader(live.handle)
            os.close(live.handle)
            live.handle = -1
        live.phase = Phase.CLOSING
        if not self._dead:
            loop.call_soon(self._collect)
        self._dead.append(live)

    @contextlib.contextmanager
    def _trying(self, *lives: LiveAttempt) -> Iterator[None]:
        """Retry the end of these attempts soon after an OSError: each end must be reported."""
        try:
            yield
        except OSError as error:
            for live in lives:
                _log.warning("The end of %s is looked at again soon: %s", live.attempt, error)
                if live.timer is not None:
                    live.timer.cancel()
                live.timer = asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._shim_died, live)

    def _collect(self) -> None:
        batch, self._dead = self._dead, []
        with self._trying(*batch):
            self._settle(batch)

    def _settle(self, batch: Sequence[LiveAttempt]) -> None:
        """End attempts that can end at once. A failure of one does not delay the others."""
        coded: list[tuple[LiveAttempt, int | None]] = []
        for live in batch:
            with self._trying(live):
                coded.append((live, live.folder.exit_code()))
        unclear = any(code is None or not live.own for live, code in coded)
        everything = processes.everything() if unclear else []
        buried: list[tuple[LiveAttempt, int | None]] = []
        for live, code in coded:
            with self._trying(live):
                self._bury_shim(live, code, everything)
                buried.append((live, code))
        inherited = self._orphans.find(self._pids)
        elsewhere: set[str] = set(inherited)
        if unclear:
            elsewhere.update(attempt for _, attempt in processes.marked())
        for live, code in buried:
            with self._trying(live):
                hidden = live.attempt in elsewhere or live.sessions or live.record.container
                if hidden or live.group_left(everything) or cgroups.members(live.record.cgroups):
                    self._spawn_task(self._close(live, code))
                else:
                    self._close_now(live, code)
        self._end_strays(inherited)

    def _bury_shim(self, live: LiveAttempt, code: int | None, everything: Iterable[processes.Stat]) -> None:
        """Kill the rest of the group and, if the shim is our child, reap it. Decide why it left no code.

        In a retry it may be reaped already, and its pid be another process's.
        """
        outlived = False
        if live.process is not None and code is None:
            left = reaper.survivors(live.process.pid, live.process.start_time, everything)
            outlived = any(process.alive and not processes.doomed(process.pid) for process in left)
        shim_now = processes.stat(live.process.pid) if live.process is not None else None
        if live.process is not None and shim_now is not None and shim_now.start == live.process.start_time:
            if live.own:
                processes.kill_group(live.process.pid, signals.SIGKILL)
            shim_code = reaper.reap(live.process.pid)
            live.shim_code = shim_code if shim_code is not None and shim_code >= 0 else None
            self._pids.discard(live.process.pid)
        if code is None and live.end is None:
            live.end = verdict(live, None, survivors=outlived)
            live.folder.write_ended(live.end)

    async def _close(self, live: LiveAttempt, code: int | None) -> None:
        group, start = (live.process.pid, live.process.start_time) if live.process else (0, 0)
        with self._trying(live):
            await reaper.end_all(live.attempt, group, start, live.sessions, live.record.cgroups)
            await reaper.end_inherited(lambda: self._orphans.find(self._pids).get(live.attempt, ()))
            if live.record.container:
                container = live.record.container_runtime, live.record.container
                if code == _KILLED and live.end is None and await ran_out_of_memory(*container):
                    live.end = EndRecord(OUT_OF_MEMORY, MEMORY_OVER, signals.SIGKILL)
                    live.folder.write_ended(live.end)
                await remove(*container)
            self._close_now(live, code)

    def _close_now(self, live: LiveAttempt, code: int | None) -> None:
        if live.timer is not None:
            live.timer.cancel()
            live.timer = None
        at = live.folder.exit_time(code) if code is not None else time.time()
        end = verdict(live, code, survivors=False)
        if live.record.cgroups and end.code != 0 and cgroups.ran_out_of_memory(live.record.cgroups):
            end = EndRecord(OUT_OF_MEMORY, MEMORY_OVER, end.signal)
            live.folder.write_ended(end)
        if live.record.runtime and not end.reason:
            end = EndRecord(end.code, live.folder.result(), end.signal)
        self._report(live, end, at)

    def _report(self, live: LiveAttempt, end: EndRecord, at: float) -> None:
        live.phase = Phase.ENDED
        cgroups.remove(live.record.cgroups)
        self._ports.release(live.record.ports)
        log_bytes = 0
        try:
            log_bytes = self._logs.finish(live.attempt)
        except OSError as error:
            _log.warning("The log of %s could not be completed: %s", live.attempt, error)
        self._events.put_nowait(exited(live, end, at, log_bytes))

    def _end_strays(self, inherited: dict[str, list[int]]) -> None:
        """End processes of attempts whose end was reported before these were seen."""
        for name in inherited:
            live = self._live.get(AttemptId(name))
            if live is not None and live.phase is Phase.ENDED and (shim := live.process) is not None:
                self._spawn_task(reaper.end_all(name, shim.pid, shim.start_time, (), live.record.cgroups))

    def _spawn_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _unavailable(error: OSError, what: str) -> Unavailable:
    return Unavailable("engine-unavailable", f"{what}: {error.strerror or error}.", retry_after=1.0)
