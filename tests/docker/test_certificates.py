"""Building behind a proxy that reads TLS: what is said, and what cures it. The proxy's part is played by a server
whose certificate nobody knows."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from composing import ROOT, Compose, compose_commands

DOCKER = ROOT / "packaging" / "docker"
WARNING = "reach: a server's certificate is not trusted here, as where a proxy reads TLS; `packaging/docker/trust` takes"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A port of HTTPS, and the folder with the certificate, `trust` and `reach`."""
    at = tmp_path_factory.mktemp("certificates")
    for name in ("trust", "reach"):
        shutil.copy(DOCKER / name, at)
    (at / "certificates").mkdir()
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", at / "key.pem", "-out", at / "proxy.pem"]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(at / "proxy.pem", at / "key.pem")
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as http:
        http.socket = context.wrap_socket(http.socket, server_side=True)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield http.server_port, at
        http.shutdown()


def reach(image: str, at: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A command in a container that sees this machine's ports."""
    command = ["docker", "run", "--rm", "--network", "host", "-v", f"{at}:/at:ro", image, "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True)


def test_apt_is_told_what_to_do_and_then_trusts(base: str, server: tuple[int, Path]) -> None:
    """A system without the package ca-certificates."""
    port, at = server
    for file in (at / "certificates").iterdir():
        file.unlink()
    script = (
        "cp /at/certificates/*.crt /usr/local/share/ca-certificates/ 2>/dev/null; rm -rf /etc/apt/sources.list*; "
        f"echo 'deb [trusted=yes] https://localhost:{port} x main' >/etc/apt/sources.list; "
        "/at/reach apt-get update -qq -o APT::Update::Error-Mode=any"
    )
    script = f"mkdir -p /usr/local/share/ca-certificates; {script}"
    done = reach(base, at, script)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith(WARNING), done.stdout + done.stderr
    told = subprocess.run([at / "trust", at / "proxy.pem"], check=True, capture_output=True, text=True)
    assert told.stdout.startswith("trust: 1 certificates; now build again")
    done = reach(base, at, script)
    assert done.returncode != 0, "it is no archive of packages"
    assert "404" in done.stdout + done.stderr
    assert "certificate" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "git ls-remote https://localhost:{port}/x.git",
        ".venv/bin/python -m pip download --no-deps --index-url https://localhost:{port}/ x",
        "cargo search --index sparse+https://localhost:{port}/ x",
    ],
    ids=lambda command: command.split()[0],
)
def test_tools_of_the_build_are_told_what_to_do_and_then_trust(
    base: str, server: tuple[int, Path], command: str
) -> None:
    port, at = server
    Compose(compose_commands()[0], base)("build", "lab")
    script = f"/at/reach {command.format(port=port)}"
    done = reach("wormcast-build", at, script)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith(WARNING), done.stdout + done.stderr
    done = reach("wormcast-build", at, f"cp /at/proxy.pem /usr/local/share/ca-certificates/p.crt; {script}")
    assert WARNING not in done.stderr, done.stdout + done.stderr


def test_what_runs_keeps_no_certificate_of_the_machine(base: str) -> None:
    Compose(compose_commands()[0], base)("build", "fabric")
    look = "ls /usr/local/share/ca-certificates/*.crt /etc/ssl/certs/ca-certificates.crt /usr/local/bin/reach"
    done = subprocess.run(
        ["docker", "run", "--rm", "wormcast", "sh", "-c", look], capture_output=True, text=True
    )
    assert done.stdout == ""


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    for name in ("/etc/hostname", str(tmp_path / "none")):
        done = subprocess.run([DOCKER / "trust", name], capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"{name} is no file with certificates in PEM" in done.stderr
