"""Tasks of the local engine see their storages at their own paths, and no other process sees them there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from corral.devices import device_files
from corral.engines.local import storages
from corral.engines.local.containers import Container, run_command
from corral.engines.local.storages import BoundStorage, LocalStorages, link_all, mount_command, spec_of, volumes
from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.model.launch import RuntimePlan
from corral.model.storages import Mount, mount_of
from corral.runtime.build import build_runtime
from corral.spec.storage import StorageDocument, StorageUse
from tests.engines.local_harness import Harness, alive, attempt, launch, until

UID, OTHER = 54_321, 54_322
PLACE = "/mnt/corral-test-storage"
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can start tasks as other users; run as root")
no_namespaces = not LocalStorages().namespace()
needs_namespaces = pytest.mark.skipif(no_namespaces, reason="this machine makes no mount namespaces for this user")


@pytest.fixture
async def local() -> AsyncIterator[Harness]:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    folder.chmod(0o755)
    uids = {"ada": UID, "bob": OTHER}
    async with Harness(folder, uid_of=uids.get if os.getuid() == 0 else lambda user: None) as harness:
        yield harness
    shutil.rmtree(folder)


@pytest.fixture
def shared(local: Harness) -> Path:
    folder = local.folder / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "there").write_text("before\n")
    return folder


def folder_mount(source: Path, *, path: str = PLACE, **fields: object) -> Mount:
    return Mount("data", "folder", path, source=str(source), **fields)  # type: ignore[arg-type]


@needs_namespaces
async def test_a_folder_is_read_and_written_at_its_path(local: Harness, shared: Path) -> None:
    end = await local.run("sh", "-c", f"cat {PLACE}/there; echo mine >{PLACE}/made", storages=(folder_mount(shared),))
    assert end.code == 0, local.log()
    assert local.log() == "before\n"
    assert (shared / "made").read_text() == "mine\n"


@needs_namespaces
@root_only
async def test_the_machine_keeps_nothing_of_a_path_that_was_not_there(local: Harness, shared: Path) -> None:
    before = sorted(os.listdir("/mnt"))
    end = await local.run("sh", "-c", f"ls {PLACE}", storages=(folder_mount(shared),))
    assert (end.code, local.log()) == (0, "there\n")
    assert sorted(os.listdir("/mnt")) == before


@needs_namespaces
@root_only
async def test_what_stands_beside_a_path_is_still_there(local: Harness, shared: Path) -> None:
    beside = local.folder / "closed"
    (beside / "inner").mkdir(parents=True)
    (beside / "inner/file").write_text("kept\n")
    (beside / "plain").write_text("a file\n")
    (beside / "link").symlink_to("inner/file")
    mount = folder_mount(shared, path=f"{beside}/new/deep")
    script = f"cat {beside}/inner/file {beside}/plain {beside}/link {beside}/new/deep/there"
    end = await local.run("sh", "-c", script, storages=(mount,))
    assert (end.code, local.log()) == (0, "kept\na file\nkept\nbefore\n")
    assert not (beside / "new").exists()


@needs_namespaces
async def test_what_is_only_to_be_read_cannot_be_written(local: Harness, shared: Path) -> None:
    mount = folder_mount(shared, read_only=True)
    end = await local.run("sh", "-c", f"cat {PLACE}/there; touch {PLACE}/made", storages=(mount,))
    assert end.code != 0
    assert local.log().startswith("before\n")
    assert "Read-only" in local.log()
    assert not (shared / "made").exists()


@needs_namespaces
@root_only
async def test_each_user_has_a_folder_of_their_own_and_sees_no_other(local: Harness) -> None:
    homes = local.folder / "homes"
    homes.mkdir(mode=0o755)
    for task, user in enumerate(("ada", "bob")):
        mount = folder_mount(homes, folder=user)
        script = f"ls {PLACE}; echo {user} >{PLACE}/name; cat {homes}/ada/name"
        await local.run("sh", "-c", script, task=task, user=user, storages=(mount,))
    assert local.log(attempt(0)) == "ada\n"
    assert "Permission denied" in local.log(attempt(1))
    found = {user: ((homes / user).stat().st_uid, (homes / user / "name").read_text()) for user in ("ada", "bob")}
    assert found == {"ada": (UID, "ada\n"), "bob": (OTHER, "bob\n")}


@root_only
async def test_a_link_in_the_place_of_a_users_folder_is_not_followed(local: Harness) -> None:
    homes = local.folder / "homes"
    homes.mkdir()
    (homes / "ada").symlink_to("/etc")
    end = await local.run("ls", PLACE, storages=(folder_mount(homes, folder="ada"),))
    assert end.code == -200
    assert "is not a folder that this user owns" in end.reason


@root_only
@pytest.mark.parametrize("trick", ["a link", "another's folder", "a folder of the machine's"])
def test_what_takes_the_place_of_a_users_new_folder_is_not_made_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trick: str
) -> None:
    homes, precious = tmp_path / "homes", tmp_path / "precious"
    homes.mkdir()
    precious.mkdir()
    if trick == "another's folder":
        os.chown(precious, OTHER, OTHER)
    else:
        (precious / "kept").write_text("x")
    mkdir = os.mkdir

    def raced(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        mkdir(path, mode, dir_fd=dir_fd)
        (homes / "ada").rmdir()
        if trick == "a link":
            (homes / "ada").symlink_to(precious)
        else:
            precious.rename(homes / "ada")

    owner = precious.stat().st_uid
    monkeypatch.setattr(os, "mkdir", raced)
    with pytest.raises(NotFound, match="is not a folder that this user owns"):
        LocalStorages().bind([folder_mount(homes, folder="ada")], str(tmp_path), UID)
    assert (homes / "ada").stat().st_uid == owner


def test_two_tasks_of_a_user_may_both_find_that_their_folder_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def beaten(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        mkdir(path, mode, dir_fd=dir_fd)
        raise FileExistsError(17, "File exists", path)

    monkeypatch.setattr(os, "mkdir", beaten)
    (bound,) = LocalStorages().bind([folder_mount(tmp_path, folder="ada")], str(tmp_path), -1)
    assert bound.source == f"{tmp_path}/ada" and os.path.isdir(bound.source)


@needs_namespaces
async def test_a_link_that_takes_the_place_of_a_users_folder_before_it_is_mounted_is_not_followed(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes, precious = local.folder / "homes", local.folder / "precious"
    homes.mkdir()
    precious.mkdir()
    (precious / "secret").write_text("x")
    bind = LocalStorages.bind

    def raced(self: LocalStorages, *args: object) -> list[BoundStorage]:
        found = bind(self, *args)  # type: ignore[arg-type]
        (homes / "ada").rmdir()
        (homes / "ada").symlink_to(precious)
        return found

    monkeypatch.setattr(LocalStorages, "bind", raced)
    end = await local.run("ls", PLACE, storages=(folder_mount(homes, folder="ada"),))
    assert end.code != 0
    assert "cannot be mounted" in local.log() and "secret" not in local.log()


async def test_a_storage_that_the_machine_does_not_have_ends_the_task_for_good(local: Harness) -> None:
    end = await local.run("true", storages=(folder_mount(local.folder / "absent"),))
    assert end.code == -200
    assert f"The storage data is not on this machine: no folder {local.folder}/absent" in end.reason


async def test_what_a_machine_cannot_mount_is_refused_with_what_to_do(local: Harness) -> None:
    with pytest.raises(InvalidInput, match="hostPath"):
        await local.engine.start(launch("true", storages=(Mount("blobs", "azureBlob", PLACE, source="c"),)))


@needs_namespaces
@root_only
async def test_what_a_machine_mounts_itself_is_mounted_once_and_bound_for_each_task(
    local: Harness, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mount(_: Mount, target: str) -> list[str]:
        return ["mount", "--bind", str(shared), target]

    monkeypatch.setattr(storages, "mount_command", mount)
    monkeypatch.setattr(storages, "MOUNTS", local.folder / "mounts")
    far = Mount("far", "nfs", PLACE, source="/export", server="filer")
    try:
        for task in (0, 1):
            end = await local.run("cat", f"{PLACE}/there", task=task, storages=(far,))
            assert (end.code, local.log(attempt(task))) == (0, "before\n")
        (mounted,) = (local.folder / "mounts").iterdir()
        assert storages.is_mounted(str(mounted))
        end = await local.run("cat", f"{mounted}/there", task=2, user="bob")
        assert end.code != 0 and "Permission denied" in local.log(attempt(2)), "only who may have it gets there"
    finally:
        for each in (local.folder / "mounts").iterdir():
            if storages.is_mounted(str(each)):
                subprocess.run(["umount", str(each)], check=True)


@root_only
async def test_a_server_that_cannot_be_mounted_now_is_tried_again(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storages, "MOUNTS", local.folder / "mounts")
    monkeypatch.setattr(storages, "mount_command", lambda *_: ["sh", "-c", "echo 'no route to filer' >&2; exit 32"])
    with pytest.raises(Unavailable, match="The storage far cannot be mounted now: no route to filer"):
        await local.engine.start(launch("true", storages=(Mount("far", "nfs", PLACE, source="/x", server="filer"),)))
    assert local.engine.attempts() == frozenset()


@pytest.mark.parametrize("why", ["cancelled", "cancelled while it starts", "late"])
async def test_nothing_goes_on_mounting_when_the_start_that_wanted_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    told = tmp_path / "told"
    script = f"sleep 1000 & echo $$ $! >{told}.new; mv {told}.new {told}; wait"  # `mount` has a helper process too
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(storages, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(storages, "mount_command", lambda *_: ["sh", "-c", script])
    if why == "late":
        wait_for = asyncio.wait_for

        async def hurried(work: Awaitable[object], _: float) -> object:
            await until(told.exists)
            return await wait_for(work, 0)

        monkeypatch.setattr(asyncio, "wait_for", hurried)
    if why == "cancelled while it starts":
        create = asyncio.create_subprocess_exec

        async def slowly(*words: str, **how: Any) -> asyncio.subprocess.Process:
            process = await create(*words, **how)
            await until(told.exists)
            bringing.cancel()
            await asyncio.sleep(0)
            return process

        monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    bringing = asyncio.create_task(LocalStorages().bring([Mount("far", "nfs", PLACE, source="/x", server="filer")]))
    await until(told.exists)
    mount, helper = map(int, told.read_text().split())
    if why == "cancelled":
        bringing.cancel()
    with pytest.raises(Unavailable if why == "late" else asyncio.CancelledError):
        await bringing
    assert not alive(mount)
    await until(lambda: not alive(helper))


@needs_namespaces
async def test_the_working_folder_may_be_in_a_storage(local: Harness, shared: Path) -> None:
    end = await local.run("pwd", working_dir=PLACE, storages=(folder_mount(shared),))
    assert (end.code, local.log()) == (0, f"{PLACE}\n")


@needs_namespaces
async def test_a_session_in_a_task_sees_its_storages(local: Harness, shared: Path) -> None:
    script = f"echo here; exec sleep 1000 # {PLACE}"
    await local.engine.start(launch("sh", "-c", script, working_dir=PLACE, storages=(folder_mount(shared),)))
    await local.line("here")
    session = await local.engine.exec(attempt(), ["sh", "-c", "id -u; pwd; cat there"], tty=False)
    printed = b"".join([chunk async for chunk in session.output()]).decode()
    uid = UID if os.getuid() == 0 else os.getuid()
    assert printed == f"{uid}\n{PLACE}\nbefore\n"
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=60)
    assert (await local.exited(attempt())).code == 143


@needs_namespaces
@root_only
async def test_a_task_with_storages_gets_no_rights_by_programs_of_others(local: Harness, shared: Path) -> None:
    await local.run("grep", "NoNewPrivs", "/proc/self/status", storages=(folder_mount(shared),))
    assert local.log().split() == ["NoNewPrivs:", "1"]


@needs_namespaces
@root_only
async def test_a_task_with_storages_and_its_sessions_have_the_groups_of_its_devices(
    local: Harness, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_files, "groups", lambda devices: (1105, 1106))
    script = "id -G; exec sleep 1000"
    await local.engine.start(launch("sh", "-c", script, storages=(folder_mount(shared),)))
    await local.line(f"{UID} 1105 1106")
    session = await local.engine.exec(attempt(), ["sh", "-c", "id -u; id -G; cat /proc/self/status"], tty=False)
    printed = b"".join([chunk async for chunk in session.output()]).decode()
    assert printed.startswith(f"{UID}\n{UID} 1105 1106\n")
    assert "CapEff:\t0000000000000000" in printed and "NoNewPrivs:\t1" in printed
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=60)
    assert (await local.exited(attempt())).code == 143


@needs_namespaces
@root_only
async def test_programs_that_a_job_mounts_over_the_machines_run_as_its_user_alone(local: Harness, shared: Path) -> None:
    for name in ("sh", "id", "grep", "sleep"):
        shutil.copy(shutil.which(name) or "", shared / name)
    (shared / "setpriv").write_text("#!/usr/bin/sh\nexec id -u\n")
    (shared / "setpriv").chmod(0o755)
    place = os.path.dirname(shutil.which("setpriv") or "")
    mount = folder_mount(shared, path=place)
    await local.engine.start(launch("sh", "-c", "echo ran as $(id -u); exec sleep 1000", storages=(mount,)))
    await local.line("ran as")
    assert local.log() == f"ran as {UID}\n"
    script = "id -u; id -G; grep NoNewPrivs /proc/self/status"
    session = await local.engine.exec(attempt(), ["sh", "-c", script], tty=False)
    printed = b"".join([chunk async for chunk in session.output()]).decode()
    assert printed.split() == [str(UID), str(UID), "NoNewPrivs:", "1"]
    await session.close()
    await local.engine.stop(attempt(), grace_seconds=60)
    await local.exited(attempt())


@needs_namespaces
async def test_a_command_that_is_not_there_ends_as_a_shell_says_so(local: Harness, shared: Path) -> None:
    end = await local.run("/corral-no-such-command", storages=(folder_mount(shared),))
    assert end.code == 127
    assert "corral-no-such-command cannot be started" in local.log()


@needs_namespaces
async def test_data_at_a_uri_are_there_before_the_command_and_kept_after_it(local: Harness, shared: Path) -> None:
    remote = shared / "remote"
    remote.mkdir()
    remote.chmod(0o777)
    (remote / "model").write_text("old")
    os.utime(remote / "model", (1_000_000_000, 1_000_000_000))
    place = f"{local.folder}/bucket"
    mount = Mount("bucket", "uri", place, source=f"file://{remote}", folder="ada")
    script = f"ls {place}; echo new >{place}/result; exit 3"
    end = await local.run("sh", "-c", script, user="root", storages=(mount,), runtime=RuntimePlan())
    assert end.code == 3, local.log()
    assert (remote / "ada/result").read_text() == "new\n"
    again = Mount("bucket", "uri", place, source=f"file://{remote}")
    words = ("cat", f"{place}/model", f"{place}/ada/result")
    end = await local.run(*words, task=1, user="root", storages=(again,), runtime=RuntimePlan())
    assert end.code == 0
    assert "oldnew\n" in local.log(attempt(1))
    assert (remote / "model").stat().st_mtime == 1_000_000_000, "what nobody changed is not copied back"


def test_a_user_without_rights_mounts_in_a_namespace_of_its_own() -> None:
    if os.getuid() == 0:
        words = [shutil.which("setpriv") or "", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--"]
        words += [shutil.which("unshare") or "", "--user", "--map-current-user", "--keep-caps"]
        words += ["--mount", "--propagation", "slave"]
    else:
        words = list(LocalStorages().namespace())
    if not words or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine makes no user namespaces for users without rights")
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        data = folder / "data"
        data.mkdir()
        data.chmod(0o777)
        program = build_runtime(folder / "runtime.pyz")
        spec = folder / "spec"
        told = json.loads(spec_of([BoundStorage("data", str(data), PLACE, False)], "/", -1))
        spec.write_text(json.dumps(told | {"drop": True}))
        script = f"echo made >{PLACE}/made; id -u; grep CapEff /proc/self/status; ls -d /usr/bin"
        python = "/usr/bin/python3" if os.getuid() == 0 else sys.executable
        ran = subprocess.run(
            [*words, python, "-I", "-S", str(program), "mount", str(spec), "sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert (data / "made").read_text() == "made\n"
        uid, _, capabilities, rest = ran.stdout.split()
        assert int(uid) == (UID if os.getuid() == 0 else os.getuid())
        assert int(capabilities, 16) == 0
        assert rest == "/usr/bin"
    finally:
        shutil.rmtree(folder)


def test_without_namespaces_a_storage_is_a_link_and_nothing_else_gives_way(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    bound = BoundStorage("data", str(tmp_path / "data"), str(tmp_path / "mnt/data"), False)
    link_all([bound], -1)
    link_all([bound], -1)
    assert os.readlink(bound.path) == bound.source
    (tmp_path / "other").mkdir()
    with pytest.raises(NotFound, match="no link can be made there"):
        link_all([bound._replace(path=str(tmp_path / "other"))], -1)
    with pytest.raises(NotFound, match="leave out mountPath"):
        link_all([bound._replace(path=str(tmp_path / "elsewhere"))], UID)
    assert not os.path.lexists(tmp_path / "elsewhere")


def test_a_container_gets_storages_as_volumes() -> None:
    bound = [BoundStorage("a", "/srv/a", "/mnt/a", False), BoundStorage("b", "/srv/b", "/data", True)]
    container = Container("docker", "c", -1, "/w", "/w", "/e", tuple(volumes(bound)))
    words = run_command(container, launch("true", image="debian"))
    assert {"--volume=/srv/a:/mnt/a", "--volume=/srv/b:/data:ro"} <= set(words)


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        (
            {"type": "nfs", "server": "filer", "path": "/export", "mountOptions": ["vers=4.1"]},
            ["mount", "-t", "nfs", "-o", "vers=4.1,nosuid,nodev", "--", "filer:/export", "/at"],
        ),
        (
            {"type": "samba", "address": "//srv/share", "credentialsFile": "/etc/smb"},
            ["mount", "-t", "cifs", "-o", "credentials=/etc/smb,nosuid,nodev", "--", "//srv/share", "/at"],
        ),
        (
            {"type": "azureFile", "shareName": "s", "accountName": "acc", "credentialsFile": "/etc/az"},
            [
                "mount",
                "-t",
                "cifs",
                "-o",
                "credentials=/etc/az,nosuid,nodev",
                "--",
                "//acc.file.core.windows.net/s",
                "/at",
            ],
        ),
    ],
)
def test_machines_mount_what_the_kernel_knows(storage: dict[str, object], words: list[str]) -> None:
    document = StorageDocument.model_validate({"name": "x", **storage})
    assert mount_command(mount_of(document, StorageUse(name="x"), "ada"), "/at") == words
