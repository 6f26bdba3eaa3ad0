"""The Queue document: quotas, owned cells, limits and preemption rules of a queue or virtual cluster.

```yaml
kind: Queue
name: research
deserved: {devices: 32}           # its own: lent while idle, reclaimed when wanted
limit: {devices: 64}
---
kind: VirtualCluster              # a queue that owns cells; stored as a Queue
name: vision
cells: [{level: node, model: H100, count: 2}]
```

Queues change while the server runs. Names in other schedulers: `deserved` is Kueue's nominalQuota, KAI's quota
(deserved), YARN's capacity; `guaranteed` is Volcano's guarantee and Kueue's nominalQuota with a lendingLimit of 0;
`limit` is KAI's limit, Volcano's capability and YARN's maximum-capacity; `weight` is KAI's overQuotaWeight;
`borrowingLimit`, `lendingLimit` and `preemption` are Kueue's; `cells` and `pinnedCells` are HiveD's virtual cluster.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from corral.spec import queue_amounts as amounts
from corral.spec.abbreviations import Seconds
from corral.spec.base import OPTIONAL_QUEUE, QueueName, SpecModel, Text, refusal
from corral.spec.compile_cache import CacheDefault
from corral.spec.errors import Path
from corral.spec.hang_rule import HangRule
from corral.spec.idle_rule import IdleRule
from corral.spec.queue_amounts import Amounts
from corral.spec.yaml_scalars import written

MOST_COUNT = 1_000_000


class QueueCells(SpecModel):
    """Whole cells that a queue owns; the scheduler picks the physical ones."""

    level: Text = Field("", max_length=63, description="Cells of this level, such as node or rack.")
    cell_type: Text = Field(
        "",
        max_length=1000,
        description="Or cells of this type of the cluster document; CHAIN.TYPE (or HiveD's CHAIN.MIDDLE.TYPE) are those "
        "of this type below cells of type CHAIN.",
    )
    model: Text = Field("", max_length=128, description='Only cells with devices of this model; "" is any.')
    count: int = Field(1, ge=1, le=MOST_COUNT, description="How many of them.")

    @model_validator(mode="after")
    def _one_kind(self) -> QueueCells:
        if bool(self.level) == bool(self.cell_type):
            raise refusal("expected either level or cellType, got " + ("both" if self.level else "neither"))
        return self

    @property
    def what(self) -> str:
        """The level or the type, whichever is given."""
        return self.level or self.cell_type


class Preemption(SpecModel):
    """Which running gangs this queue may preempt."""

    within_queue: Literal["never", "lower-priority"] = Field(
        "lower-priority", description="Gangs of the same queue: none, or those of lower priority."
    )
    reclaim: Literal["never", "lower-priority", "any"] = Field(
        "any",
        description="Gangs of other queues that run beyond what their queues deserve, while this queue holds less than "
        "it deserves: none, those of lower priority, or any.",
    )


class ManagerLimits(SpecModel):
    """Limits that a queue's managers set for its members; the lower of these and the queue's own counts."""

    limit: Amounts = Field(default_factory=dict, description="The most that all jobs in it hold.")
    user_limit: Amounts = Field(default_factory=dict, description="The most that the jobs of one user in it hold.")
    group_limit: Amounts = Field(default_factory=dict, description="The most that the members of one group in it hold.")

    @property
    def said(self) -> bool:
        """Whether any limit is set."""
        return bool(self.limit or self.user_limit or self.group_limit)


Parent = Annotated[
    str,
    Field(max_length=63, pattern=OPTIONAL_QUEUE),
    BeforeValidator(lambda value: "" if value is None else written(value), json_schema_input_type=str | None),
]


class QueueShape(SpecModel):
    """Quota, limits and owned cells of a queue."""

    parent: Parent = Field("", description='The queue it is part of; "" is the top.')
    weight: float = Field(
        1.0,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="Its share, relative to its siblings, of unassigned and lent resources.",
    )
    guaranteed: Amounts = Field(default_factory=dict, description="Kept for it even while it is idle: never lent.")
    deserved: Amounts = Field(
        default_factory=dict, description="Its own: lent while it is idle, and reclaimed when it wants it back."
    )
    limit: Amounts = Field(
        default_factory=dict,
        description="The most that its jobs and those of the queues below it hold; what is not named has no limit.",
    )
    borrowing_limit: Amounts = Field(
        default_factory=dict, description="The most it may hold above deserved; what is not named has no limit."
    )
    lending_limit: Amounts = Field(
        default_factory=dict, description="The most of deserved that others may use; what is not named has no limit."
    )
    cells: Annotated[list[QueueCells], Field(max_length=1000)] = Field(
        default_factory=list,
        description="Whole cells it owns: gangs that fit in them always get their place (a virtual cluster).",
    )
    pinned_cells: Annotated[list[Text], Field(max_length=1000)] = Field(
        default_factory=list, description="Names of pinned cells of the cluster document that are its own."
    )
    min_runtime_seconds: Seconds = Field(
        0,
        description="How long a gang of this queue runs before another borrower may reclaim what it holds; owners of "
        "cells do not wait.",
    )
    grace_period_seconds: Seconds = Field(
        0, description="The longest that its gangs get to write a checkpoint when they yield; 0 leaves it to each job."
    )
    user_limit: Amounts = Field(
        default_factory=dict, description="The most that the jobs of one user in it hold together."
    )
    group_limit: Amounts = Field(
        default_factory=dict, description="The most that the jobs of the members of one group in it hold together."
    )
    manager_limits: ManagerLimits = Field(
        default_factory=ManagerLimits,
        description="Limits that its managers set (`corral limit`), below its own; a document that names none "
        "leaves those that are there.",
    )
    preemption: Preemption = Field(default_factory=Preemption, description="Which running gangs its gangs may end.")
    image_pull_secrets: Annotated[list[Annotated[Text, Field(min_length=1, max_length=253)]], Field(max_length=20)] = (
        Field(
            default_factory=list,
            description="On Kubernetes the Secrets that open the registries of its jobs' images, besides those that jobs "
            "name; those of the queues above it count too.",
        )
    )
    half_life_seconds: Seconds = Field(
        0, description="How fast past use is forgotten in the fair order; 0 counts only what is held now."
    )
    max_priority: int | None = Field(
        None,
        ge=-(10**9) + 1,
        le=10**9 - 1,
        description="The highest priority of a new job in it and in the queues below it; null leaves it to the users and "
        "groups, and to 100 where they have none.",
    )
    idle: IdleRule | None = Field(
        None,
        description="What becomes of its jobs that leave their devices idle; null leaves it to the queues above it, and "
        "then to the policy.",
    )
    hangs: HangRule | None = Field(
        None,
        description="What becomes of its jobs that make no progress any more; null leaves it to the queues above it, and "
        "then to the policy.",
    )
    compile_cache: CacheDefault | None = Field(
        None,
        description="What `compileCache` is for its jobs that do not set it: none, job or user; null leaves it to the "
        "queues above it, and then to the server.",
    )
    closed: bool = Field(False, description="Whether it refuses new jobs; the jobs that it has continue.")
    members_only: bool = Field(
        False,
        description="Whether only members of groups that grant or manage it may submit to it, even while no group does; "
        "a queue that some group grants is for members only anyway.",
    )

    @property
    def is_virtual_cluster(self) -> bool:
        """Whether it owns cells."""
        return bool(self.cells or self.pinned_cells)

    def limit_findings(self) -> list[tuple[Path, str]]:
        """Manager limits that exceed the queue's own limits."""
        found: list[tuple[Path, str]] = []
        for field, mine, theirs in (
            ("limit", self.limit, self.manager_limits.limit),
            ("userLimit", self.user_limit or self.limit, self.manager_limits.user_limit),
            ("groupLimit", self.group_limit or self.limit, self.manager_limits.group_limit),
        ):
            own = amounts.count(mine)
            for resource, amount in amounts.count(theirs).items():
                if resource in own and amount > own[resource]:
                    most = amounts.spoken_amount(resource, own[resource])
                    found.append(((field, resource), f"more than the {most} that the queue's own limits allow"))
        return found

    def own_findings(self) -> list[tuple[Path, str]]:
        """Inconsistencies within this queue alone."""
        found: list[tuple[Path, str]] = []
        limit = amounts.count(self.limit)
        for field, said in (("guaranteed", self.guaranteed), ("deserved", self.deserved)):
            for resource, amount in amounts.count(said).items():
                if resource in limit and amount > limit[resource]:
                    most = amounts.spoken_amount(resource, limit[resource])
                    found.append(((field, resource), f"more than its limit of {most}"))
        deserved = amounts.count(self.deserved)
        for resource, amount in amounts.count(self.guaranteed).items():
            if resource in deserved and amount > deserved[resource]:
                most = amounts.spoken_amount(resource, deserved[resource])
                found.append((("guaranteed", resource), f"more than the {most} it deserves"))
        names = self.pinned_cells
        found += [
            (("pinnedCells", at), f'"{name}" is already there') for at, name in enumerate(names) if name in names[:at]
        ]
        return found


class QueueDocument(QueueShape):
    """A queue or virtual cluster as it is applied, stored and rolled back."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Queue", "VirtualCluster"] = Field(
        "Queue", description="Queue; VirtualCluster is read as a Queue that must own cells, and stored as a Queue."
    )
    name: QueueName = Field(description="What jobs name in queue (or virtualCluster).")

    @model_validator(mode="after")
    def _consistent(self) -> QueueDocument:
        found = self.own_findings()
        if self.parent == self.name:
            found.append((("parent",), "a queue cannot be part of itself"))
        if self.kind == "VirtualCluster" and not self.is_virtual_cluster:
            found.append((("kind",), "a virtual cluster owns cells; write cells or pinnedCells, or kind: Queue"))
        if found:
            raise PydanticCustomError("inconsistent", "the parts do not fit together", {"findings": found})
        return self

    def to_document(self) -> dict[str, Any]:
        """The canonical document: a Queue with every field."""
        data = self.model_dump(mode="json", by_alias=True)
        head = {"apiVersion": self.api_version, "kind": "Queue", "name": self.name}
        return head | {key: value for key, value in data.items() if key not in head}

    def to_json(self) -> str:
        """The canonical document as stable JSON: equal queues give equal text."""
        return json.dumps(self.to_document(), separators=(",", ":"), ensure_ascii=False, sort_keys=True)
