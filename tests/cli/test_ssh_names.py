"""Hosts of ssh that stand for tasks, and the options by which ssh reaches them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.cli.ssh_files import SshFiles, SshName
from corral.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("host", "job", "task"),
    [
        ("digits.corral", "digits", ""),
        ("worker-0.digits.corral", "digits", "worker-0"),
        ("alice~digits.corral", "alice~digits", ""),
        ("v1.2.corral", "v1.2", ""),
        ("worker-0.v1.2.corral", "v1.2", "worker-0"),
        ("worker-0.corral", "worker-0", ""),
    ],
)
def test_a_host_names_a_job_and_perhaps_its_task(host: str, job: str, task: str) -> None:
    assert SshName.of_host(host) == SshName(job, task)
    assert SshName(job, task).host == host


@pytest.mark.parametrize(
    "host",
    [
        "digits",
        ".corral",
        "-oProxyCommand=x.corral",
        "a'b.corral",
        "a/../b.corral",
        "a b.corral",
        "$(x).corral",
        "x" * 300,
    ],
)
def test_what_is_no_host_of_a_job_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput):
        SshName.of_host(host)


def test_paths_with_marks_and_tokens_are_quoted_for_ssh() -> None:
    files = SshFiles(Path('/home/a "b" 100%/ssh'))
    options = dict(option.split(" ", 1) for option in files.options(SshName("digits", "worker-0")))
    assert options["IdentityFile"] == '"/home/a \\"b\\" 100%%/ssh/identity/key"'
    assert options["CertificateFile"] == '"/home/a \\"b\\" 100%%/ssh/hosts/worker-0.digits.corral-cert.pub"'
    assert options["StrictHostKeyChecking"] == "yes" and options["ProxyCommand"].endswith(
        "ssh stdio worker-0.digits.corral"
    )
    assert dict(option.split(" ", 1) for option in files.options())["ProxyCommand"].endswith("ssh stdio '%n'")
