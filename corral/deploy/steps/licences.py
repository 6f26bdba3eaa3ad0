"""Licences by what packages say of themselves: Debian's copyright files, and the metadata of Python's wheels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MOST: Final = 12
"""Licences that are named of one file; a package of many parts has more."""
_LONGEST: Final = 100
_FORMAT: Final = re.compile(r"^Format(-Specification)?:", re.IGNORECASE | re.MULTILINE)
_OF_PARAGRAPH: Final = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_COMMON: Final = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]{0,40})")
_CLASSIFIER: Final = "License :: OSI Approved :: "


def of_copyright(text: str) -> str:
    """The licences that a Debian package's copyright file names, in its words; "" where it names none that is known.

    A file in the machine-readable format (DEP 5) has a line for each part. Others name files of /usr/share/common-licenses.
    """
    found = _OF_PARAGRAPH.findall(text) if _FORMAT.search(text[:2000]) else []
    return _listed(found or [name.rstrip(".-") for name in _COMMON.findall(text)])


def of_metadata(lines: Iterable[str]) -> str:
    """The licence that the header of a wheel's METADATA names; "" where it names none."""
    expression, field, classifiers = "", "", []
    for line in lines:
        if not line.strip():
            break
        key, _, value = line.partition(":")
        value = value.strip()
        match key.strip().lower():
            case "license-expression":
                expression = value
            case "license":
                field = value
            case "classifier" if value.startswith(_CLASSIFIER):
                classifiers.append(value.removeprefix(_CLASSIFIER))
    # The field may have the whole text of a licence.
    return _listed([expression] if expression else [field] if 0 < len(field) <= _LONGEST else classifiers)


def _listed(names: Iterable[str]) -> str:
    clean = ("".join(char for char in name if char.isprintable()).strip() for name in names)
    return ", ".join(list(dict.fromkeys(name[:_LONGEST] for name in clean if name))[:_MOST])
