"""Shorten the names of device kernels, which C++ templates make hundreds of characters long."""

from __future__ import annotations

import re
from typing import Final

KERNEL: Final = "kernel"
"""The trace's category of device kernels."""
_MOST_READ: Final = 2000
_ANONYMOUS: Final = "(anonymous namespace)::"
_TELLS: Final = re.compile(r"\w*(?:functor|gemm|gemv|conv|attention|flash|softmax|norm)\w*", re.IGNORECASE)
"""What tells kernels of one template apart: the operation among its arguments."""


def short_kernel_name(name: str) -> str:
    """Return a kernel's own name, with the operation among its template's arguments: `reduce_kernel<sum_functor>`."""
    text = name[:_MOST_READ].replace(_ANONYMOUS, "").removeprefix("void ")
    plain, _, arguments = text.partition("<")
    own = plain.partition("(")[0].rpartition("::")[2].strip()
    if not own:
        return name
    told = _TELLS.search(arguments)
    return own if told is None or told[0] in own else f"{own}<{told[0]}>"
