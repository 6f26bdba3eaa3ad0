"""Alerts, signs of trouble, prices and past use for the portal's pages on monitoring, and their pictures for the docs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from playwright.sync_api import Page, expect

from corral.model.idle.machine import Action, IdleState, Spell
from corral.model.usage import DAY
from tests.portal.harness import Portal

PRICES = """kind: Prices
name: default
currency: EUR
rates:
  - {deviceHour: 1.20, cpuHour: 0.02, memoryGibHour: 0.003}
  - {queue: production, deviceHour: 2.40}
"""
RULES = """
groups:
  - name: pictures
    rules:
      - alert: CorralDevicesInUse
        expr: sum(corral_devices{state="used"}) / sum(corral_devices) > 0.5
        labels: {severity: info}
        annotations: {summary: "{{ $value | humanizePercentage }} of the devices are in use."}
      - alert: CorralJobsWaitLong
        expr: sum by (reason) (corral_jobs_waiting) > 0
        for: 1h
        labels: {severity: warn}
        annotations: {summary: "Jobs that wait for this reason: {{ $value }}."}
"""
_TOLD = (
    ("NvidiaSmiDoubleEccError", "fatal", "node4 has double-bit ECC errors on device 2.", 7, {"node_name": "node4"}),
    ("NodeFilesystemUsage", "warn", "/mnt/scratch is 87 % full.", 95, {"node_name": "node2", "device": "nvme1n1"}),
    ("JobUsesNothing", "warn", "notebook has left its device idle for two hours.", 12, {"job_name": "tomas~notebook"}),
    ("NodeNotReady", "error", "node1 does not answer.", 31, {"node_name": "node1"}),
)
"""Name, severity, summary, minutes since it began, and labels."""


def alert(
    name: str, severity: str, summary: str, *, minutes: float, over: bool = False, **labels: str
) -> dict[str, Any]:
    """An alert in the JSON of Alertmanager that began so many minutes ago, and has ended now or not."""
    now = datetime.now(UTC)
    return {
        "status": "resolved" if over else "firing",
        "labels": {"alertname": name, "severity": severity, **labels},
        "annotations": {"summary": summary},
        "startsAt": (now - timedelta(minutes=minutes)).isoformat(),
        "endsAt": now.isoformat() if over else "0001-01-01T00:00:00Z",
    }


def tell(portal: Portal, path: str, body: dict[str, Any]) -> None:
    """Send what another program would send to the API."""
    token = {"Authorization": f"Bearer {portal.client.token}"}
    httpx2.post(f"{portal.url}/api/v3{path}", json=body, headers=token, timeout=60).raise_for_status()


def tell_alerts(portal: Portal, *alerts: dict[str, Any]) -> None:
    """Tell alerts as an Alertmanager would."""
    tell(portal, "/alerts/webhook", {"alerts": alerts})


def end_alerts(portal: Portal) -> None:
    """Tell that all alerts of the Alertmanager have ended, and end all silences."""
    going = [each for each in portal.client.alerts()["items"] if each["source"] == "alertmanager"]
    ended = [{"status": "resolved", "labels": each["labels"], "startsAt": each["since"]} for each in going]
    tell_alerts(portal, *ended)
    for silence in portal.client.silences()["items"]:
        portal.client.unsilence(silence["id"])


def fault(node: str, message: str, device: int, *, fatal: bool, code: str = "") -> dict[str, Any]:
    """An event of NVSentinel about a device."""
    return {
        "nodeName": node,
        "agent": "syslog-health-monitor",
        "checkName": code or "GpuThermalWatch",
        "isFatal": fatal,
        "message": message,
        "errorCode": [code] if code else [],
        "entitiesImpacted": [{"entityType": "GPU", "entityValue": str(device)}],
    }


def tell_faults(portal: Portal, *faults: dict[str, Any]) -> None:
    """Tell health events as NVSentinel would."""
    tell(portal, "/health-events", {"events": faults})


def past_use(database: Path, days: Sequence[tuple[str, str, float]], many: int) -> None:
    """Write the use of jobs that were removed: of so many days up to yesterday, by user, queue and devices held."""
    today = int(datetime.now(UTC).timestamp() // DAY)
    lines = []
    for back in range(1, many):
        day = today - back
        weekend = (day + 3) % 7 > 4
        for place, (user, queue, devices) in enumerate(days):
            wave = 0.55 + 0.45 * (((day * (place + 3) * 7919) % 97) / 97)
            used = devices * DAY * wave * (0.45 if weekend else 1.0)
            lost = used * (0.02 + 0.1 * (((day + place) * 31) % 11 == 0))
            measured, busy, idle = used * 0.97, used * (0.9 - 0.12 * (place + 1)), used * 0.03 * (place + 1)
            known = used * 0.485, used * 2.6, used * 9.1, measured, busy, idle
            lines.append((day, user, queue, "described-a100", used, lost, used / 2, used * 4, used * 16, *known))
    with sqlite3.connect(database, timeout=60) as connection:
        sums = "device_seconds, lost_device_seconds, task_seconds, cpu_seconds, memory_gib_seconds"
        sums += ", measured_task_seconds, used_cpu_seconds, used_memory_gib_seconds"
        sums += ", measured_device_seconds, used_device_seconds, idle_device_seconds"
        connection.executemany(
            f"INSERT INTO usage_days (day, user, queue, model, {sums}) VALUES ({', '.join('?' * 15)})", lines
        )


def idle_spell(portal: Portal, job: str, hours: float, *, idle: int = 2, held: int = 2, **more: Any) -> None:
    """Write that a job's devices have been idle for so many hours, and that its owner was warned an hour ago.

    The row is not open, so the scheduler, which knows no figures of described devices, leaves it as it is.
    """
    now = datetime.now(UTC).timestamp()
    spell = Spell(
        state=IdleState.WARNED, since=now - 3600 * hours, idle=idle, held=held, warned_at=now - 3600,
        action=Action.SUSPEND, acts_at=now + 7000,
    )  # fmt: skip
    doc = msgspec.json.encode(msgspec.structs.replace(spell, **more)).decode()
    with sqlite3.connect(portal.database, timeout=60) as connection:
        connection.execute("INSERT INTO idle_jobs VALUES (?, ?, ?, ?)", (job, False, now, doc))


def take_monitoring(portal: Portal, database: Path, pictures: Path, page: Page) -> None:
    """Take the pictures of alerts, health and use from a server that evaluates `RULES`."""
    take_alerts(portal, pictures, page)
    take_health(portal, pictures, page)
    take_use(portal, database, pictures, page)
    take_idle(portal, pictures, page)


def take_alerts(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the picture of the page of alerts."""
    told = [alert(name, severity, said, minutes=ago, **labels) for name, severity, said, ago, labels in _TOLD]
    over = alert("NvidiaSmiLatencyTooLarge", "warn", "nvidia-smi is slow.", minutes=44, over=True, node_name="node3")
    tell_alerts(portal, *told, over)
    portal.client.silence(['node_name="node1"'], seconds=6 * 3600, reason="new fans, back at noon")
    page.goto("/alerts")
    for part, name in (
        ("Firing", "CorralDevicesInUse"),
        ("Pending", "CorralJobsWaitLong"),
        ("Silenced", "NodeNotReady"),
    ):
        expect(page.get_by_role("table", name=part, exact=True)).to_contain_text(name)
    page.screenshot(path=pictures / "alerts.png", full_page=True)


def take_health(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the picture of a node that was closed, and taken over by an administrator."""
    for check, said in (("NvLinkWatch", "link 3 has flapped"), ("ThermalWatch", "slowdown"), ("PcieWatch", "replays")):
        tell_faults(portal, fault("node2", said, 1, fatal=False, code=check))
    tell_faults(portal, fault("node4", "an uncorrectable error was remapped", 2, fatal=False, code="63"))
    page.goto("/nodes?node=local/node4")
    history = page.get_by_role("table", name="History of its health")
    expect(history).to_contain_text("remapped")
    tell_faults(portal, fault("node4", "the GPU has fallen off the bus", 2, fatal=True, code="79"))
    expect(history).to_contain_text("→ cordoned")
    portal.client.change_health("local/node4", "repairing", why="the board is changed")
    expect(history).to_contain_text("the board is changed")
    expect(page.get_by_role("group", name="Health")).to_contain_text("1 ◐ suspected")
    page.screenshot(path=pictures / "health.png", full_page=True)


def take_idle(portal: Portal, pictures: Path, page: Page) -> None:
    """Take the picture of jobs with idle devices."""
    jobs = {each["name"]: each["id"] for each in portal.client.jobs(limit=200)["items"] if each["state"] == "running"}
    idle_spell(portal, jobs["notebook"], 26, idle=1, held=1, action=Action.WARN, acts_at=0.0)
    later = datetime.now(UTC).timestamp() + 5000
    idle_spell(
        portal, jobs["llm-pretrain"], 3.5, idle=4, held=4, state=IdleState.EXTENDED, extended_at=later - 9000,
        extended_until=later, acts_at=later + 3600, reason="the tokenizer was rebuilt, its shards come at noon",
    )  # fmt: skip
    idle_spell(portal, jobs["vit-ablation"], 2.5, dry_run=True, action=Action.STOP)
    page.goto("/idle")
    expect(page.get_by_role("table", name="Idle now").locator("tr[data-idle]")).to_have_count(2)
    expect(page.get_by_role("table", name="Dry runs")).to_contain_text("would be stopped")
    page.screenshot(path=pictures / "idle.png", clip={"x": 0, "y": 0, "width": 1440, "height": 520})


def take_use(portal: Portal, database: Path, pictures: Path, page: Page) -> None:
    """Take the picture of use, costs and budgets."""
    days = [("mira", "research", 5.0), ("jun", "production", 4.0), ("ada", "default", 2.5), ("tomas", "default", 1.0)]
    past_use(database, days, 30)
    portal.client.apply(PRICES)
    portal.client.set_budget("queue", "research", "month", 4000)
    portal.client.set_budget("user", "tomas", "week", 160)
    portal.client.set_budget("queue", "production", "month", 2600)
    page.goto("/usage?by=queue")
    expect(page.get_by_role("figure").get_by_role("img")).to_be_visible()
    expect(page.get_by_role("table", name="Budgets")).to_be_visible()
    page.screenshot(path=pictures / "accounting.png", full_page=True)
