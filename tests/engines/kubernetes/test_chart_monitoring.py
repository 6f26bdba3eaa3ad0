"""The chart's monitoring: real Prometheus and Alertmanager take what it makes, and read a real server with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import yaml

from corral.engines.kubernetes.pods.manifest import SERVER_LABEL
from corral.engines.kubernetes.pods.template_policy import WORDS, check_rights
from corral.kernel.errors import Forbidden
from corral.model.series import SeriesQuestion
from corral.monitor.series.prometheus import PrometheusSeries
from tests.endtoend.platform import Platform
from tests.endtoend.test_tls import Certified
from tests.engines.kubernetes.charts import CHART, TRIAL, Helm, Rendered, Thing, merged
from tests.reserved import free_port
from tests.testbeds import prometheus
from tests.testbeds.kubernetes import binaries
from tests.testbeds.kubernetes.controlplane import ControlPlane

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
SECONDS: Final = 120.0
"""Seconds after which a wait has failed."""
PLACE: Final = "/etc/corral-monitoring"
"""Where the pod has its files."""
CONFIGURATION: Final = "corral-monitoring-configuration"
"""The Secret of both configurations."""
SMALL: Final = merged(
    TRIAL,
    {
        "url": "https://127.0.0.1:30443",
        "tls": {"existingSecret": "corral-portal"},
        "monitoring": {
            "enabled": True,
            "prometheus": {"image": "registry.example/prometheus:1"},
            "alertmanager": {"image": "registry.example/alertmanager:1"},
        },
    },
)
WHOLE: Final = merged(
    SMALL,
    {
        "nodeAgent": {"enabled": True, "tokenSecret": "corral-agent"},
        "monitoring": {
            "boards": True,
            "nodeExporter": {"image": "registry.example/node-exporter:1"},
            "volume": {"hostPath": {"path": "/srv/data", "type": "Directory"}},
            "prometheus": {
                "retention": "90d",
                "retentionBytes": 10**11,
                "rules": 'groups: [{name: own, rules: [{alert: Hot, expr: "node_hwmon_temp_celsius > 80"}]}]',
                "scrapeConfigs": [{"job_name": "dcgm", "static_configs": [{"targets": ["dcgm.example:9400"]}]}],
            },
            "alertmanager": {
                "receivers": [{"name": "pager", "webhook_configs": [{"url": "https://pager.example/"}]}],
                "routes": [{"receiver": "pager", "matchers": ['severity="fatal"']}],
                "inhibitRules": [{"source_matchers": ['a="b"'], "target_matchers": ['c="d"']}],
            },
        },
    },
)
DOCUMENT: Final = """\
kind: Cluster
engine: local
nodes: {node1: {devices: 4, cpu: 8}}
queues: {research: {deserved: {devices: 2}}}
"""
RULE: Final = "groups: [{name: always, rules: [{alert: Always, expr: vector(1), labels: {severity: warn}}]}]"


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    if reason := binaries.missing() or prometheus.missing():
        pytest.skip(reason)
    return Helm(tmp_path)


class Made:
    """The files that the pod of a rendered chart has, in a folder; addresses and paths in them are those of the tests."""

    def __init__(self, made: Rendered, folder: Path, certificate: str, **replaced: str) -> None:
        self.folder, self._replaced = folder, {PLACE: str(folder), "/data": str(folder), **replaced}
        given = {"agent": {"token": "x" * 20}, "tls": {"tls.crt": certificate}}
        given |= {"configuration": made.secret(CONFIGURATION)}
        given |= {"secret": made.secret("corral-monitoring")}
        for name, files in given.items():
            (folder / name).mkdir(parents=True)
            for file, text in files.items():
                (folder / name / file).write_text(_without_search(self._here(text)))
        self.password = given["secret"]["password"]
        self._pod = made.one("StatefulSet", "corral-monitoring")["spec"]["template"]["spec"]

    def arguments(self, container: str) -> list[str]:
        """The arguments of a container of the pod."""
        (found,) = [each["args"] for each in self._pod["containers"] if each["name"] == container]
        return [self._here(word) for word in found]

    def checked(self, *words: str) -> str:
        """The output of `promtool WORDS`, which must find nothing wrong."""
        done = subprocess.run([prometheus.program("promtool"), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _here(self, text: str) -> str:
        for old, new in self._replaced.items():
            text = text.replace(old, new)
        return text


def _without_search(text: str) -> str:
    """A configuration that Debian's Prometheus takes: it is built without the search for pods of Kubernetes."""
    if "kubernetes_sd_configs" not in text:
        return text
    settings = yaml.safe_load(text)
    for each in settings["scrape_configs"]:
        if each.pop("kubernetes_sd_configs", None):
            each["static_configs"] = [{"targets": ["10.0.0.9:9102"]}]
    return yaml.safe_dump(settings)


@pytest.mark.parametrize("values", [SMALL, WHOLE], ids=["small", "whole"])
def test_promtool_and_lint_take_what_is_made(helm: Helm, tmp_path: Path, values: Thing) -> None:
    assert "0 chart(s) failed" in helm.done("lint", "--strict", str(CHART), values=values)
    made = Made(helm.render(values), tmp_path / "made", "")
    said = made.checked("check", "config", str(made.folder / "configuration/prometheus.yml"))
    rules = 2 if values is WHOLE else 1
    assert f"{rules} rule files found" in said and "12 rules found" in said
    made.checked("check", "web-config", str(made.folder / "secret/web.yml"))


def test_a_real_api_server_takes_all_of_it(helm: Helm, control_plane: ControlPlane, namespace: str) -> None:
    made = helm.render(WHOLE, namespace=namespace)
    words = ["apply", "--namespace", namespace, "--dry-run=server", "--validate=strict", "-f", "-"]
    said = control_plane.kubectl(*words, given=made.text).stdout
    assert said.count("(server dry run)") == len(made.things)


def test_without_it_nothing_of_it_is_made(helm: Helm) -> None:
    made = helm.render(TRIAL)
    assert "monitoring" not in made.text
    assert "CORRAL_MONITORING_TOKEN_FILE" not in made.environment("front")


@pytest.mark.parametrize("release", ["corral", "corral-two", "corralx", "ml"])
def test_what_receivers_have_of_credentials_is_in_a_secret_that_no_job_may_mount(helm: Helm, release: str) -> None:
    pager = {"name": "pager", "pagerduty_configs": [{"routing_key": "hunter2-of-the-pager"}]}
    read = {"job_name": "dcgm", "basic_auth": {"username": "a", "password": "hunter2-of-the-scrape"}}
    more = {"prometheus": {"scrapeConfigs": [read]}, "alertmanager": {"receivers": [pager]}}
    made = helm.render(merged(SMALL, {"monitoring": more}), release=release)
    assert "hunter2" not in made.text, "an object has it readable"
    (own,) = [each for each in made.of("StatefulSet") if each["metadata"]["name"].endswith("-monitoring")]
    volumes = own["spec"]["template"]["spec"]["volumes"]
    (name,) = [each["secret"]["secretName"] for each in volumes if each["name"] == "configuration"]
    held = made.secret(name)
    assert "hunter2-of-the-pager" in held["alertmanager.yml"] and "hunter2-of-the-scrape" in held["prometheus.yml"]
    template = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": name}}]}}
    with pytest.raises(Forbidden, match="Corral's own"):
        check_rights(template, WORDS, ())


@pytest.mark.parametrize("release", ["corral", "ml"])
def test_no_secret_that_the_charts_pods_have_may_be_mounted_by_a_job(helm: Helm, release: str) -> None:
    named = {"oidc": {"existingSecret": "sign-in"}, "tls": {"existingSecret": "certificate"}}
    named |= {
        "ingress": {"enabled": True, "host": "corral.example", "tlsSecret": "of-the-host"},
        "imagePullSecrets": ["pull"],
    }
    made = helm.render(merged(WHOLE, named), release=release)
    reserved = tuple(made.environment("control")["CORRAL_RESERVED_SECRETS"].split(","))
    text = json.dumps([each for each in made.things if each["kind"] != "Secret"])
    found = set(re.findall(r'"secretName": "([^"]+)"', text)) | set(
        re.findall(r'"secretKeyRef": {"name": "([^"]+)"', text)
    )
    found |= set(re.findall(r'"secretKeyRef": {"key": "[^"]+", "name": "([^"]+)"', text))
    found |= {each["metadata"]["name"] for each in made.things if each["kind"] == "Secret"} | {"pull"}
    assert {"sign-in", "certificate", "of-the-host"} < found and len(found) >= 5
    for name in found:
        with pytest.raises(Forbidden, match="Corral's own"):
            check_rights(
                {"spec": {"volumes": [{"name": "v", "secret": {"secretName": name}}]}}, WORDS, (), reserved=reserved
            )


def test_front_has_the_token_that_prometheus_has_and_control_has_it_not(helm: Helm) -> None:
    made = helm.render(WHOLE)
    assert made.environment("front")["CORRAL_MONITORING_TOKEN_FILE"] == "/var/run/corral-monitoring/token"
    mounts = {each["name"]: [mount["name"] for mount in each["volumeMounts"]] for each in made.server["containers"]}
    assert "monitoring" in mounts["front"] and "monitoring" not in mounts["control"]
    (volume,) = [each for each in made.server["volumes"] if each["name"] == "monitoring"]
    assert volume["secret"]["items"] == [{"key": "token", "path": "token"}]
    assert volume["secret"]["secretName"] == "corral-monitoring"


def test_control_asks_prometheus_for_what_is_long_ago(helm: Helm) -> None:
    made = helm.render(WHOLE)
    told = made.environment("control")
    assert told["CORRAL_PROMETHEUS"] == "http://corral-monitoring.ml.svc:9090"
    (mount,) = [each for each in made.container("control")["volumeMounts"] if each["name"] == "prometheus"]
    assert told["CORRAL_PROMETHEUS_TOKEN_FILE"] == f"{mount['mountPath']}/access"
    assert "prometheus" not in [each["name"] for each in made.container("front")["volumeMounts"]]
    (volume,) = [each for each in made.server["volumes"] if each["name"] == "prometheus"]
    assert volume["secret"]["items"] == [{"key": "access", "path": "access"}]
    secret = made.secret("corral-monitoring")
    assert secret["access"] == f"corral:{secret['password']}"


def test_another_prometheus_of_the_settings_is_asked_without_the_password_of_the_charts(helm: Helm) -> None:
    made = helm.render(merged(WHOLE, {"settings": {"prometheus": "https://prometheus.example"}}))
    for name in ("front", "control"):
        names = [each["name"] for each in made.container(name)["env"]]
        assert names.count("CORRAL_PROMETHEUS") == 1 and len(names) == len(set(names))
        assert made.environment(name)["CORRAL_PROMETHEUS"] == "https://prometheus.example"
        assert "CORRAL_PROMETHEUS_TOKEN_FILE" not in names and "CORRAL_MONITORING_TOKEN_FILE" in names
    assert "prometheus" not in [each["name"] for each in made.container("control")["volumeMounts"]]
    assert "prometheus" not in [each["name"] for each in made.server["volumes"]]


@pytest.mark.parametrize("name", ["prometheus_token_file", "monitoring_token_file"])
def test_a_setting_that_the_chart_has_too_is_refused(helm: Helm, name: str) -> None:
    assert f"settings: {name}" in helm.refused(merged(WHOLE, {"settings": {name: "/etc/token"}}))


def test_prometheus_searches_for_the_pods_of_both_daemons_and_may_see_them(helm: Helm) -> None:
    made = helm.render(WHOLE)
    settings = yaml.safe_load(made.secret(CONFIGURATION)["prometheus.yml"])
    searched = [
        (each["job_name"], search)
        for each in settings["scrape_configs"]
        for search in each.get("kubernetes_sd_configs", ())
    ]
    assert [job for job, _ in searched] == ["corral-node-agent", "node"]
    for (_, search), daemon in zip(searched, ("corral-node-agent", "corral-node-exporter"), strict=True):
        assert (search["role"], search["namespaces"]) == ("pod", {"own_namespace": True})
        (selector,) = search["selectors"]
        *pairs, no_job = selector["label"].split(",")
        wanted = dict(pair.split("=") for pair in pairs)
        assert no_job == f"!{SERVER_LABEL}", "a job's pod is no part of Corral"
        labels = made.one("DaemonSet", daemon)["spec"]["template"]["metadata"]["labels"]
        assert selector["role"] == "pod" and wanted.items() <= labels.items()
    (rule,) = made.one("Role", "corral-monitoring")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    (subject,) = made.one("RoleBinding", "corral-monitoring")["subjects"]
    pod = made.one("StatefulSet", "corral-monitoring")["spec"]["template"]["spec"]
    assert subject["name"] == pod["serviceAccountName"]


def test_what_listens_asks_for_the_password(helm: Helm) -> None:
    made = helm.render(WHOLE)
    pod = made.one("StatefulSet", "corral-monitoring")["spec"]["template"]["spec"]
    exporter = made.one("DaemonSet", "corral-node-exporter")["spec"]["template"]["spec"]
    for each in (*pod["containers"], *exporter["containers"]):
        assert f"--web.config.file={PLACE}/secret/web.yml" in each["args"], each["name"]
        assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["runAsNonRoot"] and exporter["securityContext"]["runAsNonRoot"]
    (volume,) = [each for each in exporter["volumes"] if each["name"] == "secret"]
    assert [each["key"] for each in volume["secret"]["items"]] == ["web.yml"], "nodes have neither token nor password"


def test_a_grafana_finds_the_boards_and_their_source(helm: Helm) -> None:
    made = helm.render(WHOLE)
    boards = made.one("ConfigMap", "corral-boards")
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "1"
    titles = [json.loads(text)["title"] for text in boards["data"].values()]
    assert len(titles) == 7 and "Corral: queues" in titles
    (source,) = yaml.safe_load(made.one("Secret", "corral-grafana")["stringData"]["corral.yaml"])["datasources"]
    assert source["url"] == "http://corral-monitoring.ml.svc:9090"
    assert source["secureJsonData"]["basicAuthPassword"] == made.secret("corral-monitoring")["password"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"prometheus": {"scrapeConfigs": [{"job_name": "corral"}]}}, "the name corral is one of Corral's own"),
        (
            {"prometheus": {"scrapeConfigs": [{"job_name": "a"}, {"job_name": "a"}]}},
            "the name a is one of Corral's own",
        ),
        ({"alertmanager": {"receivers": [{"name": "corral"}]}}, "there is a receiver corral already"),
        ({"prometheus": {"retention": "-1d"}}, "retention"),
        ({"prometheus": {"retentionBytes": -5}}, "retentionBytes"),
        ({"prometheus": {"image": ""}}, "monitoring.prometheus.image names the image of Prometheus"),
        ({"alertmanager": {"image": ""}}, "monitoring.alertmanager.image names the image of Alertmanager"),
        ({"grafana": True}, "grafana"),
    ],
)
def test_values_that_cannot_be_are_refused(helm: Helm, changed: Thing, says: str) -> None:
    assert says in helm.refused(merged(SMALL, {"monitoring": changed}))


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    (tmp_path / "certificates").mkdir()
    return Certified(tmp_path / "certificates")


def test_both_read_a_real_server_and_tell_it_what_fires(helm: Helm, tmp_path: Path, certified: Certified) -> None:
    token = tmp_path / "token"
    server = Platform(
        tmp_path / "server",
        *certified.options(),
        ca=certified.ca,
        cluster=tmp_path / "cluster.yaml",
        env={"CORRAL_MONITORING_TOKEN_FILE": str(token)},
    )
    (tmp_path / "server").mkdir()
    (tmp_path / "cluster.yaml").write_text(DOCUMENT)
    values = merged(SMALL, {"monitoring": {"prometheus": {"interval": "1s", "rules": RULE}}})
    made = helm.render(values)
    token.write_text(made.secret("corral-monitoring")["token"])
    server.up()
    try:
        ports = {name: str(free_port()) for name in ("9090", "9093")}
        files = Made(
            made,
            tmp_path / "made",
            # The pod has the server's certificate, and not the authority that signed it.
            certified.certificate.read_text(),
            **{"corral.ml.svc:8470": server.url.partition("://")[2], "group_wait: 10s": "group_wait: 0s"},
            **{
                f"{host}:{port}": f"127.0.0.1:{own}" for port, own in ports.items() for host in ("127.0.0.1", "0.0.0.0")
            },
        )
        prometheus.program("prometheus-alertmanager")
        (tmp_path / "made" / prometheus.TEMPLATES).symlink_to(prometheus.templates())
        with (
            _running("prometheus-alertmanager", files, "alertmanager", ports["9093"]),
            _running("prometheus", files, "prometheus", ports["9090"]),
        ):
            for port in ports.values():
                assert httpx2.get(f"http://127.0.0.1:{port}/api/v1/status").status_code == 401
            for job in ("corral", "prometheus", "alertmanager"):
                _until(lambda job=job: _values(files, ports["9090"], f'up{{job="{job}"}}') == ["1"], f"{job} is read")
            by_queue = 'corral_queue_deserved{job="corral",queue="research"}'
            _until(
                lambda: _values(files, ports["9090"], by_queue) == ["2"], "the page with the series of queues is read"
            )
            _until(lambda: "Always" in server.corral("alerts"), "Corral is told")
            reader = PrometheusSeries(f"http://127.0.0.1:{ports['9090']}", files.folder / "secret/access")
            question = SeriesQuestion(time.time() - 600, time.time() + 600, 600, ("corral_queue_deserved",))
            found, _ = asyncio.run(reader.read(question))
            assert {each.labels["queue"] for each in found} == {"research"}
            assert (tmp_path / "made/prometheus/wal").is_dir() and (tmp_path / "made/alertmanager").is_dir()
    finally:
        server.down()


def _values(files: Made, port: str, query: str) -> list[str]:
    """The values that Prometheus finds, with the password."""
    answer = httpx2.get(
        f"http://127.0.0.1:{port}/api/v1/query", params={"query": query}, auth=("corral", files.password)
    ).json()
    found: list[Mapping[str, Any]] = answer["data"]["result"]
    return [each["value"][1] for each in found]


def _until(holds: Any, what: str) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, f"not within {SECONDS:.0f} s: {what}"
        time.sleep(0.2)


@contextlib.contextmanager
def _running(name: str, files: Made, container: str, port: str) -> Iterator[None]:
    """Run a program with the arguments of its container until the context ends."""
    log = files.folder / f"{name}.log"
    with log.open("w") as into:
        words = [str(prometheus.program(name)), *files.arguments(container)]
        process = subprocess.Popen(words, cwd=files.folder, stdout=into, stderr=subprocess.STDOUT)
    try:

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(httpx2.TransportError):
                answer = httpx2.get(f"http://127.0.0.1:{port}/-/ready", auth=("corral", files.password))
                return bool(answer.status_code == 200)
            return False

        _until(ready, f"{name} is ready")
        yield
    finally:
        process.terminate()
        process.wait(60)
