"""Job templates that users share and search, as in OpenPAI's marketplace.

OpenPAI kept them in a GitHub repository, with the rights of an access token's owner; a version was a commit. Here the
server stores them, and a version is a digest of the template. Only the latest versions of each name are kept. A
template is changed only by the account that shared it, or by an administrator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from corral.compat.openpai.tables.key_values import KeyValue, KeyValues
from corral.kernel.errors import Conflict, CorralError
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

KIND: Final = "template"
TYPES: Final = ("job", "dockerimage", "script", "data", "output")
PAGE: Final = 5
MOST_BYTES: Final = 256 * 1024
MOST_VERSIONS_BYTES: Final = 1024 * 1024
"""Most bytes of all kept versions of a template; the oldest versions are dropped."""
LONGEST_SHOWN: Final = 2_000
_MOST_VERSIONS: Final = 20
_MOST_WORDS: Final = 20
_LINE, _TEXT = "line", "text"
_LONGEST_NAME: Final = 255


class TemplateRefusal(CorralError):
    """A refused request for templates, in OpenPAI's words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("template", message)
        self.status = status


class Templates:
    """Share, search, list and read templates."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._records = KeyValues(context.store)
        self._clock = context.clock
        self.most_templates = 2000
        self.most_templates_of_one = 100

    async def share(self, actor: Actor, item: Any) -> tuple[dict[str, Any], bool]:
        """Store a template, or a new version of one's own; return its summary, and whether it is new.

        Raises TemplateRefusal.
        """
        kind, name = _named(item)
        text = json.dumps(item, ensure_ascii=False, sort_keys=True)
        if len(text.encode()) > MOST_BYTES:
            raise TemplateRefusal(400, f"A template has at most {MOST_BYTES // 1024} KiB.")
        version = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        now = self._clock.now()

        found: list[bool] = []

        def change(known: KeyValue | None) -> KeyValue:
            found.append(known is not None)
            if known is not None and known.owner != actor.user and not actor.is_admin:
                raise TemplateRefusal(403, f"The template {name} is {known.owner}'s; share yours under another name.")
            versions = {} if known is None else json.loads(known.body)["versions"]
            versions.pop(version, None)
            body = json.dumps({"versions": _latest({**versions, version: item})})
            owner, first = (actor.user, now) if known is None else (known.owner, known.created_at)
            beside = {_LINE: json.dumps(_summary(owner, version, item)), _TEXT: text.lower()}
            return KeyValue(KIND, _key(kind, name), owner, body, first, now, beside)

        most, own = self.most_templates, self.most_templates_of_one
        try:
            kept = await self._records.change_key_value(KIND, _key(kind, name), change, most=most, most_of_owner=own)
        except Conflict:
            why = f"One account shares at most {own} templates, and all together {most}"
            raise TemplateRefusal(409, f"{why}; share this as a new version of one of yours.") from None
        assert kept is not None
        summary = {"type": kind, "name": name, "version": version, "contributor": kept.owner}
        return summary, not found[-1]

    async def get(self, actor: Actor, kind: str, name: str, version: str = "") -> dict[str, Any]:
        """One template, in its latest version or the given one.

        Raises TemplateRefusal.
        """
        await self._context.check(actor, "document.read", Resource("document", name))
        _check_kind(kind)
        known = await self._records.key_value(KIND, _key(kind, name))
        versions = {} if known is None else json.loads(known.body)["versions"]
        chosen = version or next(reversed(versions), "")
        if chosen not in versions:
            raise TemplateRefusal(404, "Failed to find any matched template.")
        found: dict[str, Any] = versions[chosen]
        return {**found, "version": chosen}

    async def all(self, actor: Actor, *, words: str = "", kind: str = "", page: int = 1) -> dict[str, Any]:
        """A page of the templates of a type, or of those that contain all the words, the best matches first.

        Raises TemplateRefusal.
        """
        await self._context.check(actor, "document.read", Resource("document"))
        if kind:
            _check_kind(kind)
        wanted = tuple(dict.fromkeys(words.lower().split()))
        if len(wanted) > _MOST_WORDS:
            raise TemplateRefusal(400, f"A search has at most {_MOST_WORDS} words.")
        found = []
        for key, text in await self._records.beside(KIND, _LINE, words=wanted, words_in=_TEXT):
            if not kind or key.startswith(_key(kind, "")):
                line = json.loads(text)
                found.append((-_score(line["name"], wanted), key, line))
        found.sort(key=lambda each: each[:2])
        shown = [{**line, "score": -score} for score, _, line in found[(page - 1) * PAGE : page * PAGE]]
        return {"totalCount": len(found), "pageNo": page, "pageSize": PAGE, "items": shown}


def _named(item: Any) -> tuple[str, str]:
    """The type and the name of a template.

    Raises TemplateRefusal if they are missing or invalid.
    """
    kind = item.get("type") if isinstance(item, dict) else None
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(kind, str) or not isinstance(name, str) or not kind or not name:
        raise TemplateRefusal(400, "Failed to parse template content.")
    _check_kind(kind)
    if len(name) > _LONGEST_NAME or "/" in name or not name.isprintable():
        raise TemplateRefusal(400, f"A template's name has at most {_LONGEST_NAME} printable characters, and no slash.")
    return kind, name


def _check_kind(kind: str) -> None:
    if kind not in TYPES:
        raise TemplateRefusal(400, "Found illegal type value in the request.")


def _key(kind: str, name: str) -> str:
    return f"{kind}/{name}"


def _latest(versions: Mapping[str, Any]) -> dict[str, Any]:
    """The versions to keep: the latest, up to their limits in number and bytes."""
    kept: dict[str, Any] = {}
    size = 0
    for version, item in list(versions.items())[: -_MOST_VERSIONS - 1 : -1]:
        size += len(json.dumps(item))
        if kept and size > MOST_VERSIONS_BYTES:
            break
        kept[version] = item
    return dict(reversed(kept.items()))


def _summary(owner: str, version: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": item["type"],
        "name": item["name"],
        "contributor": _short(item.get("contributor")) or owner,
        "version": version,
        "description": _short(item.get("description")),
    }


def _short(said: Any) -> str | None:
    """A text, shortened for lists; None for anything else."""
    return said[:LONGEST_SHOWN] if isinstance(said, str) else None


def _score(name: str, words: tuple[str, ...]) -> int:
    """Rank of a template that has all the words: 3 for each word in its name, 1 for each other."""
    return sum(3 if word in name.lower() else 1 for word in words)
