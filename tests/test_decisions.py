"""Groups of decisions: values in one form, and one line for what is wrong."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields

import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, checked_field, decision, of_groups, unless
from cranfield.comparisons.comparing import Comparing, ComparingOptions
from cranfield.measures.averaging import Averaging, AveragingOptions
from cranfield.rankings.decisions import Ranking, RankingOptions, Serving, ServingOptions


@dataclass(frozen=True)
class Shape(DecisionGroup):
    """A group for tests."""

    kind: str = decision("Z1", "round", "what it is", choices=("round", "square"))
    corners: int = decision("Z1", 4, "how many", check=check.whole, help="So many corners.")
    size: float | None = checked_field(None, lambda name, value: None if value is None else check.number(name, value))

    def _check_together(self):
        if self.kind == "round" and self.corners > 4:
            raise SettingError("kind='round' has few corners; set kind='square'")


def test_values_come_into_one_form_and_a_group_is_a_value():
    assert Shape(corners=3.0) == Shape(corners=3)
    assert len({Shape(), Shape(kind="round")}) == 1
    assert pickle.loads(pickle.dumps(Shape(size=2))) == Shape(size=2.0)
    with pytest.raises(FrozenInstanceError):
        Shape().kind = "square"


def test_a_group_knows_what_it_declares_and_not_what_it_borrows():
    declared = Shape.decisions()
    assert list(declared) == ["kind", "corners"]
    assert declared["kind"].metadata["choices"] == ("round", "square")
    assert (declared["kind"].metadata["help"], declared["corners"].metadata["help"]) == (
        "what it is",
        "So many corners.",
    )
    assert Shape(size=2).as_dict() == {"kind": "round", "corners": 4, "size": 2.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "squar"}, "kind='squar' is not one of round, square; did you mean 'square'?"),
        ({"corners": 0}, "corners=0 is not a whole number of at least 1"),
        ({"size": "large"}, "size='large' is not a number"),
        ({"corners": 5}, "kind='round' has few corners"),
        ({"corner": 5}, "there is no decision 'corner'; did you mean 'corners'?"),
    ],
)
def test_what_is_wrong_is_one_line(changes, said):
    with pytest.raises(SettingError) as error:
        Shape().with_(**changes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_option_that_no_group_has_is_refused_as_python_does():
    with pytest.raises(TypeError, match=r"shape\(\) got an unexpected keyword argument 'colour'"):
        of_groups((Shape, Shape), {"corners": 4, "colour": 3}, "shape")


@pytest.mark.parametrize(
    ("function", "groups"),
    [
        (cf.recommend, (Serving, Ranking)),
        (cf.compare, (Comparing, Averaging)),
        (cf.Scores.frame, (Averaging,)),
        (cf.Scores.table, (Averaging,)),
        (cf.Scores.average, (Averaging,)),
        (cf.write_report, (Averaging,)),
    ],
)
def test_a_function_takes_every_decision_of_its_groups_as_a_keyword_argument(function, groups):
    names = {one.name for group in groups for one in fields(group)}
    assert names <= set(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("options", "group", "apart"),
    [
        (ServingOptions, Serving, set()),
        (RankingOptions, Ranking, {"length", "threshold"}),
        (AveragingOptions, Averaging, {"average"}),
        (ComparingOptions, Comparing, {"significance", "correction", "baseline"}),
    ],
)
def test_type_checkers_know_every_decision_of_a_group(options, group, apart):
    assert set(options.__annotations__) == {one.name for one in fields(group)} - apart


def test_a_function_says_what_its_decisions_decide_and_refuses_others():
    removed = "\nmin_ratings\n    B1, users with fewer training ratings are removed from the experiment.\nsample\n"
    assert removed in cf.recommend.__doc__
    train = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    with pytest.raises(TypeError, match=r"recommend\(\) got an unexpected keyword argument 'lenght'"):
        cf.recommend(train, "popularity", lenght=3)
    with pytest.raises(TypeError, match=r"compare\(\) got an unexpected keyword argument 'alfa'"):
        cf.compare({"a": [1, 2], "b": [2, 1]}, alfa=0.1)


def test_a_value_is_put_into_words_unless_it_is_the_usual_one():
    said = unless(100, "lists of {}", {"all": "whole lists"})
    assert [said(100), said(10), said("all")] == [None, "lists of 10", "whole lists"]
    assert unless(1, "{}")(True) == "True"
