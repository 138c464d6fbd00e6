from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)), {})
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"folder", "report.html", "averages.pdf", "spread.svg", "wins.png"}


def test_the_page_names_every_option_of_the_demo():
    from cranfield.cli.demo import demo_command

    own = {name for option in demo_command.params for name in option.opts[:1] if name.startswith("-")}
    own -= {"--seed", "--threads", "--quiet"}
    assert own <= set(re.findall(r"--[a-z]+", PAGE.read_text()))
