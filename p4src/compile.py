#!/usr/bin/env python3
"""Compiles v1model/wormcast.p4, and the P4Info of ../targets/tofino, into compiled/: the same bytes on every machine.

p4c writes where each expression came from (`source_info`) into its JSON. That is left
out, so that the artifact depends on what the program does and on the compiler alone, not
on directories, comments or line numbers.

    compile.py [--out DIRECTORY]     P4C=/path/to/p4c-bm2-ss to choose the compiler

The programs for Tofino and Tofino 2 go through p4c's front end alone, with the declarations of its front_end/,
so that their P4Info needs no backend for the chips. compile.py --front-end DIRECTORY leaves what the
front end made of them, as P4 (the tests run that on a model of the chips).

Programs of one file, those of tests and measurements, lie beside what they compile to:

    compile.py --beside FILE.p4...   FILE.json, FILE.p4info.txtpb, SOURCES.sha256, COMPILER

A first line `// compile with: ARGUMENTS` gives arguments for the compiler.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOFINO = HERE.parent / "targets" / "tofino"
PROGRAM = "v1model/wormcast.p4"
JSON_NAME = "wormcast.json"
P4INFO_NAME = "wormcast.p4info.txtpb"
SOURCES_NAME = "SOURCES.sha256"
COMPILER_NAME = "COMPILER"
CHIP_ARCHITECTURES = {"tofino": "tna", "tofino2": "t2na"}
"""By chip: its program is CHIP.p4 in TOFINO, and the P4Info CHIP.p4info.txtpb."""


def find_compiler() -> str | None:
    """Path of p4c's BMv2 backend, or None where it is not installed."""
    return shutil.which(os.environ.get("P4C", "p4c-bm2-ss"))


def compiler_version(compiler: str) -> str:
    """Version of p4c without the build's commit and mode, e.g. `p4c 1.2.5.16`."""
    run = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    text = run.stdout + run.stderr  # it says so on stderr
    found = re.search(r"Version\s+(\S+)", text)
    if found is None:
        raise ValueError(f"{compiler} --version names no version: {text!r}")
    return f"p4c {found.group(1)}"


def hash_sources() -> str:
    """Text of SOURCES.sha256, in the format of sha256sum run in this folder, sorted by path."""
    folders = (TOFINO, HERE / "shared", HERE / "v1model")
    paths = sorted(os.path.relpath(path, HERE) for folder in folders for path in folder.rglob("*.p4"))
    return "".join(f"{hashlib.sha256((HERE / path).read_bytes()).hexdigest()}  {path}\n" for path in paths)


def without_source_info(node: Any) -> Any:
    """A copy of a JSON value with every `source_info` member left out."""
    if isinstance(node, dict):
        return {key: without_source_info(value) for key, value in node.items() if key != "source_info"}
    if isinstance(node, list):
        return [without_source_info(value) for value in node]
    return node


def run_compiler(compiler: str, folder: Path, program: str, arguments: list[str]) -> tuple[bytes, bytes]:
    """JSON and P4Info of a program, named from a folder. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as scratch:
        json_path = Path(scratch) / "program.json"
        p4info_path = Path(scratch) / "program.p4info.txtpb"
        command = [compiler, "--arch", "v1model", "--std", "p4-16", *arguments]
        command += ["-o", str(json_path), "--p4runtime-files", str(p4info_path), program]
        subprocess.run(command, cwd=folder, check=True)
        compiled = without_source_info(json.loads(json_path.read_text()))
        p4info = p4info_path.read_bytes()
    compiled["program"] = program
    return (json.dumps(compiled, indent=1) + "\n").encode(), p4info


def run_front_end(compiler: str, chip: str, folder: Path, arguments: list[str], made: str) -> Path:
    """Runs p4c on the program for a chip until the one file like `made` is in the folder; else CalledProcessError.

    It always ends with an error: behind its front end this compiler looks for a program of v1model.
    """
    command = [compiler, "--arch", "psa", "--std", "p4-16", "--Wdisable", "-I", "front_end", *arguments]
    run = subprocess.run([*command, f"{chip}.p4"], cwd=TOFINO, check=False, capture_output=True, text=True)
    for found in folder.glob(made):
        return found
    raise subprocess.CalledProcessError(run.returncode, command, run.stdout, run.stderr)


def chip_p4info(compiler: str, chip: str) -> bytes:
    """P4Info of the program for a chip. Its counters are declared as PSA's are, so p4c's P4Info of PSA
    has all of it. Raises CalledProcessError."""
    architecture = f'arch: "{CHIP_ARCHITECTURES[chip]}"'
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "program.p4info.txtpb"
        run_front_end(compiler, chip, path.parent, ["--p4runtime-files", str(path)], path.name)
        return path.read_bytes().replace(b'arch: "psa"', architecture.encode())


def front_end_of_chip(compiler: str, chip: str, folder: Path) -> Path:
    """The program for a chip behind p4c's front end, in a folder, as CHIP.p4. Raises CalledProcessError."""
    arguments = ["--top4", "FrontEndLast", "--dump", str(folder)]
    return run_front_end(compiler, chip, folder, arguments, "*FrontEndLast.p4").replace(folder / f"{chip}.p4")


def compile_program(compiler: str) -> dict[str, bytes]:
    """Compiles and returns the artifacts by file name. Raises CalledProcessError."""
    compiled, p4info = run_compiler(compiler, HERE, PROGRAM, ["--Werror", "--Wdisable=unused"])
    return {
        JSON_NAME: compiled,
        P4INFO_NAME: p4info,
        **{f"{chip}.p4info.txtpb": chip_p4info(compiler, chip) for chip in CHIP_ARCHITECTURES},
        SOURCES_NAME: hash_sources().encode(),
        COMPILER_NAME: (compiler_version(compiler) + "\n").encode(),
    }


def artifact_names(source: Path) -> tuple[str, str]:
    """What a program of one file compiles to, beside it."""
    return f"{source.stem}.json", f"{source.stem}.p4info.txtpb"


def compile_beside(compiler: str, source: Path) -> dict[str, bytes]:
    """Artifacts of a program of one file, by file name. Raises CalledProcessError."""
    first = source.read_text().partition("\n")[0]
    _, given, arguments = first.partition("// compile with: ")
    made = run_compiler(compiler, source.parent, source.name, shlex.split(arguments) if given else [])
    return dict(zip(artifact_names(source), made, strict=True))


def hash_folder(folder: Path) -> str:
    """Text of SOURCES.sha256 of a folder of programs of one file each."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.glob("*.p4"))
    )


def write_beside(compiler: str, sources: list[Path]) -> None:
    """Compiles programs of one file and leaves their artifacts beside them."""
    for source in sources:
        for name, content in compile_beside(compiler, source).items():
            (source.parent / name).write_bytes(content)
        print(source)
    for folder in sorted({source.parent for source in sources}):
        (folder / SOURCES_NAME).write_text(hash_folder(folder))
        (folder / COMPILER_NAME).write_text(compiler_version(compiler) + "\n")


def main() -> int:
    """Command line. Exit code 2 where there is no compiler."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, default=HERE / "compiled", help="directory for the artifacts")
    options.add_argument(
        "--front-end", type=Path, metavar="DIRECTORY", help="leave tofino.p4 and tofino2.p4 there"
    )
    options.add_argument("--beside", type=Path, nargs="+", metavar="FILE.p4", help="programs of one file")
    given = options.parse_args()
    out: Path = given.out
    compiler = find_compiler()
    if compiler is None:
        print(
            "p4c-bm2-ss is not on PATH and P4C does not name it; artifacts stay as they are", file=sys.stderr
        )
        return 2
    if given.front_end:
        given.front_end.mkdir(parents=True, exist_ok=True)
        for chip in CHIP_ARCHITECTURES:
            print(front_end_of_chip(compiler, chip, given.front_end.resolve()))
        return 0
    if given.beside:
        write_beside(compiler, given.beside)
        return 0
    out.mkdir(parents=True, exist_ok=True)
    for name, content in compile_program(compiler).items():
        (out / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
