"""The CRD of UnifiedJob is valid for a cluster and describes every field as the model does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import yaml
from hypothesis import given

from corral.spec.crd import crd_text, object_schema, schema_digest, unifiedjob_crd
from corral.spec.job import JobSpec
from corral.spec.job_objects import Condition, ObjectState, RoleState, UnifiedJobKind
from corral.spec.job_reader import load_job
from corral.spec.object_status import ObjectStatus
from tests.spec.test_roundtrip import FEW, short_jobs

KNOWN = {
    "type", "description", "enum", "items", "maximum", "minimum", "maxItems", "minItems", "maxLength", "minLength",
    "maxProperties", "pattern", "properties", "required", "additionalProperties",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
}  # fmt: skip
SMALL = {"name": "small", "roles": {"main": {"command": "true"}}}


def parts(part: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, part
    for name, inner in part.get("properties", {}).items():
        yield from parts(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in part:
            yield from parts(part[key], f"{path}[]")


def test_every_part_is_of_one_type_and_says_nothing_that_a_cluster_would_refuse() -> None:
    for path, part in parts(object_schema()):
        assert isinstance(part.get("type"), str), path
        assert part.keys() <= KNOWN, path
        assert not ("properties" in part and "additionalProperties" in part), path


def test_every_field_of_the_models_is_there_and_described() -> None:
    schema = object_schema()["properties"]
    assert schema["spec"]["properties"].keys() == {field.alias for field in JobSpec.model_fields.values()}
    assert schema["status"]["properties"].keys() == {field.alias for field in ObjectStatus.model_fields.values()}
    for path, part in parts(schema["spec"], "spec"):
        assert part.get("description") or path.endswith("[]"), path


def test_the_printed_definition_is_the_generated_one() -> None:
    assert yaml.safe_load(crd_text()) == unifiedjob_crd()
    assert unifiedjob_crd()["metadata"]["annotations"] == {"corral.dev/schema": schema_digest()}


@FEW
@given(short_jobs())
def test_whatever_is_accepted_is_an_object_that_the_definition_takes(document: dict[str, Any]) -> None:
    job = load_job(document)
    validator = jsonschema_rs.validator_for({"additionalProperties": False, **object_schema()})
    for complete in (True, False):
        validator.validate(job.to_document(complete=complete))


def test_an_object_is_read_as_the_job_that_it_says() -> None:
    job = load_job(SMALL)
    meta = {"uid": "u", "namespace": "n", "labels": {"a": "b"}, "annotations": {"kubectl": "x"}, "managedFields": []}
    seen = {**job.to_document(), "metadata": {"name": "small", **meta}, "status": {"phase": "waiting"}}
    read = UnifiedJobKind().job(seen)
    assert read.metadata.labels == {"a": "b"}
    assert json.loads(read.to_json())["spec"] == json.loads(job.to_json())["spec"]


def test_counts_and_targets_do_not_change_what_an_object_asks_for_and_all_else_does() -> None:
    kind, document = UnifiedJobKind(), load_job(SMALL).to_document()
    counts = document["spec"]["replicaSpec"]
    scaled = {**document, "spec": {**document["spec"], "replicaSpec": {**counts, "replicas": 7}}}
    placed = {**document, "spec": {**document["spec"], "replicaSpec": {**counts, "targetReplicas": {"k/n": 1}}}}
    other = {**document, "spec": {**document["spec"], "queue": "other"}}
    assert kind.fingerprint(document) == kind.fingerprint(scaled) == kind.fingerprint(placed)
    assert kind.fingerprint(document) != kind.fingerprint(other)


def test_a_status_is_one_that_the_definition_takes_and_its_times_stay() -> None:
    kind = UnifiedJobKind()
    accepted = Condition("Accepted", "True", "Submitted", "It is job x.")
    state = ObjectState(
        job="x", phase="running", generation=3, devices=2.5, counted="main", replicas=1, roles=(RoleState("main", 1),),
        placements={"main": {"kubernetes/a": 1}}, exit_code=0, conditions=(accepted,), started_at="t",
    )  # fmt: skip
    shown = kind.status(state, {})
    jsonschema_rs.validate(object_schema()["properties"]["status"], shown)
    assert shown["conditions"][0]["lastTransitionTime"] == "now"
    shown["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    assert kind.status(state, {"status": shown}) == shown
    assert kind.job_of({"status": shown}) == "x"
    assert not kind.over({"status": shown})
