"""The dialects of recommender frameworks, against those that are installed, on more random worlds than the fixtures."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import cranfield as cf
from cranfield.measures.other_tools import compare_tools

PRODUCE = runpy.run_path(str(Path(__file__).parents[1] / "metrics" / "dialects" / "fixtures" / "produce.py"))


@pytest.mark.parametrize("kind", ["ragged", "relevant", "complete"])
@pytest.mark.parametrize("name", PRODUCE["TOOLS"])
def test_a_dialect_gives_the_number_that_the_installed_tool_prints(name, kind):
    pytest.importorskip(name)
    for seed in range(100, 104):
        made = PRODUCE["world"](seed, kind)
        try:
            printed = PRODUCE["TOOLS"][name](**made)
        except ImportError as missing:
            pytest.skip(f"{name} is installed without all it needs: {missing}")
        rows = [(user, item, rating) for user, rated in made["test"].items() for item, rating in rated.items()]
        plain = sorted({one.partition("(")[0] + one.partition(")")[2] for one in printed})
        frame = compare_tools({"run": made["run"]}, cf.Ratings.of(*zip(*rows)), plain, threshold=PRODUCE["THRESHOLD"])
        ours = dict(frame.select("spelling", "value").iter_rows())
        assert {one: ours[one] for one in printed} == pytest.approx(printed, rel=1e-9, abs=1e-9)
