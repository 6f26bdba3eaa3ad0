"""Map device-plugin resource names, as pods request them, to kinds of devices."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

KINDS: Final = (
    ("nvidia.com/gpu*", "gpu"),
    ("nvidia.com/mig-*", "gpu"),
    ("amd.com/gpu*", "gpu"),
    ("gpu.intel.com/*", "gpu"),
    ("huawei.com/Ascend*", "npu"),
    ("cambricon.com/*", "mlu"),
    ("habana.ai/gaudi", "gpu"),
    ("google.com/tpu", "tpu"),
    ("aws.amazon.com/neuron*", "npu"),
)
"""Resource patterns (with `*`) whose units are devices, and the kind of each; any other name is a plain resource."""


@lru_cache(maxsize=1_000)
def kind_of(resource: str, kinds: tuple[tuple[str, str], ...] = KINDS) -> str:
    """The kind of device that a resource counts; "" for a plain resource."""
    return next((kind for pattern, kind in kinds if fnmatchcase(resource, pattern)), "")
