"""Wormcast beside other ways to bring the same bytes to many hosts, turn by turn.

Every trial runs in a sandbox of its own, on the same processors. Results are kept after each trial: the same command goes
on where it was stopped. `--publish` puts results, picture and the table of docs/compare.md into the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cases import BY_NAME, CASES, Case

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEMORY = "/dev/shm"
"""Files are there, so that no disk is measured."""
DEMO_SECONDS_MAX = 3_600


def main() -> int:
    """Exit code 1 if a trial of Wormcast failed."""
    options = parse()
    import report  # slow to load: what was asked for wrongly is refused before

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    kept = load(options.json, options.again)
    todo = []
    for case in chosen(options):
        wanted = [one for one in case.contenders if options.contenders is None or one in options.contenders]
        todo += [(case, one, turn) for turn in range(options.repeats) for one in wanted if there(case, one)]
    for number, (case, contender, turn) in enumerate(todo, 1):
        head = f"[{number}/{len(todo)}] {case.name}: {contender}, turn {turn + 1}"
        if any(same(one, case, contender, turn) for one in kept["trials"]):
            print(f"{head}: kept", flush=True)
            continue
        load_before = os.getloadavg()[0]
        result = demo(case) if case.kind == "demo" else trial(case, contender)
        about = {"case": case.name, "contender": contender, "turn": turn, "settings": case.settings()}
        at = time.strftime("%Y-%m-%d %H:%M:%S")
        kept["trials"].append({**about, **result, "load": round(load_before, 1), "at": at})
        keep(options.json, kept)
        print(f"{head}: {short(result)} (load {load_before:.1f})", flush=True)
    if options.engine:
        kept["engine"] = engine(options.before)
        keep(options.json, kept)
    picture = options.json.with_suffix(".svg")
    report.write(kept, options.json.with_suffix(".md"), picture)
    print(report.table(kept))
    if options.publish:
        report.publish(kept, HERE, ROOT / "docs" / "compare.md")
    failed = [one for one in kept["trials"] if "failed" in one and one["contender"].startswith("wormcast")]
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(case.name for case in CASES)
    parser.add_argument("--cases", type=split, default=list(BY_NAME), help=f"of {names}; default: all")
    parser.add_argument("--contenders", type=split, help="only these, as wormcast switch,uftp")
    parser.add_argument(
        "--sizes",
        type=sizes,
        default={},
        metavar="CASE=N,…",
        help="other sizes: bytes of a file or of all files, messages, or small files",
    )
    parser.add_argument("--repeats", type=int, default=3, help="turns of everyone")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "out" / "bench-transport" / "result.json", help="results"
    )
    parser.add_argument("--again", action="store_true", help="forget the results of these cases first")
    parser.add_argument("--engine", action="store_true", help="measure the protocol engine alone, too")
    parser.add_argument("--before", type=Path, help="another checkout, whose engine is measured beside ours")
    parser.add_argument("--publish", action="store_true", help="write the table of docs/compare.md")
    options = parser.parse_args()
    for case in options.cases:
        if case not in BY_NAME:
            parser.error(f"case {case!r} is not one of {names}")
    everybody = {one for case in CASES for one in case.contenders}
    for one in options.contenders or []:
        if one not in everybody:
            parser.error(f"contender {one!r} is not one of {', '.join(sorted(everybody))}")
    if options.repeats < 1:
        parser.error(f"repeats {options.repeats} is not 1 or more")
    if options.again:
        options.again = options.cases
    return options


def split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def sizes(text: str) -> dict[str, int]:
    found = {}
    for pair in text.split(","):
        case, _, number = pair.partition("=")
        if case not in BY_NAME or not number.isdigit() or int(number) < 1:
            raise argparse.ArgumentTypeError(f"{pair!r} is not CASE=N with a number of 1 or more")
        found[case] = int(number)
    return found


def chosen(options: argparse.Namespace) -> list[Case]:
    cases = [BY_NAME[name] for name in options.cases]
    return [case.of_size(options.sizes.get(case.name, case.size)) for case in cases]


def there(case: Case, contender: str) -> bool:
    """Whether it can be measured here; says why not."""
    import trial as trials

    why = "needs root" if os.geteuid() else None if case.kind == "demo" else trials.missing(case, contender)
    if why is not None:
        print(f"SKIPPED {case.name}, {contender}: {why}", flush=True)
    return why is None


def trial(case: Case, contender: str) -> dict[str, Any]:
    """One, in a sandbox that takes all that was started with it."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        command = [sys.executable, "-m", "wormcast.mininet.sandbox", "trial", case.name, contender]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(
                [*command, str(case.size), place],
                env={**os.environ, "PYTHONPATH": str(HERE)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            )
            try:
                child.wait(case.seconds_max)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGTERM)
                child.wait()
                return {"failed": f"not done after {case.seconds_max} s"}
            finally:
                if child.poll() is None:  # Ctrl-C, or worse
                    child.kill()
                    child.wait()
            out.seek(0)
            errors.seek(0)
            lines = out.read().strip().splitlines()
            if child.returncode != 0 or not lines:
                return {"failed": f"ended with {child.returncode}: {errors.read()[-500:]}"}
            result: dict[str, Any] = json.loads(lines[-1])
            return result


def demo(case: Case) -> dict[str, Any]:
    """`make demo`, and its own report."""
    with tempfile.TemporaryDirectory() as place:
        command = [str(ROOT / ".venv" / "bin" / "wormcast"), "demo", "--out", place]
        command += ["--size", str(case.size), "--rate", str(case.rate)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEMO_SECONDS_MAX, check=False)
        if done.returncode != 0:
            return {"failed": done.stdout[-500:] + done.stderr[-500:]}
        told = json.loads((Path(place) / "report.json").read_text())
    return {"schemes": {one["scheme"]: one["seconds"] for one in told["schemes"]}}


def engine(before: Path | None) -> dict[str, dict[str, dict[str, int]]]:
    """Packets a second on one core, by the measurement beside the engine's tests."""
    command = ["cargo", "test", "--release", "--locked", "-p", "wormcast-protocol", "--test", "all"]
    command += ["measure::", "--", "--ignored", "--nocapture"]
    found = {}
    for name, checkout in {"before": before, "ours": ROOT}.items():
        if checkout is not None:
            print(f"engine: {name}", flush=True)
            done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
            rows = [re.match(r"(\S.*\S)\s+(\d+)\s+(\d+)$", line) for line in done.stdout.splitlines()]
            found[name] = {row[1]: {"origin": int(row[2]), "member": int(row[3])} for row in rows if row}
    return found


def same(one: dict[str, Any], case: Case, contender: str, turn: int) -> bool:
    about = (one["case"], one["contender"], one["turn"], one["settings"])
    return about == (case.name, contender, turn, case.settings())


def short(result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"FAILED: {result['failed']}"
    if "seconds" in result:
        return f"{result['seconds']:.2f} s, processor {sum(result['processor'].values()):.2f} s"
    if "rate" in result:
        return f"{result['rate']:,} a second, p50 {result['p50_us']}, p99 {result['p99_us']} µs"
    return ", ".join(f"{scheme} {seconds:.2f} s" for scheme, seconds in result["schemes"].items())


def load(path: Path, again: list[str] | bool) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"trials": []}
    if again:
        kept["trials"] = [one for one in kept["trials"] if one["case"] not in again]
    return kept


def keep(path: Path, kept: dict[str, Any]) -> None:
    """Whole or not at all."""
    kept["machine"] = {"system": platform.platform(), "processors": os.cpu_count()}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1) + "\n")
    shutil.move(new, path)


if __name__ == "__main__":
    sys.exit(main())
