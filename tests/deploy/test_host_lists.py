"""`hosts.yaml` is read to hosts with their defaults; lists of OpenPAI and Kubespray become such documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.cli.main import run
from corral.compat.openpai.language.host_list import FORMAT
from corral.deploy.hosts.kubespray import from_inventory
from corral.deploy.hosts.reader import Access, load_hosts
from corral.deploy.hosts.template import EXAMPLE, text_of
from corral.spec.errors import SpecError

LIST = """\
cluster: lab
ssh: {user: admin, key: keys/all}
skus:
  gpu: {cpu: 96, memory: 1000Gi, devices: {count: 8}}
groups:
  gpus: {roles: [worker], sku: gpu, ssh: {port: 2222}}
hosts:
  head: {address: 10.0.0.1, roles: [control-plane]}
  gpu1: {address: 10.0.0.2, group: gpus}
  gpu2: {address: GPU2.example.org, group: gpus, roles: [worker, storage], ssh: {user: root}, dataFolder: /data}
"""
LAYOUT = b"""\
machine-sku:
  master-machine: {mem: 60GB, cpu: {vcore: 24}}
  gpu-machine:
    computing-device: {type: nvidia.com/gpu, model: K80, count: 4}
    mem: 220
    cpu: {vcore: 24}
machine-list:
  - {hostname: pai-master, hostip: 10.0.0.1, machine-type: master-machine, pai-master: "true"}
  - {hostname: pai-worker1, hostip: 10.0.0.2, machine-type: gpu-machine, pai-worker: "true"}
  - {hostname: dev-box, hostip: 10.0.0.9, machine-type: master-machine}
"""
CONFIG = b"user: forexample\npassword: s3cr3t-word\ndocker_image_tag: v1.6.0\nopenpai_kube_network_plugin: calico\n"
INI = b"""\
[all]
node1 ansible_host=95.54.0.12  ip=10.3.0.1 etcd_member_name=etcd1   # the first
node2 ansible_host=95.54.0.13 ansible_port=2222
Gpu[01:03]

[all:vars]
ansible_user=admin
ansible_become_pass='s3cr3t word'
http_proxy=http://proxy:3128
[kube_control_plane]
node1
[etcd]
node1
node2
[kube_node:children]
gpus
[gpus]
Gpu[01:03]
node2
[gpus:vars]
ansible_user=gpuadmin
[k8s_cluster:children]
kube_control_plane
kube_node
"""
YAML = b"""\
all:
  vars: {ansible_user: admin}
  hosts:
    node1: {ansible_host: 95.54.0.12, ip: 10.3.0.1}
    node2: {ansible_host: 95.54.0.13, ansible_port: 2222, ansible_user: gpuadmin}
    gpu01: {ansible_user: gpuadmin}
    gpu02: {ansible_user: gpuadmin}
    gpu03: {ansible_user: gpuadmin}
  children:
    kube_control_plane: {hosts: {node1: }}
    kube_node: {hosts: {gpu01: , gpu02: , gpu03: , node2: }}
    k8s_cluster: {children: {kube_control_plane: , kube_node: }}
"""


def refusal(text: str | bytes) -> str:
    with pytest.raises(SpecError) as refused:
        load_hosts(text)
    return str(refused.value)


def test_a_host_takes_from_its_group_and_from_the_document_what_it_does_not_say() -> None:
    found = load_hosts(LIST)
    head, gpu1, gpu2 = found.hosts
    assert (head.access, head.sku, head.roles) == (Access("admin", 22, "keys/all"), None, ("control-plane",))
    assert gpu1.access == Access("admin", 2222, "keys/all")
    assert gpu1.sku is not None and gpu1.sku.devices is not None and gpu1.sku.devices.count == 8
    assert gpu2.access == Access("root", 2222, "keys/all")
    assert (gpu2.address, gpu2.roles, gpu2.data_folder) == ("gpu2.example.org", ("worker", "storage"), "/data")
    assert found.named("gpu1") is gpu1 and found.named("gpu9") is None


def test_the_example_is_a_valid_list_that_names_every_role() -> None:
    assert {role for host in load_hosts(EXAMPLE).hosts for role in host.roles} == {"control-plane", "worker", "storage"}
    assert "hadoop" in EXAMPLE


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        ("10.0.0.2", "10.0.0.1, ssh: {port: 22}", "9:", "is the address of head already"),
        ("10.0.0.2", "10.244.3.1", "9:", "lies in 10.244.0.0/16"),
        ("10.0.0.2", "-oProxyCommand=x", "9:", "expected an IP address or a DNS name"),
        ("10.0.0.2", "10.0.0.999", "9:", "expected an IP address or a DNS name"),
        ("group: gpus}", "group: gpu}", "9:", 'did you mean "gpus"?'),
        ("sku: gpu,", "sku: gpus,", "6:", 'did you mean "gpu"?'),
        ("roles: [worker],", "", "9:", "it has no roles"),
        ("[control-plane]", "[storage]", "7:", "no host has the role control-plane"),
        ("[worker, storage]", "[worker, control-plane]", "10:", "2 hosts are control planes"),
        ("[worker, storage]", "[worker, worker]", "10:", "a role is repeated"),
        ("user: root", "user: -l", "10:", "beginning with a letter"),
        ("port: 2222", "port: 70000", "6:", "at most 65535"),
        ("port: 2222", "password: x", "6:", "password"),
        ("/data", "data", "10:", "expected an absolute path"),
        ("/data", "/data/../etc", "10:", "expected an absolute path"),
        ("count: 8", "count: 0", "4:", "at least 1"),
        ("1000Gi", "1000", "4:", "write a unit"),
        ("keys/all", '"a\\nb"', "2:", "without control characters"),
        ("cluster: lab", "kubernetes: {serviceSubnet: 10.244.1.0/24}", "1:", "overlap"),
        ("cluster: lab", "kubernetes: {version: 1.34}", "1:", "such as 1.34.4"),
    ],
)
def test_an_error_is_one_sentence_with_its_line(old: str, new: str, where: str, says: str) -> None:
    assert LIST.count(old) >= 1
    told = refusal(LIST.replace(old, new, 1))
    assert says in told
    assert f"hosts.yaml:{where}" in told


def test_every_field_is_explained() -> None:
    from docs.generate import hosts_document

    page = hosts_document()["reference/hosts.md"]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    assert not [row for row in rows if len(row.rsplit("|", 2)[1].split()) < 2]


@given(st.text(max_size=400) | st.binary(max_size=400))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    for read in (
        load_hosts,
        lambda given: from_inventory(given, "i.ini"),
        lambda given: from_inventory(given, "i.yaml"),
    ):
        try:
            read(text)
        except SpecError as refused:
            assert refused.message


@given(
    st.dictionaries(
        st.sampled_from(["kind", "ssh", "skus", "groups", "hosts", "kubernetes", "cluster"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just("10.0.0.1"),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["a", "b", "address", "roles", "ssh", "user", "port", "sku"]), inner, max_size=4
                )
            ),
            max_leaves=12,
        ),
    )
)
def test_any_shape_of_a_document_is_read_or_refused(data: dict[str, Any]) -> None:
    from corral.deploy.hosts.reader import hosts_of

    try:
        hosts_of(data, filename="hosts.yaml")
    except SpecError as refused:
        assert "hosts.yaml" in str(refused)


def test_openpais_layout_and_configuration_become_a_list() -> None:
    data, notes = FORMAT.read([("layout.yaml", LAYOUT), ("config.yaml", CONFIG)])
    found = load_hosts(text_of(data, "layout.yaml"))
    master, worker = found.hosts
    assert (master.name, master.address, master.roles) == ("pai-master", "10.0.0.1", ("control-plane",))
    assert master.access == Access("forexample", 22, "")
    assert worker.sku is not None and worker.sku.devices is not None
    assert (worker.sku.cpu, worker.sku.memory, worker.sku.devices.count) == ("24", "220Gi", 4)
    assert (worker.sku.devices.vendor, worker.sku.devices.model) == ("nvidia", "K80")
    assert master.sku is not None and master.sku.memory == "60G"
    told = " ".join(notes)
    assert "dev-box" in told and "openpai_kube_network_plugin" in told and "Passwords" in told
    assert "s3cr3t" not in told + str(data)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"hostip: 10.0.0.2, ", b"", "layout.yaml:9:5: machine-list[1]: the machine needs a hostip"),
        (b"type: gpu-machine", b"type: cpu-machine", "is not below machine-sku"),
        (b"pai-worker1", b"pai-master", "is the name of two machines"),
        (b"nvidia.com/gpu", b"intel.com/gpu", "is no known device"),
        (b"count: 4", b"count: four", "expected a number of devices"),
        (b"machine-list", b"machines", "with machine-sku and machine-list"),
        (b"machine-list:\n", b"machine-list:\n  - text\n", "each a mapping"),
    ],
)
def test_a_layout_that_is_none_is_refused(old: bytes, new: bytes, says: str) -> None:
    with pytest.raises(SpecError) as refused:
        FORMAT.read([("layout.yaml", LAYOUT.replace(old, new, 1)), ("config.yaml", CONFIG)])
    assert says in str(refused.value)


@pytest.mark.parametrize(("name", "text"), [("inventory.ini", INI), ("inventory.yaml", YAML)])
def test_kubesprays_inventory_becomes_a_list(name: str, text: bytes) -> None:
    data, _ = from_inventory(text, name)
    found = load_hosts(text_of(data, name))
    assert [host.name for host in found.hosts] == ["node1", "node2", "gpu01", "gpu02", "gpu03"]
    node1, node2, gpu01 = found.hosts[:3]
    assert (node1.address, node1.internal_address, node1.roles) == ("95.54.0.12", "10.3.0.1", ("control-plane",))
    assert node1.access == Access("admin", 22, "")
    assert (node2.roles, node2.access) == (("worker",), Access("gpuadmin", 2222, ""))
    assert (gpu01.address, gpu01.access.user) == ("gpu01", "gpuadmin")


def test_what_an_inventory_says_beyond_is_told_without_its_secrets() -> None:
    data, notes = from_inventory(INI, "inventory.ini")
    told = " ".join(notes)
    assert "http_proxy" in told and "Passwords" in told and "etcd" in told and "Gpu01 is called gpu01" in told
    assert "s3cr3t" not in told + str(data)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"[kube_node]\nnode1 ip\n", "inventory.ini:2:1: expected NAME=VALUE"),
        (b"[kube_node\nnode1\n", "inventory.ini:1:1: expected a section"),
        (b"[kube_node]\nnode1 a='b\n", "inventory.ini:2:1: a quotation mark is not closed"),
        (b"[kube_node]\nnode[1:9999]\n", "inventory.ini:2:1: node[1:9999] stands for no hosts"),
        (b"[kube_node:children]\na\n[a:children]\nkube_node\n", "contains itself"),
        (b"[kube_node]\nnode-1\nnode.1\n", "inventory.ini:3:1: two hosts would be called node-1"),
        (b"[other]\nnode1\n", "no host is in kube_control_plane or kube_node"),
        (b"[kube_node]\n" + b"".join(b"n%d\n" % n for n in range(1001)), "inventory.ini:1002:1: more than 1000 hosts"),
        (b"\n".join(b"[g%d:children]\ng%d" % (n, n + 1) for n in range(90)), "nested deeper than 64 levels"),
        (b"\xff", "not UTF-8 text"),
    ],
)
def test_an_inventory_that_cannot_be_read_is_refused_at_its_line(text: bytes, says: str) -> None:
    with pytest.raises(SpecError) as refused:
        from_inventory(text, "inventory.ini")
    assert says in str(refused.value)


def test_groups_that_share_groups_at_each_of_many_levels_are_read_at_once() -> None:
    levels = [f"[{side}{n}:children]\na{n + 1}\nb{n + 1}\n" for n in range(50) for side in "ab"]
    text = "".join(levels) + "[a50]\nnode1\n[b50]\nnode2\n[kube_node:children]\na0\n[kube_control_plane]\nnode1\n"
    data, _ = from_inventory(text.encode(), "inventory.ini")
    assert data["hosts"]["node1"]["roles"] == ["control-plane", "worker"]


def test_init_writes_a_list_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hosts.yaml"
    assert run(["deploy", "init", str(path)]) == 0
    assert path.read_text() == EXAMPLE
    path.write_text("mine")
    assert run(["deploy", "init", str(path)]) == 4
    assert path.read_text() == "mine"
    assert "is there already" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["hosts.yaml"]


def test_init_reads_other_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("layout.yaml", LAYOUT), ("config.yaml", CONFIG), ("inventory.ini", INI)):
        (tmp_path / name).write_bytes(text)
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    assert (
        run(
            ["deploy", "init", str(one), "--from-openpai", *(str(tmp_path / n) for n in ("layout.yaml", "config.yaml"))]
        )
        == 0
    )
    assert run(["deploy", "init", str(other), "--from-inventory", str(tmp_path / "inventory.ini")]) == 0
    assert "Passwords are not taken over" in capsys.readouterr().err
    assert (len(load_hosts(one.read_bytes()).hosts), len(load_hosts(other.read_bytes()).hosts)) == (2, 5)
    assert run(["deploy", "init", str(tmp_path / "x"), "--from-inventory", str(tmp_path / "none.ini")]) == 3
    (tmp_path / "inventory.ini").write_bytes(b"#" * 1024 * 1024 + b"\n")
    assert run(["deploy", "init", str(tmp_path / "x"), "--from-inventory", str(tmp_path / "inventory.ini")]) == 2
    assert not (tmp_path / "x").exists()
