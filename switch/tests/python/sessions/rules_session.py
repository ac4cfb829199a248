"""The rules of P4Runtime a controller leans on, tried out one by one. Prints JSON.

rules_session.py [--bad-program] ADDRESS DEVICE ELECTION P4INFO DEVICE_CONFIG
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import grpc
from finsy.proto import p4r, rpc_code
from rig.p4runtime import P4RuntimeClient

PORT_5 = {"table": "ingress.ports", "key": {"port": 5}, "action": "ingress.port_known", "parameters": {}}
PORT_6 = {**PORT_5, "key": {"port": 6}}
WIDE_PORT = {**PORT_5, "key": {"port": 512}}
NO_KEY = {**PORT_5, "key": {}}
GROUP_7 = {
    "table": "ingress.groups",
    "key": {"group": 7},
    "action": "ingress.replicate",
    "parameters": {"mgid": 16384},
}
WRONG_ACTION = {**GROUP_7, "key": {"group": 8}, "action": "ingress.port_known"}
CLASS_D = {
    "table": "ingress.class_d",
    "key": {"hdr.ipv4.dst": {"value": 0xEF010107, "mask": 0xFFFFFFFF}},
    "action": "ingress.enter_group",
    "parameters": {"group": 7},
    "priority": 10,
}
FULL_MASK = "0x" + "f" * 32


def main() -> None:
    """Runs the rules against a switch that has the program and nothing else."""
    *flags, address, device, election, p4info, device_config = sys.argv[1:]
    text = Path(p4info).read_text()
    seen: dict[str, Any] = {}
    client = P4RuntimeClient(address, int(device), text, int(election))
    client.wait_ready(10)
    seen["arbitration"] = rpc_code.Code.Name(client.become_primary().status.code)
    seen["capabilities"] = client.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version

    seen["pipeline"] = client.get_pipeline().p4info == client.p4info
    for name, update in {
        "insert": client.table_update(PORT_5),
        "insert again": client.table_update(PORT_5),
        "modify": client.table_update(PORT_5, "MODIFY"),
        "modify missing": client.table_update(PORT_6, "MODIFY"),
        "delete missing": client.table_update(PORT_6, "DELETE"),
        "key too wide": client.table_update(WIDE_PORT),
        "exact key left out": client.table_update(NO_KEY),
        "action of another table": client.table_update(WRONG_ACTION),
        "ternary": client.table_update(CLASS_D),
        "ternary without priority": client.table_update({**CLASS_D, "priority": 0}),
        "ternary at another priority": client.table_update({**CLASS_D, "priority": 11}),
        "exact with priority": client.table_update({**PORT_6, "priority": 1}),
        "default of tree_sets": client.default_update(
            {
                "table": "ingress.tree_sets",
                "action": "ingress.replicate_filtered",
                "parameters": {"low": FULL_MASK, "high": "0x0"},
            }
        ),
        "default that is const": client.default_update(
            {"table": "ingress.ports", "action": "ingress.port_unknown", "parameters": {}}
        ),
        "multicast group": client.multicast_update({"id": 16384, "replicas": [{"port": 1, "instance": 1}]}),
        "multicast group again": client.multicast_update(
            {"id": 16384, "replicas": [{"port": 1, "instance": 1}]}
        ),
        "multicast group 0": client.multicast_update({"id": 0, "replicas": [{"port": 1, "instance": 1}]}),
        "multicast replica twice": client.multicast_update(
            {"id": 16385, "replicas": [{"port": 1, "instance": 1}] * 2}
        ),
        "multicast delete missing": client.multicast_update({"id": 20000, "replicas": []}, "DELETE"),
    }.items():
        [seen[name]] = client.write_codes([update])
    seen["batch"] = client.write_codes(
        [client.table_update(PORT_6), client.table_update(PORT_5), client.table_update(GROUP_7)]
    )
    seen["after batch"] = [len(client.read_table("ingress.ports")), len(client.read_table("ingress.groups"))]
    unknown = p4r.Update(type=p4r.Update.INSERT)
    unknown.entity.table_entry.table_id = 0x02FFFFFF
    seen["table unknown"] = client.write_codes([unknown])
    default = p4r.Entity()
    default.table_entry.table_id = client.table_id("ingress.tree_sets")
    default.table_entry.is_default_action = True
    seen["default read"] = [
        [parameter.value.hex() for parameter in found.table_entry.action.action.params]
        for found in client.read(default)
    ]

    other = P4RuntimeClient(address, int(device), text, int(election) - 1)
    seen["backup arbitration"] = rpc_code.Code.Name(other.become_primary().status.code)
    seen["backup write"] = other.write_codes([other.table_update({**PORT_5, "key": {"port": 9}})])
    seen["backup read"] = len(other.read_table("ingress.ports"))
    other.close()

    wrong_device = P4RuntimeClient(address, int(device) + 1, text, 1)
    try:
        wrong_device.get_pipeline()
        seen["wrong device"] = "OK"
    except grpc.RpcError as error:
        seen["wrong device"] = error.code().name
    wrong_device.close()

    if "--bad-program" in flags:
        bad = P4RuntimeClient(address, int(device), text, int(election))
        try:
            bad.set_pipeline(b"this is not a program")
            seen["bad program"] = "OK"
        except grpc.RpcError as error:
            seen["bad program"] = error.code().name
        bad.close()
        seen["after bad program"] = len(client.read_table("ingress.ports"))

    client.write([client.multicast_update({"id": 16384, "replicas": []}, "DELETE")])
    client.set_pipeline(Path(device_config).read_bytes())
    seen["after reload"] = [len(client.read_table(name)) for name in ("ingress.ports", "ingress.class_d")]
    client.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
