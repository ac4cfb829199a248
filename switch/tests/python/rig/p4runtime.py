"""A P4Runtime client that does nothing but speak the protocol, so that nothing hides.

Names of the P4Info in, protobuf out. Used in tests only; the controller uses finsy.
"""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import text_format

Json = dict[str, Any]
RPC_TIMEOUT_S = 600.0


def to_bytes(value: int) -> bytes:
    """The canonical byte string of P4Runtime: shortest, at least one byte."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class P4RuntimeClient:
    """One session with one switch. Not for use from several threads at once."""

    def __init__(self, address: str, device_id: int, p4info_text: str, election_id: int = 1) -> None:
        self.device_id = device_id
        self.election_id = election_id
        self.p4info = p4i.P4Info()
        text_format.Parse(p4info_text, self.p4info)
        self._by_name = {
            entity.preamble.name: entity
            for kind in ("tables", "actions", "counters", "meters", "controller_packet_metadata")
            for entity in getattr(self.p4info, kind)
        }
        self.channel = grpc.insecure_channel(address)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def wait_ready(self, timeout_s: float) -> None:
        """Waits until the switch accepts connections. Raises grpc.FutureTimeoutError."""
        grpc.channel_ready_future(self.channel).result(timeout=timeout_s)

    # stream channel

    def become_primary(self) -> Any:
        """Opens the stream and asks for primary; returns the arbitration answer."""
        self._stream = self.stub.StreamChannel(iter(self._requests.get, None))
        threading.Thread(target=self._read_stream, daemon=True).start()
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.CopyFrom(U128.encode(self.election_id))
        self._requests.put(request)
        return self.next_response(RPC_TIMEOUT_S).arbitration

    def _read_stream(self) -> None:
        try:
            for response in self._stream:
                self._responses.put(response)
        except grpc.RpcError as error:
            self._responses.put(error)

    def next_response(self, timeout_s: float) -> Any:
        """The next message of the switch. Raises queue.Empty, or the error that ended the stream."""
        response = self._responses.get(timeout=timeout_s)
        if isinstance(response, grpc.RpcError):
            raise response
        return response

    def send_packet(self, payload: bytes, metadata: dict[str, int]) -> None:
        request = p4r.StreamMessageRequest()
        request.packet.payload = payload
        for field in self._by_name["packet_out"].metadata:
            request.packet.metadata.add(metadata_id=field.id, value=to_bytes(metadata.get(field.name, 0)))
        self._requests.put(request)

    def packet_in(self, response: Any) -> tuple[bytes, dict[str, int]] | None:
        """Payload and metadata by name, where a message of the switch is a packet-in."""
        if not response.HasField("packet"):
            return None
        names = {field.id: field.name for field in self._by_name["packet_in"].metadata}
        metadata = {names[m.metadata_id]: int.from_bytes(m.value, "big") for m in response.packet.metadata}
        return response.packet.payload, metadata

    def close(self) -> None:
        self._requests.put(None)
        self.channel.close()

    # pipeline

    def set_pipeline(self, device_config: bytes, action: str = "VERIFY_AND_COMMIT") -> None:
        request = p4r.SetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.election_id.CopyFrom(U128.encode(self.election_id))
        request.action = p4r.SetForwardingPipelineConfigRequest.Action.Value(action)
        request.config.p4info.CopyFrom(self.p4info)
        request.config.p4_device_config = device_config
        self.stub.SetForwardingPipelineConfig(request, timeout=RPC_TIMEOUT_S)

    def get_pipeline(self) -> Any:
        """The program the switch says it runs."""
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        return self.stub.GetForwardingPipelineConfig(request, timeout=RPC_TIMEOUT_S).config

    # writes

    def write(self, updates: list[Any]) -> None:
        """Sends updates in one request."""
        request = p4r.WriteRequest(device_id=self.device_id, updates=updates)
        request.election_id.CopyFrom(U128.encode(self.election_id))
        self.stub.Write(request, timeout=RPC_TIMEOUT_S)

    def write_codes(self, updates: list[Any]) -> list[str]:
        """Sends updates in one request; the canonical code of each, or of the request where it failed whole."""
        try:
            self.write(updates)
        except grpc.RpcError as error:
            trailers = dict(error.trailing_metadata() or ())
            details = trailers.get("grpc-status-details-bin")
            if details is None:
                return [error.code().name]
            status = rpc_status.Status()
            status.ParseFromString(details)
            found = []
            for detail in status.details:
                one = p4r.Error()
                detail.Unpack(one)
                found.append(rpc_code.Code.Name(one.canonical_code))
            return found or [error.code().name]
        return ["OK"] * len(updates)

    def table_update(self, entry: Json, kind: str = "INSERT") -> Any:
        """An update of a table entry, from the form of the vector files."""
        update = p4r.Update(type=p4r.Update.Type.Value(kind))
        target = update.entity.table_entry
        table = self._by_name[entry["table"]]
        target.table_id = table.preamble.id
        for field in table.match_fields:
            if field.name not in entry["key"]:
                continue
            match = target.match.add(field_id=field.id)
            value = entry["key"][field.name]
            if field.match_type == p4i.MatchField.TERNARY:
                match.ternary.value = to_bytes(value["value"])
                match.ternary.mask = to_bytes(value["mask"])
            else:
                match.exact.value = to_bytes(value)
        target.priority = entry.get("priority", 0)
        self._set_action(target.action.action, entry)
        return update

    def default_update(self, entry: Json) -> Any:
        """An update of a default action."""
        update = p4r.Update(type=p4r.Update.MODIFY)
        target = update.entity.table_entry
        target.table_id = self._by_name[entry["table"]].preamble.id
        target.is_default_action = True
        self._set_action(target.action.action, entry)
        return update

    def _set_action(self, target: Any, entry: Json) -> None:
        action = self._by_name[entry["action"]]
        target.action_id = action.preamble.id
        for parameter in action.params:
            value = entry["parameters"][parameter.name]
            number = int(value, 16) if isinstance(value, str) else value
            target.params.add(param_id=parameter.id, value=to_bytes(number))

    def multicast_update(self, group: Json, kind: str = "INSERT") -> Any:
        update = p4r.Update(type=p4r.Update.Type.Value(kind))
        target = update.entity.packet_replication_engine_entry.multicast_group_entry
        target.multicast_group_id = group["id"]
        for replica in group["replicas"]:
            target.replicas.add(egress_port=replica["port"], instance=replica["instance"])
        return update

    def meter_update(self, meter: Json) -> Any:
        """An update of a cell of a meter: one rate, above which all is red."""
        update = p4r.Update(type=p4r.Update.MODIFY)
        target = update.entity.meter_entry
        target.meter_id = self._by_name[meter["meter"]].preamble.id
        target.index.index = meter["index"]
        target.config.cir = target.config.pir = meter["rate_bytes"]
        target.config.cburst = target.config.pburst = meter["burst_bytes"]
        return update

    # reads

    def read(self, entity: Any) -> Iterator[Any]:
        request = p4r.ReadRequest(device_id=self.device_id, entities=[entity])
        for response in self.stub.Read(request, timeout=RPC_TIMEOUT_S):
            yield from response.entities

    def read_counter(self, name: str) -> dict[int, int]:
        """Packets of every cell that is not zero."""
        entity = p4r.Entity()
        entity.counter_entry.counter_id = self._by_name[name].preamble.id
        cells = {}
        for found in self.read(entity):
            if found.counter_entry.data.packet_count:
                cells[found.counter_entry.index.index] = found.counter_entry.data.packet_count
        return cells

    def read_table(self, name: str) -> list[Any]:
        """Entries of a table."""
        entity = p4r.Entity()
        entity.table_entry.table_id = self._by_name[name].preamble.id
        return [found.table_entry for found in self.read(entity)]

    def read_multicast_groups(self) -> list[Json]:
        """All groups, in the form of the vector files."""
        entity = p4r.Entity()
        entity.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        groups = []
        for found in self.read(entity):
            group = found.packet_replication_engine_entry.multicast_group_entry
            replicas = [{"port": r.egress_port, "instance": r.instance} for r in group.replicas]
            groups.append({"id": group.multicast_group_id, "replicas": replicas})
        return groups

    def table_id(self, name: str) -> int:
        return int(self._by_name[name].preamble.id)
