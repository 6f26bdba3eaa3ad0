"""Files that no NodeManager can fetch, and other reasons for which YARN gives no container, are told to those who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from corral.engines.yarn import services as services_module
from corral.engines.yarn.fetch_failures import words_of_end
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.services import Look, Services
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.engines.yarn.slots import Service
from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from tests.engines.yarn.test_services_that_end import ATTEMPT, JOB, Made, waits
from tests.engines.yarn.test_services_that_failed import SETTINGS

SERVICE = Service("corral-s-mine-1", JOB, "ada", "default", {}, {})
PROGRAM, OTHER = "/apps/corral/s/0123-runtime.pyz", "/apps/corral/old/4567-slot.sh"
OWN = "/user/ada/.corral/s/corral-s-mine-1/slot.json"
Refusals = dict[str, CorralError]


class Hadoop:
    """Made-up answers of both daemons: a service with three files, of which some are refused."""

    def __init__(self, refusals: Refusals, **told: Any) -> None:
        self.refusals, self.told, self.written, self.asked = refusals, told, list[str](), list[str]()
        self.apps: list[dict[str, Any]] = []

    async def ask(self, rest: Any, method: str, path: str, **terms: Any) -> Any:
        operation = terms.get("op", "")
        self.asked.append(f"{method} {path} {operation}".strip())
        if path == "/app/v1/services/corral-s-mine-1":
            files = [{"type": "STATIC", "src_file": each} for each in (PROGRAM, OTHER, OWN)]
            return {"name": SERVICE.name, "state": "STARTED", "configuration": {"files": files}, **self.told}
        if path == "/ws/v1/cluster/apps":
            return {"apps": {"app": self.apps}}
        if operation == "GETHOMEDIRECTORY":
            return {"Path": "/user/ada"}
        if operation == "GETFILESTATUS":
            if isinstance(error := self.refusals.get(path.removeprefix("/webhdfs/v1")), NotFound):
                raise error
            return {"FileStatus": {"permission": "755"}}
        if operation == "CHECKACCESS":
            assert terms["user"] == "ada" and terms["fsaction"] == "r--", "it is asked as the user of the containers"
            if (error := self.refusals.get(path.removeprefix("/webhdfs/v1"))) is not None:
                raise error
        return None

    async def put_file(self, rest: Any, path: str, data: bytes, **_: Any) -> None:
        self.written.append(path.removeprefix("/webhdfs/v1"))


def services_over(hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch) -> Services:
    async def ask(self: HadoopRest, method: str, path: str, **terms: Any) -> Any:
        return await hadoop.ask(self, method, path, **terms)

    async def put_file(self: HadoopRest, path: str, data: bytes, **terms: Any) -> None:
        await hadoop.put_file(self, path, data, **terms)

    monkeypatch.setattr(HadoopRest, "ask", ask)
    monkeypatch.setattr(HadoopRest, "put_file", put_file)
    rest = HadoopRest("ResourceManager", ["http://rm:8088"], "me")
    services = Services(SETTINGS, rest, rest, SlotTokens(b"k" * 32))
    services._programs = {"runtime.pyz": PROGRAM}
    return services


GONE = NotFound("hadoop-refused", "FileNotFoundException: File does not exist.")
CLOSED = Forbidden(
    "hadoop-permission",
    'The NameNode refuses x: Permission denied: user=ada, access=EXECUTE, inode="/apps/corral":root:root:drwx------',
)


async def test_nothing_is_said_of_a_service_whose_files_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({})
    assert await services_over(hadoop, monkeypatch).look(SERVICE) == (False, "")
    assert not hadoop.written


async def test_a_file_of_the_service_that_is_gone_is_named_and_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({OWN: GONE})
    look = await services_over(hadoop, monkeypatch).look(SERVICE)
    said = f"No NodeManager can fetch {OWN}: it is not in HDFS any more. Corral has written it again."
    assert (look, hadoop.written) == ((False, said), [OWN])


async def test_a_program_that_is_gone_is_staged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({PROGRAM: GONE})
    services, staged = services_over(hadoop, monkeypatch), list[str]()

    async def stage() -> None:
        staged.append("programs")

    monkeypatch.setattr(services, "_stage_programs", stage)
    look = await services.look(SERVICE)
    assert look.trouble.endswith("Corral has written it again.") and staged == ["programs"]


async def test_a_program_that_several_services_miss_is_staged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({PROGRAM: GONE})
    services, staged = services_over(hadoop, monkeypatch), list[str]()

    async def stage() -> None:
        await asyncio.sleep(0)  # the others look meanwhile
        staged.append("programs")
        hadoop.refusals.clear()

    monkeypatch.setattr(services, "_stage_programs", stage)
    looks = await asyncio.gather(*(services.look(SERVICE) for _ in range(5)))
    assert all(look.trouble.endswith("Corral has written it again.") for look in looks)
    assert staged == ["programs"]


async def test_files_that_can_be_read_are_looked_at_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({PROGRAM: CLOSED})
    services = services_over(hadoop, monkeypatch)

    async def asked() -> tuple[int, str]:
        hadoop.asked.clear()
        trouble = (await services.look(SERVICE)).trouble
        return sum("CHECKACCESS" in each for each in hadoop.asked), trouble[:10]

    assert [await asked(), await asked()] == [(1, "No NodeMan")] * 2, "what is wrong is looked at each time"
    hadoop.refusals.clear()
    assert [await asked(), await asked(), await asked()] == [(3, ""), (0, ""), (0, "")]
    hadoop.refusals[OWN] = GONE
    services._readable[SERVICE.name] -= services_module._FILES_SECONDS
    assert await asked() == (3, "No NodeMan")


async def test_a_file_of_another_version_that_is_gone_is_named_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({OTHER: GONE})
    look = await services_over(hadoop, monkeypatch).look(SERVICE)
    assert look.trouble == f"No NodeManager can fetch {OTHER}: it is not in HDFS any more."
    assert not hadoop.written


async def test_a_file_that_cannot_be_written_again_says_so_and_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({OWN: GONE})
    services = services_over(hadoop, monkeypatch)

    async def full(self: HadoopRest, path: str, data: bytes, **_: Any) -> None:
        raise Conflict("hadoop-quota", "The quota is exceeded.")

    monkeypatch.setattr(HadoopRest, "put_file", full)
    assert (await services.look(SERVICE)).trouble.endswith("It cannot be written again (hadoop-quota).")


async def test_a_closed_folder_is_named_with_the_user_who_may_not_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    look = await services_over(Hadoop({PROGRAM: CLOSED}), monkeypatch).look(SERVICE)
    assert look.trouble == (
        f"No NodeManager can fetch {PROGRAM}: HDFS does not let ada read /apps/corral; allow it (hdfs dfs -chmod)."
    )


async def test_a_gateway_that_cannot_check_rights_has_nothing_said_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = InvalidInput("hadoop-refused", "Invalid operation CHECKACCESS.")
    assert await services_over(Hadoop({PROGRAM: unknown}), monkeypatch).look(SERVICE) == (False, "")


@pytest.mark.parametrize(
    ("code", "said", "is_closed"),
    [
        ("hadoop-refused", "The NameNode refuses x: RetriableException: The server is too busy.", False),
        ("hadoop-proxy-user", "The NameNode refuses x: User: corral is not allowed to impersonate ada.", False),
        ("hadoop-refused", "The NameNode refuses x: AccessControlException: No policy lets ada in.", True),
    ],
)
async def test_a_refusal_for_another_reason_is_not_taken_for_a_closed_file(
    monkeypatch: pytest.MonkeyPatch, code: str, said: str, is_closed: bool
) -> None:
    look = await services_over(Hadoop({PROGRAM: Forbidden(code, said)}), monkeypatch).look(SERVICE)
    assert look.trouble.startswith("No NodeManager can fetch") is is_closed


async def test_a_name_node_that_does_not_answer_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Unavailable("hadoop-unreachable", "The NameNode does not answer.")
    with pytest.raises(Unavailable, match="does not answer"):
        await services_over(Hadoop({PROGRAM: silent}), monkeypatch).look(SERVICE)


async def test_the_end_of_a_service_is_told_in_yarns_words(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = Hadoop({}, state="FAILED", id="application_1_1")
    said = "main-n0-0: [2026-11-30 12:00:00.123]File does not exist: hdfs://nn/x\njava.io.FileNotFoundException: x\n"
    hadoop.apps = [{"name": name, "user": "ada", "diagnostics": said} for name in ("corral-s-mine-1", "corral-s-other")]
    look = await services_over(hadoop, monkeypatch).look(SERVICE)
    assert look == (True, "YARN ended the service corral-s-mine-1: File does not exist: hdfs://nn/x.")


@pytest.mark.parametrize(
    ("diagnostics", "said"),
    [
        ("", ""),
        ("\n \n", ""),
        ("java.io.IOException: No space left on device\n\tat a.b.C", "No space left on device"),
        ("main-n0-3 : [2026-01-02 03:04:05.6]Exception from x.\ncorral: it has no Python 3\n", "it has no Python 3"),
        ("x" * 500, "x" * 120),
    ],
)
def test_of_yarns_words_the_first_that_say_something_are_taken(diagnostics: str, said: str) -> None:
    assert words_of_end(diagnostics) == said


async def test_a_service_whose_programs_yarn_misses_is_asked_for_again_after_they_were_staged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hadoop, refusals = Hadoop({}), [InvalidInput("hadoop-refused", "Src_file does not exist for config file: x")]
    services, staged, posted = services_over(hadoop, monkeypatch), list[str](), list[str]()

    async def ask(self: HadoopRest, method: str, path: str, **terms: Any) -> Any:
        if (method, path) == ("POST", "/app/v1/services"):
            posted.append(path)
            if refusals:
                raise refusals.pop()
            return None
        return await hadoop.ask(self, method, path, **terms)

    async def stage() -> None:
        staged.append("programs")

    monkeypatch.setattr(HadoopRest, "ask", ask)
    monkeypatch.setattr(services, "_stage_programs", stage)
    await services.make(SERVICE)
    assert (len(posted), staged) == (2, ["programs"])


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not look():
            await asyncio.sleep(0.01)


async def test_an_attempt_that_waits_is_told_the_cause_and_ends_with_it_when_its_start_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services, ends = Made(), list[tuple[int, str]]()
    services.trouble = "No NodeManager can fetch /x: it is not in HDFS any more."
    events = SimpleNamespace(end=lambda attempt, code, reason: ends.append((code, reason)))
    table, loop = waits(services, monkeypatch, start_seconds=1000.0, events=events)
    attempt = table.attempts[ATTEMPT]
    await until(lambda: attempt.trouble is not None)
    assert isinstance(attempt.trouble, Unavailable), "it waits on: the file may come back"
    assert attempt.trouble.message == services.trouble
    attempt.since -= 2000.0
    await until(lambda: bool(ends))
    assert ends[0] == (-120, f"YARN gave no container within 1000 s: {services.trouble}")
    loop.cancel()


async def test_the_cause_of_one_service_stays_told_while_another_one_of_the_job_is_well(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    services, cause, looks = Made(), "No NodeManager can fetch /x: it is not in HDFS any more.", list[str]()

    async def look(service: Service) -> Look:
        looks.append(service.name)
        return Look(False, cause if service.name == "first" else "")

    monkeypatch.setattr(services, "look", look)
    there = Service("first", JOB, "ada", "default", {}, {"small-n0": 1})
    table, loop = waits(services, monkeypatch, there=there, start_seconds=1000.0)
    attempt, now = table.attempts[ATTEMPT], there.busy_at
    table.services["second"] = Service(
        "second", JOB, "ada", "default", dict(there.components), {"small-n0": 1}, busy_at=now, prolonged_at=now
    )
    await until(lambda: attempt.trouble is not None)
    told, most = list[str](), len(looks) + 20

    def looked() -> bool:
        told.append(attempt.trouble.message if attempt.trouble is not None else "")
        return len(looks) > most and {"first", "second"} <= set(looks)

    await until(looked)
    assert set(told) == {cause}
    assert caplog.text.count("gives no containers: ") == 1
    loop.cancel()


async def test_a_cause_that_is_gone_is_told_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Made()
    services.trouble = "No NodeManager can fetch /x: it is not in HDFS any more."
    table, loop = waits(services, monkeypatch)
    attempt = table.attempts[ATTEMPT]
    await until(lambda: attempt.trouble is not None)
    services.trouble = ""
    await until(lambda: attempt.trouble is None)
    loop.cancel()
