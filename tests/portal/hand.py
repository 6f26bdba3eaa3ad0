"""A person at the portal, who begins each task at the first page and has only the page to guide; clicks are counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.portal.harness import Portal


@dataclass
class Hand:
    """The mouse and the keyboard of one person: what was clicked, and how many fields were filled in."""

    page: Page
    portal: Portal
    clicked: list[str] = field(default_factory=list)
    fields: int = 0

    @property
    def main(self) -> Locator:
        """The page below its bar."""
        return self.page.get_by_role("main")

    @property
    def window(self) -> Locator:
        """The window that asks something."""
        return self.page.get_by_role("dialog")

    def begin(self) -> None:
        """Go to the first page with nothing counted."""
        self.clicked, self.fields = [], 0
        self.page.goto("/")

    def click(self, role: str, name: str, within: Locator | None = None) -> None:
        """Click what has this role and this name."""
        self.press((within or self.page).get_by_role(role, name=name, exact=True).first, name)  # type: ignore[arg-type]

    def press(self, target: Locator, name: str) -> None:
        """Click an element that is called `name` in the table."""
        target.click()
        self.clicked.append(name)

    def way(self, name: str) -> None:
        """Follow a link of the bar; its page is there when this returns, as a person would wait for it."""
        self.press(self.page.get_by_role("navigation", name="Main").get_by_role("link", name=name), name)
        expect(self.page).to_have_title(re.compile(rf"(^|· ){name} · Corral$"))

    def job(self, name: str) -> None:
        """Open a job of the list."""
        self.press(self.page.get_by_role("region", name="Jobs").get_by_role("link", name=name, exact=True), name)
        expect(self.page.get_by_role("heading", name=name)).to_be_visible()

    def tick(self, label: str, within: Locator | None = None) -> None:
        """Tick a box or choose a radio button."""
        (within or self.page).get_by_label(label).first.check()
        self.clicked.append(label)

    def fill(self, label: str, text: str, within: Locator | None = None) -> None:
        """Fill in a field."""
        (within or self.page).get_by_label(re.compile(f"^{re.escape(label)}")).first.fill(text)
        self.fields += 1

    def choose(self, label: str, option: str, within: Locator | None = None) -> None:
        """Choose an option of a field."""
        (within or self.page).get_by_role("combobox", name=label).first.select_option(option)
        self.fields += 1

    def fetch(self, role: str, name: str, within: Locator | None = None) -> Path:
        """Click what downloads a file; the file."""
        with self.page.expect_download() as taken:
            self.click(role, name, within)
        return Path(taken.value.path())

    def sees(self, text: str, within: Locator | None = None) -> None:
        """Wait until the page says this."""
        expect(within or self.main).to_contain_text(text)


@dataclass(frozen=True)
class Task:
    """What a person wants, and how it is done."""

    wish: str
    do: Callable[[Hand], None]


@dataclass(frozen=True)
class Done:
    """What a task took."""

    wish: str
    clicks: int
    fields: int
    way: str


def work(hand: Hand, tasks: list[Task]) -> list[Done]:
    """Do the tasks one after the other; what each took."""
    done = []
    for task in tasks:
        hand.begin()
        task.do(hand)
        done.append(Done(task.wish, len(hand.clicked), hand.fields, " › ".join(hand.clicked)))
    return done
