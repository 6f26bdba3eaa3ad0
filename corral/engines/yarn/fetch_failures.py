"""Find why the containers of a service do not begin: files that no NodeManager can fetch, and YARN's last words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import quote

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.kernel.errors import CorralError, Forbidden, NotFound, Unavailable

_MOST_WORDS: Final = 120
"""Characters of YARN's own words that are passed on."""
_TIME: Final = re.compile(r"\[\d{4}-\d\d-\d\d [\d:.,]+\]")
_INSTANCE: Final = re.compile(r"^[\w-]+-\d+ ?: ")
_CLASS: Final = re.compile(r"^(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error): ")
_OWN: Final = re.compile(r"^corral: (.+)$", re.MULTILINE)
_NOT_ALLOWED: Final = "AccessControlException"
_INODE: Final = re.compile(r'inode="([^"]{1,300})"')


class Unfetched(NamedTuple):
    """A file of a service that its NodeManagers cannot fetch from HDFS."""

    path: str
    is_missing: bool
    closed: str = ""
    """The file or folder that the service's user may not read; "" when the file is missing or HDFS does not name it."""

    def sentence(self, user: str) -> str:
        """What is wrong with it, and what to do about it; `user` is the service's."""
        name = shortened(self.path)
        if self.is_missing:
            return f"No NodeManager can fetch {name}: it is not in HDFS any more."
        closed = shortened(self.closed or self.path)
        return f"No NodeManager can fetch {name}: HDFS does not let {user} read {closed}; allow it (hdfs dfs -chmod)."


async def unfetched(files: HadoopRest, paths: Iterable[str], user: str) -> Unfetched | None:
    """The first of the files in HDFS that is missing, or that `user` may not read.

    Raises Unavailable when the NameNode does not answer. Nothing is said where it cannot check rights (HttpFS), or has
    another trouble.
    """
    for path in paths:
        place = f"/webhdfs/v1{quote(path)}"
        try:
            await files.ask("GET", place, user=user, op="CHECKACCESS", fsaction="r--")
        except NotFound:
            return Unfetched(path, True)
        except Forbidden as error:
            if error.code != "hadoop-permission" and _NOT_ALLOWED not in error.message:
                return None  # WebHDFS answers with 403 to every other trouble of the NameNode's, too
            found = _INODE.search(error.message)
            return Unfetched(path, False, found[1] if found else "")
        except Unavailable:
            raise
        except CorralError:
            return None
    return None


def words_of_end(diagnostics: str) -> str:
    """What YARN says of a service that it ended, in a few words; "" for nothing."""
    if own := _OWN.search(diagnostics):
        return own[1].strip()[:_MOST_WORDS]
    for line in diagnostics.splitlines():
        said = _CLASS.sub("", _INSTANCE.sub("", _TIME.sub("", line).strip()).strip()).strip()
        if said:
            return said.rstrip(". ")[:_MOST_WORDS]
    return ""


def shortened(path: str) -> str:
    """A path that fits into a message: the end of a long one."""
    return path if len(path) <= 80 else f"…{path[-79:]}"
