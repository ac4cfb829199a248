"""Refusals of the controller name the choices, or of many the nearest."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from wormcast.cli.main import main
from wormcast.reconcile.errors import CHOICES_MAX, NEAREST_MAX, unknown


@pytest.mark.parametrize(
    ("value", "choices", "near"),
    [
        (700, list(range(0, 5000, 10)), [700, 690, 710]),
        ("4999", list(range(5000)), [4999, 4998]),
        ("imges", [f"group-{n}" for n in range(500)] + ["images", "imports"], ["images", "imports"]),
        ("h77x", [f"h{n}" for n in range(1000)], ["h770", "h771"]),
    ],
)
def test_of_many_the_nearest_are_named(value: object, choices: list[object], near: list[object]) -> None:
    error = unknown("host", value, choices)
    assert error.choices is not None
    assert len(error.choices) == NEAREST_MAX
    assert set(near) <= set(error.choices)
    assert f"nearest of {len(choices)} are {error.choices[0]}" in error.message


def test_of_few_all_are_named() -> None:
    error = unknown("host", 99, range(CHOICES_MAX))
    assert error.choices == list(range(CHOICES_MAX))
    assert error.message.endswith(", 30, 31")
    assert unknown("host", 99, []).message == "there is no host 99; there are none"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("stop", "there is `wormcast up stop`"),
        ("lag", "there is `wormcast group lag`"),
        ("shwo", "nearest of"),
    ],
)
def test_a_command_a_level_below_is_named(command: str, said: str) -> None:
    result = CliRunner().invoke(main, [command], prog_name="wormcast")
    assert result.exit_code == 2
    assert said in result.stderr
