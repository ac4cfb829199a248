"""One file to every member of a group, measured: what the demo shows and the tests check."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wormcast.mininet.fabric import Fabric, FabricError
from wormcast.mininet.links import LinkCounters

# Only against waiting for ever: a slow machine takes its time.
RECEIVER_START_SECONDS_MAX = 600.0
FINISH_SECONDS_MAX = 600.0


@dataclass(frozen=True)
class Result:
    """What one transfer cost.

    `seconds`: from the first byte handed to the agent until every member has the file.
    `link_bytes`: frames with their headers over all links in both directions.
    `busiest_link_bytes`: the most that crossed one link in one direction.
    `intact`: whether every surviving member has the same bytes as the source.
    """

    scheme: str
    receivers: int
    seconds: float
    file_bytes: int
    goodput_mbps: float
    source_bytes: int
    link_bytes: int
    busiest_link_bytes: int
    retransmissions: int
    intact: bool
    failed: dict[int, str] = field(default_factory=dict)
    receiver_seconds: dict[int, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As report.json has it."""
        return asdict(self)


@dataclass
class Progress:
    """How far a transfer is; handed to a watcher several times a second."""

    scheme: str
    file_bytes: int
    slowest_bytes: int = 0
    seconds: float = 0.0
    per_host: dict[int, int] = field(default_factory=dict)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def transfer(
    fabric: Fabric,
    scheme: str,
    file: Path,
    source: int,
    receivers: Sequence[int],
    *,
    seconds_max: float = 600.0,
    watch: Callable[[Progress], None] | None = None,
    midway: Callable[[], None] | None = None,
    midway_share: float = 0.15,
    expect_failed: Sequence[int] = (),
    outputs: dict[int, Path] | None = None,
    parameters: dict[str, Any] | None = None,
    gather: bool = False,
) -> Result:
    """Create a group, send `file` from `source` to `receivers`, take the group away again.

    `midway` is called once, when the slowest receiver has `midway_share` of the file.
    `expect_failed`: receivers that are not expected to finish. `outputs` overrides where
    single receivers write. Raises `FabricError` when the transfer does not finish, or the sender says that other members
    will not have it.
    """
    members = sorted({source, *receivers})
    group = fabric.post(
        "groups",
        {
            "name": f"demo-{scheme}",
            "scheme": scheme,
            "members": members,
            "parameters": parameters or {},
            "gather": gather,
        },
    )["id"]
    try:
        fabric.wait_group(group)
        return _Run(fabric, scheme, group, file, source, receivers, outputs or {}).go(
            seconds_max, watch, midway, midway_share, set(expect_failed)
        )
    finally:
        fabric.delete(f"groups/{group}")


class _Run:
    """The processes of one transfer."""

    def __init__(
        self,
        fabric: Fabric,
        scheme: str,
        group: int,
        file: Path,
        source: int,
        receivers: Sequence[int],
        outputs: dict[int, Path],
    ) -> None:
        self.fabric = fabric
        self.scheme = scheme
        self.group = group
        self.file = file
        self.source = source
        self.receivers = list(receivers)
        self.file_bytes = file.stat().st_size
        self.directory = fabric.directory / f"received-{group}"
        self.outputs = {host: outputs.get(host, self.directory / f"h{host}") for host in receivers}
        self.receiving: dict[int, subprocess.Popen[str]] = {}
        self.sending: subprocess.Popen[str] | None = None

    def go(
        self,
        seconds_max: float,
        watch: Callable[[Progress], None] | None,
        midway: Callable[[], None] | None,
        midway_share: float,
        expect_failed: set[int],
    ) -> Result:
        """Run the transfer and measure it."""
        try:
            self._start_receivers(seconds_max)
            before = self.fabric.counters()
            self.sending = self.fabric.popen(
                self.source,
                ["wormcast", "send", str(self.file), "--group", str(self.group), "--json"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            sent = self._collect(self.sending)
            self._watch(seconds_max, watch, midway, midway_share)
            report = self._sender_report(sent())
            crossed = self.fabric.counters().since(before)
            return self._result(report, crossed, expect_failed)
        finally:
            self._clean()

    def _start_receivers(self, seconds_max: float) -> None:
        for host in self.receivers:
            self.outputs[host].mkdir(parents=True, exist_ok=True)
            argv = ["wormcast", "recv", "--group", str(self.group), "--output", str(self.outputs[host])]
            argv += ["--count", "1", "--timeout", str(seconds_max), "--json"]
            self.receiving[host] = self.fabric.popen(
                host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        waiting = set(self.receivers)
        deadline = time.monotonic() + RECEIVER_START_SECONDS_MAX
        while waiting:
            waiting = {host for host in waiting if not self._has_receiver(host)}
            if waiting and time.monotonic() > deadline:
                raise FabricError(
                    f"`wormcast recv` did not open group {self.group} at hosts {sorted(waiting)}"
                )
            time.sleep(0.05)

    def _has_receiver(self, host: int) -> bool:
        if self.receiving[host].poll() is not None:
            raise FabricError(f"`wormcast recv` on h{host} ended early: {self.receiving[host].stderr.read()}")  # type: ignore[union-attr]
        return any(g.get("receivers", 0) > 0 for g in self._groups(host))

    def _groups(self, host: int) -> list[dict[str, Any]]:
        status = self.fabric.agent_status(host) or {}
        return [g for g in status.get("groups", []) if g["group"] == self.group]

    def _received_bytes(self, host: int) -> int:
        return sum(
            stream.get("delivered_bytes", 0)
            for group in self._groups(host)
            for stream in group["streams"]
            if stream["origin"] == self.source
        )

    @staticmethod
    def _collect(process: subprocess.Popen[str]) -> Callable[[], dict[str, str]]:
        """Read both pipes in the background, so that a chatty child never blocks. The result waits for their end."""
        text: dict[str, str] = {}
        readers = []

        def read(name: str, stream: Any) -> None:
            text[name] = stream.read()

        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            readers.append(threading.Thread(target=read, args=(name, stream), daemon=True))
            readers[-1].start()

        def all_of_it() -> dict[str, str]:
            for reader in readers:
                reader.join()
            return text

        return all_of_it

    def _watch(
        self,
        seconds_max: float,
        watch: Callable[[Progress], None] | None,
        midway: Callable[[], None] | None,
        midway_share: float,
    ) -> None:
        assert self.sending is not None
        started = time.monotonic()
        progress = Progress(self.scheme, self.file_bytes)
        while self.sending.poll() is None:
            progress.seconds = time.monotonic() - started
            if progress.seconds > seconds_max:
                raise FabricError(
                    f"scheme {self.scheme}: not finished after {seconds_max:.0f} s; received so far: {progress.per_host}"
                )
            if watch is not None or midway is not None:
                progress.per_host = {host: self._received_bytes(host) for host in self.receivers}
                progress.slowest_bytes = min(progress.per_host.values())
            if midway is not None and progress.slowest_bytes >= midway_share * self.file_bytes:
                midway()
                midway = None
            if watch is not None:
                watch(progress)
            time.sleep(0.2)
        if midway is not None:
            raise FabricError(
                f"scheme {self.scheme}: finished before {midway_share:.0%} was seen; send a larger file"
            )

    def _sender_report(self, sent: dict[str, str]) -> dict[str, Any]:
        assert self.sending is not None
        if self.sending.returncode not in (0, 3):
            raise FabricError(
                f"`wormcast send` ended with {self.sending.returncode}: {sent['err'].strip() or sent['out']}"
            )
        report: dict[str, Any] = json.loads(sent["out"])
        return report

    def _result(self, report: dict[str, Any], crossed: LinkCounters, expect_failed: set[int]) -> Result:
        want = sha256_of(self.file)
        failed = {m["host"]: m["reason"] or "" for m in report["members"] if not m["delivered"]}
        if lost := {host: reason for host, reason in failed.items() if host not in expect_failed}:
            reasons = ", ".join(f"h{host}: {reason}" for host, reason in lost.items())
            raise FabricError(f"scheme {self.scheme}: members that will not have the file ({reasons})")
        intact, receiver_seconds = True, {}
        for host, process in self.receiving.items():
            if host in expect_failed:
                if process.poll() is None:
                    process.kill()
                process.communicate()
                continue
            try:
                # It has the file, as the sender says, so it ends at once, as far as the machine lets it.
                out, err = process.communicate(timeout=FINISH_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise FabricError(
                    f"`wormcast send` says that h{host} has the file, and `wormcast recv` there still waits for it"
                ) from None
            if process.returncode != 0:
                raise FabricError(
                    f"`wormcast recv` on h{host} ended with {process.returncode}: {err.strip()}"
                )
            received = json.loads(out.strip().splitlines()[-1])
            receiver_seconds[host] = received["seconds"]
            # Not the receiver's word: the bytes on its disk.
            intact = intact and sha256_of(Path(received["path"])) == want
        seconds = report["seconds"]
        return Result(
            scheme=self.scheme,
            receivers=len(self.receivers),
            seconds=seconds,
            file_bytes=self.file_bytes,
            goodput_mbps=self.file_bytes * 8 / seconds / 1e6,
            source_bytes=crossed.source_bytes(self.source),
            link_bytes=crossed.total_bytes,
            busiest_link_bytes=crossed.busiest_bytes,
            retransmissions=self._retransmissions(),
            intact=intact,
            failed=failed,
            receiver_seconds=receiver_seconds,
        )

    def _retransmissions(self) -> int:
        """Data frames sent again, by any host of the group."""
        total = 0
        for host in {self.source, *self.receivers}:
            for group in self._groups(host):
                total += sum(stream.get("retransmissions", 0) for stream in group["streams"])
        return total

    def _clean(self) -> None:
        for process in [*self.receiving.values(), *([self.sending] if self.sending else [])]:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
