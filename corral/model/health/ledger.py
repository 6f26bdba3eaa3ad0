"""The suspicion ledger: signs of trouble add to a score for each node and device, and thresholds move nodes.

A score halves in its half-life, so old trouble is forgotten. Trouble of many nodes at once has its cause elsewhere (a
registry, a network, a user's broken job): it adds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from corral.model.cordons import Cordon
from corral.model.health.records import HEALTH, HealthEntry, NodeHealth, Score
from corral.model.health.signs import Sign, SignKind
from corral.model.health.states import Cause, HealthState, moved

_DAY: Final = 86_400.0
_MOST_VALIDATIONS: Final = 2
"""Validations of one node that the ledger asks for in a day; then an administrator must."""
_MOST_SEEN: Final = 20_000
"""Remembered sources of signs."""
_MOST_WIDESPREAD: Final = 4
"""Trouble of more than one in so many nodes is nobody's own."""


class HealthTerms(msgspec.Struct, frozen=True):
    """The settings of the ledger."""

    half_life_seconds: float = 21_600.0
    prefer_others_score: float = 4.0
    cordon_score: float = 10.0
    failed_starts: int = 3
    """Different jobs whose starts fail one after another before the node gets no more."""
    most_cordoned: int = 2
    """Nodes that the ledger may have closed at once; never more than half of all."""
    prefers: bool = True
    """Whether suspected nodes come last."""
    cordons: bool = True
    """Whether nodes are closed."""
    validates: bool = True
    """Whether the ledger asks for a validation of a node that it closed, once the node is empty; not again if it fails."""


class Ledger:
    """The health of all nodes; it reads no clock and does nothing to a node itself."""

    def __init__(self, terms: HealthTerms, known: Iterable[NodeHealth] = ()) -> None:
        self.terms = terms
        self.known = {each.node: each for each in known}
        """The nodes of which anything is known."""
        self.entries: list[HealthEntry] = []
        """The history since `take`."""
        self._changed: set[str] = set()
        self._count = 0
        self._seen: dict[tuple[str, int, SignKind, str], float] = {}

    # ---- what is known

    def of(self, node: str) -> NodeHealth:
        """The health of a node."""
        return self.known.get(node) or NodeHealth(node)

    def score(self, node: str, now: float) -> float:
        """The sum of the scores of a node and its devices."""
        half_life = self.terms.half_life_seconds
        return sum(score.now(now, half_life) for score in self.of(node).scores.values())

    @property
    def suspects(self) -> frozenset[str]:
        """The nodes that take tasks last."""
        if not self.terms.prefers:
            return frozenset()
        return frozenset(each.node for each in self.known.values() if each.state is HealthState.SUSPECTED)

    @property
    def closed(self) -> list[NodeHealth]:
        """The nodes that take no tasks of users, for their health."""
        return [each for each in self.known.values() if each.state.closed]

    def take(self) -> tuple[list[NodeHealth], list[HealthEntry]]:
        """The nodes that have changed, and the history, since the last call."""
        nodes, entries = [self.of(name) for name in sorted(self._changed)], self.entries
        self._changed, self.entries = set(), []
        return nodes, entries

    def give_back(self, nodes: Iterable[NodeHealth], entries: list[HealthEntry]) -> None:
        """Take back what could not be stored."""
        self._changed |= {each.node for each in nodes}
        self.entries = [*entries, *self.entries][-_MOST_SEEN:]

    # ---- what happens

    def see_nodes(self, names: Collection[str]) -> None:
        """Take over how many nodes there are."""
        self._count = len(names)

    def add(self, sign: Sign) -> None:
        """Write a sign down; it adds its weight unless many nodes have the same trouble. A repetition changes nothing."""
        before = self.of(sign.node)
        if sign.kind is SignKind.START_FAILED and sign.job and sign.job not in before.failed_starts:
            failed = (*before.failed_starts, sign.job)[-max(self.terms.failed_starts, 1) :]
            before = self._put(msgspec.structs.replace(before, failed_starts=failed))
        if self._repeats(sign):
            return
        weight = 0.0 if self._widespread(sign) else sign.adds
        entry = HealthEntry(sign.node, sign.at, str(sign.kind), sign.reason, sign.device, weight, sign.job)
        self.entries.append(entry)
        if weight > 0.0 and not before.state.closed:
            had = before.scores.get(sign.device, Score(0.0, sign.at))
            value = had.now(sign.at, self.terms.half_life_seconds) + weight
            scores = before.scores | {sign.device: Score(value, max(sign.at, had.at))}
            self._put(msgspec.structs.replace(before, scores=scores))
        if before.state is HealthState.VALIDATING and sign.job and sign.job == before.job:
            self.move(sign.node, Cause.FAILED, HEALTH, sign.reason, sign.at)

    def started(self, node: str) -> None:
        """Forget the failed starts of a node, because one has worked."""
        health = self.known.get(node)
        if health is not None and health.failed_starts:
            self._put(msgspec.structs.replace(health, failed_starts=()))

    def _repeats(self, sign: Sign) -> bool:
        """Whether the same source gave the same sign not long ago; remembers it if not."""
        key = (sign.node, sign.device, sign.kind, sign.source or sign.job)
        last = self._seen.get(key)
        if last is not None and sign.at < last + sign.again_seconds:
            return True
        self._seen.pop(key, None)
        if len(self._seen) >= _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = sign.at
        return False

    def _widespread(self, sign: Sign) -> bool:
        return sign.kind is SignKind.START_FAILED and self._starts_fail_everywhere()

    def _starts_fail_everywhere(self) -> bool:
        failing = sum(bool(each.failed_starts) for each in self.known.values() if not each.state.closed)
        return failing > max(1, self._count // _MOST_WIDESPREAD)

    # ---- what follows

    def review(self, now: float, cordons: Mapping[str, Cordon], empty: Collection[str]) -> None:
        """Move every node that thresholds or people have moved; `empty` are closed nodes on which no task is."""
        for health in list(self.known.values()):
            self._follow_cordon(health, cordons, now)
        ranked = sorted(self.known, key=lambda name: (-self.score(name, now), name))
        for name in ranked:
            self._weigh(name, now, closed_by_people=name in cordons)
        if self.terms.validates:
            for health in self.closed:
                waits = health.state is HealthState.CORDONED and health.closed and not health.job
                if waits and health.node in empty:
                    self._ask_for_validation(health, now)

    def _follow_cordon(self, health: NodeHealth, cordons: Mapping[str, Cordon], now: float) -> None:
        """See that a cordon is in force, or that people have removed it since."""
        if not health.state.closed:
            return
        if health.node in cordons and not health.closed:
            self._put(msgspec.structs.replace(health, closed=True))
        elif health.node not in cordons and health.closed:
            self.move(health.node, Cause.CLEARED, "", "its cordon was removed", now)

    def _weigh(self, name: str, now: float, *, closed_by_people: bool) -> None:
        health, score, terms = self.of(name), self.score(name, now), self.terms
        if health.state.closed:
            return
        if why := self._too_much(health, score):
            if terms.cordons and not closed_by_people and len(self.closed) < self._most():
                self.move(name, Cause.SCORE, HEALTH, why, now)
                return
            if health.state is HealthState.HEALTHY:
                self.move(name, Cause.SUSPICION, HEALTH, why, now)
        elif health.state is HealthState.HEALTHY and score >= terms.prefer_others_score:
            self.move(name, Cause.SUSPICION, HEALTH, f"its score is {score:.1f}", now)
        elif health.state is HealthState.SUSPECTED and score < terms.prefer_others_score / 2:
            self.move(name, Cause.CALM, HEALTH, f"its score fell to {score:.1f}", now)

    def _too_much(self, health: NodeHealth, score: float) -> str:
        """Why a node should be closed; "" if it should not."""
        if score >= self.terms.cordon_score:
            return f"its score is {score:.1f}"
        if len(health.failed_starts) >= self.terms.failed_starts and not self._starts_fail_everywhere():
            return f"starts of {len(health.failed_starts)} different jobs failed one after another"
        return ""

    def _most(self) -> int:
        return min(self.terms.most_cordoned, self._count // 2)

    def _ask_for_validation(self, health: NodeHealth, now: float) -> None:
        recent = tuple(at for at in health.validations if now - at < _DAY)
        if len(recent) < _MOST_VALIDATIONS:
            self._put(msgspec.structs.replace(health, validations=(*recent, now)))
            self.move(health.node, Cause.VALIDATE, HEALTH, "nothing runs there any more", now)

    def move(self, node: str, cause: Cause, by: str, why: str, now: float) -> NodeHealth:
        """Move a node to another state.

        Raises Conflict `health-state` where the table has no such transition.
        """
        before = self.of(node)
        state = moved(node, before.state, cause)
        after = msgspec.structs.replace(
            before, state=state, since=now, by=by, why=why, closed=before.closed and state.closed
        )
        if state is HealthState.HEALTHY and cause is not Cause.CALM:
            after = msgspec.structs.replace(after, scores={}, failed_starts=())
        if state is HealthState.VALIDATING or cause is Cause.SCORE:
            after = msgspec.structs.replace(after, job="")
        entry = HealthEntry(node, now, "moved", why, before=str(before.state), after=str(state), by=by)
        self.entries.append(msgspec.structs.replace(entry, job=after.job))
        return self._put(after)

    def note_job(self, node: str, job: str) -> None:
        """Note the validation job of a node."""
        self._put(msgspec.structs.replace(self.of(node), job=job))

    def _put(self, health: NodeHealth) -> NodeHealth:
        self.known[health.node] = health
        self._changed.add(health.node)
        return health
