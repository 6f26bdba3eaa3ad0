"""The Debian root that all hosts of our own share, and packages that it lacks; made once and kept in the test cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.testbeds import debian

LACKS: Final = ("conntrack", "ethtool", "socat")
"""Packages that Kubernetes needs and a host does not have; their files are in the folder of `packages`."""
_HAS: Final = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "python3-minimal", "iproute2", "iptables", "kmod",
    "procps", "ca-certificates",
)  # fmt: skip
_MASKED: Final = (
    "systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-kernel.socket",
    "systemd-udevd-control.socket", "systemd-sysctl.service", "systemd-modules-load.service", "modprobe@.service",
    "sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-hugepages.mount",
    "apt-daily.timer", "apt-daily-upgrade.timer",
)  # fmt: skip
"""Units that would change this machine, or wait for what a namespace has not."""
_FORM: Final = 1
"""Counts the changes of what is prepared below, so that each makes a new root."""
INIT: Final = "/usr/local/sbin/host-init"
_INIT_TEXT: Final = """\
#!/bin/sh
# systemd uses no control group of version 1 that it finds read-only.
for folder in /sys/fs/cgroup /sys/fs/cgroup/*; do
  mount -o remount,bind,rw "$folder"
done
exec /lib/systemd/systemd
"""


def missing() -> str:
    """What hosts of our own lack on this machine, "" when nothing."""
    for program, package in (("systemd-nspawn", "systemd-container"), ("ip", "iproute2"), ("ssh", "openssh-client")):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            return f"the Debian package {package} is not installed"
    return debian.missing()


def root() -> Path:
    """The root's folder, complete or missing; hosts see it below an overlay and never write to it."""
    return _made() / "root"


def packages() -> Path:
    """The folder of .deb files of what the root lacks."""
    return _made() / "packages"


def _made() -> Path:
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "hosts"
    pins = hashlib.sha256(repr((_HAS, LACKS, _MASKED, _INIT_TEXT, _FORM)).encode()).hexdigest()[:16]
    folder = cache / f"{release}-{pins}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{release}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _make(release, folder)
    return folder


def _make(release: str, folder: Path) -> None:
    print("making a Debian root for hosts (about two minutes)", file=sys.stderr, flush=True)
    begun = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix=f".{release}-", dir=folder.parent))
    try:
        scratch.chmod(0o755)
        tree, files = scratch / "root", scratch / "packages"
        included = ",".join((*_HAS, *LACKS))
        debian.run(
            "nice", "debootstrap", "--variant=minbase", f"--include={included}", release, str(tree),
            debian.mirror_of(release),
        )  # fmt: skip
        files.mkdir()
        for name in LACKS:
            (file,) = (tree / "var/cache/apt/archives").glob(f"{name}_*.deb")
            shutil.copy(file, files)
        debian.run("chroot", str(tree), "dpkg", "--purge", *LACKS)
        _prepare(tree)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"made it in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def _prepare(tree: Path) -> None:
    """Let it start as a host: an account with sudo, no units that would change this machine, no keys that are shared."""
    for path in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(tree / path)
        (tree / path).mkdir()
    for unit in _MASKED:
        (tree / "etc/systemd/system" / unit).symlink_to("/dev/null")
    for key in (tree / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (tree / "etc/systemd/journald.conf").write_text("[Journal]\nReadKMsg=no\nStorage=volatile\n")
    (tree / "etc/apt/sources.list").write_text("")  # a host reaches no mirror
    (tree / "etc/ssh/sshd_config.d/hosts.conf").write_text("UseDNS no\nPasswordAuthentication no\n")
    (tree / "etc/sudoers.d/admin").write_text("admin ALL=(ALL) NOPASSWD: ALL\n")
    (tree / "etc/machine-id").write_text("")
    debian.run("chroot", str(tree), "useradd", "--create-home", "--shell", "/bin/sh", "admin")
    init = tree / INIT.lstrip("/")
    init.write_text(_INIT_TEXT)
    init.chmod(0o755)
