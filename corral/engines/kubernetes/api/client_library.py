"""Import the parts of kubernetes-asyncio for sign-in and TLS, without its generated models.

The models cost 75 MB and 1.5 s, and the package imports them before anything else. So while the wanted parts are
imported, empty modules stand for the two packages in `sys.modules`. They are removed afterwards, so that a full import
elsewhere still works.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from corral.engines.kubernetes.api.optional_dependency import require_extra

_PACKAGE = "kubernetes_asyncio"


class Library(NamedTuple):
    """The parts of kubernetes-asyncio that Corral uses."""

    configuration: Any
    """`Configuration`: address, certificates, tokens."""
    rest: Any
    """`RESTClientObject`: TLS and bounded connections around one aiohttp session."""
    kube_config: Any
    """The module that reads kubeconfig files and runs their plug-ins."""
    in_cluster: Any
    """`InClusterConfigLoader`: the service account of the pod in which Corral runs."""


@cache
def library() -> Library:
    """Import the parts. Raises InvalidInput if the extra `kubernetes` is not installed."""
    require_extra()
    stood_in = [name for name in (_PACKAGE, f"{_PACKAGE}.client") if name not in sys.modules]
    try:
        for name in stood_in:
            sys.modules[name] = _without_its_code(name)
        configuration = importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration
        if f"{_PACKAGE}.client" in stood_in:
            vars(sys.modules[f"{_PACKAGE}.client"]).update(Configuration=configuration, ApiClient=object)
        return Library(
            configuration,
            importlib.import_module(f"{_PACKAGE}.client.rest").RESTClientObject,
            importlib.import_module(f"{_PACKAGE}.config.kube_config"),
            importlib.import_module(f"{_PACKAGE}.config.incluster_config").InClusterConfigLoader,
        )
    finally:
        for name in stood_in:
            del sys.modules[name]


def _without_its_code(name: str) -> ModuleType:
    """Return an empty module with the package's search path."""
    parent, _, child = name.rpartition(".")
    module = ModuleType(name)
    if parent:
        module.__path__ = [f"{folder}/{child}" for folder in sys.modules[parent].__path__]
    else:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        module.__path__ = list(spec.submodule_search_locations or ())
    return module
