"""Alnair's documents become jobs: each field is translated, or refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.frameworks.runnable_job import load_runnable_job
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

EXAMPLES = Path(__file__).parents[2] / "examples" / "alnair"


def document(kind: str = "EHJob", least: int = 2, most: int = 5, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ai.centauruscloud.io/v1alpha1",
        "kind": "UnifiedJob",
        "metadata": {"name": "sample"},
        "jobType": kind,
        "spec": {
            "reschedulable": True,
            "jobSpec": {"image": "images/demo:1.0", "unifiedArgs": ["train.py", "--epochs=20"]},
            "replicaSpec": {"minReplicas": least, "maxReplicas": most},
            **spec,
        },
    }


def refused(data: dict[str, Any] | str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_job(data, filename="alnair.yaml")
    return [str(problem) for problem in caught.value.problems]


def bounds(job: UnifiedJob) -> tuple[int, int, int]:
    count = job.spec.replica_spec
    return count.min_replicas, count.replicas, count.max_replicas


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_a_job_that_its_framework_can_run(path: Path) -> None:
    job = load_runnable_job(path.read_bytes(), filename=path.name)
    assert job.total_devices > 0
    assert UnifiedJob.from_document(job.to_document()) == job


@pytest.mark.parametrize(
    ("kind", "framework", "command"),
    [
        ("EHJob", "horovod", ["sh", "-c", "train.py --epochs=20"]),
        ("EPJob", "pytorch", ["sh", "-c", "exec python -u train.py --epochs=20"]),
    ],
)
def test_elastic_types_are_elastic_roles_of_one_device_a_task(kind: str, framework: str, command: list[str]) -> None:
    job = load_job(document(kind))
    assert (job.spec.job_type, job.is_elastic, bounds(job)) == (framework, True, (2, 5, 5))
    assert job.counted_role.resources.devices.count == 1
    assert job.counted_role.command == command
    assert job.gang_size() == {"worker": 2}


def test_a_base_job_is_one_task_with_the_devices_that_it_needs_at_least() -> None:
    job = load_job(document("BaseJob"))
    assert (job.spec.job_type, job.total_tasks, job.total_devices) == ("shell", 1, 2)
    assert job.counted_role.command == ["sh", "-c", "train.py --epochs=20"]


def test_a_base_job_without_devices_is_a_task_without_devices() -> None:
    assert load_job(document("BaseJob", 0, 0)).total_devices == 0


def test_horovod_of_one_size_is_not_elastic() -> None:
    job = load_job(document("HJob", 4, 4))
    assert (job.spec.job_type, job.is_elastic, bounds(job)) == ("horovod", False, (4, 4, 4))
    assert "for a range write EHJob" in refused(document("HJob", 2, 4))[0]


def test_what_alnair_asks_nothing_of_is_neither_reserved_nor_limited() -> None:
    resources = load_job(document()).counted_role.resources
    assert (resources.cpu_millis, resources.memory_bytes) == (0, 0)


@pytest.mark.parametrize("place", ["spec", "jobSpec"])
@pytest.mark.parametrize("value", [True, False])
def test_reschedulable_is_read_where_the_schema_and_where_the_guide_have_it(place: str, value: bool) -> None:
    data = document()
    del data["spec"]["reschedulable"]
    (data["spec"] if place == "spec" else data["spec"]["jobSpec"])["reschedulable"] = value
    assert load_job(data).spec.preemptible is value


def test_what_a_cluster_wrote_into_an_object_is_no_part_of_the_job() -> None:
    data = document()
    plain = load_job(data)
    data["metadata"] |= {
        "uid": "1", "resourceVersion": "7", "generation": 2, "managedFields": [{}], "finalizers": ["corral.dev/job"],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }  # fmt: skip
    data["spec"]["replicaSpec"]["targetReplicas"] = {"node1": 4}
    data["status"] = {"jobStatus": "Running", "itersCompleted": 0, "itersTotal": 0}
    assert load_job(data) == plain


def test_annotations_say_what_alnair_has_no_word_for() -> None:
    data = document()
    data["metadata"]["annotations"] = {
        "corral.dev/queue": "research",
        "corral.dev/priority": "prod",
        "corral.dev/replicas": "3",
        "note": "kept",
    }
    job = load_job(data)
    assert (job.spec.queue, job.priority, bounds(job)) == ("research", 100, (2, 3, 5))
    assert job.metadata.annotations["note"] == "kept"


WRONG = {
    "an unknown type": (document("XJob"), "jobType: expected one of BaseJob, EHJob, EPJob, HJob"),
    "bounds the wrong way round": (document(least=6), "spec.replicaSpec.minReplicas: 6 is more than maxReplicas"),
    "a bound that is text": (
        document(replicaSpec={"minReplicas": "two", "maxReplicas": 5}),
        'spec.replicaSpec.minReplicas: expected a whole number from 0 to 10000, got "two"',
    ),
    "no bound": (document(replicaSpec={"maxReplicas": 2}), "spec.replicaSpec.minReplicas: missing"),
    "an elastic job without devices": (document(least=0, most=0), "needs at least 1 device"),
    "no arguments": (
        document(jobSpec={"image": "a", "unifiedArgs": []}),
        "spec.jobSpec.unifiedArgs: missing; say what the job runs",
    ),
    "no image": (document(jobSpec={"unifiedArgs": ["a"]}), "spec.jobSpec.image: missing"),
    "a field that nobody knows": (
        document(jobSpec={"image": "a", "unifiedArgs": ["a"], "imagePolicy": "x"}),
        "spec.jobSpec.imagePolicy: unknown field",
    ),
    "torchelastic's own options": (
        document("EPJob", jobSpec={"image": "a", "unifiedArgs": ["--max_restarts=3", "a.py"]}),
        "torchelastic's own options are Corral's to give",
    ),
    "an annotation of ours that does not exist": (
        document() | {"metadata": {"name": "a", "annotations": {"corral.dev/queu": "b"}}},
        'unknown annotation; did you mean "corral.dev/queue"?',
    ),
    "a name that is none of ours": (document() | {"metadata": {"name": "a.b"}}, "metadata.name: expected lower-case"),
    "a count in digits that are no number": (
        document() | {"metadata": {"name": "a", "annotations": {"corral.dev/replicas": "\u00b2"}}},
        "corral.dev/replicas: expected a whole number",
    ),
    "a count that is longer than any": (
        document() | {"metadata": {"name": "a", "annotations": {"corral.dev/replicas": "9" * 5000}}},
        "corral.dev/replicas: expected a whole number",
    ),
    "more asked for than the bounds allow": (
        document() | {"metadata": {"name": "a", "annotations": {"corral.dev/replicas": "9"}}},
        "9 is not between minReplicas 2 and maxReplicas 5",
    ),
}


@pytest.mark.parametrize(("data", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_refused_with_one_sentence(data: dict[str, Any], sentence: str) -> None:
    found = refused(data)
    assert len(found) == 1
    assert sentence in found[0]


def test_a_problem_is_told_at_the_line_where_it_was_written() -> None:
    text = (EXAMPLES / "elastic-horovod.yaml").read_text().replace("maxReplicas: 8", "maxReplicas: many")
    line = text[: text.index("maxReplicas")].count("\n") + 1
    found = refused(text)
    assert found[0].startswith(f"alnair.yaml:{line}:18: spec.replicaSpec.maxReplicas: expected a whole number")


def test_such_a_document_has_no_parameters_and_takes_another_name() -> None:
    with pytest.raises(SpecError, match="this kind of document has no parameters"):
        load_job(document(), parameters={"lr": "0.1"})
    assert load_job(document(), name="other").name == "other"


KEYS = st.sampled_from(
    ["apiVersion", "kind", "metadata", "jobType", "spec", "jobSpec", "replicaSpec", "minReplicas", "image", "x"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12_000) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_whatever_is_written_is_a_job_or_is_refused(top: dict[str, Any], spec: dict[str, Any]) -> None:
    data = {**document(), **top, "apiVersion": "ai.centauruscloud.io/v1alpha1", "kind": "UnifiedJob"}
    if isinstance(data["spec"], dict):
        data["spec"] = {**data["spec"], **spec}
    try:
        job = load_job(data)
    except SpecError as error:
        assert all(str(problem) for problem in error.problems)
    else:
        assert UnifiedJob.from_document(job.to_document()) == job


@given(st.integers(1, 10_000), st.integers(0, 9_000), st.sampled_from(["EHJob", "EPJob"]))
def test_bounds_stay_what_they_are(least: int, more: int, kind: str) -> None:
    most = min(10_000, least + more)
    assert bounds(load_job(document(kind, least, most))) == (least, most, most)
