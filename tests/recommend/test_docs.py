"""The pages about recommenders and ranking say what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest


@pytest.mark.parametrize("page", ["recommenders.md", "ranking.md"])
def test_the_examples_of_the_page_run(page):
    path = Path(__file__).parents[2] / "docs" / page
    result = doctest.testfile(str(path), module_relative=False)
    assert result.attempted > 8
    assert result.failed == 0
