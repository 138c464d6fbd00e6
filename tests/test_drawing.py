from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from cranfield import _drawing, _figures, _fonts
from cranfield._drawing import DrawingProcess

pytest.importorskip("vl_convert")
CHART = json.dumps({"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a"}}})


@pytest.fixture
def here(monkeypatch):
    """Say so where something is drawn in this process."""
    monkeypatch.setattr(_drawing, "_drawn", lambda task, source, scale, fonts: f"here {task}".encode())


@pytest.fixture
def process():
    process = DrawingProcess(_fonts.FOLDER)
    yield process
    process.close()


def test_what_is_drawn_in_a_process_is_an_svg_and_of_it_a_pdf(process, here):
    drawn = process.submit("svg", CHART).result().decode()
    assert drawn.startswith("<svg ")
    assert process.submit("pdf", drawn).result().startswith(b"%PDF")


def test_what_a_process_cannot_draw_is_tried_here_where_the_error_shows(process, here):
    assert process.submit("svg", "{").result() == b"here svg"


def test_after_the_process_died_drawing_is_done_here(process, here):
    process._process.kill()
    process._process.wait()
    assert process.submit("svg", CHART).result() == b"here svg"
    assert process.submit("pdf", "").result() == b"here pdf"


def test_the_program_answers_each_line_and_null_where_it_cannot_draw(monkeypatch, capsys):
    def drawn(task, source, scale, fonts):
        return f"{task} {source} {scale} {fonts}".encode() if source else 1 / 0

    monkeypatch.setattr(_drawing, "_drawn", drawn)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    lines = [["fonts", sys.path], ["svg", "a", 1.0], ["png", "", 3.0], ["png", "b", 3.0]]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(line) + "\n" for line in lines)))
    _drawing._serve()
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert answers[1] is None
    assert [base64.b64decode(answer).decode() for answer in answers[::2]] == ["svg a 1.0 fonts", "png b 3.0 fonts"]


def test_every_form_can_be_drawn_here():
    drawn = _drawing._drawn("svg", CHART, 1.0, _fonts.FOLDER)
    assert drawn.startswith(b"<svg ")
    assert _drawing._drawn("pdf", drawn.decode(), 1.0, _fonts.FOLDER).startswith(b"%PDF")
    assert _drawing._drawn("png", drawn.decode(), 1.0, _fonts.FOLDER).startswith(b"\x89PNG")


@pytest.mark.parametrize("executable", ["", "/there/is/no/python"])
def test_where_no_process_can_be_started_drawing_is_done_here(monkeypatch, here, executable):
    monkeypatch.setattr(sys, "executable", executable)
    process = DrawingProcess(_fonts.FOLDER)
    assert process.submit("script", "").result() == b"here script"
    process.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is killed like this elsewhere")
def test_the_process_ends_when_the_one_that_started_it_is_killed():
    program = """
        import os, signal
        from cranfield import _drawing
        process = _drawing.DrawingProcess("")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    # The drawing process shares standard error, so this would wait as long as it runs.
    killed = subprocess.run(command, stderr=subprocess.PIPE, timeout=60)
    assert killed.returncode == -signal.SIGKILL


def test_the_figures_of_a_page_are_put_in_where_they_belong(monkeypatch):
    monkeypatch.setattr(_figures, "svg_later", lambda defined, name: lambda: f"<svg {defined['n']} {name}>")

    @_figures.drawn_beside
    def page(first: int) -> str:
        figures = [_figures.svg_on_page({"n": n}, f"name-{n}") for n in (first, first + 1)]
        assert not any("svg" in figure for figure in figures)
        return f"<p>{figures[1]}</p><p>{figures[0]}</p>"

    assert page(3) == "<p><svg 4 name-4></p><p><svg 3 name-3></p>"
    assert _figures.svg_on_page({"n": 1}, "alone") == "<svg 1 alone>"


def test_more_than_seven_series_have_dashes_or_shapes_and_tips_have_formats():
    assert sorted(_figures.series("metric", ["P@10", "AP"])) == ["color"]
    assert sorted(_figures.series("metric", list("abcdefgh"))) == ["color", "strokeDash"]
    assert sorted(_figures.series("metric", list("abcdefgh"), mark="point")) == ["color", "shape"]
    tip = {"field": "mean", "format": ".4f", "title": "P@10", "type": "quantitative"}
    assert [tip.to_dict() for tip in _figures.tips(mean=("P@10", ".4f"))] == [tip]


def test_the_names_in_a_pdf_are_sorted():
    pdf = b"/XObject <<\n /b 2 0 R\n /a 1 0 R\n>>"
    assert _figures._in_order(pdf) == b"/XObject <<\n /a 1 0 R\n /b 2 0 R\n>>"
