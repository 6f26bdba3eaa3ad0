"""axe-core, the checker of accessibility, run in a page; it comes with the packages that build the portal."""

from __future__ import annotations

import functools

import pytest
from playwright.sync_api import Page

from tests.conftest import IN_CI, ROOT

SOURCE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
FINDINGS = """async (rules) => {
  const { violations } = await axe.run(document, { resultTypes: ['violations'], ...(rules && { runOnly: rules }) });
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html, failureSummary }) =>
    `${id}: ${help} ${html.slice(0, 160)} ${failureSummary.replaceAll(/\\s+/g, ' ')}`));
}"""


@functools.cache
def _source() -> str:
    if not SOURCE.is_file():
        missing = "axe is not here, so pages are not checked with it: cd web && npm ci"
        pytest.fail(missing) if IN_CI else pytest.skip(missing)
    return SOURCE.read_text()


def findings(page: Page, *rules: str) -> list[str]:
    """What axe finds on the page as it is now, by all rules or by `rules`: the rule and the element of each finding."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    found: list[str] = page.evaluate(FINDINGS, list(rules) or None)
    return found
