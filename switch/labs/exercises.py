"""The exercises of p4lang/tutorials and of ngsdn-tutorial, with one line changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labs.report import Report


@click.command()
@click.option(
    "--tutorials", type=click.Path(path_type=Path), help="Your clone of github.com/p4lang/tutorials."
)
@click.option("--exercise", default="basic", show_default=True, help="Folder below exercises/ of it.")
@click.option(
    "--solution", is_flag=True, help="Run the solution of the exercise instead of what it starts with."
)
@click.option(
    "--ngsdn",
    type=click.Path(path_type=Path),
    help="Your clone of github.com/opennetworkinglab/ngsdn-tutorial.",
)
@click.option("--topology", default="topo-v6.py", show_default=True, help="File below mininet/ of it.")
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    help="The program, compiled for BMv2 (JSON); else p4c-bm2-ss compiles it.",
)
@click.option("--p4info", type=click.Path(path_type=Path), help="The P4Info that goes with --program.")
@click.option(
    "--python",
    default="python3",
    show_default=True,
    help="Python that has what the tutorials' scripts import.",
)
@click.option("--type", "lines", multiple=True, help="What to type at Mininet's prompt; may be repeated.")
def lab(
    report: Report,
    tutorials: Path | None,
    exercise: str,
    solution: bool,
    ngsdn: Path | None,
    topology: str,
    program: Path | None,
    p4info: Path | None,
    python: str,
    lines: tuple[str, ...],
) -> None:
    """Nothing in your clone is changed: the lab works on a copy, and shows the line that it changed. For tutorials
    it is BMV2_SWITCH_EXE in the Makefile of an exercise; for ngsdn-tutorial it is the image in docker-compose.yml.
    """
    from labs import ngsdn_exercise, tutorials_exercise

    if (tutorials is None) == (ngsdn is None):
        raise click.UsageError(
            "give one of --tutorials DIR and --ngsdn DIR, a clone of "
            "https://github.com/p4lang/tutorials or https://github.com/opennetworkinglab/ngsdn-tutorial"
        )
    if (program is None) != (p4info is None):
        raise click.UsageError("give --program and --p4info together, or neither")
    compiled: tuple[Path, Path] | None = None
    if program is not None and p4info is not None:
        for path in (program, p4info):
            if not path.is_file():
                raise click.UsageError(f"there is no file {path}")
        compiled = (program.resolve(), p4info.resolve())
    options: dict[str, Any] = {"compiled": compiled, "lines": lines}
    if tutorials is not None:
        tutorials_exercise.run(
            report, tutorials.resolve(), exercise, solution=solution, python=python, **options
        )
    elif ngsdn is not None:
        ngsdn_exercise.run(report, ngsdn.resolve(), topology, **options)
