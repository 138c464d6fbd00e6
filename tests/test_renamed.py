"""Words that have other names now are answered with the new ones, in Python and on the command line."""

from __future__ import annotations

import importlib

import pytest
from click.testing import CliRunner

import cranfield as cf
from cranfield import _renamed
from cranfield.cli import cranfield
from cranfield.experiments import Decisions
from cranfield.reports import other_decisions

VALUES = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.2]}
RUNS, TEST = {"a": {"ann": ["x"]}, "b": {"ann": ["y"]}}, cf.Ratings.of(["ann"], ["x"])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cf.compare(VALUES, test="t"), "test= is now significance=...; write that instead"),
        (lambda: cf.compare(VALUES, samples=10), "samples= is now resamples=...; write that instead"),
        (lambda: cf.compare(VALUES, coverage="common"), "coverage='common' is now coverage='reduced'"),
        (lambda: cf.compare(VALUES, significance="permutation(samples=10)"), "did you mean 'resamples'"),
        (lambda: Decisions(coverage="common"), "coverage='common' is now coverage='reduced'; write that instead"),
        (lambda: Decisions(split="given"), "split='given' is now 'predefined'; write that instead"),
        (lambda: cf.discriminative_power(VALUES, test="t"), "test= is now significance=..."),
        (
            lambda: cf.discriminative_power(VALUES, samples=9),
            "samples= is now significance='permutation(resamples=...)'",
        ),
        (lambda: cf.measure(RUNS, TEST, condensed=True), "condensed= is now lists='condensed'"),
        (lambda: cf.assess(RUNS, TEST, condensed=True), "condensed= is now lists='condensed'"),
        (lambda: cf.assess_folds([(RUNS, TEST)], condensed=True), "condensed= is now lists='condensed'"),
        (
            lambda: cf.by_popularity(RUNS, TEST, "P@1", train=TEST, condensed=True),
            "condensed= is now lists='condensed'",
        ),
        (lambda: cf.across_tools(RUNS, TEST, "P@1", condensed=True), "condensed= is now lists='condensed'"),
        (lambda: list(other_decisions(RUNS, TEST, ["P@1"], condensed=[True])), "condensed= is now lists=["),
    ],
)
def test_an_old_word_is_answered_with_the_new_one(call, told):
    with pytest.raises(cf.SettingError) as error:
        call()
    assert told in str(error.value)


def test_a_word_that_never_was_is_refused_as_python_does():
    with pytest.raises(TypeError, match="unexpected keyword argument 'thresold'"):
        cf.measure(RUNS, TEST, thresold=4)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["evaluate", "--condensed"], "--condensed is now --lists condensed; write that instead"),
        (["compare", "--samples", "9"], "--samples is now --resamples; write that instead"),
        (["compare", "--coverage", "common"], "'common' is now 'reduced'; write that instead"),
    ],
)
def test_the_command_line_answers_an_old_option_too(arguments, told, tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("user,item,rating\nann,x,5\n")
    found = CliRunner().invoke(cranfield, [arguments[0], "--test", str(path), str(path), *arguments[1:]])
    assert found.exit_code == 2
    assert told in found.output


@pytest.mark.parametrize(("old", "new"), [*_renamed.PACKAGES.items()])
def test_a_package_that_has_another_name_now_is_answered_with_it(old, new):
    importlib.import_module(f"cranfield.{new}")
    for name in (f"cranfield.{old}", f"cranfield.{old}.files"):
        with pytest.raises(ModuleNotFoundError, match=rf"^cranfield.{old} is now cranfield.{new}$"):
            importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'cranfield.measurs'$"):
        importlib.import_module("cranfield.measurs")


@pytest.mark.parametrize(
    ("old", "new"), [("split", "splits"), ("experiment", "experiments"), ("dialects", "across_tools")]
)
def test_a_name_of_the_package_that_is_another_now_is_answered_with_it(old, new):
    assert getattr(cf, new)
    with pytest.raises(AttributeError, match=rf"has no attribute '{old}'; it is now cranfield.{new}$"):
        getattr(cf, old)
    with pytest.raises(AttributeError, match=r"has no attribute 'splitts'$"):
        cf.splitts  # noqa: B018


def test_the_split_that_was_called_given_is_answered():
    with pytest.raises(AttributeError, match=r"it is now cranfield\.splits\.predefined"):
        _ = cf.splits.given
