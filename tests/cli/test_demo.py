"""The command that shows the whole line; what it makes is tested in `tests/reports/test_demo.py`."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_quiet_demo_says_only_the_result(cranfield, tmp_path):
    code, out, err = cranfield("demo", "small", "--out", str(tmp_path), "--quiet", "--style", "screen")
    assert (code, err) == (0, "")
    assert out.startswith("The table everyone publishes")


@pytest.mark.slow
def test_open_shows_the_page_in_a_browser(cranfield, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    assert cranfield("demo", "small", "--out", str(tmp_path), "--quiet", "--open").code == 0
    assert shown == [(tmp_path / "report.html").as_uri()]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["Training and ranking", "Trying other decisions"])
def test_an_interrupted_demo_leaves_no_half_file(tmp_path, stage):
    code = "import sys; from cranfield.cli import main; main(sys.argv[1:])"
    asked = [sys.executable, "-c", code, "demo", "small", "--out", str(tmp_path)]
    with subprocess.Popen(asked, stderr=subprocess.PIPE, text=True) as running:
        # The stage has just been announced; "Trying other decisions" is the last one before the page is written.
        while (line := running.stderr.readline()) and not line.startswith(stage):
            pass
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(60) not in (0, 2)
    assert "Traceback" not in rest
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.name != "report.html" and not path.name.startswith(".") for path in left)


def test_a_missing_library_is_told_before_any_work(cranfield, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, out, err = cranfield("demo", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert "drawing needs vl-convert-python" in err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_size_is_a_mistake_of_the_user(cranfield):
    code, _, err = cranfield("demo", "huge")
    assert code == 2
    assert "'small', 'medium', 'large'" in err


def test_a_folder_that_cannot_be_made_is_told_before_any_work(cranfield, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = cranfield("demo", "--out", str(tmp_path / "file"))
    assert (code, out) == (2, "")
    assert "choose another with --out" in err
    assert "Simulating" not in err
