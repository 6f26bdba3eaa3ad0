"""The functions that run on control planes: keys are in no argument, and etcd loses the member that is meant."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from corral.cli.deploy import deploy_command
from corral.deploy.remote import work

_FOLDER = Path(work.__file__).parent
KEY = "c" * 64
MEMBERS = (
    '{"header":{"member_id":"7"},"members":[{"ID":"7","name":"head2","peerURLs":["https://10.0.0.2:2380"]},'
    '{"ID":"149","name":"head","peerURLs":["https://10.0.0.1:2380"]}]}'
)
KUBEADM = f"""#!/bin/sh
echo "$*" >>$SEEN
case $* in
  "certs certificate-key") echo {KEY} ;;
  "version -o short") echo v1.34.4 ;;
  *--config*) for last; do :; done; cp "$last" $SEEN.document; stat -c %a "$last" >$SEEN.mode; exit ${{FAILS:-0}} ;;
  token*) echo "kubeadm join it" ;;
esac
"""
SOCAT = f"""#!/bin/sh
head -n 1 >>$SEEN
printf 'HTTP/1.0 %s\\r\\n\\r\\n%s' "$STATUS" '{MEMBERS}'
"""
HERE = (
    ("/var/lib/corral", "state"), ("/run/", "run/"), ("/etc/kubernetes", "kubernetes"), ("/var/lib/kubelet", "kubelet"),
)  # fmt: skip
MANIFEST = "    - --advertise-address=10.0.0.1\n"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder in place of a control plane's root, with programs that write down what they are asked."""
    for name, text in (("kubeadm", KUBEADM), ("socat", SOCAT), ("kubectl", '#!/bin/sh\necho "$*" >>$SEEN\n')):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    for folder in ("state/deploy", "run", "kubernetes/manifests", "modules"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "kubernetes/manifests/kube-apiserver.yaml").write_text(MANIFEST)
    return tmp_path


def call(host: Path, words: str, text: bytes = b"", **env: str) -> tuple[int, str]:
    """Call a function there; returns its exit code and what it printed."""
    functions = "".join((_FOLDER / name).read_text() for name in ("do.sh", "nodes.sh"))
    for there, here in HERE:
        functions = functions.replace(there, f"{host}/{here}")
    functions = functions.replace("/usr/libexec/", f"{host}/libexec/").replace("/lib/modules", f"{host}/modules")
    env = {**os.environ, "PATH": f"{host}/bin:{os.environ['PATH']}", "SEEN": str(host / "seen"), **env}
    done = subprocess.run(
        ["sh", "-c", f"{functions}\n{words}\n"], input=text, capture_output=True, check=False, env=env
    )
    return done.returncode, done.stdout.decode()


def seen(host: Path) -> list[str]:
    return (host / "seen").read_text().splitlines()


def test_the_key_of_the_certificates_is_told_once_and_is_in_no_argument(host: Path) -> None:
    code, said = call(host, "make_plane_token")
    assert (code, said.splitlines()) == (0, [f"corral-certificate-key {KEY}", "kubeadm join it"])
    assert not [line for line in seen(host) if KEY in line]
    document = (host / "seen.document").read_text()
    assert f"certificateKey: {KEY}" in document and 'advertiseAddress: "10.0.0.1"' in document
    assert (host / "seen.mode").read_text().strip() == "600"
    assert not list((host / "run").iterdir())


def test_certificates_that_could_not_be_uploaded_leave_no_key(host: Path) -> None:
    code, said = call(host, "make_plane_token", FAILS="1")
    assert code != 0 and KEY not in said and not list((host / "run").iterdir())


def test_what_kubeadm_wrote_is_written_down_and_the_probe_tells_it_beside_what_is_there(host: Path) -> None:
    config, static = host / "kubelet/config.yaml", host / "kubernetes/manifests/kube-apiserver.yaml"
    config.parent.mkdir()
    config.write_text("cgroupDriver: systemd\n")
    flags = config.with_name("kubeadm-flags.env")
    taint = " --register-with-taints=corral.dev/validating=:NoSchedule"
    flags.write_text(f'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.2{taint} --pod-infra=x"\n')
    assert call(host, "join_plane head2", base64.b64encode(b"x\n"))[0] == 0
    written = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (config, static)}
    bare = flags.read_text().replace(taint, "").encode()
    written[str(flags)] = hashlib.sha256(bare).hexdigest()
    listed = (host / "state/deploy/node-files").read_text().splitlines()
    assert {path: digest for digest, _, path in (line.partition("  ") for line in listed)} == written
    static.write_text("changed\n")
    assert call(host, "forget_taint corral.dev/validating")[0] == 0 and flags.read_bytes() == bare
    (host / "kubernetes/manifests/more.yaml").write_text("kind: Pod\n")
    (host / "kubernetes/manifests/my\npod \x07.yaml").write_text("its name is told by nothing\n")
    probe = (_FOLDER / "probe.sh").read_text().replace("main </dev/null", 'sh -c "$FILES"')
    for there, here in HERE:
        probe = probe.replace(there, f"{host}/{here}")
    told = subprocess.run(["sh", "-s"], input=probe, capture_output=True, text=True, check=False).stdout.splitlines()
    found = [line.partition("=")[::2] for line in told if line.startswith(("written=", "nodefile="))]
    assert {value for key, value in found if key == "written"} == {
        f"{path} {digest}" for path, digest in written.items()
    }
    now = {value.split()[0]: value.split()[1] for key, value in found if key == "nodefile"}
    assert all(now[str(path)] == written[str(path)] for path in (config, flags)), "a taint that went is no change"
    assert now[str(static)] == hashlib.sha256(b"changed\n").hexdigest()
    assert sorted(now) == sorted(map(str, (config, flags, static, static.with_name("more.yaml"))))


def test_a_control_plane_whose_join_was_cut_begins_anew(host: Path) -> None:
    content = base64.b64encode(b"certificateKey: x\n")
    assert call(host, "join_plane head2", content, FAILS="1")[0] != 0
    assert (host / "state/unfinished/kubeadm").exists() and not list((host / "run").iterdir())
    assert "reset --force" not in seen(host)
    code, said = call(host, "join_plane head2", content)
    assert code == 0, said
    assert "reset --force" in seen(host) and not (host / "state/unfinished/kubeadm").exists()
    assert (host / "seen.document").read_text() == "certificateKey: x\n"


@pytest.mark.parametrize(
    ("name", "asked"),
    [("head", ["list", "remove"]), ("head2", ["list", "remove"]), ("hea", ["list"]), ("head3", ["list"])],
)
def test_etcd_loses_the_member_of_the_name_and_no_other(host: Path, name: str, asked: list[str]) -> None:
    code, said = call(host, f"drop_member {name}", STATUS="200 OK")
    assert code == 0, said
    assert [line.split()[1].rpartition("/")[2] for line in seen(host)] == asked


def test_the_member_is_taken_out_by_its_number(host: Path) -> None:
    (host / "bin/socat").write_text(SOCAT.replace("head -n 1 >>", "cat >>"))
    call(host, "drop_member head", STATUS="200 OK")
    assert '{"ID": "149"}' in (host / "seen").read_text()


def test_a_node_stays_in_kubernetes_while_etcd_does_not_answer(host: Path) -> None:
    code, said = call(host, "forget_plane head", STATUS="503 Service Unavailable")
    assert code != 0 and said.splitlines()[-1] == "corral: etcd does not answer"
    assert not [line for line in seen(host) if "delete node" in line]


def test_control_planes_are_removed_one_at_a_time_and_never_the_only_one(tmp_path: Path) -> None:
    rows = "".join(f"  h{at}: {{address: 10.0.0.{at}, roles: [control-plane]}}\n" for at in (1, 2, 3))
    several, alone = tmp_path / "several.yaml", tmp_path / "alone.yaml"
    several.write_text(f"cluster: lab\nhosts:\n{rows}")
    alone.write_text(f"cluster: lab\nhosts:\n{rows.splitlines()[0]}\n")

    def said(*words: str) -> str:
        done = CliRunner().invoke(deploy_command, ["remove-node", *words, "--cluster", "lab"], standalone_mode=False)
        return str(done.exception)

    assert "A control plane is removed alone" in said("h1", "h2", "--hosts", str(several))
    assert "h1 is a control plane" in said("h1", "--hosts", str(alone))
