"""The task's end of SFTP: version 3 of the protocol over standard input and output, as the task's user.

The server sends this program over the input of a command in the task (`corral.api.ssh.task_program`), so a task needs
nothing but Python 3.7. Relative paths begin in the task's folder. Source: draft-ietf-secsh-filexfer-02, and OpenSSH's
extensions that scp and sftp use.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BYTES = 256 * 1024
"""Bytes of one packet."""
_MOST_READ = 128 * 1024
_MOST_HANDLES = 1000
_NAMES_AT_ONCE = 100
_HALF_A_YEAR = 180 * 86400
_VERSION, _STATUS, _HANDLE, _DATA, _NAME, _ATTRS, _EXTENDED_REPLY = 2, 101, 102, 103, 104, 105, 201
_OK, _EOF, _NO_SUCH_FILE, _DENIED, _FAILURE, _BAD_MESSAGE, _UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
_SIZE, _OWNER, _MODE, _TIMES, _EXTENDED = 1, 2, 4, 8, 0x80000000
_READ, _WRITE, _APPEND, _CREATE, _TRUNCATE, _EXCLUSIVE = 1, 2, 4, 8, 16, 32
_EXTENSIONS = (
    (b"posix-rename@openssh.com", b"1"),
    (b"hardlink@openssh.com", b"1"),
    (b"fsync@openssh.com", b"1"),
    (b"limits@openssh.com", b"1"),
    (b"expand-path@openssh.com", b"1"),
)


class BadMessage(Exception):
    """A packet that ends too early, or names what is not there."""


class Reader:
    """The fields of one packet."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._at + size
        if end > len(self._data):
            raise BadMessage("the packet ends too early")
        taken, self._at = self._data[self._at : end], end
        return taken

    def u32(self) -> int:
        """Return a number of 32 bits."""
        return int(struct.unpack(">I", self.take(4))[0])

    def u64(self) -> int:
        """Return a number of 64 bits."""
        return int(struct.unpack(">Q", self.take(8))[0])

    def text(self) -> bytes:
        """Return a string, which is bytes."""
        return self.take(self.u32())

    def path(self) -> bytes:
        """Return a path; an empty one is the task's folder."""
        path = self.text()
        if b"\0" in path:
            raise BadMessage("a path has a NUL character")
        return path or b"."

    def attributes(self) -> dict[str, int]:
        """Return the attributes that are given."""
        flags, found = self.u32(), {}
        if flags & _SIZE:
            found["size"] = self.u64()
        if flags & _OWNER:
            found["uid"], found["gid"] = self.u32(), self.u32()
        if flags & _MODE:
            found["mode"] = self.u32()
        if flags & _TIMES:
            found["atime"], found["mtime"] = self.u32(), self.u32()
        if flags & _EXTENDED:
            for _ in range(min(self.u32(), 1000)):
                self.text(), self.text()
        return found


def text(data: bytes) -> bytes:
    """One string of a packet."""
    return struct.pack(">I", len(data)) + data


def attributes(found: os.stat_result) -> bytes:
    """The attributes of a file, as a packet has them."""
    return struct.pack(
        ">IQIIIII", _SIZE | _OWNER | _MODE | _TIMES, found.st_size, found.st_uid & 0xFFFFFFFF,
        found.st_gid & 0xFFFFFFFF, found.st_mode, _time(found.st_atime), _time(found.st_mtime),
    )  # fmt: skip


def _time(seconds: float) -> int:
    return min(max(int(seconds), 0), 0xFFFFFFFF)


def long_name(name: bytes, found: os.stat_result) -> bytes:
    """A line of `ls -l`, which sftp shows to people."""
    is_new = time.time() - found.st_mtime < _HALF_A_YEAR
    when = time.strftime("%b %d %H:%M" if is_new else "%b %d  %Y", time.localtime(_time(found.st_mtime)))
    owner = f"{found.st_nlink:3} {found.st_uid:<8} {found.st_gid:<8}"
    line = f"{stat.filemode(found.st_mode)} {owner} {found.st_size:8} {when} "
    return line.encode() + name


class Files:
    """Answers the packets of one client."""

    def __init__(self) -> None:
        self._open: dict[bytes, int] = {}
        self._folders: dict[bytes, list[bytes]] = {}
        self._folder_paths: dict[bytes, bytes] = {}
        self._made = 0
        self._answers: dict[int, Callable[[Reader], tuple[int, bytes]]] = {
            3: self._open_file, 4: self._close, 5: self._read, 6: self._write, 7: self._lstat, 8: self._fstat,
            9: self._setstat, 10: self._fsetstat, 11: self._opendir, 12: self._readdir, 13: self._remove,
            14: self._mkdir, 15: self._rmdir, 16: self._realpath, 17: self._stat, 18: self._rename,
            19: self._readlink, 20: self._symlink, 200: self._extended,
        }  # fmt: skip

    def answer(self, packet: bytes) -> bytes:
        """The answer to one packet, with its length."""
        reader = Reader(packet)
        kind = reader.take(1)[0]
        if kind == 1:
            known = b"".join(text(name) + text(version) for name, version in _EXTENSIONS)
            return _packet(_VERSION, struct.pack(">I", 3) + known)
        number = reader.take(4)
        try:
            answer = self._answers.get(kind)
            told, content = answer(reader) if answer else _status(_UNSUPPORTED, "This is not known here.")
        except BadMessage as error:
            told, content = _status(_BAD_MESSAGE, str(error))
        except (OSError, ValueError, OverflowError) as error:
            told, content = _failure(error)
        return _packet(told, number + content)

    # -- files

    def _open_file(self, reader: Reader) -> tuple[int, bytes]:
        path, flags, given = reader.path(), reader.u32(), reader.attributes()
        how = os.O_RDWR if flags & _READ and flags & _WRITE else os.O_WRONLY if flags & _WRITE else os.O_RDONLY
        for asked, bit in ((_APPEND, os.O_APPEND), (_CREATE, os.O_CREAT), (_TRUNCATE, os.O_TRUNC)):
            how |= bit if flags & asked else 0
        if flags & _EXCLUSIVE and flags & _CREATE:
            how |= os.O_EXCL
        self._check_room()
        return self._handle(os.open(path, how | os.O_CLOEXEC, given.get("mode", 0o666) & 0o7777))

    def _check_room(self) -> None:
        if len(self._open) + len(self._folders) >= _MOST_HANDLES:
            raise OSError(errno.EMFILE, "Too many files are open")

    def _handle(self, opened: int) -> tuple[int, bytes]:
        self._made += 1
        name = b"%d" % self._made
        self._open[name] = opened
        return _HANDLE, text(name)

    def _opened(self, reader: Reader) -> int:
        try:
            return self._open[reader.text()]
        except KeyError:
            raise BadMessage("no such file is open") from None

    def _close(self, reader: Reader) -> tuple[int, bytes]:
        name = reader.text()
        if name in self._folders:
            del self._folders[name], self._folder_paths[name]
        elif name in self._open:
            os.close(self._open.pop(name))
        else:
            raise BadMessage("no such file is open")
        return _ok()

    def _read(self, reader: Reader) -> tuple[int, bytes]:
        opened, at, size = self._opened(reader), reader.u64(), reader.u32()
        data = os.pread(opened, min(size, _MOST_READ), at)
        return (_DATA, text(data)) if data else _status(_EOF, "This is the end of the file.")

    def _write(self, reader: Reader) -> tuple[int, bytes]:
        opened, at, data = self._opened(reader), reader.u64(), reader.text()
        while data:
            done = os.pwrite(opened, data, at)
            data, at = data[done:], at + done
        return _ok()

    def _fstat(self, reader: Reader) -> tuple[int, bytes]:
        return _ATTRS, attributes(os.fstat(self._opened(reader)))

    def _fsetstat(self, reader: Reader) -> tuple[int, bytes]:
        return _change(self._opened(reader), reader.attributes())

    # -- paths

    def _stat(self, reader: Reader) -> tuple[int, bytes]:
        return _ATTRS, attributes(os.stat(reader.path()))

    def _lstat(self, reader: Reader) -> tuple[int, bytes]:
        return _ATTRS, attributes(os.lstat(reader.path()))

    def _setstat(self, reader: Reader) -> tuple[int, bytes]:
        return _change(reader.path(), reader.attributes())

    def _remove(self, reader: Reader) -> tuple[int, bytes]:
        os.remove(reader.path())
        return _ok()

    def _mkdir(self, reader: Reader) -> tuple[int, bytes]:
        path, given = reader.path(), reader.attributes()
        os.mkdir(path, given.get("mode", 0o777) & 0o7777)
        return _ok()

    def _rmdir(self, reader: Reader) -> tuple[int, bytes]:
        os.rmdir(reader.path())
        return _ok()

    def _realpath(self, reader: Reader) -> tuple[int, bytes]:
        return _one_name(os.path.realpath(reader.path()))

    def _rename(self, reader: Reader) -> tuple[int, bytes]:
        old, new = reader.path(), reader.path()
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, "File exists")
        os.rename(old, new)
        return _ok()

    def _readlink(self, reader: Reader) -> tuple[int, bytes]:
        return _one_name(os.readlink(reader.path()))

    def _symlink(self, reader: Reader) -> tuple[int, bytes]:
        target, link = reader.path(), reader.path()  # OpenSSH's order, which is not the draft's
        os.symlink(target, link)
        return _ok()

    # -- folders

    def _opendir(self, reader: Reader) -> tuple[int, bytes]:
        path = reader.path()
        self._check_room()
        names = [b".", b"..", *os.listdir(path)]
        self._made += 1
        name = b"%d" % self._made
        self._folders[name], self._folder_paths[name] = names[::-1], path
        return _HANDLE, text(name)

    def _readdir(self, reader: Reader) -> tuple[int, bytes]:
        name = reader.text()
        if name not in self._folders:
            raise BadMessage("no such folder is open")
        left, folder = self._folders[name], self._folder_paths[name]
        found: list[bytes] = []
        while left and len(found) < _NAMES_AT_ONCE:
            entry = left.pop()
            try:
                seen = os.lstat(os.path.join(folder, entry))
            except OSError:  # it is gone since
                continue
            found.append(text(entry) + text(long_name(entry, seen)) + attributes(seen))
        if not found:
            return _status(_EOF, "This is the end of the folder.")
        return _NAME, struct.pack(">I", len(found)) + b"".join(found)

    # -- extensions

    def _extended(self, reader: Reader) -> tuple[int, bytes]:
        name = reader.text()
        if name == b"posix-rename@openssh.com":
            old, new = reader.path(), reader.path()
            os.replace(old, new)
        elif name == b"hardlink@openssh.com":
            old, new = reader.path(), reader.path()
            os.link(old, new)
        elif name == b"fsync@openssh.com":
            os.fsync(self._opened(reader))
        elif name == b"limits@openssh.com":
            limits = struct.pack(">QQQQ", _MOST_BYTES, _MOST_READ, _MOST_READ, _MOST_HANDLES)
            return _EXTENDED_REPLY, limits
        elif name == b"expand-path@openssh.com":
            return _one_name(os.path.realpath(os.path.expanduser(reader.path())))
        else:
            return _status(_UNSUPPORTED, "This extension is not known here.")
        return _ok()


def _packet(kind: int, content: bytes) -> bytes:
    return struct.pack(">IB", len(content) + 1, kind) + content


def _status(code: int, message: str) -> tuple[int, bytes]:
    return _STATUS, struct.pack(">I", code) + text(message.encode("utf-8", "replace")) + text(b"en")


def _ok() -> tuple[int, bytes]:
    return _status(_OK, "Done.")


def _one_name(path: bytes) -> tuple[int, bytes]:
    return _NAME, struct.pack(">I", 1) + text(path) + text(path) + struct.pack(">I", 0)


def _failure(error: Exception) -> tuple[int, bytes]:
    number = getattr(error, "errno", None)
    message = f"{getattr(error, 'strerror', None) or error}."
    if number in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return _status(_NO_SUCH_FILE, message)
    return _status(_DENIED if number in (errno.EACCES, errno.EPERM) else _FAILURE, message)


def _change(path: Any, given: dict[str, int]) -> tuple[int, bytes]:
    """Set the attributes of a path or of an open file."""
    if "size" in given:
        os.truncate(path, given["size"])
    if "mode" in given:
        os.chmod(path, given["mode"] & 0o7777)
    if "mtime" in given:
        os.utime(path, (given["atime"], given["mtime"]))
    if "uid" in given:
        os.chown(path, given["uid"], given["gid"])
    return _ok()


def main(order: dict[str, Any]) -> None:
    """Serve one client until it ends."""
    files = Files()
    reads = open(0, "rb", _MOST_BYTES, closefd=False)  # noqa: SIM115 - it is open as long as the program
    writes = open(1, "wb", 0, closefd=False)  # noqa: SIM115
    while True:
        head = reads.read(4)
        if len(head) < 4:
            return
        size = struct.unpack(">I", head)[0]
        if not 1 <= size <= _MOST_BYTES:
            sys.exit(f"corral: a packet of SFTP has a length of {size} bytes.")
        packet = reads.read(size)
        if len(packet) < size:
            return
        try:
            answer = files.answer(packet)
        except BadMessage:
            return
        while answer:
            answer = answer[writes.write(answer) :]
