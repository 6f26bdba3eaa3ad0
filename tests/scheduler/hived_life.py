"""Random clusters and event sequences, drawn from a seed, for property tests of HiveD's guarantees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from corral.kernel.draw import draw_integer
from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm import (
    Bind,
    HivedAlgorithm,
    Member,
    Order,
    Phase,
    PodRequest,
    Preempt,
    Wait,
)
from corral.spec.errors import SpecError
from corral.spec.hived.configuration import load_hived

PRIORITIES: Final = (-1, -1, 0, 0, 1, 2, 3, 7)


class Dice:
    """Random numbers that depend only on a seed and the number of earlier draws."""

    def __init__(self, seed: object) -> None:
        self.seed, self.count = str(seed), 0

    def below(self, limit: int) -> int:
        self.count += 1
        return draw_integer(self.seed, self.count) % limit

    def pick(self, things: Any) -> Any:
        return things[self.below(len(things))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent


def draw_cluster(dice: Dice) -> dict[str, Any]:
    """A HiveD configuration of one to three chains, some sharing nodes or a device type, and two to four tenants."""
    types: dict[str, Any] = {}
    cells: list[dict[str, Any]] = []
    for chain in range(1 + dice.below(3)):
        leaf = f"gpu{dice.below(2)}" if chain else "gpu0"
        below, names = leaf, []
        depth = dice.pick((1, 2, 3, 3))
        node_at = dice.below(depth)
        for level in range(depth):
            name = f"c{chain}-l{level}"
            types[name] = {
                "childCellType": below,
                "childCellNumber": 2 + dice.below(2),
                "isNodeLevel": level == node_at,
            }
            below = name
            names.append(name)
        for top in range(1 + dice.below(4)):
            cells.append(_draw_cell(types, names, node_at, len(names) - 1, f"{chain}x{top}"))
    shared = [cell for cell in cells if types[cell["cellType"]]["isNodeLevel"] and "-l0" in cell["cellType"]]
    if len(shared) > 1 and shared[0]["cellType"] != shared[-1]["cellType"]:
        shared[-1]["cellAddress"] = shared[0]["cellAddress"]
        count = types[shared[-1]["cellType"]]["childCellNumber"]
        shared[-1]["cellChildren"] = [{"cellAddress": str(100 + at)} for at in range(count)]
    physical = {"cellTypes": types, "physicalCells": cells}
    return {"physicalCluster": physical, "virtualClusters": draw_tenants(dice, physical)}


def _draw_cell(types: dict[str, Any], names: list[str], node_at: int, level: int, address: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cellType": names[level]}
    if level == node_at:
        cell["cellAddress"] = f"n{address}"
    elif level > node_at:
        cell["cellAddress"] = address
        count = types[names[level]]["childCellNumber"]
        children = [_draw_cell(types, names, node_at, level - 1, f"{address}.{at}") for at in range(count)]
        cell["cellChildren"] = children
    return cell


def _clear_pins(cells: list[dict[str, Any]]) -> None:
    for cell in cells:
        cell.pop("pinnedCellId", None)
        _clear_pins(cell.get("cellChildren", []))


def _draw_pin(dice: Dice, cell: dict[str, Any], name: str) -> None:
    while cell.get("cellChildren") and dice.chance(60):
        cell = dice.pick(cell["cellChildren"])
    cell["pinnedCellId"] = name


def draw_tenants(dice: Dice, physical: dict[str, Any]) -> dict[str, Any]:
    """Virtual clusters that fit; a cell that does not fit any more is not given."""
    cells = physical["physicalCells"]
    _clear_pins(cells)
    tenants: dict[str, Any] = {f"vc{at}": {"virtualCells": [], "pinnedCells": []} for at in range(2 + dice.below(3))}
    config = {"physicalCluster": physical, "virtualClusters": tenants}
    if dice.chance(50):
        _draw_pin(dice, dice.pick(cells), "pin")
        tenants[dice.pick(list(tenants))]["pinnedCells"].append({"pinnedCellId": "pin"})
    for chain in dict.fromkeys(cell["cellType"] for cell in cells):
        path = [chain]
        while path[-1] in physical["cellTypes"]:
            path.append(physical["cellTypes"][path[-1]]["childCellType"])
        for _ in range(8):
            _draw_owned(dice, config, path[: 1 + dice.below(len(path))])
        if dice.chance(70):
            for end in range(1, len(path) + 1):
                while _draw_owned(dice, config, path[:end]) and dice.chance(90):
                    pass
    return tenants


def _draw_owned(dice: Dice, config: dict[str, Any], path: list[str]) -> bool:
    """Give a cell of a type to some virtual cluster, unless it does not fit any more."""
    owned = config["virtualClusters"][dice.pick(list(config["virtualClusters"]))]["virtualCells"]
    owned.append({"cellType": ".".join(path), "cellNumber": 1})
    try:
        load_hived(config)
    except SpecError:
        owned.pop()
        return False
    return True


class Life:
    """A cluster under random events; `occupant` is an independent record of each device's holder."""

    def __init__(self, seed: object, order: Order) -> None:
        self.dice = Dice(seed)
        self.config = draw_cluster(self.dice)
        self.algorithm = HivedAlgorithm(load_hived(self.config), order=order)
        self.waiting: list[PodRequest] = []
        self.running: dict[str, list[tuple[PodRequest, Bind]]] = {}
        self.count = 0
        self.seen: dict[str, int] = {}

    def note(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    def happen(self) -> None:
        """One random event."""
        if self.dice.chance(2):
            self.reconfigure()
        else:
            self.live()

    def live(self) -> None:
        """One random event that keeps the configuration."""
        roll = self.dice.below(98)
        if roll < 40:
            self.submit()
        elif roll < 62:
            self.retry()
        elif roll < 80:
            self.finish()
        elif roll < 83:
            self.withdraw()
        elif roll < 94:
            node = self.dice.pick(self.algorithm.nodes)
            self.algorithm.set_node_health(node, healthy=self.dice.chance(65))
            self.note("health")
        else:
            node, device = self.dice.pick(list(self.algorithm.state.forest.devices))
            self.algorithm.set_device_health(node, device, healthy=self.dice.chance(65))
            self.note("device health")

    def submit(self) -> None:
        """A new gang of random size, priority and virtual cluster."""
        self.count += 1
        vc = self.dice.pick(list(self.config["virtualClusters"]))
        priority = self.dice.pick(PRIORITIES)
        pinned = [each["pinnedCellId"] for each in self.config["virtualClusters"][vc]["pinnedCells"]]
        members = tuple(Member(1 + self.dice.below(3), 1 + self.dice.below(4)) for _ in range(1 + self.dice.below(2)))
        request = PodRequest(
            pod=f"g{self.count}-0",
            vc=vc,
            priority=priority,
            leaves=members[0].leaves,
            group=f"g{self.count}",
            members=members,
            leaf_type=self.dice.pick(["", "", "", "gpu0"]),
            pinned_cell=pinned[0] if pinned and priority >= 0 and self.dice.chance(50) else "",
            lazy_preemption=self.dice.chance(50),
            ignore_suggested=self.dice.chance(70),
            span_chains=self.dice.chance(30),
        )
        self.attempt(request)

    def suggested(self) -> frozenset[str]:
        refused = self.dice.pick((0, 0, 10, 60))
        return frozenset(node for node in self.algorithm.nodes if not self.dice.chance(refused))

    def attempt(self, request: PodRequest) -> None:
        """Schedule as Kubernetes does: filter first, preempt if that names victims, and bind at once."""
        try:
            decision = self.algorithm.schedule(request, self.suggested(), Phase.FILTERING)
            if isinstance(decision, Preempt):
                decision = self.algorithm.schedule(request, self.suggested(), Phase.PREEMPTING)
        except InvalidInput:
            self.note("refused")
            return
        self.note(type(decision).__name__)
        if isinstance(decision, Bind) and len({self.chain(place.node) for place in decision.group}) > 1:
            self.note("parted")
        if isinstance(decision, Bind):
            self.start(request, decision)
        elif request.group not in self.running:
            if request not in self.waiting:
                self.waiting.append(request)
            if isinstance(decision, Preempt) and self.dice.chance(60):
                for victim in {victim.rpartition("-")[0] for victim in decision.victims}:
                    self.end(victim)

    def chain(self, node: str) -> str:
        return self.algorithm.state.forest.on_node[node][0].kind.chain

    def start(self, request: PodRequest, bound: Bind) -> None:
        """Bind the first pod, then the others of its group."""
        if request in self.waiting:
            self.waiting.remove(request)
        self.algorithm.add_allocated(request, bound)
        pods = self.running.setdefault(request.group, [])
        pods.append((request, bound))
        sizes = request.sizes()
        sizes.remove(request.leaves)
        for at, size in enumerate(sizes, 1):
            if self.dice.chance(5):
                break
            pod = replace(request, pod=f"{request.group}-{at}", leaves=size)
            decision = self.algorithm.schedule(pod, frozenset(self.algorithm.nodes), Phase.FILTERING)
            assert isinstance(decision, Bind), decision
            self.algorithm.add_allocated(pod, decision)
            pods.append((pod, decision))

    def retry(self) -> None:
        """Try a waiting gang again."""
        if self.waiting:
            self.attempt(self.dice.pick(self.waiting))

    def end(self, group: str) -> None:
        """End all pods of a gang."""
        for request, _ in self.running.pop(group, []):
            self.algorithm.delete_allocated(request)

    def finish(self) -> None:
        """End a running gang, or one pod of it."""
        if not self.running:
            return
        group = self.dice.pick(list(self.running))
        if self.dice.chance(80):
            self.end(group)
            return
        request, _ = self.running[group].pop(self.dice.below(len(self.running[group])))
        self.algorithm.delete_allocated(request)
        if not self.running[group]:
            del self.running[group]

    def withdraw(self) -> None:
        """Cancel a waiting gang."""
        if self.waiting:
            self.algorithm.delete_unallocated(self.waiting.pop(self.dice.below(len(self.waiting))))

    def reconfigure(self) -> None:
        """Change the virtual clusters, and sometimes remove a top cell or bring one back."""
        physical = dict(self.config["physicalCluster"])
        cells, lost = physical["physicalCells"], self.config.get("lost", [])
        if lost and self.dice.chance(60):
            cells, lost = [*cells, lost[0]], lost[1:]
        elif len(cells) > 2 and self.dice.chance(30):
            gone = self.dice.pick(cells)
            cells, lost = [cell for cell in cells if cell is not gone], [*lost, gone]
        physical["physicalCells"] = cells
        tenants = self.smaller() if self.dice.chance(60) else draw_tenants(self.dice, physical)
        config = {"physicalCluster": physical, "virtualClusters": tenants}
        try:
            load_hived(config)
        except SpecError:
            config["virtualClusters"] = draw_tenants(self.dice, physical)
        self.algorithm, changes = self.algorithm.reconfigured(load_hived(config))
        self.config = {**config, "lost": lost}
        self.note("reconfigured")
        self.seen["lost guarantee"] = self.seen.get("lost guarantee", 0) + len(changes.lazily_preempted)
        self.seen["ignored"] = self.seen.get("ignored", 0) + len(changes.ignored)

    def smaller(self) -> dict[str, Any]:
        """The present virtual clusters, except that one owns a cell less."""
        tenants = {name: {**tenant} for name, tenant in self.config["virtualClusters"].items()}
        name = self.dice.pick([name for name, tenant in tenants.items() if tenant["virtualCells"]] or list(tenants))
        owned = tenants[name]["virtualCells"]
        if owned:
            at = self.dice.below(len(owned))
            less = {**owned[at], "cellNumber": owned[at]["cellNumber"] - 1}
            tenants[name]["virtualCells"] = [*owned[:at], *([less] if less["cellNumber"] else []), *owned[at + 1 :]]
        return tenants

    def claim_everything(self) -> None:
        """Let owners request, in turn, every owned cell that they do not use.

        Each is bound, at the latest when there are no victims left.
        """
        for (vc, chain), view in self.algorithm.state.owned_views.items():
            roots = self.algorithm.state.forest.tenants[vc].roots[chain]
            for root in [root for root in roots if not root.busy]:
                whole = [node for node in view.nodes if node is root or _inside(node, root)]
                self.count += 1
                members = (Member(len(whole), whole[0].kind.leaves),)
                request = PodRequest(
                    pod=f"g{self.count}-0",
                    vc=vc,
                    priority=0,
                    leaves=members[0].leaves,
                    group=f"g{self.count}",
                    members=members,
                    leaf_type=self.algorithm.state.forest.chains[chain].leaf_type,
                )
                for _ in range(100):
                    decision = self.algorithm.schedule(request, frozenset(), Phase.PREEMPTING)
                    assert not isinstance(decision, Wait), (vc, root.address, decision)
                    if isinstance(decision, Bind):
                        self.start(request, decision)
                        self.end(request.group)
                        break
                    for victim in {victim.rpartition("-")[0] for victim in decision.victims}:
                        self.end(victim)
                else:
                    raise AssertionError(f"the victims of {request.group} never end")

    def wrong(self) -> list[str]:
        """Broken guarantees, differences from a recount, and devices with two holders; empty when all is well."""
        found = self.algorithm.broken_guarantees() + self.algorithm.differences()
        occupant: dict[tuple[str, int], str] = {}
        for group, pods in self.running.items():
            for _, bound in pods:
                for device in bound.devices:
                    holder = occupant.setdefault((bound.node, device), group)
                    if holder != group:
                        found.append(f"device {device} of {bound.node} runs {holder} and {group}")
        held = {name for name, group in self.algorithm.groups.items() if group.pods}
        if held != set(self.running):
            found.append(f"groups {sorted(held)} are kept, and {sorted(self.running)} run")
        return found


def _inside(cell: Any, root: Any) -> bool:
    while cell is not None and cell is not root:
        cell = cell.parent
    return cell is not None
