"""Jobs of one name are called USER~NAME where they stand beside each other in a text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from corral.control.core.world import World
from corral.model.messages import told_apart

ONE, TWO, THREE, FOUR = (f"1m8jam0c62r{at}k" for at in range(4))
JOBS = {
    ONE: SimpleNamespace(user="ada", name="train"),
    TWO: SimpleNamespace(user="bob", name="train"),
    THREE: SimpleNamespace(user="bob", name="test"),
}


@pytest.mark.parametrize(
    ("jobs", "called"),
    [
        ({ONE: ("ada", "train"), TWO: ("bob", "test")}, ["train", "test"]),
        ({ONE: ("ada", "train"), TWO: ("bob", "train"), THREE: ("bob", "test")}, ["ada~train", "bob~train", "test"]),
        ({ONE: ("ada", "train"), TWO: ("ada", "train")}, [f"ada~train ({ONE})", f"ada~train ({TWO})"]),
        ({}, []),
    ],
)
def test_only_those_of_one_name_have_more_than_it(jobs: dict[str, tuple[str, str]], called: list[str]) -> None:
    assert list(told_apart(jobs).values()) == called


@pytest.mark.parametrize(
    ("text", "about", "said"),
    [
        (f"Behind job {ONE}.", THREE, "Behind job train."),
        (f"Behind job {ONE}.", TWO, "Behind job ada~train."),
        (f"Behind {ONE} and {TWO}.", "", "Behind ada~train and bob~train."),
        (f"Behind {THREE} and {FOUR}.", ONE, f"Behind test and {FOUR}."),
        ("2 of 4 devices are free.", ONE, "2 of 4 devices are free."),
    ],
)
def test_a_text_about_a_job_tells_another_of_its_name_apart(text: str, about: str, said: str) -> None:
    world = cast(Any, SimpleNamespace(jobs=JOBS))
    assert World.in_names(world, text, about) == said


def test_a_text_in_names_stays_as_it_is() -> None:
    again = SimpleNamespace(user="ada", name="train")
    world = cast(Any, SimpleNamespace(jobs={**JOBS, FOUR: again}))
    once = World.in_names(world, f"Behind job {ONE}.", FOUR)
    assert once == f"Behind job ada~train ({ONE})."
    assert World.in_names(world, once, FOUR) == once == World.in_names(world, once)
