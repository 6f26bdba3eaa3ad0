"""Series as lines of bars."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from corral.cli.device_history import DeviceHistory
from corral.cli.job_use import MOST_ASKED, JobUse, by_user
from corral.cli.metrics import series_text
from corral.cli.metrics_overlay import overlay_text
from corral.cli.node_use import HERE, MOST_SHOWN, NodeUse
from corral.cli.sparkline import BARS, sparkline, squeezed
from corral.kernel.errors import Forbidden

VALUES = st.lists(st.none() | st.floats(-1e9, 1e9), max_size=200)


def test_bars_stand_for_the_height_and_blanks_for_nothing() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, None, 7], 10) == BARS + " " + BARS[-1]
    assert sparkline([5, 5, 5], 10) == BARS[0] * 3
    assert sparkline([None, None], 10) == "  "
    assert sparkline([], 10) == ""
    assert squeezed([1, 3, None, None, 5, None], 3) == [2, None, 5]


@given(VALUES, st.integers(1, 60))
def test_a_line_is_never_wider_and_has_a_blank_only_where_nothing_is(values: list[float | None], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= {*BARS, " "}
    assert (not line.strip()) == all(each is None for each in values)


def series(family: str, **labels: str) -> Any:
    return {"family": family, "labels": labels, "mean": [1.0], "low": [1.0], "high": [1.0]}


def named(*items: Any) -> list[str]:
    answer: Any = {"items": list(items), "begin": "", "end": "", "step": 15, "leftOut": 0}
    return [line.split()[0] for line in series_text(answer).splitlines()[1:]]


def test_a_table_names_the_labels_that_tell_its_series_apart() -> None:
    ours = {"job_name": "ada~train", "job_instance_id": "1m8", "role_name": "main"}
    assert named(series("cpu", **ours, task_index="0"), series("cpu", **ours, task_index="1")) == [
        "cpu{task_index=0}", "cpu{task_index=1}"
    ]  # fmt: skip
    assert named(series("cpu", **ours), series("memory", **ours)) == ["cpu", "memory"]
    assert named(series("cpu", **ours)) == ["cpu{role_name=main}"]
    assert named(series("corral_queue_used", queue="research")) == ["corral_queue_used{queue=research}"]


def answer_of(**curves: list[float | None]) -> Any:
    items = [
        {"family": family, "labels": {"job": "1m8"}, "mean": values, "low": values, "high": values}
        for family, values in curves.items()
    ]
    return {"items": items, "begin": "", "end": "", "step": 15, "leftOut": 0}


def test_two_jobs_are_drawn_on_one_scale_and_begin_together_if_asked() -> None:
    answers = {
        "first": answer_of(corral_job_loss=[4.0, 2.0, None, None], corral_job_step=[1.0, 2.0, None, None]),
        "second": answer_of(corral_job_loss=[None, 4.0, 3.0, 0.5], task_cpu_percent=[None, 50.0, 50.0, 50.0]),
    }
    lines = overlay_text(answers, aligned=False).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["loss", "first"], ["second", "0.5"], ["step", "first"], ["task_cpu_percent", "second"]
    ]  # fmt: skip
    assert lines[1].endswith("█▄  ".rstrip()) and lines[2].endswith(" █▆▁")
    aligned = overlay_text(answers, aligned=True).splitlines()
    assert lines[1].split()[-1] == aligned[1].split()[-1] and aligned[2].endswith("█▆▁")
    assert aligned[1].index("█") == aligned[2].index("█")


def test_a_job_without_values_has_no_line() -> None:
    text = overlay_text({"first": answer_of(corral_job_loss=[1.0]), "second": answer_of()}, aligned=True)
    assert "second" not in text and "first" in text


class Server:
    """A client of a server with two engines, which counts its questions."""

    def __init__(self) -> None:
        self.questions = 0
        self.refuses = False

    def series(self, families: list[str], **_: Any) -> Any:
        self.questions += 1
        if self.refuses:
            raise Forbidden("forbidden", "Nothing is told.")
        made = (
            ("local", "used", [0.0, 2.0, None]),
            ("yarn", "used", [0.0, 2.0, None]),
            ("yarn", "free", [8.0, 4.0, None]),
        )
        return {"items": [series_of(engine, state, values) for engine, state, values in made]}


def series_of(engine: str, state: str, values: list[float | None]) -> Any:
    return {"family": "corral_devices", "labels": {"engine": engine, "state": state}, "mean": values}


def test_devices_in_use_are_a_line_between_none_and_all() -> None:
    server, now = Server(), [5.0]
    history = DeviceHistory(server, lambda: now[0])  # type: ignore[arg-type]
    assert history.line() == history.line() == f"{BARS[0]}{BARS[4]} " and server.questions == 1
    now[0] += 31.0
    server.refuses = True
    assert history.line() == history.line() == "" and server.questions == 2


class JobServer:
    """A client of a server that knows some series of jobs, and counts its questions."""

    def __init__(self, **jobs: dict[str, list[list[float | None]]]) -> None:
        self.jobs, self.questions = jobs, 0

    def series(self, families: list[str], *, job: str, **_: Any) -> Any:
        self.questions += 1
        if job not in self.jobs:
            raise Forbidden("forbidden", "Nothing is told.")
        return {
            "items": [
                {"family": family, "mean": values} for family, found in self.jobs[job].items() for values in found
            ]
        }


def test_a_job_shows_the_use_of_its_devices_or_else_of_processors() -> None:
    server, now = (
        JobServer(
            a={"task_gpu_percent": [[100.0, 50.0], [None, 100.0]], "task_cpu_percent": [[1.0, 1.0]]},
            b={"task_cpu_percent": [[200.0, 100.0]]},
            c={},
        ),
        [5.0],
    )
    use = JobUse(server, lambda: now[0])  # type: ignore[arg-type]
    shown = {job: str(each) for job, each in use.of("abcd").items()}
    assert shown == {"a": f"75% {BARS[4]}{BARS[6]}", "b": f"100% cpu {BARS[7]}{BARS[4]}"}
    assert {job: str(each) for job, each in use.of("abcd").items()} == shown and server.questions == 4
    now[0] += 31.0
    use.of("ab")
    assert server.questions == 6


def test_so_many_jobs_are_asked_for_at_a_time() -> None:
    server = JobServer()
    assert JobUse(server, lambda: 0.0).of(map(str, range(100))) == {}  # type: ignore[arg-type]
    assert server.questions == MOST_ASKED


def test_users_are_listed_by_the_devices_that_their_jobs_hold() -> None:
    server = JobServer(
        a={"task_gpu_percent": [[100.0]]}, b={"task_gpu_percent": [[20.0]]}, c={"task_cpu_percent": [[9.0]]}
    )
    uses = JobUse(server, lambda: 0.0).of("abc")  # type: ignore[arg-type]
    jobs = [
        {"id": "a", "user": "ann", "devices": 1},
        {"id": "b", "user": "ann", "devices": 3, "devicesHeld": 3},
        {"id": "c", "user": "bob", "devices": 8, "devicesHeld": 2},
        {"id": "d", "user": "cem", "devices": 0},
    ]
    assert by_user(jobs, uses) == [("ann", 2, 4, "40%"), ("bob", 1, 2, ""), ("cem", 1, 0, "")]


class DeviceServer:
    """A client of a server that knows the use of devices by node; an answer holds ten series at most."""

    def __init__(self, **nodes: list[list[float | None]]) -> None:
        self.found = {name.replace("_", "/"): devices for name, devices in nodes.items()}
        self.refuses = False
        self.questions = 0

    def series(self, families: list[str], *, labels: Any = (), **_: Any) -> Any:
        self.questions += 1
        if self.refuses:
            raise Forbidden("forbidden", "Nothing is told.")
        assert families == ["corral_device_use_ratio"]
        found = [
            {"labels": {"device": str(at)} | ({} if node == "here" else {"node": node}), "mean": values}
            for node, devices in self.found.items()
            for at, values in enumerate(devices)
            if not labels or labels == [f"node={node}"]
        ]
        return {"items": found[:10], "leftOut": max(0, len(found) - 10)}

    def nodes(self, **_: Any) -> Any:
        names = [*self.found, "k8s/cpu-only"]
        return {
            "items": [{"name": each, "total": {"devices": len(self.found.get(each, ()))}} for each in names],
            "next": None,
        }


def test_nodes_show_the_mean_use_of_their_devices_and_the_least_used_come_first() -> None:
    server, now = DeviceServer(k8s_b=[[1.0, 0.5], [0.5, None]], here=[[0.25, 0.0]], k8s_a=[[None, None]]), [5.0]
    use = NodeUse(server, lambda: now[0])  # type: ignore[arg-type]
    shown = [each.cells() for each in use.rows()]
    assert shown == [(HERE, 1, f"0% {BARS[2]}{BARS[0]}"), ("k8s/b", 2, f"50% {BARS[6]}{BARS[4]}")]
    assert [each.cells() for each in use.rows()] == shown and server.questions == 1
    now[0] += 31.0
    server.refuses = True
    assert use.rows() == [] and server.questions == 2


def test_of_many_nodes_each_of_the_first_is_asked_for() -> None:
    server = DeviceServer(**{f"k8s_{number:02}": [[1.0 - number / 100]] * 8 for number in range(30)})  # type: ignore[arg-type]
    rows = NodeUse(server, lambda: 0.0).rows()  # type: ignore[arg-type]
    assert [(each.node, each.devices) for each in rows] == [(f"k8s/{at:02}", 8) for at in range(MOST_SHOWN - 1, -1, -1)]
    assert server.questions == 1 + MOST_SHOWN
