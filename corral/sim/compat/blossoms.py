"""Matching of the highest weight in a general graph, by Edmonds' blossoms with labels (Galil, 1986), O(n^3) for n vertices.

Muri pairs jobs by it. Where several matchings are the heaviest, the order of the search decides which is found, and with
it the figure of table A. The order here is that of the anchor: all free vertices are searched from at once, first in,
first out, and neighbours are tried by number. Sums are rounded in the anchor's order too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isclose

FREE = -1
"""A vertex that the search has not reached."""

OUTER, INNER = 0, 1
"""At an even and at an odd distance from a vertex without a partner."""


def heaviest_pairs(weights: Sequence[Sequence[float]]) -> list[int]:
    """Return for each vertex its partner in a matching of the highest weight, or -1.

    A weight of 0 or less is no edge. The two weights of an edge may differ by rounding.
    """
    if not any(weight > 0 for row in weights for weight in row):
        return [-1] * len(weights)
    search = _Search(weights)
    while search.add_a_pair():
        pass
    return [partner - 1 for partner in search.partner[1 : len(weights) + 1]]


class _Search:
    """Labels, blossoms and partners. Numbers from 1 are vertices, those above `vertices` blossoms; 0 is none."""

    def __init__(self, weights: Sequence[Sequence[float]]) -> None:
        count = len(weights)
        self.vertices = count
        self.used = count
        size = count + count // 2 + 2
        self.weight = [[0.0] * (count + 1)] + [[0.0, *map(float, row)] for row in weights]
        """Of an edge between vertices."""
        # The best edge between two vertices or blossoms: its end in the first, its end in the second, and its weight.
        self.near = [[0] * size for _ in range(size)]
        self.far = [[0] * size for _ in range(size)]
        self.heavy = [[0.0] * size for _ in range(size)]
        for one in range(count + 1):
            for other in range(count + 1):
                self.near[one][other], self.far[one][other] = one, other
                self.heavy[one][other] = self.weight[one][other]
        highest = max(max(row) for row in self.weight)
        self.label = [highest] * (count + 1) + [0.0] * (size - count - 1)
        self.partner = [0] * size
        self.top = [*range(count + 1)] + [0] * (size - count - 1)
        """The outermost blossom of each vertex or blossom; 0 for a blossom that is dissolved."""
        self.parent = [0] * size
        self.side = [FREE] * size
        self.slack_from = [0] * size
        self.slack = [inf] * size
        """The least slack of an edge from an outer vertex to each, and where that edge starts."""
        self.edges = [
            [(other, weight * 2.0) for other, weight in enumerate(row) if other and weight > 0] for row in self.weight
        ]
        self.petals: list[list[int]] = [[] for _ in range(size)]
        self.holder = [[0] * (count + 1) for _ in range(size)]
        """Which petal of a blossom holds a vertex; 0 if none does."""
        for one in range(1, count + 1):
            self.holder[one][one] = one
        self.queue: list[int] = []
        self.visit = 0
        self.visited = [0] * size

    def add_a_pair(self) -> bool:
        """Search for a path that adds a pair, and take it; returns False when the matching is the heaviest."""
        used = self.used
        self.side[: used + 1] = [FREE] * (used + 1)
        self.slack_from[: used + 1] = [0] * (used + 1)
        self.slack[: used + 1] = [inf] * (used + 1)
        self.queue = []
        for one in range(1, used + 1):
            if self.top[one] == one and self.partner[one] <= 0:
                self.parent[one] = 0
                self.side[one] = OUTER
                self._enqueue(one)
        if not self.queue:
            return False
        while True:
            if self._scan():
                return True
            if not self._shift_labels():
                return False
            if self._take_tight_edges():
                return True
            for blossom in range(self.vertices + 1, self.used + 1):
                if self.top[blossom] == blossom and self.side[blossom] == INNER and self.label[blossom] <= 0:
                    self._dissolve(blossom)

    def _scan(self) -> bool:
        top, side, label, slack = self.top, self.side, self.label, self.slack
        for vertex in self.queue:
            if side[top[vertex]] == INNER:
                continue
            own, within = label[vertex], top[vertex]
            weight, far = self.weight[vertex], self.far[vertex]
            for other, double in self.edges[vertex]:
                to = top[other]
                if to == within:
                    continue
                gap = own + label[other] - double
                if gap <= 0:
                    if self._meet(vertex, other):
                        return True
                    within = top[vertex]
                else:
                    if to != other:
                        gap = own + label[far[to]] - weight[far[to]] * 2.0
                    if gap < slack[to]:
                        slack[to] = gap
                        self.slack_from[to] = vertex
        self.queue = []
        return False

    def _largest_shift(self) -> float:
        """Return the largest change that keeps all labels valid."""
        amount = inf
        for blossom in range(self.vertices + 1, self.used + 1):
            if self.top[blossom] == blossom and self.side[blossom] == INNER:
                amount = min(amount, self.label[blossom] / 2.0)
        for one in range(1, self.used + 1):
            if self.top[one] == one and self.slack_from[one]:
                if self.side[one] == FREE:
                    amount = min(amount, self.slack[one])
                elif self.side[one] == OUTER:
                    amount = min(amount, self.slack[one] / 2.0)
        return amount

    def _shift_labels(self) -> bool:
        """Change the labels as far as possible; False once a vertex gains nothing from a partner."""
        top, side, label = self.top, self.side, self.label
        amount = self._largest_shift()
        for vertex in range(1, self.vertices + 1):
            where = side[top[vertex]]
            if where == OUTER:
                if label[vertex] <= amount or isclose(label[vertex], amount, rel_tol=1e-5):
                    return False
                label[vertex] -= amount
            elif where == INNER:
                label[vertex] += amount
        for blossom in range(self.vertices + 1, self.used + 1):
            if top[blossom] == blossom:
                if side[blossom] == OUTER:
                    label[blossom] += amount * 2
                elif side[blossom] == INNER:
                    label[blossom] -= amount * 2
        for one in range(1, self.used + 1):
            if self.slack_from[one]:
                self.slack[one] = self._gap(self.slack_from[one], one)
        return True

    def _take_tight_edges(self) -> bool:
        for one in range(1, self.used + 1):
            start = self.slack_from[one]
            if (
                self.top[one] == one
                and start
                and self.top[start] != one
                and self.slack[one] <= 0
                and self._meet(self.near[start][one], self.far[start][one])
            ):
                return True
        return False

    def _gap(self, one: int, other: int) -> float:
        near, far = self.near[one][other], self.far[one][other]
        return self.label[near] + self.label[far] - self.weight[near][far] * 2.0

    def _note_slack(self, vertex: int, other: int) -> None:
        gap = self._gap(vertex, other)
        if gap < self.slack[other]:
            self.slack[other] = gap
            self.slack_from[other] = vertex

    def _forget_slack(self, other: int) -> None:
        self.slack_from[other] = 0
        self.slack[other] = inf

    def _find_slack(self, other: int) -> None:
        self._forget_slack(other)
        for vertex in range(1, self.vertices + 1):
            top = self.top[vertex]
            if self.heavy[vertex][other] > 0 and top != other and self.side[top] == OUTER:
                self._note_slack(vertex, other)

    def _enqueue(self, one: int) -> None:
        """Put the vertices of a blossom into the queue, level by level."""
        level = [one]
        for each in level:
            if each <= self.vertices:
                self.queue.append(each)
            else:
                level.extend(self.petals[each])

    def _set_top(self, one: int, top: int) -> None:
        below = [one]
        for each in below:
            self.top[each] = top
            below.extend(self.petals[each] if each > self.vertices else ())

    def _meet(self, near: int, far: int) -> bool:
        """Use a tight edge from an outer vertex: grow, form a blossom, or add a pair, for which it returns True."""
        one, other = self.top[near], self.top[far]
        if self.side[other] == FREE:
            self.parent[other] = near
            self.side[other] = INNER
            mate = self.top[self.partner[other]]
            self._forget_slack(other)
            self._forget_slack(mate)
            self.side[mate] = OUTER
            self._enqueue(mate)
        elif self.side[other] == OUTER:
            common = self._common_ancestor(one, other)
            if not common:
                self._augment(one, other)
                self._augment(other, one)
                return True
            self._form(one, common, other)
        return False

    def _common_ancestor(self, one: int, other: int) -> int:
        self.visit += 1
        while one or other:
            if one:
                if self.visited[one] == self.visit:
                    return one
                self.visited[one] = self.visit
                one = self.top[self.partner[one]]
                if one:
                    one = self.top[self.parent[one]]
            one, other = other, one
        return 0

    def _augment(self, one: int, other: int) -> None:
        """Give `one` the partner `other`, and swap partners along the path behind it."""
        while True:
            former = self.top[self.partner[one]]
            self._pair(one, other)
            if not former:
                return
            before = self.top[self.parent[former]]
            self._pair(former, before)
            one, other = before, former

    def _pair(self, one: int, other: int) -> None:
        """Make `other` the partner of `one`; within a blossom the petals are paired anew."""
        waiting = [(one, other)]
        for blossom, to in waiting:
            self.partner[blossom] = self.far[blossom][to]
            if blossom <= self.vertices:
                continue
            entry = self.holder[blossom][self.near[blossom][to]]
            place = self._even_place(blossom, entry)
            petals = self.petals[blossom]
            waiting += [(petals[index], petals[index ^ 1]) for index in range(place)]
            waiting.append((entry, to))
            self.petals[blossom] = petals[place:] + petals[:place]

    def _even_place(self, blossom: int, petal: int) -> int:
        """Return where the petal stands, counted in the direction in which that is even; turns the petals if needed."""
        petals = self.petals[blossom]
        place = petals.index(petal)
        if place % 2 == 0:
            return place
        self.petals[blossom] = [petals[0], *reversed(petals[1:])]
        return len(petals) - place

    def _form(self, one: int, common: int, other: int) -> None:
        """Contract the odd cycle through `one`, `common` and `other` to a blossom, which is outer."""
        blossom = self.vertices + 1
        while blossom <= self.used and self.top[blossom]:
            blossom += 1
        self.used = max(self.used, blossom)
        self.label[blossom], self.side[blossom] = 0.0, OUTER
        self.partner[blossom] = self.partner[common]
        petals = self._path_up(one, common)
        petals.reverse()
        petals = [common, *petals, *self._path_up(other, common)]
        self.petals[blossom] = petals
        self._set_top(blossom, blossom)
        self._join_edges(blossom)
        self._find_slack(blossom)

    def _join_edges(self, blossom: int) -> None:
        """Give a blossom the best edge of its petals to each vertex and blossom."""
        label, weight = self.label, self.weight
        known = self.used + 1
        petals = self.petals[blossom]
        chosen, gaps, heavy = [petals[0]] * known, [inf] * known, [0.0] * known
        holder = self.holder[blossom] = [0] * (self.vertices + 1)
        for petal in petals:
            own = self.heavy[petal]
            for each, (near, far) in enumerate(zip(self.near[petal][:known], self.far[petal], strict=False)):
                gap = label[near] + label[far] - weight[near][far] * 2.0
                if gap < gaps[each] or heavy[each] <= 0:
                    chosen[each], gaps[each], heavy[each] = petal, gap, own[each]
            for vertex, holds in enumerate(self.holder[petal]):
                if holds:
                    holder[vertex] = petal
        for each in range(1, known):
            petal = chosen[each]
            for edge in (self.near, self.far):
                edge[blossom][each], edge[each][blossom] = edge[petal][each], edge[each][petal]
            self.heavy[blossom][each], self.heavy[each][blossom] = heavy[each], self.heavy[each][petal]

    def _path_up(self, start: int, end: int) -> list[int]:
        """Return the vertices and blossoms from `start` up to `end`, without it; inner ones become outer."""
        path = []
        while start != end:
            inner = self.top[self.partner[start]]
            path += [start, inner]
            self._enqueue(inner)
            start = self.top[self.parent[inner]]
        return path

    def _dissolve(self, blossom: int) -> None:
        """Take an inner blossom with label 0 apart; an even way through it stays in the tree."""
        for petal in self.petals[blossom]:
            self._set_top(petal, petal)
        entry = self.holder[blossom][self.near[blossom][self.parent[blossom]]]
        place = self._even_place(blossom, entry)
        petals = self.petals[blossom]
        for index in range(0, place, 2):
            inner, outer = petals[index], petals[index + 1]
            self.parent[inner] = self.near[outer][inner]
            self.side[inner], self.side[outer] = INNER, OUTER
            self._forget_slack(inner)
            self._find_slack(outer)
            self._enqueue(outer)
        self.side[entry] = INNER
        self.parent[entry] = self.parent[blossom]
        for petal in petals[place + 1 :]:
            self.side[petal] = FREE
            self._find_slack(petal)
        self.top[blossom] = 0
