"""The form writes several roles, elastic roles, environment, data, arrays and limits into the file, and reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
import yaml
from playwright.sync_api import Browser, Page, Route, expect

from tests.portal.axe import findings
from tests.portal.harness import Portal, Theme, Watch, open_context
from tests.portal.test_everyone_can_use_it import NAMELESS, PALE
from tests.portal.test_jobs_are_cloned import expect_lines, lines_of

TEXT = """\
# of two roles
name: wide   # kept
roles:
  first: {replicas: 2, command: "true", resources: {cpu: 1}}
  second:
    resources: {cpu: 1}
    command: "true"
    env: {A: "1"}   # kept, too
"""

PLACED = """\
name: placed   # kept
nodes:   # ours alone
  - node1   # the old one
  - node2   # the new one
sharing: exclusive   # loud
roles:
  worker: {command: "true", resources: {cpu: 1}}   # one task
  helper:
    command: "true"   # waits
    resources: {cpu: 1}
"""


def unfold(page: Page, group: str) -> None:
    """Open a group of the form's further fields."""
    page.locator("summary", has_text=group).click()


@pytest.fixture
def closed(portal: Portal) -> Iterator[Portal]:
    """Two queues beside the first: one for members only, one that takes no new jobs."""
    portal.client.apply("kind: Queue\nname: members\nmembersOnly: true\n---\nkind: Queue\nname: full\nclosed: true\n")
    yield portal
    portal.clear()
    for name in ("members", "full"):
        portal.client.delete_configuration("queue", name)


def test_only_queues_that_take_the_readers_jobs_are_offered(
    page: Page, page_of: Callable[[str], Page], closed: Portal
) -> None:
    offered = {queue["name"]: queue["maySubmit"] for queue in closed.client.queues()["items"]}
    assert offered["members"] and not offered["full"]
    other = page_of("quinn")
    for address in ("/submit", "/notebook"):
        page.goto(address)
        choice = page.get_by_role("combobox", name="Queue", exact=True)
        expect(choice.locator("option", has_text="members")).to_have_count(1)
        expect(choice.locator("option", has_text="full")).to_have_count(0)
        other.goto(address)
        choice = other.get_by_role("combobox", name="Queue", exact=True)
        expect(choice.locator("option", has_text="research")).to_have_count(1)
        expect(choice.locator("option", has_text="members")).to_have_count(0)


@pytest.fixture
def without_default(portal: Portal) -> Iterator[Portal]:
    """The queue `default` for members only; it has no document of its own afterwards, as before."""
    before = next(queue["doc"] for queue in portal.client.queues()["items"] if queue["name"] == "default")
    document = {"kind": "Queue", "name": "default", **before}
    portal.client.apply(yaml.safe_dump({**document, "membersOnly": True}))
    yield portal
    portal.clear()
    portal.client.delete_configuration("queue", "default")


def test_a_new_job_begins_in_a_queue_that_takes_it(page_of: Callable[[str], Page], without_default: Portal) -> None:
    page = page_of("quill")
    page.goto("/submit")
    queue = page.get_by_role("combobox", name="Queue", exact=True)
    expect(queue.locator("option", has_text="production")).to_have_count(1)
    expect(queue.locator("option", has_text="default")).to_have_count(0)
    expect(queue).not_to_have_value("")
    expect(page.get_by_label("Job file, YAML")).to_contain_text(f"queue: {queue.input_value()}")
    page.get_by_label("Name", exact=True).fill("begun")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="begun")).to_be_visible()


@pytest.mark.parametrize("pasted", [True, False], ids=["pasted", "typed"])
def test_text_that_is_written_as_the_queues_arrive_has_its_place_in_the_file(
    page_of: Callable[[str], Page], without_default: Portal, pasted: bool
) -> None:
    page = page_of("quincy")
    held, shut = list[Route](), True
    queues = re.compile(r"/api/v3/queues(\?|$)")
    page.route(queues, lambda route: held.append(route) if shut else route.continue_())
    page.goto("/submit")
    editor = page.get_by_label("Job file, YAML")
    expect(editor).to_contain_text("my-job")
    for key in ("ControlOrMeta+a",) if pasted else ("ControlOrMeta+End", "ArrowUp", "End"):
        editor.press(key)
    shut = False  # a request may come as late as now
    for each in held:
        each.continue_()
    expect(editor).to_contain_text("queue: ")
    page.unroute(queues)
    begun = lines_of(page)
    page.keyboard.insert_text(TEXT if pasted else "   # mine")
    expect(editor).to_contain_text("kept, too" if pasted else "mine")
    expect_lines(page, TEXT if pasted else begun.removesuffix("\n") + "   # mine\n")


def test_a_job_of_two_roles_with_data_limits_and_an_array_is_written_by_the_form_alone(
    page: Page, portal: Portal
) -> None:
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("wide")
    page.get_by_label("Command").fill('test "$SHARED$OWN" = yes')
    page.get_by_label("New role").fill("helper")
    page.get_by_role("button", name="Add role").click()
    roles = page.get_by_role("group", name="Role", exact=True)
    expect(roles.get_by_role("button", name="helper")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Command")).to_have_value("true")
    page.get_by_label("Command").fill('test "$SHARED$OWN" = yesmine')
    page.get_by_label("Replicas").fill("1-2")
    unfold(page, "Environment, ports and resources of this role")
    page.get_by_label("Environment of this role").fill("OWN=mine")
    unfold(page, "Environment, data and parameters")
    page.get_by_label("Environment of all roles").fill("SHARED=yes")
    unfold(page, "Arrays, dependencies, retries and limits")
    unfold(page, "Tags, labels and notifications")
    page.get_by_label("Longest run", exact=True).fill("10m")
    page.get_by_label("Retries after failures").fill("0")
    page.get_by_label("Tags", exact=True).fill("nightly wide")
    page.get_by_label("Array of jobs").fill("2/1")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    written = yaml.safe_load(lines_of(page))
    assert written["roles"]["helper"]["replicas"] == {"min": 1, "max": 2}
    assert written["roles"]["helper"]["env"] == {"OWN": "mine"} and "env" not in written["roles"]["worker"]
    assert (written["array"], written["tags"]) == ({"size": 2, "maxParallel": 1}, ["nightly", "wide"])
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="wide-0")).to_be_visible()
    for job in ("wide-0", "wide-1"):
        assert portal.client.wait(job, timeout=240)["state"] == "succeeded"


def test_each_role_of_a_written_file_has_its_form_and_comments_stay(page: Page) -> None:
    page.goto("/submit")
    editor = page.get_by_label("Job file, YAML")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    editor.fill(TEXT)
    roles = page.get_by_role("group", name="Role", exact=True)
    expect(page.get_by_label("Replicas")).to_have_value("2")
    roles.get_by_role("button", name="second").click()
    expect(page.get_by_label("Replicas")).to_have_value("1")
    page.get_by_label("Replicas").fill("3")
    unfold(page, "Environment, ports and resources of this role")
    own = page.get_by_label("Environment of this role")
    expect(own).to_have_value("A=1")
    own.fill("A=1\nB")
    expect(page.get_by_text("Write NAME=value, one a line.")).to_be_visible()
    own.fill("A=1\nB=x y")
    expect(editor).to_contain_text('B: "x y"')
    changed = TEXT.replace(
        "    resources: {cpu: 1}\n    command", "    replicas: 3\n    resources: {cpu: 1}\n    command"
    )
    expect_lines(page, changed.replace('{A: "1"}', '{A: "1", B: "x y"}'))
    page.get_by_role("button", name="Remove second").click()
    expect(editor).not_to_contain_text("second")
    assert list(yaml.safe_load(lines_of(page))["roles"]) == ["first"]
    assert lines_of(page).startswith("# of two roles\nname: wide   # kept\n")


def test_rules_on_nodes_checkpoints_and_notifications_follow_the_file_and_the_file_them(page: Page) -> None:
    page.goto("/submit")
    editor = page.get_by_label("Job file, YAML")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    editor.fill(PLACED)
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    unfold(page, "Nodes, spread, sharing and network: 2 in the file")
    expect(page.get_by_label("Only on these nodes", exact=True)).to_have_value("node1 node2")
    expect(page.get_by_label("Nodes for itself")).to_have_value("true")
    page.get_by_label("On none of these nodes", exact=True).fill("node9")
    rules = page.get_by_label("Rules on labels of its nodes", exact=True)
    rules.fill("zone in (a")
    expect(page.get_by_text("Write zone in (a, b)")).to_be_visible()
    rules.fill("zone in (a, b)\n!spot")
    page.get_by_label("Taints that it tolerates").fill("spot=yes:NoExecute 300")
    page.get_by_label("Away from jobs tagged").fill("noisy")
    page.get_by_label("Network with RDMA").select_option("preferred")
    page.get_by_label("Tasks in different", exact=True).select_option("node")
    unfold(page, "Checkpoints, progress and health")
    page.get_by_label("Signal that asks for a checkpoint").fill("SIGUSR1")
    page.get_by_label("Time to end in").fill("2m")
    page.get_by_label("Hangs without progress for").fill("30m")
    page.get_by_label("On a lost node or bad device").select_option("replace")
    unfold(page, "Tags, labels and notifications")
    told = page.get_by_role("group", name="Tell me when it")
    told.get_by_label("failed").check()
    told.get_by_label("ended in any way").check()
    unfold(page, "Environment, data and parameters")
    page.get_by_label("Parameters", exact=True).fill("lr=0.1")
    page.get_by_role("group", name="Role", exact=True).get_by_role("button", name="helper").click()
    part = page.get_by_role("region", name="Role helper")
    expect(part.get_by_label("Command")).to_have_value("true")
    unfold(page, "Nodes, ends and retries of this role")
    part.get_by_label("This role only on these nodes").fill("node1")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    written = yaml.safe_load(lines_of(page))
    assert written["nodes"] == {
        "include": ["node1", "node2"],
        "exclude": ["node9"],
        "expressions": [
            {"key": "zone", "operator": "In", "values": ["a", "b"]},
            {"key": "spot", "operator": "DoesNotExist"},
        ],
        "tolerations": [{"key": "spot", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 300}],
    }
    assert written["sharing"] == {"exclusive": True, "antiAffinity": {"tags": ["noisy"]}}
    assert (written["network"], written["topology"]) == ({"rdma": "preferred"}, {"spread": {"level": "node"}})
    assert (written["checkpoint"], written["hangAfter"]) == ({"signal": "SIGUSR1", "grace": "2m"}, "30m")
    assert (written["badHardware"], written["notifications"]) == ("replace", {"events": ["failed", "ended"]})
    assert written["parameters"] == {"lr": "0.1"}
    assert written["roles"]["helper"]["nodes"] == {"include": ["node1"]} and "nodes" not in written["roles"]["worker"]
    for comment in ("kept", "ours alone", "the old one", "the new one", "loud", "one task", "waits"):
        assert f"   # {comment}\n" in lines_of(page)
    editor.fill(lines_of(page).replace("    - node2   # the new one\n", ""))
    expect(page.get_by_label("Only on these nodes", exact=True)).to_have_value("node1")


def test_devices_and_ports_of_a_role_are_named_and_numbered(page: Page) -> None:
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("chosen")
    page.get_by_label("Command").fill("true")
    page.get_by_label("Devices each", exact=True).fill("2")
    unfold(page, "Environment, ports and resources of this role")
    page.get_by_label("Kind of its devices").fill("gpu")
    page.get_by_label("Named devices of its node").fill("1 3")
    page.get_by_label("Ports of this role").fill("http:2=28080")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    worker = yaml.safe_load(lines_of(page))["roles"]["worker"]
    assert worker["resources"]["devices"] == {"count": 2, "kind": "gpu", "ids": ["1", "3"]}
    assert worker["ports"] == [{"name": "http", "count": 2, "start": 28080}]
    expect(page.get_by_label("Devices each", exact=True)).to_have_value("2")


POD = """\
name: pods
roles:
  worker:
    command: "true"
    resources: {cpu: 1}
    kubernetes:
      podTemplate:   # as agreed
        spec:
          securityContext: {runAsUser: 1000}   # the image's own
          containers: [{name: task, tty: true}]
"""


def test_the_pod_of_a_role_follows_its_fields_and_they_follow_the_file(page: Page) -> None:
    page.goto("/submit")
    editor = page.get_by_label("Job file, YAML")
    editor.fill(POD)
    expect(page.get_by_text("Pods of this role on Kubernetes: 2 in the file")).to_be_visible()
    unfold(page, "Pods of this role on Kubernetes")
    expect(page.get_by_label("Mounts of the task")).to_be_disabled()
    user = page.get_by_label("Runs as the user")
    expect(user).to_have_value("1000")
    user.fill("2000")
    page.get_by_label("Labels of its pods").fill("team=vision\ncost.example/centre=7")
    page.get_by_label("Runtime class").fill("nvidia")
    page.get_by_label("The node’s shared memory").select_option("true")
    page.get_by_label("A pod counts as ended after").fill("600")
    expect(editor).to_contain_text("forceAfterSeconds: 600")
    kubernetes = {
        "podTemplate": {
            "spec": {
                "securityContext": {"runAsUser": 2000},
                "containers": [{"name": "task", "tty": True}],
                "runtimeClassName": "nvidia",
                "hostIPC": True,
            },
            "metadata": {"labels": {"team": "vision", "cost.example/centre": "7"}},
        },
        "forceAfterSeconds": 600,
    }
    assert yaml.safe_load(lines_of(page))["roles"]["worker"]["kubernetes"] == kubernetes
    for comment in ("as agreed", "the image's own"):
        assert f"   # {comment}\n" in lines_of(page)
    editor.fill(lines_of(page).replace("nvidia", "gvisor"))
    expect(page.get_by_label("Runtime class")).to_have_value("gvisor")
    page.get_by_label("Runtime class").fill("")
    expect(editor).not_to_contain_text("runtimeClassName")


def test_volumes_and_containers_of_a_pod_are_written_by_lines(page: Page) -> None:
    page.goto("/submit")
    page.get_by_label("Name", exact=True).fill("mounted")
    unfold(page, "Pods of this role on Kubernetes")
    volumes, containers = page.get_by_label("Volumes of its pods"), page.get_by_label("Mounts of the task")
    volumes.fill("data claim:datasets\nscratch")
    expect(page.get_by_text("Write data claim:NAME")).to_be_visible()
    volumes.fill("data claim:datasets\nscratch empty:10Gi")
    containers.fill("task data:/data:ro scratch:/scratch\nwatch busybox:1.37 scratch:/out -- tail -F /out/log")
    expect(page.get_by_text("The file is valid.")).to_be_visible()
    assert yaml.safe_load(lines_of(page))["roles"]["worker"]["kubernetes"]["podTemplate"]["spec"] == {
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "10Gi"}},
        ],
        "containers": [
            {
                "name": "task",
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data", "readOnly": True},
                    {"name": "scratch", "mountPath": "/scratch"},
                ],
            },
            {
                "name": "watch",
                "image": "busybox:1.37",
                "command": ["sh", "-c", "tail -F /out/log"],
                "volumeMounts": [{"name": "scratch", "mountPath": "/out"}],
            },
        ],
    }
    volumes.fill("scratch empty:10Gi")
    expect(page.get_by_label("Job file, YAML")).not_to_contain_text("datasets")
    expect(containers).to_have_value(
        "task data:/data:ro scratch:/scratch\nwatch busybox:1.37 scratch:/out -- tail -F /out/log"
    )


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1440, "dark")])
def test_the_unfolded_form_fits_and_is_legible_and_named(
    browser: Browser, portal: Portal, watch: Watch, width: int, theme: Theme
) -> None:
    with open_context(browser, portal, width=width, theme=theme) as context:
        context.on("page", watch.attach)
        page = context.new_page()
        page.goto("/submit")
        expect(page.get_by_text("The file is valid.")).to_be_visible()
        groups = page.locator("form summary")
        expect(groups).to_have_count(8)
        for group in groups.all():
            group.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (page.evaluate(PALE), page.evaluate(NAMELESS), findings(page)) == ([], [], [])
