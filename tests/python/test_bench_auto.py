"""What `bench/auto` says of times."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "auto"))
from verdict import Length, conclude, table

STRUCTURES = [
    {"scheme": "repeat", "bytes_most": 1000, "expected": [{"bytes": 64, "microseconds": 500.0}]},
    {
        "scheme": "switch",
        "bytes_most": None,
        "expected": [{"bytes": 1064, "microseconds": 1500.0}, {"bytes": 9064, "microseconds": 9500.0}],
    },
]


def length(size: int, auto_ms: float, width: float, *, best_ms: float = 1.0) -> Length:
    """Nine times of each of three schemes, as wide as that."""
    spread = [(at - 4) / 4 * width for at in range(9)]
    times = {"repeat": 2 * best_ms, "switch": best_ms, "auto": auto_ms}
    seconds = {name: [ms / 1000 * (1 + each) for each in spread] for name, ms in times.items()}
    return Length(size, seconds, STRUCTURES)


@pytest.mark.parametrize(
    ("auto_ms", "width", "verdict"),
    [
        (1.0, 0.0, "yes"),
        (1.1, 0.0, "yes"),
        (1.2, 0.01, "no"),
        (1.2, 0.3, "noise"),
        (3.0, 0.3, "no"),
        (0.9, 0.3, "yes"),
    ],
)
def test_a_tenth_more_is_right_and_noise_is_named(auto_ms: float, width: float, verdict: str) -> None:
    one = length(64, auto_ms, width)
    assert one.best == "switch"
    assert one.ratio == pytest.approx(auto_ms)
    assert one.verdict == verdict


def test_what_was_picked_and_expected_goes_by_the_length() -> None:
    assert [length(size, 1, 0).structure["scheme"] for size in (64, 1000, 1001, 1 << 30)] == [
        "repeat",
        "repeat",
        "switch",
        "switch",
    ]
    expected = [length(size, 1, 0).expected * 1e6 for size in (10, 64, 564, 1064, 5064, 19064)]
    assert expected == pytest.approx([500, 500, 1000, 1500, 5500, 19500])


def test_the_table_and_the_end_name_all_of_it() -> None:
    lengths = [length(64, 1.0, 0.0), length(4096, 1.3, 0.01), length(8192, 1.2, 0.3)]
    text = table(lengths, ["repeat", "circuit", "switch"])
    assert len(text.splitlines()) == 5
    assert "| – |" in text, "circuit was not tried"
    end = conclude({3: lengths})
    assert "at 1 of 3 lengths" in end
    assert "at 1 more" in end
    assert "1.30 times the best (4,096 bytes, switch beside switch)" in end
