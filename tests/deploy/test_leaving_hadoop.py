"""A worker of Hadoop that is removed: who may leave, what is waited for, what each refusal says, and who comes back."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from corral.cli.deploy_nodes import add, remove
from corral.cli.deploy_up import Given
from corral.deploy.checks.components import GarbledStatus, parse_status
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote import asking, membership
from corral.deploy.steps import hadoop_files as texts
from corral.deploy.steps.drift import differences
from corral.deploy.steps.leaving import LEAVE, Leaving, is_late, leaving_of, refusal_of_leaving
from corral.deploy.steps.membership import RESET, Node, refusal_of_removal, steps_of_removal
from corral.kernel.errors import InvalidInput
from tests.deploy.facts import hosts, of_host
from tests.deploy.test_drift import NOW
from tests.deploy.test_hadoop import BUNDLE, done, plans, settings, survey

_FOLDER = Path(asking.__file__).parent
THREE = """\
hosts:
  m: {address: 10.0.0.1, roles: [hadoop]}
  w: {address: 10.0.0.2, roles: [hadoop]}
  x: {address: 10.0.0.3, roles: [hadoop]}
hadoop: {master: m}
"""
LEAVING, STAYING = "10.0.0.2", "10.0.0.3"
EXCLUDED = f"# Written by corral deploy.\n{LEAVING}\n".encode()


def data_node(address: str, state: str = "In Service") -> dict[str, Any]:
    return {"xferaddr": f"{address}:9866", "adminState": state, "lastContact": 1}


def manager(address: str, state: str = "RUNNING", containers: int = 0) -> dict[str, Any]:
    named = {"nodeAttributeInfo": [{"name": "corral-node", "value": f"host-{address[-1]}"}]}
    return {"id": f"{address}:8041", "state": state, "numContainers": containers, "nodeAttributesInfo": named}


class Masters(BaseHTTPRequestHandler):
    """What a NameNode and a ResourceManager tell."""

    protocol_version = "HTTP/1.0"
    live: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    few: tuple[int, int, int] | None
    """What is to be copied of the host that leaves."""
    missing: int
    safe: bool
    managers: list[list[dict[str, Any]]]
    """The NodeManagers, question by question; the last answer stays."""

    @classmethod
    def reset(cls) -> None:
        """Two workers at work."""
        cls.live, cls.dead = [data_node(LEAVING), data_node(STAYING)], []
        cls.few, cls.missing, cls.safe = None, 0, False
        cls.managers = [[manager(LEAVING), manager(STAYING)]]

    def do_GET(self) -> None:
        """Answer as both do."""
        if urlsplit(self.path).path == "/jmx":
            keys = ("underReplicatedBlocks", "decommissionOnlyReplicas", "underReplicateInOpenFiles")
            leaving = [{"xferaddr": f"{LEAVING}:9866", **dict(zip(keys, self.few, strict=True))}] if self.few else []
            lists = {"LiveNodes": self.live, "DeadNodes": self.dead, "DecomNodes": leaving}
            bean = {name: json.dumps(dict(enumerate(each))) for name, each in lists.items()}
            bean |= {"NumberOfMissingBlocks": self.missing, "Safemode": "on" * self.safe}  # type: ignore[dict-item]
            self._answer({"beans": [bean]})
        else:
            now = self.managers[0]
            if len(self.managers) > 1:
                del self.managers[0]
            self._answer({"nodes": {"node": now} if now else None})

    def _answer(self, said: object) -> None:
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Path]:
    """A folder in place of the master's machine; its settings lead to a NameNode and a ResourceManager of ours."""
    Masters.reset()
    with HTTPServer(("127.0.0.1", 0), Masters) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"127.0.0.1:{server.server_port}"
        written(tmp_path / "hdfs-site.xml", {"dfs.namenode.http-address": here, "dfs.replication": "1"})
        written(tmp_path / "yarn-site.xml", {"yarn.resourcemanager.webapp.address": here})
        (tmp_path / "excluded").write_text("# Written by corral deploy.\n")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/runuser").write_text('#!/bin/sh\necho "$*" >>"$SEEN"\n')
        (tmp_path / "bin/runuser").chmod(0o755)
        yield tmp_path
        server.shutdown()


def written(path: Path, properties: dict[str, str]) -> None:
    rows = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()]
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")


def called(folder: Path, words: str) -> tuple[int, str, list[str]]:
    """Call a function there; returns its exit code, what it printed, and what Hadoop's programs were asked."""
    seen = folder / "seen"
    seen.unlink(missing_ok=True)
    functions = "".join((_FOLDER / name).read_text() for name in ("do.sh", "hadoop.sh"))
    functions = functions.replace("/var/lib/corral", f"{folder}/state").replace("/etc/corral-hadoop", str(folder))
    functions = functions.replace("PATH=$PATH:", f"PATH={folder}/bin:$PATH:", 1)
    (folder / "state/deploy").mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "SEEN": str(seen)}
    words = f"{functions}\nmain() {{ {words}; }}\nmain 2>&1\n"
    ran = subprocess.run(["sh", "-c", words], capture_output=True, check=False, env=env, text=True)
    asked = [line.partition("org.apache.hadoop.")[2] for line in seen.read_text().splitlines()] if seen.exists() else []
    return ran.returncode, ran.stdout, asked


HDFS, YARN = "hdfs.tools.DFSAdmin -refreshNodes", "yarn.client.cli.RMAdminCLI -refreshNodes"


def test_a_worker_leaves_without_an_end_of_its_containers_unless_it_was_asked_for(master: Path) -> None:
    for how, asked in (("", f"{YARN} -g -server"), ("end-tasks", YARN), ("lost", YARN)):
        Masters.live[0]["lastContact"] = 40 if how == "lost" else 1
        assert called(master, f"leave_hadoop {LEAVING} corral-hadoop {how}") == (0, "", [HDFS, asked])
        assert (master / "excluded").read_bytes() == EXCLUDED, "an address is written down once"


def bars(master: Path) -> str:
    """Why the worker may not leave."""
    code, said, asked = called(master, f"leave_hadoop {LEAVING} corral-hadoop")
    assert code == 1 and not asked and (master / "excluded").read_text().count("\n") == 1, "nothing was begun"
    return refusal_of_leaving("w", said, 600).message


def test_blocks_that_have_no_other_place_keep_a_worker(master: Path) -> None:
    Masters.live = [data_node(LEAVING), data_node(STAYING, "Decommission In Progress")]
    assert bars(master) == "its DataNode is the only one of HDFS, so its blocks have no other place"
    Masters.reset()
    site = master / "hdfs-site.xml"
    site.write_text(site.read_text().replace("<value>1</value>", "<value>2</value>"))
    assert bars(master) == "HDFS keeps 2 copies of each block, and 1 DataNode would be left"
    Masters.safe = True
    assert bars(master) == "HDFS is in its safe mode, and copies no blocks"


def test_blocks_that_are_missing_keep_a_worker_whose_datanode_does_not_run(master: Path) -> None:
    Masters.live, Masters.missing = [data_node(STAYING)], 3
    assert bars(master) == "its DataNode is not live, and HDFS misses 3 blocks"
    Masters.missing = 0
    assert called(master, f"leave_hadoop {LEAVING} corral-hadoop")[0] == 0


def test_a_lost_worker_is_written_down_whatever_its_blocks_are(master: Path) -> None:
    Masters.live, Masters.missing = [], 3
    assert called(master, f"leave_hadoop {LEAVING} corral-hadoop lost")[2] == [HDFS, YARN]


def test_a_worker_whose_datanode_still_tells_of_itself_is_not_lost(master: Path) -> None:
    code, said, asked = called(master, f"leave_hadoop {LEAVING} corral-hadoop lost")
    assert code == 1 and not asked and (master / "excluded").read_text().count("\n") == 1, "nothing was begun"
    assert refusal_of_leaving("w", said, 600).message == "its DataNode told HDFS of itself 1 s ago, so it is not lost"


def test_containers_of_another_host_that_leaves_are_not_ended(master: Path) -> None:
    Masters.managers = [[manager(LEAVING), manager(STAYING, "DECOMMISSIONING", 3)]]
    code, said, asked = called(master, f"leave_hadoop {LEAVING} corral-hadoop end-tasks")
    assert code == 1 and not asked and (master / "excluded").read_text().count("\n") == 1
    assert refusal_of_leaving("w", said, 1).message == "3 containers of YARN would end on other hosts that leave, too"
    Masters.live[0]["lastContact"] = 40
    assert called(master, f"leave_hadoop {LEAVING} corral-hadoop lost")[2] == [HDFS, f"{YARN} -g -server"]
    Masters.managers[0][0] = manager(LEAVING, "DECOMMISSIONING")
    Masters.live[0] = data_node(LEAVING, "Decommissioned")
    code, _, asked = left(master, 0)
    assert code == 0 and not asked
    assert called(master, "reread_excluded corral-hadoop")[2] == [HDFS, f"{YARN} -g -server"]


def left(master: Path, seconds: int) -> tuple[int, str, list[str]]:
    return called(master, f"has_left_hadoop {LEAVING} corral-hadoop {seconds}")


def test_containers_and_then_blocks_are_waited_for(master: Path) -> None:
    Masters.live[0] = data_node(LEAVING, "Decommissioned")
    Masters.managers = [
        [manager(LEAVING, containers=2)],
        [manager(LEAVING, "DECOMMISSIONING", 1)],
        [manager(LEAVING, "DECOMMISSIONING")],
    ]
    assert left(master, 300) == (0, "", [YARN]) and len(Masters.managers) == 1
    Masters.managers = [[manager(LEAVING, "DECOMMISSIONED", 2)]]
    assert left(master, 0)[0] == 0


@pytest.mark.parametrize(
    ("managers", "state", "few", "says"),
    [
        ([manager(LEAVING, "DECOMMISSIONING", 2)], "Decommissioned", None, "2 containers of YARN ran on it after 600 s"),
        ([manager(LEAVING)], "Decommissioned", None, "YARN has not begun to let it go"),
        (
            [], "Decommission In Progress", (4, 1, 2),
            "4 blocks of it had too few copies elsewhere after 600 s, 1 of them none, and 2 of files that are open",
        ),
    ],
)  # fmt: skip
def test_what_is_not_elsewhere_in_time_is_told(
    master: Path, managers: list[dict[str, Any]], state: str, few: tuple[int, int, int] | None, says: str
) -> None:
    Masters.managers, Masters.live[0], Masters.few = [managers], data_node(LEAVING, state), few
    code, said, asked = left(master, 0)
    refusal = refusal_of_leaving("w", said, 600)
    assert code == 1 and not asked and is_late(said) and refusal.message == says
    assert "run it again" in refusal.remedy


def test_a_namenode_in_safe_mode_does_not_know_yet_what_would_be_missing(master: Path) -> None:
    Masters.live, Masters.managers, Masters.safe = [data_node(STAYING)], [[]], True
    code, said, asked = left(master, 0)
    assert code == 1 and not asked and is_late(said), "one that has begun again has no DataNode and misses no block"
    assert refusal_of_leaving("w", said, 600).message == "HDFS is in its safe mode, and copies no blocks"


def test_a_master_that_does_not_answer_is_no_one_that_has_been_left(master: Path) -> None:
    written(master / "hdfs-site.xml", {"dfs.namenode.http-address": "127.0.0.1:1"})
    Masters.managers = [[]]
    code, said, _ = left(master, 0)
    assert code == 1 and not is_late(said)
    assert refusal_of_leaving("w", said, 600).message.startswith("Hadoop's master does not answer: <urlopen error")


@pytest.mark.parametrize("said", ["", "odd\n", "corral: leaves: blocks 1\n", "corral: leaves: odd 1 2 3\n"])
def test_an_unknown_word_of_the_master_is_a_failure(said: str) -> None:
    assert refusal_of_leaving("w", said, 600).message.startswith("it does not leave Hadoop: it said")


def test_status_names_workers_that_hdfs_or_yarn_does_not_use(master: Path) -> None:
    Masters.live = [data_node(LEAVING, "Decommission In Progress"), data_node(STAYING)]
    lost, gone = data_node("10.0.0.4"), data_node("10.0.0.5")
    Masters.dead = [{**lost, "decommissioned": False}, {**gone, "decommissioned": True}]
    Masters.few = (4, 0, 0)
    Masters.managers = [[manager(LEAVING, "DECOMMISSIONING", 2), manager(STAYING), manager("10.0.0.4", "LOST")]]
    (master / "units").mkdir()
    for unit in ("corral-hadoop-firewall", "corral-namenode"):
        (master / f"units/{unit}.service").touch()
    script = (_FOLDER / "status.sh").read_text()
    for there, here in (("/etc/systemd/system", "units"), ("/etc/corral-hadoop", "."), ("/etc/kubernetes", "none")):
        script = script.replace(there, f"{master}/{here}")

    def told() -> list[tuple[str, str, str, bool]]:
        said = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True).stdout
        parts = parse_status("m", said).components
        return [(each.host, each.name, each.state, each.good) for each in parts if not each.name.startswith("corral-")]

    assert told() == [
        ("host-2", "yarn", "leaves, with 2 containers", True),
        ("host-4", "yarn", "lost", False),
        ("host-2", "hdfs", "leaves, with 4 blocks to copy", True),
        ("host-4", "hdfs", "its DataNode is not live", False),
    ]
    written(master / "yarn-site.xml", {"yarn.resourcemanager.webapp.address": "127.0.0.1:1"})
    assert told()[0][:2] == ("m", "yarn") and told()[0][2].startswith("the ResourceManager does not answer")
    script = script.replace("timeout 60 python3", "false")
    assert told() == [("m", "hdfs", "it does not tell of its workers within 60 s", False)]


def test_a_row_of_a_worker_with_an_odd_part_is_no_status() -> None:
    row = "\t".join(("worker", "w", "odd", "lost", ""))
    with pytest.raises(GarbledStatus, match="no part of Hadoop"):
        parse_status("m", f"corral-status begin 1\n{row}\ncorral-status end 1\n".encode())


def known(**changed: Facts) -> dict[str, Facts]:
    """All three hosts, on which every step was done."""
    chosen = hosts(THREE)
    return {name: done(chosen, at) for at, name in enumerate(("m", "w", "x"), 1)} | changed


def leaving_master(own: Facts, text: bytes = EXCLUDED) -> Facts:
    return replace(own, files={**own.files, texts.EXCLUDED_FILE: text})


def test_a_host_that_left_and_is_still_listed_comes_back_and_one_that_is_not_stays_out() -> None:
    there = leaving_master(known()["m"])
    found = plans(hosts(THREE), m=there, w=known()["w"], x=known()["x"])
    needed = [step for step in found["m"].steps if step.needed]
    assert [step.title for step in needed] == [
        f"change {texts.EXCLUDED_FILE}", "let HDFS and YARN read which hosts leave",
    ]  # fmt: skip
    assert LEAVING not in needed[0].content.decode() and needed[0].call[3] == "hadoop-excluded"
    assert needed[1].call == ("reread_excluded", texts.USER) and not found["w"].changes
    told = differences(hosts(THREE), survey(**known(m=there)), {}, (), NOW, BUNDLE)
    assert [(each.host, each.kind, each.what) for each in told] == [("m", "file", texts.EXCLUDED_FILE)]
    fewer = hosts(THREE.replace("  x: {address: 10.0.0.3, roles: [hadoop]}\n", ""))
    own = leaving_master(done(fewer, 1), EXCLUDED.replace(LEAVING.encode(), STAYING.encode()))
    assert not plans(fewer, m=own, w=done(fewer, 2))["m"].changes


def test_masters_that_start_read_which_hosts_leave_without_being_asked() -> None:
    plan = plans(hosts(THREE))["m"]
    (listed,) = [step for step in plan.steps if step.title.endswith(texts.EXCLUDED_FILE)]
    assert listed.needed and len(listed.call) == 3 and not [s for s in plan.steps if s.needed and "reread" in s.call[0]]
    at = [step.title for step in plan.steps]
    assert at.index(listed.title) < at.index("enable and start corral-namenode")
    cut = replace(known()["m"], unfinished=frozenset({"hadoop-excluded"}))
    again = plans(hosts(THREE), m=cut)["m"]
    assert [step.call[0] for step in again.steps if step.needed] == ["reread_excluded"]


def test_only_the_masters_own_settings_name_the_list_of_hosts_that_leave() -> None:
    found = plans(hosts(THREE))
    for name, key in (("hdfs-site", "dfs.hosts.exclude"), ("yarn-site", "yarn.resourcemanager.nodes.exclude-path")):
        assert settings(found["m"], name)[key] == texts.EXCLUDED_FILE and key not in settings(found["w"], name)


def test_a_further_worker_starts_nothing_again_where_the_copies_stay() -> None:
    asked = THREE.replace("{master: m}", "{master: m, replication: 1}")
    two = hosts(asked.replace("  x: {address: 10.0.0.3, roles: [hadoop]}\n", ""))
    found = plans(hosts(asked), m=done(two, 1), w=done(two, 2))
    for name in ("m", "w"):
        needed = [step.call[:2] for step in found[name].steps if step.needed]
        assert needed == [("write_file", texts.RULES_FILE), ("load_firewall", texts.FIREWALL)]


def seen(**found: Facts) -> Survey:
    """A look at these hosts; the others did not answer."""
    lost = {name: Refusal("it is off", "Turn it on.") for name in ("m", "w", "x") if name not in found}
    return Survey({name: Seen(each, 0.0, 0.0) for name, each in found.items()}, refusals=lost)


def test_who_leaves_and_who_cannot() -> None:
    chosen = hosts(THREE)
    worker = chosen.hosts[1]

    def of(found: dict[str, Facts], host: Host = worker, *, lost: bool = False) -> Leaving | str | None:
        told = leaving_of(chosen, host, seen(**found), lost=lost)
        return told.message if isinstance(told, Refusal) else told

    assert of(known()) == Leaving(chosen.hosts[0], LEAVING)
    assert of(known(), chosen.hosts[0]) == "it is Hadoop's master, without which there is no HDFS"
    without = {name: each for name, each in known().items() if name != "m"}
    assert of(without) == "m, Hadoop's master, was not reached: it is off"
    older = replace(known()["m"], files={texts.JAVA_FILE: b"1"})
    assert of(known(m=older)) == "m, Hadoop's master, does not keep the list of hosts that leave yet"
    assert of(known(m=of_host(1))) is None, "there is no Hadoop yet"
    silent = {name: each for name, each in known().items() if name != "w"}
    assert of(silent, lost=True) == Leaving(chosen.hosts[0], LEAVING) and of(silent) is None
    moved = replace(worker, internal_address="10.9.0.2")
    assert of(known(), moved) == "its DataNode is not at 10.9.0.2, the address that it has in the cluster now"
    assert of(silent, moved, lost=True) == Leaving(chosen.hosts[0], "10.9.0.2")
    named = replace(worker, address="w.lab")
    assert of(silent, named, lost=True) == "its address in the cluster is not known"
    own = hosts("hosts: {m: {address: 10.0.0.1, roles: [control-plane]}, w: {address: 10.0.0.2, roles: [worker]}}")
    assert leaving_of(own, own.hosts[1], seen(**known()), lost=False) is None


def test_a_removal_of_a_worker_of_hadoop_has_its_own_step_before_the_reset() -> None:
    assert steps_of_removal("w", {}, stands=True, lost=False, leaves=True) == (LEAVE, RESET)
    assert steps_of_removal("w", {}, stands=False, lost=False, leaves=True) == ()
    assert steps_of_removal("w", {}, stands=False, lost=True, leaves=True) == (LEAVE,)
    assert refusal_of_removal("w", known()["w"], lost=False, leaves=True) is None


class Asked:
    """Hosts that answer as they are told, and what each was asked."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.answers, self.calls = list(answers), list[tuple[str, ...]]()

    async def __call__(self, host: Host, list_path: Path, *words: str) -> tuple[int, str]:
        """Answer to one call."""
        self.calls.append((host.name, *words))
        await asyncio.sleep(0)
        return self.answers.pop(0) if self.answers else (0, "")


def removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, asked: Asked, *names: str, found: Survey | None = None, **how: Any
) -> int:
    monkeypatch.setattr(membership, "do_on", asked)
    wanted: dict[str, Any] = {
        "seconds": 600,
        "end_tasks": False,
        "lost": False,
        "dry_run": False,
        "cluster": "cluster",
    } | how
    chosen: Hosts = replace(hosts(THREE), cluster="cluster")
    return remove(chosen, names, folder / "hosts.yaml", lambda _: found or seen(**known()), "json", **wanted)


def test_a_worker_is_reset_once_it_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked((0, ""), (1, "corral: leaves: tasks 2\n"), (0, ""))
    assert removed(tmp_path, monkeypatch, asked, "w") == 0
    waits = ("m", "has_left_hadoop", LEAVING, "corral-hadoop", "60")
    assert asked.calls == [("m", "leave_hadoop", LEAVING, "corral-hadoop"), waits, waits, ("w", "reset_host")]
    out, err = capsys.readouterr()
    assert json.loads(out)["hosts"] == [{"name": "w", "state": "removed", "done": [LEAVE, RESET]}]
    assert "w: waiting: 2 containers of YARN ran on it after 0 s" in err and "Take w off hosts.yaml" in err


def test_a_worker_that_has_not_left_keeps_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked((1, "corral: leaves: last\n"))
    assert removed(tmp_path, monkeypatch, asked, "w", end_tasks=True) == 4
    assert asked.calls == [("m", "leave_hadoop", LEAVING, "corral-hadoop", "end-tasks")]
    assert "the only one of HDFS" in json.loads(capsys.readouterr().out)["hosts"][0]["message"]
    asked = Asked((0, ""), (1, "corral: leaves: missing 2\n"))
    assert removed(tmp_path, monkeypatch, asked, "w") == 4 and "reset_host" not in str(asked.calls)


def test_a_lost_worker_is_not_waited_for_and_one_that_answers_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = seen(m=known()["m"], x=known()["x"])
    asked = Asked()
    assert removed(tmp_path, monkeypatch, asked, "w", found=silent, lost=True) == 0
    assert asked.calls == [("m", "leave_hadoop", LEAVING, "corral-hadoop", "lost")]
    asked = Asked()
    assert removed(tmp_path, monkeypatch, asked, "w", lost=True) == 4 and not asked.calls
    capsys.readouterr()
    assert removed(tmp_path, monkeypatch, asked, "w", found=silent) == 5 and not asked.calls
    assert "--lost" in json.loads(capsys.readouterr().out)["hosts"][0]["remedy"]


def test_a_worker_that_is_a_node_of_kubernetes_too_is_emptied_first_and_forgotten_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = hosts(
        "hosts:\n  m: {address: 10.0.0.1, roles: [control-plane, hadoop]}\n"
        "  w: {address: 10.0.0.2, roles: [worker, hadoop]}\nhadoop: {master: m}\n"
    )
    plane, worker = chosen.hosts
    leaving = leaving_of(chosen, worker, seen(**known()), lost=False)
    assert leaving == Leaving(plane, LEAVING)
    node = {"w": Node("w", False, frozenset(), True)}

    def asked(found: Asked, *, lost: bool) -> list[tuple[str, ...]]:
        monkeypatch.setattr(membership, "do_on", found)
        steps = steps_of_removal("w", node, stands=not lost, lost=lost, leaves=True)
        member = membership.Membership(plane, tmp_path / "hosts.yaml", tmp_path, lambda name, says: None)
        change = asyncio.run(member.remove(worker, steps, 600, end_tasks=False, lost=lost, leaving=leaving))
        assert found.answers or (change.state == "removed" and change.done == steps)
        return [call[:2] for call in found.calls]

    left = [("m", "leave_hadoop"), ("m", "has_left_hadoop")]
    assert asked(Asked(), lost=False) == [("m", "empty_node"), *left, ("w", "reset_host"), ("m", "forget_node")]
    assert asked(Asked(), lost=True) == [("m", "leave_hadoop"), ("m", "drop_lost")]
    held = Asked((0, ""), (0, ""), (1, "corral: leaves: missing 2\n"), (0, "it was asked further"))
    assert asked(held, lost=False) == [("m", "empty_node"), *left], "its blocks are still its own"


def test_a_dry_run_shows_the_steps_and_the_master_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked()
    assert removed(tmp_path, monkeypatch, asked, "m", "w", dry_run=True) == 4 and not asked.calls
    first, second = json.loads(capsys.readouterr().out)["hosts"]
    assert "Hadoop's master" in first["message"] and second["steps"] == [LEAVE, RESET]


def test_a_host_of_hadoop_alone_is_added_by_up(tmp_path: Path) -> None:
    path, nothing = tmp_path / "hosts.yaml", Given(None, None)
    with pytest.raises(InvalidInput, match="corral deploy up adds it to HDFS and YARN"):
        add(hosts(THREE), ("w",), path, lambda _: seen(), nothing, (), "json", dry_run=False)
