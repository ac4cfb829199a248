"""The same program, entries and packets to wormcast-switch and to another switch; what differs.

    python -m differential                                 every committed program, beside BMv2
    python -m differential --program x.json --cases 500    one program
    python -m differential --against interpreted           both engines of wormcast-switch
    python -m differential --replay findings/x-1-x-7       a finding again

Exit status: 0 nothing differs, 1 something does, 2 there is nothing to run or no switch.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from rig.targets import REPOSITORY, targets

from differential import findings
from differential.campaign import Campaign, prepare, run_campaign
from differential.generate import PACKETS_MAX
from differential.judge import Pair, judge
from differential.program import Program
from differential.switches import Switch, SwitchError

COMMITTED = (REPOSITORY / "switch" / "tests" / "programs", REPOSITORY / "p4src" / "compiled")
BMV2, INTERPRETED = "bmv2", "interpreted"


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m differential",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--program",
        type=Path,
        nargs="+",
        default=list(COMMITTED),
        metavar="FILE.json",
        help="programs as p4c-bm2-ss writes them, or folders of them (default: those of this repository)",
    )
    parser.add_argument("--cases", type=positive, default=10, help="of each program (default: %(default)s)")
    parser.add_argument(
        "--packets", type=positive, default=PACKETS_MAX, help="of a case at most (%(default)s)"
    )
    parser.add_argument("--seed", default="1", help="the same seed, the same cases (default: %(default)s)")
    parser.add_argument(
        "--mutate", action="store_true", help="change every second case's program a little (mutate.py)"
    )
    parser.add_argument("--against", choices=[BMV2, INTERPRETED], default=BMV2, help="(default: %(default)s)")
    parser.add_argument(
        "--jobs", type=positive, default=os.cpu_count() or 2, help="cases at a time (%(default)s)"
    )
    parser.add_argument(
        "--findings", type=Path, default=Path("findings"), metavar="DIR", help="(%(default)s)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the directories of all cases in DIR/cases")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the summary there, with how often each feature was used",
    )
    parser.add_argument("--no-shrink", action="store_true", help="leave findings as large as they were found")
    parser.add_argument(
        "--switch", type=Path, metavar="FILE", help="wormcast-switch (default: as the tests do)"
    )
    parser.add_argument("--bmv2", default="simple_switch", metavar="FILE", help="(default: %(default)s)")
    parser.add_argument(
        "--replay", type=Path, metavar="DIR", help="run the case of a finding and say what differs"
    )
    return parser.parse_args(words)


def positive(text: str) -> int:
    """A number from 1 on. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def choose_pair(given: argparse.Namespace) -> Pair:
    """The two switches. Raises FileNotFoundError naming one that is not there."""
    binary = given.switch or next(one.binary for one in targets() if one.name == "wormcast-switch")
    if binary is None or not binary.is_file():
        raise FileNotFoundError("wormcast-switch is not built; cargo build, or --switch FILE")
    ours = binary.resolve()
    if given.against == INTERPRETED:
        engines = [Switch(name, ours, ("--engine", name)) for name in ("compiled", INTERPRETED)]
        return Pair(*engines)
    found = shutil.which(given.bmv2)
    if found is None:
        raise FileNotFoundError(f"{given.bmv2} is not on PATH; --bmv2 FILE, or --against {INTERPRETED}")
    return Pair(Switch("wormcast-switch", ours), Switch("simple_switch", Path(found).resolve(), bmv2=True))


def find_programs(paths: list[Path], alike: bool) -> tuple[Program, ...]:
    """The programs of files and folders. Those of a folder that cannot be read are named and left out.

    Raises OSError; ValueError for a file that was named itself.
    """
    found = []
    for path in paths:
        if not path.is_dir():
            found.append(prepare(path, alike))
            continue
        for file in sorted(path.glob("*.json")):
            try:
                found.append(prepare(file, alike))
            except ValueError as error:
                print(f"left out: {file}: {error}", file=sys.stderr)
    return tuple(found)


def replay(pair: Pair, folder: Path) -> int:
    """Runs a finding again; the exit status."""
    program, case = findings.load(folder)
    with tempfile.TemporaryDirectory(prefix="differential-") as directory:
        judged = judge(pair, program, case, Path(directory))
    print(findings.describe(judged.verdict) if not judged.verdict.same else "nothing differs")
    return int(not judged.verdict.same)


def main() -> int:
    """Command line; the exit status."""
    given = parse()
    try:
        pair = choose_pair(given)
        if given.replay:
            return replay(pair, given.replay)
        programs = find_programs(given.program, alike=given.against == INTERPRETED)
    except (OSError, ValueError, SwitchError) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 2
    if not programs:
        print("differential: no program in " + ", ".join(map(str, given.program)), file=sys.stderr)
        return 2
    campaign = Campaign(
        pair=pair,
        programs=programs,
        seed=given.seed,
        cases=given.cases,
        findings=given.findings,
        jobs=given.jobs,
        packets=given.packets,
        keep=given.keep,
        shrinks=not given.no_shrink,
        mutates=given.mutate,
    )
    summary = run_campaign(campaign)
    print(summary.text())
    if given.json:
        given.json.write_text(summary.json())
    return int(bool(summary.findings))


if __name__ == "__main__":
    # The switches of the cases that run are ended before this process is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
