"""Find the local code folder that a job file names, so that the client can pack it.

The folder exists only on the submitting machine. This module imports no models, because the client runs it before the
server has validated the document.
"""

from __future__ import annotations

import re
from typing import Final

from corral.spec.errors import SpecError
from corral.spec.yaml_source import parse_source

_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.ASCII)


def local_code(document: str | bytes) -> str:
    """The folder that a job file's `code` names, as written; "" when it names none, a URI or a template.

    A document that cannot be parsed gives ""; the server reports its errors with line and column.
    """
    try:
        data = parse_source(document).data
    except SpecError:
        return ""
    home = data.get("spec", data) if isinstance(data, dict) else None
    code = home.get("code") if isinstance(home, dict) else None
    named = code.get("path", code.get("uri")) if isinstance(code, dict) else code
    return named if isinstance(named, str) and not _URI.match(named) and "<%" not in named else ""
