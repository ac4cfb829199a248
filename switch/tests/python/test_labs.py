"""Parts of the labs that need no network: files of others are read, and one line is changed in a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs.__main__ import LABS
from labs.lossless_hosts import Arrivals, pfc_frame
from labs.ngsdn.topology import modernise
from labs.one_line import change_line
from labs.pfc import along_a_line, around, channels, verify
from labs.report import Report
from labs.rig import LabError, ipv4_frame

ROOT = Path(__file__).resolve().parents[3]


def test_documents_tell_of_every_lab() -> None:
    text = (ROOT / "docs" / "labs.md").read_text()
    for lab in LABS:
        assert f"\n## {lab}\n" in text
        assert f"docker compose run --rm lab {lab}\nswitch/labs/run {lab}\n" in text or lab == "exercises"
        assert f"pictures/labs/{lab}.svg" in text


def test_print_statements_become_calls() -> None:
    source = "def main():\n    print '#' * 80\n    print('a')\n    printer = 1\n    print \"x, y\"\n"
    assert modernise(source) == (
        "def main():\n    print('#' * 80)\n    print('a')\n    printer = 1\n    print(\"x, y\")\n"
    )


def test_one_line_is_changed_and_the_original_is_not(tmp_path: Path) -> None:
    original, copy = tmp_path / "Makefile", tmp_path / "copy"
    original.write_text("A = 1\nSWITCH = old\ninclude x\n")
    difference = change_line(original, copy, "SWITCH =", "SWITCH = new", "Makefile")
    assert copy.read_text() == "A = 1\nSWITCH = new\ninclude x\n"
    assert original.read_text() == "A = 1\nSWITCH = old\ninclude x\n"
    assert difference.splitlines()[-2:] == ["-SWITCH = old", "+SWITCH = new"]
    for text in ("A = 1\n", "SWITCH = a\nSWITCH = b\n"):
        original.write_text(text)
        with pytest.raises(LabError, match="lines start with"):
            change_line(original, copy, "SWITCH =", "SWITCH = new", "Makefile")


@pytest.mark.parametrize("switches", [3, 4, 9])
def test_the_verifier_names_the_ring_and_passes_the_line(switches: int, tmp_path: Path) -> None:
    ring = verify(around(switches), tmp_path, "around")
    assert ring["deadlock_free"] is False
    assert channels(ring) == {(at, 1) for at in range(switches)}
    line = verify(along_a_line(switches), tmp_path, "line")
    assert line["deadlock_free"] is True
    assert channels(line) == set()


def test_a_pfc_frame_is_that_of_the_standard() -> None:
    frame = pfc_frame(3, 0xFFFF)
    assert frame.hex().startswith(
        "0180c2000001" + "02000000ffff" + "8808" + "0101" + "0008" + "0000" * 3 + "ffff"
    )
    assert len(frame) == 60


def test_a_checksum_is_right() -> None:
    frame = ipv4_frame(bytes(6), bytes([2, 0, 0, 1, 2, 3]), b"payload", dscp=24)
    words = [int.from_bytes(frame[at : at + 2], "big") for at in range(14, 34, 2)]
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF
    assert frame[15] >> 2 == 24


def test_numbers_left_out_and_out_of_order_are_counted() -> None:
    arrivals = Arrivals()
    for number in (0, 1, 3, 2, 6):
        arrivals.take(number, 0.0)
    assert (arrivals.frames, arrivals.missing, arrivals.out_of_order) == (5, 3, 1)


def test_a_lab_that_has_seen_nothing_has_not_seen_what_it_should(tmp_path: Path) -> None:
    report = Report("x", tmp_path)
    assert not report.holds
    report.check("told", "only", None)
    assert not report.holds
    report.check("seen", "yes", True)
    assert report.holds
    report.check("seen", "no", False)
    assert not report.holds


def test_a_picture_of_text_shows_long_lines_to_their_end(tmp_path: Path) -> None:
    report = Report("exercises", tmp_path)
    report.draw_text("short\n\n" + "a" * 300 + "end", "exercises")
    drawn = (tmp_path / "exercises.svg").read_text()
    assert "end</text>" in drawn
    assert drawn.count("<text ") == 1 + 3
