"""The command line of the labs: `switch/labs/run NAME [options]`."""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from wormcast.cli.refusal import Refusal, describe, show, unknown, wants_json
from wormcast.mininet import sandbox

from labs.report import Report
from labs.rig import LabError

LABS = {
    "queues": "Queues that behave like links: rate, depth and delay beside a fluid model, two priorities.",
    "pfc": "A PFC storm and a real deadlock, named port by port; then legal routes, and no deadlock.",
    "registers": "Registers over P4Runtime, read and written with p4runtime-shell as it is.",
    "exercises": "The exercises of p4lang/tutorials and of ngsdn-tutorial, with one line changed.",
}
OUT = Path("out/labs")


class Labs(click.Group):
    """A lab is imported when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(LABS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but for the words of the refusal."""
        if args[0] not in LABS and args[0][:1] != "-":
            raise Refusal(unknown("lab", args[0], LABS), code="usage", value=args[0], choices=list(LABS))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The lab of this name, with the options that all labs have."""
        if cmd_name not in LABS:
            return None
        lab: click.Command = importlib.import_module(f"labs.{cmd_name}").lab
        options = [
            *lab.params,
            click.Option(
                ["--out"],
                type=click.Path(path_type=Path),
                help=f"Directory of what it writes ({OUT}/{cmd_name}).",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="Print the report as JSON."),
        ]
        return click.Command(
            cmd_name,
            params=options,
            callback=functools.partial(run, cmd_name, lab.callback),
            help=f"{LABS[cmd_name]}\n\n{lab.help}",
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Lists the labs without importing them."""
        with formatter.section("Labs"):
            formatter.write_dl(list(LABS.items()))


def run(name: str, lab: Callable[..., None] | None, out: Path | None, as_json: bool, **options: Any) -> int:
    """Run a lab in a sandbox of its own; return its exit code."""
    directory = (out or OUT / name).resolve()
    if not sandbox.inside():
        return enter(directory)
    assert lab is not None
    prepare()
    report = Report(name, directory)
    try:
        lab(report, **options)
    except LabError as error:
        raise Refusal(str(error), code="unavailable", exit_code=1) from error
    report.write()
    report.print(Console(stderr=as_json))
    if as_json:
        click.echo(json.dumps(report.to_json()))
    return 0 if report.holds else 1


def enter(directory: Path) -> int:
    """Run this command line again in a sandbox of its own."""
    try:
        sandbox.check_machine()
        if not sandbox.claim(directory):
            raise Refusal(f"a lab runs in {directory}; wait for it, or give another --out", code="conflict")
        return sandbox.enter()
    except sandbox.SandboxError as error:
        raise Refusal(str(error), code="cannot-start") from error


def prepare() -> None:
    """Make the sandbox a place for links; Ctrl-C ends what runs, so that blocks are left in order."""
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    main_thread = threading.main_thread().ident or 0
    sandbox.prepare(lambda: signal.pthread_kill(main_thread, signal.SIGUSR1))
    # What is run here must not take itself to be in this sandbox's fabric.
    os.environ.pop(sandbox.FABRIC, None)


@click.group(
    cls=Labs,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    help="Labs: things that one should have seen once. Run them as root.",
    epilog="switch/labs/run NAME --help tells the options of a lab.",
)
@click.pass_context
def labs(context: click.Context) -> None:
    """List the labs where none is named."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: 0 when all was seen that one should see, 1 when not, 2 for wrong use."""
    try:
        result = labs.main(list(arguments), prog_name="switch/labs/run", standalone_mode=False)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        refusal = describe(error)
        show(refusal, wants_json(arguments))
        return refusal.exit_code
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
