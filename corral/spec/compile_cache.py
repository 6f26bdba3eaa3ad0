"""The field `compileCache` of a job and of a queue: whether what tasks compile is kept, and who shares it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from corral.spec.base import SpecModel, Text, refusal

CacheDefault = Literal["none", "job", "user"]
"""What a queue or a server may say for jobs that say nothing; sharing with a group needs the word of each job."""


class CompileCache(SpecModel):
    """Whether compiled code is kept for later tasks, and who shares it."""

    share: Literal["default", "none", "job", "user", "group"] = Field(
        "default",
        description="default leaves it to the queue, to the queues above it, and then to the server; none keeps nothing; "
        "job keeps it for the job's other tasks and later attempts, user for all jobs of its owner, and group for those "
        "jobs of the group's members that name the group too.",
    )
    group: Text = Field(
        "",
        max_length=63,
        description="The group, with share: group. Each of its members runs code in the jobs that read the cache.",
    )

    @model_validator(mode="after")
    def _names_its_group(self) -> CompileCache:
        if self.share == "group" and not self.group:
            raise refusal("share: group needs the name of a group; add group: NAME")
        if self.group and self.share != "group":
            raise refusal("a group is named only with share: group; add that, or leave the group out")
        return self
