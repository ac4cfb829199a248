"""The suite of tests/ptf with the real ptf runner, on each switch."""

import pytest
from rig.host import SwitchRig
from rig.targets import REPOSITORY
from vector_files import load_vectors

PTF = REPOSITORY / ".build/ptf/bin/ptf"
SUITE_SECONDS_MAX = 900.0


@pytest.mark.network
def test_ptf(switch: SwitchRig) -> None:
    """Every kind of worm with every fault, judged by the reference."""
    if not PTF.is_file():
        pytest.skip("ptf is not installed in .build/ptf")
    ports = load_vectors("worm_switch.json")["states"]["small"]["ports"]
    interfaces = " ".join(f"-i {port}@h{port}" for port in ports)
    # The rig puts address, device, election id and files behind the command.
    where = '--grpc "$0" --device "$1" --election "$2" --p4info "$3" --config "$4"'
    command = f"exec {REPOSITORY}/tests/ptf/run {where} {interfaces}"
    done = switch.run(["sh", "-c", command], timeout_s=SUITE_SECONDS_MAX)
    assert done["code"] == 0, f"{done['stdout'][-5000:]}\n{done['stderr'][-5000:]}\n{switch.logs()}"
    assert "Ran 91 tests" in done["stdout"] + done["stderr"], done["stderr"][-2000:]
