"""Why: the code folder is beside the job file, on the machine that submits; only there can it be found and packed.

Light on purpose: submitting a file needs this before the server has checked the document, and none of the models.
"""

from __future__ import annotations

import re
from typing import Final

from corral.spec.errors import SpecError
from corral.spec.source import parse_source

_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.ASCII)


def local_code(document: str | bytes) -> str:
    """The folder that a job file's `code` names, as it is written; "" when it names none, or a URI.

    A document that cannot be read names none: the server says what is wrong with it, with lines and columns.
    """
    try:
        data = parse_source(document).data
    except SpecError:
        return ""
    home = data.get("spec", data) if isinstance(data, dict) else None
    code = home.get("code") if isinstance(home, dict) else None
    named = code.get("path", code.get("uri")) if isinstance(code, dict) else code
    return named if isinstance(named, str) and not _URI.match(named) and "<%" not in named else ""
