"""A storage on a real NFS server (Debian's nfs-ganesha, in user space) is mounted once and bound for each task.

If this machine's kernel cannot mount NFS, the test expects a task that is refused with the kernel's error, while the
server answers a client in user space (libnfs).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from corral.engines.local import storages
from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.storages import Mount
from tests.engines.local_harness import Harness, attempt, launch
from tests.reserved import free_port

UID = 54_321
PLACE = "/mnt/corral-test-nfs"
PROGRAMS = ("ganesha.nfsd", "mount.nfs", "nfs-cat")
CONFIGURATION = """
NFS_CORE_PARAM {{ NFS_Port = {port}; Protocols = 4; Bind_addr = 127.0.0.1;
                  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }}
NFSv4 {{ Graceless = true; RecoveryBackend = "fs"; RecoveryRoot = "{folder}/recovery"; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{ Export_Id = 1; Path = "{folder}/data"; Pseudo = "/data"; Access_Type = RW;
          Squash = No_Root_Squash; SecType = sys; FSAL {{ Name = VFS; }} }}
"""
missing = [
    name for name in PROGRAMS if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None
]
pytestmark = [
    pytest.mark.skipif(
        bool(missing), reason=f"{', '.join(missing)} missing: apt-get install nfs-ganesha-vfs nfs-common"
    ),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can mount; run as root"),
]


class Filer(NamedTuple):
    """A running server: its folder, and its port on this machine."""

    folder: Path
    port: int

    def mount(self, **fields: object) -> Mount:
        options = ("vers=4.2", f"port={self.port}", "proto=tcp", "retry=0")
        return Mount("far", "nfs", PLACE, source="/data", server="127.0.0.1", options=options, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def filer() -> Iterator[Filer]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "data").mkdir()
    (folder / "data").chmod(0o777)
    (folder / "data/given").write_text("from afar\n")
    (folder / "recovery").mkdir()
    port = free_port()
    (folder / "conf").write_text(CONFIGURATION.format(port=port, folder=folder))
    words = ["ganesha.nfsd", "-F", "-f", f"{folder}/conf", "-L", f"{folder}/log", "-p", f"{folder}/pid"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_it_listens(server, port, folder)
        yield Filer(folder, port)
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder)


def until_it_listens(server: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError((folder / "log").read_text())


@pytest.fixture
async def local(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    monkeypatch.setattr(storages, "MOUNTS", folder / "mounts")
    async with Harness(folder, uid_of=lambda user: UID) as harness:
        yield harness
    for mounted in (folder / "mounts").glob("*"):
        if storages.is_mounted(str(mounted)):
            subprocess.run(["umount", str(mounted)], check=True)
    shutil.rmtree(folder)


def mountable(filer: Filer) -> bool:
    """Whether this kernel mounts NFS; the first mount loads the kernel module."""
    place = filer.folder / "probe"
    place.mkdir(exist_ok=True)
    options = f"vers=4.2,port={filer.port},proto=tcp,retry=0"
    words = ["mount", "-t", "nfs", "-o", options, "127.0.0.1:/data", str(place)]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        return False
    subprocess.run(["umount", str(place)], check=True)
    return True


async def test_the_server_is_a_real_one(filer: Filer) -> None:
    address = f"nfs://127.0.0.1/data/given?version=4&nfsport={filer.port}"
    read = subprocess.run(["nfs-cat", address], capture_output=True, text=True, check=True, timeout=250)
    assert read.stdout == "from afar\n"


async def test_tasks_have_an_nfs_storage_where_the_kernel_mounts_it_and_are_told_why_where_not(
    local: Harness, filer: Filer
) -> None:
    if not mountable(filer):
        with pytest.raises(
            InvalidInput, match=r"cannot be mounted by this machine's kernel: mount\.nfs: No such device"
        ):
            await local.engine.start(launch("true", storages=(filer.mount(),)))
        assert local.engine.attempts() == frozenset()
        return
    for task in (0, 1):
        script = f"cat {PLACE}/given; echo {task} >{PLACE}/made-{task}; id -u"
        end = await local.run("sh", "-c", script, task=task, storages=(filer.mount(),))
        assert (end.code, local.log(attempt(task))) == (0, f"from afar\n{UID}\n")
        assert (filer.folder / f"data/made-{task}").read_text() == f"{task}\n"
    end = await local.run("sh", "-c", f"touch {PLACE}/mine", task=2, storages=(filer.mount(folder="ada"),))
    assert end.code == 0
    assert (filer.folder / "data/ada/mine").stat().st_uid == UID
    assert len(list((local.folder / "mounts").iterdir())) == 1, "mounted once for all of them"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = filer._replace(port=closed.getsockname()[1])
        with pytest.raises(Unavailable, match="The storage far cannot be mounted now"):
            await local.engine.start(launch("true", task=3, storages=(away.mount(),)))
