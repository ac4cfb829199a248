"""What the service counts, as a page of metrics for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass, field

from wormcast.metrics_page import MetricsPage, Sample


@dataclass
class Figures:
    """Since the service started."""

    files: dict[str, int] = field(default_factory=lambda: {"received": 0, "unconfirmed": 0, "failed": 0})
    """By outcome."""
    bytes: int = 0
    """Of whole files."""
    last_seconds: float = 0.0
    """How long the last whole file took to come."""
    last_at: float = 0.0
    """When it had come, seconds since 1970."""
    arriving: int = 0
    groups: int = 0
    groups_left_out: int = 0
    commands: int = 0
    commands_failed: int = 0
    commands_waiting: int = 0

    def note_command(self, status: int) -> None:
        """A command has ended."""
        self.commands += 1
        self.commands_failed += status != 0

    def page(self) -> str:
        """All of it."""
        page = MetricsPage()
        files: list[Sample] = [({"outcome": outcome}, count) for outcome, count in self.files.items()]
        page.add("receive_files_total", "counter", "files that came, by outcome", files)
        for name, kind, meaning, value in (
            ("bytes_total", "counter", "bytes of whole files", self.bytes),
            ("arriving", "gauge", "files that are arriving", self.arriving),
            ("groups", "gauge", "groups that are received from", self.groups),
            ("groups_left_out", "gauge", "groups wanted that are not received from", self.groups_left_out),
            ("commands_total", "counter", "commands that ended", self.commands),
            (
                "commands_failed_total",
                "counter",
                "of these, with another status than 0",
                self.commands_failed,
            ),
            ("commands_waiting", "gauge", "commands that have not ended", self.commands_waiting),
            ("last_seconds", "gauge", "time that the last whole file took to come", self.last_seconds),
            ("last_timestamp_seconds", "gauge", "when it had come, since 1970", self.last_at),
        ):
            page.add(f"receive_{name}", kind, meaning, [({}, value)])
        return page.text()
