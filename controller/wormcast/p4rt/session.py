"""One switch: stays connected, keeps the pipeline and the state it should have, carries LLDP.

The session is level-triggered: it compares what the switch must have with what
it holds and writes the difference. What it holds is read after every connect
and after every refused write, and followed by a shadow in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from typing import Any, Protocol

import finsy
import grpc

from wormcast.fabric.difference import Stage, Update, diff, execute
from wormcast.fabric.ids import LLDP_ETHERTYPE, PortId, SwitchId
from wormcast.fabric.state import SwitchState
from wormcast.fabric.switch_entries import TABLES_WITH_DEFAULT
from wormcast.p4rt.artifacts import Artifacts
from wormcast.p4rt.channels import allow_unix_sockets
from wormcast.p4rt.convert import ForeignEntry, decode_default_into, decode_into, encode_update
from wormcast.p4rt.eviction import evict_foreign_groups
from wormcast.store.database import SwitchSpec

LOG = logging.getLogger("wormcast.p4rt")
allow_unix_sockets()

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0
"""Longest pause between two attempts to reach a switch; attempts never end."""
CONNECT_TIMEOUT_S = 15.0
"""From the dial until the pipeline is in place."""
BATCH_UPDATES_MAX = 200
"""Updates in one Write request."""
PACKET_IN_MAX = 1024
"""Packet-ins waiting to be read; finsy drops and logs further ones."""
OUTBOX_MAX = 1024
"""Packet-outs waiting to be sent."""
REFUSED_PAUSE_S = 1.0
"""Between a refused write and the next attempt to reach the desired state."""


class SwitchWatcher(Protocol):
    """Who is told what happens at a switch."""

    def switch_connected(self, switch: SwitchId) -> None:
        """The session is primary, the pipeline runs, the state has been read."""

    def switch_disconnected(self, switch: SwitchId, reason: str) -> None:
        """The session ended."""

    def switch_demoted(self, switch: SwitchId, reason: str) -> None:
        """Another controller is primary: this one neither writes nor hears packets, and waits for its turn."""

    def switch_refused(self, switch: SwitchId, reason: str) -> None:
        """A write failed; the session tries again."""

    def packet_received(self, switch: SwitchId, port: PortId, frame: bytes) -> None:
        """An LLDP frame came in."""


class SwitchSession:
    """Keeps one switch."""

    def __init__(
        self, spec: SwitchSpec, artifacts: Artifacts, election_id: int, watcher: SwitchWatcher
    ) -> None:
        self.spec = spec
        self.connected = False
        self.last_error = "not connected yet"
        self.updates_written = 0
        self.writes_refused = 0
        self.connects = 0
        self.probes_dropped = 0
        """Packet-outs dropped because `OUTBOX_MAX` waited."""
        self._artifacts = artifacts
        self._election_id = election_id
        self._watcher = watcher
        self._switch: Any = None
        self._desired: SwitchState | None = None
        self._actual = SwitchState()
        self._lock = asyncio.Lock()
        self._queued: Stage | None = None
        """The furthest stage that waits for the lock."""
        self._ended = asyncio.Event()
        self._outbox: asyncio.Queue[Any] = asyncio.Queue(OUTBOX_MAX)
        self._encoded: dict[tuple[PortId, bytes], Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._retry: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to connect, for ever."""
        self._task = asyncio.create_task(self._run(), name=f"switch-{self.spec.id}")

    async def stop(self) -> None:
        """Ends the session. The switch keeps what it has."""
        for task in (self._retry, self._task):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def desire(self, state: SwitchState) -> None:
        """Says what the switch must have; `advance` writes it."""
        self._desired = state

    async def advance(self, stage: Stage) -> None:
        """Writes what differs, up to and including a stage. Without a connection it returns at once."""
        if self._queued is not None and self._queued >= stage:
            return  # who waits for the switch already will do it
        self._queued = stage
        async with self._lock:
            if self._queued is stage:
                self._queued = None
            if not self.connected or self._desired is None:
                return
            try:
                await self._write([u for u in diff(self._desired, self._actual) if u.stage <= stage])
            except finsy.P4ClientError as error:
                self._handle_refused(error)

    def send(self, port: PortId, frame: bytes) -> None:
        """Packet-out; lost when there is no connection, as on a wire. Frames are encoded once and kept."""
        if not self.connected:
            return
        message = self._encoded.get((port, frame))
        if message is None:
            message = finsy.P4PacketOut(frame, egress_port=port, pad=0).encode_update(self._switch.p4info)
            self._encoded[port, frame] = message
        try:
            self._outbox.put_nowait(message)
        except asyncio.QueueFull:
            self.probes_dropped += 1

    async def read_counter(self, name: str) -> dict[int, tuple[int, int]]:
        """Packets and bytes of every cell of an indirect counter that is not zero; empty without a connection."""
        if not self.connected:
            return {}
        found: dict[int, tuple[int, int]] = {}
        async for cell in self._switch.read([finsy.P4CounterEntry(name)]):
            if cell.data is not None and (cell.data.packet_count or cell.data.byte_count):
                found[cell.index] = (cell.data.packet_count, cell.data.byte_count)
        return found

    async def _run(self) -> None:
        backoff_s = BACKOFF_FIRST_S
        while True:
            began = asyncio.get_running_loop().time()
            await self._connect_once()
            lived_s = asyncio.get_running_loop().time() - began
            backoff_s = BACKOFF_FIRST_S if lived_s > BACKOFF_MAX_S else min(2 * backoff_s, BACKOFF_MAX_S)
            await asyncio.sleep(backoff_s)

    async def _connect_once(self) -> None:
        """One session from dial to end; never raises but for cancellation."""
        self._ended = asyncio.Event()
        options = finsy.SwitchOptions(
            p4info=self._artifacts.schema.p4info,
            p4blob=self._artifacts.schema.p4blob,
            device_id=self.spec.device_id,
            initial_election_id=self._election_id,
            ready_handler=self._serve,
        )
        address = self.spec.address
        switch = finsy.Switch(f"s{self.spec.id}", address, options)
        switch.ee.on(finsy.SwitchEvent.CHANNEL_DOWN, lambda _: self._ended.set())
        reason = "session ended"
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    if evicted := await evict_foreign_groups(self.spec, self._artifacts, self._election_id):
                        LOG.warning(
                            "switch %d: ran another program; removed its %d groups", self.spec.id, evicted
                        )
                    self._switch = await stack.enter_async_context(switch)
                await self._ended.wait()
        except asyncio.CancelledError:
            reason = "stopped"
            raise
        except TimeoutError:
            reason = f"no answer from {address} within {CONNECT_TIMEOUT_S:g} s"
        except finsy.P4ClientError as error:
            reason = f"{address}: {error.message or error.code.name}"
        except (grpc.RpcError, OSError, RuntimeError, ValueError, AssertionError) as error:
            reason = f"{address}: {error}"
        finally:
            self._leave(reason)

    def _leave(self, reason: str) -> None:
        if reason != self.last_error:
            LOG.log(
                logging.INFO if reason == "stopped" else logging.WARNING,
                "switch %d: %s",
                self.spec.id,
                reason,
            )
        self.last_error = reason
        self._switch = None
        self._encoded.clear()
        if self.connected:
            self.connected = False
            self._watcher.switch_disconnected(self.spec.id, reason)

    async def _serve(self, switch: Any) -> None:
        """Runs in a task of finsy's once the pipeline stands; an exception ends the session."""
        self._switch = switch
        if not switch.is_primary:
            self.last_error = f"another controller is primary (election id {switch.primary_id})"
            LOG.warning("switch %d: %s", self.spec.id, self.last_error)
            self.connected = False
            self._watcher.switch_demoted(self.spec.id, self.last_error)
            return
        async with self._lock:
            await self._read_state()
            self._outbox = asyncio.Queue(OUTBOX_MAX)
            self.connected = True
            self.connects += 1
            self.last_error = ""
        LOG.info("switch %d: connected to %s", self.spec.id, self.spec.address)
        switch.create_task(self._send_packets(), name="packet-out")
        switch.create_task(self._receive_packets(switch), name="packet-in")
        self._watcher.switch_connected(self.spec.id)
        await self.advance(Stage.RETIRE)

    async def _send_packets(self) -> None:
        while True:
            await self._switch.write([await self._outbox.get()])

    async def _receive_packets(self, switch: Any) -> None:
        async for packet in switch.read_packets(queue_size=PACKET_IN_MAX, eth_types=[LLDP_ETHERTYPE]):
            self._watcher.packet_received(self.spec.id, PortId(packet["ingress_port"]), packet.payload)

    async def _read_state(self) -> None:
        state = SwitchState()
        for kind in (finsy.P4TableEntry(), finsy.P4MulticastGroupEntry()):
            async for entity in self._switch.read([kind]):
                try:
                    decode_into(state, entity, self._switch.p4info)
                except ForeignEntry as error:
                    LOG.warning("switch %d: ignored on reading: %s", self.spec.id, error)
        await self._read_defaults(state)
        self._actual = state

    async def _read_defaults(self, state: SwitchState) -> None:
        """Default actions the controller sets; where they cannot be read they are written again."""
        with contextlib.suppress(finsy.P4ClientError):
            wanted = [finsy.P4TableEntry(table, is_default_action=True) for table in TABLES_WITH_DEFAULT]
            async for entity in self._switch.read(wanted):
                decode_default_into(state, entity, self._switch.p4info)

    async def _write(self, updates: list[Update]) -> None:
        for batch in split_batches(updates):
            await self._switch.write([encode_update(update) for update in batch])
            for update in batch:
                execute(update, self._actual)
            self.updates_written += len(batch)

    def _handle_refused(self, error: Any) -> None:
        """What the switch holds is uncertain now: read it again, then go on from there."""
        self.writes_refused += 1
        reason = str(error)
        LOG.error("switch %d: write refused: %s", self.spec.id, reason)
        self._watcher.switch_refused(self.spec.id, reason)
        if self._retry is None or self._retry.done():
            self._retry = asyncio.create_task(self._reconcile_later(), name=f"switch-{self.spec.id}-retry")

    async def _reconcile_later(self) -> None:
        await asyncio.sleep(REFUSED_PAUSE_S)
        if not self.connected:
            return  # the next connect reads the state anyway
        try:
            async with self._lock:
                await self._read_state()
        except finsy.P4ClientError as error:
            LOG.error("switch %d: state cannot be read: %s", self.spec.id, error)
            return
        self._retry = None
        await self.advance(Stage.RETIRE)


def split_batches(updates: list[Update]) -> list[list[Update]]:
    """Write requests: a switch may execute the updates of one in any order (P4Runtime §12),
    so groups and the entries that name them never share one."""
    batches = []
    for _, same in itertools.groupby(updates, lambda u: (u.stage, type(u.entity), u.operation)):
        waiting = list(same)
        batches += [waiting[at : at + BATCH_UPDATES_MAX] for at in range(0, len(waiting), BATCH_UPDATES_MAX)]
    return batches
