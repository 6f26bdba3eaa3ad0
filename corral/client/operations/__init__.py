"""The operations of the API: functions whose names, parameters and docstrings become methods of both clients."""

from corral.client.operations import (
    accounts,
    alerts,
    caches,
    cluster,
    configuration,
    jobs,
    later,
    notifications,
    policy_shadow,
    profiles,
    streams,
    teams,
    usage,
    what_if,
)

__all__ = [
    "accounts",
    "alerts",
    "caches",
    "cluster",
    "configuration",
    "jobs",
    "later",
    "notifications",
    "policy_shadow",
    "profiles",
    "streams",
    "teams",
    "usage",
    "what_if",
]
