"""Each field of a Policy document has an effect in the scheduler."""

from __future__ import annotations

import pytest

from corral.control.core.configuration import scheduler_policy
from corral.model.configuration import configuration_of
from corral.scheduler import Policy, PriorityOrder, find_policy
from corral.spec.configuration_file import load_document
from corral.spec.policy import PolicyDocument


def read(text: str) -> Policy:
    (document,) = load_document(f"{{kind: Policy, {text}}}")
    assert isinstance(document, PolicyDocument)
    return scheduler_policy(document, find_policy("fifo"))


@pytest.mark.parametrize("order", ["fair", "priority", "fifo", "deadline"])
def test_a_document_that_only_names_an_order_is_the_policy_of_that_name(order: str) -> None:
    assert read(f"order: {order}") == find_policy(order)


def test_a_document_without_a_word_is_what_the_server_does_without_one() -> None:
    assert read("name: default") == find_policy()


def test_each_field_says_what_it_says() -> None:
    assert read("ageing: {secondsPerPriority: 10m}").order == PriorityOrder(600.0)
    assert read("elastic: {moveSeconds: 0}").move_seconds == 0.0
    assert read("elastic: {moveSeconds: 5m}").move_seconds == 300.0
    assert not read("backfill: false").backfill
    assert not read("preemption: false").preemption
    assert not read("consolidation: false").consolidation
    assert not read("order: fifo, preemption: true").preemption


def test_queues_that_do_not_say_forget_as_the_policy_does() -> None:
    text = "{kind: Policy, halfLifeSeconds: 7d}\n---\n{kind: Queue, name: a}"
    text += "\n---\n{kind: Queue, name: b, halfLifeSeconds: 1d}"
    specs = {spec.name: spec.half_life_seconds for spec in configuration_of(load_document(text)).queue_specs()}
    assert (specs["a"], specs["b"], specs["default"]) == (7 * 86_400.0, 86_400.0, 7 * 86_400.0)
