"""What a lab says at its end: what one should see beside what was seen, as a table, JSON and a picture."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""What XML does not take."""
LINE_CHARACTERS_MAX = 120
"""Of a picture of text."""


@dataclass(frozen=True)
class Sight:
    """One thing to look at. `holds` is None where it is only told: times on a busy machine decide nothing."""

    expected: str
    seen: str
    holds: bool | None


@dataclass
class Report:
    """What was seen in a lab; `figures` are the numbers behind it."""

    lab: str
    directory: Path
    sights: list[Sight] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)

    def check(self, expected: str, seen: str, holds: bool | None) -> None:
        self.sights.append(Sight(expected, seen, None if holds is None else bool(holds)))

    def skip(self, what: str) -> None:
        """Say by name what was left out, and why."""
        self.notes.append(f"SKIPPED {what}")

    @property
    def holds(self) -> bool:
        """Whether all that must be seen was seen, and anything was looked at."""
        judged = [sight.holds for sight in self.sights if sight.holds is not None]
        return bool(judged) and all(judged)

    def draw(self, figure: Figure, name: str) -> None:
        """Keep a picture, the same bytes for the same content."""
        import matplotlib

        path = self.directory / f"{name}.svg"
        with matplotlib.rc_context({"svg.hashsalt": "lab", "svg.fonttype": "none"}):
            figure.savefig(path, metadata={"Date": None})
        # A tenth of a point is enough, and halves the file; a path is one line.
        text = re.sub(r"(\d\.\d)\d+", r"\1", path.read_text())
        path.write_text(re.sub(r" *\n(?=L )", " ", text))
        self.pictures.append(path)

    def draw_text(self, text: str, name: str) -> None:
        """Keep a picture of lines of text, as a terminal shows them."""
        shown = [CONTROL.sub("", line.expandtabs(4)) for line in text.rstrip().split("\n")]
        # A longer one goes on in the next row, as in a terminal.
        lines = [
            line[at : at + LINE_CHARACTERS_MAX]
            for line in shown
            for at in range(0, max(len(line), 1), LINE_CHARACTERS_MAX)
        ]
        width, height = 16 + 7.3 * max(map(len, lines), default=1), 16 + 16 * len(lines)
        rows = [
            f'<text x="8" y="{20 + 16 * number}" xml:space="preserve">{escape(line)}</text>'
            for number, line in enumerate(lines)
            if line.strip()
        ]
        path = self.directory / f"{name}.svg"
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" '
            f'font-size="12" fill="#e6e6e6">\n<rect width="100%" height="100%" fill="#1e2430"/>\n'
            + "\n".join(rows)
            + "\n</svg>\n"
        )
        self.pictures.append(path)

    def write(self) -> Path:
        """Write report.json; give its path."""
        path = self.directory / "report.json"
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n")
        return path

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "lab": self.lab,
            "seen_as_expected": self.holds,
            "sights": [vars(sight) for sight in self.sights],
            "figures": self.figures,
            "notes": self.notes,
            "pictures": [str(path) for path in self.pictures],
            "machine": {"kernel": platform.release(), "architecture": platform.machine()},
        }

    def print(self, console: Console) -> None:
        """Print the table, the notes, and where the files are."""
        table = Table(title=f"lab {self.lab}", title_justify="left", show_lines=True)
        table.add_column("what one should see", ratio=5)
        table.add_column("what was seen", ratio=6)
        table.add_column("", width=3)
        words = {True: "yes", False: "NO", None: "–"}
        for sight in self.sights:
            table.add_row(sight.expected, sight.seen, words[sight.holds])
        console.print(table, markup=False)
        for note in self.notes:
            console.print(note, markup=False, highlight=False)
        for path in [self.directory / "report.json", *self.pictures]:
            console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
