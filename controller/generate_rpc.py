#!/usr/bin/env python3
"""Generates controller/wormcast/agentrpc/agent_pb2*.py from hostagent/proto/agent.proto."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "controller" / "wormcast" / "agentrpc"


def generate() -> None:
    """Writes message and service modules; ends the program with protoc's code if it fails."""
    proto = ROOT / "hostagent" / "proto"
    code = protoc.main(
        [
            "protoc",
            f"--proto_path={proto}",
            f"--proto_path={files('grpc_tools') / '_proto'}",
            f"--python_out={OUTPUT}",
            f"--grpc_python_out={OUTPUT}",
            "agent.proto",
        ]
    )
    if code:
        sys.exit(code)
    # protoc writes imports for a flat directory; ours is a package.
    service = OUTPUT / "agent_pb2_grpc.py"
    text = service.read_text()
    flat = "import agent_pb2 as agent__pb2"
    if flat not in text:
        sys.exit(f"{service}: no line {flat!r}; this grpcio-tools writes something else")
    service.write_text(text.replace(flat, "from wormcast.agentrpc import agent_pb2 as agent__pb2"))


if __name__ == "__main__":
    generate()
