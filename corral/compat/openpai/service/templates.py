"""Job templates that users share and search, as in OpenPAI's marketplace.

OpenPAI kept them in a GitHub repository, with the rights of an access token's owner; a version was a commit. Here the
server stores them, and a version is a digest of the template. Only the latest versions of each name are kept. A
template is changed only by the account that shared it, or by an administrator. Everybody sees it unless `isPublic` is
false: then its owner and the groups of `groupList` do, as with the items of OpenPAI's later marketplace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from corral.compat.openpai.records.templates import SharedTemplate, TemplateDetail, TemplatePage
from corral.compat.openpai.service.template_fields import (
    TemplateLine,
    TemplateRefusal,
    check_fields,
    line_of,
    picture_of,
    searched_text,
    view_of,
)
from corral.compat.openpai.tables.key_values import KeyValue, KeyValues
from corral.kernel.errors import Conflict
from corral.kernel.names import is_path_name
from corral.model.records import rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

KIND: Final = "template"
TYPES: Final = ("job", "dockerimage", "script", "data", "output")
PAGE: Final = 5
MOST_BYTES: Final = 256 * 1024
MOST_VERSIONS_BYTES: Final = 1024 * 1024
"""Most bytes of all kept versions of a template; the oldest versions are dropped."""
BROWSED: Final = 24
"""Templates on one page of the portal."""
_MOST_VERSIONS: Final = 20
_MOST_WORDS: Final = 20
_LINE, _TEXT = "line", "text"
_LONGEST_NAME: Final = 255
_WHOSE: Final = ("", "mine", "groups", "everybody")


class Templates:
    """Share, search, list and read templates."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._records = KeyValues(context.store)
        self._clock = context.clock
        self.most_templates = 2000
        self.most_templates_of_one = 100

    async def share(self, actor: Actor, item: Any) -> tuple[SharedTemplate, bool]:
        """Store a template, or a new version of one's own; return what was stored, and whether it is new.

        Raises TemplateRefusal.
        """
        decision = await self._context.check(actor, "document.read", Resource("document"))
        kind, name = _named(item)
        check_fields(actor, item)
        text = json.dumps(item, ensure_ascii=False, sort_keys=True)
        if len(text.encode()) > MOST_BYTES:
            raise TemplateRefusal(400, f"A template has at most {MOST_BYTES // 1024} KiB.")
        version = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        now = self._clock.now()

        found: list[bool] = []

        def change(known: KeyValue | None) -> KeyValue:
            found.append(known is not None)
            if known is not None and not _may_change(actor, known):
                raise TemplateRefusal(403, f"The template {name} is {known.owner}'s; share yours under another name.")
            versions = {} if known is None else json.loads(known.body)["versions"]
            versions.pop(version, None)
            body = json.dumps({"versions": _latest({**versions, version: item})})
            owner, first = (actor.user, now) if known is None else (known.owner, known.created_at)
            line = msgspec.json.encode(line_of(owner, version, item)).decode()
            beside = {_LINE: line, _TEXT: searched_text(item)}
            return KeyValue(KIND, _key(kind, name), owner, body, first, now, beside)

        most, own = self.most_templates, self.most_templates_of_one
        line = self._context.line(actor, "template.share", _resource(kind, name), decision, version=version)
        try:
            kept = await self._records.change_key_value(
                KIND, _key(kind, name), change, most=most, most_of_owner=own, audit=line
            )
        except Conflict:
            why = f"One account shares at most {own} templates, and all together {most}"
            raise TemplateRefusal(409, f"{why}; share this as a new version of one of yours.") from None
        assert kept is not None
        return SharedTemplate(kind, name, version, kept.owner), not found[-1]

    async def get(self, actor: Actor, kind: str, name: str, version: str = "") -> dict[str, Any]:
        """One template, in its latest version or the given one.

        Raises TemplateRefusal.
        """
        _, versions = await self._versions(actor, kind, name)
        return _chosen(kind, name, versions, version)

    async def detail(self, actor: Actor, kind: str, name: str, version: str = "") -> TemplateDetail:
        """One template with its owner, its versions and whether the actor may change it.

        Raises TemplateRefusal.
        """
        record, versions = await self._versions(actor, kind, name)
        item = _chosen(kind, name, versions, version)
        may, newest_first = _may_change(actor, record), tuple(reversed(versions))
        return TemplateDetail(record.owner, rfc3339(record.changed_at), may, newest_first, item)

    async def picture(self, actor: Actor, kind: str, name: str) -> tuple[str, bytes]:
        """The media type and the bytes of a template's first picture.

        Raises TemplateRefusal.
        """
        item = await self.get(actor, kind, name)
        found = picture_of(next(iter((item.get("pictures") or {}).values()), None))
        if found is None:
            raise TemplateRefusal(404, f"The template {name} has no picture.")
        return found

    async def remove(self, actor: Actor, kind: str, name: str) -> None:
        """Delete a template with all its versions; only its owner and administrators may.

        Raises TemplateRefusal.
        """
        decision = await self._context.check(actor, "document.read", Resource("document", name))
        await self._versions(actor, kind, name)

        def change(known: KeyValue | None) -> None:
            if known is None:  # somebody else deleted it just now
                raise _no_template(kind, name)
            if not _may_change(actor, known):
                raise TemplateRefusal(403, f"The template {name} is {known.owner}'s; only its owner may delete it.")

        line = self._context.line(actor, "template.delete", _resource(kind, name), decision)
        await self._records.change_key_value(KIND, _key(kind, name), change, audit=line)

    async def all(self, actor: Actor, *, words: str = "", kind: str = "", page: int = 1) -> dict[str, Any]:
        """A page of the templates of a type, or of those that contain all the words, the best matches first.

        Raises TemplateRefusal.
        """
        found = await self._found(actor, words, kind)
        shown = [{**_summary(line), "score": score} for score, line in found[(page - 1) * PAGE : page * PAGE]]
        return {"totalCount": len(found), "pageNo": page, "pageSize": PAGE, "items": shown}

    async def browse(
        self, actor: Actor, *, words: str = "", kind: str = "", whose: str = "", page: int = 1
    ) -> TemplatePage:
        """A page of the templates that the actor sees, with their tags, audience and whether they have a picture.

        `whose` is empty, `mine`, `groups` (shared with groups of the actor's) or `everybody`. Raises TemplateRefusal.
        """
        if whose not in _WHOSE:
            raise TemplateRefusal(400, f"whose is one of {', '.join(filter(None, _WHOSE))}.")
        found = [line for _, line in await self._found(actor, words, kind) if _is_whose(actor, line, whose)]
        shown = found[(page - 1) * BROWSED : page * BROWSED]
        return TemplatePage(len(found), page, BROWSED, tuple(map(view_of, shown)))

    async def _found(self, actor: Actor, words: str, kind: str) -> list[tuple[int, TemplateLine]]:
        """The templates that an actor sees, of a type and with all the words, each with its score, the best first."""
        await self._context.check(actor, "document.read", Resource("document"))
        if kind:
            _check_kind(kind)
        wanted = tuple(dict.fromkeys(words.lower().split()))
        if len(wanted) > _MOST_WORDS:
            raise TemplateRefusal(400, f"A search has at most {_MOST_WORDS} words.")
        found = []
        for key, text in await self._records.beside(KIND, _LINE, words=wanted, words_in=_TEXT):
            if not kind or key.startswith(_key(kind, "")):
                line = msgspec.json.decode(text, type=TemplateLine)
                if line.visible_to(actor):
                    found.append((-_score(line.name, wanted), key, line))
        found.sort(key=lambda each: each[:2])
        return [(-score, line) for score, _, line in found]

    async def _versions(self, actor: Actor, kind: str, name: str) -> tuple[KeyValue, dict[str, Any]]:
        """The record of a template that an actor sees, and the versions that it sees, the oldest first.

        An older version may have been for fewer people than the latest.

        Raises TemplateRefusal.
        """
        await self._context.check(actor, "document.read", Resource("document", name))
        _check_kind(kind)
        known = await self._records.key_value(KIND, _key(kind, name))
        versions = {} if known is None else json.loads(known.body)["versions"]
        seen = {
            version: item
            for version, item in versions.items()
            if known is not None and line_of(known.owner, version, item).visible_to(actor)
        }
        if known is None or next(reversed(versions)) not in seen:
            raise _no_template(kind, name)
        return known, seen


def _named(item: Any) -> tuple[str, str]:
    """The type and the name of a template.

    Raises TemplateRefusal if they are missing or invalid.
    """
    kind = item.get("type") if isinstance(item, dict) else None
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(kind, str) or not isinstance(name, str) or not kind or not name:
        raise TemplateRefusal(
            400, "A template is a mapping with a type and a name, each a text.", "Failed to parse template content."
        )
    _check_kind(kind)
    if not is_path_name(name, _LONGEST_NAME):
        rule = f"1 to {_LONGEST_NAME} printable characters, no / and no space at its ends"
        raise TemplateRefusal(400, f"A template's name has {rule}; it is not `.` or `..`.")
    return kind, name


def _chosen(kind: str, name: str, versions: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The given version, or the latest."""
    chosen = version or next(reversed(list(versions)), "")
    if chosen not in versions:
        raise _no_template(kind, name, version)
    return {**versions[chosen], "version": chosen}


def _no_template(kind: str, name: str, version: str = "") -> TemplateRefusal:
    of_version = f" of version {version[:50]}" if version else ""
    message = f"There is no template {kind}/{name[:100]}{of_version} that you may see; `corral templates` lists them."
    return TemplateRefusal(404, message, "Failed to find any matched template.")


def _may_change(actor: Actor, known: KeyValue) -> bool:
    return actor.is_admin or actor.user == known.owner


def _resource(kind: str, name: str) -> Resource:
    return Resource("template", _key(kind, name))


def _check_kind(kind: str) -> None:
    if kind not in TYPES:
        raise TemplateRefusal(
            400,
            f"The type of a template is one of {', '.join(TYPES)}, not {kind[:50]!r}.",
            "Found illegal type value in the request.",
        )


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


def _summary(line: TemplateLine) -> dict[str, Any]:
    """What OpenPAI's pages read of a template in lists."""
    return {name: getattr(line, name) for name in ("type", "name", "contributor", "version", "description")}


def _is_whose(actor: Actor, line: TemplateLine, whose: str) -> bool:
    if whose == "mine":
        return (line.owner or line.contributor) == actor.user
    if whose == "groups":
        return any(group in actor.groups for group in line.groupList)
    return line.isPublic if whose == "everybody" else True


def _score(name: str, words: tuple[str, ...]) -> int:
    """Rank of a template that has all the words: 3 for each word in its name, 1 for each other."""
    return sum(3 if word in name.lower() else 1 for word in words)
