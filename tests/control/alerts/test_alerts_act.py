"""Alerts stop and tag jobs, cordon nodes and are mailed by routes: once, within bounds, and as events that name them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from corral.control.alerts.actions import AlertActions
from corral.control.alerts.clock_fixes import ClockFixer
from corral.control.alerts.keeper import AlertKeeper
from corral.control.alerts.of_files import keeper_of_files, read_routes
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.accounts import AuditFilter
from corral.model.alerts.stored import AlertSource, Silence, StoredAlert
from corral.model.cordons import Cordon
from corral.model.metrics.samples import Samples
from corral.model.notifications.channels import Channel, ChannelKind, Outgoing
from corral.model.notifications.messages import about_code
from corral.monitor.rules.inhibition import Inhibited
from corral.monitor.rules.routes import parse_routes
from corral.spec.errors import SpecError
from tests.control.harness import House, PaperEngine, short

ROUTES = """
repeat: 1h
mostNodes: 1
mailTo: [ops@example.org, boss@example.org]
webhooks: {pager: "https://pager.example/alerts"}
inhibit:
  - {source: [alertname=NodeDown], target: ['alertname=~"Broken|NodeDown"'], equal: [node_name]}
routes:
  - {match: [alertname=Quiet], actions: []}
  - {match: ['alertname=~"Broken|Quiet"'], actions: [cordon-nodes]}
  - {match: [alertname=Idle], actions: [stop-jobs, tag-jobs], tags: [stopped-by-alert]}
  - {match: [alertname=Told], actions: [email-admin, email-user]}
  - {match: [alertname=Paged], actions: [webhook]}
  - {match: [alertname=NodeGpuLowPerfState], actions: [fix-nvidia-gpu-low-perf]}
"""


def alert(name: str, **labels: str) -> StoredAlert:
    """An alert that fires, as the webhook stores it."""
    labels = {"alertname": name, **labels}
    summary = {"summary": f"{name} it is."}
    return StoredAlert(AlertSource.ALERTMANAGER, name, labels, summary, "firing", 1.0, fired_at=1.0, expires_at=1e12)


class Acting:
    """A running control, a keeper that acts, and alerts that a test tells."""

    def __init__(self, house: House) -> None:
        self.house, self.store, self.clock = house, house.store, VirtualClock(house.clock.now())
        self.asked: list[tuple[str, str]] = []
        self.refusal = ""
        self.fixer = ClockFixer(self, self.store, self.clock)
        actions = AlertActions(parse_routes(ROUTES), self.store, self.fixer)
        self.keeper = AlertKeeper((), self.store, Samples, self.clock, actions=actions)

    async def post(self, node: str, path: str, seconds: float) -> str:
        """Be asked as an agent."""
        self.asked.append((node, path))
        if self.refusal:
            raise Unavailable("agent-refuses", self.refusal)
        return "Its clocks are now 1410 MHz, and 1593 MHz of its memory."

    async def tell(self, *alerts: StoredAlert) -> None:
        """Replace Alertmanager's alerts, and evaluate."""
        await self.store.replace_alerts(AlertSource.ALERTMANAGER, lambda _: alerts)
        await self.keeper.evaluate()

    async def mails(self) -> list[tuple[str, str, str]]:
        """The mails that wait to be sent about alerts: channel, subject and text."""
        queued = await self.store.due_messages(self.clock.now() + 1.0, 100)
        alerts = [each for each in queued if each.message.event == "alert"]
        return sorted((each.channel, each.message.subject, each.message.text) for each in alerts)

    async def add_channel(self, number: int, kind: ChannelKind, *, verified: bool) -> None:
        """Give ada a channel."""
        at = self.clock.now()
        channel = Channel(
            f"c{number}", "ada", f"n{number}", kind, "ada@example.org", verified_at=at if verified else None
        )
        code = Outgoing(f"code/{number}", "ada", channel.id, channel.name, about_code("ada", channel.name, at))
        await self.store.add_channel(channel, {}, code)

    async def cordoned(self) -> list[str]:
        """The names of the cordoned nodes."""
        return sorted(await self.store.cordons())


@pytest.fixture
async def acting(house: House) -> Acting:
    house.engine = PaperEngine(nodes=3)
    await house.begin()
    return Acting(house)


async def test_a_job_is_stopped_and_tagged_and_its_events_name_the_alert(acting: Acting) -> None:
    mine = await acting.house.submit(short("idle", devices=1))
    other = await acting.house.submit(short("busy", devices=1))
    for job in (mine, other):
        await acting.house.until(job, "running")
    await acting.tell(
        alert("Idle", job_name="ada~idle"), alert("Idle", job_name="busy"), alert("Idle", job_name="no~no")
    )
    async with acting.house.patience():
        await acting.house.until(mine, "stopped")
    assert await acting.store.tags_of(mine) == ("stopped-by-alert",)
    events = await acting.store.events_of(mine)
    assert {each.kind for each in events if each.actor == "alert:Idle"} >= {"job.stop-requested"}
    lines = (await acting.store.audit(AuditFilter(actor="alert:Idle"))).items
    assert [line.action for line in lines] == ["job.tag", "job.stop"]
    record = await acting.store.find_job(other)
    assert record is not None and record.live, "a name alone could be anybody's"


async def test_so_many_nodes_are_cordoned_and_an_uncordoned_one_is_left_until_the_repeat(acting: Acting) -> None:
    (node, *_) = sorted(each.node.name for each in await acting.store.nodes())
    short_name = node.partition("/")[2]
    told = [alert("Broken", node_name=short_name), alert("Broken", node_name="elsewhere")]
    await acting.tell(*told)
    assert await acting.cordoned() == [node]
    cordon = (await acting.store.cordons())[node]
    assert (cordon.by, cordon.why) == ("alert:Broken", "Broken it is.")
    await acting.store.remove_cordon(node, actor="root", at=1.0)
    await acting.keeper.evaluate()
    assert await acting.cordoned() == [], "an alert acts once"
    acting.clock.advance(3600.0)
    await acting.keeper.evaluate()
    assert await acting.cordoned() == [node]


async def test_the_agent_of_a_node_sets_the_clocks_of_a_slow_gpu_once_an_hour_and_that_is_audited(
    acting: Acting,
) -> None:
    slow = alert("NodeGpuLowPerfState", node_name="node1", minor_number="3")
    wrong = [alert("NodeGpuLowPerfState", node_name=node, minor_number=gpu) for node, gpu in WRONG]
    await acting.tell(slow, *wrong)
    await acting.fixer.settled()
    assert acting.asked == [("local/node1", "/fix-nvidia-gpu-low-perf/3")]
    (line,) = (await acting.store.audit(AuditFilter(actor="alert:NodeGpuLowPerfState"))).items
    assert (line.action, line.resource, line.rule) == ("node.fix-gpu-clocks", "node:local/node1", "alert-route")
    await acting.tell(msgspec.structs.replace(slow, labels=slow.labels | {"again": "yes"}))
    await acting.fixer.settled()
    assert len(acting.asked) == 1, "another alert about the same GPU changes nothing within the hour"
    acting.clock.advance(3600.0)
    acting.refusal = "There is no NVIDIA GPU of the minor number 3 here."
    await acting.keeper.evaluate()
    await acting.fixer.settled()
    told = {each.kind: each.message for each in (await acting.store.events_of_server()).items if "gpu" in each.kind}
    assert told == {
        "server.gpu-clocks-set": "GPU 3 of local/node1: Its clocks are now 1410 MHz, and 1593 MHz of its memory.",
        "server.gpu-clocks-not-set": "GPU 3 of local/node1: There is no NVIDIA GPU of the minor number 3 here.",
    }


WRONG = [("node1", ""), ("node1", "3; reboot"), ("elsewhere", "3")]


def test_clocks_are_set_by_agents_alone() -> None:
    routes = parse_routes("routes: [{match: [alertname=Slow], actions: [fix-nvidia-gpu-low-perf]}]")
    metrics = SimpleNamespace(agents=None, samples=Samples, of_machines=None)
    with pytest.raises(InvalidInput, match="needs agents"):
        keeper_of_files(None, routes, None, metrics, url="")  # type: ignore[arg-type]


async def test_alerts_keep_no_more_nodes_cordoned_than_the_file_allows(house: House) -> None:
    await house.begin()
    acting = Acting(house)
    await house.store.put_cordon(Cordon("local/other", "alert:Broken", "", 1.0))
    await acting.tell(alert("Broken", node_name="node0"))
    assert await acting.cordoned() == ["local/other"]


async def test_silenced_and_quiet_alerts_do_nothing(acting: Acting) -> None:
    now = acting.clock.now()
    await acting.store.add_silence(Silence("s", ("node_name=node0",), "root", "known", now, now + 60.0))
    await acting.tell(alert("Broken", node_name="node0"), alert("Quiet", node_name="node0"))
    assert await acting.cordoned() == []
    acting.clock.advance(61.0)
    await acting.keeper.evaluate()
    assert await acting.cordoned() == ["local/node0"]


async def test_an_alert_is_mailed_once_to_administrators_and_to_the_verified_addresses_of_its_user(
    acting: Acting,
) -> None:
    job = await acting.house.submit(short("lazy", devices=1))
    await acting.add_channel(1, ChannelKind.MAIL, verified=True)
    await acting.add_channel(2, ChannelKind.MAIL, verified=False)
    await acting.add_channel(3, ChannelKind.SLACK, verified=True)
    told = alert("Told", job_name="ada~lazy", severity="warn")
    await acting.tell(told)
    subject, text = (
        "Alert Told (warn)",
        "Told it is. It fires since 1970-01-01T00:00:01.000Z. Labels: job_name ada~lazy.",
    )
    once = [(each, subject, text) for each in ("c1", "mail:boss@example.org", "mail:ops@example.org")]
    assert await acting.mails() == once
    queued = await acting.store.due_messages(acting.clock.now() + 1.0, 100)
    assert {each.message.job for each in queued if each.message.event == "alert"} == {job}, "for the link to its page"
    await acting.keeper.evaluate()
    assert await acting.mails() == once
    acting.clock.advance(3600.0)
    await acting.keeper.evaluate()
    assert await acting.mails() == sorted(once * 2), "it still fires after `repeat`"


async def test_an_alert_of_nobody_is_mailed_to_administrators_alone(acting: Acting) -> None:
    await acting.tell(alert("Told", node_name="node0"))
    assert [channel for channel, _, _ in await acting.mails()] == ["mail:boss@example.org", "mail:ops@example.org"]


async def test_a_receiver_is_told_when_an_alert_begins_and_when_it_is_over(acting: Acting) -> None:
    fires = alert("Paged", node_name="node0")
    await acting.tell(fires)
    await acting.keeper.evaluate()
    acting.clock.advance(60.0)
    over = msgspec.structs.replace(fires, state="resolved", resolved_at=acting.clock.now())
    await acting.tell(over)
    await acting.keeper.evaluate()
    queued = await acting.store.due_messages(acting.clock.now() + 1.0, 100)
    assert [(each.channel, each.message.data["status"]) for each in queued] == [
        ("alerts:pager", "firing"),
        ("alerts:pager", "resolved"),
    ]


def test_routes_that_mail_are_refused_without_a_mail_server(tmp_path: Path) -> None:
    routes = tmp_path / "routes.yml"
    routes.write_text(ROUTES)
    with pytest.raises(InvalidInput, match="need a mail server"):
        read_routes(routes, mail=False)
    assert read_routes(routes, mail=True).mails


async def test_an_alert_does_nothing_while_another_one_of_its_node_inhibits_it(acting: Acting) -> None:
    down = alert("NodeDown", node_name="node0")
    broken = [alert("Broken", node_name="node0"), alert("Broken", node_name="node1")]
    await acting.tell(down, *broken)
    assert await acting.cordoned() == ["local/node1"]
    await acting.store.remove_cordon("local/node1", actor="root", at=1.0)
    await acting.tell(msgspec.structs.replace(down, state="resolved", resolved_at=2.0), broken[0])
    assert await acting.cordoned() == ["local/node0"], "what inhibited it is over"


def test_what_is_source_and_target_is_not_inhibited_by_its_like() -> None:
    inhibit = parse_routes(ROUTES).inhibit
    down = {"alertname": "NodeDown", "node_name": "n"}
    found = Inhibited(inhibit, [down])
    assert not found.holds(down), "else it would inhibit itself"
    assert found.holds({"alertname": "Broken", "node_name": "n"})
    assert not found.holds({"alertname": "Broken", "node_name": "m"}) and not found.holds({"alertname": "Idle"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a file of routes is a mapping with a list `routes`"),
        ("{routes: [{match: [], actions: [stop-jobs]}]}", "there are 1 to 20 matchers"),
        ("{routes: [{match: [a], actions: [stop-jobs]}]}", "A matcher is written as"),
        ("{routes: [{match: [a=b], actions: [stop-job]}]}", 'there is no action stop-job; did you mean "stop-jobs"?'),
        ("{routes: [{match: [a=b], actions: [tag-jobs]}]}", "tags and the action tag-jobs go together"),
        ("{routes: [{match: [a=b], actions: [tag-jobs], tags: ['a b']}]}", "tags of 1 to 64 characters"),
        ("{routes: [{match: a=b}]}", "match is a list of texts, and not"),
        ("{routes: [], mostNodes: -1}", "mostNodes is a whole number up to 10000, and not -1"),
        ("{routes: [], repeat: daily}", "a duration is written as"),
        (
            "{routes: [{match: [a=b], actions: [email-admin]}]}",
            "the action email-admin needs addresses, such as mailTo",
        ),
        ("{routes: [], mailTo: [ops]}", "'ops' is no mail address"),
        ("{routes: [], mailTo: ops@example.org}", "mailTo is a list of texts, and not"),
        ("{routes: [{match: [a=b], actions: [webhook]}]}", "the action webhook needs receivers, such as webhooks"),
        ("{routes: [], webhooks: {pager: 'http//x'}}", "the URL must begin with https:// and name a host"),
        ("{routes: [], webhooks: {'a b': 'https://x.org'}}", "the name of a webhook has 1 to 64 letters"),
        ("{routes: [], webhooks: [x]}", "webhooks are at most 20 URLs by names, and not"),
        ("{routes: [], inhibit: [{source: [a=b]}]}", "there are 1 to 20 matchers"),
        ("{routes: [], inhibit: [{source: [a=b], target: [c], equal: []}]}", "A matcher is written as"),
        (
            "{routes: [], inhibit: [{source: [a=b], target: [c=d], equal: ['1']}]}",
            "equal has at most 20 names of labels",
        ),
        ("{routes: [], inhibit: [{source: [a=b], target: [c=d], same: [x]}]}", "there is no field same"),
        ("{routes: [], inhibit: [x]}", "a rule of inhibit is a mapping with source and target, and not"),
        ("{routes: [], inhibit: x}", "inhibit is a list of at most 20 rules, and not"),
        ("{routes: [], nodes: 1}", "there is no field nodes"),
    ],
)
def test_a_broken_file_of_routes_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_routes(text, "routes.yml")
    assert message in str(refused.value)
