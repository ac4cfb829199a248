"""What `wormcast send --dry-run` shows."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import click

from wormcast.cli.bundle import BundleOptions, pack, shown
from wormcast.cli.content import is_bundle
from wormcast.counted import counted


def show_what_is_sent(files: list[Path], options: BundleOptions, as_json: bool) -> None:
    """Files, directories and links, with the paths that receivers would have. OSError, BundleError."""
    left_out: list[str] = []
    if is_bundle(files, options):
        packed = pack(files, options)
        entries = [(os.fsdecode(path), kind, size) for path, kind, size in packed.entries()]
        left_out = [os.fsdecode(path) for path in packed.left_out]
    elif str(files[0]) == "-":
        raise click.UsageError("What comes from standard input cannot be known before.")
    else:
        about = files[0].stat()
        kind = "file" if stat.S_ISREG(about.st_mode) else "pipe"
        entries = [(files[0].name, kind, about.st_size)]
    total = sum(size for _, _, size in entries)
    if as_json:
        value = {
            "entries": [{"path": path, "kind": kind, "bytes": size} for path, kind, size in entries],
            "bytes": total,
            "left_out": left_out,
        }
        click.echo(json.dumps(value, indent=2))
        return
    for path, kind, size in entries:
        length = f"{size}" if kind == "file" else kind
        click.echo(f"{length:>13}  {shown(path)}")
    for path in left_out:
        click.echo(f"{'not sent':>13}  {shown(path)}")
    click.echo(f"{total} bytes in {counted(sum(kind == 'file' for _, kind, _ in entries), 'file')}")
