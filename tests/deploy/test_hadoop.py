"""What the plan makes of a section `hadoop`: the daemons of each host, their files, and what a difference starts again."""

from __future__ import annotations

import base64
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from corral.deploy.checks.facts import Facts, Service
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote.bundle import MOST_BYTES, bundle_of
from corral.deploy.remote.bundle_file import pack, unpacked
from corral.deploy.steps import files
from corral.deploy.steps import hadoop_files as texts
from corral.deploy.steps.bundle import Bundle, BundleFile
from corral.deploy.steps.drift import differences
from corral.deploy.steps.hadoop import RELEASE
from corral.deploy.steps.membership import refusal_of_removal
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.step import HostPlan, Step
from corral.kernel.errors import InvalidInput
from corral.spec.errors import SpecError
from tests.deploy.bundles import small_bundle
from tests.deploy.facts import hosts, of_host
from tests.deploy.test_drift import NOW

TWO = """\
skus: {gpu: {cpu: 16, memory: 64Gi, devices: {count: 8}}}
hosts:
  m: {address: 10.0.0.1, roles: [hadoop]}
  w: {address: 10.0.0.2, roles: [hadoop], sku: gpu, dataFolder: /data}
"""
ASKED = "hadoop: {master: m}\n"
GIVEN = BundleFile(Path("hadoop-3.4.2.tar.gz"), "hadoop-3.4.2.tar.gz", "d" * 64, 1)
BUNDLE = Bundle("", (), (), hadoop=GIVEN)
KUBERNETES = "hosts: {m: {address: 10.0.0.1, roles: [control-plane, hadoop]}}\nhadoop: {master: m}\n"


def asked(section: str = ASKED) -> Hosts:
    return hosts(TWO + section)


def survey(**known: Facts) -> Survey:
    return Survey({name: Seen(each, 0.0, 0.0) for name, each in known.items()})


def plans(chosen: Hosts, bundle: Bundle | None = BUNDLE, **changed: Facts) -> dict[str, HostPlan]:
    known = {host.name: of_host(at) for at, host in enumerate(chosen.hosts, 1)} | changed
    return {each.name: each for each in plan_of(chosen, survey(**known), bundle)}


def settings(plan: HostPlan, name: str) -> dict[str, str]:
    """The properties of a file of Hadoop's, as Hadoop reads them."""
    (step,) = [each for each in plan.steps if each.title.endswith(f"/{name}.xml")]
    rows = ElementTree.fromstring(step.content).findall("property")
    return {each.findtext("name", ""): each.findtext("value", "") for each in rows}


def titles(plan: HostPlan) -> list[str]:
    return [step.title for step in plan.steps if step.needed and step.kind != "file"]


def done(chosen: Hosts, at: int) -> Facts:
    """The facts of a host on which every step was done."""
    plan = list(plans(chosen).values())[at - 1]
    names = [each.call[1] for each in plan.steps if each.kind == "service"]
    return replace(
        of_host(at),
        packages=dict.fromkeys(("default-jre-headless", "iptables", "python3"), "1"),
        programs={RELEASE: GIVEN.digest},
        files={each.call[1]: each.content for each in plan.steps if each.kind == "file"},
        services=dict.fromkeys(names, Service("active", "enabled")),
    )


def test_a_master_has_the_managers_and_a_worker_what_holds_data_and_containers() -> None:
    found = plans(asked())
    assert titles(found["m"]) == [
        "install default-jre-headless, iptables, python3",
        "install Hadoop of hadoop-3.4.2.tar.gz",
        "make Hadoop's folders in /var/lib/corral-hadoop",
        "enable and start corral-hadoop-firewall",
        "enable and start corral-zookeeper",
        "format HDFS, if it is not",
        "enable and start corral-namenode",
        "make the folders of YARN and Corral in HDFS",
        "enable and start corral-resourcemanager",
    ]
    assert titles(found["w"])[2:] == [
        "make Hadoop's folders in /data/corral-hadoop",
        "enable and start corral-hadoop-firewall",
        "enable and start corral-datanode",
        "enable and start corral-nodemanager",
        "wait until YARN and HDFS have it",
    ]
    assert all(step.call for plan in found.values() for step in plan.steps if step.needed)
    assert not found["m"].notes and not found["m"].obstacles


def test_a_host_offers_what_the_list_says_else_its_kind_else_what_it_has() -> None:
    prefix = "yarn.nodemanager.resource"
    worker = plans(asked())["w"]
    site = settings(worker, "yarn-site")
    assert (site[f"{prefix}.memory-mb"], site[f"{prefix}.cpu-vcores"]) == (str(62 * 1024), "16")
    assert settings(worker, "node-resources") == {f"{prefix}-type.yarn.io/gpu": "8"}
    said = "hadoop: {master: m, nodes: {w: {cpu: 4, memory: 3Gi, devices: 0}}}"
    worker = plans(asked(said))["w"]
    site = settings(worker, "yarn-site")
    assert (site[f"{prefix}.memory-mb"], site[f"{prefix}.cpu-vcores"]) == (str(3 * 1024), "4")
    assert settings(worker, "node-resources") == {}
    alone = hosts("hosts: {m: {address: 10.0.0.1, roles: [hadoop]}}\n" + ASKED)
    own = replace(of_host(1), cpus=6, memory=8 * 1024**3 + 100 * 1024**2)
    site = settings(plans(alone, m=own)["m"], "yarn-site")
    assert (site[f"{prefix}.memory-mb"], site[f"{prefix}.cpu-vcores"]) == (str(6 * 1024), "6")


def test_daemons_listen_at_the_hosts_address_and_know_the_masters() -> None:
    found = plans(asked())
    site, hdfs = settings(found["w"], "yarn-site"), settings(found["w"], "hdfs-site")
    assert site["yarn.resourcemanager.hostname"] == "10.0.0.1" and site["yarn.nodemanager.address"] == "10.0.0.2:8041"
    assert hdfs["dfs.datanode.address"] == "10.0.0.2:9866" and hdfs["dfs.namenode.rpc-address"] == "10.0.0.1:8020"
    assert hdfs["dfs.replication"] == "1"
    assert not [each for each in (*site.values(), *hdfs.values()) if "0.0.0.0" in each]
    assert site["yarn.nodemanager.node-attributes.provider.configured-node-attributes"] == "corral-node,STRING,w"
    queues = settings(found["m"], "capacity-scheduler")
    assert queues["yarn.scheduler.capacity.root.queues"] == "corral,default"
    assert queues["yarn.scheduler.capacity.root.corral.capacity"] == "90"


def test_properties_of_the_list_win_and_are_escaped() -> None:
    said = 'hadoop: {master: m, properties: {hdfs-site: {dfs.replication: "2", a.b: "<&>"}}}'
    hdfs = settings(plans(asked(said))["w"], "hdfs-site")
    assert hdfs["dfs.replication"] == "2" and hdfs["a.b"] == "<&>"


def test_only_hosts_of_the_list_and_its_clients_pass_the_firewall() -> None:
    chosen = asked("hadoop: {master: m, clients: [192.168.5.0/24]}")
    (rules,) = [each for each in plans(chosen)["w"].steps if each.title.endswith("firewall.rules")]
    lines = rules.content.decode().splitlines()
    passing = [line.split()[3] for line in lines if line.startswith("-A CORRAL-HADOOP -s")]
    assert passing == ["10.0.0.1,10.0.0.2,192.168.5.0/24"]
    assert lines[-2].startswith("-A CORRAL-HADOOP -p tcp -j REJECT")


NAMED = """\
hosts:
  m: {address: m.lab, roles: [hadoop]}
  w: {address: w.lab, roles: [hadoop]}
hadoop: {master: m}
"""


def without(chosen: Hosts, lost: str, bundle: Bundle | None = BUNDLE, **known: Facts) -> dict[str, HostPlan]:
    """The plans while a host is not reached."""
    return {
        each.name: each for each in plan_of(chosen, survey(**{n: k for n, k in known.items() if n != lost}), bundle)
    }


@pytest.mark.parametrize("document", [NAMED, NAMED.replace("w.lab", "192.0.2.7").replace("m.lab", "192.0.2.6")])
@pytest.mark.parametrize(("lost", "left"), [("w", "m"), ("m", "w")])
def test_a_host_that_is_down_keeps_its_place_in_the_files_of_the_others(document: str, lost: str, left: str) -> None:
    chosen = hosts(document)
    plan = without(chosen, lost, m=done(chosen, 1), w=done(chosen, 2))[left]
    assert not plan.bars and [step.title for step in plan.steps if step.needed] == []
    assert any(f"not known: {lost}." in note and "internalAddress" in note for note in plan.notes)
    assert not any("not known" in note for note in plans(chosen)[left].notes)


def test_a_new_client_is_let_through_while_a_host_is_down() -> None:
    chosen = hosts(NAMED.replace("{master: m}", "{master: m, clients: [192.168.5.7]}"))
    plan = without(chosen, "w", m=done(hosts(NAMED), 1))["m"]
    (rules,) = [each for each in plan.steps if each.title.endswith("firewall.rules")]
    assert b" -s 10.0.0.1,10.0.0.2,192.168.5.7 " in rules.content


def test_the_first_rules_wait_for_every_address() -> None:
    chosen = hosts(NAMED)
    assert without(chosen, "w", m=of_host(1))["m"].bars == (
        "the address of w is not known: give it an internalAddress",
    )
    (bar,) = without(chosen, "m", w=of_host(2))["w"].bars
    assert bar.startswith("the address of m, which Hadoop's master is, is not known")
    said = hosts(NAMED.replace("w.lab", "w.lab, internalAddress: 10.0.0.2"))
    assert not without(said, "w", m=of_host(1))["m"].bars


@pytest.mark.parametrize("rules", [b"", b"-A CORRAL-HADOOP -s 1.2.3 -j RETURN\n", b"#" * files.MOST_READ])
def test_rules_that_name_no_network_are_not_kept(rules: bytes) -> None:
    odd = replace(of_host(1), files={texts.RULES_FILE: rules})
    assert without(hosts(NAMED), "w", m=odd)["m"].bars == ("the address of w is not known: give it an internalAddress",)


def test_java_listens_by_ipv4_alone_as_the_firewall_has_no_other_rules() -> None:
    site = settings(plans(asked())["m"], "yarn-site")
    for words in (texts.java_options().split(), site["yarn.service.am.java.opts"].split()):
        assert "-Djava.net.preferIPv4Stack=true" in words


def test_a_host_on_which_all_was_done_needs_nothing() -> None:
    chosen = asked()
    known = {"m": done(chosen, 1), "w": done(chosen, 2)}
    found = plans(chosen, BUNDLE, **known)
    assert [step.title for plan in found.values() for step in plan.steps if step.needed] == []
    assert differences(chosen, survey(**known), {}, (), NOW, BUNDLE) == []


def test_files_that_no_look_at_a_host_could_compare_are_refused() -> None:
    many = ", ".join(f"p.{at}: {'v' * 3000}" for at in range(6))
    plan = plans(asked(f"hadoop: {{master: m, properties: {{yarn-site: {{{many}}}}}}}"))["w"]
    assert plan.bars == (
        "its /etc/corral-hadoop/yarn-site.xml would be longer than 16384 bytes: name fewer properties, or wider networks",
    )


def test_a_thousand_hosts_fit_the_rules() -> None:
    addresses = [f"10.{at // 100}.{at % 100}.{2 * (at % 100) + 1}" for at in range(1000)]
    text = texts.rules_text(addresses, ())
    assert len(text) < files.MOST_READ
    named = [each for line in text.splitlines() if "-s " in line for each in line.split()[3].split(",")]
    assert sorted(named) == sorted(addresses)


def needed(found: HostPlan, kind: str = "service") -> list[str]:
    return [step.call[1] for step in found.steps if step.needed and step.kind == kind]


@pytest.mark.parametrize(
    ("section", "services"),
    [
        ("hadoop: {master: m, heap: 4Gi}", ["corral-namenode", "corral-resourcemanager"]),
        ("hadoop: {master: m, clients: [192.168.5.7]}", ["corral-hadoop-firewall"]),
        ("hadoop: {master: m, user: other}", ["corral-zookeeper", "corral-namenode", "corral-resourcemanager"]),
    ],
)
def test_what_a_difference_concerns_is_started_again(section: str, services: list[str]) -> None:
    assert needed(plans(asked(section), m=done(asked(), 1))["m"]) == services


def test_a_cut_between_a_file_and_its_daemons_is_found() -> None:
    chosen = asked()
    (step,) = [each for each in plans(chosen)["w"].steps if each.title.endswith("yarn-site.xml")]
    marks = step.call[3].split()
    assert marks == ["corral-datanode", "corral-nodemanager"]
    cut = replace(done(chosen, 2), unfinished=frozenset(marks))
    assert needed(plans(chosen, w=cut)["w"]) == marks
    waiting = replace(done(chosen, 2), unfinished=frozenset({"hadoop-worker"}))
    assert titles(plans(chosen, w=waiting)["w"]) == ["wait until YARN and HDFS have it"]


def test_a_new_release_starts_all_daemons_again_and_drift_names_it() -> None:
    chosen = asked()
    newer = replace(BUNDLE, hadoop=replace(GIVEN, digest="e" * 64))
    plan = plans(chosen, newer, w=done(chosen, 2))["w"]
    (install,) = [step for step in plan.steps if step.kind == "program"]
    assert install.call == ("install_hadoop", "e" * 64, "corral-datanode", "corral-nodemanager")
    assert needed(plan) == ["corral-datanode", "corral-nodemanager"]


def test_without_a_bundle_all_is_shown_and_nothing_of_hadoop_is_done() -> None:
    plan = plans(asked(), None)["w"]
    assert [step.title for step in plan.doable] == ["install default-jre-headless, iptables, python3"]
    assert "install a release of Hadoop" in titles(plan)
    lacking = plans(asked(), replace(BUNDLE, hadoop=None))["w"]
    assert lacking.bars == ("the bundle has no Hadoop (hadoop/NAME.tar.gz), and the list asks for it",)


def test_a_node_of_kubernetes_is_not_made_of_a_bundle_with_hadoop_alone() -> None:
    plan = plans(hosts(KUBERNETES))["m"]
    assert plan.bars == ("the bundle has Hadoop alone, and it is a node of Kubernetes",)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("hadoop: {master: x}", "there is no 'x' below hosts"),
        ("hadoop: {master: m, workers: [w, w]}", "a host is repeated"),
        ("hadoop: {master: m, queue: default}", "default is the queue of all others"),
        ("hadoop: {master: m, clients: ['fe80::/64']}", "Hadoop does not support IPv6"),
        ('hadoop: {master: m, properties: {yarn-site: {"a b": "1"}}}', "the name of a property"),
        ('hadoop: {master: m, properties: {core-site: {a: "1\\n2"}}}', "a value on one line"),
        ("hadoop: {master: m, share: 100}", "99"),
    ],
)
def test_a_section_that_cannot_be_meant_is_refused(section: str, says: str) -> None:
    with pytest.raises(SpecError) as refused:
        asked(section)
    assert says in str(refused.value).replace('"', "'")


def test_a_host_of_another_role_is_none_of_hadoops() -> None:
    with pytest.raises(SpecError, match="w does not have the role hadoop"):
        hosts("hosts: {m: {address: 10.0.0.1, roles: [hadoop]}, w: {address: 10.0.0.2, roles: [storage]}}\n"
              "hadoop: {master: m, workers: [w]}\n")  # fmt: skip


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    units = {name: texts.unit_text(name, "1Gi") for name in texts.DAEMONS} | {texts.FIREWALL: texts.FIREWALL_UNIT}
    paths = []
    for name, text in units.items():
        paths.append(tmp_path / f"{name}.service")
        whole = text.replace(f"{texts.JAVA}/bin/java", str(java)).replace("/usr/sbin/iptables-restore", str(java))
        paths[-1].write_text(whole)
    verified = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    own = [line for line in verified.stderr.splitlines() if "corral-" in line]
    assert not own, own


def test_a_bundle_may_have_hadoop_alone_and_travels_as_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    (folder / "hadoop").mkdir(parents=True)
    (folder / "hadoop/hadoop-3.4.2.tar.gz").write_bytes(b"archive")
    pack(folder, tmp_path / "whole.tar")
    with unpacked(tmp_path / "whole.tar") as there:
        found = bundle_of(there)
        assert found.hadoop is not None and found.hadoop.path.read_bytes() == b"archive" and not found.programs
    (folder / "hadoop/hadoop-3.3.6.tar.gz").write_bytes(b"another")
    with pytest.raises(InvalidInput, match="2 archives"):
        bundle_of(folder)


def test_a_bundle_with_hadoop_alone_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "hadoop").mkdir()
    with (tmp_path / "hadoop/hadoop-3.4.2.tar.gz").open("wb") as sparse:
        sparse.truncate(MOST_BYTES + 1)
    with pytest.raises(InvalidInput, match="larger than 16 GiB"):
        bundle_of(tmp_path)


def test_a_bundle_of_kubernetes_may_have_hadoop_too(tmp_path: Path) -> None:
    folder = small_bundle(tmp_path)
    (folder / "hadoop").mkdir()
    (folder / "hadoop/hadoop-3.4.2.tar.gz").write_bytes(b"archive")
    found = bundle_of(folder)
    assert found.hadoop is not None and found.arch == "x86_64" and found.images


def step_of(plan: HostPlan, function: str) -> Step:
    (found,) = [each for each in plan.steps if each.call and each.call[0] == function]
    return found


def test_scripts_are_whole_and_content_comes_in_base64() -> None:
    from corral.deploy.remote import work
    from corral.deploy.steps.script import script_of

    folder = Path(work.__file__).parent
    functions = "".join((folder / name).read_text() for name in ("do.sh", "hadoop.sh", "registry.sh"))
    plan = plans(asked())["m"]
    for step in (step_of(plan, "make_hdfs_folders"), step_of(plan, "install_hadoop")):
        script = script_of(functions, step, from_folder=True)
        assert subprocess.run(["sh", "-n"], input=script, check=False).returncode == 0
        assert not step.content or base64.encodebytes(step.content) in script


def test_a_node_that_has_a_part_of_hadoop_is_not_removed() -> None:
    own = of_host(2)
    assert refusal_of_removal("w", own, lost=False) is None
    refused = refusal_of_removal("w", done(asked(), 2), lost=False)
    assert refused is not None and "whose data would go with the node" in refused.message
    assert refused.remedy.endswith("corral deploy reset --host w.")
    assert refusal_of_removal("w", own, lost=True) is not None
