"""Commands, functions and experiments share their defaults."""

from __future__ import annotations

import inspect

import pytest

import cranfield as cf
from cranfield.cli import split
from cranfield.cli.assess import assess_command
from cranfield.cli.compare import compare_command
from cranfield.cli.evaluate import dialects_command, evaluate_command
from cranfield.cli.recommend import recommend_command
from cranfield.experiments.decisions import DECISIONS, Decisions
from cranfield.rankings import Ranking
from cranfield.splits.split import Splitting

COMMANDS = {
    one.name: one for one in (assess_command, compare_command, dialects_command, evaluate_command, recommend_command)
}
# A baseline and a correction that are not given are those of the group, except that Tukey's test has no correction. The
# assessment and the dialects are about metrics and choose their own. Repeats in files count unless somebody says so.
ASIDE = {"correction", "baseline", "repeats", "validation"}  # that of a command is a file
OWN = {"assess": {"metrics", "average", "averages", "significance", "undefined"}, "dialects": {"metrics"}}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_the_default_of_its_decision(name):
    for option in COMMANDS[name].params:
        if option.name in DECISIONS and option.name not in ASIDE | OWN.get(name, set()):
            assert option.default == DECISIONS[option.name].default, option.name


@pytest.mark.parametrize("function", [cf.measure, cf.compare, cf.recommend, cf.judge, cf.experiments.search])
def test_an_argument_has_the_default_of_its_decision(function):
    for name, argument in inspect.signature(function).parameters.items():
        if name in DECISIONS and name not in {*ASIDE, "groups"} and argument.default not in (None, argument.empty):
            assert argument.default == DECISIONS[name].default, name


def test_what_an_expert_would_choose():
    usual = Decisions()
    assert usual.split == Splitting().split == split._DEFAULT == "random(train=0.8)"
    assert (usual.significance, usual.correction, usual.threshold) == ("permutation", "max_t", "auto")
    assert usual.metrics == cf.measures.DEFAULT_METRICS
    assert any(metric.endswith("@100") for metric in usual.metrics)
    assert Ranking().threshold == usual.threshold


def test_new_lists_the_presets_and_refuses_others(cranfield, tmp_path):
    assert "canamares2020" in cranfield("new", "--help").out
    found = cranfield("new", tmp_path / "experiment.toml", "--preset", "mine")
    assert found.code == 2
    assert found.err.startswith("cranfield: --preset mine is not one of canamares2020, valcarce2018, valcarce2020, ")
    found = cranfield("new", tmp_path / "experiment.toml", "--preset", "canamares2020")
    assert found.code == 0
    assert 'split = "random(train=0.5)"' in (tmp_path / "experiment.toml").read_text(encoding="utf-8")
