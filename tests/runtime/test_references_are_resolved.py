"""References become addresses; waits end as soon as they may, and not before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.runtime.peers import Address, Api, Refused, TimedOut, Unresolved, resolve, resolve_command, wait_for

PEERS = {"worker-0": Address("10.0.0.1", {"rdzv": [29500, 29501]}), "ps-12": Address("10.0.0.2", {})}


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("$(peer:worker-0:host)", "10.0.0.1"),
        ("tcp://$(peer:worker-0:host):$(peer:worker-0:port:rdzv)/x", "tcp://10.0.0.1:29500/x"),
        ("$(peer:ps-12:host),$(peer:worker-0:host)", "10.0.0.2,10.0.0.1"),
        ("$(date) ${HOME} $(peer) $(peer:) $(peers:x:host)", "$(date) ${HOME} $(peer) $(peer:) $(peers:x:host)"),
        ("", ""),
    ],
)
def test_references_are_replaced_and_nothing_else(text: str, resolved: str) -> None:
    assert resolve(text, PEERS, "") == resolved


@given(st.text())
def test_text_without_references_is_left_alone(text: str) -> None:
    assert resolve(text, {}, "key") == text or "$(peer:" in text or "$(secret:" in text


@pytest.mark.parametrize("text", ["$(peer:worker-1:host)", "$(peer:ps-12:port:web)", "$(peer:worker-0:port:web)"])
def test_a_reference_to_nothing_is_told(text: str) -> None:
    with pytest.raises(Unresolved, match=r"there is no task|has no port"):
        resolve(text, PEERS, "")


def test_derived_secrets_differ_by_purpose_and_key() -> None:
    found = {resolve(f"$(secret:{purpose})", {}, key) for purpose in ("a", "b") for key in ("k", "l")}
    assert len(found) == 4 and all(len(text) == 64 for text in found)


def test_the_runtime_stands_for_its_words_and_secrets_stay_out_of_arguments() -> None:
    words = resolve_command(["$(runtime)", "agent", "$(peer:ps-12:host)"], PEERS, ["python", "r.pyz"])
    assert words == ["python", "r.pyz", "agent", "10.0.0.2"]
    with pytest.raises(Unresolved, match="environment only"):
        resolve_command(["--key=$(secret:a)"], {}, [])


class Script(Api):
    """A server that gives prepared answers in turn, and repeats the last one."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def peers(*names: str, complete: bool = False) -> dict[str, Any]:
    listed = [name.rpartition("-") for name in names]
    records = [{"role": role, "index": int(index), "host": "h", "ports": {}} for role, _, index in listed]
    return {"complete": complete, "peers": [*records, {"role": "late", "index": 0, "host": ""}]}


def ask(script: Script, *, everyone: bool = False, wanted: tuple[str, ...] = (), timeout: float = 60.0) -> set[str]:
    time = Time()
    found = wait_for(
        script, "a", everyone=everyone, wanted=wanted, timeout=timeout, clock=time.clock, sleep=time.sleep
    )  # fmt: skip
    return set(found)


def test_a_wait_for_some_ends_when_those_have_started() -> None:
    script = Script(peers(), peers("worker-1"), peers("worker-0", "worker-1"))
    assert ask(script, wanted=("worker-0",)) == {"worker-0", "worker-1"}
    assert script.asked == 3


@pytest.mark.parametrize("how", [{"everyone": True}, {"wanted": ("*",)}])
def test_a_wait_for_all_ends_when_the_server_says_so(how: dict[str, Any]) -> None:
    script = Script(peers("worker-0"), peers("worker-0", "worker-1", complete=True))
    assert ask(script, **how) == {"worker-0", "worker-1"}


@pytest.mark.parametrize(
    "trouble",
    [OSError("refused"), {"nonsense": 1}, [], None, {"complete": True}, {"complete": True, "peers": [{"host": "h"}]}],
)
def test_a_server_in_trouble_is_asked_again(trouble: Any) -> None:
    assert ask(Script(trouble, trouble, peers("w-0", complete=True)), everyone=True) == {"w-0"}


def test_a_refusal_ends_the_wait_and_time_does_too() -> None:
    with pytest.raises(Refused):
        ask(Script(Refused("gone")), everyone=True)
    with pytest.raises(TimedOut, match="waited 60 s for the other tasks: worker-1 did not start"):
        ask(Script(peers("worker-0")), wanted=("worker-0", "worker-1"))
    with pytest.raises(TimedOut, match=r"did not answer \(refused\)"):
        ask(Script(OSError("refused")), everyone=True)
