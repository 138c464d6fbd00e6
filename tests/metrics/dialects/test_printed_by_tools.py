"""Every dialect, against the numbers that its tool printed for the worlds in ``fixtures``; ``produce.py`` made them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import cranfield as cf
from cranfield.measures.other_tools import compare_tools
from cranfield.metrics.definition import Metric
from cranfield.metrics.dialects import TOOLS

FIXTURES = Path(__file__).parent / "fixtures"
PRINTED = ("elliot", "lenskit", "recbole", "recommenders", "rectools", "replay")


def _world(number):
    made = json.loads((FIXTURES / "worlds.json").read_text())[number]
    rows = [(int(user), int(item), rating) for user, rated in made["test"].items() for item, rating in rated.items()]
    run = {int(user): ranked for user, ranked in made["run"].items()}
    return cf.Ratings.of(*zip(*rows)), run


def _printed(name, world):
    return json.loads((FIXTURES / f"{name}.json").read_text())["values"][world]


@cache
def _ours(world):
    """Return our values of all that any tool printed for a world, by spelling."""
    test, run = _world(world)
    metrics = [Metric.of(spelling) for name in PRINTED for spelling in _printed(name, world)]
    plain = {str(Metric(one.definition, (), one.cutoff)) for one in metrics}
    frame = compare_tools({"run": run}, test, sorted(plain), threshold=4)
    return dict(frame.select("spelling", "value").iter_rows())


@pytest.mark.parametrize("world", range(7))
@pytest.mark.parametrize("name", PRINTED)
def test_a_dialect_gives_the_number_that_the_tool_prints(name, world):
    printed = _printed(name, world)
    assert {spelling: _ours(world)[spelling] for spelling in printed} == pytest.approx(printed, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", PRINTED)
def test_every_dialect_and_option_of_a_tool_was_printed_and_the_version_is_stated(name):
    fixture = json.loads((FIXTURES / f"{name}.json").read_text())
    printed = {spelling.partition("@")[0] for values in fixture["values"] for spelling in values}
    spoken = {
        f"{metric}(dialect={name}{', ' if option else ''}{option})"
        for metric, one in TOOLS[name].dialects.items()
        for option in one.words
    }
    assert spoken == printed
    assert TOOLS[name].version == fixture["version"]


def test_the_mean_of_what_a_dialect_does_not_leave_out_is_the_number_of_the_tool():
    printed = json.loads((FIXTURES / "rectools.json").read_text())["values"][0]
    test, run = _world(0)
    scores = cf.measure({"run": run}, test, list(printed), threshold=4)
    assert scores.average(undefined="leave out")[0] == pytest.approx(list(printed.values()))
