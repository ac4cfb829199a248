"""Short messages by Aeron, NORM and MPI_Bcast on a bare bridge, with drivers of our own in programs/.

Each prints the same: messages a second, and microseconds from a message's sending until its sender knows that all have it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import account
import bridge
from bridge import Program, address
from cases import Case

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / ".build" / "transport"
NEEDED = {
    "aeron": ("java", "aeron-all.jar", "Messages.class"),
    "norm": ("ip", "norm"),
    "mpi": ("mpirun", "bcast"),
}
OPENS = ["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"]  # fmt: skip
READY = "ready"


def missing(name: str) -> str | None:
    """Why this peer cannot be measured here."""
    program, *files = NEEDED[name]
    gone = [] if shutil.which(program) else [program]
    gone += [f".build/transport/{file}" for file in files if not (BUILT / file).exists()]
    return f"no {', '.join(gone)} (bench/transport/install)" if gone else None


def exchange(case: Case, name: str) -> dict[str, Any]:
    """Messages to all."""
    bridge.make(case.receivers + 1, case.mtu, case.rate, case.loss)
    if name == "mpi":
        return mpi(case)
    if name == "aeron":
        start = ["java", *OPENS, "-cp", f"{BUILT}/aeron-all.jar:{BUILT}"]
    else:
        start = [str(BUILT / "norm")]

    def argv(host: int, *words: str) -> list[str]:
        # Each media driver has files of its own, which go with the trial.
        own = [f"-Daeron.dir={tempfile.gettempdir()}/aeron-h{host}", "Messages"] if name == "aeron" else []
        return [*start, *own, *words]

    listening = []
    for host in range(1, case.receivers + 1):
        words = ("receive", address(host), address(0), str(host))
        listening.append(Program(host, argv(host, *words)))
    for one in listening:
        one.wait_for(READY)
    before = sum(account.whole(one.process.pid) for one in listening)
    sending = Program(0, argv(0, "send", address(0), str(case.receivers), str(case.size)))
    said = sending.wait()
    for one in listening:
        one.stop()
    spent = sum(one.seconds for one in listening) - before
    result: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    return {**result, "processor": {"sender": sending.seconds, "receivers": round(spent, 3)}}


def mpi(case: Case) -> dict[str, Any]:
    """`mpirun` on the source starts a process on each host: by a script, since there is no ssh between namespaces."""
    script = BUILT / "on-host"
    # Each with a name of its own: MPI takes what has one name for one machine.
    script.write_text(
        '#!/bin/sh\nhost="h$((${1##*.} - 1))"; shift\n'
        'exec unshare --uts ip netns exec "$host" sh -c "hostname $host; $*"\n'
    )
    script.chmod(0o755)
    hosts = ",".join(address(host) for host in range(case.receivers + 1))
    argv = ["mpirun", "--allow-run-as-root", "--host", hosts, "-np", str(case.receivers + 1)]
    for key, value in {
        "plm_rsh_agent": str(script),
        "btl": "tcp,self",
        "btl_tcp_if_include": "10.0.0.0/24",
        "oob_tcp_if_include": "10.0.0.0/24",
        "mpi_yield_when_idle": "1",
        "orte_keep_fqdn_hostnames": "1",
    }.items():
        argv += ["--mca", key, value]
    sending = Program(0, [*argv, "--oversubscribe", str(BUILT / "bcast"), str(case.size)], **{"OMPI_MCA_rmaps_base_oversubscribe": "1"})  # fmt: skip
    said = sending.wait()
    result: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    return {**result, "processor": {"all": sending.seconds}}
