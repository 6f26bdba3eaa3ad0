"""Alter OpenPAI's sample jobs at random and compare Corral's validation errors with those of OpenPAI's own validator.

`python -m tests.spec.openpai_altered --data FOLDER --judge "node judge.js" [--count N] [--seed S]` prints the number of
jobs with another verdict, and with another message. The judge reads a job in JSON from each line. For each it prints
the errors of the Ajv schema of OpenPAI's REST server (src/rest-server/src/config/v2/protocol.js) as JSON text, or "".
References to parts that a job lacks are not compared.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from corral.compat.openpai.language.protocol import ProtocolError, read_protocol

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3.5, 2.0, "", "x", "1", "two words", "true", [], ["x"], [1], {}, {"x": 1}, {"x": "y"},
    {"1st": 1}, [{}], [None],
)  # fmt: skip
FIELDS: tuple[str, ...] = (
    "protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters", "secrets",
    "jobRetryCount", "taskRoles", "deployments", "defaults", "extras", "uri", "auth", "plugin", "require", "instances",
    "completion", "minFailedInstances", "minSucceededInstances", "taskRetryCount", "dockerImage", "data", "output",
    "script", "extraContainerOptions", "shmMB", "infiniband", "resourcePerInstance", "cpu", "memoryMB", "gpu", "ports",
    "commands", "deployment", "preCommands", "postCommands", "unknown",
)  # fmt: skip


class Difference(NamedTuple):
    """A job with another verdict or message: the alteration, OpenPAI's errors, and Corral's."""

    alteration: str
    theirs: str
    ours: str


def alter(job: Any, draw: random.Random) -> str:
    """Change one place of a job; returns a description of the change."""
    places = [*_places(job, ())]
    holder, key, path = draw.choice(places)
    where = ".".join(str(step) for step in path)
    match draw.randrange(4):
        case 0:
            del holder[key]
            return f"{where} left out"
        case 1 if isinstance(holder[key], dict):
            name, value = draw.choice(FIELDS), copy.deepcopy(draw.choice(VALUES))
            holder[key][name] = value
            return f"{where}.{name} = {json.dumps(value)}"
        case 2 if isinstance(holder[key], list) and holder[key]:
            holder[key].append(copy.deepcopy(draw.choice(holder[key])))
            return f"{where} one more"
        case _:
            value = copy.deepcopy(draw.choice(VALUES))
            holder[key] = value
            return f"{where} = {json.dumps(value)}"


def _places(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Any, Any, tuple[str | int, ...]]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key, (*path, key)
        yield from _places(inner, (*path, key))


def differences(data: Path, judge: str, count: int, seed: int) -> tuple[int, list[Difference]]:
    """The number of refused jobs among `count` altered ones, and all differences from Corral."""
    draw = random.Random(seed)
    jobs = [yaml.safe_load(file.read_text()) for file in sorted((data / "openpai" / "jobs-v2").glob("*"))]
    altered = []
    for _ in range(count):
        job = copy.deepcopy(draw.choice(jobs))
        said = [alter(job, draw) for _ in range(draw.choice((1, 1, 1, 2)))]
        altered.append((" and ".join(said), json.dumps(job)))
    given = "\n".join(text for _, text in altered)
    done = subprocess.run(shlex.split(judge), input=given, check=True, capture_output=True, text=True, timeout=600)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    pairs = ((words, theirs, _said(text)) for (words, text), theirs in zip(altered, verdicts, strict=True))
    return sum(map(bool, verdicts)), [Difference(*each) for each in pairs if each[1] != each[2]]


def _said(text: str) -> str:
    """Corral's error about the job's schema; "" when the schema is kept."""
    try:
        read_protocol(text)
    except ProtocolError as error:
        return error.wire if error.wire.startswith("[") else ""
    return ""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--judge", required=True)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    refused, found = differences(given.data, given.judge, given.count, given.seed)
    otherwise = [each for each in found if bool(each.theirs) != bool(each.ours)]
    print(f"{len(otherwise)} of {given.count} judged otherwise ({len(otherwise) / given.count:.2%})")
    print(f"{len(found) - len(otherwise)} of {refused} refused in other words")
    for each in found[:20]:
        print(f"{each.alteration}\n  OpenPAI: {each.theirs[:300]}\n  Corral:  {each.ours[:300]}")


if __name__ == "__main__":
    main()
