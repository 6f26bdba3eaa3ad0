"""What one job compiles, the next one does not: `torch.compile` on CPU, and JAX."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.frameworks.environments import environment
from tests.frameworks.platform import Platform

HERE = Path(__file__).parent

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("caches"))
    made.up()
    yield made
    made.down()


def run(platform: Platform, program: str, framework: str, share: str = "user") -> tuple[str, Any]:
    """Run a program as a job; its log, and what its task made of the cache."""
    folder = platform.folder / f"{framework}-{share}-{len(list(platform.folder.iterdir()))}"
    folder.mkdir()
    shutil.copy(HERE / program, folder)
    path = f"{environment(framework)}{os.pathsep}{os.environ['PATH']}"
    document = {
        "name": f"compile-{framework}",
        "code": ".",
        "compileCache": share,
        "env": {"PATH": path},
        "roles": {"worker": {"command": f"python {program}"}},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(document))
    platform.run(folder / "job.yaml")
    job = next(each["id"] for each in platform.client.jobs()["items"] if each["name"] == document["name"])
    return platform.log(job), platform.client.job_cache(job)["uses"][0]


def test_the_second_job_does_not_compile_again_with_torch(platform: Platform) -> None:
    cold_log, cold = run(platform, "compiled_with_torch.py", "pytorch")
    assert not cold["hit"] and cold["newFiles"] > 0 and cold["published"]
    assert re.search(r"hits 0 misses [1-9]", cold_log)
    warm_log, warm = run(platform, "compiled_with_torch.py", "pytorch")
    assert warm["hit"] and warm["digest"] == cold["published"] and warm["files"] > 0
    assert re.search(r"hits [1-9]\d* misses 0", warm_log)
    assert warm["facts"]["torch"].startswith("2.")
    other_log, other = run(platform, "compiled_with_torch.py", "pytorch", share="job")
    assert not other["hit"] and re.search(r"hits 0 misses [1-9]", other_log), "a job of its own takes no other's"


def test_the_second_job_does_not_compile_again_with_jax(platform: Platform) -> None:
    cold_log, cold = run(platform, "compiled_with_jax.py", "jax")
    assert cold["published"] and "Persistent compilation cache hit" not in cold_log
    warm_log, warm = run(platform, "compiled_with_jax.py", "jax")
    assert warm["hit"] and warm["digest"] == cold["published"]
    assert "Persistent compilation cache hit for 'jit_planned'" in warm_log
