"""The message for a refused action: caller, action, resource, and the rule that refused it."""

from __future__ import annotations

from typing import Final

from corral.service.access.rules import Resource, meaning_of
from corral.service.access.tenant_actions import tenant_actions
from corral.service.actor import MONITORING, Actor

_VERBS: Final = {
    "job.list": "list jobs",
    "job.read": "look at {}",
    "job.validate": "check a job file",
    "job.submit": "submit jobs to {}",
    "job.stop": "stop {}",
    "job.restart": "restart {}",
    "job.scale": "scale {}",
    "job.delete": "remove {}",
    "job.exec": "enter the tasks of {}",
    "job.profile": "profile the tasks of {}",
    "job.open": "open the services of {}",
    "job.logs": "read the log of {}",
    "job.metrics": "read the metrics of {}",
    "job.environment": "read the environment of {}",
    "job.explain": "ask why {} waits",
    "job.suspend": "suspend {}",
    "job.resume": "resume {}",
    "job.tag": "change the tags of {}",
    "job.edit": "edit {}",
    "job.extend-idle": "give {} more time with idle devices",
    "job.order": "reorder {}",
    "queue.limit": "limit what members hold in {}",
    "runtime.peers": "ask for the tasks of {}",
    "runtime.report": "report on {}",
    "runtime.checkpoint": "report a checkpoint of {}",
    "runtime.progress": "report the progress of {}",
    "runtime.scalars": "report curves of {}",
    "runtime.code": "fetch the code of {}",
    "runtime.cache": "use the cache of compiled code of {}",
    "cache.list": "list everyone's compiled code",
    "cache.delete": "remove this compiled code",
    "cluster.read": "look at the cluster",
    "cluster.ask": "ask what if",
    "policy.shadow": "compare a policy with the one in force",
    "cluster.inspect": "read the cluster's own lists",
    "queue.read": "look at queues",
    "code.put": "upload code",
    "code.read": "read this code",
    "event.read": "follow events",
    "document.read": "look at {}",
    "document.apply": "change {}",
    "document.rollback": "roll back {}",
    "document.delete": "delete {}",
    "user.glance": "list the names of accounts",
    "user.list": "list accounts",
    "user.read": "look at {}",
    "user.create": "make accounts",
    "user.change": "change {}",
    "user.delete": "delete {}",
    "user.link": "make sign-in links for {}",
    "user.password": "change the password of {}",
    "user.profile": "change the profile of {}",
    "group.read": "look at groups",
    "group.list": "list groups",
    "group.change": "change groups",
    "token.list": "list tokens",
    "token.create": "make tokens",
    "token.revoke": "revoke this token",
    "secret.list": "list secrets",
    "secret.put": "store secrets",
    "secret.delete": "forget secrets",
    "notification.list": "list channels for notifications",
    "notification.change": "change channels for notifications",
    "filter.list": "list saved filters",
    "filter.change": "change saved filters",
    "audit.read": "read the audit log",
    "metrics.read": "read the metrics of {}",
    "alert.silence": "silence alerts",
    "alert.tell": "tell of alerts",
    "node.cordon": "cordon {}",
    "node.uncordon": "uncordon {}",
    "node.drain": "drain {}",
    "node.health": "change the health of {}",
    "node.report": "report health events",
    "storage.use": "use {}",
    "budget.change": "change budgets",
    "benchmark.read": "read the results of benchmarks",
    "benchmark.change": "change the results of benchmarks",
    **{name: action.verb for name, action in tenant_actions().items()},
}
"""Words for each action; `{}` is its resource."""
_KINDS: Final = {"user": "the account", "document": "the document", "group": "the group"}


def refusal(actor: Actor, action: str, resource: Resource, rule: str) -> str:
    """One sentence with the caller, the action, the resource, the reason and the name of the rule."""
    who = {"job": "A running job", MONITORING: "Monitoring"}.get(actor.kind, actor.user)
    whose = (
        f" of {resource.owner}" if resource.kind == "job" and resource.owner and resource.owner != actor.user else ""
    )
    name = resource.title or resource.name or resource.queue
    kind = _KINDS.get(resource.kind, f"the {resource.kind}")
    thing = f"{kind} {name}{whose}" if name else f"{resource.kind}s"
    verb = _VERBS.get(action, f"do {action} to {{}}").format(thing)
    meaning = meaning_of(rule).rstrip(".")
    return f"{who} may not {verb}: {meaning[:1].lower()}{meaning[1:]} (rule {rule})."
