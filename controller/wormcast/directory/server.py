"""The gRPC server agents dial: one stream an agent, the latest plan down, reports up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import urllib.parse
from collections import deque
from collections.abc import AsyncIterator, Container, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import grpc
from wormcast_planner import encode_ask_lag, encode_refused, encode_registered, encode_trace

from wormcast.agentrpc import agent_pb2
from wormcast.directory.messages import (
    COUNTERS_MAX,
    MESSAGE_BYTES_MAX,
    NO_USES,
    NOTHING,
    REVISION_LIMITS,
    BadMessage,
    OpenReceivers,
    RouteUses,
    check_answer,
    check_register,
    check_report,
    clip,
    read_open_receivers,
    read_refused,
    read_route_uses,
)
from wormcast.directory.plans import IssuedPlan
from wormcast.discovery.hosts import NOBODY, Caller, HostRefused
from wormcast.network.ids import Epoch, GroupId, HostId
from wormcast.sockets import CannotListen, SocketAccess, check_address, listen_at, owner_alone

LOG = logging.getLogger("wormcast.directory")

REGISTER_TIMEOUT_S = 60.0
"""From the start of a stream until its Register."""
STREAMS_MAX = 65536
PLAN_BYTES_MAX = 64 << 20
"""What agents read at most."""
CONNECTIONS_MAX = 8192
"""Connections of agents; gRPC closes further ones."""
HANDSHAKE_TIMEOUT_S = 20
"""From a connection until it speaks HTTP/2."""
IDLE_TIMEOUT_S = 60
"""A connection without a stream is closed after so long."""
STOP_GRACE_S = 0.5
CHALLENGE_BYTES = 16

_OPTIONS = [
    # An agent that is paused keeps its stream; one whose host has vanished loses it in the end.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.max_send_message_length", PLAN_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_S * 1000),
    ("grpc.max_connection_idle_ms", IDLE_TIMEOUT_S * 1000),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
]


ASKED_WAITING_MAX = 32
"""Requests for probes, and questions who lags, that wait for one agent."""
ANSWERS_WAITING_BYTES_MAX = 4 << 20
"""Answers of receivers that wait for one agent; what comes beyond is dropped."""


class DirectoryError(Exception):
    """The server cannot listen; the text names the address and the reason."""


class AgentWatcher(Protocol):
    """Who decides about agents and is notified of what they report."""

    def agent_registered(
        self,
        name: str,
        asked: int | None,
        mac: bytes,
        mtu_bytes: int,
        version: str,
        epoch: Epoch,
        groups_max: int = 0,
        members_max: int = 0,
        transit: bool = True,
        revision: int = REVISION_LIMITS,
        caller: Caller = NOBODY,
    ) -> HostId:
        """Admits an agent, and learns what it takes if it says so; raises `HostRefused`."""

    def agent_detached(self, host: HostId) -> None:
        """The agent's stream ended and no other took its place."""

    def plan_applied(
        self, host: HostId, epoch: Epoch, error: str, refused: Mapping[int, str] = NOTHING
    ) -> None:
        """An agent answers a plan. An empty error means it follows it, an error with refused groups
        that it does but for these. Raises `BadMessage`.
        """

    def member_reported(
        self, by: HostId, group: GroupId, origin: int, host: int, reason: str, dead: bool
    ) -> None:
        """An agent saw another one fail."""

    def member_slow(self, by: HostId, group: GroupId, origin: int, host: int) -> None:
        """At a member a message is taken slower than it comes."""

    def statistics_received(
        self, host: HostId, counters: Iterable[tuple[str, int, int]], routes: RouteUses = NO_USES
    ) -> None:
        """Counters of an agent: name, group, value; and how many messages took its routes, by destination."""

    def receivers_told(self, host: HostId, receivers: OpenReceivers) -> None:
        """All receivers that are open at a host."""

    def share_group(self, group: GroupId, *hosts: HostId) -> bool:
        """Whether all of these are members of a group."""


class TraceWatcher(Protocol):
    """Who is notified of traces. Both methods raise `BadMessage`."""

    def trace_sent(self, host: HostId, sent: Any) -> None:
        """A `TraceSent` of an agent."""

    def probe_seen(self, host: HostId, seen: Any) -> None:
        """A `ProbeSeen` of an agent."""


class LagWatcher(Protocol):
    """Who is notified of who lags."""

    def lag_answered(self, host: HostId, answer: Any) -> None:
        """A `LagAnswer` of an agent. Raises `BadMessage`."""

    def branch_answered(self, host: HostId, answer: Any) -> None:
        """A `BranchAnswer` of an agent."""


class TransferWatcher(Protocol):
    """Who is notified of files that hosts send. Both methods raise `BadMessage`."""

    def transfer_reported(self, host: HostId, report: Any) -> None:
        """A `TransferReport` of an agent."""

    def transfers_counted(self, host: HostId, count: Any) -> None:
        """A `TransferCount` of an agent."""


class _Stream:
    """One attached agent. Holds the latest plan only: a slow agent skips the ones between."""

    def __init__(self, host: HostId, name: str) -> None:
        self.host = host
        self.name = name
        self.plan: IssuedPlan | None = None
        """To be sent."""
        self.sent: IssuedPlan | None = None
        """The last that was sent."""
        self.changes_from: Epoch | None = None
        """The first of those that were sent as changes, since the last that was sent whole."""
        self.whole_next = True
        """The agent may lack what was sent: the next plan is sent whole."""
        self.asked: deque[bytes] = deque(maxlen=ASKED_WAITING_MAX)
        """Requests for probes, and questions who lags, encoded. The oldest goes if the agent is slow: they are sent
        again."""
        self.answers: deque[bytes] = deque()
        """Of receivers to messages of this host, encoded."""
        self.answers_bytes = 0
        self.ending = ""
        self.wake = asyncio.Event()

    def offer(self, plan: IssuedPlan) -> None:
        self.plan = plan
        self.wake.set()

    def lacks_base(self, epoch: Epoch, refused: Mapping[int, str]) -> bool:
        """The agent did not take a plan, or not all groups of it. Whether it may lack the one before, because the plan
        was sent as a change; then it gets the whole one.
        """
        self.whole_next = True
        if refused or self.sent is None or self.changes_from is None:
            return False
        if epoch == self.sent.epoch:
            self.offer(self.plan or self.sent)
        return self.changes_from <= epoch <= self.sent.epoch

    def end(self, reason: str) -> None:
        self.ending = reason
        self.wake.set()


class AgentDirectory:
    """Serves `AgentDirectory` of agent.proto.

    The first plan on a stream is whole, later ones as changes.
    """

    def __init__(self, watcher: AgentWatcher) -> None:
        self._watcher = watcher
        self._streams: dict[HostId, _Stream] = {}
        self._plans: dict[HostId, IssuedPlan] = {}
        self.traces: TraceWatcher | None = None
        self.lags: LagWatcher | None = None
        self.transfers: TransferWatcher | None = None
        self._server: Any = None
        self.refused = 0
        """Registrations refused."""
        self._last_refusal = ""
        self.plans_sent = 0
        self.changes_sent = 0
        """Of these, those that were sent as changes."""
        self.bad_messages = 0
        """Messages that no agent sends; each ended its stream."""
        self.plans_too_long = 0
        """Plans that were not sent because no agent reads them."""
        self.answers_dropped = 0
        """Answers of receivers for which there was no room, or nobody to have them."""

    async def start(self, addresses: Iterable[str], access: SocketAccess | None = None) -> list[str]:
        """Listens on `unix:/path`, for those with access, and `host:port`; returns them with the ports in use."""
        self._server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=STREAMS_MAX)
        self._server.add_generic_rpc_handlers((self._handler(),))
        bound = []
        for address in addresses:
            bound.append(self._bind(address, access or SocketAccess()))
        await self._server.start()
        return bound

    def _handler(self) -> Any:
        """The planner has encoded the answers."""
        attach = grpc.stream_stream_rpc_method_handler(
            self.Attach, request_deserializer=agent_pb2.AgentMessage.FromString, response_serializer=bytes
        )
        name = agent_pb2.DESCRIPTOR.services_by_name["AgentDirectory"].full_name
        return grpc.method_handlers_generic_handler(name, {"Attach": attach})

    def _bind(self, address: str, access: SocketAccess) -> str:
        try:
            if address.startswith("unix:"):
                path = Path(address.removeprefix("unix:"))
                # gRPC makes the file here; it does not say why it cannot, so that is found out first.
                listen_at(path, access).close()
                path.unlink()
                with owner_alone():
                    port = self._server.add_insecure_port(address)
                access.grant(path)
            else:
                check_address(address)
                port = self._server.add_insecure_port(address)
        except CannotListen as error:
            raise DirectoryError(f"agents cannot be served on {address}: {error}") from error
        except (RuntimeError, OSError) as error:
            raise DirectoryError(f"agents cannot be served on {address}: the system refused it") from error
        return address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        """Closes all streams; agents keep their plans and dial again."""
        for stream in list(self._streams.values()):
            stream.end("the controller stops")
        if self._server is not None:
            await self._server.stop(STOP_GRACE_S)

    def publish(self, plans: dict[HostId, IssuedPlan]) -> None:
        """Makes these plans those in force; attached agents get them at once, others when they attach.

        Other agents keep theirs, and one that has got the same before does not get it again.
        """
        for host, plan in plans.items():
            before = self._plans.get(host)
            if before is plan or before == plan:
                continue
            self._plans[host] = plan
            stream = self._streams.get(host)
            if stream is not None:
                stream.offer(plan)

    def withdraw(self, kept: Container[HostId]) -> None:
        """Forgets the plans of all hosts but these; attached agents keep what they have."""
        for host in [host for host in self._plans if host not in kept]:
            del self._plans[host]

    def trace(self, host: HostId, request: dict[str, Any]) -> bool:
        """Asks the agent of a host for probes, by the fields of `Trace`; false if it is not attached."""
        return self._ask(host, encode_trace(**request))

    def ask_lag(self, host: HostId, request: dict[str, Any]) -> bool:
        """Asks the agent of a host who lags, by the fields of `AskLag`; false if it is not attached."""
        return self._ask(host, encode_ask_lag(**request))

    def _ask(self, host: HostId, message: bytes) -> bool:
        stream = self._streams.get(host)
        if stream is None:
            return False
        stream.asked.append(message)
        stream.wake.set()
        return True

    def is_attached(self, host: HostId) -> bool:
        """Whether a host has a stream."""
        return host in self._streams

    def attached(self) -> list[HostId]:
        """Hosts with a stream."""
        return sorted(self._streams)

    async def Attach(self, messages: AsyncIterator[Any], context: Any) -> AsyncIterator[bytes]:
        """One agent's stream."""
        try:
            first = await asyncio.wait_for(anext(messages), REGISTER_TIMEOUT_S)
        except (TimeoutError, StopAsyncIteration):
            await context.abort(
                grpc.StatusCode.DEADLINE_EXCEEDED, f"no Register within {REGISTER_TIMEOUT_S:g} s"
            )
            return
        if first.WhichOneof("body") != "register":
            self._note_bad("an agent", "its first message is not Register")
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the first message must be Register")
            return
        try:
            caller = Caller(
                first.register.secret, secrets.token_bytes(CHALLENGE_BYTES), _address(context.peer())
            )
            stream = self._admit(first.register, caller)
        except HostRefused as error:
            self.refused += 1
            if (refusal := f"{first.register.name[:64]!r}: {error}") != self._last_refusal:
                self._last_refusal = refusal
                LOG.warning("agent %s refused; more refusals like this are only counted", refusal)
            yield encode_refused(f"{error}; value {error.value!r}, possible: {error.bound}")
            return
        reader = asyncio.create_task(self._read(stream, messages), name=f"agent-{stream.name}")
        try:
            yield encode_registered(stream.host, caller.challenge)
            async for message in self._write(stream):
                yield message
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            if self._streams.get(stream.host) is stream:
                del self._streams[stream.host]
                self._watcher.agent_detached(stream.host)
                LOG.info(
                    "agent %r (host %d) disconnected: %s",
                    stream.name,
                    stream.host,
                    stream.ending or "it closed",
                )

    def _admit(self, register: Any, caller: Caller) -> _Stream:
        check_register(register)
        host = self._watcher.agent_registered(
            register.name,
            register.host_id if register.HasField("host_id") else None,
            register.mac,
            register.mtu,
            register.version,
            Epoch(register.plan_epoch),
            register.groups_max,
            register.members_max,
            not register.no_transit,
            register.revision,
            caller,
        )
        for old in [s for s in self._streams.values() if s.host == host or s.name == register.name]:
            del self._streams[old.host]
            old.end("replaced: another agent registered under the same name")
        stream = self._streams[host] = _Stream(host, register.name)
        if host in self._plans:
            stream.offer(self._plans[host])
        LOG.info("agent %r is host %d", register.name, host)
        return stream

    async def _write(self, stream: _Stream) -> AsyncIterator[bytes]:
        while True:
            await stream.wake.wait()
            stream.wake.clear()
            if stream.ending:
                if stream.ending.startswith("replaced"):
                    yield encode_refused(stream.ending)
                return
            if stream.plan is not None:
                plan, stream.plan = stream.plan, None
                message = self._encode(stream, plan)
                if len(message) > PLAN_BYTES_MAX:
                    self._note_too_long(stream, len(message))
                    continue
                stream.sent = plan
                self.plans_sent += 1
                yield message
            while stream.asked:
                yield stream.asked.popleft()
            while stream.answers:
                answer = stream.answers.popleft()
                stream.answers_bytes -= len(answer)
                yield answer

    def _pass_on(self, host: HostId, answer: Any) -> None:
        """A receiver's answer goes to the origin of the message, if both are members. It is kept nowhere."""
        group, origin = GroupId(answer.group), HostId(answer.host)
        stream = self._streams.get(origin)
        passed = agent_pb2.Answer(group=group, host=host, text=answer.text)
        message = agent_pb2.ControllerMessage(answer=passed).SerializeToString()
        if (
            stream is None
            or stream.answers_bytes + len(message) > ANSWERS_WAITING_BYTES_MAX
            or not self._watcher.share_group(group, host, origin)
        ):
            self.answers_dropped += 1
            return
        stream.answers.append(message)
        stream.answers_bytes += len(message)
        stream.wake.set()

    def _encode(self, stream: _Stream, plan: IssuedPlan) -> bytes:
        """A plan, by what is other than in the last that the stream brought, if it brought one."""
        change = None
        if stream.sent is not None and not stream.whole_next:
            change = plan.encode_change(stream.sent)
        stream.whole_next = False
        if change is None:
            stream.changes_from = None
            return plan.encode()
        stream.changes_from = stream.changes_from or plan.epoch
        self.changes_sent += 1
        return change

    def _note_too_long(self, stream: _Stream, length: int) -> None:
        self.plans_too_long += 1
        LOG.error(
            "the plan of host %d has %d bytes, agents read at most %d; the host keeps the plan before",
            stream.host,
            length,
            PLAN_BYTES_MAX,
        )

    async def _read(self, stream: _Stream, messages: AsyncIterator[Any]) -> None:
        try:
            async for message in messages:
                if self._streams.get(stream.host) is stream:
                    self._handle_message(stream, message)
            stream.end("it closed")
        except BadMessage as error:
            self._note_bad(f"agent {stream.name!r} (host {stream.host})", str(error))
            stream.end(f"bad message: {error}")
        except grpc.RpcError as error:
            stream.end(str(error))
        except Exception as error:
            # A bug, or bytes that are no message: this stream alone is lost.
            self._note_bad(f"agent {stream.name!r} (host {stream.host})", f"{type(error).__name__}: {error}")
            stream.end("its message could not be handled")

    def _note_bad(self, whose: str, reason: str) -> None:
        """Counts a bad message; the first one is logged."""
        self.bad_messages += 1
        if self.bad_messages == 1:
            LOG.warning("%s sent a bad message: %s; more of them are only counted", whose, reason)

    def _handle_message(self, stream: _Stream, message: Any) -> None:
        host = stream.host
        match message.WhichOneof("body"):
            case "plan_applied":
                applied = message.plan_applied
                epoch, refused = Epoch(applied.epoch), read_refused(applied)
                if applied.error and stream.lacks_base(epoch, refused):
                    return
                self._watcher.plan_applied(host, epoch, clip(applied.error), refused)
            case "member_report":
                report = message.member_report
                check_report(report)
                reason = clip(report.reason)
                about = (host, GroupId(report.group), report.origin, report.host)
                if report.slow:
                    self._watcher.member_slow(*about)
                else:
                    self._watcher.member_reported(*about, reason, report.host_dead)
            case "statistics":
                self._watcher.statistics_received(
                    host,
                    [(c.name, c.group, c.value) for c in message.statistics.counters[:COUNTERS_MAX]],
                    read_route_uses(message.statistics),
                )
                if self.transfers is not None and message.statistics.HasField("transfers"):
                    self.transfers.transfers_counted(host, message.statistics.transfers)
            case "open_receivers":
                self._watcher.receivers_told(host, read_open_receivers(message.open_receivers))
            case "answer":
                check_answer(message.answer)
                self._pass_on(host, message.answer)
            case "trace_sent" if self.traces is not None:
                self.traces.trace_sent(host, message.trace_sent)
            case "probe_seen" if self.traces is not None:
                self.traces.probe_seen(host, message.probe_seen)
            case "lag_answer" if self.lags is not None:
                self.lags.lag_answered(host, message.lag_answer)
            case "branch_answer" if self.lags is not None:
                self.lags.branch_answered(host, message.branch_answer)
            case "transfer_report" if self.transfers is not None:
                self.transfers.transfer_reported(host, message.transfer_report)
            case "register":
                raise BadMessage("a second Register")
            case _:
                pass  # an agent of a later version may say things this controller does not know


def _address(peer: str) -> str:
    """Where an agent called from, of what gRPC says: `ipv4:10.0.0.3:4312`, `ipv6:%5B::1%5D:4312`, `unix:`."""
    kind, _, address = urllib.parse.unquote(peer).partition(":")
    return "a Unix socket of the controller" if kind == "unix" else address
