"""What a probe prints is parsed to typed facts, or refused at the first line that is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corral.deploy.remote
from corral.deploy.checks.facts import MOST_BYTES, Address, GarbledFacts, Interface, Mount, Service, parse_facts
from tests.deploy.facts import GOOD, facts, text

PROBE = Path(corral.deploy.remote.__file__).with_name("probe.sh")


def refusal(printed: str | bytes) -> str:
    with pytest.raises(GarbledFacts) as refused:
        parse_facts(printed if isinstance(printed, bytes) else printed.encode())
    return str(refused.value)


def test_every_fact_has_its_type() -> None:
    found = facts()
    assert (found.user, found.sudo, found.hostname, found.cpus) == ("admin", "free", "gpu1", 96)
    assert (found.os, found.os_version, found.memory) == ("debian", "12", 1_055_000_000 * 1024)
    assert (found.cgroup, "memory" in found.controllers) == (2, True)
    assert found.mounts[1] == Mount("/data", 1_048_576_000 * 1024, 943_718_400 * 1024)
    assert found.disks[0].size == 1_953_525_168 * 512
    assert Address("eth0", "10.0.0.2") in found.addresses
    assert Interface("eth0", 9000, "up") in found.interfaces
    assert found.listens == {22}
    assert (found.cards, found.usable, found.drivers) == ({"nvidia": 2}, {"nvidia": 2}, {"nvidia": "550.54.15"})
    assert found.services == {"containerd": Service("active", "enabled")}
    assert found.files == {"/etc/fstab": b"# nothing\n"}
    assert found.time == 1795866691.498284275


def test_what_a_host_prints_around_is_left_out() -> None:
    assert facts() == parse_facts(b"hello\r\n" + GOOD.replace("\n", "\r\n").encode() + b"bye\n\xff\x00")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("corral-facts begin 1", "corral-facts begin 2", "the probe's first line is not in it"),
        ("corral-facts end 1\n", "", "it is cut off"),
        ("cpus=96", "cpus=many", "'many' is no value of cpus"),
        ("cpus=96", "cpus=٣", "'٣' is no value of cpus"),
        ("cpus=96", "cpus=" + "9" * 30, "is no value of cpus"),
        ("cpus=96", "cpus=96\ncpus=97", "several values of cpus"),
        ("cpus=96\n", "", "it does not tell cpus"),
        ("time=1795866691.498284275", "time=nan", "'nan' is no value of time"),
        ("time=1795866691.498284275", "time=-1", "is no value of time"),
        ("sudo=free", "sudo=maybe", "sudo is 'maybe' instead of root, free, refused, missing"),
        ("user=admin", "user=$(reboot)", "is no value of user"),
        ("reached=10.0.0.2", "reached=here", "'here' is no value of reached"),
        ("mount=104857600 94371840 /", "mount=1 /", "is no value of mount"),
        ("listens=0016", "listens=10000", "is no value of listens"),
        ("card=nvidia", "card=acme", "'acme' is no value of card"),
        ("file=/etc/fstab IyBub3RoaW5nCg==", "file=/etc/fstab $$$", "is no value of file"),
        ("route=eth0", "rout=eth0", "the line 'rout=eth0' is no fact"),
        ("route=eth0", "eth0", "the line 'eth0' is no fact"),
        ("route=eth0", "route=e\x1b[31mth0", "the value of route is too long, or no text"),
        ("route=eth0", "route=" + "e" * 401, "the value of route is too long, or no text"),
        ("cgroup=v2", "cgroup=v3", "is no value of cgroup"),
    ],
)
def test_a_line_that_is_no_fact_is_named(old: str, new: str, says: str) -> None:
    assert says in refusal(text((old, new)))


def test_an_answer_that_is_too_long_is_not_parsed() -> None:
    assert "longer than" in refusal(b"y\n" * MOST_BYTES)
    assert "more than 5000 lines" in refusal("\n" * 6000 + GOOD)


@given(st.binary(max_size=500))
def test_any_bytes_are_refused(printed: bytes) -> None:
    assert refusal(printed)


@given(st.lists(st.sampled_from(GOOD.splitlines()) | st.text(max_size=30), max_size=60))
def test_any_lines_are_facts_or_are_refused(lines: list[str]) -> None:
    body = "\n".join(["corral-facts begin 1", *lines, "corral-facts end 1"])
    try:
        assert parse_facts(body.encode(errors="replace")).cpus == 96
    except GarbledFacts as refused:
        assert str(refused)


@pytest.mark.parametrize("shell", [["sh"], ["bash"], ["busybox", "sh"]], ids=lambda words: " ".join(words))
def test_the_probe_tells_the_facts_of_this_machine_in_every_shell(shell: list[str]) -> None:
    if not shutil.which(shell[0]):
        pytest.skip(f"{shell[0]} is not here")
    done = subprocess.run([*shell, "-s"], input=PROBE.read_bytes(), capture_output=True, check=True, timeout=240)
    found = parse_facts(done.stdout)
    import os

    assert found.cpus == os.cpu_count()
    assert found.kernel == os.uname().release
    assert "/" in {each.path for each in found.mounts}
    assert {"lo"} <= {each.name for each in found.interfaces}


def test_an_interface_that_goes_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    for name, said in {"eth0": {"mtu": "1500", "operstate": "up"}, "veth1": {"mtu": "1500"}, "veth2": {}}.items():
        (tmp_path / name).mkdir()
        for file, line in said.items():
            (tmp_path / name / file).write_text(f"{line}\n")
    functions = PROBE.read_text().removesuffix("main </dev/null\n")
    script = f'{functions}\nfor each in "$1"/*; do tell_interface "$each"; done'
    done = subprocess.run(["sh", "-c", script, "sh", tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout == "interface=1500 up eth0\n"


SYSTEMCTL = """\
#!/bin/sh
echo "$@" >>"$ASKED"
printf 'Id=containerd.service\\nActiveState=active\\nUnitFileState=enabled\\nNeedDaemonReload=yes\\n'
printf 'DropInPaths=/run/systemd/system/service.d/zz.conf /etc/systemd/system/containerd.service.d/a=b.conf\\n\\n'
printf 'Id=kubelet.service\\nActiveState=inactive\\nUnitFileState=\\n\\n'
printf 'Id=ufw.service\\nActiveState=failed\\nUnitFileState=disabled\\nDropInPaths=/etc/ufw.service.d/a.conf\\n'
"""


@pytest.mark.parametrize("awk", ["awk", "busybox awk"])
def test_systemd_is_asked_once_for_all_units_and_one_that_is_not_there_is_none(tmp_path: Path, awk: str) -> None:
    if not shutil.which(awk.split()[0]):
        pytest.skip(f"{awk} is not here")
    (tmp_path / "systemctl").write_text(SYSTEMCTL)
    (tmp_path / "systemctl").chmod(0o755)
    functions = PROBE.read_text().removesuffix("main </dev/null\n")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ASKED": str(tmp_path / "asked")}
    script = f'{functions}\nawk() {{ command {awk} "$@"; }}\nunits'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines() == [
        "service=containerd active enabled",
        "dropin=containerd /etc/systemd/system/containerd.service.d/a=b.conf",
        "unread=containerd",
        "service=ufw failed disabled",
    ]
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


FIRST = {"etc/sysctl.d/90-corral.conf": "net.ipv4.ip_forward = 1\n"}


@pytest.mark.parametrize(
    ("written", "later"),
    [
        ({}, []),
        (FIRST, ["net/ipv4/ip_forward 1"]),
        ({**FIRST, "usr/lib/sysctl.d/99-x.conf": "net/ipv4/ip_forward=0"}, ["net/ipv4/ip_forward 0"]),
        ({**FIRST, "usr/lib/sysctl.d/10-x.conf": "net.ipv4.ip_forward=0\n"}, ["net/ipv4/ip_forward 1"]),
        ({"run/sysctl.d/99-x.conf": "# net.ipv4.ip_forward = 1\n-net.ipv4.ip_forward =  2 \n",
          "usr/lib/sysctl.d/99-x.conf": "net.ipv4.ip_forward = 0\n"}, ["net/ipv4/ip_forward 2"]),
    ],
)  # fmt: skip
def test_the_last_file_that_sets_a_value_at_the_next_start_wins(
    tmp_path: Path, written: dict[str, str], later: list[str]
) -> None:
    for name, content in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    folders = "/etc /run /usr/local/lib /usr/lib /lib"
    text = PROBE.read_text().removesuffix("main </dev/null\n")
    assert text.count(folders) == 1
    functions = text.replace(folders, " ".join(f"{tmp_path}{each}" for each in folders.split()))
    done = subprocess.run(["sh", "-c", f"{functions}\nlater_settings"], capture_output=True, text=True, check=True)
    assert [line.removeprefix("later=") for line in done.stdout.splitlines()] == later
