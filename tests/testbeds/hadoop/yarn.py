"""A real YARN for tests: ZooKeeper, a ResourceManager with its service API, and NodeManagers, on loopback addresses.

Each NodeManager has a loopback address of its own (127.0.0.2, 127.0.0.3, …) and a node attribute `corral-node` with its
name, so a component can be pinned to it. Devices are counted as `yarn.io/gpu`; there is no hardware.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlencode

from tests.reserved import free_port, one_of
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.hadoop.hdfs import READY_SECONDS, Hdfs
from tests.testbeds.kubernetes import remains
from tests.testbeds.kubernetes.daemons import Daemon
from tests.waiting import pause

HOMES: Final = "corral-yarn-"
"""The prefix of the temporary folders."""
ATTRIBUTE: Final = "nm.yarn.io/corral-node"
"""The node attribute by which a component is pinned to a node."""
_LIVE: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_SERVER: Final = "org.apache.hadoop.yarn.server"
_MASTERS: Final = ("yarnservice-log4j.properties", "conf")
"""What YARN puts on a service master's class path, before the archived jars, which must come first."""
RESOURCE_MANAGER: Final = f"{_SERVER}.resourcemanager"
RESOURCE_MANAGER_PORTS: Final = ("rm", "rm-scheduler", "rm-tracker", "rm-admin", "rm-web")
_NODE_PORTS: Final = ("nm", "nm-localizer", "nm-web", "nm-collector", "nm-shuffle")


class Yarn:
    """YARN over a running HDFS. The user who runs the test is its superuser."""

    host = "127.0.0.1"
    """Where the ResourceManager is called."""
    environment: Mapping[str, str] = {}
    """Further variables of the daemons."""

    def __init__(
        self,
        hdfs: Hdfs,
        nodes: int = 2,
        *,
        gpus: int = 4,
        memory_mb: int = 6144,
        settings: Mapping[str, object] = {},
        hosts: Sequence[str] = (),
    ) -> None:
        """`hosts` are the loopback addresses of the first nodes, given out by `loopback`."""
        for left in list(remains.orphans(HOMES)):
            shutil.rmtree(left, ignore_errors=True)
        self.home = Path(tempfile.mkdtemp(prefix=HOMES))
        remains.write_owner(self.home)
        self.hdfs = hdfs
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self._ports = {name: free_port() for name in ("zookeeper", *RESOURCE_MANAGER_PORTS)}
        self.url = f"http://{self.host}:{self._ports['rm-web']}"
        """The ResourceManager's address."""
        self.masters_folder = f"/tmp/hadoop-{self.user}/.yarn/services"
        """Where the service masters of all users keep folders in HDFS: below `hadoop.tmp.dir` of the NodeManager's user."""
        self._settings = {**self._shared(), **settings}
        self._gpus, self._memory_mb = gpus, memory_mb
        self._environment = {"JAVA_HOME": _java_home(), "HADOOP_YARN_HOME": str(self.home), **self.environment}
        self.zookeeper = self._zookeeper()
        self.resource_manager = self._resource_manager()
        hosts = [*hosts, *(loopback() for _ in range(nodes - len(hosts)))]
        self.nodes = {f"nm{n}": self._node(f"nm{n}", host) for n, host in enumerate(hosts, start=1)}
        """The NodeManagers by the value of their node attribute."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all ResourceManagers."""
        return (self.url,)

    def start(self) -> None:
        """Start every daemon that does not run, and wait until all nodes are ready."""
        self.hdfs.ask("PUT", self.masters_folder, "MKDIRS")
        self.hdfs.ask("PUT", self.masters_folder, "SETPERMISSION", permission="1777")
        self.zookeeper.start(lambda: True)
        begun = {name: 0 if node.running else int(time.time() * 1000) for name, node in self.nodes.items()}
        for node in self.nodes.values():
            node.start(lambda: True)
        self.resource_manager.start(self.answers, seconds=READY_SECONDS)
        for name, node in self.nodes.items():
            node.start(lambda name=name: name in self.running_nodes(begun[name]), seconds=READY_SECONDS)  # type: ignore[misc]

    def empty(self, seconds: float = 240) -> None:
        """Start every daemon that does not run, end what is left of tests, and wait until the nodes are free again."""
        self.start()
        begun = time.monotonic()
        while used := self._used():
            assert time.monotonic() - begun < seconds, f"YARN still runs after {seconds:.0f} s: {used}"
            for app in used["applications"]:
                with contextlib.suppress(urllib.error.HTTPError):  # it has ended since it was listed
                    self.ask(f"/ws/v1/cluster/apps/{app}/state", method="PUT", body={"state": "KILLED"})
            time.sleep(pause(begun))

    def _used(self) -> dict[str, list[str]]:
        """The applications that have not ended, and the nodes of which something is used; empty for none of both."""
        nodes = (self.ask("/ws/v1/cluster/nodes", states="RUNNING")["nodes"] or {}).get("node", [])
        found = {
            "applications": [str(app["id"]) for app in self.live_apps()],
            "nodes": [str(node["id"]) for node in nodes if node["usedMemoryMB"]],
        }
        return found if any(found.values()) else {}

    def close(self) -> None:
        """Stop all daemons, and remove their folder. NodeManagers would take 17 s each to end by themselves."""
        for name in self.nodes:
            self.kill_node(name)
        for daemon in (self.resource_manager, self.zookeeper):
            daemon.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def kill_node(self, name: str) -> None:
        """Kill a NodeManager with all its containers, as a power cut would."""
        self.nodes[name].kill()
        found = self.containers_of(name)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: none sees another one's end
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def containers_of(self, name: str) -> list[int]:
        """The processes whose working folder is one of a node's containers."""
        within = self.home / name / "local"
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (each / "cwd").readlink().is_relative_to(within):
                    found.append(int(each.name))
        return found

    def answers(self) -> bool:
        """Whether the ResourceManager answers and is active."""
        with contextlib.suppress(OSError, ValueError, LookupError):
            return bool(self.ask("/ws/v1/cluster/info")["clusterInfo"]["haState"] == "ACTIVE")
        return False

    def running_nodes(self, since: int = 0) -> list[str]:
        """The names of the nodes that the ResourceManager counts as running and whose attribute it knows.

        Only those whose NodeManager has looked at its health since a time, in milliseconds since 1970.
        """
        with contextlib.suppress(OSError, ValueError):
            nodes = (self.ask("/ws/v1/cluster/nodes")["nodes"] or {}).get("node", [])
            running = [each for each in nodes if each["state"] == "RUNNING" and each["lastHealthUpdate"] >= since]
            return [name for each in running if (name := _attribute(each))]
        return []

    def live_apps(self) -> list[dict[str, Any]]:
        """The applications that have not ended. The ResourceManager lists those that have too, unless it is told."""
        told = self.ask("/ws/v1/cluster/apps", states=_LIVE, deSelects="resourceRequests")
        apps = (told["apps"] or {}).get("app", [])
        return [app for app in apps if app["finalStatus"] == "UNDEFINED"]

    def ask(self, path: str, *, method: str = "GET", body: Any = None, user: str = "", **query: str) -> Any:
        """One call of the ResourceManager's REST interface; returns the JSON. Raises HTTPError for a refusal."""
        url = f"{self.url}{path}?{urlencode({'user.name': user or self.user, **query})}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            got = answer.read()
        return json.loads(got) if got else None

    def service(self, name: str, *, user: str = "") -> Any:
        """What YARN tells of a service. It is asked again while the service's own file is being written anew."""
        while True:
            try:
                return self.ask(f"/app/v1/services/{name}", user=user)
            except urllib.error.HTTPError as error:
                if error.code != 500 or b"end-of-input" not in error.read():
                    raise
                time.sleep(0.1)

    def _shared(self) -> Mapping[str, object]:
        """The settings of yarn-site.xml that all daemons have."""
        at = {name: f"{self.host}:{port}" for name, port in self._ports.items()}
        conf = self.home / "conf"
        return {
            "yarn.resourcemanager.hostname": self.host,
            "yarn.resourcemanager.address": at["rm"],
            "yarn.resourcemanager.scheduler.address": at["rm-scheduler"],
            "yarn.resourcemanager.resource-tracker.address": at["rm-tracker"],
            "yarn.resourcemanager.admin.address": at["rm-admin"],
            "yarn.resourcemanager.webapp.address": at["rm-web"],
            "yarn.resourcemanager.recovery.enabled": "true",
            "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": 0,
            "yarn.resourcemanager.store.class": f"{RESOURCE_MANAGER}.recovery.FileSystemRMStateStore",
            "yarn.resourcemanager.fs.state-store.uri": f"file://{self.home}/rm-state",  # not in HDFS: it has its safe mode
            "yarn.resourcemanager.placement-constraints.handler": "scheduler",
            "yarn.resourcemanager.am.max-attempts": 20,
            "yarn.resourcemanager.connect.retry-interval.ms": 500,
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 250,
            "yarn.nm.liveness-monitor.expiry-interval-ms": 60_000,  # a busy machine starts a NodeManager in half a minute
            "yarn.am.liveness-monitor.expiry-interval-ms": 120_000,  # a busy machine starts a master in 15 s to a minute
            "yarn.resourcemanager.nm-container-queuing.sorting-nodes-interval-ms": 1000,
            "yarn.node-attribute.fs-store.root-dir": self.home / "attributes",
            "yarn.node-labels.enabled": "true",
            "yarn.node-labels.fs-store.root-dir": self.home / "labels",
            "yarn.webapp.api-service.enable": "true",
            "hadoop.registry.zk.quorum": at["zookeeper"],
            "yarn.service.classpath": jars.class_path(conf),
            "yarn.service.am-resource.memory": 384,
            "yarn.service.am.java.opts": " ".join([*jars.options("master"), "-cp", jars.class_path(*_MASTERS, conf)]),
            "yarn.service.container-failure.retry.max": -1,
            "yarn.scheduler.minimum-allocation-mb": 64,
            "yarn.scheduler.maximum-allocation-mb": 16_384,
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99.5,
        }

    def _zookeeper(self) -> Daemon:
        file = self.home / "zoo.cfg"
        file.write_text(
            f"dataDir={self.home}/zookeeper\nclientPort={self._ports['zookeeper']}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\nmaxClientCnxns=0\ntickTime=2000\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return Daemon("zookeeper", jars.command(main, self.home, str(file), heap="128m"), self.home)

    def _resource_manager(self) -> Daemon:
        conf = self.home / "conf"
        self._write(conf, self._settings, {})
        main = f"{RESOURCE_MANAGER}.ResourceManager"
        return Daemon("resourcemanager", jars.command(main, conf), self.home, self._environment)

    def _node(self, name: str, host: str) -> Daemon:
        ports = {each: free_port() for each in _NODE_PORTS}
        home = self.home / name
        settings = {
            "yarn.nodemanager.hostname": host,
            "yarn.nodemanager.address": f"{host}:{ports['nm']}",
            "yarn.nodemanager.localizer.address": f"{host}:{ports['nm-localizer']}",
            "yarn.nodemanager.webapp.address": f"{host}:{ports['nm-web']}",
            "yarn.nodemanager.collector-service.address": f"{host}:{ports['nm-collector']}",
            "yarn.nodemanager.local-dirs": home / "local",
            "yarn.nodemanager.log-dirs": home / "logs",
            "yarn.nodemanager.recovery.enabled": "true",
            "yarn.nodemanager.recovery.dir": home / "recovery",
            "yarn.nodemanager.resource.memory-mb": self._memory_mb,
            "yarn.nodemanager.resource.cpu-vcores": 16,
            "yarn.nodemanager.aux-services": "mapreduce_shuffle",
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": 500,
            # tests may put a vendor's tool into the node's folder `bin`
            "yarn.nodemanager.admin-env": f"PATH={home}/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
            "yarn.nodemanager.node-attributes.provider": "config",
            "yarn.nodemanager.node-attributes.provider.configured-node-attributes": f"corral-node,STRING,{name}",
        }
        conf = home / "conf"
        self._write(conf, {**self._settings, **settings}, {"yarn.nodemanager.resource-type.yarn.io/gpu": self._gpus})
        # in its own file: MapReduce's defaults are read after yarn-site.xml, and win over it
        write_configuration(conf / "mapred-site.xml", {"mapreduce.shuffle.port": ports["nm-shuffle"]})
        main = f"{_SERVER}.nodemanager.NodeManager"
        return Daemon(name, jars.command(main, conf), self.home, self._environment)

    def _core(self) -> Mapping[str, object]:
        return {
            "fs.defaultFS": self.hdfs.native,
            "hadoop.http.staticuser.user": self.user,
            f"hadoop.proxyuser.{self.user}.hosts": "*",
            f"hadoop.proxyuser.{self.user}.groups": "*",
        }

    def _site(self) -> Mapping[str, object]:
        """The settings of hdfs-site.xml."""
        return {"dfs.replication": 1}

    def _write(self, folder: Path, settings: Mapping[str, object], counted: Mapping[str, object]) -> None:
        write_configuration(folder / "core-site.xml", self._core())
        write_configuration(folder / "hdfs-site.xml", self._site())
        write_configuration(folder / "yarn-site.xml", settings)
        write_configuration(folder / "resource-types.xml", {"yarn.resource-types": "yarn.io/gpu"})
        write_configuration(folder / "node-resources.xml", counted)
        write_configuration(folder / "capacity-scheduler.xml", _QUEUES)
        (folder / "log4j.properties").write_text(_LOGGING)


_QUEUES: Final = {
    "yarn.scheduler.capacity.root.queues": "default,research",
    "yarn.scheduler.capacity.root.default.capacity": 50,
    "yarn.scheduler.capacity.root.default.maximum-capacity": 100,
    "yarn.scheduler.capacity.root.default.user-limit-factor": 100,
    "yarn.scheduler.capacity.root.research.capacity": 50,
    "yarn.scheduler.capacity.root.research.maximum-capacity": 100,
    "yarn.scheduler.capacity.root.research.user-limit-factor": 100,
    "yarn.scheduler.capacity.root.accessible-node-labels": "*",
    "yarn.scheduler.capacity.root.accessible-node-labels.gold.capacity": 100,
    "yarn.scheduler.capacity.root.default.accessible-node-labels.gold.capacity": 100,
    "yarn.scheduler.capacity.root.research.accessible-node-labels.gold.capacity": 0,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 1.0,
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "yarn.scheduler.capacity.node-locality-delay": 0,
}


_LOGGING: Final = """
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


def loopback() -> str:
    """A loopback address that no other test process uses."""
    return one_of("loopback", [f"127.0.0.{last}" for last in range(2, 250)])


def _attribute(node: Any) -> str:
    """The value of the node attribute `corral-node`; "" when it has none."""
    found = (node.get("nodeAttributesInfo") or {}).get("nodeAttributeInfo") or []
    return next((str(each["value"]) for each in found if each["name"] == "corral-node"), "")


def _java_home() -> str:
    return str(Path(shutil.which("java") or "/usr/bin/java").resolve().parent.parent)
