"""What the list of hosts makes of monitoring: the chart's values, the folder of its data, images, and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.deploy.checks.ours import ADMIN, KUBELET, KUBELET_UNIT_FILE, MARK
from corral.deploy.checks.report import Seen, Survey, findings_of
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote.portal import own_certificate
from corral.deploy.steps import files
from corral.deploy.steps.bundle import Bundle, BundleFile, ImageArchive
from corral.deploy.steps.drift import differences
from corral.spec.errors import SpecError
from tests.deploy.facts import LIST, hosts, of_host
from tests.deploy.test_drift import NOW
from tests.deploy.test_installation import (
    DATABASE,
    IMAGE,
    bundle,
    called,
    called_file,
    corrals,
    installed,
    listed,
    plans,
)

PROMETHEUS, ALERTMANAGER, EXPORTER = (
    f"registry.example/{name}:1" for name in ("prometheus", "alertmanager", "node-exporter")
)
CORRAL = f"corral: {{host: gpu1, image: '{IMAGE}', postgresql: '{DATABASE}'}}\n"
MONITORING = f"monitoring: {{host: gpu2, prometheus: '{PROMETHEUS}', alertmanager: '{ALERTMANAGER}'}}\n"


def monitored(more: str = "", corral: str = CORRAL) -> Hosts:
    return hosts(f"cluster: lab\n{LIST}{corral}{MONITORING.replace('}', f'{more}}}')}")


def whole_bundle(**changes: Any) -> Bundle:
    """The bundle of Corral's tests with the images of monitoring."""
    given = bundle()
    more = tuple(
        ImageArchive(BundleFile(Path(f"{at}.tar"), f"{at}.tar", str(at) * 64, 1), {name: f"sha256:{str(at) * 64}"})
        for at, name in enumerate((PROMETHEUS, ALERTMANAGER, EXPORTER), 5)
    )
    return replace(given, archives=(*given.archives, *more), **changes)


def values(chosen: Hosts, given: Bundle) -> dict[str, Any]:
    found = yaml.safe_load(called_file(plans(chosen, given)["head"], files.VALUES_FILE))
    assert isinstance(found, dict)
    return found


def test_the_chart_is_told_of_images_data_and_retention() -> None:
    asked = monitored(
        f", folder: /srv/, retentionDays: 90, retentionSize: 100Gi, nodeExporter: '{EXPORTER}', boards: true"
    )
    told = values(asked, whole_bundle())["monitoring"]
    assert (told["enabled"], told["boards"], told["user"]) == (True, True, 65534)
    assert told["volume"] == {"hostPath": {"path": "/srv/corral-monitoring/data", "type": "Directory"}}
    assert told["nodeSelector"] == {"kubernetes.io/hostname": "gpu2"}
    assert told["prometheus"] == {"image": PROMETHEUS, "retention": "90d", "retentionBytes": 100 * 2**30}
    assert (told["alertmanager"], told["nodeExporter"]) == ({"image": ALERTMANAGER}, {"image": EXPORTER})


def test_its_folder_is_made_on_its_host_for_its_user() -> None:
    found = plans(monitored(), whole_bundle())
    assert called_file(found["gpu2"], files.DATA_FILE).splitlines()[1:] == ["65534 /var/lib/corral-monitoring/data"]
    made = called(found["gpu2"], "make_data")
    assert made.title == "make the folders of the data of monitoring in /var/lib/corral-monitoring"
    assert "corral-monitoring" not in called_file(found["gpu1"], files.DATA_FILE)
    chart = called(found["head"], "install_corral").title
    assert "with PostgreSQL and Prometheus and Alertmanager in the cluster lab" in chart
    assert "Prometheus" not in called(plans(listed(), bundle())["head"], "install_corral").title


def test_one_host_may_have_both() -> None:
    both = hosts(f"cluster: lab\n{LIST}{CORRAL}{MONITORING.replace('gpu2', 'gpu1')}")
    found = plans(both, whole_bundle())
    assert called_file(found["gpu1"], files.DATA_FILE).splitlines()[1:] == [
        "999 /var/lib/corral-data/database",
        "1000 /var/lib/corral-data/blobs",
        "65534 /var/lib/corral-monitoring/data",
    ]
    assert corrals(found["gpu2"]) == []


def test_the_user_of_further_values_owns_the_folder() -> None:
    further = CORRAL.replace("}", ", values: '{monitoring: {user: 70, prometheus: {interval: 30s}}}'}")
    found = plans(monitored(corral=further), whole_bundle())
    assert called_file(found["gpu2"], files.DATA_FILE).splitlines()[1:] == ["70 /var/lib/corral-monitoring/data"]
    told = yaml.safe_load(called_file(found["head"], files.VALUES_FILE))["monitoring"]
    assert told["user"] == 70 and told["prometheus"]["interval"] == "30s" and told["prometheus"]["image"] == PROMETHEUS


def test_its_images_go_to_its_host_and_node_exporters_to_every_host() -> None:
    found = plans(monitored(f", nodeExporter: '{EXPORTER}'"), whole_bundle())
    assert called(found["head"], "import_images").detail == (EXPORTER,)
    assert called(found["gpu1"], "import_images").detail == (IMAGE, DATABASE, EXPORTER)
    assert called(found["gpu2"], "import_images").detail == (IMAGE, PROMETHEUS, ALERTMANAGER, EXPORTER)


def test_a_bundle_without_its_images_is_refused() -> None:
    assert plans(monitored(f", nodeExporter: '{EXPORTER}'"), bundle())["head"].bars == tuple(
        f"the bundle has no image {name}, and the list asks for it" for name in (PROMETHEUS, ALERTMANAGER, EXPORTER)
    )


def test_what_is_installed_is_left_alone_and_a_change_is_shown() -> None:
    chosen, given = monitored(), whole_bundle()
    head = installed(chosen, given, own_certificate("10.0.0.1"))
    assert corrals(plans(chosen, given, head)["head"]) == []
    more = monitored(", retentionDays: 400")
    plan = plans(more, given, head)["head"]
    assert corrals(plan) == ["install_corral"]
    (change,) = [step for step in plan.steps if step.title == f"change {files.VALUES_FILE}"]
    assert [line.strip("+- ") for line in change.detail if line[0] in "+-"] == ["retention: 30d", "retention: 400d"]
    survey = Survey({"head": Seen(head, 0.0, 0.0)})
    drifted = [each.what for each in differences(more, survey, None, (), NOW, given) if each.what == files.VALUES_FILE]
    assert drifted == [files.VALUES_FILE]


def test_taken_out_of_the_list_it_is_taken_out_of_the_chart() -> None:
    given = whole_bundle()
    head = installed(monitored(), given, own_certificate("10.0.0.1"))
    plan = plans(listed(), given, head)["head"]
    assert corrals(plan) == ["install_corral"]
    assert "monitoring" not in yaml.safe_load(called_file(plan, files.VALUES_FILE))


def test_another_image_of_the_same_name_starts_it_again() -> None:
    given = whole_bundle()
    head = installed(monitored(), given, own_certificate("10.0.0.1"))
    other = ImageArchive(given.archives[2].file, {PROMETHEUS: f"sha256:{'a' * 64}"})
    newer = replace(given, archives=(*given.archives[:2], other, *given.archives[3:]))
    assert corrals(plans(monitored(), newer, head)["head"]) == ["install_corral"]


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (CORRAL + MONITORING.replace("gpu2", "gpu9"), 'there is no "gpu9" below hosts; did you mean'),
        (CORRAL + MONITORING.replace("}", ", retentionDays: -1}"), "retentionDays.*1"),
        (CORRAL + MONITORING.replace("}", ", retentionSize: much}"), "much"),
        (CORRAL + MONITORING.replace("}", ", folder: a/b}"), "expected an absolute path"),
        (CORRAL + MONITORING.replace("prometheus:1", "prometheus"), "an image with its tag"),
        (MONITORING, "it is a part of Corral's chart: add the section corral"),
        (
            f"{CORRAL}{MONITORING}volumes: {{a: {{host: gpu2, folder: /var/lib/corral-monitoring/data, size: 1Gi}}}}\n",
            "/var/lib/corral-monitoring/data is a folder of the data of monitoring already",
        ),
        (
            f"{CORRAL}volumes: {{a: {{host: gpu1, folder: /var/lib/corral-data/, size: 1Gi}}}}\n",
            "/var/lib/corral-data/ is a folder of Corral's data already",
        ),
        (
            CORRAL + MONITORING.replace("gpu2", "gpu1").replace("}", ", folder: /var/lib/corral-data/more}"),
            "/var/lib/corral-data/more/corral-monitoring and /var/lib/corral-data of Corral's data overlap",
        ),
        (
            CORRAL.replace("}", ", folder: /var/lib/corral-monitoring}") + MONITORING.replace("gpu2", "gpu1"),
            "/var/lib/corral-monitoring and /var/lib/corral-monitoring/corral-data of Corral's data overlap",
        ),
    ],
)
def test_a_section_that_cannot_be_is_refused_in_one_sentence(section: str, says: str) -> None:
    with pytest.raises(SpecError, match=says) as refused:
        hosts(LIST + section)
    assert len(refused.value.problems) == 1


def test_a_host_that_is_no_node_is_refused() -> None:
    storage = LIST + "  store: {address: 10.0.0.9, roles: [storage]}\n"
    with pytest.raises(SpecError, match="store is neither a control plane nor a worker"):
        hosts(storage + CORRAL + MONITORING.replace("gpu2", "store"))


def test_ports_that_its_parts_need_are_found_taken_on_hosts_that_are_no_nodes() -> None:
    free, taken = of_host(2), of_host(3, ("cgroup=v2", "listens=238C\nlistens=76EB\ncgroup=v2"))
    chosen = monitored(f", nodeExporter: '{EXPORTER}'")
    for own, wanted in ((taken, ["9100, which node exporter needs", "30443, which the portal needs"]), (free, [])):
        survey = Survey({"gpu2": Seen(own, own.time, own.time)})
        found = [each.message for each in findings_of(chosen, survey) if each.check == "ports"]
        assert sorted(found) == sorted(f"another program listens at port {each}" for each in wanted)
    assert not [each for each in findings_of(hosts(LIST), Survey({"gpu2": Seen(taken, 0, 0)})) if each.check == "ports"]
    node = replace(taken, leftovers=(ADMIN, KUBELET), files={KUBELET_UNIT_FILE: MARK.encode()})
    survey = Survey({"gpu2": Seen(node, node.time, node.time)})
    assert not [each for each in findings_of(chosen, survey) if each.check == "ports"]
