"""Shorten the names of device kernels, which C++ templates make hundreds of characters long."""

from __future__ import annotations

import re
from typing import Final

KERNEL: Final = "kernel"
"""The trace's category of device kernels."""
_MOST_READ: Final = 2000
_ANONYMOUS: Final = "(anonymous namespace)::"
_WORD: Final = re.compile(r"\w+")
_TELLS: Final = ("functor", "gemm", "gemv", "conv", "attention", "flash", "softmax", "norm")
"""What the name of an operation contains that tells kernels of one template apart."""


def short_kernel_name(name: str) -> str:
    """Return a kernel's own name, with the operation among its template's arguments: `reduce_kernel<sum_functor>`."""
    text = name[:_MOST_READ].replace(_ANONYMOUS, "").removeprefix("void ")
    plain, _, arguments = text.partition("<")
    own = plain.partition("(")[0].rpartition("::")[2].strip()
    if not own:
        return name
    words = (found[0] for found in _WORD.finditer(arguments))
    told = next((word for word in words if any(each in word.lower() for each in _TELLS)), "")
    return own if told in own else f"{own}<{told}>"
