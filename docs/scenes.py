"""The scenes behind the pictures of `scheduling.md`, each a short run of one of its examples."""

from __future__ import annotations

from collections.abc import Callable

from corral.kernel.ids import JobId
from docs.pictures import FOLDER, FREE, GUEST, LEAVES, SHARES, Palette, Story, shares, timeline
from docs.worlds import World

_HOUR = 3600.0


def tightest() -> str:
    """A pair is placed where it breaks up the least free space, a gang in one rack."""
    world = World("machines")
    for job, devices in (("a", 2), ("b", 3)):
        world.submit(job, 1, devices)
        world.settle(0.0)
    story = Story("The tightest cell that holds a job", Palette(world), [FREE])
    story.show(world, "What runs")
    world.submit("pair", 2, 1, inside="pcie-switch")
    world.submit("one", 1, 1)
    world.submit("big", 2, 4, inside="rack")
    world.settle(10.0)
    story.show(world, "pair, one and big have come")
    return story.svg()


def _lent() -> World:
    """Vision has borrowed the devices that product does not use."""
    world = World("shares")
    world.submit("p", 1, 4, queue="product")
    world.submit("s", 1, 2, queue="speech")
    for at in range(1, 9):
        world.submit(f"v{at}", 1, 2, queue="vision")
    world.settle(0.0)
    return world


def queues() -> str:
    """The tree of queues before and after the owner reclaims its lent devices."""
    world = _lent()
    palette = Palette(world)
    story = Story("What queues deserve, use, borrow and lend", palette, SHARES)
    bars, words = shares(world, palette)
    story.add(bars, "product is idle in part, vision borrows", words)
    world.submit("q", 1, 4, queue="product")
    world.settle(600.0)
    bars, words = shares(world, palette)
    story.add(bars, "product has taken back what it deserves", words)
    return story.svg()


def reclaim() -> str:
    """The same on the machines."""
    world = _lent()
    story = Story("A queue reclaims what it deserves", Palette(world), [FREE, LEAVES])
    story.show(world, "vision borrows")
    world.submit("q", 1, 4, queue="product")
    world.cycle(600.0)
    story.show(world, "q needs 4 devices on one node")
    world.yielded(630.0)
    world.settle(630.0)
    story.show(world, "after the grace period")
    return story.svg()


def owners() -> str:
    """A virtual cluster reclaims its own cells."""
    world = World("owners")
    world.submit("lab1", 1, 4, queue="lab")
    world.settle(0.0)
    world.submit("g1", 1, 2, queue="everyone")
    world.submit("g2", 1, 4, queue="everyone")
    world.submit("g3", 2, 2, queue="everyone")
    world.settle(60.0)
    story = Story("Whose the cells are", Palette(world), [FREE, GUEST, LEAVES])
    story.show(world, "lab owns two nodes and uses one; guests use the rest")
    world.submit("lab2", 1, 4, queue="lab")
    world.cycle(120.0)
    story.show(world, "lab2 wants the second: the guest with least to lose leaves")
    world.yielded(180.0)
    world.settle(180.0)
    story.show(world, "after the grace period")
    return story.svg()


def consolidation() -> str:
    """A small job moves so that a large one fits."""
    world = World("consolidation")
    world.submit("a", 1, 3)
    world.submit("b", 1, 3)
    world.settle(0.0)
    world.submit("s1", 1, 1)
    world.submit("s2", 1, 1)
    world.settle(0.0)
    world.end("a", "b")
    story = Story("A small job moves so that a large one fits", Palette(world), [FREE, LEAVES])
    story.show(world, "six devices are free, on two nodes")
    world.submit("large", 1, 4)
    world.cycle(60.0)
    story.show(world, "large needs four on one")
    world.yielded(90.0)
    world.settle(90.0)
    story.show(world, "both run")
    return story.svg()


def shrink() -> str:
    """An elastic job gives tasks up and gets them back."""
    world = World("elastic")
    world.submit("el", 8, 1, least=2)
    world.settle(0.0)
    story = Story("An elastic job makes room and grows again", Palette(world), [LEAVES], columns=2)
    story.show(world, "el has all of its 2 to 8 tasks")
    world.submit("new", 4, 1)
    world.cycle(60.0)
    story.show(world, "new needs four: el gives up its last ones")
    world.yielded(90.0)
    world.settle(90.0)
    story.show(world, "both run")
    world.end("new")
    world.settle(120.0)
    story.show(world, "new is over: el grows back")
    return story.svg()


def backfill() -> str:
    """A large job has a reservation; only jobs that cannot delay it are backfilled."""
    world = World("backfill")
    world.submit("first", 2, 1, hours=2)
    world.settle(0.0)
    world.submit("head", 4, 1, hours=1)
    world.submit("long", 2, 1, hours=3)
    world.submit("short", 2, 1, hours=1.5)
    world.settle(1.0)
    bounds = {job: request.max_duration_seconds for job, request in world.requests.items()}
    started = {job: 0.0 for job in ("first", "short") if world.cluster.holds(JobId(job))}
    palette = Palette(world)
    story = Story("What passes a reservation", palette, [])
    now = 0.0
    while started:
        job, since = min(started.items(), key=lambda item: (item[1] + bounds[item[0]], item[0]))
        now = since + bounds[job]
        world.now = now
        world.end(job)
        del started[job]
        for placed in world.cycle(now).placements:
            started[placed.job] = now
    drawing, words = timeline(world, 6 * _HOUR, palette)
    story.add(drawing, "submitted in this order: first, head, long, short", words)
    return story.svg()


def sentences() -> list[tuple[str, str, str]]:
    """The reasons that jobs are given in some scenes: the example, the job, the sentence."""
    told = []

    def hear(example: str, world: World, job: str, now: float = 60.0) -> None:
        world.cycle(now)
        told.append((example, job, world.told(job)))

    world = World("machines")
    for at in range(1, 5):
        world.submit(f"job{at}", 1, 3)
    world.settle(0.0)
    world.submit("wide", 1, 4)
    hear("machines", world, "wide")
    world = World("machines")
    for at in range(1, 4):
        world.submit(f"job{at}", 1, 4)
    world.settle(0.0)
    world.submit("together", 2, 4, inside="rack")
    hear("machines", world, "together")
    world = World("backfill")
    world.submit("first", 2, 1, hours=2)
    world.settle(0.0)
    world.submit("head", 4, 1, hours=1)
    world.submit("long", 2, 1, hours=3)
    hear("backfill", world, "long")
    world = World("bounds")
    world.submit("mine", 1, 2, queue="students")
    world.settle(0.0)
    world.submit("more", 1, 1, queue="students")
    hear("bounds", world, "more")
    world = World("bounds")
    world.submit("all", 3, 4)
    world.settle(0.0)
    world.submit("rest", 1, 1)
    hear("bounds", world, "rest")
    world = _lent()
    world.submit("q", 1, 4, queue="product")
    hear("shares", world, "q", 600.0)
    return told


SCENES: dict[str, Callable[[], str]] = {
    "tightest": tightest,
    "queues": queues,
    "reclaim": reclaim,
    "owners": owners,
    "consolidation": consolidation,
    "shrink": shrink,
    "backfill": backfill,
}


def pictures() -> dict[str, str]:
    """Every picture of the page."""
    return {f"{FOLDER}/{name}.svg": scene() for name, scene in SCENES.items()}
