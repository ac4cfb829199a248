"""The main job: a real file from one host to all others through P4 switches, under every scheme.

Brings up a fabric in Mininet, makes a group over REST, sends the file, measures, and
writes report.md, report.json and two pictures.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text
from wormcast.counted import counted
from wormcast.exits import Exit
from wormcast.mininet import sandbox
from wormcast.mininet.choice import name_all
from wormcast.network.groups import SCHEMES, SCHEMES_ANYWHERE
from wormcast_planner import needs_grid

DEFAULTS = {
    # Two cores carry seven copies of this; above it the processor is the limit.
    "wormcast": {"rate": "100", "size": "64MiB"},
    # BMv2 takes several times the processor for a frame.
    "bmv2": {"rate": "10", "size": "4MiB"},
}
SIZE = re.compile(r"^(\d+)\s*(|B|KB|KiB|MB|MiB|GB|GiB)$")
UNITS = {"": 1, "B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
SIZE_BYTES_MAX = 64 * 2**30


def parse_size(text: str) -> int:
    """Bytes of a size such as 64MiB. Raises ValueError."""
    match = SIZE.match(text.strip())
    if not match:
        raise ValueError(
            f"size {text!r} is not a whole number with a unit of {', '.join(u for u in UNITS if u)}"
        )
    size = int(match[1]) * UNITS[match[2]]
    if not 1 <= size <= SIZE_BYTES_MAX:
        raise ValueError(f"size {text!r} is outside 1 B to {SIZE_BYTES_MAX >> 30} GiB")
    return size


@dataclass(frozen=True)
class Wanted:
    """A demo as a command line says it: see the options of `wormcast demo`."""

    switch: str
    topology: str
    file: Path | None
    size: str | None
    rate: str | None
    mtu: str | None
    fabric_mtu: str | None
    schemes: str | None
    source: int
    impair: str | None
    cut: str | None
    out: Path
    seed: int
    switching: str | None


@dataclass(frozen=True)
class Job:
    """What to send, and how."""

    schemes: list[str]
    file: Path
    source: int
    receivers: list[int]
    out: Path
    cut: bool


def run(wanted: Wanted) -> int:
    """Run the demo in a sandbox; 0 only if every scheme gave every receiver the same bytes.

    Raises `SandboxError`, ValueError, OSError for what was asked for wrongly.
    """
    if sandbox.inside():
        sandbox.prepare(lambda: sandbox.leave(Exit.INTERRUPTED))
        return serve(wanted, Console())
    sandbox.check_machine()
    out = wanted.out.resolve()
    if not sandbox.claim(out):
        raise ValueError(f"a fabric runs in {out}; give this one another --out (OUT= with make)")
    return sandbox.enter(name=out.name, directory=out)


def serve(wanted: Wanted, console: Console) -> int:
    """The demo proper, inside the sandbox."""
    from wormcast.mininet import fabric as fabrics
    from wormcast.mininet import topologies

    defaults = DEFAULTS[wanted.switch]
    rate = fabrics.parse_rate_mbps(wanted.rate or defaults["rate"])
    mtus = fabrics.parse_mtus(wanted.mtu, wanted.fabric_mtu)
    impair = fabrics.parse_impair(wanted.impair, wanted.switch)
    topology = topologies.load_topology(wanted.topology, wanted.seed, topologies.tell)
    job = make_job(wanted, topology, wanted.size or defaults["size"])
    settings = fabrics.Options(
        topology, wanted.switch, rate, impair, wanted.seed, switching=wanted.switching, mtus=mtus
    )
    # Slow to load: what was asked for wrongly is refused before.
    from wormcast.mininet import report

    console.print(
        f"{counted(len(topology['switches']), 'P4 switch')} ({wanted.switch}), {counted(len(topology['hosts']), 'host')}, "
        f"links of {'no set rate' if rate is None else f'{rate:g} Mb/s'}; "
        f"{job.file.name}, {job.file.stat().st_size:,} bytes, from h{job.source} to {len(job.receivers)} receivers"
    )
    if wanted.schemes is None and (left := [scheme for scheme in SCHEMES if scheme not in job.schemes]):
        console.print(f"left out: {', '.join(left)}, which are for a torus or mesh")
    started = time.monotonic()
    try:
        with fabrics.Fabric(settings, job.out) as fabric:
            with console.status("bringing the fabric up: switches, controller, agents, discovery"):
                fabric.wait_ready()
            console.print(f"fabric up after {time.monotonic() - started:.1f} s")
            results = [send(fabric, job, scheme, console) for scheme in job.schemes]
    except fabrics.FabricError as error:
        console.print(f"[red]demo:[/] {error}", highlight=False)
        return Exit.NO
    finally:
        if wanted.file is None:
            job.file.unlink(missing_ok=True)
    facts = {
        "switch": wanted.switch,
        "topology": wanted.topology,
        "rate_mbps": rate,
        "mtu_bytes": mtus.host,
        "impair": wanted.impair,
        "switching": wanted.switching,
        "cut": bool(wanted.cut),
        "seed": wanted.seed,
        "file_bytes": results[0].file_bytes,
        "source": job.source,
        "machine": f"{platform.system()} {platform.release()}, {os.cpu_count()} cores",
    }
    console.print(table(results))
    report.write(job.out, topology, facts, results)
    console.print(f"report: {os.path.relpath(job.out / 'report.md')}, report.json and pictures beside it")
    return Exit.DONE if all(result.intact for result in results) else Exit.NO


def make_job(wanted: Wanted, topology: dict[str, Any], size: str) -> Job:
    """Check what was asked for against what there is."""
    schemes = choose_schemes(wanted.schemes, wanted.topology, "grid" in topology)
    hosts = [host["id"] for host in topology["hosts"]]
    if wanted.source not in hosts:
        known = name_all([str(host) for host in hosts])
        raise ValueError(f"source {wanted.source} is not the id of a host; there are {known}")
    if wanted.cut and not topology["links"]:
        raise ValueError(f"topology {wanted.topology} has no link between switches; there is none to cut")
    if wanted.file is not None and wanted.size is not None:
        raise ValueError("--size is of random bytes; leave it out with --file")
    if len(hosts) < 2:
        raise ValueError(f"topology {wanted.topology} has {len(hosts)} host(s); a transfer needs 2 or more")
    out = wanted.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    file = (
        wanted.file.resolve()
        if wanted.file is not None
        else random_file(out / "random.bin", parse_size(size))
    )
    if not file.is_file() or file.stat().st_size == 0:
        raise ValueError(f"{file} is not a file, or is empty")
    return Job(schemes, file, wanted.source, [h for h in hosts if h != wanted.source], out, bool(wanted.cut))


def choose_schemes(asked: str | None, topology: str, has_grid: bool) -> list[str]:
    """The schemes asked for; by default all that the topology can have."""
    if asked is None:
        return list(SCHEMES if has_grid else SCHEMES_ANYWHERE)
    schemes = [scheme.strip() for scheme in asked.split(",") if scheme.strip()]
    unknown = [scheme for scheme in schemes if scheme not in SCHEMES]
    if unknown or not schemes:
        raise ValueError(f"scheme {', '.join(unknown) or '(none)'} is not one of: {', '.join(SCHEMES)}")
    if placeless := [scheme for scheme in schemes if needs_grid(scheme) and not has_grid]:
        raise ValueError(
            f"scheme {', '.join(placeless)} is for a torus or mesh, which {topology} is not; any topology can have "
            f"{', '.join(SCHEMES_ANYWHERE)}"
        )
    return schemes


def random_file(path: Path, size: int) -> Path:
    """`size` bytes that no link can compress."""
    sandbox.remove_at_end(path)
    with path.open("wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(secrets.token_bytes(min(1 << 20, size - start)))
    return path


class RateColumn(ProgressColumn):
    """How fast bytes come, in the unit of links and of the table."""

    def render(self, task: Task) -> Text:
        """As it is shown; nothing before two steps."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed * 8 / 1e6:.1f} Mb/s", style="progress.data.speed")


def send(fabric: Any, job: Job, scheme: str, console: Console) -> Any:
    """One scheme, with a progress bar of the slowest receiver."""
    from wormcast.mininet import transfer

    columns = [
        TextColumn("{task.description:<11}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        RateColumn(),
        TimeElapsedColumn(),
    ]
    cuttable = next((link for link in fabric.links if link.far_switch is not None), None)
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task(scheme, total=job.file.stat().st_size)

        def cut() -> None:
            if cuttable is not None:
                fabric.set_link(cuttable, False)
                bars.console.print(f"{scheme}: link {cuttable.name} cut")

        result = transfer.transfer(
            fabric,
            scheme,
            job.file,
            job.source,
            job.receivers,
            watch=lambda progress: bars.update(bar, completed=progress.slowest_bytes),
            midway=cut if job.cut else None,
        )
        bars.update(bar, completed=job.file.stat().st_size)
    if job.cut and cuttable is not None:
        fabric.set_link(cuttable, True)
        fabric.wait_ready()
    return result


def table(results: list[Any]) -> Table:
    """What each scheme cost."""
    view = Table(
        title="What each scheme cost", caption="MiB: frames with their headers, counted by the kernel"
    )
    view.add_column("scheme", no_wrap=True)
    for name in ("seconds", "Mb/s\neach", "source\nMiB", "links\nMiB", "busiest\nMiB", "resent"):
        view.add_column(name, justify="right", no_wrap=True)
    view.add_column("members\nintact", justify="right", no_wrap=True)
    for r in results:
        view.add_row(
            r.scheme,
            f"{r.seconds:.2f}",
            f"{r.goodput_mbps:.1f}",
            f"{r.source_bytes / 2**20:.1f}",
            f"{r.link_bytes / 2**20:.1f}",
            f"{r.busiest_link_bytes / 2**20:.1f}",
            f"{r.retransmissions:,}",
            f"{r.receivers - len(r.failed)} of {r.receivers}" if r.intact else "[red]NOT EQUAL[/]",
        )
    return view
