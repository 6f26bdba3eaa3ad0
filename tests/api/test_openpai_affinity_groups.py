"""OpenPAI's API shows each task's affinity group; the default group exists only where no role names one."""

from __future__ import annotations

import json

import yaml

from tests.api.harness import Server
from tests.api.openpai_jobs import calling, protocol


def test_where_a_role_names_an_affinity_group_tasks_of_others_are_each_their_own(server: Server) -> None:
    document = yaml.safe_load(protocol("Parted", gpu=1))
    document["taskRoles"] = dict.fromkeys("abcd", document["taskRoles"]["Task_Role"])
    named = {"a": {"affinityGroupName": "band"}, "b": {"affinityGroupName": "choir"}, "c": None, "d": {"skuNum": 1}}
    document["extras"] = {"hivedScheduler": {"taskRoles": named}}
    with calling(server, "ann") as ann:
        assert ann.submit(json.dumps(document)).status_code == 202
        roles = ann.get("/api/v2/jobs/ann~Parted")["taskRoles"]
    told = {name: each["taskStatuses"][0]["hived"]["affinityGroupName"] for name, each in roles.items()}
    assert told == {"a": "ann~Parted/band", "b": "ann~Parted/choir", "c": None, "d": None}
