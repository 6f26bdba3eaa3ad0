"""The operations of the API: functions whose names, parameters and docstrings become methods of both clients."""

from corral.client.operations import (
    accounts,
    cluster,
    configuration,
    jobs,
    notifications,
    streams,
    teams,
    usage,
    what_if,
)

__all__ = ["accounts", "cluster", "configuration", "jobs", "notifications", "streams", "teams", "usage", "what_if"]
