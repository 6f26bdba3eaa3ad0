"""The operations of the API: functions whose names, parameters and docstrings become methods of both clients."""

from corral.client.operations import (
    accounts,
    alerts,
    benchmarks,
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
    templates,
    usage,
    what_if,
)

__all__ = [
    "accounts",
    "alerts",
    "benchmarks",
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
    "templates",
    "usage",
    "what_if",
]
