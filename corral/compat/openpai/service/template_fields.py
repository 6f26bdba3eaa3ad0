"""The fields of a shared template that the server reads: who may see it, its pictures, and the text that finds it."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from corral.compat.openpai.records.templates import TemplateView
from corral.kernel.errors import CorralError
from corral.service.actor import Actor

LONGEST_SHOWN: Final = 2_000
MOST_PICTURES: Final = 20
_MOST_GROUPS: Final = 50
_MOST_TAGS: Final = 50
_LONGEST_TAG: Final = 100
_PICTURE: Final = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=]+)")
_DATA: Final = re.compile(r"data:[a-z0-9/+.-]{1,100};base64,[a-z0-9+/=]+", re.IGNORECASE)


class TemplateRefusal(CorralError):
    """A refused request for templates; `theirs` are OpenPAI's words for it, which `/api/v2/template` answers with."""

    def __init__(self, status: int, message: str, theirs: str = "") -> None:
        super().__init__("template", message)
        self.status = status
        self.theirs = theirs or message


class TemplateLine(msgspec.Struct, frozen=True):
    """What lists show of a template, and what decides who sees it. Old lines lack the later fields."""

    type: str
    name: str
    contributor: str
    version: str
    description: str | None = None
    owner: str = ""
    isPublic: bool = True
    groupList: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    hasPicture: bool = False

    def visible_to(self, actor: Actor) -> bool:
        """Whether an actor may see it: everybody where it is public, else its owner, its groups and administrators."""
        if self.isPublic:
            return True
        if not actor.token_id:  # an anonymous reader
            return False
        return actor.is_admin or actor.user == self.owner or any(group in actor.groups for group in self.groupList)


def line_of(owner: str, version: str, item: Mapping[str, Any]) -> TemplateLine:
    """The line of a template in lists."""
    labels = [*_texts(item.get("categories")), *_texts(item.get("tags"))]
    return TemplateLine(
        type=item["type"],
        name=item["name"],
        contributor=_short(item.get("contributor")) or owner,
        version=version,
        description=_short(item.get("description")),
        owner=owner,
        isPublic=item.get("isPublic") is not False,
        groupList=tuple(item.get("groupList") or ()),
        tags=tuple(dict.fromkeys(labels))[:_MOST_TAGS],
        hasPicture=bool(item.get("pictures")),
    )


def view_of(line: TemplateLine) -> TemplateView:
    """A line as `/api/v3/templates` lists it."""
    return TemplateView(
        line.type,
        line.name,
        line.contributor,
        line.version,
        line.description,
        line.owner or line.contributor,
        line.isPublic,
        line.groupList,
        line.tags,
        line.hasPicture,
    )


def searched_text(item: Mapping[str, Any]) -> str:
    """The text in which words are searched: all but the pictures."""
    words = {key: value for key, value in item.items() if key != "pictures"}
    return _DATA.sub("", json.dumps(words, ensure_ascii=False, sort_keys=True)).lower()


def check_fields(actor: Actor, item: Mapping[str, Any]) -> None:
    """Check who may see a template, and its pictures.

    Raises TemplateRefusal.
    """
    if not isinstance(item.get("isPublic", True), bool):
        raise TemplateRefusal(400, "isPublic of a template is true or false.")
    groups = item.get("groupList")
    if groups is not None and (not isinstance(groups, list) or len(groups) > _MOST_GROUPS or groups != _texts(groups)):
        raise TemplateRefusal(400, f"groupList of a template is a list of at most {_MOST_GROUPS} names of groups.")
    for group in groups or ():
        if group not in actor.groups and not actor.is_admin:
            raise TemplateRefusal(403, f"You are not in the group {group}; share the template with groups of your own.")
    pictures = item.get("pictures")
    if pictures is not None and not (isinstance(pictures, dict) and len(pictures) <= MOST_PICTURES):
        raise TemplateRefusal(400, f"pictures of a template maps at most {MOST_PICTURES} addresses to pictures.")
    for address, picture in (pictures or {}).items():
        if picture_of(picture) is None:
            why = "is no PNG, JPEG, GIF or WebP image as a data URI in base64"
            raise TemplateRefusal(400, f"The picture {address[:100]!r} {why}.")


def picture_of(uri: Any) -> tuple[str, bytes] | None:
    """The media type and the bytes of a picture; None for anything else."""
    found = _PICTURE.fullmatch(uri) if isinstance(uri, str) else None
    if found is None:
        return None
    try:
        return found[1], base64.b64decode(found[2], validate=True)
    except binascii.Error:
        return None


def _short(said: Any) -> str | None:
    """A text, shortened for lists; None for anything else."""
    return said[:LONGEST_SHOWN] if isinstance(said, str) else None


def _texts(said: Any) -> list[str]:
    return (
        [each for each in said if isinstance(each, str) and 0 < len(each) <= _LONGEST_TAG]
        if isinstance(said, list)
        else []
    )
