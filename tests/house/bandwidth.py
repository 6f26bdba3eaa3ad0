"""Run Corral with a row for `bandwidth` in its table of amounts, and print what becomes of the amount as JSON.

It runs in a process of its own: the row is added to the table's source before any other module reads it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

TABLE: Final = "corral.kernel.amounts"
END_OF_TABLE: Final = "\n)\nCOLUMNS: Final = "
ROW: Final = """
    Amount(
        "bandwidth",
        COUNT,
        word="network bandwidth",
        after_figure="Gbit/s of network bandwidth",
        code="not-enough-bandwidth",
        of_task="Network bandwidth in Gbit/s; 0 reserves nothing.",
        of_node="Network bandwidth that tasks share, in Gbit/s.",
        engine_names={"kubernetes": "example.com/gbits", "yarn": "net-gbits"},
    ),"""
CLUSTER: Final = """
kind: Cluster
node: {cpu: 8, memory: 8Gi, bandwidth: 40}
nodes: {n1: {}, n2: {bandwidth: 25}, n3: {bandwidth: 0}}
"""


def add_row() -> None:
    """Execute the table's source with one more row, as the module that others import."""
    spec = find_spec(TABLE)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text()
    assert source.count(END_OF_TABLE) == 1
    module = ModuleType(TABLE)
    module.__file__ = spec.origin
    sys.modules[TABLE] = module
    exec(compile(source.replace(END_OF_TABLE, f"{ROW}{END_OF_TABLE}"), spec.origin, "exec"), module.__dict__)


def job(**resources: Any) -> str:
    """A job file of one task with these resources."""
    worker = {"command": ["true"], "resources": resources}
    return json.dumps({"name": "train", "framework": "shell", "roles": {"worker": worker}})


def refusals() -> list[str]:
    """The sentences about bad values of the field."""
    from corral.spec.cluster import load_cluster
    from corral.spec.errors import SpecError
    from corral.spec.job_reader import load_job

    said = []
    for resources in ({"bandwidth": -1}, {"bandwidth": "many"}, {"other": {"bandwidth": 1}}):
        try:
            load_job(job(**resources))
        except SpecError as error:
            said.append(error.message)
    try:
        load_cluster("kind: Cluster\nnodes: {n1: {bandwidth: -2}}\n")
    except SpecError as error:
        said.append(error.message)
    return said


def scheduled() -> tuple[dict[str, Any], Any]:
    """Play three jobs of 20, 20 and 30 Gbit/s on nodes of 40, 25 and 0; and the launch of the first."""
    from corral.control.core.configuration import Configured
    from corral.control.core.core import Core
    from corral.control.core.driver import Driver, Work
    from corral.control.core.inputs import Recovered
    from corral.control.core.machines import Machines, MachinesSeen
    from corral.control.core.memory_store import MemoryStore
    from corral.control.task_launch import LaunchContext, render
    from corral.devices.described import described_inventory
    from corral.kernel.ids import job_id
    from corral.launcher import LaunchPolicy
    from corral.scheduler import find_policy
    from corral.spec.cluster import load_cluster
    from corral.spec.job_reader import load_job
    from tests.control.core.virtual import new_job
    from tests.control.harness import anybody, no_secrets

    machines = described_inventory(load_cluster(CLUSTER), "local")
    begun = Recovered(Configured(find_policy()), machines=(MachinesSeen(machines),))
    driver = Driver(Core(begun, LaunchPolicy(), Machines(), 1e9), MemoryStore(), lambda job, attempt: Work(60.0), 1e9)
    ids = {}
    for at, (name, size) in enumerate({"a": 20, "b": 20, "c": 30, "never": 50}.items()):
        new = new_job(job_id(10**12, at), load_job(job(bandwidth=size), name=name), 1e9 + at)
        ids[name] = new.id
        driver.at(new.created_at, new)
    driver.run(1e9 + 5)
    world, now = driver.core.world, driver.now
    found: dict[str, Any] = {"free": {node.name: node.resources for node in machines.nodes}}
    places = {name: [task.placement for task in world.jobs[each].tasks.values()] for name, each in ids.items()}
    found["places"] = {name: [each.node if each else "" for each in held] for name, held in places.items()}
    for name in ("c", "never"):
        reasons = world.planner.explain(ids[name], now)
        assert reasons is not None
        found[name] = [reasons.binding.code, reasons.binding.message, reasons.possible]
    waiting = world.planner.explain(ids["c"], now)
    assert waiting is not None
    changes = world.planner.smallest_changes(ids["c"], waiting, now)
    found["changes"] = [[change.path, change.before, change.after, change.message] for change in changes]

    context = LaunchContext("", lambda job: "", no_secrets, lambda name: _named(machines, name), anybody, str)
    (attempt,) = (world.jobs[ids["a"]].run.attempt_of(task) for task in world.jobs[ids["a"]].tasks.values())
    launch = asyncio.run(render(world, attempt, context))
    return found, launch


def _named(machines: Any, name: str) -> Any:
    return next((node for node in machines.nodes if node.name == name), None)


def asked_of_engines(launch: Any) -> dict[str, Any]:
    """What pods and YARN's containers request for the launch, and how nodes and pods that are there count."""
    import msgspec

    from corral.engines.kubernetes.inventory import translated
    from corral.engines.kubernetes.pods.manifest import pod_manifest
    from corral.engines.kubernetes.pods.manifest_inputs import PodParts, PodSettings
    from corral.engines.kubernetes.settings import KubernetesSettings
    from corral.engines.kubernetes.watch.node_structs import Node
    from corral.engines.yarn.inventory import inventory_of, nodes_of
    from corral.engines.yarn.service_spec import service_of, shape_of
    from corral.engines.yarn.settings import YarnSettings

    settings = PodSettings(server="uid", namespace="x", default_image="base:1")
    pod = pod_manifest(launch, settings, PodParts(node="n1"))
    node = {"metadata": {"name": "n1", "uid": "1"}, "status": {"allocatable": {"example.com/gbits": "40"}}}
    seen = translated(msgspec.convert(node, Node), {"example.com/gbits": 15}, frozenset(), KubernetesSettings("uid"))
    yarn = YarnSettings("uid", (), (), "corral", "https://corral")
    service = service_of(yarn, "s", "default", {"c": (shape_of(launch, "local"), 1)}, {})
    total = {"resourceInformations": {"resourceInformation": [{"name": "net-gbits", "value": 40}]}}
    listed = nodes_of({"nodes": {"node": [{"id": "n1:1", "state": "RUNNING", "totalResource": total}]}})
    return {
        "pod": pod["spec"]["containers"][0]["resources"],
        "node": seen.resources,
        "container": service["components"][0]["resource"]["additional"],
        "yarn node": inventory_of(listed, yarn, {}, {}).nodes[0].resources,
    }


def of_a_pod() -> Any:
    """The resources of the job that a pod with the engine's resource becomes."""
    from corral.spec.job_reader import load_job

    resources = {"requests": {"cpu": "1", "example.com/gbits": "10"}}
    pod = {"spec": {"containers": [{"name": "c", "image": "i", "command": ["true"], "resources": resources}]}}
    roles = [{"name": "worker", "taskNumber": 1, "task": {"pod": pod}}]
    group = {"apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "metadata": {"name": "f"}}
    document = {**group, "spec": {"executionType": "Start", "taskRoles": roles}}
    return load_job(json.dumps(document)).spec.roles[0].resources.model_dump(exclude_defaults=True)


def main() -> None:
    """Print everything that was found."""
    add_row()
    from corral.spec.job_reader import load_job

    found, launch = scheduled()
    found["job"] = load_job(job(bandwidth=20)).spec.roles[0].resources.model_dump(exclude_defaults=True)
    found["refusals"] = refusals()
    found["launch"] = launch.amounts
    found["engines"] = asked_of_engines(launch)
    found["of a pod"] = of_a_pod()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
