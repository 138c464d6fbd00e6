"""The figures of the explanations are those that their script draws today."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from cranfield.reports import figures

FOLDER = Path(__file__).parents[1] / "docs" / "images"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["condensed", "popularity", "splits", "curve", "robustness"])
def test_a_figure_of_the_explanations_is_what_its_script_draws(name, tmp_path):
    script = runpy.run_path(str(FOLDER / "explain.py"))
    figures.save(script["_FIGURES"][name](), tmp_path / "again.svg")
    kept, again = (path.read_text(encoding="utf-8") for path in (FOLDER / f"{name}.svg", tmp_path / "again.svg"))
    assert NUMBER.sub("", kept) == NUMBER.sub("", again)
    # The last digits may differ between machines.
    np.testing.assert_allclose([*map(float, NUMBER.findall(again))], [*map(float, NUMBER.findall(kept))], atol=1e-3)
