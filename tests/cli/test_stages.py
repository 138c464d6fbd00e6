from __future__ import annotations

import time

from cranfield import _progress
from cranfield.cli import _stages
from cranfield.cli._stages import stages


def test_a_long_stage_of_one_step_writes_lines_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(_stages, "_LOOK", 0.001)
    seen = ""
    with stages("Assessing"):
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            time.sleep(0.001)
            seen = capsys.readouterr().err
    assert seen == "Assessing: 0 s so far\n"
    assert capsys.readouterr().err.startswith("Assessing   ")
