"""What `wormcast send --dry-run` shows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from wormcast.cli.bundle import BundleOptions, BundleSource, shown
from wormcast.counted import counted


def show_what_is_sent(files: list[Path], options: BundleOptions, as_json: bool) -> None:
    """Files, directories and links, with the paths that receivers would have. OSError, BundleError."""
    if files == [Path("-")]:
        raise click.UsageError("What comes from standard input cannot be known before.")
    source = BundleSource(files, options)
    entries = [(os.fsdecode(path), kind, size) for path, kind, size in source.packed.entries()]
    total = sum(size for _, _, size in entries)
    if as_json:
        value = {
            "entries": [{"path": path, "kind": kind, "bytes": size} for path, kind, size in entries],
            "bytes": total,
            "left_out": source.left_out,
        }
        click.echo(json.dumps(value, indent=2))
        return
    for path, kind, size in entries:
        about = f"{size}" if kind == "file" else kind
        click.echo(f"{about:>13}  {shown(path)}")
    for path in source.left_out:
        click.echo(f"{'not sent':>13}  {shown(path)}")
    click.echo(f"{total} bytes in {counted(sum(kind == 'file' for _, kind, _ in entries), 'file')}")
