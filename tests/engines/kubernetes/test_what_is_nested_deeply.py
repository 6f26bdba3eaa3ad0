"""Deeply nested objects, which any author may write, affect neither other objects nor later events."""

from __future__ import annotations

import sys

import pytest

from corral.engines.kubernetes.objects.job_objects import Document, _plain
from corral.engines.kubernetes.watch.decoder import Added, Deleted, Reader, Unreadable
from corral.engines.kubernetes.watch.pod_structs import Pod

LIMIT = sys.getrecursionlimit()
DEPTHS = [LIMIT + 1, 9_900]


def nested(name: str, depth: int) -> bytes:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    return b'{"metadata":{"uid":"%s","resourceVersion":"7","x":%s},"spec":%s}' % (name.encode(), deep, deep)


def event(kind: str, thing: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), thing)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_watch_goes_on_after_an_object_that_is_nested_too_deeply(depth: int) -> None:
    plain = b'{"metadata":{"uid":"plain"}}'
    sent = event("MODIFIED", nested("deep", depth)) + event("DELETED", nested("deep", depth)) + event("ADDED", plain)
    changed, gone, after = Reader(Document).feed(sent)
    assert isinstance(changed, Unreadable) and (changed.object.key, changed.deleted) == ("deep", False)
    assert changed.object.metadata.resource_version == "7"
    assert isinstance(gone, Unreadable) and gone.deleted
    assert isinstance(after, Added) and after.object.key == "plain"
    assert sys.getrecursionlimit() == LIMIT


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_list_has_everything_but_an_object_that_is_nested_too_deeply(depth: int) -> None:
    items = b",".join([b'{"metadata":{"uid":"one"}}', nested("deep", depth), b'{"metadata":{"uid":"two"}}'])
    page = Reader(Document).page(b'{"metadata":{"resourceVersion":"9"},"items":[%s]}' % items)
    assert [found.key for found in page.objects] == ["one", "two"]
    assert [found.key for found in page.unreadable] == ["deep"]
    assert sys.getrecursionlimit() == LIMIT


def test_what_is_passed_over_may_be_nested_deeply_too() -> None:
    (gone,) = Reader(Pod).feed(event("DELETED", nested("deep", LIMIT // 2)))
    assert isinstance(gone, Deleted) and gone.object.key == "deep"
    (gone,) = Reader(Pod).feed(event("DELETED", nested("deep", 9_900)))
    assert isinstance(gone, Unreadable) and gone.deleted


def test_an_object_that_was_just_read_is_shown_at_least_by_its_name() -> None:
    spec: dict[str, object] = {}
    for _ in range(LIMIT):
        spec = {"a": spec}
    shown = _plain(Document(api_version="corral.dev/v1alpha1", kind="UnifiedJob", spec=spec))
    assert shown["kind"] == "UnifiedJob" and not shown.get("spec")
