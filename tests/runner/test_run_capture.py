"""Outputs of commands: bounded, decoded whatever they are, cut where JSON makes them large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.limits import SHELL_LINE_CHARS_MAX, SHELL_OUTPUT_CHARS_MAX
from pi_workflows.runner.capture import Capture, bounded


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=4))
def test_text_does_not_depend_on_how_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    """A character that two reads split is still one character."""
    capture = Capture("stdout")
    start = 0
    for cut in sorted(cuts):
        capture.feed(data[start:cut])
        start = max(start, cut)
    capture.feed(data[start:], is_last=True)
    assert capture.text == data.decode(errors="replace")
    assert not capture.is_truncated


def test_what_is_over_the_bound_is_dropped_and_told() -> None:
    """The bound counts characters, and exactly as many are kept."""
    capture = Capture("stdout")
    for _ in range(3):
        capture.feed(("é" * (SHELL_OUTPUT_CHARS_MAX // 2)).encode())
    assert capture.text == "é" * SHELL_OUTPUT_CHARS_MAX
    assert capture.is_truncated


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=6))
def test_lines_do_not_depend_on_how_the_text_arrives(pieces: list[str]) -> None:
    """A line is whole when its newline has come; the last one needs none."""
    capture = Capture("stderr")
    found = [line.text for piece in pieces for line in capture.lines(piece)]
    found += [line.text for line in capture.lines("", is_last=True)]
    whole = "".join(pieces).split("\n")
    expected = [*(line.removesuffix("\r") for line in whole[:-1])]
    if whole[-1]:
        expected.append(whole[-1].removesuffix("\r"))
    assert found == expected


def test_a_line_without_an_end_is_bounded() -> None:
    """A program that never writes a newline costs no more than one line."""
    capture = Capture("stdout")
    for _ in range(4):
        assert not [*capture.lines("x" * SHELL_LINE_CHARS_MAX)]
        assert len(capture._line) == SHELL_LINE_CHARS_MAX  # pyright: ignore[reportPrivateUsage]
    (line,) = capture.lines("\n")
    assert line.text == "x" * SHELL_LINE_CHARS_MAX


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(2, 400))
def test_bounded_text_fits_as_json(text: str, bytes_max: int) -> None:
    """Text that fits stays; any other is a beginning of it that fits."""
    cut, is_cut = bounded(text, bytes_max)
    assert len(canonical.encode(cut)) <= bytes_max
    assert text.startswith(cut)
    assert is_cut == (len(canonical.encode(text)) > bytes_max)
