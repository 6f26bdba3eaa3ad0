"""OpenPAI's `layout.yaml` and `config.yaml` as a Hosts document, for `corral deploy init --from-openpai`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from corral.compat.openpai.language.cluster_export import read_export
from corral.compat.openpai.language.cluster_import import machines_of, memory_of, works
from corral.spec.errors import Problem, SpecError, describe
from corral.spec.yaml_source import Source, parse_source

_TAKEN: Final = frozenset({"user", "ssh_key_file_path", "docker_image_tag"})
_SECRETS: Final = ("password", "docker_registry_password", "docker_cache_azure_account_key", "docker_cache_htpasswd")
_VENDORS: Final[Mapping[str, str]] = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd", "npu.huawei.com/NPU": "ascend"}


@dataclass(frozen=True, slots=True)
class OpenPaiHosts:
    """The format: two files, read to the data of a Hosts document and notes on what is left out."""

    files: tuple[str, ...] = ("LAYOUT", "CONFIG")
    help: str = "Read OpenPAI's layout.yaml and config.yaml."

    def read(self, texts: Sequence[tuple[str, bytes]]) -> tuple[dict[str, Any], list[str]]:
        """The document's data and the notes. Raises SpecError when a file is not what OpenPAI has."""
        (layout_name, layout_text), (config_name, config_text) = texts
        layout, config = parse_source(layout_text, layout_name), parse_source(config_text, config_name)
        if not isinstance(layout.data, dict) or not {"machine-sku", "machine-list"} <= layout.data.keys():
            raise SpecError([layout.problem((), "expected OpenPAI's layout, with machine-sku and machine-list")])
        if not isinstance(config.data, dict) or "user" not in config.data:
            raise SpecError([config.problem((), "expected OpenPAI's config.yaml, with the user of the machines")])
        notes: list[str] = []
        hosts = _hosts(layout, layout_text, notes)
        ssh = {"user": str(config.data["user"])}
        if config.data.get("ssh_key_file_path"):
            ssh["key"] = str(config.data["ssh_key_file_path"])
        notes += _of_config(config.data)
        return {"kind": "Hosts", "ssh": ssh, "skus": _skus(layout, hosts), "hosts": hosts}, notes


def _hosts(layout: Source, text: bytes, notes: list[str]) -> dict[str, Any]:
    """The machines by name; raises SpecError for one without a name or address, or of an unknown type."""
    machines = machines_of(read_export({"layout.yaml": text}))
    if len(machines) != len(layout.data["machine-list"] or ()):
        raise SpecError([layout.problem(("machine-list",), "expected a list of machines, each a mapping")])
    hosts: dict[str, Any] = {}
    for at, machine in enumerate(machines):
        place = ("machine-list", at)
        problem = _problem(layout, place, machine, hosts)
        if problem is not None:
            raise SpecError([problem])
        name = str(machine["hostname"])
        roles = ["control-plane"] if str(machine.get("pai-master", "")).lower() == "true" else []
        roles += ["worker"] if works(machine) else []
        roles += ["storage"] if str(machine.get("pai-storage", "")).lower() == "true" else []
        if not roles:
            notes.append(f"Machine {name} is neither master, worker nor storage, so it is left out.")
            continue
        ssh = {"ssh": {"port": machine["sshport"]}} if isinstance(machine.get("sshport"), int) else {}
        hosts[name] = {"address": str(machine["hostip"]), "roles": roles, "sku": str(machine["machine-type"]), **ssh}
    return hosts


def _problem(layout: Source, place: tuple[str | int, ...], machine: Mapping[str, Any], known: object) -> Problem | None:
    for field in ("hostname", "hostip", "machine-type"):
        if not isinstance(machine.get(field), str | int) or not str(machine[field]):
            return layout.problem(place, f"the machine needs a {field}")
    if isinstance(known, dict) and str(machine["hostname"]) in known:
        return layout.problem((*place, "hostname"), f"{describe(machine['hostname'])} is the name of two machines")
    skus = layout.data["machine-sku"]
    if not isinstance(skus, dict) or not isinstance(skus.get(str(machine["machine-type"])), dict):
        return layout.problem((*place, "machine-type"), f"{describe(machine['machine-type'])} is not below machine-sku")
    return None


def _skus(layout: Source, hosts: Mapping[str, Any]) -> dict[str, Any]:
    """The machine types that are used. Raises SpecError for an amount that is no number."""
    skus: dict[str, Any] = {}
    for name in dict.fromkeys(host["sku"] for host in hosts.values()):
        said = layout.data["machine-sku"][name]
        kinds = (said[key] for key in ("computing-device", "gpu") if isinstance(said.get(key), dict))
        device: Mapping[str, Any] = next(kinds, {})
        sku: dict[str, Any] = {}
        cpu = said["cpu"].get("vcore") if isinstance(said.get("cpu"), dict) else None
        if cpu:
            sku["cpu"] = str(cpu)
        memory = said.get("mem", said.get("memory"))
        if memory:
            sku["memory"] = memory_of(memory)
        if device.get("count"):
            model = str(device.get("model") or "")
            sku["devices"] = {"vendor": _vendor(layout, name, device), "count": _count(layout, name, device)}
            sku["devices"] |= {"model": model} if model else {}
        skus[name] = sku
    return skus


def _vendor(layout: Source, name: str, device: Mapping[str, Any]) -> str:
    kind = str(device.get("type") or "nvidia.com/gpu")
    if "/" not in kind:  # releases before 1.0 wrote the model here, of NVIDIA's GPUs only
        return "nvidia"
    if kind not in _VENDORS:
        path = ("machine-sku", name, "computing-device", "type")
        raise SpecError([layout.problem(path, f"{describe(kind)} is no known device; expected {', '.join(_VENDORS)}")])
    return _VENDORS[kind]


def _count(layout: Source, name: str, device: Mapping[str, Any]) -> int:
    count = device["count"]
    if isinstance(count, bool) or not isinstance(count, int):
        raise SpecError([layout.problem(("machine-sku", name), f"expected a number of devices, got {describe(count)}")])
    return int(count)


def _of_config(config: Mapping[str, Any]) -> list[str]:
    notes = []
    if any(config.get(name) for name in _SECRETS):
        notes.append("Passwords are not taken over: give the account a key, and sudo without a password.")
    left = sorted(str(name) for name in config.keys() - _TAKEN - set(_SECRETS))
    if left:
        notes.append(
            f"Settings of config.yaml that are left out: {', '.join(left[:50])}{', …' if len(left) > 50 else ''}."
        )
    return notes


FORMAT: Final = OpenPaiHosts()
"""The plug-in of `corral.host_lists`."""
