"""Who else brings the same bytes to many hosts: UFTP, udpcast, N × TCP, rsync, each on a bare bridge.

A transfer lasts from the start of its sender until that has ended, and every receiver that ends by itself too.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import account
import bridge
import content
from bridge import PeerError, Program, address, shell
from cases import Case

TCP = str(Path(__file__).parent / "tcp.py")
SETTLE_S = 1.0
"""Until receivers of multicast listen, who do not say so."""
HEADROOM = 0.95
"""Part of a link's rate that UFTP and udpcast are told to use."""
UFTP_MBPS = 800
"""Of a tar file; a contender such as `uftp 400` names its own."""
UFTP_BLOCK_LESS, UFTP_BLOCK_MOST = 200, 8_800
UDPCAST_BLOCK_MOST = 1_456
RSYNC_PORT = 8_730
UFTP_BUFFER = str(16 << 20)


@dataclass
class Job:
    """One transfer. `folders`: where receivers put it, by host from 1."""

    case: Case
    source: Path
    folders: list[Path]
    place: Path
    mbps: int = UFTP_MBPS
    receiving: list[Program] = field(default_factory=list)
    sending: list[Program] = field(default_factory=list)

    def receive(self, argv: Callable[[int, Path], list[str]]) -> None:
        for host, folder in enumerate(self.folders, 1):
            self.receiving.append(Program(host, argv(host, folder)))

    def send(self, argv: list[str]) -> None:
        self.sending.append(Program(0, argv))

    @property
    def addresses(self) -> list[str]:
        return [address(host) for host in range(1, len(self.folders) + 1)]

    @property
    def kbps(self) -> int:
        if self.case.rate is None:
            return self.mbps * 1000
        return round(self.case.rate * 1000 * HEADROOM)


def uftp_send(job: Job, file: Path) -> list[str]:
    block = min(job.case.mtu - UFTP_BLOCK_LESS, UFTP_BLOCK_MOST)
    return ["uftp", "-I", "eth0", "-R", str(job.kbps), "-b", str(block), "-B", UFTP_BUFFER, str(file)]


def uftp_receive(_host: int, folder: Path) -> list[str]:
    return ["uftpd", "-d", "-D", str(folder), "-I", "eth0", "-B", UFTP_BUFFER]


def uftp(job: Job) -> Callable[[], None]:
    job.receive(uftp_receive)
    time.sleep(SETTLE_S)
    return lambda: job.send(uftp_send(job, job.source))


UDPCAST = ["--interface", "eth0", "--nokbd", "--no-progress"]


def udp_sender(job: Job) -> list[str]:
    block = min(job.case.mtu - 44, UDPCAST_BLOCK_MOST)
    argv = ["udp-sender", *UDPCAST, "--full-duplex", "--min-receivers", str(len(job.folders))]
    argv += ["--blocksize", str(block)]
    return argv + (["--max-bitrate", f"{job.kbps}k"] if job.case.rate is not None else [])


def udpcast(job: Job) -> Callable[[], None]:
    name = job.source.name
    job.receive(lambda _host, folder: ["udp-receiver", *UDPCAST, "--file", str(folder / name)])
    time.sleep(SETTLE_S)
    return lambda: job.send([*udp_sender(job), "--file", str(job.source)])


def tcp(job: Job) -> Callable[[], None]:
    name = job.source.name
    job.receive(lambda _host, folder: [sys.executable, TCP, "receive", str(folder / name)])
    for host in range(1, len(job.folders) + 1):
        bridge.listens(host, "tcp", 5_001)
    return lambda: job.send([sys.executable, TCP, "send", str(job.source), *job.addresses])


# --- directories -------------------------------------------------------------------------


def tar_tcp(job: Job) -> Callable[[], None]:
    receive = '"$1" "$2" receive - | tar -x -C "$3"'
    job.receive(lambda _host, folder: shell(receive, sys.executable, TCP, folder))
    for host in range(1, len(job.folders) + 1):
        bridge.listens(host, "tcp", 5_001)
    send = 'tar -c -C "$1" "$2" | "${@:3}"'
    ends = [sys.executable, TCP, "send", "-", *job.addresses]
    return lambda: job.send(shell(send, job.source.parent, job.source.name, *ends))


def tar_udpcast(job: Job) -> Callable[[], None]:
    receive = 'udp-receiver "${@:2}" | tar -x -C "$1"'
    job.receive(lambda _host, folder: shell(receive, folder, *UDPCAST))
    time.sleep(SETTLE_S)
    send = 'tar -c -C "$1" "$2" | "${@:3}"'
    return lambda: job.send(shell(send, job.source.parent, job.source.name, *udp_sender(job)))


def tar_uftp(job: Job) -> Callable[[], None]:
    """UFTP sends no pipe: a tar file goes first, then all unpack it."""
    job.receive(uftp_receive)
    time.sleep(SETTLE_S)
    tar = job.place / "all.tar"
    # As many at a time as there are processors, so that memory holds all.
    unpack = """printf '%s\\0' "$@" | xargs -0 -P "$(nproc)" -I {} sh -c 'tar -x -C {} -f {}/all.tar && rm {}/all.tar'"""

    def go() -> None:
        job.send(shell('tar -c -C "$1" -f "$3" "$2"', job.source.parent, job.source.name, tar))
        job.sending[-1].wait()
        job.send(uftp_send(job, tar))
        job.sending[-1].wait()
        job.send(shell(unpack, *job.folders))

    return go


def rsync(job: Job) -> Callable[[], None]:
    """A daemon on each receiver, and as many senders at once."""
    for host, folder in enumerate(job.folders, 1):
        config = job.place / f"rsyncd-h{host}.conf"
        config.write_text(
            f"use chroot = no\nuid = root\ngid = root\n[all]\npath = {folder}\nread only = no\n"
            f"pid file = {job.place}/rsyncd-h{host}.pid\nlock file = {job.place}/rsyncd-h{host}.lock\n"
        )
        argv = ["rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={RSYNC_PORT}"]
        job.receiving.append(Program(host, argv))
        bridge.listens(host, "tcp", RSYNC_PORT)

    def go() -> None:
        for one in job.addresses:
            job.send(["rsync", "-a", str(job.source), f"rsync://{one}:{RSYNC_PORT}/all/"])

    return go


@dataclass(frozen=True)
class Peer:
    """`program`: without it there is no such peer here. `ends`: whether its receivers end by themselves."""

    program: str
    prepare: Callable[[Job], Callable[[], None]]
    ends: bool = True


PEERS = {
    "uftp": Peer("uftpd", uftp, ends=False),
    "udpcast": Peer("udp-sender", udpcast),
    "tcp": Peer("ip", tcp),
    "tar+uftp": Peer("uftpd", tar_uftp, ends=False),
    "tar+udpcast": Peer("udp-sender", tar_udpcast),
    "tar+tcp": Peer("tar", tar_tcp),
    "rsync": Peer("rsync", rsync, ends=False),
}


def missing(name: str, loss: float) -> str | None:
    """Why this peer cannot be measured here."""
    needed = [PEERS[name.partition(" ")[0]].program, "ethtool", *(["iptables"] if loss else [])]
    gone = [program for program in needed if shutil.which(program) is None]
    return f"{', '.join(gone)} not installed (bench/transport/install)" if gone else None


def deliver(case: Case, name: str, source: Path, old: Path | None, place: Path) -> dict[str, Any]:
    """A file or directory to all. `old`: what receivers have of it from before."""
    bridge.make(case.receivers + 1, case.mtu, case.rate, case.loss)
    folders = [place / f"h{host}" for host in range(1, case.receivers + 1)]
    for folder in folders:
        folder.mkdir()
        if old is not None:
            content.copy(old, folder / source.name, names=True)
    kind, _, mbps = name.partition(" ")
    peer = PEERS[kind]
    job = Job(case, source, folders, place, int(mbps or UFTP_MBPS))
    go = peer.prepare(job)
    before = sum(account.whole(one.process.pid) for one in job.receiving)
    begun = time.monotonic()
    go()
    for one in job.sending:
        if one.process.returncode is None:
            one.wait()
    if peer.ends:
        for one in job.receiving:
            one.wait()
    seconds = time.monotonic() - begun
    if not peer.ends:
        for one in job.receiving:
            one.stop()
    want = content.digest(source)
    wrong = [folder.name for folder in folders if content.digest(folder / source.name) != want]
    if wrong:
        raise PeerError(f"{name}: the content is not right at {', '.join(wrong)}")
    spent = {
        "sender": round(sum(one.seconds for one in job.sending), 3),
        "receivers": round(sum(one.seconds for one in job.receiving) - before, 3),
    }
    return {"seconds": round(seconds, 3), "processor": spent}
