"""Build a task's environment from its job and placement, without the server's own environment.

Vendor variables are set for real devices only. Described devices hide the real ones of the machine, which tasks would
otherwise share without knowing it.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from corral.devices.mps import PIPE_VARIABLE, pipe_folder
from corral.devices.nvidia import has_driver
from corral.devices.visibility import variables, vendor
from corral.kernel.ids import parse_attempt_id
from corral.model.inventory import MPS_LABEL, Device
from corral.model.launch import TaskLaunch
from corral.spec.placement_rules import MILLIONTHS

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_KEPT_AS_SELF = ("PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME")
_NOT_NAME = re.compile(r"[^A-Z0-9]+")
_LOADED = re.compile(
    r"(LD|GLIBC|MALLOC|RES)_.*|(GCONV|LOC|NLS|NIS)_?PATH|TZDIR|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|RESOLV_HOST_CONF|"
    r"ENV|BASH_ENV|BASHOPTS|SHELLOPTS|IFS|PS4|CDPATH"
)
"""Variables that make a shell, the loader or the C library run or read something that a job chose."""

_DRIVERS: Mapping[str, str] = MappingProxyType({"amd": "/dev/kfd", "ascend": "/dev/davinci_manager"})
"""A file of each vendor's driver; NVIDIA's is found by its library."""


def base_environment(uid: int, server: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the base variables of every task of a uid (-1: the server's own uid): PATH, home and language."""
    own = uid < 0 or uid == os.getuid()
    names = _KEPT + _KEPT_AS_SELF if own else _KEPT
    env = {name: server[name] for name in names if name in server}
    env.setdefault("PATH", _PATH)
    env.setdefault("LANG", "C.UTF-8")
    try:
        account = pwd.getpwuid(os.getuid() if own else uid)
        env["HOME"], env["USER"], env["LOGNAME"] = account.pw_dir, account.pw_name, account.pw_name
    except KeyError:
        env["HOME"], env["USER"] = "/", str(uid)
    return env


def split_unsafe_variables(env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split variables into those allowed for the server's own programs and those only for the task's."""
    own = {name: value for name, value in env.items() if _LOADED.fullmatch(name)}
    return {name: value for name, value in env.items() if name not in own}, own


def port_variable(name: str) -> str:
    """Return the variable that lists the ports of a name: `CORRAL_PORT_` and the name in capitals."""
    return "CORRAL_PORT_" + _NOT_NAME.sub("_", name.upper()).strip("_")


def task_environment(
    launch: TaskLaunch,
    base: Mapping[str, str],
    ports: Mapping[str, Sequence[int]],
    node_devices: Sequence[Device],
    labels: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Build the whole environment of one attempt: `base`, the job's own, then Corral's. `labels` are the node's."""
    key = parse_attempt_id(launch.attempt)
    env = {
        **base,
        **visible_devices(launch.devices, node_devices, contained=bool(launch.image)),
        **launch.env,
        **device_fraction_limits(launch, labels),
    }
    env |= {
        "CORRAL_JOB_ID": key.job,
        "CORRAL_ATTEMPT": launch.attempt,
        "CORRAL_ROLE": key.role,
        "CORRAL_TASK_INDEX": str(key.index),
        "CORRAL_NODE": launch.node,
        "CORRAL_HOST": "127.0.0.1",
        "CORRAL_DEVICES": ",".join(str(device.index) for device in launch.devices),
    }
    env |= {port_variable(name): ",".join(map(str, numbers)) for name, numbers in ports.items()}
    return env


def device_fraction_limits(launch: TaskLaunch, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that state a task's fraction of a device, and enforce it where the node can.

    NVIDIA's Multi-Process Service limits its clients' threads and memory by these variables. They come after the job's
    own, so that no job can widen its fraction.
    """
    if launch.share is None or not launch.devices:
        return {}
    device, share = launch.devices[0], launch.share
    memory = device.memory_bytes * share.memory // MILLIONTHS
    percent = max(1, share.compute * 100 // MILLIONTHS)
    env = {"CORRAL_DEVICE_COMPUTE_PERCENT": str(percent), "CORRAL_DEVICE_MEMORY_BYTES": str(memory)}
    if labels.get(MPS_LABEL[0]) != MPS_LABEL[1] or device.described or vendor(device) != "nvidia":
        return env
    env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percent)
    env[PIPE_VARIABLE] = str(pipe_folder())
    if memory:
        env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={memory // 2**20}M"
    return env


def visible_devices(
    given: Sequence[Device], node_devices: Sequence[Device], *, contained: bool = False
) -> dict[str, str]:
    """Return the vendors' variables that confine a task to its devices.

    In a container that has no other devices of a vendor (`containers.device_options`) they count from 0. A task without
    devices on a node with real ones is confined to none, and so is one with described devices.
    """
    env: dict[str, str] = {}
    vendors = {vendor(device) for device in node_devices if not device.described}
    if node_devices and all(device.described for device in node_devices):
        vendors = set(vendors_here())
    for name in sorted(vendors - {""}):
        mine = [device for device in given if not device.described and vendor(device) == name]
        if name == "nvidia" and any(device.id.startswith("MIG-") for device in node_devices):
            shown = [device.id for device in mine]
        elif contained and name != "amd":  # a container has all devices of AMD
            shown = [str(number) for number in range(len(mine))]
        else:
            shown = [str(device.index) for device in mine]
        env |= variables(name, shown)
        if name == "nvidia":
            env["NVIDIA_VISIBLE_DEVICES"] = ",".join(device.id for device in mine) or "void"
    return env


@functools.cache
def vendors_here() -> frozenset[str]:
    """The vendors whose drivers this machine has."""
    found = {name for name, place in _DRIVERS.items() if os.path.exists(place)}
    return frozenset(found | ({"nvidia"} if has_driver() else set()))
