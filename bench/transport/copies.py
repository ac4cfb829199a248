"""What moving a byte from file to file costs, by program and by kind of work, as `perf` samples it while a file is sent.

`bench/transport/copies [CASE]`, by default long-7. Nanoseconds of a processor a byte delivered to one receiver. Needs `perf`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from cases import BY_NAME

HERE = Path(__file__).resolve().parent
SAMPLES_A_S = 997
KINDS = {
    "copy to and from the kernel": r"copy_(to|from)_(user|iter)|copy_folio_from_iter|__pi_memcpy|_copy_(to|from)_iter|rep_movs|copy_user|copyin|copyout|memcpy_erms|skb_copy|csum_partial_copy|copy_page",
    "copy in memory": r"^_*mem(cpy|move)|__memmove|__memcpy",
    "clear memory": r"memset|clear_page|clear_user",
    "SHA-256": r"sha256|sha2|compress256|compress|digest",
    "checksum": r"crc|csum|checksum",
}
"""By names of functions."""
PARTS = {("wormcast-agent", "dataplane"): "agent, frames", ("wormcast-agent", "file"): "agent, files"}
"""By program and thread."""
RUNS = re.compile(r"PERF_RECORD_COMM exec: (\S+):(\d+)/")
SAMPLE = re.compile(r"^\s*(.+?)\s+(\d+)\s+([0-9a-f]+) (.+?)(?:\+0x[0-9a-f]+)?$")


def kind_of(symbol: str) -> str:
    for kind, names in KINDS.items():
        if re.search(names, symbol, re.IGNORECASE):
            return kind
    return "all else"


def main() -> int:
    if shutil.which("perf") is None:
        print("perf is not installed", file=sys.stderr)
        return 2
    case = BY_NAME[sys.argv[1] if len(sys.argv) > 1 else "long-7"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        place = Path(directory)
        (place / "sent").mkdir()
        trial = [sys.executable, "-m", "wormcast.mininet.sandbox", "trial", case.name, "wormcast switch"]
        record = [
            "perf",
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            str(SAMPLES_A_S),
            "-o",
            str(place / "perf"),
        ]
        done = subprocess.run(
            [*record, *trial, str(case.size), str(place / "sent")],
            env={**os.environ, "PYTHONPATH": str(HERE)},
            capture_output=True,
            text=True,
            check=True,
        )
        result = json.loads(done.stdout.strip().splitlines()[-1])
        if "failed" in result:
            print(result["failed"], file=sys.stderr)
            return 1
        script = subprocess.run(
            ["perf", "script", "-i", str(place / "perf"), "--show-task-events", "-F", "comm,pid,ip,sym"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    runs: dict[str, str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    names: dict[tuple[str, str], Counter[str]] = {}
    for line in script.splitlines():
        if (event := RUNS.search(line)) is not None:
            runs[event[2]] = event[1]
        elif (sample := SAMPLE.match(line)) is not None:
            program = runs.get(sample[2], "other")
            part = PARTS.get(
                (program, sample[1]), "switch" if program.startswith("wormcast-switc") else "all else"
            )
            key = (part, kind_of(sample[4]))
            counts[key] += 1
            names.setdefault(key, Counter())[sample[4]] += 1
    delivered = case.size * case.receivers
    print(f"{result['seconds']} s; ns a byte delivered:")
    for (part, kind), count in sorted(counts.items()):
        cost = count / SAMPLES_A_S * 1e9 / delivered
        most = ", ".join(f"{name} {own}" for name, own in names[part, kind].most_common(8))
        print(f"{part:14} {kind:28} {cost:.3f}   {most[:400]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
