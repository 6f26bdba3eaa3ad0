"""Alnair's and FrameworkController's documents run unchanged as processes of the local engine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.endtoend.platform import Job, Platform

EXAMPLES = Path(__file__).parents[2] / "examples"


def submitted(server: Platform, path: str, name: str, code: int = 0) -> tuple[str, Job]:
    """Submit a document and follow its log; returns the log and the job."""
    done = server.run("submit", "-f", "--no-image", str(EXAMPLES / path))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, dict(server.client.job(name))


def test_a_framework_ends_as_its_policies_say(server: Platform) -> None:
    printed, job = submitted(server, "frameworkcontroller/batch.yaml", "batch")
    lines = [line.partition(" | ")[2] for line in printed.splitlines()]
    assert {f"worker-{index}: {at}" for index in range(2) for at in (1, 2, 3)} <= set(lines)
    assert "serving batch" in lines
    assert (job["state"], job["document"]["spec"]["jobType"]) == ("succeeded", "frameworkcontroller")
    exits = {name: task["exit"]["code"] for name, task in server.tasks(job).items()}
    assert exits == {"server-0": -220, "worker-0": 0, "worker-1": 0}


def test_exit_codes_of_a_framework_are_frameworkcontrollers(server: Platform) -> None:
    document = {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": "codes"},
        "spec": {
            "retryPolicy": {"fancyRetryPolicy": True, "maxRetryCount": 3},
            "taskRoles": [
                {
                    "name": "main",
                    "taskNumber": 1,
                    "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1},
                    "task": {
                        "pod": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "a", "image": "x", "command": ["sh", "-c", "exit 139"]}],
                            }
                        }
                    },
                }
            ],
        },
    }
    job = server.ran(document, no_image=True)
    assert (job["state"], job["exit"]["code"], job["exit"]["phrase"]) == ("failed", 139, "ContainerSigSegvReceived")
    assert job["attempt"] == 0


def test_a_pods_deadline_ends_that_pod_and_its_retry_rule_decides(server: Platform) -> None:
    def role(name: str, command: str, **spec: object) -> dict[str, object]:
        container = {"name": "a", "image": "x", "command": ["sh", "-c", command]}
        pod = {
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
        }
        retries = {"fancyRetryPolicy": False, "maxRetryCount": 1}
        policy = {"minFailedTaskCount": 1}
        return {
            "name": name,
            "taskNumber": 1,
            "frameworkAttemptCompletionPolicy": policy,
            "task": {"pod": pod, "retryPolicy": retries},
        }

    job = server.ran(
        {
            "apiVersion": "frameworkcontroller.microsoft.com/v1",
            "kind": "Framework",
            "metadata": {"name": "deadline"},
            "spec": {"taskRoles": [role("slow", "sleep 600", activeDeadlineSeconds=1), role("free", "sleep 600")]},
        },
        no_image=True,
    )
    assert (job["state"], job["exit"]["code"], job["exit"]["phrase"]) == ("failed", -1004, "PodDeadlineExceeded")
    tasks = server.tasks(job)
    assert (tasks["slow-0"]["attempt"], tasks["slow-0"]["exit"]["code"]) == (1, -1004)
    assert tasks["free-0"]["exit"]["code"] == -220


def test_a_pod_of_kubernetes_alone_is_refused_here_with_its_field(server: Platform) -> None:
    _, job = submitted(server, "frameworkcontroller/barrier.yaml", "barrier", code=1)
    assert "kubernetes.podTemplate cannot be had here" in json.dumps(job["exit"])


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


def test_of_a_file_of_several_documents_what_is_corrals_is_checked_and_applied(
    server: Platform, tmp_path: Path
) -> None:
    batch = (EXAMPLES / "frameworkcontroller" / "batch.yaml").read_text()
    queue, job = (
        "kind: Queue\nname: streams\nweight: 2\n",
        "name: streamed\nqueue: streams\nroles: {a: {command: 'true'}}\n",
    )
    file = tmp_path / "all.yaml"
    file.write_text("---\n".join([SERVICE, batch, queue]))
    left = "Service/web (line 1) is no document of Corral's and left out; kubectl apply takes it."
    assert left in server.corral("validate", str(file))
    assert json.loads(server.corral("validate", "-o", "json", str(file)))["leftOut"] == [
        f"{file}: Service/web (line 1)"
    ]
    assert "nothing was taken" in server.refused("submit", str(file), code=2)
    file.write_text("---\n".join([SERVICE, job, queue]))
    tried = server.run("apply", str(file), "--dry-run")
    assert tried.returncode == 0 and left in tried.stderr, tried.stdout + tried.stderr
    assert "Queue/streams would be created" in tried.stdout and "job/streamed would be submitted" in tried.stdout
    done = server.run("apply", str(file))
    assert done.returncode == 0 and left in done.stderr, done.stdout + done.stderr
    assert "Queue/streams created (revision 1)" in done.stdout
    assert server.client.job("streamed")["queue"] == "streams"
    file.write_text(job.replace("name", "kind: UnifiedJob\nname", 1))
    assert f"{file}:1:1: apiVersion: missing" in server.refused("apply", str(file), code=2)


def test_each_job_of_a_file_is_submitted_or_none(server: Platform, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    jobs = [f"name: each{at}\nroles: {{a: {{command: 'true'}}}}\n" for at in range(2)]
    file.write_text("---\n".join([SERVICE, *jobs, "name: each2\nqueue: nowhere\nroles: {a: {command: 'true'}}\n"]))
    assert "nowhere" in server.refused("submit", str(file), code=2)
    assert server.corral("ls", "-o", "json").count("each") == 0
    file.write_text("---\n".join([*jobs, SERVICE]))
    done = server.run("submit", "-f", str(file))
    assert done.returncode == 0 and "Service/web" in done.stderr, done.stdout + done.stderr
    assert {server.client.job(f"each{at}")["state"] for at in range(2)} == {"succeeded"}
    file.write_text(SERVICE + "---\n" + SERVICE)
    assert "none is a job" in server.corral("validate", str(file), code=2)
    assert "nothing was applied" in server.refused("apply", str(file), code=2)


def test_a_base_job_of_alnairs_runs(server: Platform) -> None:
    printed, job = submitted(server, "alnair/base.yaml", "alnair-base")
    assert "trained" in printed.splitlines()
    assert (job["state"], job["devices"]) == ("succeeded", 1)


def test_what_a_document_became_is_shown_and_its_problems_are_told(server: Platform, tmp_path: Path) -> None:
    shown = server.corral("convert", str(EXAMPLES / "alnair" / "elastic-horovod.yaml"), "-o", "json")
    assert json.loads(shown)["spec"]["replicaSpec"] == {
        "role": "worker", "replicas": 8, "minReplicas": 2, "maxReplicas": 8,
    }  # fmt: skip
    bad = tmp_path / "bad.yaml"
    bad.write_text((EXAMPLES / "alnair" / "base.yaml").read_text().replace("jobType: BaseJob", "jobType: Base"))
    said = server.refused("submit", str(bad), code=2)
    assert "bad.yaml:6:10: jobType: expected one of BaseJob, EHJob, EPJob, HJob" in said
