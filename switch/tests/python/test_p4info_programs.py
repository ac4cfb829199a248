"""Every program that p4c compiles loads over P4Runtime with the P4Info that p4c writes for it.

The programs are pairs `NAME.json`, `NAME.p4info.txtpb`: those of switch/tests/programs and p4src,
and those of the directories that the environment names in `P4INFO_PROGRAMS` (with `:` between
them), such as p4c's samples compiled by `p4c-bm2-ss -o NAME.json --p4runtime-files NAME.p4info.txtpb`.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from rig.p4runtime import P4RuntimeClient
from rig.targets import COMPILED, REPOSITORY, targets

DEVICE_ID = 1
START_TIMEOUT_S = 600.0
SWITCH = targets()[0]

pytestmark = pytest.mark.skipif(SWITCH.binary is None, reason=SWITCH.missing)


def _directories() -> list[Path]:
    named = os.environ.get("P4INFO_PROGRAMS", "")
    return [REPOSITORY / "switch/tests/programs", COMPILED, *(Path(one) for one in named.split(":") if one)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A switch without interfaces; all programs go to it, one after another."""
    command = [str(SWITCH.binary), "--no-p4", "--device-id", str(DEVICE_ID), "--cpu-port", "510"]
    command += ["--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            start = "Server listening on "
            line = next(line for line in switch.stdout if line.startswith(start))
            yield line.removeprefix(start).strip()
        finally:
            switch.terminate()


def _refusal(address: str, program: Path) -> str | None:
    """Why the switch does not take a program, or None."""
    p4info = program.with_suffix(".p4info.txtpb").read_text()
    client = P4RuntimeClient(address, DEVICE_ID, p4info)
    try:
        client.wait_ready(START_TIMEOUT_S)
        client.become_primary()
        client.set_pipeline(program.read_bytes())
    except grpc.RpcError as error:
        return f"{program.stem}: {error.code().name}: {error.details()}"
    finally:
        client.close()
    return None


@pytest.mark.parametrize("directory", _directories(), ids=str)
def test_programs_load_with_their_own_p4info(address: str, directory: Path) -> None:
    """Names every one that does not, with what the switch says."""
    programs = sorted(
        path for path in directory.glob("*.json") if path.with_suffix(".p4info.txtpb").is_file()
    )
    assert programs, f"no pair of NAME.json and NAME.p4info.txtpb in {directory}"
    refusals = [refusal for program in programs if (refusal := _refusal(address, program))]
    count = f"{len(refusals)} of {len(programs)} programs are refused:"
    assert not refusals, "\n".join([count, *refusals])
