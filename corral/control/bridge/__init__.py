"""Objects of a cluster are a second front door: what they ask for is submitted, what becomes of it is shown in them."""

from corral.control.bridge.bridge import Bridge
from corral.control.bridge.mapping import AccountsOfNamespaces

__all__ = ["AccountsOfNamespaces", "Bridge"]
