"""Stage one large file and many small ones to HDFS and back, beside `hdfs dfs -put` and `-get` in the same run.

Both are whole commands, with the start of Python or Java in their time. NameNode, DataNode and the clients share this
machine's processors and disk, and the file has one replica. The large file has 5 GB where the disk has room for four
copies of it, else 1 GB; `large` says which.

By default Hadoop's client sleeps 400 ms after a file whose block the DataNode has not reported yet, which is nearly each
small one here: 10,000 of them took three quarters of an hour. Here it sleeps 10 ms at first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.hadoop.hdfs import Hdfs

_LARGE, _LESS, _ROOM = 5_000_000_000, 1_000_000_000, 4
_PIECE: Final = 10_000_000
_SMALL, _FOLDERS, _SMALL_BYTES = 10_000, 100, 2_000
_SHORTEST_MS: Final = 10
_DELAY: Final = "dfs.client.block.write.locateFollowingBlock.initial.delay.ms"
_SHELL: Final = "org.apache.hadoop.fs.FsShell"


def measure() -> dict[str, float]:
    """Rates of the large file in MB/s and seconds of the small ones, by Corral and by Hadoop's own client."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-hdfs-") as folder, Hdfs() as hdfs:
        place = Path(folder)
        write_configuration(place / "conf" / "core-site.xml", {"fs.defaultFS": hdfs.native})
        write_configuration(place / "conf" / "hdfs-site.xml", {"dfs.replication": 1, _DELAY: _SHORTEST_MS})
        return {**_large(hdfs, place), **_small(hdfs, place)}


def _large(hdfs: Hdfs, place: Path) -> dict[str, float]:
    size = _LARGE if shutil.disk_usage(place).free > _ROOM * _LARGE else _LESS
    source, back = place / "large", place / "back"
    _fill(source, size)
    seconds = {}
    for name, there in (
        ("hadoop", "/by-hadoop"),
        ("native", f"{hdfs.native}/by-corral"),
    ):
        put, get = (_hadoop(place, "-put"), _hadoop(place, "-get")) if name == "hadoop" else (_stage(), _stage())
        seconds[name, "put"] = _time([*put, str(source), there])
        seconds[name, "get"] = _time([*get, there, str(back)])
        if name != "hadoop":
            _compare(source, back)
        back.unlink()
        hdfs.ask("DELETE", "/" + there.rpartition("/")[2], "DELETE")
    source.unlink()
    rates = {key: size / 1e6 / value for key, value in seconds.items()}
    return {
        "put share": rates["native", "put"] / rates["hadoop", "put"],
        "get share": rates["native", "get"] / rates["hadoop", "get"],
        "put": rates["native", "put"],
        "get": rates["native", "get"],
        "put by hdfs dfs": rates["hadoop", "put"],
        "get by hdfs dfs": rates["hadoop", "get"],
        "large": size / 1e9,
    }


def _small(hdfs: Hdfs, place: Path) -> dict[str, float]:
    source, back = place / "small", place / "small-back"
    for number in range(_SMALL):
        file = source / f"{number % _FOLDERS}" / f"{number}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(_SMALL_BYTES))
    seconds = {}
    for name, there in (("hadoop", "/small"), ("native", f"{hdfs.native}/small-by-corral")):
        put, get = (_hadoop(place, "-put"), _hadoop(place, "-get")) if name == "hadoop" else (_stage(), _stage())
        seconds[name, "put"] = _time([*put, str(source), there])
        seconds[name, "get"] = _time([*get, there, str(back)])
        found = {str(file.relative_to(back)): file.read_bytes() for file in back.rglob("*.bin")}
        if found != {str(file.relative_to(source)): file.read_bytes() for file in source.rglob("*.bin")}:
            raise RuntimeError(f"{name} did not bring the small files back as they were")
        shutil.rmtree(back)
    return {
        "small put": seconds["native", "put"] / seconds["hadoop", "put"],
        "small get": seconds["native", "get"] / seconds["hadoop", "get"],
        "small put seconds": seconds["native", "put"],
        "small get seconds": seconds["native", "get"],
        "small put by hdfs dfs": seconds["hadoop", "put"],
        "small get by hdfs dfs": seconds["hadoop", "get"],
    }


def _fill(file: Path, size: int) -> None:
    """Write random bytes, repeated: no client compresses."""
    piece = os.urandom(_PIECE)
    with file.open("wb") as writer:
        for _ in range(size // _PIECE):
            writer.write(piece)


def _compare(one: Path, other: Path) -> None:
    if subprocess.run(["cmp", "--silent", str(one), str(other)], check=False).returncode != 0:
        raise RuntimeError(f"{other} is not what {one} is")


def _hadoop(place: Path, what: str) -> Sequence[str]:
    return [*jars.command(_SHELL, place / "conf"), what]


def _stage() -> Sequence[str]:
    return [sys.executable, "-m", "corral.storage", "stage"]


def _time(command: Sequence[str]) -> float:
    """The seconds of a command, with what it wrote on the disk. Raises CalledProcessError when it fails."""
    os.sync()
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - begun
    print(f"{seconds:.1f} s: {' '.join(command[-3:])}", file=sys.stderr)
    return seconds
