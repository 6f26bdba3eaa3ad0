"""A pair of NameNodes with a JournalNode, and a pair of ResourceManagers with ZooKeeper: both highly available.

The NameNodes are failed over by hand, with `haadmin`; the ResourceManagers elect the active one through ZooKeeper. The
name service is called `pair`.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.reserved import free_port
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.hadoop.hdfs import HOMES, READY_SECONDS, SERVER, Hdfs
from tests.testbeds.hadoop.yarn import RESOURCE_MANAGER, RESOURCE_MANAGER_PORTS, Yarn
from tests.testbeds.kubernetes import remains
from tests.testbeds.kubernetes.daemons import Daemon

SERVICE: Final = "pair"
"""The name service of the NameNodes."""
_IDS: Final = dict.fromkeys(("nn1", "nn2"), ("rpc", "web"))


class PairedHdfs(Hdfs):
    """Two NameNodes, of which nn1 is active first, a JournalNode and a DataNode."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix=HOMES))
        remains.write_owner(self._home)
        self._ports = {name: free_port() for name in ("journal", "journal-web", "data", "data-web", "data-ipc")}
        self._ports |= {f"{what}-{each}": free_port() for each, whats in _IDS.items() for what in whats}
        self.native = f"hdfs://{SERVICE}"
        self.name_nodes = {each: self._daemon(each) for each in _IDS}
        """The NameNodes by their ids."""
        self._data = Daemon("datanode", jars.command(f"{SERVER}.datanode.DataNode", self._conf("data")), self._home)
        journal = f"{SERVER.replace('server', 'qjournal.server')}.JournalNode"
        self._journal = Daemon("journalnode", jars.command(journal, self._conf("journal"), heap="128m"), self._home)
        self.client_configuration = self._conf("client")
        """A folder with what clients must know of the name service."""
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def web_urls(self) -> tuple[str, ...]:
        """The addresses of WebHDFS of both NameNodes."""
        return tuple(f"http://{self.host}:{self._ports[f'web-{each}']}" for each in _IDS)

    def close(self) -> None:
        """Stop all and remove their folder."""
        for daemon in (self._data, *self.name_nodes.values(), self._journal):
            daemon.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def fail_over(self, to: str) -> None:
        """Make `to` the active NameNode; the other one becomes a standby first, if it runs."""
        (other,) = set(_IDS) - {to}
        if self.name_nodes[other].running:
            self._admin("-failover", other, to)
        else:
            self._admin("-transitionToActive", "--forceactive", to)  # the other one is not asked
        self._activate(to)

    def start_again(self, which: str) -> None:
        """Start a NameNode that was killed; it becomes a standby."""
        port = self._ports[f"web-{which}"]
        self.name_nodes[which].start(lambda: self._state(port) == "standby", seconds=READY_SECONDS)

    def state(self, which: str) -> str:
        """`active`, `standby`, or "" while it does not answer."""
        return self._state(self._ports[f"web-{which}"])

    def settings(self) -> Mapping[str, object]:
        """The settings of hdfs-site.xml by which clients find the NameNodes."""
        addresses = {
            f"dfs.namenode.{kind}-address.{SERVICE}.{each}": f"127.0.0.1:{self._ports[f'{what}-{each}']}"
            for each in _IDS
            for kind, what in (("rpc", "rpc"), ("http", "web"))
        }
        return addresses | {
            "dfs.nameservices": SERVICE,
            f"dfs.ha.namenodes.{SERVICE}": ",".join(_IDS),
            f"dfs.client.failover.proxy.provider.{SERVICE}": f"{SERVER}.namenode.ha.ConfiguredFailoverProxyProvider",
        }

    def _begin(self) -> None:
        self._journal.start(lambda: self._jmx_of(self._ports["journal-web"]) is not None, seconds=READY_SECONDS)
        self._format(jars.command(f"{SERVER}.namenode.NameNode", self._home / "conf-nn1"), None)
        shutil.copytree(self._home / "nn1", self._home / "nn2")
        self._data.start(lambda: True)
        for daemon in self.name_nodes.values():
            daemon.start(lambda: True)
        for each in self.name_nodes:
            self.start_again(each)
        self._admin("-transitionToActive", "nn1")
        self._activate("nn1")
        self._data.start(self._has_data_node, seconds=READY_SECONDS)

    def _activate(self, which: str) -> None:
        self._ports["web"] = self._ports[f"web-{which}"]
        self.web = f"webhdfs://{self.host}:{self._ports['web']}"
        self.name_nodes[which].start(self._answers, seconds=READY_SECONDS)

    def _admin(self, *words: str) -> None:
        command = jars.command("org.apache.hadoop.hdfs.tools.DFSHAAdmin", self._home / "conf-nn1", *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"haadmin {' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")

    def _daemon(self, which: str) -> Daemon:
        conf = self._conf(which, {"dfs.ha.namenode.id": which, "dfs.namenode.name.dir": self._home / which})
        return Daemon(which, jars.command(f"{SERVER}.namenode.NameNode", conf), self._home)

    def _conf(self, name: str, more: Mapping[str, object] = {}) -> Path:
        folder = self._home / f"conf-{name}"
        write_configuration(folder / "core-site.xml", self._core())
        write_configuration(folder / "hdfs-site.xml", {**self._settings(), **more})
        return folder

    def _settings(self) -> Mapping[str, object]:
        at = {name: f"127.0.0.1:{port}" for name, port in self._ports.items()}
        return {
            **self.settings(),
            **self._data_settings(),
            "dfs.namenode.shared.edits.dir": f"qjournal://{at['journal']}/{SERVICE}",
            "dfs.journalnode.edits.dir": self._home / "journal",
            "dfs.journalnode.rpc-address": at["journal"],
            "dfs.journalnode.http-address": at["journal-web"],
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.tail-edits.period": "1s",
        }

    def _state(self, port: int) -> str:
        beans = self._jmx_of(port, "Hadoop:service=NameNode,name=NameNodeStatus")
        return str(beans[0]["State"]) if beans else ""

    def _jmx_of(self, port: int, query: str = "Hadoop:service=JournalNode,name=JournalNodeInfo") -> Any:
        with contextlib.suppress(OSError, LookupError):
            return self.jmx_at(port, query)["beans"]
        return None


class PairedYarn(Yarn):
    """Two ResourceManagers that elect the active one, and NodeManagers, over a pair of NameNodes."""

    ids: Final = ("rm1", "rm2")

    def __init__(self, hdfs: PairedHdfs, nodes: int = 1) -> None:
        self._pair = {f"{port}-{each}": free_port() for each in self.ids for port in RESOURCE_MANAGER_PORTS}
        self._name_service = hdfs.settings()
        self.resource_managers: dict[str, Daemon] = {}
        """The ResourceManagers by their ids."""
        super().__init__(hdfs, nodes)

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of both ResourceManagers."""
        return tuple(f"http://{self.host}:{self._pair[f'rm-web-{each}']}" for each in self.ids)

    def start(self) -> None:
        """Start every daemon that does not run, and wait until one ResourceManager is active with all nodes."""
        self.zookeeper.start(lambda: True)
        for daemon in self.resource_managers.values():
            daemon.start(lambda: True)
        super().start()

    def close(self) -> None:
        """Stop all daemons, and remove their folder."""
        for daemon in self.resource_managers.values():
            daemon.stop()
        super().close()

    def answers(self) -> bool:
        """Whether a ResourceManager is active; that one is called from then on."""
        for each, url in zip(self.ids, self.urls, strict=True):
            self.url = url
            if self.resource_managers[each].running and super().answers():
                return True
        return False

    def active(self) -> str:
        """The id of the active ResourceManager; "" while none is."""
        return self.ids[self.urls.index(self.url)] if self.answers() else ""

    def stand_by(self) -> None:
        """Have the active ResourceManager end in order, which gives up its place at once."""
        self.resource_managers[self.active()].stop(seconds=60)

    def _shared(self) -> Mapping[str, object]:
        own = {
            f"yarn.resourcemanager.{name}.{each}": f"{self.host}:{self._pair[f'{port}-{each}']}"
            for each in self.ids
            for name, port in _ADDRESSES.items()
        }
        shared = {name: value for name, value in super()._shared().items() if name not in _OF_ONE}
        zookeeper = f"127.0.0.1:{self._ports['zookeeper']}"
        return (
            shared
            | own
            | {f"yarn.resourcemanager.hostname.{each}": self.host for each in self.ids}
            | {
                "yarn.resourcemanager.ha.enabled": "true",
                "yarn.resourcemanager.ha.rm-ids": ",".join(self.ids),
                "yarn.resourcemanager.cluster-id": SERVICE,
                "hadoop.zk.address": zookeeper,
                "hadoop.zk.timeout-ms": 4000,
                "yarn.resourcemanager.zk-timeout-ms": 4000,
                "yarn.resourcemanager.ha.automatic-failover.zk-base-path": "/election",
                "yarn.client.failover-sleep-base-ms": 200,
                "yarn.client.failover-sleep-max-ms": 1000,
                "yarn.resourcemanager.store.class": f"{RESOURCE_MANAGER}.recovery.ZKRMStateStore",
            }
        )

    def _resource_manager(self) -> Daemon:
        """Make both; returns the first one."""
        for each in self.ids:
            conf = self.home / f"conf-{each}"
            self._write(conf, {**self._settings, "yarn.resourcemanager.ha.id": each}, {})
            main = f"{RESOURCE_MANAGER}.ResourceManager"
            self.resource_managers[each] = Daemon(each, jars.command(main, conf), self.home, self._environment)
        self._write(self.home / "conf", self._settings, {})
        return self.resource_managers[self.ids[0]]

    def _site(self) -> Mapping[str, object]:
        return {**super()._site(), **self._name_service}


_ADDRESSES: Final = {
    "address": "rm",
    "scheduler.address": "rm-scheduler",
    "resource-tracker.address": "rm-tracker",
    "admin.address": "rm-admin",
    "webapp.address": "rm-web",
}
_OF_ONE: Final = (
    "yarn.resourcemanager.hostname",
    *(f"yarn.resourcemanager.{name}" for name in _ADDRESSES),
)
