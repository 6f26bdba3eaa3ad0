"""What the plan makes of local volumes, of devices without a vendor's driver, and of the agents of nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from corral.deploy.hosts.reader import Hosts
from corral.deploy.steps import files, volumes
from corral.spec.errors import SpecError
from tests.deploy.facts import LIST, hosts, of_host
from tests.deploy.test_installation import bundle, called, called_file, installed, listed, plans

VOLUMES = """\
volumes:
  scratch-1: {host: gpu1, folder: /data/one, size: 500Gi}
  scratch-2: {host: gpu1, folder: /data/two, size: 1Ti}
  head-1: {host: head, folder: /data, size: 10Gi}
"""
DEVICES = "kind: Devices\\ndevices: [{kind: npu, count: 2}]\\n"
ASKED = f', devices: "{DEVICES}", nodeAgents: true'


def with_volumes(section: str = VOLUMES) -> Hosts:
    return hosts(LIST + section)


def test_folders_are_made_on_their_host_and_the_volumes_are_applied_by_the_control_plane() -> None:
    found = plans(with_volumes(), bundle())
    assert called(found["gpu1"], "make_volumes").detail == ("/data/one", "/data/two")
    assert called_file(found["gpu1"], files.VOLUME_FOLDERS_FILE).splitlines()[1:] == ["/data/one", "/data/two"]
    assert not [step for step in found["gpu2"].steps if "volume" in step.title]
    applied = called(found["head"], "apply_volumes")
    assert applied.title == "apply 3 local volumes" and applied.kind == "chart"
    kind, *made = yaml.safe_load_all(called_file(found["head"], files.VOLUMES_FILE))
    assert (kind["kind"], kind["volumeBindingMode"]) == ("StorageClass", "WaitForFirstConsumer")
    assert [each["metadata"]["name"] for each in made] == ["scratch-1", "scratch-2", "head-1"]
    spec = made[0]["spec"]
    assert (spec["local"], spec["capacity"]) == ({"path": "/data/one"}, {"storage": "500Gi"})
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["gpu1"]


def test_volumes_that_are_there_need_nothing_and_a_further_one_is_a_difference() -> None:
    chosen = with_volumes()
    there = {files.VOLUMES_FILE: volumes.objects_text(chosen).encode()}
    head = replace(of_host(1), files=there)
    assert "Kubernetes has 3 local volumes" in [step.title for step in plans(chosen, bundle(), head)["head"].steps]
    more = with_volumes(f"{VOLUMES}  third: {{host: gpu2, folder: /data, size: 1Gi}}\n")
    plan = plans(more, bundle(), head)["head"]
    (change,) = [step for step in plan.steps if step.title == f"change {files.VOLUMES_FILE}"]
    assert "+  name: third" in change.detail and called(plan, "apply_volumes").needed
    cut = replace(head, unfinished=frozenset({volumes.UNFINISHED_VOLUMES}))
    assert called(plans(chosen, bundle(), cut)["head"], "apply_volumes").needed


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("volumes: {a: {host: gpu9, folder: /data, size: 1Gi}}", 'there is no "gpu9" below hosts'),
        ("volumes: {a: {host: gpu1, folder: data, size: 1Gi}}", "expected an absolute path"),
        ("volumes: {a: {host: gpu1, folder: /data, size: much}}", "much"),
        ("volumes: {a: {host: gpu1, folder: /data}}", "size"),
        (
            "volumes: {a: {host: gpu1, folder: /data, size: 1Gi}, b: {host: gpu1, folder: /data/b/, size: 1Gi}}",
            "/data/b/ is a folder of a already",
        ),
    ],
)
def test_volumes_that_cannot_be_are_refused(section: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        with_volumes(section)


def test_the_chart_gets_devices_and_agents_and_every_node_the_image() -> None:
    found = plans(listed(ASKED), bundle())
    values = yaml.safe_load(called_file(found["head"], files.VALUES_FILE))
    assert values["devicePlugin"]["enabled"] and yaml.safe_load(values["devicePlugin"]["devices"])["kind"] == "Devices"
    assert values["nodeAgent"] == {"enabled": True, "tokenSecret": "corral-agent"}
    chart = called(found["head"], "install_corral")
    assert "with PostgreSQL and the device plugin and an agent on each node" in chart.title
    assert chart.call[-1] == "agents", "their token is made on the control plane, and is in no file"
    assert called(found["head"], "import_images").detail, "both run on control planes, too"


def test_a_device_more_is_shown_as_a_difference_of_the_values() -> None:
    given = bundle()
    head = installed(listed(ASKED), given, b"")
    more = listed(ASKED.replace("count: 2", "count: 4"))
    (change,) = [step for step in plans(more, given, head)["head"].steps if step.title == f"change {files.VALUES_FILE}"]
    assert any("count: 4" in line for line in change.detail if line.startswith("+"))


def test_a_devices_document_that_is_none_is_refused() -> None:
    with pytest.raises(SpecError, match="expected a Devices document"):
        listed(', devices: "kind: Devices\\ndevices: [{kind: npu, count: many}]"')
