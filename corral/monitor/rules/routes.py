"""Routes from alerts to actions: which alerts stop or tag jobs, cordon nodes, set the clocks of GPUs or are mailed.

```yaml
repeat: 24h
mostNodes: 2
mailTo: [ops@example.org]
webhooks: {pager: https://pager.example/alerts}
inhibit:
  - {source: [alertname=NodeNotReady], target: ["alertname=~PaiServicePod.*"], equal: [node_name]}
routes:
  - match: [alertname=NvidiaSmiDoubleEccError]
    actions: [cordon-nodes, email-admin, webhook]
  - match: [alertname=JobUsesNothing, 'username!~"alice|bob"']
    actions: [stop-jobs, tag-jobs]
    tags: [stopped-by-alert]
```

The first route whose matchers an alert meets decides, as in Alertmanager.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.model.alerts.matchers import Matcher, match_all, parse_matcher
from corral.model.notifications.destinations import read_url
from corral.model.notifications.mail_addresses import read_addresses
from corral.monitor.rules.inhibition import Inhibition
from corral.monitor.rules.tokens import seconds_of
from corral.spec.errors import Path, Problem, SpecError, describe, did_you_mean, shorten
from corral.spec.yaml_source import Source, parse_source

REPEAT_SECONDS: Final = 86_400.0
"""Seconds after which the actions of an alert that still fires are done again, unless the file says otherwise."""
MOST_NODES: Final = 2
"""The most nodes that alerts keep cordoned at once, unless the file says otherwise."""
MOST_ROUTES: Final = 100
_MOST_TAGS: Final = 10
_MOST_MATCHERS: Final = 20
_KEYS: Final = ("repeat", "mostNodes", "mailTo", "webhooks", "inhibit", "routes")
_ROUTE_KEYS: Final = ("match", "actions", "tags")
_MOST_WEBHOOKS: Final = 20
_MOST_INHIBITIONS: Final = 20
_INHIBIT_KEYS: Final = ("source", "target", "equal")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_WEBHOOK: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TAG: Final = re.compile(r"[^\s,\x00-\x1f\x7f]{1,64}")


class Action(StrEnum):
    """What is done about an alert."""

    STOP_JOBS = "stop-jobs"
    """Stop the job that the label `job_name` names."""
    TAG_JOBS = "tag-jobs"
    """Give it the route's tags."""
    CORDON_NODES = "cordon-nodes"
    """Cordon the node that the label `node_name` names."""
    EMAIL_ADMIN = "email-admin"
    """Mail the addresses of the file's `mailTo`."""
    EMAIL_USER = "email-user"
    """Mail the verified addresses of the user that the label `username` names, or of the owner of the job."""
    FIX_GPU_CLOCKS = "fix-nvidia-gpu-low-perf"
    """Have the agent of the node of `node_name` set the highest clocks of the GPU of `minor_number`."""
    WEBHOOK = "webhook"
    """Tell the file's `webhooks`, in Alertmanager's format, when the alert begins to fire and when that is over."""


MAILS: Final = frozenset({Action.EMAIL_ADMIN, Action.EMAIL_USER})
"""The actions that need a mail server."""


@dataclass(frozen=True, slots=True)
class Route:
    """Alerts and what is done about them."""

    match: tuple[Matcher, ...]
    actions: tuple[Action, ...]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes, in their order."""

    routes: tuple[Route, ...] = ()
    repeat: float = REPEAT_SECONDS
    """Seconds; 0 is never."""
    most_nodes: int = MOST_NODES
    mail_to: tuple[str, ...] = ()
    """The addresses of the administrators."""
    webhooks: Mapping[str, str] = field(default_factory=dict)
    """URLs by the names of the receivers."""
    inhibit: tuple[Inhibition, ...] = ()

    @property
    def fixes(self) -> bool:
        """Whether the clocks of GPUs are set."""
        return any(Action.FIX_GPU_CLOCKS in each.actions for each in self.routes)

    @property
    def mails(self) -> bool:
        """Whether anything is mailed."""
        return any(MAILS.intersection(each.actions) for each in self.routes)

    def of(self, labels: Mapping[str, str]) -> Route | None:
        """The first route for an alert with these labels."""
        return next((each for each in self.routes if match_all(each.match, labels)), None)


def parse_routes(text: str | bytes, filename: str = "routes") -> Routes:
    """Parse a file of routes. Raises SpecError with all problems."""
    return _Reader(parse_source(text, filename, frozenset(("repeat", "match", "actions", "tags")))).routes()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._problems: list[Problem] = []

    def routes(self) -> Routes:
        data = self._source.data
        if not isinstance(data, dict) or not isinstance(data.get("routes"), list):
            raise SpecError([self._source.problem((), "a file of routes is a mapping with a list `routes`")])
        self._check_keys((), data, _KEYS)
        if len(data["routes"]) > MOST_ROUTES:
            self._add(("routes",), f"there are at most {MOST_ROUTES} routes")
        routes = [self._route(("routes", place), each) for place, each in enumerate(data["routes"][:MOST_ROUTES])]
        most = data.get("mostNodes", MOST_NODES)
        if not isinstance(most, int) or isinstance(most, bool) or not 0 <= most <= 10_000:
            self._add(("mostNodes",), f"mostNodes is a whole number up to 10000, and not {describe(most)}")
        repeat = self._repeat(data.get("repeat"))
        mail_to = self._addresses(data.get("mailTo", []))
        webhooks = self._webhooks(data.get("webhooks", {}))
        inhibit = self._inhibitions(data.get("inhibit", []))
        found = tuple(each for each in routes if each is not None)
        if not webhooks and any(Action.WEBHOOK in each.actions for each in found):
            self._add(
                ("routes",), "the action webhook needs receivers, such as webhooks: {pager: https://pager.example}"
            )
        if not mail_to and any(Action.EMAIL_ADMIN in each.actions for each in found):
            self._add(("routes",), "the action email-admin needs addresses, such as mailTo: [ops@example.org]")
        if self._problems:
            raise SpecError(self._problems)
        return Routes(found, repeat, most, mail_to, webhooks, inhibit)

    def _inhibitions(self, data: Any) -> tuple[Inhibition, ...]:
        if not isinstance(data, list) or len(data) > _MOST_INHIBITIONS:
            self._add(("inhibit",), f"inhibit is a list of at most {_MOST_INHIBITIONS} rules, and not {describe(data)}")
            return ()
        return tuple(self._inhibition(("inhibit", place), each) for place, each in enumerate(data))

    def _inhibition(self, path: Path, data: Any) -> Inhibition:
        if not isinstance(data, dict):
            self._add(path, f"a rule of inhibit is a mapping with source and target, and not {describe(data)}")
            return Inhibition((), ())
        self._check_keys(path, data, _INHIBIT_KEYS)
        source, target = (self._matchers((*path, key), data.get(key, [])) for key in _INHIBIT_KEYS[:2])
        equal = self._texts((*path, "equal"), data.get("equal", []))
        if len(equal) > _MOST_MATCHERS or not all(map(_LABEL.fullmatch, equal)):
            self._add((*path, "equal"), f"equal has at most {_MOST_MATCHERS} names of labels")
        return Inhibition(source, target, tuple(equal))

    def _matchers(self, path: Path, data: Any) -> tuple[Matcher, ...]:
        match = self._texts(path, data)
        if not 0 < len(match) <= _MOST_MATCHERS:
            self._add(path, f"there are 1 to {_MOST_MATCHERS} matchers, such as alertname=NodeNotReady")
        found = []
        for each in match:
            try:
                found.append(parse_matcher(each))
            except InvalidInput as error:
                self._add(path, error.message.rstrip("."))
        return tuple(found)

    def _webhooks(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict) or len(data) > _MOST_WEBHOOKS:
            self._add(("webhooks",), f"webhooks are at most {_MOST_WEBHOOKS} URLs by names, and not {describe(data)}")
            return {}
        for name, url in data.items():
            if not isinstance(name, str) or not _WEBHOOK.fullmatch(name):
                self._add(
                    ("webhooks",), "the name of a webhook has 1 to 64 letters, digits, dots, dashes and underscores"
                )
                continue
            try:
                read_url(url if isinstance(url, str) else "")
            except ValueError as error:
                self._add(("webhooks", name), str(error))
        return data

    def _addresses(self, data: Any) -> tuple[str, ...]:
        try:
            return read_addresses(",".join(self._texts(("mailTo",), data)))
        except ValueError as error:
            self._add(("mailTo",), str(error))
            return ()

    def _route(self, path: Path, data: Any) -> Route | None:
        if not isinstance(data, dict):
            self._add(path, f"a route is a mapping with match and actions, and not {describe(data)}")
            return None
        self._check_keys(path, data, _ROUTE_KEYS)
        match = self._matchers((*path, "match"), data.get("match", []))
        actions, tags = (self._texts((*path, key), data.get(key, [])) for key in _ROUTE_KEYS[1:])
        for each in actions:
            if each not in set(Action):
                self._add((*path, "actions"), f"there is no action {shorten(each)}{did_you_mean(each, Action)}")
        if (Action.TAG_JOBS in actions) is not bool(tags):
            self._add((*path, "tags"), "tags and the action tag-jobs go together")
        if len(tags) > _MOST_TAGS or not all(map(_TAG.fullmatch, tags)):
            self._add(
                (*path, "tags"),
                f"a route has at most {_MOST_TAGS} tags of 1 to 64 characters, without blanks",
            )
        if self._problems:
            return None
        return Route(match, tuple(map(Action, actions)), tuple(tags))

    def _texts(self, path: Path, data: Any) -> list[str]:
        if isinstance(data, list) and all(isinstance(each, str) for each in data):
            return data
        self._add(path, f"{path[-1]} is a list of texts, and not {describe(data)}")
        return []

    def _repeat(self, text: Any) -> float:
        if text is None:
            return REPEAT_SECONDS
        try:
            return 0.0 if text == "0" else seconds_of(text if isinstance(text, str) else "")
        except ValueError as error:
            self._add(("repeat",), str(error))
            return 0.0

    def _add(self, path: Path, message: str) -> None:
        self._problems.append(self._source.problem(path, message))

    def _check_keys(self, path: Path, data: dict[str, Any], known: tuple[str, ...]) -> None:
        for key in data:
            if key not in known:
                self._add((*path, key), f"there is no field {shorten(key)}{did_you_mean(key, known)}")
