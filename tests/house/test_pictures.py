"""The pictures of `scheduling.md` are up to date, and its examples and codes are valid."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from corral.scheduler.policy.policy import BUILT_IN
from corral.scheduler.preemption.victim import EVICTION_ORDER
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document
from corral.spec.job_reader import load_job
from docs.scenes import SCENES
from docs.worlds import EXAMPLE, World, examples

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "scheduling.md").read_text()
FOLDER = ROOT / "docs" / "images" / "scheduling"
SVG = "{http://www.w3.org/2000/svg}"
CODE = re.compile(r'(?:Reason\(|self\._over\(|return|BEHIND =|YIELDING =)\s*"([a-z]+(?:-[a-z]+)+)"')


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_is_what_the_program_draws_and_draws_again(name: str) -> None:
    drawn = SCENES[name]()
    assert drawn == SCENES[name]()
    assert (FOLDER / f"{name}.svg").read_text() == drawn, "out of date: run `make docs`"


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_says_in_words_what_it_shows_and_has_both_colour_schemes(name: str) -> None:
    root = ET.fromstring((FOLDER / f"{name}.svg").read_text())
    title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text and told is not None and len((told.text or "").split()) > 10
    assert root.get("aria-labelledby") == "title told"
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")
    alternative = re.search(rf"!\[([^\]]+)\]\(images/scheduling/{name}\.svg\)", PAGE)
    assert alternative and len(alternative[1].split()) > 10


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SCENES)


@pytest.mark.parametrize("name", examples())
def test_an_example_is_taken_and_agrees_with_itself(name: str) -> None:
    documents = load_document(examples()[name])
    if any(isinstance(document, ClusterDocument) for document in documents):
        cluster = World(name).cluster
        assert cluster.nodes() and not cluster.ownership.shortfalls()


def test_every_yaml_of_the_page_is_an_example_or_a_job_that_is_taken() -> None:
    jobs = re.findall(r"<!-- job -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    for text in jobs:
        assert load_job(text)
    assert len(jobs) + len(EXAMPLE.findall(PAGE)) == PAGE.count("```yaml")


def test_every_reason_of_the_scheduler_is_in_the_table() -> None:
    sources = [*(ROOT / "corral" / "scheduler").rglob("*.py"), *(ROOT / "corral" / "service").rglob("*.py")]
    codes = {code for path in sources for code in CODE.findall(path.read_text())}
    assert {"behind-head", "not-enough-devices", "queue-limit", "kept-for-others", "others-yield"} <= codes
    assert not sorted(code for code in codes if f"`{code}`" not in PAGE)


def test_the_rules_stand_in_the_order_in_which_they_are_asked() -> None:
    table = PAGE.partition("## Who yields")[2].partition("##")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == [str(rule) for rule in EVICTION_ORDER]


def test_every_preset_is_listed() -> None:
    table = PAGE.partition("<!-- generated: policies -->")[2].partition("<!-- end -->")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == list(BUILT_IN)


def test_every_promise_names_tests_that_there_are() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(named) > 20 and not sorted(named - there)
