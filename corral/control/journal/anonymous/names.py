"""Replace the names of a journal by others, each by the same one wherever it stands.

Names that nothing sorts (users, groups, jobs, tags, labels) become a keyed hash. Names that the scheduler sorts (nodes,
cells, queues, roles, models) become numbers in the order of the originals, so that ties are broken as before. Neither
the key nor a table of the names is written.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Iterable
from typing import Final, Protocol

from corral.frameworks import job_types
from corral.kernel.amounts import AMOUNTS
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId, attempt_id, parse_attempt_id
from corral.model.inventory import ELSEWHERE, LEVELS, MPS_LABEL
from corral.scheduler.cluster.topology_tree import natural
from corral.spec.cell_type_resolution import level_name
from corral.spec.placement.network import RDMA_LABEL

KEY_BYTES: Final = 32
"""Bytes of the secret key of a keyed hash."""
DEFAULT_QUEUE: Final = "default"
"""The queue that always exists; it keeps its name."""
_DIGITS: Final = 12
"""Characters of a keyed hash, of 5 bits each."""
_KNOWN_RESOURCES: Final = frozenset({"ports", "devices", "cpu", "memory", *(each.name for each in AMOUNTS)})
_KNOWN_KINDS: Final = frozenset({"gpu", "npu"})
_KNOWN_LABELS: Final = frozenset({MPS_LABEL[0], RDMA_LABEL[0]})
_KNOWN_VALUES: Final = frozenset({"", MPS_LABEL[1], RDMA_LABEL[1]})
_NATURAL: Final = frozenset({"engine", "node", "cell"})
"""The kinds of names that are sorted by the numbers in them; others are sorted by their characters."""
_ID: Final = re.compile("[0-9a-z]{13}")
_WHOLE: Final = re.compile("-?[0-9]{1,18}")


class Renaming(Protocol):
    """Gives the new name of a name of some kind."""

    jobs: set[str]
    """The ids of the journal's jobs."""
    compared: set[str]
    """The labels whose values some job compares as whole numbers."""
    types: set[str]
    """The types of cells that documents define."""
    type_levels: dict[str, set[str]]
    """By level, the types of cells after which it is named: several cells of them describe one node."""

    def keyed(self, kind: str, name: str) -> str:
        """The new name of one that nothing sorts."""
        ...

    def ranked(self, kind: str, name: str) -> str:
        """The new name of one that keeps its place among those of its kind."""
        ...


class Found:
    """The names of a journal, to be read once before they are replaced; as a Renaming it changes nothing."""

    def __init__(self) -> None:
        self.by_kind: dict[str, set[str]] = {}
        """The names that keep their order."""
        self.jobs: set[str] = set()
        self.compared: set[str] = set()
        self.types: set[str] = set()
        self.type_levels: dict[str, set[str]] = {}

    def keyed(self, kind: str, name: str) -> str:
        """Return the name as it is."""
        return name

    def ranked(self, kind: str, name: str) -> str:
        """Remember the name, and return it as it is."""
        self.by_kind.setdefault(kind, set()).add(name)
        return name


class Renamed:
    """New names for those that were found, under a secret key of `KEY_BYTES`."""

    def __init__(self, key: bytes, found: Found) -> None:
        self._key = key
        self.jobs = found.jobs
        self.compared = found.compared
        self.types = found.types
        self.type_levels = found.type_levels
        self._ranks = {kind: _ranks(kind, names) for kind, names in found.by_kind.items()}
        self._hashed: dict[tuple[str, str], str] = {}

    def keyed(self, kind: str, name: str) -> str:
        """The new name of one that nothing sorts: its kind and 60 bits of HMAC-SHA256."""
        known = self._hashed.get((kind, name))
        if known is None:
            digest = hmac.digest(self._key, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), "sha256")
            known = self._hashed[kind, name] = f"{kind}-{b32encode(digest).decode().lower()[:_DIGITS]}"
        return known

    def ranked(self, kind: str, name: str) -> str:
        """The number of the name among those of its kind; raises InvalidInput for one that was not found before."""
        try:
            return self._ranks[kind][name]
        except KeyError:
            raise InvalidInput("journal-changed", "The journal changed while it was made anonymous.") from None


def _ranks(kind: str, names: Iterable[str]) -> dict[str, str]:
    """By name its number among the names, in the order in which the scheduler sorts them: node9 before node10."""
    word = kind.partition(":")[0]
    ordered = sorted(names, key=lambda name: (natural(name), name) if word in _NATURAL else name)
    digits = len(str(len(ordered)))
    return {name: f"{word}-{number:0{digits}}" for number, name in enumerate(ordered, 1)}


class Names:
    """The new names by what they name. An empty name stays empty."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming

    # ---- names that nothing sorts

    def user(self, name: str) -> str:
        """A user's name."""
        return self._keyed("user", name)

    def group(self, name: str) -> str:
        """The name of a group of users."""
        return self._keyed("group", name)

    def job(self, name: str) -> str:
        """A job's name."""
        return self._keyed("job", name)

    def tag(self, name: str) -> str:
        """A tag of a job."""
        return self._keyed("tag", name)

    def affinity(self, name: str) -> str:
        """An affinity group of roles."""
        return self._keyed("affinity", name)

    def framework(self, name: str) -> str:
        """A framework, which is the type of a job; those that are installed stay."""
        return name if name in job_types() else self._keyed("framework", name)

    def label(self, name: str) -> str:
        """The key of a label or taint; those that Corral itself reads stay."""
        if name in _KNOWN_LABELS:
            return name
        if name.startswith(ELSEWHERE):
            return ELSEWHERE + self.claim(name.removeprefix(ELSEWHERE))
        return self._keyed("label", name)

    def claim(self, name: str) -> str:
        """The name of a volume claim, as labels of nodes have it."""
        return self._keyed("claim", name)

    def value(self, label: str, text: str) -> str:
        """The value of a label or taint; a whole number stays where some job compares the label with one."""
        if text in _KNOWN_VALUES or (label in self._renaming.compared and _WHOLE.fullmatch(text)):
            return text
        return self._keyed("value", text)

    def compares(self, label: str) -> None:
        """Have the whole numbers of a label stay."""
        self._renaming.compared.add(label)

    # ---- names that keep their order

    def queue(self, name: str) -> str:
        """A queue's name; `default` stays, and keeps its place among the others."""
        if name in ("", DEFAULT_QUEUE):
            return name
        return self._ranked("before-queue" if name < DEFAULT_QUEUE else "queue", name)

    def engine(self, name: str) -> str:
        """An engine's name."""
        return self._ranked("engine", name)

    def node(self, name: str) -> str:
        """A node's name, with or without its engine's."""
        engine, slash, own = name.rpartition("/")
        return f"{self.engine(engine)}{slash}{self._ranked('node', own)}"

    def level(self, name: str) -> str:
        """A level of cells; those of Corral's own list stay, and one that is named after a type stays named after it."""
        if name in LEVELS:
            return name
        made = self._ranked("level", name)
        types = self._renaming.type_levels.get(name, ())
        if len(types) != 1:
            return made
        (own,) = types
        return level_name(self.chain(own))

    def cell(self, level: str, name: str) -> str:
        """The name of a cell of a level."""
        return self._ranked(f"cell:{level}", name)

    def cell_path(self, text: str) -> str:
        """A cell as placements have it, `ENGINE|LEVEL:NAME`, with the name of a node or of a cell."""
        engine, bar, rest = text.partition("|")
        level, colon, inside = rest.partition(":")
        mark = "~" * inside.startswith("~")
        node, number_sign, device = inside.removeprefix("~").partition("/#")
        place = self.node(node) if mark or number_sign or "/" in node else self.cell(level, node)
        return f"{self.engine(engine)}{bar}{self.level(level)}{colon}{mark}{place}{number_sign}{_number(device)}"

    def cell_pair(self, pair: tuple[str, str]) -> tuple[str, str]:
        """A cell with its level."""
        level, name = pair
        return self.level(level), self.cell(level, name)

    def role(self, name: str) -> str:
        """A role's name."""
        return self._ranked("role", name)

    def model(self, name: str) -> str:
        """A model of device."""
        return self._ranked("model", name)

    def chain(self, name: str) -> str:
        """A type of cells."""
        return self._ranked("chain", name)

    def has_types(self, types: Iterable[str]) -> None:
        """Take down types of cells that a document defines."""
        self._renaming.types.update(types)

    def has_type_level(self, type_name: str) -> None:
        """Take down a type of cells several of which describe one node; documents name its level after it."""
        self._renaming.type_levels.setdefault(level_name(type_name), set()).add(type_name)

    def cell_type(self, name: str) -> str:
        """A type of cells, or the model of device that ends its chain."""
        return self.chain(name) if name in self._renaming.types else self.model(name)

    def pinned_cell(self, name: str) -> str:
        """A pinned cell, which queues own and jobs ask for."""
        return self._ranked("pinned", name)

    def kind(self, name: str) -> str:
        """A kind of device; `gpu` and `npu` stay."""
        return name if name in _KNOWN_KINDS else self._ranked("kind", name)

    def device(self, identity: str) -> str:
        """A device's id, or its index as a text, which stays."""
        return identity if _WHOLE.fullmatch(identity) else self._ranked("device", identity)

    def resource(self, name: str) -> str:
        """A resource; `devices/MODEL` has the model's new name, and those of Corral's own list stay."""
        if name.startswith("devices/"):
            return f"devices/{self.model(name.removeprefix('devices/'))}"
        return name if name in _KNOWN_RESOURCES else self._ranked("resource", name)

    # ---- ids

    def job_id(self, identity: str) -> JobId:
        """A job's id, which stays: it has no more than the time of its submission.

        Raises InvalidInput for a text that is none.
        """
        if not _ID.fullmatch(identity):
            raise InvalidInput("broken-journal-job", "The journal has a job that has no id of Corral.")
        self._renaming.jobs.add(identity)
        return JobId(identity)

    def named_job(self, text: str) -> str:
        """Another job, by its id, which stays, or by its name."""
        return text if text in self._renaming.jobs else self.job(text)

    def attempt(self, text: str) -> AttemptId:
        """An attempt's id, with the new name of its role; raises InvalidInput for a text that is none."""
        try:
            found = parse_attempt_id(text)
        except ValueError:
            raise InvalidInput("broken-journal-attempt", "The journal names an attempt that has no such id.") from None
        return attempt_id(
            self.job_id(found.job), found.job_attempt, self.role(found.role), found.index, found.task_attempt
        )

    def _keyed(self, kind: str, name: str) -> str:
        return self._renaming.keyed(kind, name) if name else ""

    def _ranked(self, kind: str, name: str) -> str:
        return self._renaming.ranked(kind, name) if name else ""


def _number(text: str) -> str:
    return text if _WHOLE.fullmatch(text) else ""
