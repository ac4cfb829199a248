"""One switch: stays connected, keeps the pipeline and the state it should have, carries LLDP.

The session is level-triggered: it compares what the switch must have with what
it holds and writes the difference. What it holds is read after every connect
and after every refused write, and followed by a shadow in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import functools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import finsy
from finsy.p4schema import P4SchemaCache
from wormcast_planner import Place, SwitchState, Update

from wormcast.discovery.port_rates import HANDED_IN_BURST, HANDED_IN_PER_S
from wormcast.network.ids import IPV4_ETHERTYPE, LLDP_ETHERTYPE, PortId, SwitchId
from wormcast.p4rt.artifacts import Artifacts
from wormcast.p4rt.channels import allow_unix_sockets
from wormcast.p4rt.convert import METER_PUNTS, encode_update
from wormcast.p4rt.device_ports import MAP_TABLES, DevicePorts, MapEntries, map_updates
from wormcast.p4rt.eviction import evict_foreign_groups
from wormcast.p4rt.port_states import AnnouncedPorts, follow_ports
from wormcast.p4rt.state_reader import StateReader
from wormcast.p4rt.tables import BATCH_UPDATES_MAX, Refusal, Stage, Strayed, SwitchTables, split_batches
from wormcast.store.database import SwitchSpec

__all__ = ["BATCH_UPDATES_MAX", "SwitchSession", "SwitchWatcher", "split_batches"]

LOG = logging.getLogger("wormcast.p4rt")
allow_unix_sockets()
SHARED_SCHEMAS = contextvars.copy_context()
"""Where finsy parses a P4Info once, and not for every attempt to reach a switch."""
SHARED_SCHEMAS.run(P4SchemaCache().__enter__)

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0
"""Longest pause between two attempts to reach a switch; attempts never end."""
CONNECT_TIMEOUT_S = 15.0
"""From the dial until the pipeline is in place."""
PACKET_IN_MAX = 1024
"""Packet-ins waiting to be read; finsy drops and logs further ones."""
OUTBOX_MAX = 1024
"""Packet-outs waiting to be sent."""
REFUSED_PAUSE_S = 1.0
"""Between a refused write and the next attempt to reach the desired state; doubles up to `REFUSED_PAUSE_MAX_S`."""
REFUSED_PAUSE_MAX_S = 60.0
REPORTED_MAX = 64
"""Different reasons of refusal that are reported until all is well again."""
SHRINK_TRIES_MAX = 3
"""A switch that so often refuses to give up ports of its old trees is not waited for any longer."""
READ_BACK_INTERVAL_S = 1.0
"""From the reading of one part of a switch's tables until the next."""
READ_BACK_ROUND_S = 50.0
"""All parts have been read after so long, where there are more switches than `READ_BACKS_PER_S` allows."""
READ_BACKS_PER_S = 32
"""Parts read a second in a fabric, while all can be within `READ_BACK_ROUND_S`."""
EXPECTED_S = 1.0
"""A session that is lost, or was never there, is waited for so long: the switch may go on with its old state."""


class SwitchWatcher(Protocol):
    """Who is notified of what happens at a switch."""

    def switch_connected(self, switch: SwitchId) -> None:
        """The session is primary, the pipeline runs, the state has been read."""

    def switch_disconnected(self, switch: SwitchId, reason: str) -> None:
        """The session ended."""

    def switch_demoted(self, switch: SwitchId, reason: str) -> None:
        """Another controller is primary: this one neither writes nor hears packets, and waits for its turn."""

    def switch_refused(self, switch: SwitchId, reason: str, group: int | None) -> None:
        """A write failed, of that group number if it is known; reported once, tried again."""

    def switch_strayed(self, switch: SwitchId, part: str, strayed: Strayed) -> None:
        """A part of its tables is not as it was written: it is to be written again."""

    def switch_out_of_step(self, switch: SwitchId) -> None:
        """It is time to write to the switch again."""

    def packet_received(self, switch: SwitchId, port: PortId, frame: bytes) -> None:
        """An LLDP frame came in."""

    def port_states_changed(self, switch: SwitchId, states: AnnouncedPorts | None) -> None:
        """What the switch says of its ports; None: it does not, or no more."""


class SwitchSession:
    def __init__(
        self,
        spec: SwitchSpec,
        artifacts: Artifacts,
        election_id: int,
        watcher: SwitchWatcher,
        switches: Callable[[], int] = lambda: 1,
    ) -> None:
        """`switches`: how many there are."""
        self.spec = spec
        self._switches = switches
        self.connected = False
        self.last_error = "not connected yet"
        self.updates_written = 0
        self.writes_refused = 0
        self.strayed = 0
        """Entries, groups and the like that were found other than written."""
        self.read_back_at: float | None = None
        """Since then, on the monotonic clock, all parts have been read back; None: not yet."""
        self.connects = 0
        self.probes_dropped = 0
        """Packet-outs dropped because `OUTBOX_MAX` waited."""
        self.packets_failed = 0
        """Packet-ins that could not be handled, which is a bug."""
        self._artifacts = artifacts
        self._election_id = election_id
        self._watcher = watcher
        self._switch: Any = None
        self.tables = SwitchTables()
        self._lock = asyncio.Lock()
        self._advancing: dict[Stage, asyncio.Task[None]] = {}
        """Tasks that have not begun to write."""
        self._uncertain = False
        """What the switch holds must be read before it is written to."""
        self._expected_until = 0.0
        """Without a session, stages wait for one until then."""
        self._changed = asyncio.Event()
        """The session came or went."""
        self._refused_pause_s = REFUSED_PAUSE_S
        self._reported: set[str] = set()
        self._ended = asyncio.Event()
        self._outbox: asyncio.Queue[Any] = asyncio.Queue(OUTBOX_MAX)
        self._encoded: dict[PortId, Any] = {}
        """A packet-out for each port, but for its frame: to encode one takes longer than to copy it."""
        self._task: asyncio.Task[None] | None = None
        self._retry: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to connect, for ever."""
        self._expected_until = time.monotonic() + EXPECTED_S
        self._task = asyncio.create_task(self._run(), name=f"switch-{self.spec.id}", context=SHARED_SCHEMAS)

    def respecify(self, spec: SwitchSpec) -> None:
        """The switch is the same, what is said of its ports may be other. A new map of device ports is written."""
        moved = spec.device_ports != self.spec.device_ports
        self.spec = spec
        if moved and self.connected:
            self._uncertain = True
            self._watcher.switch_out_of_step(spec.id)

    async def stop(self) -> None:
        """Ends the session. The switch keeps what it has."""
        for task in (self._retry, self._task, *self._advancing.values()):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def send(self, port: PortId, frame: bytes) -> None:
        """Packet-out; lost when there is no connection, as on a wire."""
        if not self.connected:
            return
        encoded = self._encoded.get(port)
        if encoded is None:
            encoded = finsy.P4PacketOut(b"", egress_port=port, pad=0).encode_update(self._switch.p4info)
            self._encoded[port] = encoded
        message = copy.copy(encoded)
        message.packet.payload = frame
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
        except Exception as error:
            # Whatever a switch says: its session ends, and is tried again.
            reason = f"{address}: {_innermost(error)}"
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
        self._changed.set()
        if self.connected:
            self.connected = False
            self._expected_until = time.monotonic() + EXPECTED_S
            self._watcher.switch_disconnected(self.spec.id, reason)

    async def _serve(self, switch: Any) -> None:
        """Runs in a task of finsy's once the pipeline stands; an exception ends the session."""
        self._switch = switch
        if not switch.is_primary:
            self.last_error = f"another controller is primary (election id {switch.primary_id})"
            LOG.warning("switch %d: %s", self.spec.id, self.last_error)
            self.connected = False
            self._expected_until = 0.0
            self._watcher.switch_demoted(self.spec.id, self.last_error)
            return
        async with self._lock:
            await self._read_state()
            await self._bound_packet_ins()
            self._outbox = asyncio.Queue(OUTBOX_MAX)
            self.connected = True
            self._changed.set()
            self._reported.clear()
            self._refused_pause_s = REFUSED_PAUSE_S
            self.read_back_at = None
            self.connects += 1
            self.last_error = ""
        LOG.info("switch %d: connected to %s", self.spec.id, self.spec.address)
        switch.create_task(self._send_packets(), name="packet-out")
        switch.create_task(self._receive_packets(switch), name="packet-in")
        switch.create_task(self._follow_ports(), name="ports")
        switch.create_task(self._read_back(), name="read-back")
        self._watcher.switch_connected(self.spec.id)

    async def _follow_ports(self) -> None:
        """For as long as there is a session. What is wrong with gNMI costs the news of ports, and nothing else."""
        try:
            async for states in follow_ports(self.spec.address, self.spec.device_id):
                self._watcher.port_states_changed(self.spec.id, states)
        except Exception as error:
            LOG.warning("switch %d: gNMI: %s: %s", self.spec.id, type(error).__name__, error)
        finally:
            self._watcher.port_states_changed(self.spec.id, None)

    async def _send_packets(self) -> None:
        while True:
            await self._switch.write([await self._outbox.get()])

    async def _receive_packets(self, switch: Any) -> None:
        # IPv4 is IGMP: p4src/CONTRACT.md, Packet-in.
        kinds = [LLDP_ETHERTYPE, IPV4_ETHERTYPE]
        async for packet in switch.read_packets(queue_size=PACKET_IN_MAX, eth_types=kinds):
            try:
                self._watcher.packet_received(self.spec.id, PortId(packet["ingress_port"]), packet.payload)
            except Exception:
                # One frame must not cost the session.
                self.packets_failed += 1
                if self.packets_failed == 1:
                    LOG.exception(
                        "switch %d: a packet-in failed; more failures are only counted", self.spec.id
                    )

    # -- writing ------------------------------------------------------------

    def desire(self, state: SwitchState, touched: Iterable[Place] | None = None) -> None:
        """Says what the switch must have, and where that is new (None: anywhere); `advance` writes it."""
        self.tables.desire(state, touched)

    @property
    def in_step(self) -> bool:
        """Whether there is nothing to be written now; so it is without a connection too."""
        return not self.connected or (self.tables.in_step and not self._uncertain)

    def advance(self, stage: Stage) -> asyncio.Task[None]:
        """Writes what differs, up to and including a stage; the task ends when that is done.

        It waits for a session that is expected, and tries again what is refused of SHRINK, at
        most `SHRINK_TRIES_MAX` times. Calls that come before it has begun share a task.
        """
        task = self._advancing.get(stage)
        if task is None:
            task = asyncio.create_task(self._advance(stage), name=f"switch-{self.spec.id}-{stage.name}")
            self._advancing[stage] = task
            task.add_done_callback(lambda done: self._forget_advance(stage, done))
        return task

    async def revoke(self, wanted: SwitchState) -> None:
        """Takes away what the guard admits beyond the state, unless something else is desired by now."""
        async with self._lock:
            if self.connected and self.tables.desired is wanted and self.tables.revocable:
                await self._write(Stage.REVOKE)

    def _forget_advance(self, stage: Stage, done: asyncio.Task[None]) -> None:
        if self._advancing.get(stage) is done:
            del self._advancing[stage]
        if not done.cancelled() and (error := done.exception()) is not None:
            self._report(f"stage {stage.name} failed: {type(error).__name__}: {error}", None)

    async def _advance(self, stage: Stage) -> None:
        tries = SHRINK_TRIES_MAX if stage is Stage.SHRINK else 1
        for _ in range(tries):
            await self._await_session()
            async with self._lock:
                # From here on it is about what is desired now; later calls are about later plans.
                if self._advancing.get(stage) is asyncio.current_task():
                    del self._advancing[stage]
                if not self.connected or await self._write(stage):
                    return
            await asyncio.sleep(self._refused_pause_s)

    async def _await_session(self) -> None:
        while not self.connected and (left_s := self._expected_until - time.monotonic()) > 0:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left_s)

    async def _write(self, stage: Stage) -> bool:
        """True when nothing was refused."""
        try:
            if self._uncertain:
                await self._read_state()
            taken = True
            for batch in split_batches(self.tables.due(stage)):
                taken &= await self._write_batch([u for u in batch if self.tables.is_possible(u)])
            if stage >= Stage.RETIRE:
                self.tables.settle()
        except finsy.P4ClientError as error:
            taken = False
            self._doubt(f"its state cannot be read: {error.message or error.code.name}")
        if taken and stage >= Stage.RETIRE and not self.tables.refusals:
            self._refused_pause_s = REFUSED_PAUSE_S
            self._reported.clear()
        return taken

    async def _write_batch(self, batch: list[Update]) -> bool:
        if not batch:
            return True
        try:
            await self._switch.write(self._encode(batch))
        except finsy.P4ClientError as error:
            self._take_refusal(batch, error)
            return False
        except (ValueError, TypeError, LookupError) as error:
            # Not even a message can be made of it: one by one tells which.
            if len(batch) > 1:
                return all([await self._write_batch([update]) for update in batch])
            self.writes_refused += 1
            self._note_refusal(self.tables.refuse(batch[0], f"{type(error).__name__}: {error}"))
            return False
        self.tables.executed(batch)
        self.updates_written += len(batch)
        return True

    def _take_refusal(self, batch: list[Update], error: Any) -> None:
        """What was refused is not written again at once; the rest of the batch was executed (P4Runtime §12.3)."""
        self.writes_refused += 1
        failed = error.details
        if not failed or max(failed) >= len(batch):
            self._doubt(f"write of {len(batch)} updates refused: {error.message or error.code.name}")
            return
        self.tables.executed(update for n, update in enumerate(batch) if n not in failed)
        self.updates_written += len(batch) - len(failed)
        for n, detail in failed.items():
            reason = detail.message or detail.canonical_code.name
            self._note_refusal(self.tables.refuse(batch[n], reason))

    def _note_refusal(self, refusal: Refusal) -> None:
        self._report(str(refusal), refusal.group)
        self._retry_later()

    def _doubt(self, reason: str) -> None:
        """What the switch holds is not known any more: it is read before the next write."""
        self._uncertain = True
        self._report(reason, None)
        self._retry_later()

    def _report(self, reason: str, group: int | None) -> None:
        """Tells the watcher once for each reason, until all is well again."""
        if reason in self._reported or len(self._reported) >= REPORTED_MAX:
            return
        self._reported.add(reason)
        LOG.error("switch %d: %s", self.spec.id, reason)
        self._watcher.switch_refused(self.spec.id, reason, group)

    def _retry_later(self) -> None:
        if self._retry is None or self._retry.done():
            self._retry = asyncio.create_task(self._retry_once(), name=f"switch-{self.spec.id}-retry")

    async def _retry_once(self) -> None:
        await asyncio.sleep(self._refused_pause_s)
        self._refused_pause_s = min(2 * self._refused_pause_s, REFUSED_PAUSE_MAX_S)
        if self.connected:  # else the next connect reads the state anyway
            self._uncertain = True
            self._watcher.switch_out_of_step(self.spec.id)

    def _encode(self, batch: list[Update]) -> list[Any]:
        if (device_ports := self._device_ports()) is None:
            return [encode_update(update) for update in batch]
        return [encode_update(update, device_ports) for update in batch]

    def _device_ports(self) -> DevicePorts | None:
        """The map of ports, where the program needs one."""
        return DevicePorts(self.spec.device_ports) if self._artifacts.has_device_ports else None

    def _reader(self) -> StateReader:
        tell = functools.partial(self._report, group=None)
        return StateReader(self._switch, self._artifacts, self.spec.ports, self._device_ports(), tell)

    async def _read_state(self) -> None:
        reader = self._reader()
        self.tables.found(await reader.read_all())
        self._uncertain = False
        if (device_ports := self._device_ports()) is not None:
            await self._write_map(device_ports, reader.map)

    # -- reading back ---------------------------------------------------------

    async def _read_back(self) -> None:
        """For as long as there is a session: others may write to the switch too, and none of them says so."""
        parts = self._reader().parts()
        read_at = dict.fromkeys(parts, time.monotonic())
        while True:
            for part in parts:
                await asyncio.sleep(rest_s(len(parts), self._switches()))
                async with self._lock:
                    if self.connected and not self._uncertain and await self._read_part(part):
                        read_at[part] = time.monotonic()
                        self.read_back_at = min(read_at.values())

    async def _read_part(self, part: str) -> bool:
        """Compares a part with what was written; whether it could be read."""
        reader, found = self._reader(), SwitchState()
        try:
            await reader.read(part, found)
        except finsy.P4ClientError:
            return False  # a session that has ended is reported elsewhere; of the rest its age says so
        strayed = self.tables.read_back(part, found)
        device_ports = self._device_ports()
        if device_ports is not None and part in MAP_TABLES:
            wanted = {key: value for key, value in device_ports.entries().items() if key[0] == part}
            if updates := map_updates(wanted, reader.map):
                strayed = Strayed(changed=sum(map(len, updates)))
                self._uncertain = True  # the map is written where all is read
        if strayed is not None:
            self.strayed += strayed.missing + strayed.changed + strayed.extra
            LOG.warning("switch %d: %s: %s", self.spec.id, part, strayed)
            self._watcher.switch_strayed(self.spec.id, part, strayed)
        return True

    async def _write_map(self, device_ports: DevicePorts, held: MapEntries) -> None:
        """The map of ports comes before all that names one, and is in no plan."""
        for updates in map_updates(device_ports.entries(), held):
            try:
                await self._switch.write(updates)
            except finsy.P4ClientError as error:
                self._doubt(f"the map of device ports is refused: {error.message or error.code.name}")
                return
            self.updates_written += len(updates)

    async def _bound_packet_ins(self) -> None:
        """What one port brings must not be all that a switch hands in. These cells are always the same, and in no plan."""
        if self._artifacts.schema.meters.get(METER_PUNTS) is None:
            return
        rate, burst = HANDED_IN_PER_S, HANDED_IN_BURST
        config = finsy.P4MeterConfig(cir=rate, cburst=burst, pir=rate, pburst=burst)
        cells = [
            ~finsy.P4MeterEntry(METER_PUNTS, index=port, config=config) for port in range(self.spec.ports)
        ]
        try:
            await self._switch.write(cells)
        except finsy.P4ClientError as error:
            self._report(f"packet-ins are not bounded: {error.message or error.code.name}", None)


def rest_s(parts: int, switches: int) -> float:
    """How long a switch rests between the readings of two parts."""
    return min(max(READ_BACK_INTERVAL_S, switches / READ_BACKS_PER_S), READ_BACK_ROUND_S / parts)


def _innermost(error: BaseException) -> str:
    """What really happened, where tasks have wrapped it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
