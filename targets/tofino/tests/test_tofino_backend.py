"""The Tofino backend of p4c takes the program for both chips, and says of it what targets/tofino/README.md says.

Where it is not installed the tests are skipped: P4C_TOFINO names its p4c-barefoot, P4C_TOFINO_INCLUDE its tna.p4. It
needs a change that targets/tofino/README.md tells: without it the compiler loses what parsers compare."""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from rig.targets import REPOSITORY
from test_p4_artifacts import tofino_declarations
from tofino.resources import read_resources

SOURCES = REPOSITORY / "targets" / "tofino"
BACKEND = shutil.which(os.environ.get("P4C_TOFINO", "p4c-barefoot"))
CHIPS = {"tofino": ("tna", 1, ["--disable-parse-depth-limit"]), "tofino2": ("t2na", 2, [])}


@functools.cache
def compiled(chip: str) -> Path:
    """The folder `pipe` that the compiler makes of the program."""
    include = tofino_declarations()
    if BACKEND is None or include is None:
        pytest.skip("needs p4c's Tofino backend: P4C_TOFINO, and P4C_TOFINO_INCLUDE with its tna.p4")
    # core.p4 is beside the declarations where p4c is installed, and in p4include of its sources.
    places = [include, include.parents[3] / "p4include" if len(include.parents) > 3 else include]
    out = Path(tempfile.mkdtemp(prefix="wormcast-tofino-"))
    arch, number, options = CHIPS[chip]
    flat = out / f"{chip}.p4pp"
    folders = [word for place in places for word in ("-I", str(place))]
    define = f"-D__TARGET_TOFINO__={number}"
    preprocess = [
        "cpp",
        "-P",
        "-x",
        "assembler-with-cpp",
        define,
        *folders,
        f"{chip}.p4",
        "-o",
        str(flat),
    ]
    subprocess.run(preprocess, cwd=SOURCES, check=True, capture_output=True)
    command = [BACKEND, "--nocpp", define, "--target", chip, "--arch", arch, "--p4runtime-force-std-externs"]
    command += ["-g", "--verbose", *options, "-o", str(out), str(flat)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]
    return out / "pipe"


def parser(chip: str, gress: str) -> str:
    """A parser in the compiler's assembly."""
    text = (compiled(chip) / f"{chip}.bfa").read_text()
    return text[text.index(f"\nparser {gress}:") : text.index(f"\ndeparser {gress}:")]


@pytest.mark.parametrize("chip", CHIPS)
def test_the_chip_has_room_and_the_table_says_how_much(chip: str) -> None:
    readme = (SOURCES / "README.md").read_text()
    (row,) = re.findall(rf"^\| `{chip}.p4` \| (.*) \|$", readme, re.MULTILINE)
    assert row.split(" | ") == read_resources(compiled(chip), chip).cells()


@pytest.mark.parametrize("chip", CHIPS)
def test_parsers_compare(chip: str) -> None:
    """A compiler as it is takes the first case of every select."""
    for gress, state in (("ingress", "tree_byte"), ("egress", "next_branch")):
        found = re.search(rf"^    {state}:\n      match: \[ (.*) \]", parser(chip, gress), re.MULTILINE)
        assert found is not None, (
            f"{state} of {gress} compares nothing: the compiler needs a change (targets/tofino/README.md)"
        )


@pytest.mark.parametrize("chip", CHIPS)
def test_the_instance_of_a_copy_is_kept_while_branches_are_skipped(chip: str) -> None:
    """The register that next_branch compares with the port is written in front of the loop alone."""
    text = parser(chip, "egress")
    first, second = (
        re.findall(rf"^    {state}:\n      match: \[ (.*) \]", text, re.MULTILINE)
        for state in ("first_branch", "next_branch")
    )
    assert first == second
    (registers,) = {tuple(found.split(", ")) for found in first}
    instance = registers[-1]
    states = re.split(r"^    (?=\S+:$)", text, flags=re.MULTILINE)
    writers = {part.partition(":")[0] for part in states if re.search(rf"load: .*\b{instance} :", part)}
    assert writers, "written somewhere"
    loop = r"other|next_branch|next_compared|first_compared|first_branch"
    assert not [writer for writer in writers if re.match(loop, writer)]


@pytest.mark.parametrize("chip", CHIPS)
def test_ports_of_a_tree_add_up(chip: str) -> None:
    """Their container may be written more than once: the chip takes that for an error unless it is told."""
    text = (compiled(chip) / f"{chip}.bfa").read_text()
    containers = set(re.findall(r"^  meta\.tree_ports(?:\.\d+-\d+)?: (\w+)", text, re.MULTILINE))
    (told,) = re.findall(r"^  bitwise_or: \[ (.*) \]", parser(chip, "ingress"), re.MULTILINE)
    assert containers
    assert containers <= set(told.split(", "))
