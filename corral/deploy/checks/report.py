"""The report of a check: all findings of all hosts, in the order of the list, and their counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.deploy.checks.between_hosts import PortTrial, findings_between
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.findings import Finding, Reporter
from corral.deploy.checks.on_a_host import findings_on
from corral.deploy.hosts.reader import Hosts


@dataclass(frozen=True, slots=True)
class Seen:
    """A host that answered: its facts, and this machine's time just before and after it told its own."""

    facts: Facts
    before: float
    after: float

    @property
    def clock_offset(self) -> float:
        """The least number of seconds that its clock is off; 0 where it was right at some moment between."""
        told = self.facts.time
        return told - self.after if told > self.after else min(0.0, told - self.before)


@dataclass(frozen=True, slots=True)
class Survey:
    """What looking at hosts brought: those that answered, those that did not, and the trial of ports."""

    seen: Mapping[str, Seen] = field(default_factory=dict)
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    trial: PortTrial = field(default_factory=PortTrial)


def findings_of(hosts: Hosts, survey: Survey) -> list[Finding]:
    """All findings, by host in the order of the list."""
    found = [*_alone(hosts, survey), *findings_between(hosts, _facts(survey), survey.trial)]
    order = {host.name: at for at, host in enumerate(hosts.hosts)}
    return sorted(found, key=lambda each: order[each.host])


def _facts(survey: Survey) -> dict[str, Facts]:
    return {name: seen.facts for name, seen in survey.seen.items()}


def _alone(hosts: Hosts, survey: Survey) -> Iterator[Finding]:
    for host in hosts.hosts:
        if host.name in survey.refusals:
            yield Reporter(host.name).fail("ssh", *survey.refusals[host.name])
        elif host.name in survey.seen:
            seen = survey.seen[host.name]
            yield from findings_on(host, seen.facts, clock_offset=seen.clock_offset)


def count(findings: Sequence[Finding], level: str) -> int:
    """How many findings are of a level."""
    return sum(each.level == level for each in findings)


def document(hosts: Hosts, findings: Sequence[Finding]) -> dict[str, Any]:
    """The report for programs."""
    return {
        "cluster": hosts.cluster,
        "failures": count(findings, "failure"),
        "warnings": count(findings, "warning"),
        "hosts": [
            {
                "name": host.name,
                "address": host.address,
                "roles": list(host.roles),
                "findings": [each.to_document() for each in findings if each.host == host.name],
            }
            for host in hosts.hosts
        ],
    }
