"""One HDFS and one YARN with two nodes for all modules, and engines over them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.hdfs import Hdfs
from tests.testbeds.hadoop.yarn import Yarn


@pytest.fixture(scope="package")
def yarn() -> Iterator[Yarn]:
    """A YARN with the nodes nm1 and nm2, each with four devices that are only counted."""
    if reason := jars.missing():
        pytest.skip(reason)
    with Hdfs() as hdfs, Yarn(hdfs) as made:
        yield made
