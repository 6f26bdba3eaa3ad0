"""A server keeps what jobs compile by its own default; a queue and a job file say otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.endtoend.platform import Platform, one

pytestmark = pytest.mark.timeout(300)

# It stands for a compiler that keeps its results in the folder that it is told.
COMPILES = 'mkdir -p "$CCACHE_DIR"; test -e "$CCACHE_DIR/a" && echo warm || echo cold; printf x >> "$CCACHE_DIR/a"'
COMPILES_ALONE = 'echo "folder ${CCACHE_DIR:-none}"'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("caches"), env={"CORRAL_COMPILE_CACHE": "user"})
    made.up()
    made.corral("apply", "-", given="kind: Queue\nname: lean\ncompileCache: none\n")
    yield made
    made.down()


def test_a_second_job_starts_from_what_the_first_one_compiled(server: Platform) -> None:
    first = server.ran(one("first", COMPILES))
    second = server.ran(one("second", COMPILES))
    assert (server.log(first).strip(), server.log(second).strip()) == ("cold", "warm")
    told = server.run("cache", "job", second["id"])
    assert "hit" in told.stdout and "compileCache is user, as the server says." in told.stderr


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"compileCache": "none"}, "compileCache is none, as the job file says."),
        ({"queue": "lean"}, "compileCache is none, as the queue lean says."),
    ],
)
def test_a_job_file_and_a_queue_turn_it_off(server: Platform, fields: dict[str, Any], said: str) -> None:
    job = server.ran(one("off", COMPILES_ALONE, **fields))
    assert server.log(job).strip() == "folder none"
    assert said in server.run("cache", "job", job["id"]).stderr


def test_a_dry_run_names_the_default(server: Platform, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(one("asks", COMPILES)))
    told = server.run("submit", "--dry-run", str(file)).stderr
    assert "kept for its owner's other jobs, because the server says compileCache: user" in told
    file.write_text(yaml.safe_dump(one("asks", COMPILES, compileCache="none")))
    assert "compileCache" not in server.run("submit", "--dry-run", str(file)).stderr


def test_a_queue_shares_with_no_group(server: Platform) -> None:
    told = server.run("apply", "-", given="kind: Queue\nname: lean\ncompileCache: group\n")
    assert told.returncode != 0 and "compileCache" in told.stderr + told.stdout
