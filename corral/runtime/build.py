"""Build the runtime's zipapp: one file that any Python 3.11 can run without Corral installed."""

from __future__ import annotations

import functools
import importlib.util
import os
import py_compile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

_EPOCH = (1980, 1, 1, 0, 0, 0)
_PACKAGE = '"""The part of Corral that runs inside tasks."""\n'
_ENTRY = '"""The runtime\'s entry."""\n\nimport sys\n\nfrom corral.runtime.__main__ import main\n\nsys.exit(main())\n'


def build_runtime(target: Path, plug_ins: Iterable[str] = ()) -> Path:
    """Write the zipapp to `target` atomically, with the sources, compressed, and this Python's byte code.

    `plug_ins` are modules (`corral.runtime.plug_in`), each of which is taken in with its package's other modules.
    Raises OSError, also for a plug-in that cannot be found.
    """
    here = Path(__file__).parent
    sources = {"__main__.py": _ENTRY, "corral/__init__.py": _PACKAGE}
    for path in sorted(here.glob("*.py")):
        if path.name != "build.py":
            sources[f"corral/runtime/{path.name}"] = path.read_text(encoding="utf-8")
    for name in plug_ins:
        sources |= _package_of(name)
    temporary = target.with_suffix(f".{os.getpid()}.new")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name, text in sources.items():
            # Sources are read only by a Python of another version, and a ConfigMap of Kubernetes holds 1 MiB.
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), text, zipfile.ZIP_DEFLATED, 1)
            archive.writestr(zipfile.ZipInfo(f"{name}c", _EPOCH), _compiled(name, text))
    os.replace(temporary, target)
    return target


def _package_of(name: str) -> dict[str, str]:
    """The sources of a plug-in's package by path, with empty packages above it."""
    try:
        found = importlib.util.find_spec(name)
    except ImportError as error:
        raise OSError(f"the runtime plug-in {name} cannot be found: {error}") from error
    if found is None or found.origin is None:
        raise OSError(f"the runtime plug-in {name} cannot be found")
    above = name.split(".")[:-1]
    if not above:
        return {f"{name}.py": Path(found.origin).read_text(encoding="utf-8")}
    sources = {"/".join([*above[:depth], "__init__.py"]): _PACKAGE for depth in range(1, len(above))}
    here = "/".join(above)
    own = sorted(Path(found.origin).parent.glob("*.py"))
    return sources | {f"{here}/{path.name}": path.read_text(encoding="utf-8") for path in own}


@functools.lru_cache(maxsize=256)
def _compiled(name: str, text: str) -> bytes:
    """The byte code of a source. It is kept: the engines of a server, and servers forked from one process, share it."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "source.py", Path(folder) / "code.pyc"
        source.write_text(text, encoding="utf-8")
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), str(output), dfile=name, doraise=True, invalidation_mode=mode)
        data = output.read_bytes()
    if not data.startswith(importlib.util.MAGIC_NUMBER):
        raise OSError(f"{name} could not be compiled")
    return data
