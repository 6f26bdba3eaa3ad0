"""One HDFS and one YARN with two nodes for all modules, and engines over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.hadoop.yarn import Yarn, loopback

if TYPE_CHECKING:
    from tests.engines.yarn.harness import Places, YarnPlace


@pytest.fixture(scope="package")
def cluster() -> Iterator[Yarn]:
    """A YARN with the nodes nm1 and nm2, each with four devices that are only counted; all files are on nm2."""
    if reason := jars.missing():
        pytest.skip(reason)
    hosts = [loopback(), loopback()]
    with Hdfs(data_host=hosts[1]) as hdfs, Yarn(hdfs, hosts=hosts) as made:
        yield made


@pytest.fixture(scope="module")
def yarn(cluster: Yarn) -> Iterator[Yarn]:
    """The YARN for one module, after which it runs nothing and all its daemons work."""
    yield cluster
    cluster.empty()


@pytest.fixture
def places(yarn: Yarn, tmp_path: Path) -> Iterator[Places]:
    """Makes places for engines with other settings. Their services end with the test, also when it fails."""
    from tests.engines.yarn.harness import YarnPlace  # most modules of this folder need no engine

    made: list[YarnPlace] = []

    def make(**settings: Any) -> YarnPlace:
        made.append(YarnPlace(yarn, tmp_path, **settings))
        return made[-1]

    yield make
    for each in made:
        each.clear()
