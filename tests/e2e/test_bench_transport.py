"""bench/transport with little to send: everyone who is installed brings every byte, and the results are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

from document_lab.running import environment  # noqa: E402

SECONDS_MAX = 3600
CASES = {
    "plain": (200_000, "wormcast switch,uftp 400,udpcast"),
    "long-7-lossy": (2_000_000, "wormcast circuit,tcp"),
    "messages": (50, "wormcast switch,aeron,norm,mpi"),
    "files": (50, "wormcast switch,tar+tcp,rsync"),
    "changed": (500_000, "wormcast switch,rsync"),
}
MAY_FAIL = {"uftp 400", "udpcast", "aeron", "norm", "mpi"}
"""They give up where a machine is slow."""


def measure(case: str, out: Path) -> subprocess.CompletedProcess[str]:
    size, contenders = CASES[case]
    command = ["bench/transport/run", "--cases", case, "--sizes", f"{case}={size}", "--repeats", "1"]
    command += ["--contenders", contenders, "--json", str(out)]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX
    )


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("case", CASES)
def test_everyone_brings_every_byte(case: str, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    done = measure(case, out)
    assert done.returncode == 0, done.stdout + done.stderr
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    print(*skipped, sep="\n")
    trials = json.loads(out.read_text())["trials"]
    wanted = len(CASES[case][1].split(","))
    assert len(trials) == wanted - len(skipped)
    for trial in trials:
        if "failed" in trial:
            assert trial["contender"] in MAY_FAIL, trial
            print(f"{trial['contender']} failed: {trial['failed']}")
        else:
            assert trial.get("seconds", 0) > 0 or trial["rate"] > 0
            assert sum(trial["processor"].values()) >= 0
    assert out.with_suffix(".svg").read_text().startswith("<?xml")
    # What is there is not measured again.
    again = measure(case, out)
    assert again.stdout.count(": kept") == len(trials), again.stdout
    assert json.loads(out.read_text())["trials"] == trials
