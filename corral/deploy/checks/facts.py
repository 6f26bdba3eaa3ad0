"""The facts of a host, parsed from what the probe prints: bounded, typed, and refused at the first line that is none."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from corral.spec.errors import shorten

MOST_BYTES: Final = 512 * 1024
"""Bytes that a probe may print."""
_MOST_LINES: Final = 5000
_MOST_CHARACTERS: Final = 400
_MOST_OF_A_FILE: Final = 40_000
"""Characters of a file's path and its content in base64; the probe sends 16 KiB of it."""
_BEGIN, _END = "corral-facts begin 1", "corral-facts end 1"
_KIBI: Final = 1024
_SECTOR: Final = 512
VENDORS: Final = ("nvidia", "amd", "ascend")
_KEYS: Final = frozenset(
    {"time", "user", "sudo", "reached", "hostname", "machine", "os", "os_name", "kernel", "arch", "cgroup", "swap", "ntp",
     "cpus", "memory", "mount", "disk", "address", "interface", "route", "nameserver", "resolves", "listens", "rdma",
     "card", "driver", "usable", "tool", "manager", "package", "service", "module", "sysctl", "leftover", "file",
     "version", "program", "image", "unfinished", "joined", "dropin", "unread", "later", "barred", "cni", "held",
     "written", "nodefile"}
)  # fmt: skip
_API: Final = re.compile(r"https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]{1,253})(?::[0-9]{1,5})?")
_ACCOUNT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?")
T = TypeVar("T")


class GarbledFacts(ValueError):
    """What a host printed is no list of facts; the message is the end of a sentence."""


class Swap(NamedTuple):
    """A swap area."""

    name: str
    size: int


class Mount(NamedTuple):
    """A mounted local file system, in bytes."""

    path: str
    size: int
    free: int


class Disk(NamedTuple):
    """A block device, in bytes."""

    name: str
    size: int


class Address(NamedTuple):
    """An address of an interface."""

    interface: str
    address: str


class Interface(NamedTuple):
    """A network interface."""

    name: str
    mtu: int
    state: str


class Service(NamedTuple):
    """A unit of systemd, by the words of is-active and is-enabled."""

    running: str
    starts: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a host says of itself. Sizes are in bytes; "" and empty collections stand for what it cannot tell."""

    time: float
    user: str
    sudo: str
    """root, free (no password is asked), refused or missing."""
    hostname: str
    kernel: str
    arch: str
    cpus: int
    memory: int
    cgroup: int = 2
    controllers: frozenset[str] = frozenset()
    reached: str = ""
    """The address at which SSH arrived."""
    machine: str = ""
    """The id of the installed system, for comparison only."""
    os: str = ""
    os_version: str = ""
    os_name: str = ""
    swaps: tuple[Swap, ...] = ()
    ntp: str = "unknown"
    """yes, no or unknown: whether the clock is synchronized."""
    mounts: tuple[Mount, ...] = ()
    disks: tuple[Disk, ...] = ()
    addresses: tuple[Address, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    route: str = ""
    """The interface of the default route."""
    nameservers: tuple[str, ...] = ()
    resolves: bool = True
    """Whether the host finds an address for its own name."""
    listens: frozenset[int] = frozenset()
    """TCP ports with a listener."""
    rdma: tuple[tuple[str, str], ...] = ()
    """Each port of an RDMA device: its name, and its state such as 4:ACTIVE."""
    cards: Mapping[str, int] = field(default_factory=dict)
    """Accelerators on the PCI bus, by vendor."""
    drivers: Mapping[str, str] = field(default_factory=dict)
    """The version of each vendor's driver."""
    usable: Mapping[str, int] = field(default_factory=dict)
    """Accelerators that the driver has, by vendor."""
    tools: frozenset[str] = frozenset()
    manager: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, Service] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    """loaded, available or missing, by kernel module."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    """What programs of a cluster say of themselves, by program."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of programs that a bundle installs, by path."""
    images: Mapping[str, str] = field(default_factory=dict)
    """The digests of containerd's images, by name."""
    unfinished: frozenset[str] = frozenset()
    """What a step began and did not end, such as the restart of a service."""
    leftovers: tuple[str, ...] = ()
    joined: str = ""
    """The address of the API that its kubelet asks."""
    dropins: tuple[tuple[str, str], ...] = ()
    """The files that change units which `up` writes: the unit's name, and the path."""
    unread: frozenset[str] = frozenset()
    """Units whose files have changed since systemd read them."""
    later: Mapping[str, str] = field(default_factory=dict)
    """The settings that the system's files make at its next start."""
    barred: Mapping[str, str] = field(default_factory=dict)
    """Modules that modprobe does not load, and the word of its configuration for that."""
    cni: frozenset[str] = frozenset()
    """The names of the files that describe networks of pods."""
    held: Mapping[str, str] = field(default_factory=dict)
    """The digests of the images of its registry, by repository and tag."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of the files that kubeadm wrote last, by path; empty where that was not written down."""
    node_files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of the files in their places now, by path."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of files that a cluster changes, as far as they are there."""


def parse_facts(text: bytes) -> Facts:
    """Parse what the probe printed; lines before and after its marks are left out. Raises GarbledFacts."""
    return _Reader(text).facts()


class _Reader:
    """The lines between the marks, by key."""

    def __init__(self, text: bytes) -> None:
        self._values: dict[str, list[str]] = {}
        if len(text) > MOST_BYTES:
            raise GarbledFacts(f"it is longer than {MOST_BYTES} bytes")
        lines = text.decode(errors="replace").split("\n", _MOST_LINES + 1)
        if len(lines) > _MOST_LINES:
            raise GarbledFacts(f"it has more than {_MOST_LINES} lines")
        lines = [line.rstrip("\r") for line in lines]
        if _BEGIN not in lines:
            raise GarbledFacts("the probe's first line is not in it")
        begin = lines.index(_BEGIN)
        if _END not in lines[begin:]:
            raise GarbledFacts("it is cut off: the probe's last line is not in it")
        for line in lines[begin + 1 : lines.index(_END, begin)]:
            key, equals, value = line.partition("=")
            if not equals or key not in _KEYS:
                raise GarbledFacts(f"the line {shorten(line)!r} is no fact")
            if len(value) > (_MOST_OF_A_FILE if key == "file" else _MOST_CHARACTERS) or not all(
                char.isprintable() for char in value
            ):
                raise GarbledFacts(f"the value of {key} is too long, or no text")
            self._values.setdefault(key, []).append(value.strip())

    def facts(self) -> Facts:
        version, _, controllers = self._one("cgroup").partition(" ")
        os, _, os_version = self._one("os").partition(" ")
        return Facts(
            time=self._as("time", _seconds, self._one("time")),
            user=self._as("user", _account, self._one("user")),
            sudo=self._word("sudo", ("root", "free", "refused", "missing")),
            hostname=self._one("hostname").lower(),
            kernel=self._one("kernel"),
            arch=self._one("arch"),
            cpus=self._as("cpus", _count, self._one("cpus")),
            memory=self._as("memory", _count, self._one("memory")) * _KIBI,
            cgroup=self._as("cgroup", {"v1": 1, "v2": 2}.__getitem__, version),
            controllers=frozenset(controllers.split()),
            reached=self._as("reached", _ip, self._one("reached", "")),
            machine=self._one("machine", ""),
            os=os,
            os_version=os_version,
            os_name=self._one("os_name", ""),
            swaps=self._each("swap", lambda value: Swap(_rest(value, 1), _sized(value, 0))),
            ntp=self._word("ntp", ("yes", "no", "unknown")),
            mounts=self._each("mount", lambda value: Mount(_rest(value, 2), _sized(value, 0), _sized(value, 1))),
            disks=self._each("disk", lambda value: Disk(_rest(value, 1), _sized(value, 0, _SECTOR))),
            addresses=self._each("address", _address),
            interfaces=self._each("interface", _interface),
            route=self._one("route", ""),
            nameservers=self._each("nameserver", lambda value: _ip(value.partition("%")[0])),
            resolves=self._word("resolves", ("yes", "no")) == "yes",
            listens=frozenset(self._each("listens", _hexadecimal_port)),
            rdma=self._each("rdma", lambda value: (_rest(value, 1), value.split()[0])),
            cards=Counter(self._each("card", _vendor)),
            drivers=dict(self._each("driver", lambda value: (_vendor(value.split()[0]), _rest(value, 1)))),
            usable=dict(self._each("usable", lambda value: (_vendor(value.split()[0]), _count(_rest(value, 1))))),
            tools=frozenset(self._values.get("tool", ())),
            manager=self._one("manager", ""),
            packages=dict(self._each("package", _pair)),
            services=dict(self._each("service", _service)),
            modules=dict(self._each("module", _pair)),
            sysctls=dict(self._each("sysctl", _pair)),
            versions=dict(self._each("version", lambda value: (value.split()[0], value.partition(" ")[2].strip()))),
            programs=dict(self._each("program", _pair)),
            images=dict(self._each("image", _pair)),
            unfinished=frozenset(self._values.get("unfinished", ())),
            leftovers=tuple(self._values.get("leftover", ())),
            joined=self._as("joined", _api, self._one("joined", "")),
            dropins=self._each("dropin", _pair),
            unread=frozenset(self._values.get("unread", ())),
            later=dict(self._each("later", lambda value: (value.split()[0], value.partition(" ")[2].strip()))),
            barred=dict(self._each("barred", _pair)),
            cni=frozenset(self._values.get("cni", ())),
            held=dict(self._each("held", _pair)),
            written=dict(self._each("written", _pair)),
            node_files=dict(self._each("nodefile", _pair)),
            files=dict(self._each("file", _file)),
        )

    def _one(self, key: str, default: str | None = None) -> str:
        values = self._values.get(key, [])
        if len(values) > 1:
            raise GarbledFacts(f"it has several values of {key}")
        if values:
            return values[0]
        if default is None:
            raise GarbledFacts(f"it does not tell {key}")
        return default

    def _word(self, key: str, known: tuple[str, ...]) -> str:
        value = self._one(key)
        if value not in known:
            raise GarbledFacts(f"{key} is {shorten(value)!r} instead of {', '.join(known)}")
        return value

    def _each(self, key: str, convert: Callable[[str], T]) -> tuple[T, ...]:
        return tuple(self._as(key, convert, value) for value in self._values.get(key, ()))

    def _as(self, key: str, convert: Callable[[str], T], value: str) -> T:
        try:
            return convert(value)
        except (ValueError, KeyError, IndexError):
            raise GarbledFacts(f"{shorten(value)!r} is no value of {key}") from None


def _seconds(value: str) -> float:
    number = float(value)
    if not math.isfinite(number) or not 0 <= number < 2**40:
        raise ValueError
    return number


def _account(value: str) -> str:
    if not _ACCOUNT.fullmatch(value):
        raise ValueError
    return value


def _count(value: str) -> int:
    if not value.isascii() or not value.isdecimal() or len(value) > 15:
        raise ValueError
    return int(value)


def _sized(value: str, at: int, unit: int = _KIBI) -> int:
    return _count(value.split()[at]) * unit


def _rest(value: str, at: int) -> str:
    """What follows the first `at` words."""
    return value.split(None, at)[at]


def _pair(value: str) -> tuple[str, str]:
    return value.split()[0], _rest(value, 1)


def _ip(value: str) -> str:
    return str(ipaddress.ip_address(value.partition("%")[0])) if value else ""


def _api(value: str) -> str:
    """The host in the URL of an API."""
    if not value:
        return ""
    found = _API.fullmatch(value)
    if found is None:
        raise ValueError
    return found[1].strip("[]")


def _address(value: str) -> Address:
    interface, address = value.split()
    return Address(interface.partition("@")[0], _ip(address.partition("/")[0]))


def _interface(value: str) -> Interface:
    mtu, state, name = value.split()
    return Interface(name, _count(mtu), state)


def _hexadecimal_port(value: str) -> int:
    port = int(value, 16)
    if not 0 <= port < 65536:
        raise ValueError
    return port


def _vendor(value: str) -> str:
    if value not in VENDORS:
        raise ValueError
    return value


def _service(value: str) -> tuple[str, Service]:
    name, running, starts = value.split()
    return name, Service(running, starts)


def _file(value: str) -> tuple[str, bytes]:
    path, _, content = value.partition(" ")
    try:
        return path, base64.b64decode(content, validate=True)
    except binascii.Error:
        raise ValueError from None
