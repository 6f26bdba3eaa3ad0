"""OpenSSH's own ssh, scp and sftp in a running task, which has no SSH server and no port for it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from corral.client import Client
from tests.endtoend.platform import CORRAL, Platform, one
from tests.endtoend.test_inside_a_task import arguments_of_everything
from tests.reserved import free_port
from tests.terminals import Terminal
from tests.waiting import pause

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client"),
]
SECONDS = 120
TASK = r"""
import http.server, os, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"from port %d\n" % self.server.server_port
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
given = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["CORRAL_PORT_WEB"])), Handler)
other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=given.serve_forever, daemon=True).start()
print("ports", given.server_port, other.server_port, flush=True)
other.serve_forever()
"""


class Site:
    """A running job, and the configuration of ssh for it."""

    def __init__(self, server: Platform, home: Path) -> None:
        self.server = server
        role = {"ports": [{"name": "web"}], "resources": {"cpu": "1"}}
        self.job = server.submit(one("reached", ["python3", "-c", TASK], role=role))
        found = server.printed_running(self.job, "main-0", r"ports (\d+) (\d+)\n")
        self.given, self.other = int(found[1]), int(found[2])
        self.home = home
        self.env = {**server.env, "HOME": str(home), "PATH": f"{Path(CORRAL).parent}:{os.environ['PATH']}"}
        self.run([CORRAL, "ssh", "config", "--install"])
        self.config = ["-F", str(home / ".ssh" / "config")]

    def run(self, words: list[str], *, given: bytes = b"", code: int = 0) -> subprocess.CompletedProcess[bytes]:
        """Run a command, which must exit with `code`."""
        done = subprocess.run(words, env=self.env, input=given, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout!r}\n{done.stderr!r}"
        return done

    def ssh(self, *words: str, given: bytes = b"", code: int = 0) -> subprocess.CompletedProcess[bytes]:
        """Run ssh with the installed configuration."""
        return self.run(["ssh", *self.config, *words], given=given, code=code)

    @contextlib.contextmanager
    def forwarding(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """`ssh WORDS`, which forwards until the end of the block."""
        process = subprocess.Popen(
            ["ssh", *self.config, *words], env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)


@pytest.fixture(scope="module")
def site(server: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The job of this module."""
    yield Site(server, tmp_path_factory.mktemp("home"))
    server.clear()


def listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until ssh listens at a port of this machine."""
    begun = time.monotonic()
    while process.poll() is None and time.monotonic() - begun < SECONDS:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), SECONDS):
            return
        time.sleep(pause(begun))
    raise AssertionError(f"ssh does not listen at {port}")


def body(port: int, process: subprocess.Popen[bytes]) -> str:
    """What a port of the task answers through ssh."""
    listening(port, process)
    return httpx2.get(f"http://127.0.0.1:{port}/", timeout=SECONDS, trust_env=False).text


def test_a_command_has_its_streams_apart_and_its_exit_code(site: Site) -> None:
    done = site.run([CORRAL, "ssh", "reached", "--", "cat; echo wrong >&2; exit 7"], given=b"in\0\xff", code=7)
    assert (done.stdout, done.stderr) == (b"in\0\xff", b"wrong\n")
    ended = site.ssh("main-0.reached.corral", "pwd; kill -TERM $$", code=143)
    assert ended.stdout.strip().endswith(b"/work")


def test_a_shell_has_a_terminal_with_its_size_and_keys(site: Site) -> None:
    terminal = Terminal([CORRAL, "ssh", "reached", "main-0"], {**site.env, "TERM": "xterm"})
    terminal.sendline("stty size; echo $TERM-$((6*7))")
    terminal.expect("40 160\r\n.*xterm-42\r\n")
    terminal.sendline("PS1=pro'mpt:'")
    terminal.expect("prompt:")
    terminal.sendline("""sh -c "echo wait'ing'; exec sleep 1000" """)  # one process: Ctrl-C finds it
    terminal.expect("waiting\r\n")
    terminal.interrupt()
    terminal.expect("prompt:")
    terminal.sendline("echo back-$((6*7))")
    terminal.expect("back-42\r\n")
    terminal.sendline("exit 5")
    assert terminal.ended() == 5


def test_files_are_copied_both_ways_by_scp_and_sftp(site: Site, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    (sent / "deep").mkdir(parents=True)
    (sent / "weights").write_bytes(os.urandom(3_000_000))
    (sent / "deep" / "a b").write_text("1\n")
    (sent / "deep" / "run").write_text("#!/bin/sh\n")
    (sent / "deep" / "run").chmod(0o755)
    site.run(["scp", *site.config, "-qrp", str(sent), "reached.corral:copied"])
    site.run(["scp", *site.config, "-qr", "reached.corral:copied", str(tmp_path / "back")])
    site.run(["scp", *site.config, "-Oq", "reached.corral:copied/weights", str(tmp_path / "old")])
    for path in ("weights", "deep/a b", "deep/run"):
        assert (tmp_path / "back" / path).read_bytes() == (sent / path).read_bytes()
    assert (tmp_path / "back" / "deep" / "run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "old").read_bytes() == (sent / "weights").read_bytes()
    steps = f"""mkdir d
put {tmp_path}/old d/x
rename d/x d/y
chmod 600 d/y
ln -s y d/z
ls -la d
get d/z {tmp_path}/got
rm d/z
rm d/y
rmdir d
"""
    done = site.run(["sftp", *site.config, "-b", "-", "reached.corral"], given=steps.encode())
    assert b"-rw-------" in done.stdout and b" z\n" in done.stdout
    assert (tmp_path / "got").read_bytes() == (sent / "weights").read_bytes()
    assert b"not found" in site.run(["sftp", *site.config, "-b", "-", "reached.corral"], given=b"ls d", code=1).stderr


def test_ports_of_the_task_are_forwarded_and_no_others(site: Site) -> None:
    given, other, socks = free_port(), free_port(), free_port()
    words = ["-N", "-D", str(socks)]
    words += [f"-L{given}:localhost:{site.given}", f"-L{other}:127.0.0.1:{site.other}", "reached.corral"]
    with site.forwarding(*words) as process:
        assert body(given, process) == f"from port {site.given}\n"
        assert body(other, process) == f"from port {site.other}\n"
        listening(socks, process)
        for port in (site.given, site.other):
            assert through_socks(socks, "localhost", port) == f"from port {port}\n".encode()
        assert through_socks(socks, "other.example", 80) == b""
        process.terminate()
        _, said = process.communicate(timeout=SECONDS)
    assert b"Only ports of the task itself are reached by this connection" in said


def through_socks(proxy: int, host: str, port: int) -> bytes:
    """The body that a host of a SOCKS proxy answers; b"" if the proxy cannot reach it."""
    with socket.create_connection(("127.0.0.1", proxy), SECONDS) as asked:
        asked.sendall(b"\x05\x01\x00")
        assert asked.recv(2) == b"\x05\x00"
        asked.sendall(b"\x05\x01\x00\x03" + bytes((len(host),)) + host.encode() + port.to_bytes(2, "big"))
        answer = asked.recv(10)
        if answer[1:2] != b"\x00":
            return b""
        asked.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = b""
        while piece := asked.recv(65536):
            got += piece
    return got.partition(b"\r\n\r\n")[2]


def test_what_an_editor_does_works(site: Site) -> None:
    """As VS Code Remote: a script on standard input of `bash -s`, a server left behind, then -D to its loopback port."""
    script = b"""
        mkdir -p .editor && cd .editor
        cat > server.py <<'END'
import http.server
found = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(found.server_port, flush=True)
found.serve_forever()
END
        nohup python3 server.py >port 2>/dev/null </dev/null &
        while [ ! -s port ]; do sleep 0.05; done
        echo "listening on $(cat port)"
    """
    done = site.ssh("-T", "-D", str(free_port()), "reached.corral", "bash", "-s", given=script)
    port = int(done.stdout.decode().removeprefix("listening on "))
    site.run(["scp", *site.config, "-q", str(site.home / ".ssh" / "config"), "reached.corral:.editor/setting"])
    socks = free_port()
    with site.forwarding("-N", "-D", str(socks), "reached.corral") as process:
        listening(socks, process)
        assert b"setting" in through_socks(socks, "localhost", port)


def test_what_is_not_forwarded_is_refused(site: Site) -> None:
    port = free_port()
    options = ["-v", "-o", "ExitOnForwardFailure=yes", "-R", f"{port}:localhost:{port}"]
    refused = site.ssh(*options, "reached.corral", "true", code=255)
    assert b"Ports of your machine are not forwarded to tasks (-R); -L and -D are." in refused.stderr
    agent = site.ssh("-A", "reached.corral", "echo ${SSH_AUTH_SOCK:-none}")
    assert agent.stdout == b"none\n"


def test_a_command_ends_with_its_client(site: Site) -> None:
    with site.forwarding("reached.corral", "echo $$ >begun; exec sleep 100000"):
        until(site, "test -s begun")
    until(site, "! kill -0 $(cat begun) 2>/dev/null")


def until(site: Site, command: str) -> None:
    """Wait until a command in the task succeeds."""
    begun = time.monotonic()
    while site.server.run("exec", "reached", "main-0", "--", "sh", "-c", command).returncode:
        assert time.monotonic() - begun < SECONDS, f"{command} did not succeed"
        time.sleep(pause(begun))


def test_each_connection_is_in_the_audit_log_once(site: Site) -> None:
    before = entries(site)
    site.ssh("reached.corral", "true")
    assert entries(site) == before + 1


def entries(site: Site) -> int:
    found = site.server.client.audit(limit=500)["items"]
    return sum(line["action"] == "job.exec" and line["detail"].get("by") == "ssh" for line in found)


def test_another_user_and_a_stranger_are_refused(site: Site) -> None:
    admin, url = site.server.client, site.server.url
    admin.create_user("eve", password="correct horse battery")
    with Client(url, "") as nobody:
        token = nobody.login(user="eve", password="correct horse battery")["token"]
    with Client(url, token) as eve:
        env = {"CORRAL_URL": url, "CORRAL_TOKEN": eve.token}
        said = site.server.refused("ssh", "reached", "main-0", env=env)
        assert "Only its owner" in said or "may not" in said
        assert site.server.run("ssh", "stdio", "main-0.reached.corral", env=env).returncode == 4
    stranger = {"CORRAL_URL": url, "CORRAL_TOKEN": "crl_nobody"}
    assert site.server.run("ssh", "stdio", "main-0.reached.corral", env=stranger).returncode == 4


def test_a_connection_ends_with_the_token_and_with_the_task(site: Site) -> None:
    server = site.server
    job = server.submit(one("short", "echo up; exec sleep 100000"))
    server.printed_running(job, "main-0", "up\n")
    made = server.client.create_token("for-ssh")
    by_token = {**site.env, "CORRAL_URL": server.url, "CORRAL_TOKEN": made["token"]}
    waits = [CORRAL, "ssh", "short", "main-0", "--", "echo in; sleep 100000"]
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(subprocess.Popen(waits, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            for env in (by_token, site.env)
        )
        for process in (first, second):
            assert process.stdout is not None and process.stdout.readline() == b"in\n"
        server.client.revoke_token(made["id"])
        assert b"has ended" in first.communicate(timeout=SECONDS)[1]
        assert second.poll() is None
        server.client.stop(job["id"])
        second.communicate(timeout=SECONDS)
        assert first.returncode and second.returncode
    said = site.run([CORRAL, "ssh", "short", "main-0"], code=4).stderr
    assert b"is not running" in said


def test_the_configuration_is_installed_once_and_taken_out_again(site: Site, tmp_path: Path) -> None:
    env = {**site.env, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    users = tmp_path / ".ssh" / "config"
    users.parent.mkdir()
    users.write_text("Host mine\n    Port 2222\n")

    def config(*words: str) -> str:
        done = subprocess.run([CORRAL, "ssh", "config", *words], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    config("--install")
    once = users.read_text()
    config("reached", "--install")
    assert users.read_text() == once and once.endswith("Host mine\n    Port 2222\n")
    own = tmp_path / "config" / "corral" / "ssh" / "config"
    assert "Host reached.corral\n" in own.read_text()
    asked = ["ssh", "-F", str(users), "-G"]
    assert b"port 2222" in subprocess.run([*asked, "mine"], env=env, capture_output=True, check=True).stdout
    assert b"proxycommand" not in subprocess.run([*asked, "mine"], env=env, capture_output=True, check=True).stdout
    quoted = subprocess.run([*asked, "a'b.corral"], env=env, capture_output=True, check=False)
    assert b"proxycommand" not in quoted.stdout
    assert "StrictHostKeyChecking yes" in config("reached")
    config("--remove")
    assert users.read_text() == "Host mine\n    Port 2222\n" and not own.exists()


def test_without_openssh_one_sentence_says_so(site: Site, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "corral.cli.main", "ssh", "reached", "main-0"]
    env = {**site.env, "PATH": str(tmp_path)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 3 and "install OpenSSH's client" in done.stderr and "Traceback" not in done.stderr


def test_secrets_of_a_connection_are_private_files_and_no_arguments(site: Site) -> None:
    folder = Path(site.server.env["XDG_CONFIG_HOME"], "corral", "ssh")
    site.ssh("reached.corral", "true")
    assert folder.stat().st_mode & 0o777 == 0o700
    key = folder / "identity" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_text().split("\n")[1]
    port = free_port()
    with site.forwarding("-N", f"-L{port}:localhost:{site.given}", "reached.corral") as process:
        listening(port, process)
        lines = arguments_of_everything()
    assert "ssh\0stdio\0reached.corral" in lines
    assert secret not in lines and site.server.client.token not in lines
