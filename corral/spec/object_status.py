"""The status schema of `UnifiedJob` objects, on which other programs rely."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.spec.base import SpecModel
from corral.spec.job_parts import MAX_REPLICAS

_Count = Annotated[int, Field(ge=0, le=MAX_REPLICAS)]


class ObjectCondition(SpecModel):
    """One condition: Accepted, Applied, Scheduled, Running, Complete or Failed."""

    type: str = Field(min_length=1, max_length=316, description="What it is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it is so.")
    reason: str = Field(max_length=1024, description="Why, as one word for programs.")
    message: str = Field("", max_length=32_768, description="Why, as sentences for people.")
    observed_generation: int = Field(0, ge=0, description="The generation of the object that it speaks of.")
    last_transition_time: str = Field("", max_length=64, description="Since when the status is as it is.")


class ObjectRole(SpecModel):
    """Task counts of one role."""

    name: str = Field(max_length=63, description="The role's name.")
    wanted: int = Field(0, ge=0, description="How many tasks it should have now.")
    total: int = Field(0, ge=0, description="How many there are.")
    running: int = Field(0, ge=0, description="How many of them run.")
    succeeded: int = Field(0, ge=0, description="How many have succeeded.")
    failed: int = Field(0, ge=0, description="How many have ended otherwise.")


class ObjectExit(SpecModel):
    """Exit code of the job and its class."""

    code: int = Field(0, description="Its exit code.")
    phrase: str = Field("", max_length=1024, description="The code's name in the exit table.")
    class_: str = Field("", alias="class", max_length=1024, description="How the exit table classes it.")


class ExternalStatus(SpecModel):
    """Status of a job of `jobType: external`, written by its own controller and nobody else."""

    observed_generation: int = Field(
        0, ge=0, description="The generation of the object whose targets the controller has carried out."
    )
    attempt: int = Field(0, ge=0, description="The job's attempt (`status.attempt`) that it speaks of.")
    replicas: dict[str, _Count] = Field(
        default_factory=dict, description="By node id: the replicas of the counted role that it holds there now."
    )
    outcome: Literal["", "succeeded", "failed"] = Field(
        "", description="How the attempt ended; empty while it goes on."
    )
    exit_code: int = Field(0, ge=0, le=255, description="The exit code of an attempt that failed; 0 is 1.")
    message: str = Field("", max_length=8192, description="What is to be known of the end.")


class ObjectStatus(SpecModel):
    """Status of the job; only Corral writes it, except for `external`."""

    job_id: str = Field("", max_length=63, description="The job's id at the server.")
    server: str = Field("", max_length=63, description="The UID of the Corral that has the job.")
    phase: Literal["", "waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped"] = Field(
        "", description="How the job stands."
    )
    message: str = Field("", max_length=8192, description="Why it waits, or how it ended.")
    observed_generation: int = Field(0, ge=0, description="The generation of the object that was taken in last.")
    attempt: int = Field(0, ge=0, description="The attempt of the job, from 0.")
    retries: int = Field(0, ge=0, description="How often it was tried again.")
    devices: float = Field(0, ge=0, description="How many devices it holds when all of its tasks run.")
    replicas: int = Field(0, ge=0, description="Replicas of the counted role that have a place now.")
    selector: str = Field("", max_length=1024, description="The label selector of their pods.")
    placements: dict[str, dict[str, _Count]] = Field(
        default_factory=dict, description="By role and node id: the tasks that hold a place."
    )
    roles: list[ObjectRole] = Field(default_factory=list, max_length=100, description="Its roles, in order.")
    started_at: str = Field("", max_length=64, description="When its attempt began to run.")
    ended_at: str = Field("", max_length=64, description="When it ended.")
    exit: ObjectExit = Field(default_factory=ObjectExit, description="How it ended.")
    conditions: list[ObjectCondition] = Field(
        default_factory=list, max_length=50, description="What is so and what not."
    )
    external: ExternalStatus = Field(default_factory=ExternalStatus, description="What an external controller says.")
