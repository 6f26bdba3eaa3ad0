"""Hadoop's files on a host: its settings, Java's options, the units of its daemons, and the rules of its firewall."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from corral.deploy.checks.ours import HADOOP_FILE, MARK
from corral.deploy.hosts.document import Hadoop, HadoopNode
from corral.deploy.hosts.reader import Host
from corral.kernel.units import parse_cpu, parse_memory

CONF: Final = "/etc/corral-hadoop"
HOME: Final = "/opt/corral-hadoop"
JAVA: Final = "/usr/lib/jvm/default-java"
USER: Final = "corral-hadoop"
"""The account of all daemons, and of the containers of the DefaultContainerExecutor."""
JAVA_FILE, CORE_FILE, RULES_FILE = HADOOP_FILE, f"{CONF}/core-site.xml", f"{CONF}/firewall.rules"
FOLDERS_FILE, FORMAT_FILE, HDFS_FILE = f"{CONF}/folders", f"{CONF}/format", f"{CONF}/hdfs"
"""The folders of a host, the folder that the NameNode formats, and the folders in HDFS."""
HDFS_SETTINGS: Final = f"{CONF}/hdfs-site.xml"
EXCLUDED_FILE: Final = f"{CONF}/excluded"
"""The addresses of hosts that leave HDFS and YARN, or have left, on the master."""
ZOOKEEPER, NAME_NODE, RESOURCE_MANAGER = "corral-zookeeper", "corral-namenode", "corral-resourcemanager"
DATA_NODE, NODE_MANAGER, FIREWALL = "corral-datanode", "corral-nodemanager", "corral-hadoop-firewall"
DAEMONS: Final = (ZOOKEEPER, NAME_NODE, RESOURCE_MANAGER, DATA_NODE, NODE_MANAGER)
PORTS: Final = "2181,8020,8030:8033,8040:8042,8048,8088,9864:9867,9870,13562,50100:50200"
"""TCP ports of all daemons and of the masters of services."""
MASTERS: Final = "50100-50200"
DEVICE: Final = "yarn.io/gpu"
_STEP_MIB: Final = 256
"""A NodeManager offers a multiple of it, so that a new kernel, which leaves some memory more or less, changes nothing."""
_MIB: Final = 1024 * 1024
_PASSING: Final = re.compile(rb"^-A CORRAL-HADOOP -s ([0-9./,]+) -j RETURN$", re.MULTILINE)
_MASTER: Final = re.compile(rb"<value>hdfs://([0-9.]{7,15}):8020</value>")
_SECONDS_OF_LEAVING: Final = 5
"""Seconds between two looks of the NameNode at whether the blocks of a host that leaves are elsewhere."""
_A_RULE: Final = 100
"""Networks that a line of the firewall's rules has."""
_LEAST_HEAP: Final = 128
"""MiB of a daemon's heap."""
_OPENED: Final = ("java.lang", "java.io", "java.util", "java.net")
"""Packages of Java 17 whose internals Hadoop reads."""
_PARTS: Final = ("common", "hdfs", "yarn", "mapreduce")
_YARN: Final = "org.apache.hadoop.yarn.server"
_MAINS: Final = {
    ZOOKEEPER: ("ZooKeeper for Hadoop", f"org.apache.zookeeper.server.quorum.QuorumPeerMain {CONF}/zoo.cfg"),
    NAME_NODE: ("NameNode of HDFS", "org.apache.hadoop.hdfs.server.namenode.NameNode"),
    RESOURCE_MANAGER: ("ResourceManager of YARN", f"{_YARN}.resourcemanager.ResourceManager"),
    DATA_NODE: ("DataNode of HDFS", "org.apache.hadoop.hdfs.server.datanode.DataNode"),
    NODE_MANAGER: ("NodeManager of YARN", f"{_YARN}.nodemanager.NodeManager"),
}
_LOGGING: Final = f"""{MARK}log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%p %c{{1}}: %m%n
"""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a NodeManager gives to containers."""

    memory_mib: int
    processors: int
    devices: int


@dataclass(frozen=True, slots=True)
class Site:
    """What all files of one host follow from."""

    chosen: Hadoop
    host: Host
    address: str
    """The address at which the others reach the host."""
    master: str
    """The address of the master."""
    folder: str
    workers: int
    """How many hosts have a DataNode."""
    offer: Offer

    @property
    def is_master(self) -> bool:
        """Whether the host runs the NameNode and the ResourceManager."""
        return self.host.name == self.chosen.master

    def texts(self) -> dict[str, str]:
        """The settings of all daemons on the host, by path."""
        own = {
            "core-site": self._core(), "hdfs-site": self._hdfs(), "yarn-site": self._yarn(),
            "capacity-scheduler": self._queues(),
        }  # fmt: skip
        found = {
            f"{CONF}/{name}.xml": _xml({**settings, **self.chosen.properties.get(name, {})})  # type: ignore[call-overload]
            for name, settings in own.items()
        }
        counted = {f"yarn.nodemanager.resource-type.{DEVICE}": self.offer.devices} if self.offer.devices else {}
        return {
            JAVA_FILE: java_options(),
            f"{CONF}/log4j.properties": _LOGGING,
            f"{CONF}/resource-types.xml": _xml({"yarn.resource-types": DEVICE}),
            f"{CONF}/node-resources.xml": _xml(counted),
            **found,
        }

    def zookeeper_text(self) -> str:
        """ZooKeeper's settings."""
        return (
            f"{MARK}dataDir={self.folder}/zookeeper\nclientPort=2181\nclientPortAddress={self.address}\n"
            "admin.enableServer=false\nautopurge.purgeInterval=24\nautopurge.snapRetainCount=5\ntickTime=2000\n"
        )

    def hdfs_folders(self) -> str:
        """The folders in HDFS that services and Corral need: owner, mode and path."""
        user = self.chosen.user
        rows = (
            (USER, "1777", "/tmp"),
            (USER, "1777", f"/tmp/hadoop-{USER}/.yarn/services"),
            (USER, "755", "/user"),
            (user, "755", f"/user/{user}"),
            (user, "755", "/apps/corral"),
        )
        return MARK + "".join(f"{' '.join(row)}\n" for row in rows)

    def _core(self) -> dict[str, object]:
        user = self.chosen.user
        return {
            "fs.defaultFS": f"hdfs://{self.master}:8020",
            "hadoop.tmp.dir": f"/tmp/hadoop-{USER}",
            "hadoop.http.staticuser.user": "nobody",
            f"hadoop.proxyuser.{user}.hosts": "*",
            f"hadoop.proxyuser.{user}.groups": "*",
        }

    def _hdfs(self) -> dict[str, object]:
        of_master = {
            "dfs.hosts.exclude": EXCLUDED_FILE,
            "dfs.namenode.decommission.interval": _SECONDS_OF_LEAVING,
        }
        return {
            "dfs.namenode.name.dir": f"{self.folder}/name",
            "dfs.namenode.rpc-address": f"{self.master}:8020",
            "dfs.namenode.http-address": f"{self.master}:9870",
            # Hosts are known by their addresses: their names need not resolve.
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.datanode.data.dir": f"{self.folder}/blocks",
            "dfs.datanode.hostname": self.address,
            "dfs.datanode.address": f"{self.address}:9866",
            "dfs.datanode.http.address": f"{self.address}:9864",
            "dfs.datanode.ipc.address": f"{self.address}:9867",
            "dfs.replication": self.chosen.replication or min(3, self.workers),
            **(of_master if self.is_master else {}),
        }

    def _yarn(self) -> dict[str, object]:
        master, address, folder = self.master, self.address, self.folder
        manager = "yarn.resourcemanager"
        node = "yarn.nodemanager"
        return {
            f"{manager}.hostname": master,
            f"{manager}.bind-host": master,
            **({f"{manager}.nodes.exclude-path": EXCLUDED_FILE} if self.is_master else {}),
            # NodeManagers that start before it, or outlive it, would ask for it every 30 s.
            f"{manager}.connect.retry-interval.ms": 2000,
            f"{manager}.recovery.enabled": "true",
            f"{manager}.store.class": f"{_YARN}.resourcemanager.recovery.FileSystemRMStateStore",
            # Not in HDFS: it has a safe mode.
            f"{manager}.fs.state-store.uri": f"file://{folder}/resourcemanager",
            f"{manager}.placement-constraints.handler": "scheduler",
            f"{manager}.am.max-attempts": 20,
            "yarn.node-attribute.fs-store.root-dir": f"file://{folder}/attributes",
            "yarn.node-labels.enabled": "true",
            "yarn.node-labels.fs-store.root-dir": f"file://{folder}/labels",
            "yarn.webapp.api-service.enable": "true",
            "hadoop.registry.zk.quorum": f"{master}:2181",
            "yarn.service.classpath": class_path(),
            "yarn.service.am.java.opts": " ".join(java_words()),
            "yarn.service.am-resource.memory": 384,
            "yarn.service.am.client.port-range": MASTERS,
            "yarn.service.container-failure.retry.max": -1,
            "yarn.scheduler.minimum-allocation-mb": 64,
            # The largest node bounds a container, as the scheduler knows.
            "yarn.scheduler.maximum-allocation-mb": 16 * _MIB,
            "yarn.scheduler.maximum-allocation-vcores": 4096,
            f"{node}.hostname": address,
            f"{node}.address": f"{address}:8041",
            f"{node}.localizer.address": f"{address}:8040",
            f"{node}.webapp.address": f"{address}:8042",
            f"{node}.collector-service.address": f"{address}:8048",
            f"{node}.local-dirs": f"{folder}/local",
            f"{node}.log-dirs": f"{folder}/logs",
            f"{node}.recovery.enabled": "true",
            f"{node}.recovery.supervised": "true",
            f"{node}.recovery.dir": f"{folder}/nodemanager",
            f"{node}.resource.memory-mb": self.offer.memory_mib,
            f"{node}.resource.cpu-vcores": self.offer.processors,
            f"{node}.vmem-check-enabled": "false",
            f"{node}.node-attributes.provider": "config",
            f"{node}.node-attributes.provider.configured-node-attributes": f"corral-node,STRING,{self.host.name}",
        }

    def _queues(self) -> dict[str, object]:
        queues = {self.chosen.queue: self.chosen.share, "default": 100 - self.chosen.share}
        prefix = "yarn.scheduler.capacity"
        found: dict[str, object] = {
            f"{prefix}.root.queues": ",".join(queues),
            f"{prefix}.maximum-am-resource-percent": 1.0,
            f"{prefix}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
            # Corral says where containers run: waiting for another node is of no use.
            f"{prefix}.node-locality-delay": 0,
        }
        for name, share in queues.items():
            found[f"{prefix}.root.{name}.capacity"] = share
            found[f"{prefix}.root.{name}.maximum-capacity"] = 100
            found[f"{prefix}.root.{name}.user-limit-factor"] = 100
        return found


def offer_of(chosen: Hadoop, host: Host, processors: int, memory: int) -> Offer:
    """What a host's NodeManager gives: what the list says of the host, else its kind of machine, else the machine itself.

    `processors` and `memory`, in bytes, are what the machine has.
    """
    said = chosen.nodes.get(host.name) or HadoopNode(cpu="", memory="", devices=None)
    kind = host.sku
    cpu = said.cpu or (kind.cpu if kind else "")
    processors = parse_cpu(cpu) // 1000 if cpu else processors
    if said.memory:
        whole = parse_memory(said.memory)
    else:
        whole = parse_memory(kind.memory) if kind and kind.memory else memory
        whole -= parse_memory(chosen.reserved) if chosen.reserved else 0
    devices = said.devices if said.devices is not None else (kind.devices.count if kind and kind.devices else 0)
    return Offer(max(whole // _MIB // _STEP_MIB, 1) * _STEP_MIB, max(processors, 1), devices)


def unit_text(daemon: str, heap: str) -> str:
    """The unit of a daemon. Containers outlive their NodeManager, which finds them again."""
    title, main = _MAINS[daemon]
    heap_mib = parse_memory(heap) // _MIB if daemon in (NAME_NODE, RESOURCE_MANAGER) and heap else 512
    heap_mib = max(heap_mib, _LEAST_HEAP)
    node = "Delegate=yes\nKillMode=process\nTasksMax=infinity\n" if daemon == NODE_MANAGER else ""
    after = {RESOURCE_MANAGER: f" {ZOOKEEPER}.service {NAME_NODE}.service"}.get(daemon, "")
    return f"""{MARK}[Unit]
Description={title}
Wants=network-online.target
Requires={FIREWALL}.service
After=network-online.target {FIREWALL}.service{after}
StartLimitIntervalSec=0

[Service]
User={USER}
Group={USER}
Environment=JAVA_HOME={JAVA} HADOOP_HOME={HOME} HADOOP_CONF_DIR={CONF}
ExecStart={JAVA}/bin/java -Xmx{heap_mib}m @{JAVA_FILE} {main}
{node}SuccessExitStatus=143
Restart=always
RestartSec=5
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
"""


FIREWALL_UNIT: Final = f"""{MARK}[Unit]
Description=Firewall of Hadoop's ports
Before=network-pre.target
Wants=network-pre.target
DefaultDependencies=no
After=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/iptables-restore --wait --noflush {RULES_FILE}
ExecStart=/bin/sh -c 'iptables --wait -C INPUT -p tcp -m multiport --dports {PORTS} -j CORRAL-HADOOP 2>/dev/null || \\
  iptables --wait -I INPUT -p tcp -m multiport --dports {PORTS} -j CORRAL-HADOOP'
ExecReload=/usr/sbin/iptables-restore --wait --noflush {RULES_FILE}

[Install]
WantedBy=multi-user.target
"""


def rules_text(addresses: Iterable[str], clients: Sequence[str]) -> str:
    """The rules of Hadoop's ports: the hosts of the list and further clients may call, and nobody else."""
    networks = ipaddress.collapse_addresses(ipaddress.IPv4Network(each) for each in (*addresses, *clients))
    allowed = [str(each).removesuffix("/32") for each in networks]
    parts = (",".join(allowed[at : at + _A_RULE]) for at in range(0, len(allowed), _A_RULE))
    rows = "".join(f"-A CORRAL-HADOOP -s {part} -j RETURN\n" for part in parts)
    return (
        f"{MARK}*filter\n:CORRAL-HADOOP - [0:0]\n-A CORRAL-HADOOP -i lo -j RETURN\n{rows}"
        "-A CORRAL-HADOOP -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n"
    )


def networks_of(rules: bytes) -> tuple[str, ...]:
    """The networks that rules let through, as `rules_text` writes them."""
    found = (each for row in _PASSING.findall(rules) for each in row.decode().split(","))
    return tuple(each for each in found if _is_network(each))


def _is_network(text: str) -> bool:
    try:
        ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return True


def excluded_of(text: bytes) -> tuple[str, ...]:
    """The addresses in a list of hosts that leave, as `excluded_text` and `leave_hadoop` write it."""
    return tuple(line for line in text.decode(errors="replace").splitlines() if _is_network(line))


def excluded_text(addresses: Iterable[str]) -> str:
    """The list of hosts that leave, as Hadoop reads it."""
    return MARK + "".join(f"{each}\n" for each in addresses)


def master_of(core_site: bytes) -> str:
    """The master's address in a core-site.xml, or ""."""
    found = _MASTER.search(core_site)
    return found[1].decode() if found and _is_network(found[1].decode()) else ""


def class_path() -> str:
    """The folders of a release of Hadoop; Java itself finds the jars in them."""
    share = f"{HOME}/share/hadoop"
    parts = [f"{share}/{part}{end}" for part in _PARTS for end in ("", "/lib/*", "/*")]
    return ":".join([CONF, *parts, f"{share}/yarn/timelineservice/*", f"{share}/yarn/timelineservice/lib/*"])


def java_words() -> tuple[str, ...]:
    """The words that let Hadoop read internals of Java 17, and listen by IPv4 alone: the firewall has no rules of IPv6."""
    return (*(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED), "-Djava.net.preferIPv4Stack=true")


def java_options() -> str:
    """The options of all daemons, as Java reads them of a file."""
    return MARK + "\n".join([*java_words(), "-cp", f'"{class_path()}"']) + "\n"


def _xml(settings: Mapping[str, object]) -> str:
    rows = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<!-- {MARK[2:-1]} -->\n<configuration>\n{rows}</configuration>\n"
