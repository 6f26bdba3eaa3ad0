"""A suite of benchmarks: one YAML document in the shape of SuperBench's configuration.

```yaml
version: v0.12
superbench:
  enable: [cpu-stream, all-reduce]      # only these; without it, all that have `enable: true`
  benchmarks:
    cpu-stream:
      enable: true
      timeout: 120
      modes: [{name: local, proc_num: 1}]
      parameters: {size_mib: 256}
    all-reduce:
      enable: true
      modes: [{name: torch.distributed, proc_num: 1, node_num: all}]
```
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import yaml

from corral.benchmarks.suite.catalogue import Kind, kind_of
from corral.kernel.errors import InvalidInput

LARGEST: Final = 256 * 1024
"""Bytes of a suite or rules file."""
_MOST_BENCHMARKS: Final = 200
_MOST_PROCESSES: Final = 128
_LONGEST_SECONDS: Final = 24 * 3600
_MODES: Final = ("local", "torch.distributed", "mpi")
_LEFT_OUT: Final = frozenset({"monitor", "var", "env"})
"""Keys of SuperBench's that mean nothing here: Corral measures its machines itself."""

ModeName = Literal["local", "torch.distributed", "mpi"]


class Mode(NamedTuple):
    """How a benchmark's processes are started."""

    name: ModeName
    processes: int
    """On each node; 0: one for each of its devices."""
    nodes: int | None
    """How many nodes work together; None: all."""


class Benchmark(NamedTuple):
    """One benchmark of a suite."""

    name: str
    """With its annotation: `model-benchmarks:small`."""
    kind: Kind
    modes: tuple[Mode, ...]
    parameters: dict[str, int]
    models: tuple[str, ...]
    timeout_seconds: int


class Suite(NamedTuple):
    """The benchmarks that are run, in order."""

    benchmarks: tuple[Benchmark, ...]


def read_suite(text: bytes) -> Suite:
    """Read a suite file. Raises InvalidInput with the path of the fault."""
    document = read_document(text, "suite")
    given = _mapping(document.get("superbench"), "superbench")
    listed = _mapping(given.get("benchmarks"), "superbench.benchmarks")
    if len(listed) > _MOST_BENCHMARKS:
        raise _fault("superbench.benchmarks", f"has more than {_MOST_BENCHMARKS} benchmarks")
    chosen = given.get("enable")
    names = [chosen] if isinstance(chosen, str) else chosen
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise _fault("superbench.enable", "must be a name or a list of names")
    for name in names or ():
        if name not in listed:
            raise _fault("superbench.enable", f'names "{name[:60]}", which is not among the benchmarks')
    read = [_benchmark(name, _mapping(value, f"superbench.benchmarks.{name}")) for name, value in listed.items()]
    enabled = {name: _flag(value, name) for name, value in listed.items()}
    kept = tuple(each for each in read if (each.name in names if names is not None else enabled[each.name]))
    if not kept:
        raise _fault("superbench.benchmarks", "enables no benchmark")
    return Suite(kept)


def read_document(text: bytes, what: str) -> dict[str, Any]:
    """Read a bounded YAML mapping without aliases. Raises InvalidInput."""
    if len(text) > LARGEST:
        raise InvalidInput("file-too-large", f"A {what} file has at most {LARGEST // 1024} KiB.")
    try:
        events = yaml.parse(text, Loader=yaml.CSafeLoader)
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            raise InvalidInput("bad-file", f"A {what} file has no aliases (*name).")
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = "" if line is None else f" at line {line + 1}"
        raise InvalidInput("bad-file", f"The {what} file is not valid YAML{place}.") from None
    return _mapping(document, f"the {what} file")


def _benchmark(name: Any, given: dict[str, Any]) -> Benchmark:
    path = f"superbench.benchmarks.{name}"
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable() or "/" in name:
        raise _fault(path, "is no name of a benchmark")
    kind = kind_of(name)
    for key in given:
        if key not in {"enable", "timeout", "modes", "parameters", "models", "frameworks"} | _LEFT_OUT:
            raise _fault(f"{path}.{key}", "is not known here")
    modes = given.get("modes") or [{"name": "torch.distributed" if kind.gang else "local"}]
    if not isinstance(modes, list) or len(modes) > 10:
        raise _fault(f"{path}.modes", "must be a list of at most 10 modes")
    return Benchmark(
        name,
        kind,
        tuple(_mode(mode, kind, f"{path}.modes[{at}]") for at, mode in enumerate(modes)),
        _parameters(_mapping(given.get("parameters") or {}, f"{path}.parameters"), kind, path),
        _models(given.get("models"), kind, path),
        _whole(given.get("timeout", 600), 1, _LONGEST_SECONDS, f"{path}.timeout"),
    )


def _flag(given: Any, name: str) -> bool:
    enabled = given.get("enable", True)
    if not isinstance(enabled, bool):
        raise _fault(f"superbench.benchmarks.{name}.enable", "must be true or false")
    return enabled


def _mode(given: Any, kind: Kind, path: str) -> Mode:
    mode = _mapping(given, path)
    for key in mode:
        if key not in {"name", "proc_num", "node_num", "prefix", "parallel", "env", "mca", "bind_to"}:
            raise _fault(f"{path}.{key}", "is not known here")
    name = mode.get("name", "local")
    if name not in _MODES:
        raise _fault(f"{path}.name", f"must be one of {', '.join(_MODES)}")
    if kind.gang and name == "local" and kind.program != "training":
        raise _fault(f"{path}.name", "must be torch.distributed or mpi, as its processes work together")
    if not kind.gang and name != "local":
        raise _fault(f"{path}.name", "must be local, as its processes do not work together")
    nodes = mode.get("node_num", 1 if name == "local" else "all")
    count = None if nodes == "all" else _whole(nodes, 1, 10_000, f"{path}.node_num")
    started = mode.get("proc_num", 1)
    each_device = started == "devices" and name == "local"
    processes = 0 if each_device else _whole(started, 1, _MOST_PROCESSES, f"{path}.proc_num")
    return Mode(name, processes, count)


def _parameters(given: dict[str, Any], kind: Kind, path: str) -> dict[str, int]:
    for name in given:
        if name not in kind.parameters:
            known = ", ".join(kind.parameters) or "none"
            raise _fault(f"{path}.parameters.{name}", f"is no parameter of it; it has {known}")
    return {
        name: _whole(given.get(name, each.default), each.least, each.most, f"{path}.parameters.{name}")
        for name, each in kind.parameters.items()
    }


def _models(given: Any, kind: Kind, path: str) -> tuple[str, ...]:
    if given is None:
        return kind.models
    if not isinstance(given, list) or not given or any(model not in kind.models for model in given):
        raise _fault(f"{path}.models", f"must be a list of {', '.join(kind.models) or 'nothing, it has no models'}")
    return tuple(dict.fromkeys(given))


def _mapping(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fault(path, "must be a mapping")
    return value


def _whole(value: Any, least: int, most: int, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _fault(path, f"must be a whole number from {least} to {most}")
    return value


def _fault(path: str, what: str) -> InvalidInput:
    return InvalidInput("bad-suite", f"{path[:200]} {what}.")
