"""The steps that install HDFS, YARN and ZooKeeper on a host, as services of the system."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address, shown
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import MARK
from corral.deploy.hosts.document import Hadoop
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps import files
from corral.deploy.steps import hadoop_files as texts
from corral.deploy.steps.bundle import Bundle, listing
from corral.deploy.steps.step import Joining, Step

PACKAGES: Final = ("default-jre-headless", "iptables", "python3")
"""What a host needs: daemons and masters of services run on Java, Corral's tasks on Python."""
RELEASE: Final = f"{texts.HOME}/release"
"""The name by which a host tells the SHA-256 of the archive that it has."""
UNFINISHED_DATA, UNFINISHED_FORMAT, UNFINISHED_FOLDERS = "hadoop-data", "hadoop-format", "hadoop-folders"
UNFINISHED_WORKER: Final = "hadoop-worker"
UNFINISHED_EXCLUDED: Final = "hadoop-excluded"
"""What a host keeps a mark of while it is begun and not done, besides the names of services."""
JOIN_HADOOP: Final = "join_hadoop"
"""The function that waits until the master has a worker."""
START_MASTER: Final = ("restart", texts.RESOURCE_MANAGER)
"""The call after which a master runs: its ResourceManager is the last of its daemons."""
_UNITS: Final = "/etc/systemd/system"


def bars(hosts: Hosts, host: Host, facts: Mapping[str, Facts], bundle: Bundle | None) -> Iterator[str]:
    """What keeps a host's part of Hadoop from being installed."""
    if hosts.hadoop is None or not hosts.has_hadoop(host):
        return
    own = facts[host.name]
    master = _master_address(hosts, hosts.hadoop, host, facts)
    if not master:
        yield f"the address of {hosts.hadoop.master}, which Hadoop's master is, is not known: it was not reached"
    if ":" in cluster_address(host, own):
        yield "Hadoop does not support IPv6: give it an internalAddress of IPv4"
    if not _let_through(own):
        for each in _unknown(hosts, facts):
            if not _is_ip(each.address) and (master or each.name != hosts.hadoop.master):
                yield f"the address of {each.name} is not known: give it an internalAddress"
    rules = _rules(hosts, hosts.hadoop, host, facts)
    for path, text in (_site(hosts, hosts.hadoop, host, facts).texts() | rules).items():
        if len(text.encode()) >= files.MOST_READ:
            yield f"its {path} would be longer than {files.MOST_READ} bytes: name fewer properties, or wider networks"
    if bundle is not None and bundle.hadoop is None and RELEASE not in own.programs:
        yield "the bundle has no Hadoop (hadoop/NAME.tar.gz), and the list asks for it"


def notes(hosts: Hosts, host: Host, facts: Mapping[str, Facts]) -> Iterator[str]:
    """What stays as it is on a host, as the addresses of others are not known."""
    names = [each.name for each in _unknown(hosts, facts)] if hosts.has_hadoop(host) else []
    if names and _let_through(facts[host.name]):
        yield (
            f"The addresses of these hosts are not known: {shown(names)}. Hadoop's firewall goes on to let through all "
            "that it does now. Give them an internalAddress."
        )


def steps(hosts: Hosts, host: Host, facts: Mapping[str, Facts], bundle: Bundle | None) -> Iterator[Step]:
    """The steps of one host, in order; before a release of Hadoop is there or given, none of them is done."""
    chosen = hosts.hadoop
    if chosen is None or not hosts.has_hadoop(host):
        return
    yield from _Part(hosts, chosen, host, facts, bundle, _site(hosts, chosen, host, facts)).steps()


def _site(hosts: Hosts, chosen: Hadoop, host: Host, facts: Mapping[str, Facts]) -> texts.Site:
    own = facts[host.name]
    return texts.Site(
        chosen, host, cluster_address(host, own), _master_address(hosts, chosen, host, facts), hosts.hadoop_folder(host),
        len(hosts.hadoop_workers), texts.offer_of(chosen, host, own.cpus, own.memory),
    )  # fmt: skip


def _rules(hosts: Hosts, chosen: Hadoop, host: Host, facts: Mapping[str, Facts]) -> dict[str, str]:
    """The rules of a host's firewall. While an address is not known, they let through all that they did before."""
    known = [_address(each, facts) for each in hosts.hosts]
    unknown = _unknown(hosts, facts)
    kept = _let_through(facts[host.name]) if unknown else ()
    likely = () if kept else (each.address for each in unknown)
    addresses = (each for each in (*known, *likely) if _is_ip(each, 4))
    return {texts.RULES_FILE: texts.rules_text((*addresses, *kept), chosen.clients)}


def _let_through(own: Facts) -> tuple[str, ...]:
    """The networks that a host's firewall lets through now."""
    there = own.files.get(texts.RULES_FILE, b"")
    return texts.networks_of(there) if len(there) < files.MOST_READ else ()


def _unknown(hosts: Hosts, facts: Mapping[str, Facts]) -> list[Host]:
    """The hosts of the list whose address in the cluster is not known. The one for SSH may be another."""
    return [each for each in hosts.hosts if not _address(each, facts) and not _is_ip(each.address, 6)]


def _master_address(hosts: Hosts, chosen: Hadoop, host: Host, facts: Mapping[str, Facts]) -> str:
    """The address of the master; of one that was not reached the list has it, else the host's own files."""
    master = hosts.named(chosen.master)
    if master is None:
        return ""
    there = texts.master_of(facts[host.name].files.get(texts.CORE_FILE, b""))
    return _address(master, facts) or there or (master.address if _is_ip(master.address) else "")


def _address(host: Host, facts: Mapping[str, Facts]) -> str:
    """The address of a host in the cluster; "" where it was not reached and the list does not say it."""
    return cluster_address(host, facts[host.name]) if host.name in facts else host.internal_address


@dataclass(frozen=True, slots=True)
class _Part:
    hosts: Hosts
    chosen: Hadoop
    host: Host
    facts: Mapping[str, Facts]
    bundle: Bundle | None
    site: texts.Site

    @property
    def _own(self) -> Facts:
        return self.facts[self.host.name]

    @property
    def _is_worker(self) -> bool:
        return self._works(self.host)

    @property
    def _daemons(self) -> tuple[str, ...]:
        of_master = (texts.ZOOKEEPER, texts.NAME_NODE, texts.RESOURCE_MANAGER) if self.site.is_master else ()
        return of_master + ((texts.DATA_NODE, texts.NODE_MANAGER) if self._is_worker else ())

    @property
    def _able(self) -> bool:
        """Whether a release is there or given."""
        return RELEASE in self._own.programs or (self.bundle is not None and self.bundle.hadoop is not None)

    def steps(self) -> Iterator[Step]:
        release = self._release()
        yield release
        yield from self._folders()
        yield from self._firewall()
        # Each daemon reads them, so each has a mark until it is restarted.
        common = [self._file(path, text, " ".join(self._daemons)) for path, text in self.site.texts().items()]
        yield from common
        stale = release.needed or any(step.needed for step in common)
        parts = {daemon: list(self._daemon(daemon, stale=stale)) for daemon in self._daemons}
        started = [step.needed for part in parts.values() for step in part]
        excluded = self._excluded(
            all(parts[each][-1].needed for each in (texts.NAME_NODE, texts.RESOURCE_MANAGER) if each in parts)
        )
        for daemon in self._daemons:
            if daemon == texts.NAME_NODE:
                yield from self._format()
                yield from excluded[:1]
            yield from parts[daemon]
            if daemon == texts.NAME_NODE:
                yield from self._hdfs_folders()
            if daemon == texts.RESOURCE_MANAGER:
                yield from excluded[1:]
        if self._is_worker:
            needed = any(started) or UNFINISHED_WORKER in self._own.unfinished
            title = "wait until YARN and HDFS have it" if needed else "YARN and HDFS have it"
            call = self._call(JOIN_HADOOP, self.site.master, self.site.address)
            yield Step(
                "hadoop", title, needed, call=call, joining=Joining(self.chosen.master, True, "", self.site.address)
            )

    def _release(self) -> Step:
        given = self.bundle.hadoop if self.bundle is not None else None
        there = self._own.programs.get(RELEASE, "")
        if given is None or there == given.digest:
            return Step(
                "program", "a release of Hadoop is there" if there else "install a release of Hadoop", not there
            )
        return Step(
            "program", f"install Hadoop of {given.path.name}", detail=(texts.HOME,),
            call=("install_hadoop", given.digest, *self._daemons), content=listing((given,)), files=(given,),
        )  # fmt: skip

    def _folders(self) -> Iterator[Step]:
        """The account of the daemons, and their folders."""
        folder = self.site.folder
        master = ("name", "zookeeper", "resourcemanager", "attributes", "labels") if self.site.is_master else ()
        names = (*master, *(("blocks", "local", "logs", "nodemanager") if self._is_worker else ()))
        text = MARK + "".join(f"{folder}/{name}\n" for name in names)
        yield from self._listed(
            texts.FOLDERS_FILE, text, UNFINISHED_DATA, f"make Hadoop's folders in {folder}",
            f"Hadoop's folders are in {folder}", ("make_hadoop_data", texts.FOLDERS_FILE, texts.USER),
        )  # fmt: skip

    def _firewall(self) -> Iterator[Step]:
        (rules,) = _rules(self.hosts, self.chosen, self.host, self.facts).values()
        changed = [
            self._file(texts.RULES_FILE, rules, texts.FIREWALL),
            self._file(f"{_UNITS}/{texts.FIREWALL}.service", texts.FIREWALL_UNIT, texts.FIREWALL),
        ]
        yield from changed
        yield self._service(texts.FIREWALL, "load_firewall", stale=any(step.needed for step in changed))

    def _daemon(self, name: str, *, stale: bool) -> Iterator[Step]:
        changed = [self._file(f"{_UNITS}/{name}.service", texts.unit_text(name, self.chosen.heap), name)]
        if name == texts.ZOOKEEPER:
            changed.append(self._file(f"{texts.CONF}/zoo.cfg", self.site.zookeeper_text(), name))
        yield from changed
        worker = name in (texts.DATA_NODE, texts.NODE_MANAGER)
        stale = stale or any(step.needed for step in changed)
        yield self._service(name, "restart_worker" if worker else "restart", stale=stale)

    def _format(self) -> Iterator[Step]:
        yield from self._listed(
            texts.FORMAT_FILE, f"{MARK}{self.site.folder}/name\n", UNFINISHED_FORMAT, "format HDFS, if it is not",
            "HDFS is formatted", ("format_hdfs", texts.FORMAT_FILE, texts.USER),
        )  # fmt: skip

    def _excluded(self, restarted: bool) -> tuple[Step, ...]:
        """The list of hosts that leave, and its reading. A host of the list stays; managers that start read it anyway."""
        staying = {_address(each, self.facts) or each.address for each in self.hosts.hosts if self._works(each)}
        there = texts.excluded_of(self._own.files.get(texts.EXCLUDED_FILE, b""))
        text = texts.excluded_text(each for each in there if each not in staying)
        listed = self._file(texts.EXCLUDED_FILE, text, "" if restarted else UNFINISHED_EXCLUDED)
        needed = UNFINISHED_EXCLUDED in self._own.unfinished or (listed.needed and not restarted)
        title = "let HDFS and YARN read which hosts leave" if needed else "HDFS and YARN know which hosts leave"
        return listed, Step("hadoop", title, needed, call=self._call("reread_excluded", texts.USER))

    def _works(self, host: Host) -> bool:
        return host.name in self.hosts.hadoop_workers

    def _hdfs_folders(self) -> Iterator[Step]:
        yield from self._listed(
            texts.HDFS_FILE, self.site.hdfs_folders(), UNFINISHED_FOLDERS, "make the folders of YARN and Corral in HDFS",
            "HDFS has the folders of YARN and Corral",
            ("make_hdfs_folders", texts.HDFS_FILE, f"http://{self.site.master}:9870", texts.USER),
        )  # fmt: skip

    def _listed(
        self, path: str, text: str, mark: str, title: str, done: str, call: tuple[str, ...]
    ) -> Iterator[Step]:  # fmt: skip
        """A file, and the step that makes what it lists."""
        listed = self._file(path, text, mark)
        yield listed
        needed = listed.needed or mark in self._own.unfinished
        yield Step("hadoop", title if needed else done, needed, call=self._call(*call))

    def _service(self, name: str, function: str, *, stale: bool) -> Step:
        known = self._own.services.get(name)
        good = known is not None and known.starts == "enabled" and known.running == "active"
        needed = stale or not good or name in self._own.unfinished
        title = f"enable and start {name}" if needed else f"{name} is enabled and runs"
        return Step("service", title, needed, call=self._call(function, name))

    def _file(self, path: str, wanted: str, unfinished: str = "") -> Step:
        return files.file_step(self._own, path, wanted, done=self._able, unfinished=unfinished)

    def _call(self, *words: str) -> tuple[str, ...]:
        return words if self._able else ()


def _is_ip(address: str, version: int = 0) -> bool:
    """Whether it is an IP address, of this version where one is given."""
    try:
        return ipaddress.ip_address(address).version in ((version,) if version else (4, 6))
    except ValueError:
        return False
