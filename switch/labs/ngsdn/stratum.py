"""StratumBmv2Switch for Mininet, with wormcast-switch inside.

Topology files that say `from stratum import StratumBmv2Switch` run with this module in the place of Stratum's. The
class takes the same parameters. As there, the device id of every switch is 1, gRPC ports count up from 50001, and
/tmp/NAME/ has the log (stratum_bmv2.log), the port (grpc-port.txt) and what ONOS has to be told (onos-netcfg.json).
gNMI is at the gRPC port, and reads only. There is no chassis config: ports are those that Mininet has made.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import IO, Any

from mininet.log import info
from mininet.node import Switch
from wormcast.mininet.nodes import start_daemon, stop_process
from wormcast.mininet.programs import find_switch

DEVICE_ID = 1
GRPC_PORT_FIRST = 50001
CPU_PORT_DEFAULT = 255
START_SECONDS_MAX = 60.0
DIRECTORY = "STRATUM_TMP"
"""Variable that names another directory than /tmp."""


class StratumBmv2Switch(Switch):
    """A P4Runtime switch. `json`: the program it starts with, none unless given."""

    next_grpc_port = GRPC_PORT_FIRST

    def __init__(
        self,
        name: str,
        json: str | None = None,
        loglevel: str = "warn",
        grpcport: int | None = None,
        cpuport: int = CPU_PORT_DEFAULT,
        pipeconf: str = "",
        onosdevid: str | None = None,
        adminstate: bool = True,
        gnmi: bool = False,  # it is there in any case
        portcfg: bool = True,
        **params: Any,
    ) -> None:
        super().__init__(name, **params)
        self.json, self.loglevel, self.cpuPort = json, loglevel, cpuport
        self.pipeconfId, self.adminState, self.injectPorts = pipeconf, adminstate, portcfg
        self.gnmi = gnmi
        self.onosDeviceId = onosdevid or f"device:{name}"
        self.grpcPort = int(grpcport) if grpcport is not None else StratumBmv2Switch.next_grpc_port
        if grpcport is None:
            StratumBmv2Switch.next_grpc_port += 1
        self.tmpDir = Path(os.environ.get(DIRECTORY, "/tmp")) / name
        self.process: subprocess.Popen[bytes] | None = None
        self.log: IO[bytes] | None = None

    def port_interfaces(self) -> dict[int, str]:
        return {port: i.name for port, i in sorted(self.intfs.items()) if i.name != "lo"}

    def command(self) -> list[str]:
        """The command line of wormcast-switch."""
        argv = [find_switch("wormcast"), self.json or "--no-p4", "--device-id", str(DEVICE_ID)]
        for port, interface in self.port_interfaces().items():
            argv += ["-i", f"{port}@{interface}"]
        argv += ["--log-console", "--log-level", self.loglevel]
        return [
            *argv,
            "--",
            "--grpc-server-addr",
            f"0.0.0.0:{self.grpcPort}",
            "--cpu-port",
            str(self.cpuPort),
        ]

    def netcfg(self) -> dict[str, Any]:
        """What ONOS has to be told, its ports too: its driver `bmv2` does not ask for them over gNMI."""
        basic = {
            "managementAddress": f"grpc://{socket.gethostname()}:{self.grpcPort}?device_id={DEVICE_ID}",
            "driver": "bmv2",
            "pipeconf": self.pipeconfId,
        }
        ports = {
            str(port): {
                "number": port,
                "name": name,
                "enabled": self.adminState,
                "removed": False,
                "type": "copper",
                "speed": 10_000,
            }
            for port, name in self.port_interfaces().items()
        }
        device = {"basic": basic, "ports": ports} if self.injectPorts else {"basic": basic}
        return {"devices": {self.onosDeviceId: device}}

    def start(self, _controllers: list[Any]) -> None:
        """Start the switch; return when it answers. Raises RuntimeError with the end of its log if it does not."""
        self.tmpDir.mkdir(parents=True, exist_ok=True)
        (self.tmpDir / "grpc-port.txt").write_text(str(self.grpcPort))
        (self.tmpDir / "onos-netcfg.json").write_text(json.dumps(self.netcfg(), indent=1) + "\n")
        log_path = self.tmpDir / "stratum_bmv2.log"
        self.log = log_path.open("wb")
        self.process = start_daemon(self.command(), self.log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.halt()
                raise RuntimeError(
                    f"{self.name} does not start: {log_path.read_text(errors='replace')[-800:]}"
                )
            time.sleep(0.05)
        info(f"wormcast-switch @ {self.grpcPort}\n")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.grpcPort), 1).close()
        except OSError:
            return False
        return True

    def halt(self) -> None:
        if self.process is not None:
            stop_process(self.process)
            self.process = None
        if self.log is not None:
            self.log.close()
            self.log = None

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process and, as Mininet wants, the interfaces."""
        self.halt()
        super().stop(deleteIntfs)


switches = {"stratum-bmv2": StratumBmv2Switch}
"""For `mn --custom`."""
