"""Each attempt that is stored says what of its node it was given: devices, their model, processors and memory."""

from __future__ import annotations

from msgspec import structs

from corral.control.core.driver import Work
from corral.model.store_writes import AttemptWrite, CommitResult, ControlBatch
from tests.control.core.virtual import Played, inventory


def recorded(played: Played) -> list[AttemptWrite]:
    """The writes of attempts from now on."""
    found: list[AttemptWrite] = []
    store, write = played.driver.store, played.driver.store.write

    def write_and_note(batch: ControlBatch) -> CommitResult:
        found.extend(batch.attempts)
        return write(batch)

    store.write = write_and_note  # type: ignore[method-assign]
    return found


def test_an_attempt_has_the_model_of_its_devices_and_what_its_role_asks_for() -> None:
    machines = inventory(2, 2)
    first, second = machines.nodes
    models = ("h100", "a100")
    mixed = tuple(structs.replace(each, model=model) for each, model in zip(first.devices, models, strict=True))
    alike = tuple(structs.replace(each, model="h100") for each in second.devices)
    nodes = (structs.replace(first, devices=mixed), structs.replace(second, devices=alike))
    played = Played(machines=structs.replace(machines, nodes=nodes))
    found = recorded(played)
    for name, devices in (("pair", 2), ("other-pair", 2), ("none", 0)):
        played.submit(name, devices=devices, work=Work(60.0))
    played.run(30.0)
    by_job = {each.id.split(".")[0]: each for each in found if each.started_at is not None}
    said = {
        (each.node, each.device_millis, each.model, each.cpu_millis) for each in by_job.values() if each.device_millis
    }
    assert said == {("local/node0", 2000, "", 1000), ("local/node1", 2000, "h100", 1000)}
    (without,) = (each for each in by_job.values() if not each.device_millis)
    assert (without.model, without.cpu_millis) == ("", 1000)
