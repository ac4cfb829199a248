"""A P4Runtime server that stands for a switch with a chip: takes a program, keeps what is written to it, and is strict.

It forwards nothing. It speaks gRPC, so a controller needs to know nothing of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import finsy
import grpc
from finsy.p4entity import decode_entity
from finsy.proto import p4r
from finsy.proto.p4.v1 import p4runtime_pb2_grpc

NO_PROGRAM = "No forwarding pipeline config set for this device"


class ChipServer(p4runtime_pb2_grpc.P4RuntimeServicer):
    """One device that knows one program; a controller that loads another is refused."""

    def __init__(self, p4info: Path) -> None:
        self.schema = finsy.P4Schema(p4info)
        self._config: Any = None
        self.held: dict[tuple[Any, ...], Any] = {}
        """Entities by what they are and by their key."""

    @property
    def blob(self) -> bytes:
        """What the controller has loaded."""
        return bytes(self._config.p4_device_config)

    def default_of(self, table: str) -> tuple[str, dict[str, int]] | None:
        """The default action that was set, and its parameters."""
        message = self.held.get(("default", self.schema.tables[table].id))
        if message is None:
            return None
        entry = decode_entity(message, self.schema)
        assert isinstance(entry, finsy.P4TableEntry)
        assert isinstance(entry.action, finsy.P4TableAction)
        return self.schema.actions[entry.action.name].name, dict(entry.action.args)

    def groups(self) -> dict[int, set[int]]:
        """Device ports of the copies of each replication group."""
        return {
            key[1]: {
                copy.egress_port
                for copy in entity.packet_replication_engine_entry.multicast_group_entry.replicas
            }
            for key, entity in self.held.items()
            if key[0] == "group"
        }

    # -- P4Runtime ----------------------------------------------------------

    async def Capabilities(self, _request: Any, _context: Any) -> Any:
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.4.0")

    async def StreamChannel(self, requests: Any, _context: Any) -> AsyncIterator[Any]:
        """Whoever asks is primary; packets go nowhere."""
        async for request in requests:
            if request.HasField("arbitration"):
                answer = p4r.MasterArbitrationUpdate()
                answer.CopyFrom(request.arbitration)
                answer.status.code = 0
                yield p4r.StreamMessageResponse(arbitration=answer)

    async def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        if self._config is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, NO_PROGRAM)
        kinds = p4r.GetForwardingPipelineConfigRequest.ResponseType
        config = p4r.ForwardingPipelineConfig(cookie=self._config.cookie)
        if request.response_type != kinds.COOKIE_ONLY:
            config.p4info.CopyFrom(self._config.p4info)
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        if request.config.p4info != self.schema.p4info:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a program for another chip")
        self._config = request.config
        self.held.clear()
        return p4r.SetForwardingPipelineConfigResponse()

    async def Write(self, request: Any, context: Any) -> Any:
        """All or nothing: what is there is not inserted, what is not there is not changed."""
        held = dict(self.held)
        for update in request.updates:
            key = self._key(update.entity)
            decode_entity(update.entity, self.schema)  # names and widths are those of the program
            is_cell = key[0] in ("default", "meter")
            if not is_cell and (key in held) == (update.type == p4r.Update.INSERT):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{key} is there, or is not")
            if update.type == p4r.Update.DELETE:
                del held[key]
            else:
                held[key] = update.entity
        self.held = held
        return p4r.WriteResponse()

    async def Read(self, request: Any, _context: Any) -> AsyncIterator[Any]:
        found = [
            entity
            for asked in request.entities
            for entity in self.held.values()
            if self._is_asked(asked, entity)
        ]
        yield p4r.ReadResponse(entities=found)

    def _is_asked(self, asked: Any, entity: Any) -> bool:
        kind = asked.WhichOneof("entity")
        if entity.WhichOneof("entity") != kind:
            return False
        if kind == "meter_entry":
            return bool(asked.meter_entry.index == entity.meter_entry.index)
        if kind != "table_entry":
            return True
        wanted, entry = asked.table_entry, entity.table_entry
        is_table = wanted.table_id in (0, entry.table_id)
        return bool(is_table and wanted.is_default_action == entry.is_default_action)

    def _key(self, entity: Any) -> tuple[Any, ...]:
        if entity.HasField("packet_replication_engine_entry"):
            entry = entity.packet_replication_engine_entry.multicast_group_entry
            return "group", entry.multicast_group_id
        if entity.HasField("meter_entry"):
            return "meter", entity.meter_entry.index.index
        entry = entity.table_entry
        if entry.is_default_action:
            return "default", entry.table_id
        match = b"".join(field.SerializeToString() for field in entry.match)
        return "entry", entry.table_id, match, entry.priority


@contextlib.asynccontextmanager
async def serving_chip(p4info: Path) -> AsyncIterator[tuple[ChipServer, str]]:
    """A server, and its address."""
    chip, server = ChipServer(p4info), grpc.aio.server()
    p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server(chip, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield chip, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
