"""Bundles of compiled code and what tasks made of them: what is stored, and the JSON shapes of the API."""

from __future__ import annotations

import hashlib
from typing import Annotated, Final, NamedTuple

import msgspec

from corral.model.records import Record, one_of

Share = Annotated[str, one_of("job", "user", "group")]
_DEFAULTS: Final = ("none", "job", "user")


class CacheScope(NamedTuple):
    """Who shares a bundle: one job, one user, or one group."""

    share: str
    of: str
    """The job's id, the user's name or the group's name."""

    @property
    def text(self) -> str:
        """How it is stored."""
        return f"{self.share}:{self.of}"

    def id_of(self, key: str) -> str:
        """The id of the bundle with a key in this scope."""
        return hashlib.sha256(f"{self.text}\n{key}".encode()).hexdigest()[:32]


class CacheTerms(NamedTuple):
    """Who shares what a job's tasks compile, and who decided that."""

    share: str
    """none, job, user or group."""
    source: str
    """job, queue or server."""
    queue: str = ""
    """The queue whose default it is; "" with another source."""


def cache_terms(own: str, of_queue: tuple[str, str] | None, of_server: str) -> CacheTerms:
    """The terms of a job whose file says `own`, in a queue whose default and its origin are `of_queue`.

    A default never shares with a group, whatever a document says: each job must name the group itself.
    """
    if own != "default":
        return CacheTerms(own, "job")
    if of_queue is not None:
        share, queue = of_queue
        return CacheTerms(share if share in _DEFAULTS else "none", "queue", queue)
    return CacheTerms(of_server if of_server in _DEFAULTS else "none", "server")


def kept_by_default(terms: CacheTerms) -> str:
    """The sentence to the submitter of a job whose compiled code is kept by a default."""
    kept = "the job's later attempts" if terms.share == "job" else "its owner's other jobs"
    origin = f"the queue {terms.queue}" if terms.source == "queue" else "the server"
    return (
        f"What its tasks compile is kept for {kept}, because {origin} says compileCache: {terms.share}; "
        "compileCache: none in the job file turns it off. Containers without Corral's runtime keep nothing."
    )


def key_of(facts: dict[str, str]) -> str:
    """The key of everything that compiled code depends on."""
    return hashlib.sha256(msgspec.json.encode(dict(sorted(facts.items())))).hexdigest()


class CacheBundle(Record, frozen=True):
    """One bundle of compiled code; its content never changes."""

    id: str
    share: Share
    of: str
    """The job's id, the user or the group that shares it."""
    key: str
    facts: dict[str, str]
    """What the key is made of: image, versions, devices, driver, processor."""
    digest: str
    """The SHA-256 of its bytes."""
    size: int
    files: int
    user: str
    """Whose task published it."""
    job: str
    published_at: str
    used_at: str
    uses: int
    """Tasks that it was given to."""


class CacheList(Record, frozen=True):
    """Bundles of compiled code, the last used ones first, and what the caller's own take of the quota."""

    items: tuple[CacheBundle, ...] = ()
    bytes: int = 0
    most_bytes: int = 0
    """The quota in bytes; 0 is no limit."""


class CacheOffer(Record, frozen=True):
    """The bundle for a task, and the key under which the task may publish another one."""

    key: str = ""
    digest: str = ""
    """"" is no bundle."""
    size: int = 0
    most_bytes: int = 0
    """The largest bundle that may be published."""
    refusal: str = ""
    """Why the task has no cache; "" if it has one."""


class CacheUse(Record, frozen=True):
    """What one attempt of a task made of the cache."""

    attempt: str
    role: str
    index: int
    at: str
    key: str
    hit: bool
    """Whether a bundle was restored."""
    facts: dict[str, str]
    """What the key is made of."""
    digest: str = ""
    """The bundle that was found; "" is none."""
    bytes: int = 0
    files: int = 0
    restore_seconds: float | None = None
    new_files: int | None = None
    """Files that the task compiled itself; null: not known yet."""
    first_step_seconds: float | None = None
    """From the command's start to the first step that it reported; null: none was reported."""
    cold_seconds: float | None = None
    """The same of the last task of this command that had no bundle; null: none is known."""
    saved_seconds: float | None = None
    """`coldSeconds` without the seconds of restore and first step; null where one of them is not known."""
    published: str = ""
    """The bundle that it published; "" is none."""
    published_bytes: int = 0
    refused: str = ""
    """Why the bundle was not taken; "" if it was."""


class JobCache(Record, frozen=True):
    """What the tasks of one job made of the cache, the last ones first."""

    share: Annotated[str, one_of("none", "job", "user", "group")] = "none"
    source: Annotated[str, one_of("job", "queue", "server")] = "job"
    """Whether `share` is the job's own word, or the default of its queue or of the server."""
    queue: str = ""
    """The queue whose default it is: the job's own or one above it; "" with another source."""
    hits: int = 0
    tasks: int = 0
    bytes: int = 0
    """Bytes that were restored."""
    saved_seconds: float | None = None
    """Of the tasks of which it is known; null: of none."""
    uses: tuple[CacheUse, ...] = ()
