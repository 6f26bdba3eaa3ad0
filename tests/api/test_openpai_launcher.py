"""FrameworkLauncher's routes keep its status codes and fields, because its clients depend on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from corral.compat.openpai.language.descriptor import read_descriptor
from corral.compat.openpai.language.launcher import Cluster, launcher_job
from corral.compat.openpai.records.launcher import Asked, Framework, Launching, aggregated_status
from corral.compat.openpai.service.tenant import OpenPai
from corral.compat.openpai.tables.key_values import KeyValue, KeyValues
from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId
from corral.kernel.tokens import mint_job_token
from corral.model.records import JobFilter
from corral.model.runs import RetriedAfter, Retries, TaskRun
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.account_limits import UNBOUNDED, Allowance
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from tests.api.harness import Server
from tests.api.openpai_caller import Pai, signed_in

STATUS = {
    "frameworkName", "frameworkVersion", "frameworkState", "frameworkRetryPolicyState", "frameworkCreatedTimestamp",
    "frameworkCompletedTimestamp", "applicationId", "applicationProgress", "applicationTrackingUrl",
    "applicationLaunchedTimestamp", "applicationCompletedTimestamp", "applicationExitCode",
    "applicationExitDiagnostics", "applicationExitType",
}  # fmt: skip
SUMMARY = {
    "frameworkName", "frameworkVersion", "executionType", "frameworkDescription", "userName", "queue",
    "totalGpuNumber", "totalTaskNumber", "totalTaskRoleNumber", "firstRequestTimestamp", "lastRequestTimestamp",
    "frameworkState", "frameworkRetryPolicyState", "frameworkCompletedTimestamp", "applicationExitCode",
}  # fmt: skip
TASK = {
    "taskIndex", "taskRoleName", "taskState", "taskRetryPolicyState", "taskCreatedTimestamp", "taskCompletedTimestamp",
    "taskServiceStatus", "containerId", "containerHost", "containerIp", "containerPorts", "containerGpus",
    "containerLogHttpAddress", "containerConnectionLostCount", "containerIsDecommissioning",
    "containerLaunchedTimestamp", "containerCompletedTimestamp", "containerExitCode", "containerExitDiagnostics",
    "containerExitType",
}  # fmt: skip


def resource(**more: Any) -> dict[str, Any]:
    return {"cpuNumber": 1, "memoryMB": 100, **more}


def role(number: int = 1, *, asked: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    service = {
        "version": 1,
        "entryPoint": "bash run.sh",
        "sourceLocations": ["/programs/run.sh"],
        "resource": asked or resource(),
    }
    return {"taskNumber": number, "taskService": service, **more}


def framework(version: int = 1, roles: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"version": version, "taskRoles": {"Master": role()} if roles is None else roles, **more}


def made(descriptor: dict[str, Any], cluster: Cluster | None = None) -> UnifiedJob:
    return UnifiedJob.from_document(
        launcher_job("ann~a", read_descriptor(descriptor), "ann", cluster or Cluster("hdfs://x"))
    )


@pytest.fixture(scope="module")
def ann(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ann")
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def ben(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ben")
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "boss", role="admin")
    yield caller
    caller.close()


def put(caller: Pai, name: str, body: Any, status: int = 202, **headers: str) -> Any:
    answer = caller.call("PUT", f"/v1/Frameworks/{name}", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def changed(caller: Pai, path: str, body: Any, status: int = 202) -> Any:
    answer = caller.call("PUT", f"/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def refused(caller: Pai, method: str, path: str, **terms: Any) -> tuple[int, str]:
    """Status and sentence of a call that must be refused."""
    answer = caller.call(method, path, **terms)
    assert answer.status_code >= 400, answer.text
    return answer.status_code, answer.json()["message"]


def job_of(server: Server, caller: Pai, name: str) -> str:
    status = caller.get(f"/v1/Frameworks/{name}/FrameworkStatus")
    found = server.call(KeyValues(server.store).key_value("framework", name))
    assert found is not None and status["frameworkName"] == name
    return str(json.loads(found.body)["job"])


# -- the descriptor -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("descriptor", "field"),
    [
        ({"taskRoles": {"a": role()}}, "version"),
        (framework(roles={}), "taskRoles"),
        (framework(roles={"a b": role()}), "a b"),
        (framework(roles={"a": role(50_001)}), "taskNumber"),
        (framework(description="x" * 1025), "description"),
        (framework(executionType="CREATE"), "executionType"),
        (framework(retryPolicy={"maxRetryCount": -3}), "maxRetryCount"),
        (framework(unknown=1), "unknown"),
        (framework(roles={"a": role(asked={"cpuNumber": 1})}), "memoryMB"),
        (framework(roles={"a": role(asked=resource(gpuNumber=1, gpuAttribute=3))}), "gpuAttribute"),
        (framework(roles={"a": role(asked=resource(portDefinitions={"p": {"start": 65_535, "count": 2}}))}), "count"),
        (framework(roles={"a": {**role(), "taskService": {**role()["taskService"], "sourceLocations": []}}}), "source"),
        (framework(roles={"a": {**role(), "taskService": {**role()["taskService"], "entryPoint": ""}}}), "entryPoint"),
        (framework(platformSpecificParameters={"amType": "OTHER"}), "amType"),
        (framework(parentFramework={"parentFrameworkName": "a b"}), "parentFrameworkName"),
        ([], "mapping"),
    ],
)
def test_a_descriptor_that_breaks_a_rule_is_a_bad_request_that_names_it(ann: Pai, descriptor: Any, field: str) -> None:
    status, message = refused(ann, "PUT", "/v1/Frameworks/ann~broken", json=descriptor)
    assert (status, field in message) == (400, True), message
    assert refused(ann, "GET", "/v1/Frameworks/ann~broken")[0] == 404


def test_a_descriptor_is_given_its_defaults(ann: Pai) -> None:
    put(ann, "ann~defaults", framework())
    said = ann.get("/v1/Frameworks/ann~defaults/FrameworkRequest")["frameworkDescriptor"]
    assert said["user"] == {"name": "ann"}
    assert (said["executionType"], said["retryPolicy"]) == ("START", {"fancyRetryPolicy": False, "maxRetryCount": 0})
    platform = said["platformSpecificParameters"]
    assert (platform["queue"], platform["gangAllocation"], platform["amType"]) == ("default", False, "DEFAULT")
    assert (platform["amResource"]["memoryMB"], platform["containerConnectionMaxLostCount"]) == (4096, -2)
    task = said["taskRoles"]["Master"]
    assert task["applicationCompletionPolicy"] == {"minFailedTaskCount": 1, "minSucceededTaskCount": None}
    assert (task["scaleUnitNumber"], task["taskService"]["resource"]["gpuAttribute"]) == (1, 0)


def test_what_a_descriptor_asks_of_yarn_the_job_asks_here() -> None:
    asked = resource(gpuNumber=2, gpuAttribute=5, diskMB=10, portDefinitions={"http": {"start": 8000, "count": 2}})
    more = {"applicationCompletionPolicy": {"minFailedTaskCount": None, "minSucceededTaskCount": 2}}
    platform = {"queue": "vc1", "antiaffinityAllocation": True, "taskNodeLabel": "fast"}
    policy = {"fancyRetryPolicy": True, "maxRetryCount": 3}
    roles = {"LRS_Master": role(2, asked=asked, taskRetryPolicy=policy, **more), "Idle": role(0)}
    job = made(framework(roles=roles, platformSpecificParameters=platform, retryPolicy=policy))
    (only,) = job.spec.roles
    assert (only.name, job.replicas_of(only.name), job.spec.queue) == ("lrs-master", 2, "vc1")
    assert (only.resources.devices.bits, only.resources.devices.named) == (5, ("0", "2"))
    assert [(port.name, port.count, port.start) for port in only.ports] == [("http", 2, 8000)]
    assert (only.completion.min_failed, only.completion.min_succeeded) == (-1, 2)
    assert (only.retry_policy.fancy, only.retry_policy.max_retries) == (True, 3)
    assert (job.spec.retry_policy.fancy, job.spec.exit_table) == (True, "frameworklauncher")
    assert job.spec.sharing.one_task_per_node
    assert [(each.key, each.operator) for each in only.nodes.expressions] == [("fast", "Exists")]
    assert [(each.uri, each.path) for each in job.spec.inputs] == [("hdfs://x/programs/run.sh", "run.sh")]


def test_a_sort_of_gpu_is_a_model_or_the_nodes_that_are_said_to_have_it() -> None:
    platform = {"taskNodeGpuType": "K80"}
    wanted = framework(roles={"a": role(asked=resource(gpuNumber=1))}, platformSpecificParameters=platform)
    assert made(wanted).spec.roles[0].resources.devices.model == "K80"
    known = made(wanted, Cluster("", "", {"n1": "K80", "n2": "P100"})).spec.roles[0]
    assert (known.nodes.include, known.resources.devices.model) == (["n1"], "")


def test_two_sources_of_one_name_are_refused_and_no_task_at_all_too() -> None:
    other = role()
    other["taskService"] = {**other["taskService"], "sourceLocations": ["hdfs://y/run.sh"]}
    with pytest.raises(SpecError, match=r"run\.sh"):
        made(framework(roles={"a": role(), "b": other}))
    with pytest.raises(SpecError, match="no role has a task"):
        made(framework(roles={"a": role(0)}))


# -- launching and following ----------------------------------------------------------------------------------------------


def test_a_launched_framework_is_accepted_and_its_status_is_there_at_once(ann: Pai) -> None:
    assert put(ann, "ann~first", framework(description="mine")) is None
    info = ann.get("/v1/Frameworks/ann~first")
    assert set(info) == {"summarizedFrameworkInfo", "aggregatedFrameworkRequest", "aggregatedFrameworkStatus"}
    assert set(info["summarizedFrameworkInfo"]) == SUMMARY
    status = ann.get("/v1/Frameworks/ann~first/FrameworkStatus")
    assert set(status) == STATUS
    assert (status["frameworkState"], status["frameworkVersion"]) == ("FRAMEWORK_WAITING", 1)
    assert status["frameworkCreatedTimestamp"] > 1_500_000_000_000
    listed = ann.get("/v1/Frameworks")["summarizedFrameworkInfos"]
    assert "ann~first" in [each["frameworkName"] for each in listed]
    mine = ann.get("/v1/Frameworks?UserName=nobody")["summarizedFrameworkInfos"]
    assert mine == []


def test_a_framework_that_was_never_requested_is_not_there(ann: Pai) -> None:
    for part in ("", "/FrameworkStatus", "/AggregatedFrameworkRequest"):
        assert refused(ann, "GET", f"/v1/Frameworks/ann~nothing{part}")[0] == 404
    for part, body in (
        ("TaskRoles/Master/TaskNumber", {"taskNumber": 1}),
        ("ExecutionType", {"executionType": "STOP"}),
        ("ApplicationProgress", {"applicationProgress": 0.5}),
        ("MigrateTasks/x", {}),
    ):
        assert refused(ann, "PUT", f"/v1/Frameworks/ann~nothing/{part}", json=body)[0] == 404
    assert ann.call("DELETE", "/v1/Frameworks/ann~nothing").status_code == 202
    assert refused(ann, "GET", "/v1/Frameworks/ann~first/Nonsense")[0] == 400


def test_names_are_bounded_and_a_call_needs_a_token(server: Server, ann: Pai) -> None:
    put(ann, "ann~" + "a" * 252, framework())
    assert refused(ann, "PUT", "/v1/Frameworks/ann~" + "a" * 253, json=framework())[0] == 400
    assert refused(ann, "PUT", "/v1/Frameworks/ann~a~b", json=framework())[0] == 400
    assert refused(ann, "PUT", "/v1/Frameworks/ann~json", content=b"{")[0] == 400
    assert refused(Pai(server.url), "GET", "/v1/Frameworks")[0] == 401


def test_the_token_of_a_running_job_is_none_here(server: Server, ann: Pai) -> None:
    put(ann, "ann~kept", framework())
    job = job_of(server, ann, "ann~kept")
    token = mint_job_token(server.service.context.key, JobId(job), server.service.context.clock.now() + 100)
    for method, path in (("DELETE", "/v1/Frameworks/ann~kept"), ("GET", "/v1/Frameworks")):
        assert refused(Pai(server.url, token), method, path)[0] == 401
    assert ann.get("/v1/Frameworks/ann~kept/FrameworkStatus")["frameworkVersion"] == 1


def test_a_namespace_is_written_by_its_user_by_administrators_and_by_those_they_list(
    server: Server, ann: Pai, ben: Pai, admin: Pai
) -> None:
    put(ann, "ann~private", framework())
    assert refused(ben, "PUT", "/v1/Frameworks/ann~private", json=framework(2))[0] == 403
    assert refused(ben, "PUT", "/v1/Frameworks/ann~new", json=framework())[0] == 403
    assert refused(ben, "DELETE", "/v1/Frameworks/ann~private")[0] == 403
    assert ben.get("/v1/Frameworks/ann~private/FrameworkStatus")["frameworkVersion"] == 1
    assert refused(ben, "PUT", "/v1/LauncherRequest/AclConfiguration", json={"namespaceAcls": {}})[0] == 403
    changed(admin, "LauncherRequest/AclConfiguration", {"namespaceAcls": {"ann": {"users": [{"name": "ben"}]}}}, 200)
    first = job_of(server, ann, "ann~private")
    put(ben, "ann~private", framework(roles={"Master": role(2)}))
    request = ann.get("/v1/Frameworks/ann~private/FrameworkRequest")
    assert request["frameworkDescriptor"]["user"] == {"name": "ann"}, "it goes on as whose it is"
    assert job_of(server, ann, "ann~private") == first
    for version, asker, name in ((2, ben, "ben"), (3, ann, "ann"), (4, admin, "boss")):
        put(asker, "ann~private", framework(version))
        job = job_of(server, ann, "ann~private")
        assert server.call(server.store.find_job(job)).user == name, "nobody's account runs what another asks for"
        request = ann.get("/v1/Frameworks/ann~private/FrameworkRequest")
        assert request["frameworkDescriptor"]["user"] == {"name": name}
    put(admin, "ann~private", framework(5), UserName="ann")
    assert server.call(server.store.find_job(job_of(server, ann, "ann~private"))).user == "ann"
    assert ann.get("/v1/LauncherRequest")["aclConfiguration"]["namespaceAcls"]["ann"]["users"] == [{"name": "ben"}]
    changed(admin, "LauncherRequest/AclConfiguration", {"namespaceAcls": {}}, 200)
    assert refused(ben, "PUT", "/v1/Frameworks/ann~private", json=framework(6))[0] == 403


def test_an_administrators_program_launches_for_whom_the_header_names_and_nobody_else_does(
    server: Server, ann: Pai, ben: Pai, admin: Pai
) -> None:
    put(admin, "ben~given", framework(), UserName="ben")
    assert server.call(server.store.find_job(job_of(server, ben, "ben~given"))).user == "ben"
    assert refused(ann, "PUT", "/v1/Frameworks/ben~x", json=framework(), headers={"UserName": "ben"})[0] == 403


def test_without_a_namespace_a_framework_is_whose_it_was_first(ann: Pai, ben: Pai) -> None:
    put(ann, "plain", framework())
    assert refused(ben, "PUT", "/v1/Frameworks/plain", json=framework())[0] == 403


def test_the_same_version_changes_a_framework_and_another_begins_it_anew(server: Server, ann: Pai) -> None:
    put(ann, "ann~again", framework(roles={"A": role(1), "B": role(1)}))
    first = job_of(server, ann, "ann~again")
    put(ann, "ann~again", framework(roles={"A": role(1), "B": role(3)}))
    assert job_of(server, ann, "ann~again") == first
    asked = [each for each in server.call(server.store.intents(0, 1000)) if each.job == first]
    assert [(each.data["role"], each.data["replicas"]) for each in asked if "replicas" in each.data] == [("b", 3)]
    put(ann, "ann~again", framework(2))
    second = job_of(server, ann, "ann~again")
    assert second != first
    stops = [each.kind for each in server.call(server.store.intents(0, 1000)) if each.job == first]
    assert "job.stop-requested" in stops


def test_many_who_launch_one_framework_at_once_launch_one_job(server: Server, ann: Pai) -> None:
    with ThreadPoolExecutor(8) as pool:
        codes = pool.map(lambda _: ann.call("PUT", "/v1/Frameworks/ann~once", json=framework()).status_code, range(8))
        assert set(codes) == {202}
    listed = server.call(server.store.list_jobs(JobFilter(job_type="frameworklauncher", search="ann-once"), limit=50))
    assert [each.id for each in listed.items] == [job_of(server, ann, "ann~once")]


def test_two_servers_that_begin_one_framework_at_once_begin_one_job(server: Server, ann: Pai) -> None:
    openpai = server.openpai
    wanted = {**read_descriptor(framework()), "user": {"name": "ann"}}

    async def begin(version: int = 1, user: str = "ann") -> None:
        asked = {**wanted, "version": version, "user": {"name": user}}
        await openpai.launcher._begin_once(Actor(user), "ann~twice", asked, None, "")  # without the lock

    async def both() -> None:
        await asyncio.gather(*(begin() for _ in range(4)))

    server.call(both())
    listed = server.call(server.store.list_jobs(JobFilter(job_type="frameworklauncher", search="ann-twice"), limit=50))
    assert [each.id for each in listed.items] == [job_of(server, ann, "ann~twice")]
    for other in (begin(2), begin(user="ben")):
        with pytest.raises(Conflict, match="is being launched by ann"):
            server.call(other)
    assert ann.call("DELETE", "/v1/Frameworks/ann~twice").status_code == 202
    server.clock.advance(1)
    put(ann, "ann~twice", framework())
    assert job_of(server, ann, "ann~twice") != listed.items[0].id, "what was deleted begins anew"


def test_a_launch_that_fails_leaves_the_name_free_and_one_that_was_cut_off_is_not_waited_for_for_ever(
    server: Server, ann: Pai, admin: Pai
) -> None:
    nowhere = framework(platformSpecificParameters={"queue": "nowhere"})
    assert refused(ann, "PUT", "/v1/Frameworks/ann~fails", json=nowhere)[0] == 400
    assert server.call(KeyValues(server.store).key_value("framework", "ann~fails")) is None
    descriptor = {**read_descriptor(framework(2)), "user": {"name": "ann"}}
    now = server.service.context.clock.now()
    for age, status in ((1.0, 409), (61.0, 202)):
        begun = Launching("cut", "ann", "something else", now - age)
        body = msgspec.json.encode(Asked(descriptor, "", now - age, now - age, launching=begun)).decode()
        claim = KeyValue("framework", "ann~cut", "ann", body, now - age, now - age)
        server.call(KeyValues(server.store).change_key_value("framework", "ann~cut", lambda _, claim=claim: claim))  # type: ignore[misc]
        assert refused(ann, "GET", "/v1/Frameworks/ann~cut")[0] == 404
        assert admin.call("PUT", "/v1/Frameworks/ann~cut", json=framework()).status_code == status


def launched(server: Server, name: str) -> tuple[Asked, list[str]]:
    """The stored Framework, and all jobs that it has had."""
    kept = server.call(KeyValues(server.store).key_value("framework", name))
    assert kept is not None
    label = name.replace("~", "-")
    listed = server.call(server.store.list_jobs(JobFilter(job_type="frameworklauncher", search=label), limit=50))
    return msgspec.json.decode(kept.body, type=Asked), [each.id for each in listed.items]


def test_of_several_who_launch_another_version_on_different_servers_at_once_one_does(
    server: Server, ann: Pai, admin: Pai
) -> None:
    put(ann, "anew", framework())
    before, (first,) = launched(server, "anew")

    async def begin(user: str, version: int) -> str:
        wanted = {**read_descriptor(framework(version)), "user": {"name": user}}
        await server.openpai.launcher._begin_once(
            Actor(user, "admin" if user == "boss" else "user"), "anew", wanted, before, ""
        )
        return user

    async def all_at_once() -> list[str | BaseException]:
        asked = (("ann", 2), ("boss", 2), ("boss", 3), ("ann", 3))
        return await asyncio.gather(*(begin(*each) for each in asked), return_exceptions=True)

    done = server.call(all_at_once())
    assert len([each for each in done if isinstance(each, str)]) == 1
    assert [type(each) for each in done if not isinstance(each, str)] == [Conflict] * 3
    now, jobs = launched(server, "anew")
    assert (now.launching, sorted(jobs)) == (None, sorted([first, now.job]))
    late = server.call(asyncio.wait_for(gathered(begin("boss", 4)), 60))
    assert isinstance(late, Conflict), "who looked before it was launched anew does not launch over that"
    assert launched(server, "anew") == (now, jobs)


def test_two_accounts_that_launch_another_version_by_two_servers_at_once_begin_one_job(
    server: Server, ann: Pai, admin: Pai
) -> None:
    put(ann, "both", framework())
    own = server.service.context
    context = Context(server.store, key=own.key, clock=server.clock, blobs=server.blobs, logs=own.logs, code_limit=1)
    other = Service(context)

    async def launch(openpai: OpenPai, actor: Actor) -> None:
        await openpai.launcher.launch(actor, "both", framework(2), as_user=actor.user)

    async def at_once() -> list[BaseException | None]:
        asked = launch(server.openpai, Actor("ann")), launch(OpenPai(other), Actor("boss", "admin"))
        return await asyncio.gather(*asked, return_exceptions=True)

    refusals = [each for each in server.call(at_once()) if each is not None]
    assert all(isinstance(each, Conflict) for each in refusals) and len(refusals) < 2
    server.call(other.close())
    now, jobs = launched(server, "both")
    assert (now.launching, len(jobs)) == (None, 2), "the one before, and that of the new version"
    assert now.job in jobs and now.descriptor["version"] == 2


async def gathered(work: Coroutine[Any, Any, Any]) -> Any:
    (done,) = await asyncio.gather(work, return_exceptions=True)
    return done


def test_a_framework_that_is_removed_while_its_next_job_is_begun_stays_away_and_the_job_ends(
    server: Server, ann: Pai, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(ann, "ann~gone", framework())
    submit = server.service.submission.submit

    async def slow(*args: Any, **terms: Any) -> Any:
        found = await submit(*args, **terms)
        await KeyValues(server.store).change_key_value("framework", "ann~gone", lambda _: None)
        return found

    monkeypatch.setattr(server.service.submission, "submit", slow)
    status, message = refused(ann, "PUT", "/v1/Frameworks/ann~gone", json=framework(2))
    assert (status, "was removed" in message) == (409, True)
    monkeypatch.undo()
    assert server.call(KeyValues(server.store).key_value("framework", "ann~gone")) is None
    listed = server.call(server.store.list_jobs(JobFilter(job_type="frameworklauncher", search="ann-gone"), limit=50))
    stopped = {each.job for each in server.call(server.store.intents(0, 10_000)) if each.kind == "job.stop-requested"}
    assert len(listed.items) == 2 and {each.id for each in listed.items} <= stopped


def test_another_version_that_fails_leaves_the_framework_to_be_launched_again(server: Server, ann: Pai) -> None:
    put(ann, "ann~kept", framework())
    nowhere = framework(2, platformSpecificParameters={"queue": "nowhere"})
    assert refused(ann, "PUT", "/v1/Frameworks/ann~kept", json=nowhere)[0] == 400
    asked, _ = launched(server, "ann~kept")
    assert (asked.launching, asked.descriptor["version"]) == (None, 1)
    put(ann, "ann~kept", framework(3))
    assert launched(server, "ann~kept")[0].descriptor["version"] == 3


def test_a_list_of_frameworks_asks_for_their_jobs_at_once(
    server: Server, ann: Pai, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann~list-a", "ann~list-b"):
        put(ann, name, framework())

    async def one_by_one(*_: Any) -> None:
        raise AssertionError("a query for each")

    monkeypatch.setattr(server.store, "find_job", one_by_one)
    found = server.call(server.openpai.launcher.all(Actor("ann"), "ann"))
    assert {"ann~list-a", "ann~list-b"} <= {each.name for each in found}


def test_frameworks_that_follow_each_other_in_a_ring_all_stop_and_go(server: Server, ann: Pai) -> None:
    names = [f"ann~ring-{at}" for at in range(4)]
    for name in names:
        put(ann, name, framework())
    for at, name in enumerate(names):
        parent = {"parentFrameworkName": names[at - 1], "deleteOnParentDeleted": True, "stopOnParentStopped": True}
        put(ann, name, framework(parentFramework=parent))
    changed(ann, f"Frameworks/{names[1]}/ExecutionType", {"executionType": "STOP"})
    said = [ann.get(f"/v1/Frameworks/{name}/FrameworkRequest")["frameworkDescriptor"] for name in names]
    assert {each["executionType"] for each in said} == {"STOP"}
    assert ann.call("DELETE", f"/v1/Frameworks/{names[2]}").status_code == 202
    assert [refused(ann, "GET", f"/v1/Frameworks/{name}")[0] for name in names] == [404] * 4
    assert server.call(KeyValues(server.store).beside("framework", "deleteOnParentDeleted", text=names[0])) == []


def test_a_role_is_rescaled_stopped_and_told_how_far_it_is(server: Server, ann: Pai) -> None:
    put(ann, "ann~change", framework(roles={"A": role(1), "B": role(2)}))
    changed(ann, "Frameworks/ann~change/TaskRoles/B/TaskNumber", {"taskNumber": 5})
    said = ann.get("/v1/Frameworks/ann~change/FrameworkRequest")["frameworkDescriptor"]
    assert said["taskRoles"]["B"]["taskNumber"] == 5
    assert ann.get("/v1/Frameworks/ann~change")["summarizedFrameworkInfo"]["totalTaskNumber"] == 6
    for path, body in (
        ("TaskRoles/B/TaskNumber", {"taskNumber": -1}),
        ("TaskRoles/B/TaskNumber", {"taskNumber": 10_001}),
        ("TaskRoles/B/TaskNumber", {}),
        ("TaskRoles/C/TaskNumber", {"taskNumber": 1}),
        ("ExecutionType", {"executionType": "PAUSE"}),
        ("ApplicationProgress", {"applicationProgress": 2}),
    ):
        assert refused(ann, "PUT", f"/v1/Frameworks/ann~change/{path}", json=body)[0] == 400
    changed(ann, "Frameworks/ann~change/ApplicationProgress", {"applicationProgress": 0.25})
    assert ann.get("/v1/Frameworks/ann~change/FrameworkStatus")["applicationProgress"] == 0.25
    asked = ann.get("/v1/Frameworks/ann~change/AggregatedFrameworkRequest")
    assert asked["overrideApplicationProgressRequest"] == {"applicationProgress": 0.25}
    changed(ann, "Frameworks/ann~change/ExecutionType", {"executionType": "STOP"})
    job = job_of(server, ann, "ann~change")
    kinds = [each.kind for each in server.call(server.store.intents(0, 1000)) if each.job == job]
    assert kinds[-1] == "job.stop-requested"


def test_a_framework_grows_within_what_its_user_may_have(server: Server, ann: Pai) -> None:
    put(ann, "ann~grows", framework(roles={"A": role(1), "B": role(2)}))
    service, path = server.service, "/v1/Frameworks/ann~grows/TaskRoles/B/TaskNumber"
    having = server.call(server.store.open_tasks("ann"))
    service.context.allowance = Allowance(tasks=having + 2)
    try:
        code, said = refused(ann, "PUT", path, json={"taskNumber": 5})
        assert code == 429 and "waiting and running tasks" in str(said)
        asked = ann.get("/v1/Frameworks/ann~grows/FrameworkRequest")["frameworkDescriptor"]
        assert asked["taskRoles"]["B"]["taskNumber"] == 2
        changed(ann, path.removeprefix("/v1/"), {"taskNumber": 4})
    finally:
        service.context.allowance = UNBOUNDED
    changed(ann, "Frameworks/ann~grows/ExecutionType", {"executionType": "STOP"})


def test_more_tasks_than_the_launcher_takes_are_too_many_requests(server: Server, ann: Pai) -> None:
    openpai = server.openpai
    there = sum(each["totalTaskNumber"] for each in ann.get("/v1/Frameworks")["summarizedFrameworkInfos"])
    before, openpai.launcher.most_launched_tasks = openpai.launcher.most_launched_tasks, there + 3
    try:
        assert refused(ann, "PUT", "/v1/Frameworks/ann~many", json=framework(roles={"A": role(4)}))[0] == 429
        put(ann, "ann~many", framework(roles={"A": role(3)}))
        number = {"taskNumber": 4}
        assert refused(ann, "PUT", "/v1/Frameworks/ann~many/TaskRoles/A/TaskNumber", json=number)[0] == 429
        assert ann.get("/v1/LauncherStatus")["launcherConfiguration"]["maxTotalTaskNumber"] == there + 3
    finally:
        openpai.launcher.most_launched_tasks = before


def test_a_child_stops_and_goes_with_its_parent_where_it_says_so(server: Server, ann: Pai) -> None:
    parent = {"parentFrameworkName": "ann~parent", "deleteOnParentDeleted": True, "stopOnParentStopped": True}
    assert refused(ann, "PUT", "/v1/Frameworks/ann~child", json=framework(parentFramework=parent))[0] == 400
    put(ann, "ann~parent", framework())
    put(ann, "ann~child", framework(parentFramework=parent))
    changed(ann, "Frameworks/ann~parent/ExecutionType", {"executionType": "STOP"})
    said = ann.get("/v1/Frameworks/ann~child/FrameworkRequest")["frameworkDescriptor"]
    assert said["executionType"] == "STOP"
    assert ann.call("DELETE", "/v1/Frameworks/ann~parent").status_code == 202
    assert refused(ann, "GET", "/v1/Frameworks/ann~child")[0] == 404


def test_what_administrators_say_of_the_cluster_is_kept(ann: Pai, admin: Pai) -> None:
    said = {"nodes": {"n1": {"gpuType": "K80"}}}
    assert refused(ann, "PUT", "/v1/LauncherRequest/ClusterConfiguration", json=said)[0] == 403
    changed(admin, "LauncherRequest/ClusterConfiguration", said)
    assert ann.get("/v1/LauncherRequest/ClusterConfiguration") == said
    assert ann.get("/v1/LauncherRequest")["clusterConfiguration"] == said
    broken = {"nodes": {"n1": {"gpuType": "two words"}}}
    assert refused(admin, "PUT", "/v1/LauncherRequest/ClusterConfiguration", json=broken)[0] == 400
    changed(admin, "LauncherRequest/ClusterConfiguration", {"nodes": {}})
    status = ann.get("/v1/LauncherStatus")
    assert (status["loggedInUser"], status["hadoopLibrarySupportsGpu"]) == ({"name": "ann"}, True)
    assert status["launcherConfiguration"]["webServerAclEnable"] is True


def test_retries_are_told_by_the_kinds_of_the_ends_that_they_followed(server: Server, ann: Pai) -> None:
    fancy = {"fancyRetryPolicy": True, "maxRetryCount": 3}
    roles = {"A": role(1, taskRetryPolicy=fancy), "B": role(1)}
    put(ann, "ann~tried", framework(roles=roles, retryPolicy={"maxRetryCount": -2}))
    record = server.call(server.store.find_job(job_of(server, ann, "ann~tried")))
    job = Retries(4, 4, RetriedAfter(succeeded=2, permanent=1, unknown=1))
    task = Retries(6, 1, RetriedAfter(transient=2, conflict=3, unknown=1))
    run = msgspec.structs.replace(record.run, retries=job)
    asked = Asked(ann.get("/v1/Frameworks/ann~tried/FrameworkRequest")["frameworkDescriptor"], record.id, 0.0, 0.0)
    tasks = (TaskRun("a", 0, retries=task), TaskRun("b", 0, retries=Retries(2, 2)))
    found = aggregated_status(Framework("ann~tried", asked, msgspec.structs.replace(record, run=run), tasks))
    assert list(found["frameworkStatus"]["frameworkRetryPolicyState"].values()) == [4, 2, 0, 0, 1, 1]
    told = {
        name: each["taskStatuses"]["taskStatusArray"][0]["taskRetryPolicyState"]
        for name, each in found["aggregatedTaskRoleStatuses"].items()
    }
    assert told["A"] == {
        "retriedCount": 1,
        "succeededRetriedCount": 0,
        "transientNormalRetriedCount": 2,
        "transientConflictRetriedCount": 3,
        "nonTransientRetriedCount": 0,
        "unKnownRetriedCount": 1,
    }
    before_kinds_were_counted = told["B"]
    assert (before_kinds_were_counted["retriedCount"], before_kinds_were_counted["unKnownRetriedCount"]) == (2, 2)


def test_every_task_of_a_framework_has_its_line_from_the_first_moment_of_control(server: Server, ann: Pai) -> None:
    put(ann, "ann~lines", framework(roles={"A_b": role(2)}))
    found = ann.get("/v1/Frameworks/ann~lines/AggregatedFrameworkStatus")
    assert set(found["aggregatedTaskRoleStatuses"]) == {"A_b"}
    assert found["aggregatedTaskRoleStatuses"]["A_b"]["taskStatuses"]["taskRoleName"] == "A_b"
