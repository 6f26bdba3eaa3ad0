"""Groups, order, limits and priority ceilings on the command line of a real server, as a manager and as members."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from corral.client import Client
from corral.kernel.errors import Forbidden
from tests.endtoend.platform import Platform, on_devices

pytestmark = pytest.mark.timeout(300)
QUEUE = "kind: Queue\nname: vision\nlimit: {devices: 16}\nmembersOnly: true\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server of several users: `lead` manages the queue of `ann`'s group, and `eve` is in neither."""
    made = Platform(tmp_path_factory.mktemp("teams"), "--trust-users")
    made.up()
    made.corral("apply", "-", given=QUEUE)
    for name in ("lead", "ann", "eve"):
        made.corral("users", "add", name)
    made.corral("groups", "make", "vision", "--queue", "vision", "--description", "who sees")
    made.corral("groups", "make", "vision-leads", "--manage", "vision")
    made.corral("groups", "add", "vision", "ann")
    made.corral("groups", "add", "vision-leads", "lead")
    yield made
    made.down()


def token(platform: Platform, name: str) -> str:
    """A token of an account, from its sign-in link."""
    link = platform.corral("users", "link", name).strip().partition("#link=")[2]
    with Client(platform.url) as client:
        return str(client.login(link=link)["token"])


class Person:
    """A user at the command line."""

    def __init__(self, platform: Platform, name: str) -> None:
        self._platform = platform
        self._env = {"CORRAL_SERVER": platform.url, "CORRAL_TOKEN": token(platform, name)}

    def corral(self, *words: str, code: int = 0, given: str | None = None) -> str:
        """Run `corral WORDS`; returns its output, or its error."""
        done = self._platform.run(*words, given=given, env=self._env)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def submit(self, document: dict[str, Any]) -> None:
        """Submit a job."""
        self.corral("submit", "-", given=json.dumps(document))


def names_in_line(platform: Platform) -> list[str]:
    return [each["name"] for each in json.loads(platform.corral("line", "--queue", "vision", "-o", "json"))]


def test_groups_say_who_may_use_a_queue(platform: Platform) -> None:
    shown = platform.corral("groups", "show", "vision")
    assert "who sees" in shown and "ann" in shown and "vision" in shown
    assert [each["name"] for each in json.loads(platform.corral("groups", "-o", "json")) if each["name"] == "vision"]
    eve = Person(platform, "eve")
    assert "queue-not-granted" in eve.corral("submit", "-", given=json.dumps(held("hers")), code=4)
    platform.corral("groups", "add", "vision", "eve")
    eve.submit(held("hers"))
    platform.corral("groups", "remove", "vision", "eve")
    assert "queue-not-granted" in eve.corral("submit", "-", given=json.dumps(held("again")), code=4)
    assert "only administrators" in eve.corral("groups", "add", "vision", "eve", code=4)
    platform.corral("groups", "make", "short")
    platform.corral("groups", "grant", "short", "--queue", "vision")
    assert json.loads(platform.corral("groups", "show", "short", "-o", "json"))["queues"] == ["vision"]
    platform.corral("groups", "revoke", "short", "--queue", "vision")
    platform.corral("groups", "change", "short", "--description", "for a while")
    found = json.loads(platform.corral("groups", "show", "short", "-o", "json"))
    assert (found["queues"], found["description"]) == ([], "for a while")
    platform.corral("groups", "rm", "short")
    assert "There is no group short; expected one of" in platform.refused("groups", "show", "short", code=3)


def held(name: str, devices: int = 4, replicas: int = 4, **more: Any) -> dict[str, Any]:
    return on_devices(name, devices, replicas=replicas, queue="vision", preemptible=False, **more)


def test_a_manager_reorders_what_waits_and_members_do_not(platform: Platform) -> None:
    ann, lead = Person(platform, "ann"), Person(platform, "lead")
    ann.submit(held("holder"))
    platform.until("ann~holder", lambda job: job["state"] == "running")
    for name in ("one", "two", "three"):
        ann.submit(held(name))
    platform.until("ann~three", lambda job: "three" in names_in_line(platform))  # control has read all submissions
    assert names_in_line(platform) == ["one", "two", "three"]
    assert "managers" in ann.corral("order", "three", "--first", code=4)
    said = lead.corral("order", "ann~three", "--first")
    assert "three is put first in queue vision." in said
    lead.corral("order", "ann~one", "--last")
    lead.corral("order", "ann~two", "--before", "ann~three")
    told = platform.until("ann~two", lambda job: names_in_line(platform) == ["two", "three", "one"])
    assert told["state"] == "waiting"
    ann.corral("stop", "holder")
    platform.until("ann~two", lambda job: job["state"] == "running")
    assert "does not wait" in lead.corral("order", "ann~two", "--last", code=4)


def test_a_manager_limits_members_below_the_queues_own(platform: Platform) -> None:
    ann, lead = Person(platform, "ann"), Person(platform, "lead")
    assert "managers" in ann.corral("limit", "vision", "--user", "devices=1", code=4)
    assert "more than the 16" in lead.corral("limit", "vision", "--all", "devices=17", code=2)
    lead.corral("limit", "vision", "--user", "devices=4", "--dry-run")
    assert "no limits" in lead.corral("limit", "vision")
    lead.corral("limit", "vision", "--user", "devices=4")
    assert json.loads(lead.corral("limit", "vision", "-o", "json"))["userLimit"] == {"devices": "4"}
    ann.submit(held("within", 4, 1))
    platform.until("ann~within", lambda job: job["state"] == "running")
    ann.submit(held("beyond", 1, 1))
    code = platform.until(
        "ann~beyond", lambda job: bool(job["reasons"]) and job["reasons"]["binding"]["code"] == "user-limit"
    )
    assert "may hold 4" in code["reasons"]["binding"]["message"]
    platform.corral("apply", "-", given=QUEUE)
    assert "devices=4" in lead.corral("limit", "vision"), "an apply forgets no manager's limits"
    lead.corral("limit", "vision", "--clear")
    platform.until("ann~beyond", lambda job: job["state"] == "running")


def test_ceilings_of_priorities_are_set_for_groups_and_accounts(platform: Platform) -> None:
    ann = Person(platform, "ann")
    assert "100 is the most without a grant" in ann.corral(
        "submit", "-", given=json.dumps(held("urgent", 1, 1, priority="crit")), code=4
    )
    platform.corral("groups", "change", "vision", "--max-priority", "120")
    assert "120" in platform.corral("groups", "show", "vision")
    ann.submit(held("urgent", 1, 1, priority="crit"))
    platform.corral("users", "change", "ann", "--max-priority", "50")
    assert "maxPriority 50" in platform.corral("users")
    assert "the maxPriority of user ann is 50" in ann.corral(
        "submit", "-", given=json.dumps(held("again", 1, 1, priority="prod")), code=4
    )
    platform.corral("users", "change", "ann", "--max-priority", "none", "--email", "ann@example.org")
    assert platform.client.user("ann")["email"] == "ann@example.org"
    platform.corral("users", "add", "zoe", "--email", "zoe@example.org", "--max-priority", "20")
    made = platform.client.user("zoe")
    assert (made["email"], made["maxPriority"]) == ("zoe@example.org", 20)
    platform.corral("groups", "change", "vision", "--max-priority", "none")
    assert json.loads(platform.corral("groups", "show", "vision", "-o", "json"))["maxPriority"] is None
    assert platform.client.user("ann")["maxPriority"] is None
    with pytest.raises(Forbidden), Client(platform.url, token(platform, "ann")) as client:
        client.change_user("ann", max_priority=500)


def test_a_manager_edits_what_waits_in_the_queue(platform: Platform) -> None:
    ann, lead = Person(platform, "ann"), Person(platform, "lead")
    ann.submit(held("holder"))
    platform.until("ann~holder", lambda job: job["state"] == "running")
    ann.submit(held("small", 1, 1))
    lead.corral("edit", "ann~small", "--priority", "oppo")
    platform.until("ann~small", lambda job: job["priority"] == -1)
    assert "lead does not manage the queue default" in lead.corral("edit", "ann~small", "--queue", "default", code=4)
    assert "may not edit the job small of ann" in Person(platform, "eve").corral(
        "edit", "ann~small", "--priority", "1", code=4
    )
