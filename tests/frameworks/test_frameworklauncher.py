"""The variables of a FrameworkLauncher Framework's tasks, and the table that classifies their exit codes."""

from __future__ import annotations

import pytest

from corral.compat.openpai.language.descriptor import read_descriptor
from corral.compat.openpai.language.launcher import Cluster, launcher_job
from corral.frameworks import Gang, framework
from corral.kernel.ids import JobId
from corral.model.framework_exits import classify_by
from corral.model.outcome import ExitClass
from corral.model.placement import Placement, TaskPlacement
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob

DESCRIPTOR = {
    "version": 4,
    "taskRoles": {
        "Par_Server": {
            "taskNumber": 2,
            "taskService": {
                "version": 9,
                "entryPoint": "exec ./run",
                "sourceLocations": ["/x/run", "/x/more.zip"],
                "resource": {
                    "cpuNumber": 1,
                    "memoryMB": 100,
                    "gpuNumber": 2,
                    "portDefinitions": {"Web.UI": {"start": 0, "count": 2}, "rpc": {"start": 700, "count": 1}},
                },
            },
        }
    },
}


def gang() -> Gang:
    document = launcher_job("ann~a", read_descriptor(DESCRIPTOR), "ann", Cluster("hdfs://x", "http://here"))
    places = tuple(TaskPlacement("par-server", index, "local/n", (index, index + 2)) for index in range(2))
    return Gang(JobId("j"), "a", 1, UnifiedJob.from_document(document), Placement(places))


def test_a_service_is_told_who_it_is_and_what_it_has() -> None:
    one = gang()
    made = framework("frameworklauncher").render(one, one.placement.tasks[1], 3)
    told = {name: value for name, value in made.env.items() if not name.startswith("CORRAL")}
    assert told == {
        "OMP_NUM_THREADS": "1",
        "LAUNCHER_ADDRESS": "http://here",
        "FRAMEWORK_NAME": "ann~a",
        "FRAMEWORK_VERSION": "4",
        "TASKROLE_NAME": "Par_Server",
        "TASK_INDEX": "1",
        "SERVICE_NAME": "Par_Server",
        "SERVICE_VERSION": "9",
        "APP_ID": "application_j_0001",
        "CONTAINER_ID": "j.1.par-server.1.3",
        "CONTAINER_GPUS": str(0b1010),
        "HDFS_USER_STORE_ROOT_DIR": "hdfs://x/Launcher/ann~a/UserStore",
        "HDFS_FRAMEWORK_INFO_FILE": "hdfs://x/Launcher/ann~a/FrameworkInfo.json",
    }


def test_address_and_ports_are_put_together_where_the_task_runs_and_zipped_sources_are_unpacked_first() -> None:
    one = gang()
    *words, script = framework("frameworklauncher").render(one, one.placement.tasks[0]).command
    lines = script.splitlines()
    assert words == ["bash", "-c"]
    assert lines[:2] == [
        'export CONTAINER_IP="$CORRAL_HOST"',
        'export CONTAINER_PORTS="Web.UI:${CORRAL_PORT_WEB_UI};rpc:${CORRAL_PORT_RPC};"',
    ]
    assert "more.zip" in lines[2] and lines[-1] == "exec ./run"


def test_nobody_writes_such_a_job_by_hand() -> None:
    document = gang().job.to_document()
    document["metadata"]["annotations"] = {}
    findings = framework("frameworklauncher").check(UnifiedJob.from_document(document))
    assert [path for path, _ in findings] == [("spec", "jobType")]
    with pytest.raises(SpecError):
        read_descriptor({})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (0, ExitClass.SUCCEEDED),
        (1, ExitClass.UNKNOWN),
        (130, ExitClass.TRANSIENT),
        (131, ExitClass.UNKNOWN),
        (132, ExitClass.PERMANENT),
        (134, ExitClass.UNKNOWN),
        (137, ExitClass.TRANSIENT),
        (139, ExitClass.PERMANENT),
        (143, ExitClass.TRANSIENT),
        (154, ExitClass.TRANSIENT),
        (193, ExitClass.TRANSIENT),
        (194, ExitClass.PERMANENT),
        (196, ExitClass.PERMANENT),
        (198, ExitClass.TRANSIENT),
        (200, ExitClass.UNKNOWN),
        (251, ExitClass.CONFLICT),
        (-210, ExitClass.PERMANENT),
    ],
)
def test_ends_are_read_by_frameworklaunchers_table(code: int, kind: ExitClass) -> None:
    assert classify_by("frameworklauncher", code).exit_class is kind
