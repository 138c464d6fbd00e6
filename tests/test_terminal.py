from __future__ import annotations

import io

import pytest

from cranfield import _terminal
from cranfield._settings import settings
from cranfield._terminal import one_line, progress, shown_lines


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that a test moves, with the patience of two seconds."""
    now = [0.0]
    monkeypatch.setattr(_terminal, "_PATIENCE", 2.0)
    monkeypatch.setattr(_terminal.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_a_line_is_written_now_and_then(clock, capsys):
    with progress("Fitting", total=1_000, unit="items") as bar:
        for second in range(1, 301):
            clock[0] = float(second)
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Fitting: 2 of 1,000 items, 2 s so far, about 998 s left"
    seconds = [int(line.split(", ")[1].split()[0]) for line in lines]
    assert seconds == [2, 10, 20, 40, 80, 140, 200, 260]


def test_what_takes_less_than_two_seconds_or_is_quiet_writes_nothing(clock, capsys):
    with progress("Fitting", total=2) as bar:
        clock[0] = 1.9
        bar.advance()
    settings.quiet = True
    with progress("Fitting", total=2) as bar:
        clock[0] = 100.0
        bar.advance()
    assert capsys.readouterr().err == ""


def test_nothing_commands_a_terminal_and_nobody_need_read_it(clock, capsys, monkeypatch):
    with progress("Fitting \x1b[31m", total=None) as bar:
        clock[0] = 3.0
        bar.advance()
        assert capsys.readouterr().err == "Fitting \ufffd[31m: 3 s so far\n"
        closed = io.StringIO()
        closed.close()
        monkeypatch.setattr("sys.stderr", closed)
        clock[0] = 60.0
        bar.advance()
    assert bar.done == 2


def test_text_for_a_terminal_is_one_line_or_keeps_its_lines_and_tabs():
    assert one_line("two\n  lines ") == "two lines"
    assert shown_lines("a\tb\x1b[2J\nc") == "a\tb\ufffd[2J\nc"


def test_progress_counts_what_is_done():
    with progress("Counting", total=3) as bar:
        for _ in range(3):
            bar.advance()
    assert bar.done == 3
