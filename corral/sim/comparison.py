"""Play one trace under several policies or assumptions, in processes beside each other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from corral import __version__
from corral.control.journal.rules import Rules
from corral.control.journal.writer import JournalWriter
from corral.kernel.errors import InvalidInput
from corral.scheduler import Policy
from corral.sim.files import check_file, hash_of_all, read_bounded
from corral.sim.machines import Site, described_site, machines_file, plain_site
from corral.sim.results import Result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import MOST_JOBS, Trace, read_trace
from corral.sim.traces.formats import find_format, find_reader, format_names, format_of
from corral.sim.workers import answered


@dataclass(frozen=True)
class Question:
    """What a simulation is asked: everything that its result depends on."""

    trace: Path
    machines: str
    """`NODESxDEVICES`, or the path of a file of documents; "" takes those of the trace, which is a journal."""
    policy: str
    """`NAME`, or `NAME+PART+…`: with other *preempt*, *place* or *allot* parts; `order` preempts by the policy's order."""
    knobs: Knobs
    format: str = ""
    """The trace's format; "" finds it by its first line."""
    profiles: Path | None = None
    """A file or folder that says how fast the jobs of some formats are."""
    skip_broken: bool = False
    most: int = MOST_JOBS
    review_seconds: float = 60.0
    """How often a plan is made without an event, where the policy's answer may change with time."""
    placements: bool = False
    """Whether the result says which devices each run held."""

    def read(self) -> Trace:
        """Read the trace; raises InvalidInput or NotFound."""
        name = self._format()
        found, reader = find_format(name), find_reader(name, self.profiles)
        if (of_bytes := found.of_bytes) is not None:
            with self.trace.open("rb") as journal:
                return read_trace(lambda _: of_bytes(journal), (), skip_broken=self.skip_broken, most=self.most)
        longest = found.most_characters
        with self.trace.open(encoding="utf-8", errors="replace", newline="") as file:
            return read_trace(reader, file, skip_broken=self.skip_broken, most=self.most, most_characters=longest)

    def site(self) -> Site:
        """Read the machines; raises InvalidInput, or SpecError with every problem."""
        if not self.machines:
            return self._site_of_trace()
        if (plain := plain_site(self.machines)) is not None:
            return plain
        file = machines_file(self.machines)
        return described_site(read_bounded(file), file.name)

    def _site_of_trace(self) -> Site:
        read_site = find_format(self._format()).site
        if read_site is None:
            raise InvalidInput("no-machines", f"{self.trace} names no machines, as a journal does; say --cluster.")
        with self.trace.open("rb") as journal:
            return read_site(journal)

    def _format(self) -> str:
        """The name of the trace's format."""
        check_file(self.trace)
        if self.format:
            return self.format
        with self.trace.open(encoding="utf-8", errors="replace", newline="") as file:
            name = format_of(file.readline(4096))
        if name is None:
            raise InvalidInput(
                "unknown-trace-format",
                f"The first line of {self.trace} fits no format; name one by --format: {', '.join(format_names())}.",
            )
        return name

    def rules(self, site: Site) -> Policy:
        """Return the policy; raises InvalidInput if there is none of the name."""
        return self.named_rules.chosen(site.configuration)

    @property
    def named_rules(self) -> Rules:
        """The policy by names; without one that of the documents."""
        if not self.policy:
            return Rules(review_seconds=self.review_seconds)
        return Rules(self.policy, documents=False, review_seconds=self.review_seconds)

    def simulation(self, trace: Trace, journal: JournalWriter | None = None) -> Simulation:
        """Return the simulation of what `read` returned, ready to be played; `journal` gets its steps."""
        site = self.site()
        return Simulation(trace.jobs, site, self.rules(site), self.knobs, placements=self.placements, journal=journal)

    def digest(self, hashed: Callable[[Path], str] = hash_of_all) -> str:
        """Return a hash of everything that the result depends on: files by their content, and Corral's version.

        `hashed` returns the hash of a file or folder. Of an installed policy or reader the digest sees the name only.
        Raises NotFound, or InvalidInput, for a file.
        """
        cluster = "" if not self.machines or plain_site(self.machines) else hashed(machines_file(self.machines))
        profiles = "" if self.profiles is None else hashed(self.profiles)
        asked = (__version__, hashed(self.trace), cluster, profiles, replace(self, trace=Path(), profiles=None))
        return hashlib.blake2b(msgspec.json.encode(asked, enc_hook=str), digest_size=16).hexdigest()


def answer(question: Question) -> Result:
    """Play a simulation to its end."""
    return question.simulation(question.read()).run()


def answers(questions: Sequence[Question], processes: int) -> Iterator[tuple[Question, Result]]:
    """Yield each result as soon as it is there; the processes end with the iteration."""
    yield from answered(answer, questions, processes)
