"""Why: the wheel carries the built portal, so that whoever installs Corral never needs Node.

Hatchling calls `PortalBuildHook` for every wheel and sdist; `python hatch_build.py` (what `make portal` runs) builds the
portal in place. Both build only when the sources have changed since the last build.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # `make portal` may run where hatchling is not

    class BuildHookInterface(Generic[T]):  # type: ignore[no-redef]
        """Stands in for hatchling's class, which only a build needs."""


ROOT = Path(__file__).resolve().parent
NOT_SOURCES = {"node_modules", "dist", "coverage", "tests"}


class PortalMissingError(RuntimeError):
    """The portal is neither built nor can it be built here; the message says what to do."""


def portal_sources(root: Path) -> Iterator[Path]:
    """The files of `web/` that decide what the built portal is, in a stable order."""
    for path in sorted((root / "web").rglob("*")):
        parts = path.relative_to(root / "web").parts
        own = not NOT_SOURCES.intersection(parts) and not parts[-1].startswith(".") and path.suffix != ".tsbuildinfo"
        if own and path.is_file():
            yield path


def portal_digest(root: Path) -> str:
    """A digest of every source of the portal: what the stamp beside the built files is compared with."""
    digest = hashlib.sha256()
    for path in portal_sources(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def ensure_portal(root: Path = ROOT) -> str:
    """Build the portal into `corral/portal/static` unless that was done for these very sources; says what it did.

    Raises PortalMissingError when there is nothing built and no way to build it.
    """
    static = root / "corral" / "portal" / "static"
    stamp = static / ".sources"
    built = (static / "index.html").is_file()
    if not (root / "web" / "package.json").is_file():
        if built:
            return "the portal is built (its sources are not here)"
        raise PortalMissingError(
            "The portal is not built and its sources (web/) are not here: install Corral from a wheel or a full checkout."
        )
    wanted = portal_digest(root)
    if built and stamp.is_file() and stamp.read_text() == wanted:
        return "the portal is up to date"
    npm = shutil.which("npm")
    if npm is None:
        if built:
            return "the portal was built from other sources and is kept, because there is no npm here to build it anew"
        raise PortalMissingError("The portal is not built and npm was not found: install Node 20 and build once more.")
    _build(npm, root / "web")
    if not (static / "index.html").is_file():
        raise PortalMissingError("`npm run build` in web/ ended well but left no corral/portal/static/index.html.")
    stamp.write_text(wanted)
    return "the portal was built"


def _build(npm: str, web: Path) -> None:
    """Install the locked packages unless they are there, and build; a build that was cut off installs nothing again."""
    lock, installed = web / "package-lock.json", web / "node_modules" / ".installed-lock"
    wanted = hashlib.sha256(lock.read_bytes() if lock.is_file() else b"").hexdigest()
    if not installed.is_file() or installed.read_text() != wanted:
        print("installing the packages that build the portal", file=sys.stderr, flush=True)
        _npm(npm, web, "ci", "--no-audit", "--no-fund", "--loglevel=error")
        installed.parent.mkdir(exist_ok=True)
        installed.write_text(wanted)
    print("building the portal", file=sys.stderr, flush=True)
    _npm(npm, web, "run", "--silent", "build")


def _npm(npm: str, web: Path, *arguments: str) -> None:
    done = subprocess.run([npm, *arguments], cwd=web, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise PortalMissingError(f"`npm {arguments[0]}` in web/ ended with exit code {done.returncode}; see above.")


class PortalBuildHook(BuildHookInterface[Any]):
    """Puts the built portal into the wheel, or refuses to make a wheel without it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; an editable install serves whatever is built in place."""
        if version == "editable":
            return
        self.app.display_info(ensure_portal(Path(self.root)))


if __name__ == "__main__":
    try:
        said = ensure_portal()
    except PortalMissingError as error:
        sys.exit(str(error))
    if not said.endswith("up to date"):
        print(said)
