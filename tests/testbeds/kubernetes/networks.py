"""A bridge for pods that only this machine can reach; it is joined to no other network."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Final

from tests.reserved import one_of

_SUBNETS: Final = [f"10.{second}.{third}" for second in range(200, 250) if second != 244 for third in range(256)]
"""Without 10.244.0.0/16, which pods have by default: `corral deploy` refuses hosts with addresses of it."""


class Bridge:
    """A bridge on a free /24 of 10.200.0.0 to 10.249.0.0; `gateway` is this machine's address on it."""

    def __init__(self) -> None:
        taken = _ip("-4", "route", "show", "table", "all")
        free = [subnet for subnet in _SUBNETS if f"{subnet}." not in taken]
        random.shuffle(free)
        self.subnet = one_of("subnet", free)
        self.gateway = f"{self.subnet}.1"
        _, second, third = self.subnet.split(".")
        self.name = f"crl-{second}-{third}"
        _ip("link", "add", self.name, "address", _hardware_address(second, third), "type", "bridge")
        try:
            _ip("address", "add", f"{self.gateway}/24", "dev", self.name)
            _ip("link", "set", self.name, "up")
        except BaseException:
            remove(self.name)
            raise

    def add_address(self, address: str) -> None:
        """Give this machine one more address on the bridge, for its pods to reach."""
        _ip("address", "add", f"{address}/32", "dev", self.name)

    def configuration(self, addresses: Path) -> str:
        """The CNI configuration: every pod gets an address on this bridge, recorded in the folder `addresses`."""
        ipam = {
            "type": "host-local",
            "ranges": [[{"subnet": f"{self.subnet}.0/24", "gateway": self.gateway}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(addresses),
        }
        plugin = {"type": "bridge", "bridge": self.name, "isGateway": True, "ipMasq": False, "ipam": ipam}
        return json.dumps({"cniVersion": "1.0.0", "name": "corral", "plugins": [plugin]})


def _hardware_address(second: str, third: str) -> str:
    """A fixed address: a bridge without one takes a port's, and when that pod ends the others lose packets for a while."""
    return f"02:00:0a:{int(second):02x}:{int(third):02x}:01"


def remove(bridge: str) -> None:
    """Remove a bridge; its ports vanish with their network namespaces."""
    subprocess.run(["ip", "link", "delete", bridge], check=False, capture_output=True)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
