"""The chart renders exactly the objects that its values ask for, and a real API server accepts them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from corral.engines.kubernetes.api.permissions import FOR_DEVICES, NEEDED
from corral.engines.kubernetes.kind import KubernetesOptions
from corral.engines.kubernetes.volumes.reachability import RESERVED
from corral.settings import Settings
from tests.engines.kubernetes.charts import CHART, TRIAL, Helm, Rendered, Thing, merged
from tests.testbeds.kubernetes import binaries
from tests.testbeds.kubernetes.controlplane import ControlPlane

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
DEVICES = "apiVersion: corral.dev/v1alpha1\nkind: Devices\ndevices: [{kind: npu, count: 2}]\n"
TWO = merged(TRIAL, {"replicas": 2, "blobs": {"volume": {"nfs": {"server": "files.example", "path": "/corral"}}}})
APART = merged(TRIAL, {"replicas": 2, "blobs": {"uri": "s3://corral/production", "existingSecret": "corral-store"}})
KINDS = ["one", "two", "apart", "devices"]
AGENT = {"nodeAgent": {"enabled": True, "tokenSecret": "corral-agent", "nodeSelector": {"corral.dev/managed": "true"}}}
PLUGIN = {"devicePlugin": {"enabled": True, "devices": DEVICES, "nodeSelector": {"corral.dev/managed": "true"}}}


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    if reason := binaries.missing():
        pytest.skip(reason)
    return Helm(tmp_path)


@pytest.mark.parametrize("values", [TRIAL, TWO, APART, merged(TRIAL, PLUGIN)], ids=["one", "two", "apart", "devices"])
def test_helm_finds_nothing_to_say_about_it(helm: Helm, values: Thing) -> None:
    assert "0 chart(s) failed" in helm.done("lint", "--strict", str(CHART), values=values)


def test_front_and_control_are_two_containers_of_one_pod_with_one_configuration(helm: Helm) -> None:
    made = helm.render(merged(TRIAL, {"settings": {"retention_days": 14}, "jobs": {"defaultImage": "base:1"}}))
    assert [each["command"] for each in made.server["containers"]] == [
        ["corral", "serve", "front"],
        ["corral", "serve", "control"],
    ]
    told = made.environment("front")
    assert told == made.environment("control")
    assert told["CORRAL_ADVERTISE"] == "http://corral.ml.svc:8470"
    assert (told["CORRAL_RETENTION_DAYS"], told["CORRAL_DEFAULT_IMAGE"]) == ("14", "base:1")
    assert "CORRAL_CONTROL_ADDRESS" not in told


@pytest.mark.parametrize("values", [TRIAL, TWO, APART], ids=["one", "two", "apart"])
def test_every_variable_is_a_setting_and_every_value_is_taken(
    helm: Helm, values: Thing, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"topologyLabels": [{"level": "rack", "label": "dc.example/rack"}], "documents": "kind: Queue"}
    told = helm.render(merged(values, more)).environment("control")
    given = {name: value for name, value in told.items() if isinstance(value, str) and name.startswith("CORRAL_")}
    fields = Settings.model_fields.keys() | KubernetesOptions.model_fields.keys()
    expected = {f"CORRAL_{name.upper()}" for name in fields}
    unknown = {name for name in given if name not in expected}
    assert not unknown
    for name, value in given.items():
        monkeypatch.setenv(name, value.replace("$(POD_IP)", "10.0.0.7"))
    settings = Settings()
    assert settings.engine == ("kubernetes",)
    KubernetesOptions()
    assert bool(settings.control_address) is (values in (TWO, APART))
    assert settings.blobs == ("s3://corral/production" if values is APART else "")


def test_only_control_has_the_accounts_token(helm: Helm) -> None:
    made = helm.render(TRIAL)
    mounted = {
        container["name"]: [mount["name"] for mount in container["volumeMounts"]]
        for container in made.server["containers"]
    }
    assert "account" in mounted["control"] and "account" not in mounted["front"]
    assert made.server["automountServiceAccountToken"] is False
    assert made.one("ServiceAccount", "corral")["automountServiceAccountToken"] is False


def allowed(made: Rendered) -> set[tuple[str, str, bool]]:
    """The server's permissions: verb, resource, whether cluster-wide."""
    return {
        (verb, f"{resource}.{group}" if group and "/" not in resource else resource, thing["kind"] == "ClusterRole")
        for thing in made.things
        if thing["kind"] in ("Role", "ClusterRole") and "device-plugin" not in thing["metadata"]["name"]
        for rule in thing["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_it_allows_what_corral_needs_and_no_more(helm: Helm) -> None:
    made = helm.render(merged(TRIAL, {"jobs": {"namespace": "jobs"}}))
    assert {thing["metadata"]["namespace"] for thing in made.of("Role")} == {"jobs"}
    assert allowed(made) == {
        (
            verb,
            f"{needed.resource.plural}/{needed.subresource}" if needed.subresource else needed.title,
            needed.everywhere,
        )
        for needed in NEEDED + FOR_DEVICES
        for verb in needed.verbs
    }


def test_the_page_of_permissions_has_a_row_for_each() -> None:
    page = (CHART.parents[1] / "docs" / "kubernetes.md").read_text().partition("be allowed\n")[2].partition("\n## ")[0]
    for needed in NEEDED + FOR_DEVICES:
        where = "(whole cluster)" if needed.everywhere else "in its namespace"
        assert f"| {', '.join(needed.verbs)} | {needed.title} {where} | {needed.purpose} |" in page


def test_objects_are_allowed_where_namespaces_have_accounts(helm: Helm) -> None:
    without, kinds = (
        allowed(helm.render(TRIAL)),
        ["unifiedjobs.corral.dev", "frameworks.frameworkcontroller.microsoft.com"],
    )
    made = helm.render(merged(TRIAL, {"objects": {"accounts": {"team-a": "ada"}, "kinds": kinds}}))
    more = {(verb, kind, True) for kind in kinds for verb in ("list", "watch", "patch")}
    more |= {("patch", f"{kind.partition('.')[0]}/status", True) for kind in kinds}
    assert allowed(made) - without == more | {("get", "customresourcedefinitions.apiextensions.k8s.io", True)}
    told = made.environment("control")
    assert (told["CORRAL_OBJECT_ACCOUNTS"], told["CORRAL_OBJECT_KINDS"]) == ("team-a=ada", ",".join(kinds))


def test_the_definition_of_objects_is_the_one_that_corral_prints(helm: Helm) -> None:
    (found,) = (CHART / "crds").iterdir()
    assert found.read_text() == (CHART.parents[1] / "docs" / "schema" / found.name).read_text()
    assert "kind: CustomResourceDefinition" in helm.done(
        "template", "corral", str(CHART), "--include-crds", values=TRIAL
    )


def test_two_replicas_share_a_key_and_a_volume_and_are_kept_apart(helm: Helm) -> None:
    made = helm.render(TWO)
    assert made.of("Deployment")[0]["spec"]["replicas"] == 2
    assert made.one("Service", "corral")["spec"]["sessionAffinity"] == "ClientIP"
    assert made.environment("control")["CORRAL_CONTROL_ADDRESS"] == "$(POD_IP):8471"
    assert made.container("control")["ports"] == [{"name": "control", "containerPort": 8471}]
    assert made.server["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"
    assert {"nfs": {"server": "files.example", "path": "/corral"}, "name": "blobs"} in made.server["volumes"]
    claimed = helm.render(merged(TRIAL, {"replicas": 2})).one("PersistentVolumeClaim", "corral-blobs")
    assert claimed["spec"]["accessModes"] == ["ReadWriteMany"]


def test_with_a_uri_for_logs_and_code_replicas_share_no_volume(helm: Helm) -> None:
    made = helm.render(APART)
    assert not made.of("PersistentVolumeClaim")
    assert {"name": "blobs", "emptyDir": {}} in made.server["volumes"]
    for name in ("front", "control"):
        assert made.container(name)["envFrom"] == [{"secretRef": {"name": "corral-store"}}]
    assert "envFrom" not in helm.render(TRIAL).container("front")


def test_the_servers_own_claims_are_for_no_job(helm: Helm) -> None:
    made = helm.render(TRIAL)
    kept = made.one("PersistentVolumeClaim", "corral-blobs")["metadata"]
    (of_database,) = made.one("StatefulSet", "corral-postgresql")["spec"]["volumeClaimTemplates"]
    for metadata in (kept, of_database["metadata"]):
        assert metadata["labels"][RESERVED] == "true"


def test_the_key_is_32_bytes_and_the_trial_database_gets_a_password(helm: Helm) -> None:
    made = helm.render(TRIAL)
    assert len(base64.b64decode(made.secret("corral-key")["key"])) == 32
    given = made.secret("corral-database")
    assert given["url"] == f"postgresql://corral:{given['password']}@corral-postgresql/corral"
    assert made.one("Secret", "corral-key")["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_secrets_that_are_there_are_used_and_none_is_made(helm: Helm) -> None:
    made = helm.render({"database": {"existingSecret": "mine"}, "key": {"existingSecret": "ours"}})
    assert not made.of("Secret")
    assert made.environment("front")["CORRAL_DATABASE_URL"] == {"secretKeyRef": {"name": "mine", "key": "url"}}
    assert {"name": "key", "secret": {"secretName": "ours", "defaultMode": 0o440}} in made.server["volumes"]


def test_only_front_has_the_secret_of_openid_connect(helm: Helm) -> None:
    issuer = {"oidc_issuer": "https://id.example", "oidc_client_id": "corral"}
    made = helm.render(merged(TRIAL, {"settings": issuer, "oidc": {"existingSecret": "corral-oidc"}}))
    file = Path(made.environment("front")["CORRAL_OIDC_CLIENT_SECRET_FILE"])
    mounts = {each["name"]: [one["mountPath"] for one in each["volumeMounts"]] for each in made.server["containers"]}
    assert str(file.parent) in mounts["front"]
    assert str(file.parent) not in mounts["control"]
    assert {"name": "oidc", "secret": {"secretName": "corral-oidc", "defaultMode": 0o440}} in made.server["volumes"]
    assert "oidc" not in str(helm.render(TRIAL).server).lower()


def test_the_server_itself_serves_https_with_the_secret_that_is_named(helm: Helm) -> None:
    made = helm.render(
        merged(TRIAL, {"tls": {"existingSecret": "portal"}, "service": {"type": "NodePort", "nodePort": 30443}})
    )
    told = made.environment("front")
    assert told["CORRAL_TLS_CERTIFICATE"] == "/var/run/corral-tls/tls.crt"
    assert told["CORRAL_TLS_KEY"] == "/var/run/corral-tls/tls.key"
    assert told["CORRAL_ADVERTISE"] == "https://corral.ml.svc:8470"
    assert {"name": "tls", "mountPath": "/var/run/corral-tls", "readOnly": True} in made.container("front")[
        "volumeMounts"
    ]
    (volume,) = [each for each in made.server["volumes"] if each["name"] == "tls"]
    assert volume["secret"] == {"secretName": "portal", "defaultMode": 0o440}
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {made.container("front")[each]["httpGet"].get("scheme") for each in probes} == {"HTTPS"}
    (port,) = made.one("Service", "corral")["spec"]["ports"]
    assert port == {"name": "http", "port": 8470, "targetPort": "http", "nodePort": 30443}
    plain = helm.render(TRIAL)
    assert "scheme" not in plain.container("front")["startupProbe"]["httpGet"]
    assert "nodePort" not in plain.one("Service", "corral")["spec"]["ports"][0]


def test_prometheus_finds_the_server_when_told_to(helm: Helm) -> None:
    def notes(values: Thing) -> Thing:
        found: Thing = helm.render(values).of("Deployment")[0]["spec"]["template"]["metadata"]["annotations"]
        return found

    there = {f"prometheus.io/{what}" for what in ("scrape", "port", "path")}
    assert there <= notes(merged(TRIAL, {"prometheus": {"annotations": True}})).keys()
    assert not there & notes(TRIAL).keys()


def test_changed_documents_start_the_server_anew(helm: Helm) -> None:
    made = [helm.render(merged(TRIAL, {"documents": f"kind: Queue # {text}"})) for text in ("a", "a", "b")]
    notes = [
        each.of("Deployment")[0]["spec"]["template"]["metadata"]["annotations"]["corral.dev/configuration"]
        for each in made
    ]
    assert notes[0] == notes[1] != notes[2]
    assert made[2].one("ConfigMap", "corral")["data"] == {"documents.yaml": "kind: Queue # b"}


def test_the_device_plugin_is_as_its_page_says(helm: Helm) -> None:
    """The page's DaemonSet and the chart's differ only in names."""
    import yaml

    page = (CHART.parents[1] / "docs" / "device-plugin.md").read_text()
    shown = [thing for thing in yaml.safe_load_all(page.split("```yaml\n")[2].split("```")[0]) if thing]
    made = helm.render(merged(TRIAL, PLUGIN))
    (ours,) = made.of("DaemonSet")
    (theirs,) = [thing for thing in shown if thing["kind"] == "DaemonSet"]
    pods = [thing["spec"]["template"]["spec"] for thing in (ours, theirs)]
    assert pods[0]["tolerations"] == pods[1]["tolerations"]
    assert [each["mountPath"] for each in pods[0]["containers"][0]["volumeMounts"]] == [
        each["mountPath"] for each in pods[1]["containers"][0]["volumeMounts"]
    ]
    roles = [
        next(
            thing["rules"] for thing in things if thing["kind"] == "ClusterRole" and "device" in str(thing["metadata"])
        )
        for things in (made.things, shown)
    ]
    assert roles[0] == roles[1]


def test_the_server_asks_the_agents_of_all_nodes_with_their_token(helm: Helm) -> None:
    made = helm.render(merged(TRIAL, AGENT))
    told = made.environment("control")
    assert told["CORRAL_AGENTS"] == "http://corral-node-agent.ml.svc:9102"
    (service,) = (each for each in made.of("Service") if each["metadata"]["name"] == "corral-node-agent")
    (agents,) = made.of("DaemonSet")
    labels = agents["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"].items() <= labels.items()
    mounts = {
        each["name"]: [mount["mountPath"] for mount in each["volumeMounts"]] for each in made.server["containers"]
    }
    folder = told["CORRAL_AGENTS_TOKEN_FILE"].rpartition("/")[0]
    assert folder in mounts["control"] and folder not in mounts["front"]
    (volume,) = (each for each in made.server["volumes"] if each["name"] == "agents")
    assert volume["secret"]["secretName"] == "corral-agent"
    assert "CORRAL_AGENTS" not in helm.render(TRIAL).environment("control")


def test_the_node_agent_runs_with_its_token_on_each_node(helm: Helm) -> None:
    (made,) = helm.render(merged(TRIAL, AGENT)).of("DaemonSet")
    pod = made["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert pod["hostPID"] and pod["automountServiceAccountToken"] is False
    assert command[:4] == ["corral", "node-agent", "--listen", "0.0.0.0:9102"]
    assert command[4:6] == ["--token-file", "/etc/corral/agent/token"]
    assert "--fix-gpu-clocks" not in command, "the administrator allows it"
    (allowed,) = helm.render(merged(TRIAL, merged(AGENT, {"nodeAgent": {"fixGpuClocks": True}}))).of("DaemonSet")
    assert allowed["spec"]["template"]["spec"]["containers"][0]["command"][-1] == "--fix-gpu-clocks"
    assert "--dcgm-exporter" not in command
    exporter = {"dcgmExporter": "http://dcgm:9400/metrics"}
    (told,) = helm.render(merged(TRIAL, merged(AGENT, {"nodeAgent": exporter}))).of("DaemonSet")
    command = told["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[-2:] == ["--dcgm-exporter", "http://dcgm:9400/metrics"]
    others = {"amdExporter": "http://amd:5000/metrics", "nodeExporter": "http://node:9100/metrics"}
    (told,) = helm.render(merged(TRIAL, merged(AGENT, {"nodeAgent": others}))).of("DaemonSet")
    command = told["spec"]["template"]["spec"]["containers"][0]["command"]
    addresses = ["--amd-exporter", "http://amd:5000/metrics", "--node-exporter", "http://node:9100/metrics"]
    assert command[-4:] == addresses
    assert pod["volumes"][0]["secret"]["secretName"] == "corral-agent"
    checks = {"checks": "/etc/corral/checks-of-nodes", "checkSeconds": 30}
    (checked,) = helm.render(merged(TRIAL, merged(AGENT, {"nodeAgent": checks}))).of("DaemonSet")
    made = checked["spec"]["template"]["spec"]
    mounts = made["containers"][0]["volumeMounts"]
    assert made["containers"][0]["command"][-4:] == ["--checks", "/etc/corral/checks", "--check-seconds", "30"]
    assert mounts[-1] == {"name": "checks", "mountPath": "/etc/corral/checks", "readOnly": True}
    assert made["volumes"][-1]["hostPath"] == {"path": "/etc/corral/checks-of-nodes", "type": "DirectoryOrCreate"}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "name one database"),
        (merged(TRIAL, {"database": {"url": "postgresql://x/y"}}), "name one database"),
        ({"database": {"url": "mysql://x/y"}}, "/database/url"),
        (merged(TRIAL, {"replicas": 3}), "/replicas"),
        (merged(TRIAL, {"replicas": 2, "blobs": {"accessMode": "ReadWriteOnce"}}), "/blobs/accessMode"),
        (merged(TRIAL, {"blobs": {"uri": "/srv/blobs"}}), "/blobs/uri"),
        (merged(TRIAL, {"settings": {"blobs": "s3://x"}}), "invalid propertyName blobs"),
        (merged(TRIAL, {"engine": "slurm"}), "/engine"),
        (merged(TRIAL, {"engine": "yarn"}), "/engine"),
        (merged(TRIAL, {"settings": {"port": 1}}), "invalid propertyName port"),
        (merged(TRIAL, {"url": "corral.example"}), "/url"),
        (merged(TRIAL, {"colour": "red"}), "colour"),
        (merged(TRIAL, {"user": 0}), "/user"),
        (merged(TRIAL, {"ingress": {"enabled": True}}), "ingress.host"),
        (merged(TRIAL, {"devicePlugin": {"enabled": True}}), "devicePlugin.devices"),
        (merged(TRIAL, {"nodeAgent": {"enabled": True}}), "nodeAgent.tokenSecret"),
        (merged(TRIAL, {"nodeAgent": {"parts": "gpus"}}), "/nodeAgent/parts"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(helm: Helm, values: Thing, named: str) -> None:
    assert named in helm.refused(values).replace("'", "")


@pytest.mark.parametrize(
    "values",
    [
        merged(TRIAL, {"ingress": {"enabled": True, "host": "corral.example", "tlsSecret": "c"}}),
        TWO,
        merged(TRIAL, PLUGIN),
        merged(TRIAL, AGENT),
    ],
    ids=["one", "two", "devices", "agent"],
)
def test_a_real_apiserver_takes_it(control_plane: ControlPlane, namespace: str, tmp_path: Path, values: Thing) -> None:
    helm = Helm(tmp_path, control_plane)
    helm.done("install", "corral", str(CHART), "--namespace", namespace, "--dry-run=server", values=values)
    made = helm.render(values, namespace=namespace)
    words = ["apply", "--namespace", namespace, "--dry-run=server", "--validate=strict", "-f", "-"]
    said = control_plane.kubectl(*words, given=made.text).stdout
    assert said.count("(server dry run)") == len(made.things)


def test_its_pods_meet_the_strictest_standard(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    merge = "application/merge-patch+json"
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    control_plane.request("PATCH", f"/api/v1/namespaces/{namespace}", enforce, content=merge)
    volume = {"volume": {"persistentVolumeClaim": {"claimName": "there"}}}
    made = Helm(tmp_path).render(merged(TRIAL, {"blobs": volume, "database": {"trial": volume}}), namespace=namespace)
    for thing in (*made.of("Deployment"), *made.of("StatefulSet")):
        pod = {"apiVersion": "v1", "kind": "Pod", **thing["spec"]["template"]}
        pod["metadata"] |= {"name": "tried"}
        pod["spec"].pop("serviceAccountName", None)
        control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
