"""The simulations of `benchmarks/levels.py`, short: no level is off by more than three standard errors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "levels.py"
# Those that are slow beside what they show take fewer runs.
RUNS = {"repetitions": 60, "groups": 200, "geometric": 100, "clean_splits": 400, "advice": 300}


@pytest.fixture(scope="module")
def levels():
    spec = importlib.util.spec_from_file_location("levels", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["levels"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["levels"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "repetitions",
        "pairs",
        "retrained",
        "geometric",
        "advice",
        "groups",
        "smallest",
        "clean_splits",
        "gate_users",
        "relative",
        "skewed",
    ],
)
def test_levels_hold(levels, name):
    rows = list(levels.SIMULATIONS[name](np.random.default_rng(1), RUNS.get(name, 300)))
    assert [row for row in rows if not row.holds] == []


def test_a_row_holds_on_the_right_side_of_its_nominal_value_or_within_three_standard_errors(levels):
    row = levels.Row("what", "setting", "at most", 0.05, 0.06, 1000)
    sides = {"at most": (0.08, 0.01), "at least": (0.02, 0.2)}
    for side, (wrong, right) in sides.items():
        assert row._replace(side=side).holds
        assert row._replace(side=side, observed=right).holds
        assert not row._replace(side=side, observed=wrong).holds
        assert not row._replace(side="about", observed=wrong).holds
    assert "**no**" in levels.table([row._replace(observed=0.5)])


def test_every_simulation_is_tested(levels):
    (mark,) = [mark for mark in test_levels_hold.pytestmark if mark.name == "parametrize"]
    assert mark.args[1] == list(levels.SIMULATIONS)
