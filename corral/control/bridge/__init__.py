"""Submit Kubernetes objects as jobs, and write the state of each job into its object."""

from corral.control.bridge.bridge import Bridge
from corral.control.bridge.namespace_accounts import AccountsOfNamespaces

__all__ = ["AccountsOfNamespaces", "Bridge"]
