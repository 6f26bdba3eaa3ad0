"""Calls for job templates that people share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import SharedTemplate, TemplateDetail, TemplatePage
    from corral.client.types import Record


def templates(*, q: str = "", kind: str = "", whose: str = "", page: int = 1) -> Call[TemplatePage]:
    """Return a page of the templates that the caller sees, the best matches of the words `q` first.

    `kind` is `job`, `dockerimage`, `script`, `data` or `output`; `whose` is `mine`, `groups` or `everybody`.
    """
    return call("GET", "/templates", {"q": q, "kind": kind, "whose": whose, "page": page})


def template(kind: str, name: str, *, version: str = "") -> Call[TemplateDetail]:
    """Return one template with its owner and its versions."""
    return call("GET", _path(kind, name), {"version": version})


def share_template(item: Record) -> Call[SharedTemplate]:
    """Share a template, or a new version of one's own; `item` has its `type` and `name`."""
    return call("POST", "/templates", data=item)


def delete_template(kind: str, name: str) -> Call[None]:
    """Delete a template with all its versions."""
    return call("DELETE", _path(kind, name))


def _path(kind: str, name: str) -> str:
    return f"/templates/{quote(kind, safe='')}/{quote(name, safe='')}"
