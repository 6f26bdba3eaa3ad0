"""The Policy document: the order of waiting gangs, backfill, preemption and moves of elastic jobs.

```yaml
kind: Policy
name: default
order: fair
backfill: true
ageing: {secondsPerPriority: 10m}
elastic: {moveSeconds: 10m}
```

A site changes it while the server runs, like its queues.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from corral.spec.abbreviations import Seconds
from corral.spec.base import QueueName, SpecModel
from corral.spec.hang_rule import HangRule
from corral.spec.idle_rule import IdleRule

PartName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,63}$")]
"""The name of a policy, or of a part of one, as its entry point gives it."""


class Ageing(SpecModel):
    """How waiting raises the priority of a gang."""

    seconds_per_priority: Seconds = Field(
        0, description="The wait that raises the priority by one; with 0 waiting decides only among equals."
    )


class ElasticPolicy(SpecModel):
    """When elastic jobs move to other nodes; growing and shrinking in place is always allowed."""

    move_seconds: Seconds = Field(
        600,
        description="The shortest time between two moves of a job that could have more tasks elsewhere and gains more than "
        "it loses; 0 moves none.",
    )


class PolicyDocument(SpecModel):
    """The scheduling policy: order, backfill, preemption and consolidation."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Policy"] = Field("Policy", description="Always Policy.")
    name: QueueName = Field("default", description="The policy's name; the one called default is in force.")
    preset: PartName = Field(
        "",
        description="hived takes HiveD's own order and tie-breaks, for clusters that come from HiveD; gavel, "
        "gavel-makespan, gavel-finish-time and gavel-cost share the time of several models of device among jobs, and allox "
        "gives each job the model at which their mean completion time is shortest; any other "
        "is the name of a policy that an installed package brings, in place of order.",
    )
    lazy_preemption: bool = Field(
        False,
        description="Under the preset hived: whether a job that loses its owned cells to one of its queue with a higher "
        "priority may run on as a guest (HiveD's lazyPreemptionEnable), instead of being ended.",
    )
    order: PartName = Field(
        "fair",
        min_length=1,
        description="The order of the queue. priority: the highest first, then the longest wait; fair: the queue furthest "
        "below its share first, in it as priority; fifo: the longest wait first; deadline: the earliest deadline first; "
        "srtf: the shortest remaining time first; srsf: the least remaining device-time first; las: the least attained "
        "service first; gittins: the highest Gittins index first; finish-time-fairness: the job first that waited longest "
        "for what it needs; smallest-first, largest-first: by devices; random: by a hash of the job's id; or the name of "
        "an order from an installed package.",
    )
    allot: PartName = Field(
        "",
        description="The part that sets the sizes of elastic jobs. as-many-as-fit: as many tasks as room and bounds allow; "
        "or the name of one from an installed package; empty: the preset's own.",
    )
    preempt: PartName = Field(
        "",
        description="The part that chooses which running jobs may be preempted for a waiting one. rules: by the rules of "
        "their queues; order: those behind it in the order; or the name of one from an installed package; empty: the "
        "preset's own.",
    )
    place: PartName = Field(
        "",
        description="The part that chooses among the nodes with room for a task. tightest: the one with the least room "
        "for such tasks; best-fit: the one with the least left; dot-product: the one with the smallest product of what "
        "is left and what is asked for; random-fit: by a hash; fragmentation-gradient: the one whose "
        "fragmentation grows least (FGD); or the name of one from an installed package; empty: the preset's own.",
    )
    fair_users: bool = Field(
        True,
        description="In the fair order: among gangs that differ only in their submission time, whether the user with the "
        "least present and past use of the queue comes first. Past use counts half after the queue's half-life, or a day.",
    )
    backfill: bool = Field(
        True, description="Whether gangs behind the head may start where they delay none that has a reservation."
    )
    preemption: bool = Field(True, description="Whether running gangs are ever ended for waiting ones.")
    ageing: Ageing = Field(default_factory=Ageing, description="How waiting raises a gang in the line.")
    half_life_seconds: Seconds = Field(
        0, description="How fast past use is forgotten in the fair order, for queues that do not say."
    )
    consolidation: bool = Field(
        True, description="Whether small jobs may be moved to make room for a large gang, where the sum is better."
    )
    idle: IdleRule | None = Field(
        None,
        description="What becomes of jobs that leave their devices idle, in queues that do not say; null is nothing.",
    )
    hangs: HangRule | None = Field(
        None,
        description="What becomes of jobs that make no progress any more, in queues that do not say; null tells the owners "
        "of those that reported steps.",
    )
    elastic: ElasticPolicy = Field(default_factory=ElasticPolicy, description="When elastic jobs are moved.")

    def to_document(self) -> dict[str, Any]:
        """The canonical document with every field."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """The canonical document as stable JSON: equal policies give equal text."""
        return json.dumps(self.to_document(), separators=(",", ":"), ensure_ascii=False, sort_keys=True)
