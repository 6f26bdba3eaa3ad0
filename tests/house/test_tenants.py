"""The core names OpenPAI in few files, and works in a tree without its package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 10
"""Files outside compat/ that may name OpenPAI; the list below may only become shorter."""
NAMES_IT = {
    "corral/client/aio.py": "the SDK's method that imports a cluster keeps its name",
    "corral/client/operations/accounts.py": "the operation of that method",
    "corral/client/schema.py": "generated from the OpenAPI document",
    "corral/client/sync.py": "the SDK's method that imports a cluster keeps its name",
    "corral/spec/job_options.py": "stored documents have this former name of the standard exit table",
    "corral/store/migrations/versions/0008_jobs_of_openpai.py": "a step that databases have taken",
    "corral/store/migrations/versions/0011_kept_for_openpai.py": "a step that databases have taken",
}
CORE_TESTS = (
    "tests/frameworks/test_registry.py",
    "tests/launcher/test_view_of_a_document.py",
    "tests/service/test_submitting.py",
    "tests/spec/test_alnair_documents.py",
    "tests/spec/test_short_form.py",
    "tests/spec/test_streams.py",
    "tests/store/test_submitting.py",
    "tests/api/test_jobs_are_submitted_and_read.py",
)
UNUSED = ("-p", "no:cacheprovider", "-p", "no:schemathesis")
EVERY_MODULE = """
import importlib, pkgutil, corral
from corral.api.tenants import routes_of
from corral.service.tenant_settings import no_options
assert importlib.util.find_spec("corral.compat.openpai") is None
for module in pkgutil.walk_packages(corral.__path__, "corral."):
    if "migrations" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(len(routes_of({}, no_options)))
"""


def test_few_files_of_the_core_name_openpai() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "corral/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    core = [path for path in listed.stdout.split() if not path.startswith("corral/compat/") and (ROOT / path).is_file()]
    assert len(core) > 400
    found = {path for path in core if "openpai" in (path + (ROOT / path).read_text()).lower()}
    assert found == NAMES_IT.keys(), f"new: {found - NAMES_IT.keys()}; gone, take them off: {NAMES_IT.keys() - found}"
    assert len(found) <= MOST


def test_the_core_works_without_the_package_of_openpai(tmp_path: Path) -> None:
    for part in ("corral", "tests", "docs", "examples"):
        ignored = shutil.ignore_patterns("static", "node_modules")  # what is compiled already is copied, too
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored, symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.rmtree(tmp_path / "corral" / "compat" / "openpai")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for arguments in (
        ["-c", EVERY_MODULE],
        ["-m", "corral.cli.main", "convert", "examples/shell/job.yaml"],
        ["-m", "pytest", "-q", "-x", *UNUSED, "-k", "not the_server_itself_knows", *CORE_TESTS],
    ):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
