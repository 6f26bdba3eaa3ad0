"""The access rules: one table, read from top to bottom; the first rule that fits decides.

So every refusal can name its rule. The last rule fits everything and refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from corral.service.access.tenant_actions import allowed_to
from corral.service.actor import MONITORING, Actor


class Resource(msgspec.Struct, frozen=True):
    """The object of an action; fields that do not matter to it are empty."""

    kind: str
    """`job`, `queue`, `cluster`, `document`, `node`, `user`, `group`, `token`, `secret`, `code`, `cache`, `storage`,
    `event`, `notification`, `filter`, `budget`, `alert`, `template`, `benchmark` or `audit`.
    """
    name: str = ""
    owner: str = ""
    queue: str = ""
    restricted: bool = False
    """Whether the queue is for members only: a group grants it, or its document says so."""
    title: str = ""
    """The name that people use, where `name` is an id."""


class Decision(msgspec.Struct, frozen=True):
    """Whether the action is allowed, and the name of the rule that decided."""

    allowed: bool
    rule: str


class Rule(NamedTuple):
    """One row of the table."""

    name: str
    meaning: str
    allows: bool
    fits: Callable[[Actor, str, Resource], bool]


def _own_job(actor: Actor, _: str, resource: Resource) -> bool:
    return bool(actor.job) and resource.name == actor.job


def _granted(actor: Actor, _: str, resource: Resource) -> bool:
    return resource.queue in actor.queues or "*" in actor.queues or _managed(actor, _, resource)


def _managed(actor: Actor, _: str, resource: Resource) -> bool:
    return bool(resource.queue) and (resource.queue in actor.manages or "*" in actor.manages)


def _storage_granted(actor: Actor, _: str, resource: Resource) -> bool:
    return resource.name in actor.storages or "*" in actor.storages


def _of(actions: frozenset[str], and_: Callable[[Actor, str, Resource], bool] | None = None) -> Callable[..., bool]:
    def fits(actor: Actor, action: str, resource: Resource) -> bool:
        return action in actions and (and_ is None or and_(actor, action, resource))

    return fits


def _owner(actor: Actor, _: str, resource: Resource) -> bool:
    return resource.owner == actor.user


RUNTIME: Final = frozenset(
    {
        "runtime.peers",
        "runtime.report",
        "runtime.checkpoint",
        "runtime.progress",
        "runtime.scalars",
        "runtime.code",
        "runtime.cache",
    }
)
OPEN: Final = frozenset(
    {
        "job.list",
        "job.read",
        "metrics.read",
        "job.validate",
        "cluster.read",
        "cluster.ask",
        "queue.read",
        "code.put",
        "event.read",
        "document.read",
        "user.glance",
        "group.read",
    }
) | allowed_to("everybody")
OWN_JOB: Final = frozenset(
    {
        "job.stop", "job.restart", "job.scale", "job.delete", "job.exec", "job.logs", "job.environment", "job.explain",
        "job.suspend", "job.resume", "job.tag", "job.edit", "job.metrics", "job.extend-idle",
        "job.open", "job.profile",
    }
)  # fmt: skip
MANAGED: Final = frozenset(
    {"job.logs", "job.metrics", "job.explain", "job.stop", "job.suspend", "job.resume", "job.edit"}
)
"""Actions of a job's owner that the managers of its queue may do too."""
MANAGING: Final = frozenset({"job.order", "queue.limit"})
"""Actions for the managers of a queue, not for job owners: order its jobs, limit what its members hold."""
OWN_THINGS: Final = frozenset(
    {
        "user.read", "token.list", "token.create", "token.revoke", "secret.list", "secret.put", "secret.delete",
        "code.read", "user.password", "user.profile", "notification.list", "notification.change",
        "cache.list", "cache.delete", "filter.list", "filter.change",
    }
)  # fmt: skip
STORAGE: Final = frozenset({"storage.use"})
OF_MONITORING: Final = frozenset({"metrics.read", "alert.tell"})
ADMINISTRATION: Final = frozenset(
    {
        "user.list", "user.create", "user.change", "user.delete", "user.link", "group.list", "group.change", "audit.read",
        "document.apply", "document.rollback", "document.delete", "node.cordon", "node.uncordon", "node.drain",
        "cluster.inspect", "budget.change", "node.health", "node.report", "alert.silence", "alert.tell",
        "policy.shadow", "benchmark.read", "benchmark.change",
    }
) | allowed_to("administrators")  # fmt: skip
IN_PERSON: Final = (OWN_THINGS | ADMINISTRATION | {"queue.limit"}) - {
    "user.read",
    "user.list",
    "group.list",
    "code.read",
    "cache.list",
    "node.report",
    "alert.tell",
    "benchmark.read",
    "benchmark.change",
}
"""Actions for people only; an application's token is refused."""
ACTIONS: Final = RUNTIME | OPEN | OWN_JOB | OWN_THINGS | ADMINISTRATION | STORAGE | MANAGING | {"job.submit"}
"""Every action."""

RULES: Final = (
    Rule("job-token-own-job", "A running job may ask about itself.", True,
         lambda actor, action, resource: actor.kind == "job" and action in RUNTIME and _own_job(actor, action, resource)),
    Rule("job-token-only-runtime", "A running job's token is good for nothing else.", False,
         lambda actor, _, __: actor.kind == "job"),
    Rule("monitoring-token", "The token of monitoring reads the page of metrics and tells alerts.", True,
         lambda actor, action, _: actor.kind == MONITORING and action in OF_MONITORING),
    Rule("monitoring-token-only", "The token of monitoring is good for nothing else.", False,
         lambda actor, _, __: actor.kind == MONITORING),
    Rule("runtime-needs-job-token", "Only a running job may call the runtime's addresses.", False, _of(RUNTIME)),
    Rule("application-token", "Applications are not allowed to manage accounts, tokens, secrets or the cluster.", False,
         lambda actor, action, _: actor.kind == "application" and action in IN_PERSON),
    Rule("administrator", "Administrators may do everything else.", True, lambda actor, _, __: actor.is_admin),
    Rule("open-to-all", "Everybody who is signed in may look at jobs and machines.", True, _of(OPEN)),
    Rule("queue-granted", "A group of the user grants or manages the queue.", True,
         _of(frozenset({"job.submit"}), _granted)),
    Rule("queue-not-granted", "The queue is for members of groups that the user is not in.", False,
         _of(frozenset({"job.submit"}), lambda _, __, resource: resource.restricted)),
    Rule("queue-open", "The queue is not for members only, so it is open to everybody.", True,
         _of(frozenset({"job.submit"}))),
    Rule("storage-granted", "A group of the user grants the storage.", True, _of(STORAGE, _storage_granted)),
    Rule("storage-not-granted", "No group of the user grants the storage.", False, _of(STORAGE)),
    Rule("job-owner", "Owners may do everything with their jobs.", True, _of(OWN_JOB, _owner)),
    Rule("queue-manager", "A group of the user manages the job's queue.", True,
         _of(MANAGED | MANAGING, _managed)),
    Rule("managers-only", "Only managers of the queue and administrators may do this.", False,
         _of(MANAGING)),
    Rule("job-not-owned", "Only its owner, managers of its queue and administrators may do this to a job.", False,
         _of(OWN_JOB)),
    Rule("own-account", "Everybody manages what is their own.", True, _of(OWN_THINGS, _owner)),
    Rule("administrators-only", "Only administrators may do this.", False, lambda _, __, ___: True),
)  # fmt: skip
"""The table, in its order."""


def decide(actor: Actor, action: str, resource: Resource) -> Decision:
    """Decide whether `actor` may do `action` to `resource`, by the first rule that fits."""
    for rule in RULES:
        if rule.fits(actor, action, resource):
            return Decision(rule.allows, rule.name)
    raise AssertionError("the last rule fits everything")


def meaning_of(rule: str) -> str:
    """The sentence that explains a rule."""
    return next(each.meaning for each in RULES if each.name == rule)
