"""A real ONOS core in Karaf, beside a fabric: what `setup/onos --core` made is copied, started and asked over REST."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / ".build" / "onos"
APPLICATION = ROOT / "targets" / "onos" / "target" / "wormcast-onos-0.1.0.oar"
FEATURES = ROOT / "targets" / "onos" / "integration" / "features.xml"
BUNDLES = "WORMCAST_ONOS_BUNDLES"
"""Names a folder with .oar files of ONOS that Maven Central does not have; the test installs them."""

ADDRESS = "http://127.0.0.1:8181"
REST = f"{ADDRESS}/onos"
SECONDS_MAX = 600.0
"""Only against hanging for ever."""

BOOT = (
    "(instance,package,log,ssh,framework,system,eventadmin,feature,shell,management,service,jaas,deployer,"
    "diagnostic,wrap,bundle,config,kar,scr,war),"
    "(onos-api,onos-core,onos-cli,onos-rest,onos-protocols-p4runtime,onos-apps-mcast,wormcast-stand-ins)"
)
"""Features that Karaf starts with."""

WEB = """\
org.osgi.service.http.port=8181
org.osgi.service.http.enabled=true
org.osgi.service.http.secure.enabled=false
org.ops4j.pax.web.session.url=none
org.ops4j.pax.web.config.file=./etc/jetty.xml
"""
USERS = """\
onos = rocks,_g_:admingroup
_g_\\:admingroup = group,admin,manager,viewer,systembundles,ssh,webconsole
"""
REQUIRED = {
    "org.onosproject.protocols.p4runtime": "onos-protocols-p4runtime",
    "org.onosproject.mcast": "onos-apps-mcast",
}
"""Applications that ours requires, and the features that have as much of them as Maven Central has."""


def missing() -> str | None:
    """Why there is no ONOS core here, if there is none."""
    if not (BUILT / "stamp").exists():
        return "no ONOS core in .build/onos; setup/onos --core says why, or makes it"
    return None if APPLICATION.exists() else f"no {APPLICATION.name}; make onos builds it"


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for something true and return it."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        with contextlib.suppress(httpx.TransportError):
            if found := condition():
                return found
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


class Onos:
    """One ONOS, in the network namespace of the process that starts it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "karaf"
        self.log = directory / "karaf.out"
        self.http = httpx.Client(base_url=REST, auth=("onos", "rocks"), timeout=SECONDS_MAX)
        self._process: subprocess.Popen[bytes] | None = None
        self._write_home()

    def _write_home(self) -> None:
        shutil.copytree(BUILT / "karaf", self.home, symlinks=True)
        etc = self.home / "etc"
        (jetty,) = self.home.glob("system/org/ops4j/pax/web/pax-web-features/*/*jettyconfig.xml")
        shutil.copy(jetty, etc / "jetty.xml")
        (etc / "org.ops4j.pax.web.cfg").write_text(WEB)
        with (etc / "users.properties").open("a") as users:
            users.write(USERS)
        settings = etc / "org.apache.karaf.features.cfg"
        text = settings.read_text()
        text = text.replace("featuresRepositories = ", f"featuresRepositories = file:{FEATURES}, ", 1)
        settings.write_text(re.sub(r"featuresBoot = .*?\n\n", f"featuresBoot = {BOOT}\n\n", text, flags=re.S))
        stand_ins = self.home / "system/org/wormcast/wormcast-onos-integration/0.1.0"
        stand_ins.mkdir(parents=True)
        shutil.copy(BUILT / "stand-ins.jar", stand_ins / "wormcast-onos-integration-0.1.0.jar")

    def __enter__(self) -> Onos:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(self.home / "bin" / "karaf"), "server"],
                cwd=self.home,
                env={**os.environ, **self._environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it: the script and the Java process that it started, which have a session of their own."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        self.http.close()

    def _environment(self) -> dict[str, str]:
        return {
            "JAVA_HOME": str((BUILT / "java").resolve()),
            "JAVA_MAX_MEM": "700m",
            "KARAF_HOME": str(self.home),
        }

    def wait_ready(self) -> None:
        """Wait until it takes applications and its drivers are there, which are the last to come."""

        def ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, f"ONOS ended; see {self.log}"
            ways = ("v1/applications", "v1/flows", "v1/groups", "v1/hosts", "v1/devices")
            return all(self.http.get(way).status_code == 200 for way in ways)

        until(ready, f"ONOS is not up; see {self.home}/data/log/karaf.log")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What REST answers; an error fails the test."""
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def install(self, paths: list[Path]) -> None:
        """Install applications, each after those that it requires, whatever the order is."""
        refused = ""
        while paths:
            left = []
            for path in paths:
                answer = self.http.post(
                    "v1/applications",
                    content=path.read_bytes(),
                    headers={"content-type": "application/octet-stream"},
                )
                if not answer.is_success:
                    left.append(path)
                    refused = f"{path.name}: {answer.status_code} {answer.text}"
            assert len(left) < len(paths), refused
            paths = left

    def activate(self, name: str) -> None:
        """Activate an application, and what it requires."""
        self.ask("POST", f"v1/applications/{name}/active")
        until(
            lambda: self.ask("GET", f"v1/applications/{name}")["state"] == "ACTIVE", f"{name} is not active"
        )

    def command(self, line: str) -> str:
        """What a command of the shell prints, over SSH as users give it."""
        ran = subprocess.run(
            [str(self.home / "bin" / "client"), "-u", "karaf", "-p", "karaf", "-b"],
            env={**os.environ, **self._environment()},
            input=f"{line}\n",
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        return ran.stdout + ran.stderr

    def errors(self) -> list[str]:
        """Lines of the log of our application that say ERROR."""
        lines = (self.home / "data/log/karaf.log").read_text(errors="replace").splitlines()
        return [line for line in lines if "| ERROR |" in line and "wormcast" in line]


def required(directory: Path) -> list[Path]:
    """Applications that ours requires: those of the folder that WORMCAST_ONOS_BUNDLES names, else what Central has."""
    if folder := os.environ.get(BUNDLES):
        return sorted(Path(folder).rglob("*.oar"))
    return [_pack(directory, name, feature) for name, feature in REQUIRED.items()]


def _pack(directory: Path, name: str, feature: str) -> Path:
    path, version = directory / f"{name}.oar", "2.5.2"
    app = f"{feature}-app"
    description = (
        f'<app name="{name}" origin="test" version="{version}" title="{name}" category="test" url="" '
        f'featuresRepo="mvn:org.wormcast/{app}/{version}/xml/features" features="{app}">'
        f"<description>{name}</description><artifact>mvn:org.wormcast/{app}/{version}</artifact></app>"
    )
    features = (
        f'<features xmlns="http://karaf.apache.org/xmlns/features/v1.2.0" name="{app}"><feature name="{app}" '
        f'version="{version}"><feature>{feature}</feature></feature></features>'
    )
    with zipfile.ZipFile(path, "w") as oar:
        oar.writestr("app.xml", description)
        oar.writestr(f"m2/org/wormcast/{app}/{version}/{app}-{version}-features.xml", features)
    return path


@contextlib.contextmanager
def relay(socket_path: Path, port: int) -> Iterator[str]:
    """A TCP port of loopback for a Unix socket, since ONOS's Java 11 knows no Unix sockets."""
    server = socket.create_server(("127.0.0.1", port))

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            behind = socket.socket(socket.AF_UNIX)
            try:
                behind.connect(str(socket_path))
            except OSError:
                client.close()
                continue
            for pair in ((client, behind), (behind, client)):
                threading.Thread(target=copy, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()
