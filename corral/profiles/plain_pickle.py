"""Read pickles that hold nothing but dicts, lists, tuples, strings, numbers, booleans and None.

NCCL's flight recorder writes its dumps so. Python's own reader would call what a pickle names and allocate what it
announces; this one knows only the operations that PyTorch's writer uses (torch/csrc/jit/serialization/pickler.cpp).
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, Final

_MOST_BYTES: Final = 2 * 1024 * 1024
_MOST_OPERATIONS: Final = 300_000
"""Some 0.3 s of processor time; 2,000 collectives with their stacks are a third of it."""
_CONSTANTS: Final[dict[str, Callable[[], Any]]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}
_VALUES: Final = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"})
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Mark:
    """Where a run of items begins on the stack."""


def read_plain_pickle(data: bytes) -> Any:
    """Return what a pickle of plain values holds.

    Raises ValueError for any other pickle, for what is none, and for one of more than 2 MiB or 300,000 operations.
    """
    if len(data) > _MOST_BYTES:
        raise ValueError("the pickle is too long")
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for number, (operation, argument, _) in enumerate(pickletools.genops(data)):
            if number >= _MOST_OPERATIONS:
                raise ValueError("the pickle has too many operations")
            if operation.name == "STOP":
                (value,) = stack
                return value
            _apply(operation.name, argument, stack, memo)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("the pickle is broken") from error
    raise ValueError("the pickle does not end")


def _apply(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    if name in _VALUES:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name]())
    elif name == "MARK":
        stack.append(_Mark)
    elif name in ("BINPUT", "LONG_BINPUT"):
        memo[argument] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in _TUPLES:
        items = stack[-_TUPLES[name] :]
        del stack[-_TUPLES[name] :]
        stack.append(tuple(items))
    elif name == "TUPLE":
        stack.append(tuple(_since_mark(stack)))
    elif name == "APPEND":
        item = stack.pop()
        stack[-1].append(item)
    elif name == "APPENDS":
        items = _since_mark(stack)
        stack[-1].extend(items)
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][_key(key)] = value
    elif name == "SETITEMS":
        items = _since_mark(stack)
        stack[-1].update(zip(map(_key, items[::2]), items[1::2], strict=True))
    elif name != "PROTO":
        raise ValueError(f"a plain pickle has no operation {name}")


def _key(value: Any) -> Any:
    """Raises TypeError for a key that is no string or number: the hash of nested tuples may never end."""
    if not isinstance(value, (str, int)):
        raise TypeError(value.__class__)
    return value


def _since_mark(stack: list[Any]) -> list[Any]:
    """Take the items behind the last mark, and the mark, from the stack. Raises IndexError where there is none."""
    items = []
    while (item := stack.pop()) is not _Mark:
        items.append(item)
    return items[::-1]
