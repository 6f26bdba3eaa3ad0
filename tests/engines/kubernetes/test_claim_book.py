"""The book of claims: the holder of each device, incomplete claims, and claims to delete."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.devices.claim_manifest import (
    MOST,
    PLAN,
    Grant,
    Plan,
    allocation,
    claim_manifest,
    grants_for,
    plan_of,
    status_patch,
)
from corral.engines.kubernetes.devices.claim_reconciler import ClaimReconciler
from corral.engines.kubernetes.devices.claim_state import UNUSED_SECONDS, ClaimBook
from corral.engines.kubernetes.devices.resource_slices import ClaimDevice
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.engines.kubernetes.pods.manifest import SERVER_LABEL, pod_name
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import AttemptId

SERVER, NAMESPACE = "server", "corral"
ATTEMPT = AttemptId("job.0.worker.0.0")
CLAIM = pod_name(ATTEMPT)


def device(number: int, driver: str = "d") -> ClaimDevice:
    return ClaimDevice(driver, "n1", f"gpu-{number}")


def plan(*numbers: int) -> Plan:
    return Plan("n1", tuple(Grant(f"r{at}", (device(number),)) for at, number in enumerate(numbers)))


def claim(made: Plan | None = None, *, name: str = CLAIM, server: str = SERVER, **status: Any) -> ResourceClaim:
    annotations = {PLAN: msgspec.json.encode(made).decode()} if made else {}
    labels = {SERVER_LABEL: server} if server else {}
    meta = {"name": name, "namespace": NAMESPACE, "uid": name, "labels": labels, "annotations": annotations}
    return msgspec.convert({"metadata": meta, "status": status}, ResourceClaim)


def pod(name: str, *claims: str, phase: str = "Running", request: str = "") -> Pod:
    named = [{"name": f"devices-{at}", "resourceClaimName": each} for at, each in enumerate(claims)]
    uses = [{"name": each["name"], "request": request} for each in named]
    spec = {"nodeName": "n1", "resourceClaims": named, "containers": [{"name": "task", "resources": {"claims": uses}}]}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"phase": phase}}, Pod)


@pytest.mark.parametrize(
    ("uses", "users"),
    [
        ([("a", "r0")], ("a", "")),
        ([("a", "")], ("a", "a")),
        ([("a", "r0"), ("b", "r1")], ("a", "b")),
        ([("me", "r0"), ("b", "r1")], ("", "b")),
    ],
)
def test_who_uses_a_request_is_known(book: ClaimBook, uses: list[tuple[str, str]], users: tuple[str, str]) -> None:
    book.fold_claim(Change(claim(plan(1, 2))), 0)
    for name, request in uses:
        book.fold_pod(Change(pod(name, CLAIM, request=request)), 0)
    own = book.own_claims[CLAIM]
    assert tuple(own.user_of(request, other_than="me") for request in ("r0", "r1")) == users
    book.fold_pod(Change(pod(uses[0][0], CLAIM, request=uses[0][1], phase="Failed")), 0)
    assert own.user_of("r0", other_than="me") == ""


def reserved(*names: str) -> list[dict[str, str]]:
    return [{"resource": "pods", "name": name, "uid": name} for name in names]


@pytest.fixture
def book() -> ClaimBook:
    return ClaimBook(SERVER, NAMESPACE)


def given(made: Plan) -> dict[str, Any]:
    return {"allocation": allocation(made)}


@pytest.mark.parametrize(
    ("status", "users", "unsettled"),
    [
        ({}, (), False),
        ({}, ("a",), True),
        (given(plan(1)), ("a",), True),
        ({"reservedFor": reserved("a")}, ("a",), True),
        ({**given(plan(1)), "reservedFor": reserved("a")}, ("a",), False),
        ({**given(plan(1)), "reservedFor": reserved("a", "old")}, ("a",), False),
        ({**given(plan(1)), "reservedFor": reserved("a")}, ("a", "b"), True),
    ],
)
def test_a_claim_lacks_its_allocation_or_a_reservation(
    book: ClaimBook, status: dict[str, Any], users: tuple[str, ...], unsettled: bool
) -> None:
    book.fold_claim(Change(claim(plan(1), **status)), 0)
    for user in users:
        book.fold_pod(Change(pod(user, CLAIM)), 0)
    assert book.own_claims[CLAIM].unsettled is unsettled


def test_the_order_in_which_claim_and_pod_are_seen_does_not_matter(book: ClaimBook) -> None:
    book.fold_pod(Change(pod("a", CLAIM)), 0)
    book.fold_claim(Change(claim(plan(1))), 0)
    assert book.own_claims[CLAIM].plan == plan(1)
    assert book.own_claims[CLAIM].live == {"a": "a"}
    assert book.claim_of(device(1)) is book.own_claims[CLAIM]


def test_a_device_is_given_by_a_claim_as_long_as_a_pod_of_it_lives(book: ClaimBook) -> None:
    book.fold_claim(Change(claim(plan(1, 2))), 0)
    for name in ("a", "b"):
        book.fold_pod(Change(pod(name, CLAIM)), 0)
    book.fold_pod(Change(pod("a", CLAIM, phase="Succeeded")), 0)
    assert book.claim_of(device(1)) is book.claim_of(device(2)) is book.own_claims[CLAIM]
    book.fold_pod(Change(pod("b", CLAIM, phase="Failed")), 0)
    assert book.claim_of(device(1)) is None
    assert list(book.unused_claims(1e9)) == [], "its pods are still there"


def test_a_later_word_about_an_old_claim_takes_no_device_from_the_new_one(book: ClaimBook) -> None:
    book.fold_claim(Change(claim(plan(1), name="old")), 0)
    book.fold_claim(Change(claim(plan(1), name="new")), 0)
    book.fold_pod(Change(pod("a", "new")), 0)
    book.expect("new", plan(1), 0)
    book.fold_claim(Change(claim(plan(1), name="old", **given(plan(1)))), 0)
    assert book.claim_of(device(1)) is book.own_claims["new"]
    book.fold_claim(Change(claim(plan(1), name="old"), gone=True), 0)
    assert book.claim_of(device(1)) is book.own_claims["new"]
    assert set(book.own_claims) == {"new"}


@pytest.mark.parametrize(
    ("used", "at", "unused"), [(True, 1.0, True), (False, 1.0, False), (False, UNUSED_SECONDS, True)]
)
def test_a_claim_is_of_no_use_when_its_pods_are_gone_or_never_came(
    book: ClaimBook, used: bool, at: float, unused: bool
) -> None:
    book.fold_claim(Change(claim(plan(1))), 0)
    if used:
        book.fold_pod(Change(pod("a", CLAIM)), 0)
        assert list(book.unused_claims(1e9)) == []
        book.fold_pod(Change(pod("a", CLAIM), gone=True), 0)
    assert [each.name for each in book.unused_claims(at)] == [CLAIM] * unused


def test_a_pod_that_came_and_went_unseen_keeps_no_claim(book: ClaimBook) -> None:
    book.fold_claim(Change(claim(plan(1))), 0)
    book.use(pod("a", CLAIM), 0)
    assert book.missing(frozenset(), 5) == {}
    assert book.missing(frozenset({"a"}), 60) == {}
    ((uid, name),) = book.missing(frozenset(), 60).items()
    assert list(book.unused_claims(61)) == [], "it may be there, and not be told yet"
    book.still_there(uid, 60)
    assert book.missing(frozenset(), 65) == {}
    assert book.missing(frozenset(), 75) == {uid: name}
    book.forget(uid)
    assert [each.name for each in book.unused_claims(76)] == [CLAIM]


@pytest.mark.parametrize(
    ("answer", "unused"),
    [
        (b'{"metadata": {"name": "a", "uid": "a"}}', []),
        (b'{"metadata": {"name": "a", "uid": "another"}}', [CLAIM]),
        (NotFound("pod-gone", "There is no such pod."), [CLAIM]),
        (Unavailable("kubernetes-timeout", "The cluster did not answer."), []),
    ],
    ids=["it is told late", "another has its name", "it is gone", "it is not known"],
)
async def test_the_claim_of_a_pod_that_is_not_followed_goes_only_when_the_cluster_says_that_it_is_gone(
    book: ClaimBook, answer: bytes | CorralError, unused: list[str]
) -> None:
    class Calls:
        async def ask(self, call: Call) -> bytes:
            assert str(call.name) == "a"
            if isinstance(answer, CorralError):
                raise answer
            return answer

    book.fold_claim(Change(claim(plan(1))), 0)
    book.use(pod("a", CLAIM), 0)
    reconciler = ClaimReconciler(
        cast(Any, Calls()), book, cast(Any, None), namespace=NAMESPACE, fail=lambda *_: None, pods=frozenset
    )
    ((uid, name),) = book.missing(frozenset(), 60).items()
    await reconciler._look_for(uid, name)
    assert [each.name for each in book.unused_claims(61)] == unused


def test_a_claim_that_is_being_written_is_left_alone(book: ClaimBook) -> None:
    own = book.expect(CLAIM, plan(1), 0)
    own.busy = 1
    book.fold_claim(Change(claim(plan(1))), 0)
    assert list(book.unused_claims(1e9)) == [] and not own.unsettled
    assert book.claim_of(device(1)) is own


@pytest.mark.parametrize(
    ("status", "holds"),
    [
        (given(plan(1)), True),
        ({}, False),
        ({"allocation": {"devices": {"results": [{"driver": "d", "pool": "n1", "device": "gpu-1"}]}}}, True),
        (
            {
                "allocation": {
                    "devices": {"results": [{"driver": "d", "pool": "n1", "device": "gpu-1", "adminAccess": True}]}
                }
            },
            False,
        ),
    ],
)
@pytest.mark.parametrize("server", ["", "another"])
def test_what_others_hold_is_known(book: ClaimBook, server: str, status: dict[str, Any], holds: bool) -> None:
    theirs = claim(name="theirs", server=server, **status)
    assert book.fold_claim(Change(theirs), 0) == ({device(1)} if holds else set())
    assert book.holder(device(1)) == (f"{NAMESPACE}/theirs" if holds else "")
    assert book.fold_claim(Change(theirs), 0) == set()
    assert book.fold_claim(Change(theirs, gone=True), 0) == ({device(1)} if holds else set())
    assert book.holder(device(1)) == ""


@pytest.mark.parametrize(("allocated", "wrong"), [((1,), False), ((2,), True), ((1, 2), True), ((), False)])
def test_a_claim_with_other_devices_than_it_was_made_for_is_noticed(
    book: ClaimBook, allocated: tuple[int, ...], wrong: bool
) -> None:
    status = given(plan(*allocated)) if allocated else {}
    book.fold_claim(Change(claim(plan(1), **status)), 0)
    assert book.own_claims[CLAIM].wrongly_allocated is wrong


def test_devices_of_two_drivers_are_two_requests() -> None:
    (grants,) = grants_for([(device(1), device(2), device(1, "other"))])
    assert [(grant.request, len(grant.devices)) for grant in grants] == [("r0", 2), ("r1", 1)]


def test_requests_of_a_gang_are_numbered_through() -> None:
    assert [grants[0].request for grants in grants_for([(device(number),) for number in range(4)])] == [
        "r0",
        "r1",
        "r2",
        "r3",
    ]


def test_a_claim_takes_no_more_devices_than_kubernetes_lets_it() -> None:
    grants_for([tuple(device(number) for number in range(MOST))])
    with pytest.raises(InvalidInput, match="32 devices"):
        grants_for([tuple(device(number) for number in range(MOST + 1))])


def test_a_plan_is_read_back_from_its_claim() -> None:
    made = Plan("n1", grants_for([(device(1), device(2))])[0])
    manifest = claim_manifest(ATTEMPT, SERVER, made)
    assert plan_of(msgspec.convert(manifest, ResourceClaim)) == made
    (request,) = manifest["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "d", "allocationMode": "ExactCount", "count": 2}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"node": 1}', '{"node":"n","grants":[{"request":1}]}'])
def test_an_annotation_that_is_no_plan_is_none(text: str) -> None:
    meta = {"name": "c", "annotations": {PLAN: text}}
    assert plan_of(msgspec.convert({"metadata": meta}, ResourceClaim)) is None


def test_a_patch_is_for_one_claim_and_allocates_once() -> None:
    patch = status_patch("uid", plan(1), {"u": "p"}, allocate=True)
    assert patch["metadata"] == {"uid": "uid"}
    assert patch["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "u"}]
    assert patch["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n1"]
    assert "allocation" not in status_patch("uid", plan(1), {}, allocate=False)["status"]
