"""Pure functions from job and placement to command, environment and rendezvous of each task."""

from corral.frameworks.base import Finding, Framework, Gang, TaskCommand
from corral.frameworks.registry import framework, job_types, one_group, port_counts, retries_at_once, splits_logs

__all__ = [
    "Finding", "Framework", "Gang", "TaskCommand", "framework", "job_types", "one_group", "port_counts",
    "retries_at_once", "splits_logs",
]  # fmt: skip
