"""The made-up language: what its pages say, and which of it is in no catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import BrowserContext, Page

MADE_UP = "localStorage.setItem('corral.language', 'en-XA')"
# What is left out are commands, files and examples of them, and options that are called as they are written in files.
TEXTS = """(within) => {
  const UNREAD = 'kbd, code, pre, script, style, .cm-line, .xterm, [data-diff] > :last-child, [lang]:not(html)';
  const written = (node) => node.tagName === 'OPTION' && node.value === node.text;
  const SPOKEN = ['aria-label', 'aria-description', 'aria-valuetext', 'title', 'placeholder', 'alt', 'label'];
  const found = within === 'body' ? [document.title] : [];
  for (const each of within.split(', ')) if (!document.querySelector(each)) throw new Error(`nothing is ${each}`);
  for (const root of document.querySelectorAll(within)) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (!node.parentElement.closest(UNREAD) && !written(node.parentElement)) found.push(node.data);
      } else for (const name of SPOKEN) {
        if (node.tagName === 'TEXTAREA' && name === 'placeholder') continue;
        if (node.hasAttribute(name) && !node.closest('.xterm')) found.push(node.getAttribute(name));
      }
    }
  }
  return found;
}"""
# An answer's text is kept before the page has the answer, so that all that a page shows of the server is known.
LISTEN = """() => {
  const send = window.fetch;
  window.answers = [];
  window.fetch = async (...asked) => {
    const answer = await send(...asked);
    const kind = answer.headers.get('content-type') ?? '';
    if (/^application\\/json|yaml/.test(kind)) window.answers.push(await answer.clone().text());
    return answer;
  };
}"""
COMMANDS = re.compile(r"\bcorral [^…]*")
SYMBOLS = re.compile(r"\b(Corral|TensorBoard|Ctrl|GiB|MiB|KiB|UTC|AM|PM)\b|\d+ms\b|\d[KMGTP]i\b")
ENGLISH = re.compile(r"[A-Za-z]{2,}")
NAMED = re.compile(
    "(?i)(name|user|queue|actor|model|metric|unit|engine|level|kind|resource|group|role|rule|code|tag|phrase|sku|suite"
    "|severity|storage|framework|jobType|contributor|type|candidate|in_?force|key)s?$"
)
"""Fields whose single words are names that documents, programs and people chose, and no words of the portal."""
CUT = re.compile(r"([\w-]+)…")


def listen(context: BrowserContext) -> None:
    """Open pages in the made-up language, which keep what the server says."""
    context.add_init_script(f"if (origin !== 'null') {MADE_UP}")
    context.add_init_script(f"({LISTEN})()")


def _said(page: Page) -> list[str]:
    """The names and sentences in the server's answers since the page was loaded."""
    found: set[str] = set()
    for answer in page.evaluate("window.answers ?? []"):
        try:
            _gather(json.loads(answer), "", found)
        except ValueError:
            found.update(line.strip() for line in answer.splitlines())
    return [each for each in found if ENGLISH.search(each)]


def _gather(value: Any, field: str, found: set[str]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            if "_" in key:  # the name of a figure
                found.add(key.replace("_", " "))
            if field == "detail":
                found.add(f"{key}: {each if isinstance(each, str) else _as_browsers_write(each)}")
            _gather(each, key, found)
    elif isinstance(value, list):
        for each in value:
            _gather(each, field, found)
    elif isinstance(value, str) and (NAMED.search(field) or not value.isalpha()):
        parts = (value.replace("_", " "), value.rpartition("/")[2], value.rpartition(":")[2])
        found.update((value, *parts, *(line.strip() for line in value.splitlines())))


def _as_browsers_write(value: Any) -> str:
    """JSON as `JSON.stringify` has it: without spaces, and whole numbers without a point."""
    same = json.loads(json.dumps(value), parse_float=_number)
    return json.dumps(same, separators=(",", ":"), ensure_ascii=False)


def _number(text: str) -> float:
    found = float(text)
    return int(found) if found.is_integer() else found


def english(page: Page, *data: str, within: str = "body") -> list[str]:
    """The texts that are in no catalogue; names of jobs and users and what the server says are `data`.

    Of a page that was opened after `listen`, the names and sentences in the server's answers are data too.
    """
    texts: list[str] = page.evaluate(TEXTS, within)
    known = {*data, *_said(page)}
    names = sorted(known, key=len, reverse=True)
    left = []
    for text in texts:
        if text.strip() in known:  # whole, before symbols are taken out of a sentence
            continue
        rest = SYMBOLS.sub("", COMMANDS.sub("", text))
        for name in names:
            rest = rest.replace(name, "")
        rest = CUT.sub(lambda cut: "" if any(name.startswith(cut[1]) for name in names) else cut[0], rest)
        if ENGLISH.search(rest):
            left.append(text.strip())
    return left


def in_either(text: str) -> re.Pattern[str]:
    """A text as the server says it, or with the accents of the made-up language."""
    plain, accents = "abcdefghijklmnopqrstuvwxyz", "áƀçđéƒğĥíĵķļḿñóþɋřšţúṽŵẋýž"
    forms = dict(zip(plain + plain.upper(), accents + accents.upper(), strict=True))
    return re.compile("".join(f"[{each}{forms[each]}]" if each in forms else re.escape(each) for each in text))


def cells(cell: dict[str, Any]) -> Iterator[str]:
    """The names and levels of a tree of cells, and the short names of nodes."""
    yield from (str(cell["name"]), str(cell["level"]), str(cell["name"]).rpartition("/")[2])
    for each in cell["cells"]:
        yield from cells(each)
