"""The names that say which policy a core decides by, since a policy's parts are code and cannot be written to a file."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from corral.control.core.configuration import scheduler_policy
from corral.model.configuration import Configuration
from corral.scheduler import Policy, find_policy, with_part


class Rules(msgspec.Struct, frozen=True):
    """A policy by names, and whether the documents may choose another one."""

    policy: str = "fair"
    """`NAME`, or `NAME+PART+…`: with other *preempt*, *place* or *allot* parts."""
    documents: bool = True
    """Whether the documents' policy replaces it."""
    review_seconds: float | None = None
    """How often a plan is made without an event, where the policy's answer may change with time; None: its own."""

    def chosen(self, configuration: Configuration) -> Policy:
        """The policy in force under these documents.

        Raises InvalidInput for a name that is not installed.
        """
        name, *parts = self.policy.split("+")
        policy = find_policy(name)
        if self.documents:
            policy = scheduler_policy(configuration.policy, policy)
        else:
            policy = replace(policy, name=self.policy)
        if self.review_seconds is not None:
            policy = replace(policy, review_seconds=self.review_seconds)
        for part in parts:
            policy = with_part(policy, part)
        return policy
