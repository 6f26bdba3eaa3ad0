"""Why: a pod asks for an accelerator by its plugin's resource name, a job for a device of some kind; here is which."""

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
"""Device-plugin resources (with `*`) whose units are devices, and the kind of each; any other is a plain resource."""


@lru_cache(maxsize=1_000)
def kind_of(resource: str, kinds: tuple[tuple[str, str], ...] = KINDS) -> str:
    """The kind of device that a resource counts; "" when it counts none."""
    return next((kind for pattern, kind in kinds if fnmatchcase(resource, pattern)), "")
