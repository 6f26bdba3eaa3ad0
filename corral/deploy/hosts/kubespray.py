"""Kubespray's inventory as a Hosts document, as far as both mean the same; what is left out becomes a note."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from corral.deploy.hosts.inventory_ini import Inventory, InventoryGroup, parse_ini
from corral.deploy.hosts.inventory_yaml import parse_yaml

ROLES_OF_GROUPS: Final[Mapping[str, str]] = {
    "kube_control_plane": "control-plane",
    "kube-controlplane": "control-plane",
    "kube-control-plane": "control-plane",
    "kube_master": "control-plane",
    "kube-master": "control-plane",
    "kube_node": "worker",
    "kube-node": "worker",
}
_ETCD: Final = "etcd"
_WITHOUT_MEANING: Final = frozenset(
    {"all", "ungrouped", "k8s_cluster", "k8s-cluster", "calico_rr", "calico-rr", _ETCD, *ROLES_OF_GROUPS}
)
_SSH: Final[Mapping[str, str]] = {
    "ansible_host": "address",
    "ansible_ssh_host": "address",
    "ansible_user": "user",
    "ansible_ssh_user": "user",
    "ansible_port": "port",
    "ansible_ssh_port": "port",
    "ansible_ssh_private_key_file": "key",
    "ansible_private_key_file": "key",
    "ip": "internal",
}
_SILENT: Final = frozenset({"access_ip", "etcd_member_name", "ansible_connection", "ansible_become"})
"""Variables that need no note: Corral does what they say, or has no use for them."""
_SECRETS: Final = frozenset({"ansible_password", "ansible_ssh_pass", "ansible_become_pass", "ansible_become_password"})
_DEEPEST: Final = 64
"""Levels of groups within groups."""


class _Tree(NamedTuple):
    """A group with those below it: how many levels these have, and all hosts."""

    depth: int
    hosts: tuple[str, ...]


def from_inventory(text: str | bytes, filename: str) -> tuple[dict[str, Any], list[str]]:
    """The data of a Hosts document, and a note on each thing that is left out.

    A file that ends in .yaml, .yml or .json is read as YAML, any other as INI. Raises SpecError when it cannot be read,
    or has no hosts with a role.
    """
    as_yaml = filename.lower().endswith((".yaml", ".yml", ".json"))
    found = parse_yaml(text, filename) if as_yaml else parse_ini(text, filename)
    notes: list[str] = []
    hosts: dict[str, Any] = {}
    trees = _trees(found)
    variables = _variables(found, trees)
    for inventory_name, roles in _roles(found, trees, notes).items():
        name = re.sub(r"[^a-z0-9-]", "-", inventory_name.lower())
        if name != inventory_name:
            notes.append(f"Host {inventory_name} is called {name}, because nodes have such names.")
        if name in hosts:
            found.refuse(found.lines[inventory_name], f"two hosts would be called {name}")
        hosts[name] = _entry(inventory_name, roles, variables[inventory_name])
    if not hosts:
        found.refuse(1, "no host is in kube_control_plane or kube_node")
    notes += _left_out(found, variables)
    return {"kind": "Hosts", "hosts": hosts}, notes


def _roles(found: Inventory, trees: Mapping[str, _Tree], notes: list[str]) -> dict[str, list[str]]:
    """The roles of each host, in the order of the inventory."""
    members: dict[str, set[str]] = {}
    for group, role in ROLES_OF_GROUPS.items():
        members.setdefault(role, set()).update(trees[group].hosts if group in trees else ())
    etcd = set(trees[_ETCD].hosts) if _ETCD in trees else set()
    if etcd and etcd != members["control-plane"]:
        notes.append("The hosts of the group etcd differ from the control plane; etcd runs on the control plane here.")
    roles = {
        name: [role for role in ("control-plane", "worker") if name in members.get(role, ())] for name in found.hosts
    }
    idle = [name for name, each in roles.items() if not each]
    if idle:
        notes.append(f"Hosts without a role in Kubernetes are left out: {', '.join(sorted(idle))}.")
    return {name: each for name, each in roles.items() if each}


def _trees(found: Inventory) -> dict[str, _Tree]:
    """For each group its depth and all its hosts. Raises SpecError where groups contain themselves or are too deep."""
    done: dict[str, _Tree] = {}

    def visit(name: str, above: tuple[str, ...]) -> _Tree:
        if name in above:
            found.refuse(1, f"the group {name[:60]} contains itself")
        if len(above) > _DEEPEST:
            found.refuse(1, f"groups are nested deeper than {_DEEPEST} levels")
        if name not in done:
            entry = found.groups.get(name, InventoryGroup())
            below = [visit(child, (*above, name)) for child in entry.children]
            hosts = dict.fromkeys([*entry.hosts, *(host for tree in below for host in tree.hosts)])
            done[name] = _Tree(max((tree.depth + 1 for tree in below), default=0), tuple(hosts))
        return done[name]

    for name in found.groups:
        visit(name, ())
    return done


def _variables(found: Inventory, trees: Mapping[str, _Tree]) -> dict[str, dict[str, str]]:
    """The variables of each host: its own over those of its groups, the narrowest group last."""
    merged: dict[str, dict[str, str]] = {name: {} for name in found.hosts}
    for group in sorted(found.groups, key=lambda name: (name != "all", -trees[name].depth)):
        everybody = tuple(found.hosts) if group == "all" else trees[group].hosts
        for host in everybody if found.groups[group].variables else ():
            merged[host].update(found.groups[group].variables)
    return {name: {**merged[name], **own} for name, own in found.hosts.items()}


def _entry(name: str, roles: list[str], variables: Mapping[str, str]) -> dict[str, Any]:
    said = {_SSH[each]: value for each, value in variables.items() if each in _SSH and value}
    entry: dict[str, Any] = {"address": said.get("address", name), "roles": roles}
    if said.get("internal") and said["internal"] != entry["address"]:
        entry["internalAddress"] = said["internal"]
    ssh: dict[str, Any] = {key: said[key] for key in ("user", "key") if key in said}
    if "port" in said:
        ssh["port"] = int(said["port"]) if said["port"].isdecimal() and len(said["port"]) < 6 else said["port"]
    return {**entry, "ssh": ssh} if ssh else entry


def _left_out(found: Inventory, variables: Mapping[str, Mapping[str, str]]) -> list[str]:
    notes = []
    given = {name for each in variables.values() for name in each}
    if given & _SECRETS:
        notes.append("Passwords are not taken over: give the account a key, and sudo without a password.")
    unknown = sorted(given - _SSH.keys() - _SILENT - _SECRETS)
    if unknown:
        notes.append(f"Variables that are left out: {', '.join(unknown[:50])}{', …' if len(unknown) > 50 else ''}.")
    groups = sorted(name for name, each in found.groups.items() if name not in _WITHOUT_MEANING and each.hosts)
    if groups:
        notes.append(f"Groups that mean nothing here: {', '.join(groups[:50])}{', …' if len(groups) > 50 else ''}.")
    return notes
