"""The JSON shapes of shared templates under `/api/v3/templates`."""

from __future__ import annotations

from typing import Any

import msgspec

from corral.model.records import Record


class TemplateItem(msgspec.Struct, frozen=True, rename="camel"):
    """A template to share. Fields beside these are kept as they are."""

    type: str
    """`job`, `dockerimage`, `script`, `data` or `output`."""
    name: str
    description: str = ""
    introduction: str = ""
    """Markdown."""
    contributor: str = ""
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    is_public: bool = True
    group_list: tuple[str, ...] = ()
    """Where it is not public: the groups that see it."""
    pictures: dict[str, str] = {}
    """Pictures as data URIs, by the address that the text has for each."""
    file: str = ""
    """A job file."""


class SharedTemplate(Record, frozen=True):
    """A template that was just stored."""

    type: str
    name: str
    version: str
    contributor: str
    """The account that shared its first version."""


class TemplateView(Record, frozen=True):
    """A template in a list."""

    type: str
    name: str
    contributor: str
    version: str
    description: str | None
    owner: str
    is_public: bool
    group_list: tuple[str, ...]
    tags: tuple[str, ...]
    """Its categories and tags."""
    has_picture: bool


class TemplatePage(Record, frozen=True):
    """A page of templates, the best matches first."""

    total_count: int
    page_no: int
    page_size: int
    items: tuple[TemplateView, ...]


class TemplateDetail(Record, frozen=True):
    """One template in one of its versions."""

    owner: str
    changed_at: str
    may_change: bool
    versions: tuple[str, ...]
    """The newest first."""
    item: dict[str, Any]
    """The template as it was sent, with its `version`."""
