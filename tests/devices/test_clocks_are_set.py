"""The clocks of a slow GPU are set with the arguments that nvidia-smi takes, by a program that answers as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.devices import nvidia_clocks
from corral.devices.nvidia_clocks import Clocks, set_highest_clocks
from corral.kernel.errors import NotFound, Unavailable

RECORDED = Path(__file__).parent / "recorded"


class Tool:
    """An `nvidia-smi` in PATH that writes down how it is called."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self._path = folder / "nvidia-smi"
        self.answers(clocks=f"cat {RECORDED}/supported-clocks-a100.csv")

    def answers(
        self, *, clocks: str, devices: str = f"cat {RECORDED}/nvidia-smi-535.xml", changes: str = "true"
    ) -> None:
        script = (
            f'#!/bin/sh\necho "$*" >> {self.calls}\ncase "$*" in\n"-q -x") {devices};;\n'
            f"*--query-supported-clocks=*) {clocks};;\n*) {changes};;\nesac\n"
        )
        self._path.write_text(script)
        self._path.chmod(0o755)

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Tool(tmp_path)


def test_persistence_is_on_and_the_clocks_are_the_highest_of_the_gpu_with_the_minor_number(tool: Tool) -> None:
    assert set_highest_clocks(1) == Clocks(memory=1593, graphics=1410)
    assert tool.called() == [
        "-q -x",
        "-i 00000000:0F:00.0 -pm 1",
        "-i 00000000:0F:00.0 --query-supported-clocks=memory,graphics --format=csv,noheader,nounits",
        "-i 00000000:0F:00.0 -ac 1593,1410",
    ]


def test_a_gpu_that_is_not_there_is_left_alone(tool: Tool) -> None:
    with pytest.raises(NotFound, match="no NVIDIA GPU of the minor number 7 here"):
        set_highest_clocks(7)
    assert tool.called() == ["-q -x"]


def test_what_the_tool_refuses_is_told_in_its_words_and_nothing_more_is_tried(tool: Tool) -> None:
    refusal = "echo 'Unable to set persistence mode: Insufficient Permissions'; exit 4"
    tool.answers(clocks="true", changes=refusal)
    with pytest.raises(
        Unavailable, match=r"-pm 1 ended with 4: Unable to set persistence mode: Insufficient Permissions"
    ):
        set_highest_clocks(0)
    assert len(tool.called()) == 2


@pytest.mark.parametrize(
    ("clocks", "devices", "said"),
    [
        ("echo '[N/A], [N/A]'", None, "names no supported clocks of GPU 0"),
        ("yes", None, "wrote too much"),
        ("sleep 300", None, "was ended after 0.5 s"),
        ("true", "echo broken", "is no XML"),
        ("true", "exit 9", "ended with 9: it wrote nothing"),
    ],
)
def test_a_tool_that_hangs_or_writes_something_else_changes_no_clocks(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, clocks: str, devices: str | None, said: str
) -> None:
    if "0.5" in said:
        monkeypatch.setattr(nvidia_clocks, "_SECONDS", 0.5)
    tool.answers(clocks=clocks, **({} if devices is None else {"devices": devices}))
    with pytest.raises(Unavailable, match=said):
        set_highest_clocks(0)
    assert not [each for each in tool.called() if "-ac" in each]


def test_a_machine_without_the_tool_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="cannot be started: No such file or directory"):
        set_highest_clocks(0)
