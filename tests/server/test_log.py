"""The log is bounded in lines, in files and in what it may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.base.limits import LOG_FILE_BYTES_MAX, LOG_FILES_MAX, LOG_LINE_CHARS_MAX
from pi_workflows.server.log import ServerLog
from tests.server.clocks import FixedClock


def test_a_line_says_when_what_and_which(tmp_path: Path) -> None:
    """A line has its time, its event and its facts; a fact that is None is left out."""
    log = ServerLog(tmp_path / "server.log", FixedClock())
    log.write("run.launched", run="run-1", pid=7, code=None)
    log.close()
    text = (tmp_path / "server.log").read_text()
    assert text == "2023-11-14T22:13:20.000Z run.launched run=run-1 pid=7\n"


@pytest.mark.parametrize("value", ["two words", "two\nlines", "\x1b[31mred", "\ud800", "ü\u2028"])
def test_no_value_can_write_a_line_of_its_own(tmp_path: Path, value: str) -> None:
    """Whatever a peer chose stands inside one line, without control characters."""
    log = ServerLog(tmp_path / "server.log", FixedClock())
    log.write("connection.closed", reason=value)
    log.close()
    (line,) = (tmp_path / "server.log").read_text().splitlines()
    assert line.isprintable()
    assert line.startswith("2023-11-14T22:13:20.000Z connection.closed reason='")


def test_a_line_is_bounded(tmp_path: Path) -> None:
    """A long value is cut, and the line still ends."""
    log = ServerLog(tmp_path / "server.log", FixedClock())
    log.write("a", value="x" * 100_000)
    log.write("b")
    log.close()
    lines = (tmp_path / "server.log").read_text().splitlines()
    assert [len(line) for line in lines] == [LOG_LINE_CHARS_MAX, 26]


def test_the_files_turn_over(tmp_path: Path) -> None:
    """However much is written, three files of four MiB remain, the newest line in the newest."""
    log = ServerLog(tmp_path / "server.log", FixedClock())
    count = LOG_FILES_MAX * LOG_FILE_BYTES_MAX // LOG_LINE_CHARS_MAX + 5_000
    for number in range(1, count + 1):
        log.write(f"n{number}", value="x" * LOG_LINE_CHARS_MAX)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["server.log", "server.log.1", "server.log.2"]
    assert all(file.stat().st_size <= LOG_FILE_BYTES_MAX for file in files)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    last = files[0].read_text().splitlines()[-1]
    assert f" n{count} " in last


def test_a_restart_goes_on_in_the_same_file(tmp_path: Path) -> None:
    """A log that is opened again keeps what stands in it."""
    for event in ("first", "second"):
        log = ServerLog(tmp_path / "server.log", FixedClock())
        log.write(event)
        log.close()
    assert len((tmp_path / "server.log").read_text().splitlines()) == 2


def test_the_same_news_comes_once_a_second(tmp_path: Path) -> None:
    """What repeats faster is counted, and the next line says how often."""
    clock = FixedClock()
    log = ServerLog(tmp_path / "server.log", clock)
    for _ in range(5):
        log.limited("connection.violation", code="notJson")
    clock.advance_ms(1_000)
    log.limited("connection.violation", code="notJson")
    log.close()
    first, second = (tmp_path / "server.log").read_text().splitlines()
    assert first.endswith("code=notJson")
    assert second.endswith("code=notJson left_out=4")


def test_a_disk_that_refuses_stops_nobody(tmp_path: Path) -> None:
    """A log that cannot be written is given up for this line, without an error."""
    log = ServerLog(tmp_path / "missing" / "server.log", FixedClock())
    log.write("lost")
    (tmp_path / "missing").mkdir()
    log.write("kept")
    log.close()
    assert (tmp_path / "missing" / "server.log").read_text().endswith("kept\n")
