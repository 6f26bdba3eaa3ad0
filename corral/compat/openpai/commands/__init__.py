"""The command `corral openpai`; it uses the helpers of `corral.cli`."""

from __future__ import annotations

from typing import Final

OPENPAI: Final = ("corral.compat.openpai.commands.openpai", "Other", "Bring over jobs and clusters of OpenPAI.")
"""The command's module, its section of the help, and its line there."""
