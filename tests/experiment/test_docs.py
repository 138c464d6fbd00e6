"""The page about experiments says what happens."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

from cranfield.experiment import Decisions
from cranfield.experiment.file import TOP, experiment_of

PAGE = Path(__file__).parents[2] / "docs" / "experiment.md"


def test_the_examples_of_the_page_run():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 15
    assert result.failed == 0


def test_the_example_file_is_an_experiment():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert experiment_of(tomllib.loads(text)).seed == 7


def test_every_key_and_decision_is_on_the_page():
    page = PAGE.read_text()
    for name in (*TOP, *Decisions().as_dict()):
        assert re.search(rf"`\[*{name}[.\w]*\]*`", page), name
