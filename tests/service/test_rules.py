"""The authorization rules, as an independent table of roles and actions."""

from __future__ import annotations

import pytest

from corral.service.access.refusal_message import refusal
from corral.service.access.rules import (
    ACTIONS,
    ADMINISTRATION,
    MANAGING,
    OPEN,
    OWN_JOB,
    OWN_THINGS,
    RULES,
    RUNTIME,
    STORAGE,
    Resource,
    decide,
)
from corral.service.actor import Actor

ANN = Actor("ann", queues=("gold",), storages=("data",))
BOB = Actor("bob")
EVE = Actor("eve", manages=("gold",))
ROOT = Actor("root", "admin")
JOB = Actor("ann", "job", kind="job", job="j1")
APP = Actor("ann", kind="application")
ROOTS_APP = Actor("root", "admin", kind="application")
PROMETHEUS = Actor("(monitoring)", kind="monitoring")
ANNS = Resource("job", "j1", owner="ann")
OTHER = Resource("job", "j2", owner="ann")

CASES = [
    (JOB, "runtime.peers", ANNS, True, "job-token-own-job"),
    (JOB, "runtime.checkpoint", ANNS, True, "job-token-own-job"),
    (JOB, "runtime.progress", ANNS, True, "job-token-own-job"),
    (JOB, "runtime.scalars", ANNS, True, "job-token-own-job"),
    (JOB, "runtime.scalars", OTHER, False, "job-token-only-runtime"),
    (JOB, "runtime.progress", OTHER, False, "job-token-only-runtime"),
    (JOB, "runtime.report", OTHER, False, "job-token-only-runtime"),
    (JOB, "job.stop", ANNS, False, "job-token-only-runtime"),
    (JOB, "job.read", ANNS, False, "job-token-only-runtime"),
    (PROMETHEUS, "metrics.read", Resource("queue"), True, "monitoring-token"),
    (PROMETHEUS, "alert.tell", Resource("alert"), True, "monitoring-token"),
    (PROMETHEUS, "alert.silence", Resource("alert"), False, "monitoring-token-only"),
    (PROMETHEUS, "job.list", Resource("job"), False, "monitoring-token-only"),
    (PROMETHEUS, "user.read", Resource("user", owner="(monitoring)"), False, "monitoring-token-only"),
    (ROOT, "runtime.peers", ANNS, False, "runtime-needs-job-token"),
    (ANN, "runtime.report", ANNS, False, "runtime-needs-job-token"),
    (ROOT, "job.stop", ANNS, True, "administrator"),
    (ROOT, "user.create", Resource("user"), True, "administrator"),
    (BOB, "job.read", ANNS, True, "open-to-all"),
    (BOB, "cluster.read", Resource("cluster"), True, "open-to-all"),
    (ANN, "job.submit", Resource("queue", queue="gold", restricted=True), True, "queue-granted"),
    (BOB, "job.submit", Resource("queue", queue="gold", restricted=True), False, "queue-not-granted"),
    (BOB, "job.submit", Resource("queue", queue="default"), True, "queue-open"),
    (ANN, "storage.use", Resource("storage", "data"), True, "storage-granted"),
    (BOB, "storage.use", Resource("storage", "data"), False, "storage-not-granted"),
    (APP, "token.create", Resource("token", owner="ann"), False, "application-token"),
    (ROOTS_APP, "user.create", Resource("user"), False, "application-token"),
    (ROOTS_APP, "user.list", Resource("user"), True, "administrator"),
    (APP, "job.stop", ANNS, True, "job-owner"),
    (ANN, "job.stop", ANNS, True, "job-owner"),
    (BOB, "job.stop", ANNS, False, "job-not-owned"),
    (BOB, "job.logs", ANNS, False, "job-not-owned"),
    (BOB, "job.environment", ANNS, False, "job-not-owned"),
    (EVE, "job.stop", Resource("job", "j3", owner="ann", queue="gold"), True, "queue-manager"),
    (EVE, "job.logs", Resource("job", "j3", owner="ann", queue="gold"), True, "queue-manager"),
    (EVE, "job.exec", Resource("job", "j3", owner="ann", queue="gold"), False, "job-not-owned"),
    (EVE, "job.environment", Resource("job", "j3", owner="ann", queue="gold"), False, "job-not-owned"),
    (EVE, "job.stop", Resource("job", "j3", owner="ann", queue="default"), False, "job-not-owned"),
    (EVE, "job.order", Resource("job", "j3", owner="ann", queue="gold"), True, "queue-manager"),
    (EVE, "job.submit", Resource("queue", queue="gold", restricted=True), True, "queue-granted"),
    (ANN, "job.order", ANNS, False, "managers-only"),
    (BOB, "queue.limit", Resource("queue", "gold", queue="gold"), False, "managers-only"),
    (ANN, "secret.put", Resource("secret", "s", owner="ann"), True, "own-account"),
    (BOB, "secret.put", Resource("secret", "s", owner="ann"), False, "administrators-only"),
    (BOB, "user.read", Resource("user", "ann", owner="ann"), False, "administrators-only"),
    (ANN, "user.create", Resource("user"), False, "administrators-only"),
    (ANN, "audit.read", Resource("audit"), False, "administrators-only"),
    (ANN, "no.such.action", Resource("x", owner="ann"), False, "administrators-only"),
]


@pytest.mark.parametrize(("actor", "action", "resource", "allowed", "rule"), CASES)
def test_the_first_rule_that_fits_decides(
    actor: Actor, action: str, resource: Resource, allowed: bool, rule: str
) -> None:
    decision = decide(actor, action, resource)
    assert (decision.allowed, decision.rule) == (allowed, rule)


def test_every_rule_has_a_case_and_a_sentence() -> None:
    assert {rule for *_, rule in CASES} == {rule.name for rule in RULES}
    assert all(rule.meaning.endswith(".") for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_a_job_token_never_does_what_people_do(action: str) -> None:
    assert decide(JOB, action, ANNS).allowed == (action in RUNTIME)


@pytest.mark.parametrize("action", sorted(OWN_JOB | OWN_THINGS | ADMINISTRATION))
def test_nobody_touches_what_is_anothers(action: str) -> None:
    assert not decide(BOB, action, Resource("thing", "j1", owner="ann")).allowed


def test_no_action_is_in_two_groups() -> None:
    groups = [OPEN, OWN_JOB, OWN_THINGS, ADMINISTRATION, RUNTIME, STORAGE, MANAGING]
    assert sum(map(len, groups)) + 1 == len(ACTIONS)


def test_an_empty_owner_is_nobodys() -> None:
    assert not decide(Actor("", "job", kind="job"), "runtime.peers", Resource("job", "")).allowed


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_every_refusal_is_a_sentence_without_the_actions_own_word(action: str) -> None:
    resource = Resource("job", "1m83k2c4v5w6x", owner="ann", title="digits")
    said = refusal(BOB, action, resource, decide(BOB, action, resource).rule)
    assert said.startswith("bob may not ") and said.endswith(").")
    assert action not in said and "1m83k2c4v5w6x" not in said


def test_a_refusal_names_the_job_its_owner_and_the_rule() -> None:
    said = refusal(BOB, "job.logs", Resource("job", "1m83k2c4v5w6x", owner="ann", title="digits"), "job-not-owned")
    assert said == (
        "bob may not read the log of the job digits of ann: only its owner, managers of its queue and administrators "
        "may do this to a job (rule job-not-owned)."
    )
    made = refusal(BOB, "user.create", Resource("user"), "administrators-only")
    assert made == "bob may not make accounts: only administrators may do this (rule administrators-only)."
