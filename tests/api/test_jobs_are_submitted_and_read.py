"""Submitting, reading and controlling jobs over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.client import Client
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from tests.api.harness import Server


def job(name: str, **more: object) -> str:
    return json.dumps({"name": name, "framework": "shell", "roles": {"worker": {"command": "true"}}, **more})


def test_a_submitted_job_is_found_by_id_by_name_and_by_owner_and_name(alice: Client) -> None:
    made = alice.submit(job("hello"))
    assert made["state"] == "waiting" and made["user"] == "alice"
    assert made["createdAt"].endswith("Z")
    for ref in (made["id"], "hello", "alice~hello"):
        assert alice.job(ref)["id"] == made["id"]


def test_yaml_and_json_are_taken_and_the_canonical_document_is_kept(alice: Client) -> None:
    made = alice.submit("name: in-yaml\nframework: shell\nroles:\n  worker: {command: 'true'}\n")
    document = alice.document(made["id"])
    assert document["kind"] == "UnifiedJob" and document["metadata"]["name"] == "in-yaml"
    assert alice.submit(json.dumps({**document, "metadata": {"name": "canonical"}}))["name"] == "canonical"


def test_the_same_idempotency_key_gives_the_same_job_and_another_body_under_it_is_refused(alice: Client) -> None:
    first = alice.submit(job("once"), idempotency_key="k1")
    assert alice.submit(job("once"), idempotency_key="k1")["id"] == first["id"]
    with pytest.raises(Conflict):
        alice.submit(job("other"), idempotency_key="k1")


def test_a_live_job_keeps_its_name_to_itself(alice: Client) -> None:
    alice.submit(job("taken"))
    with pytest.raises(Conflict) as refused:
        alice.submit(job("taken"))
    assert refused.value.code == "name-taken"


def test_parameters_of_the_call_fill_the_document(alice: Client) -> None:
    roles = "roles:\n  worker: {command: 'echo <% $parameters.lr %>'}\n"
    text = "name: tuned\nframework: shell\nparameters: {lr: '0.5'}\n" + roles
    made = alice.submit(text, parameters={"lr": "0.1"})
    assert "0.1" in json.dumps(alice.document(made["id"])["spec"]["roles"])


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


def test_of_a_stream_of_documents_the_one_job_is_taken_and_the_rest_is_named(alice: Client) -> None:
    text = f"{SERVICE}---\n{job('beside')}\n"
    made = alice.submit(text)
    assert made["name"] == "beside"
    assert made["notes"] == ["Service/web (line 1) is no document of Corral's and left out; kubectl apply takes it."]
    assert alice.submit(text.replace("beside", "tried"), dry_run=True)["notes"] == made["notes"]
    checked = alice.validate(text)
    assert (checked["valid"], checked["notes"]) == (True, made["notes"])


@pytest.mark.parametrize("second", [job("second"), "kind: Queue\nname: q", SERVICE.strip()])
def test_any_other_stream_of_documents_is_refused_whole(alice: Client, second: str) -> None:
    first = job("first") if second != SERVICE.strip() else SERVICE.strip()
    with pytest.raises(InvalidInput, match=r"none is a job|nothing was taken") as refused:
        alice.submit(f"{first}\n---\n{second}\n")
    assert refused.value.code == "invalid-document"
    names = {each["name"] for each in alice.jobs(limit=200)["items"]}
    assert not names & {"first", "second"}


def test_a_dry_run_stores_nothing(alice: Client) -> None:
    trial = alice.submit(job("only-tried"), dry_run=True)
    assert trial["document"]["metadata"]["name"] == "only-tried"
    with pytest.raises(NotFound):
        alice.job("only-tried")


def test_validation_says_where_and_what(alice: Client) -> None:
    found = alice.validate("name: x\nframework: shell\nroles:\n  worker:\n    comand: 'true'\n")
    assert not found["valid"]
    assert found["problems"][0]["line"] == 5
    assert "command" in found["problems"][0]["message"]
    assert alice.validate(job("x"))["valid"]


def test_a_refused_document_names_every_problem(alice: Client) -> None:
    with pytest.raises(InvalidInput) as refused:
        alice.submit("name: Not A Name\nroles:\n  worker: {comand: x}\n")
    assert refused.value.code == "invalid-document"
    problems = refused.value.details["problems"]
    assert isinstance(problems, list) and len(problems) >= 2


def test_pages_show_every_job_once_in_order_and_filters_narrow_them(server: Server) -> None:
    with server.client("pager") as client:
        names = [f"paged-{number}" for number in range(7)]
        for name in names:
            client.submit(job(name, tags=["even" if int(name[-1]) % 2 == 0 else "odd"]))
            server.clock.advance(1)
        seen: list[str] = []
        after = ""
        while True:
            page = client.jobs(user=["pager"], limit=3, after=after)
            seen += [item["name"] for item in page["items"]]
            after = page["next"] or ""
            if not after:
                break
        assert seen == names[::-1]
        assert len(client.jobs(user=["pager"], tag="even")["items"]) == 4
        assert [item["name"] for item in client.jobs(user=["pager"], q="paged-3")["items"]] == ["paged-3"]
        assert client.jobs(user=["pager"], state=["running"])["items"] == []
        assert [item["name"] for item in client.jobs(user=["pager"], order="name")["items"]] == names
        with pytest.raises(InvalidInput):
            client.jobs(order="sideways")
        with pytest.raises(InvalidInput):
            client.jobs(after="not-a-cursor")


def test_jobs_are_narrowed_to_those_submitted_within_days_and_times(server: Server) -> None:
    with server.client("kim") as kim:
        made = kim.submit(job("dated"))

        def found(**times: Any) -> list[str]:
            return [each["id"] for each in kim.jobs(user="kim", **times)["items"]]

        assert found(created_after="2026-01-01", created_before="2100-01-01") == [made["id"]]
        assert found(created_after="2026-01-01T00:00:00+02:00") == [made["id"]]
        assert found(created_after="2100-01-01") == found(created_before="2026-01-01T00:00:00Z") == []
        assert found(created_before=made["createdAt"]) == []
        for wrong in ("noon", "1e999", "-1", "2026-13-01", "9" * 50):
            with pytest.raises(InvalidInput, match="is a time such as"):
                found(created_after=wrong)


def test_stop_restart_scale_are_written_as_what_people_want(server: Server, alice: Client) -> None:
    made = alice.submit(
        "name: elastic\nframework: shell\nroles:\n  worker: {replicas: {min: 1, max: 3}, command: 'true'}\n"
    )
    alice.scale(made["id"], 2)
    with pytest.raises(InvalidInput):
        alice.scale(made["id"], 9)
    alice.stop(made["id"])
    kinds = [event["kind"] for event in alice.job_events(made["id"])["items"]]
    assert kinds[:3] == ["job.submitted", "job.scale-requested", "job.stop-requested"]


def test_a_waiting_job_is_edited_by_its_owner_in_typed_and_bounded_words(server: Server, alice: Client) -> None:
    made = alice.submit(job("edited"))
    tried = alice.edit(made["id"], priority="prod", max_duration=90, dry_run=True)
    assert (tried["id"], tried["name"], tried["dryRun"]) == (made["id"], "edited", True)
    assert tried["changes"] == [
        {"field": "priority", "before": "10", "after": "100"},
        {"field": "maxDuration", "before": "no limit", "after": "1m30s"},
    ]
    assert alice.edit("edited", priority=100)["dryRun"] is False
    events = alice.job_events(made["id"])["items"]
    assert [event["kind"] for event in events] == ["job.submitted", "job.edit-requested"]
    assert "edit" in made["allowed"]
    for bad in (
        {},
        {"priority": 10**10},
        {"priority": "p" * 30},
        {"max_duration": -1},
        {"queue": ""},
        {"queue": "q" * 99},
    ):
        with pytest.raises(InvalidInput):
            alice.edit(made["id"], **bad)  # type: ignore[arg-type]
    with server.client("bob") as bob, pytest.raises(Forbidden, match="bob may not edit the job edited of alice"):
        bob.edit(made["id"], priority="oppo")


def test_a_running_job_is_not_deleted(alice: Client) -> None:
    made = alice.submit(job("kept"))
    with pytest.raises(Conflict):
        alice.delete(made["id"])


def test_others_may_look_at_a_job_and_not_touch_it(server: Server, alice: Client) -> None:
    made = alice.submit(job("mine"))
    with server.client("bob") as bob:
        assert bob.job(made["id"])["name"] == "mine"
        assert bob.job(made["id"])["allowed"] == []
        assert made["allowed"] == alice.job(made["id"])["allowed"]
        assert {"stop", "restart", "suspend", "resume", "scale", "delete", "exec", "logs"} <= set(made["allowed"])
        for act in (bob.stop, bob.restart, bob.delete):
            with pytest.raises(Forbidden) as refused:
                act(made["id"])
            assert refused.value.details["rule"] == "job-not-owned"
            assert str(refused.value).startswith("bob may not ") and "the job mine of alice" in str(refused.value)


def test_what_is_not_there_is_not_found(alice: Client) -> None:
    for ask in (alice.job, alice.document, alice.tasks, alice.job_events, alice.explain, alice.stop):
        with pytest.raises(NotFound):
            ask("no-such-job")
