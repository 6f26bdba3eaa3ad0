"""Images of a private registry are pulled with the job's or the cluster's credentials; without them the task fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.compat.openpai.language.names import REGISTRIES_FILE
from corral.engines.kubernetes.pods.owned_objects import registries_name
from corral.kernel.ids import parse_attempt_id
from corral.model.launch import SecretDelivery
from tests.engines.kubernetes.engine_harness import Harness, launch
from tests.testbeds import registry
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet]


@pytest.fixture(scope="module")
def private(kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[registry.Registry]:
    """A registry that has the image `private/one:1` and `private/two:1`."""
    if reason := registry.missing():
        pytest.skip(reason)
    made = registry.Registry(tmp_path_factory.mktemp("registry"))
    for name in ("one", "two"):
        image = f"{made.address}/private/{name}:1"
        kubelet_node.ctr("images", "tag", images.BUSYBOX, image)
        login = f"{registry.USER}:{registry.PASSWORD}"
        kubelet_node.ctr("images", "push", "--plain-http", "--user", login, image)
        kubelet_node.ctr("images", "rm", image)
    yield made
    made.close()


async def test_without_a_login_the_task_ends_with_the_registrys_words(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path, private: registry.Registry
) -> None:
    task = launch(kubelet_node.name, "true", image=f"{private.address}/private/one:1")
    async with Harness(control_plane, namespace, tmp_path) as at:
        exited = await at.run(task)
    assert exited.code == 254
    assert "private/one:1" in exited.reason


async def test_the_jobs_and_the_clusters_logins_pull(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path, private: registry.Registry
) -> None:
    control_plane.request("POST", f"/api/v1/namespaces/{namespace}/secrets", private.secret("pull"))
    of_job = launch(
        kubelet_node.name, "echo", "mine", image=f"{private.address}/private/one:1", image_pull_secrets=("pull",)
    )
    async with Harness(control_plane, namespace, tmp_path) as at:
        assert (await at.run(of_job)).code == 0
        assert at.log(of_job.attempt) == "mine\n"
    of_cluster = launch(kubelet_node.name, "echo", "ours", image=f"{private.address}/private/two:1")
    async with Harness(control_plane, namespace, tmp_path, image_pull_secrets=("pull",)) as at:
        assert (await at.run(of_cluster)).code == 0
        assert at.log(of_cluster.attempt) == "ours\n"


async def test_the_logins_of_a_job_are_a_secret_of_its_own_that_goes_with_it(
    control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path, private: registry.Registry
) -> None:
    logins = private.secret("any")["stringData"][".dockerconfigjson"]
    task = launch(
        kubelet_node.name,
        "echo",
        "own",
        image=f"{private.address}/private/one:1",
        secrets=(SecretDelivery(logins, file=REGISTRIES_FILE),),
    )
    async with Harness(control_plane, namespace, tmp_path) as at:
        assert (await at.run(task)).code == 0
        assert at.log(task.attempt) == "own\n"
        assert registries_name(parse_attempt_id(task.attempt).job) in secrets_of(control_plane, namespace)
        await at.engine.forget([task.attempt])
        async with asyncio.timeout(120):
            while secrets_of(control_plane, namespace):
                await asyncio.sleep(0.05)


def secrets_of(control_plane: ControlPlane, namespace: str) -> set[str]:
    """The names of the Secrets that Corral made in the namespace."""
    found = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/secrets")["items"]
    return {each["metadata"]["name"] for each in found if each["metadata"]["name"].startswith("corral-")}
