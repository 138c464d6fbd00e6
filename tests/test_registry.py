"""One registry for everything that has a name: no name is taken twice, and a wrong spelling is one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield._checks import Limits
from cranfield._registry import Entry, Registry, Spelling
from cranfield.assessments import SCENARIOS
from cranfield.assessments.scenarios import Scenario, scenario
from cranfield.comparisons import CORRECTIONS, SIGNIFICANCE_TESTS
from cranfield.data import filters
from cranfield.measures import Average
from cranfield.measures.averages import AVERAGES
from cranfield.metrics import Metric
from cranfield.metrics.definition import METRICS
from cranfield.metrics.dialects import TOOLS, Tool, Users
from cranfield.metrics.gains import GAINS
from cranfield.recommenders import SYSTEMS
from cranfield.splits import registry as splits

# For each kind: the registry, a name that is taken, and a similar one.
KINDS = {
    "metric": (METRICS, "Recall", "Recal"),
    "average": (AVERAGES, "mean", "meam"),
    "gain": (GAINS, "exp", "expp"),
    "filter": (filters.registry, "k_core", "k_cor"),
    "split": (splits, "leave_out", "leave_aut"),
    "significance test": (SIGNIFICANCE_TESTS, "wilcoxon", "wilcoxn"),
    "correction": (CORRECTIONS, "holm", "holn"),
    "scenario": (SCENARIOS, "popular", "populer"),
    "dialect": (TOOLS, "lenskit", "lensckit"),
    "system": (SYSTEMS, "popularity", "popularty"),
}


def mine(subject):
    return subject


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_taken_is_refused_whatever_its_capitals(kind):
    registry, name, _ = KINDS[kind]
    for taken, words in {
        name: f"there is already a {kind} '{name}'",
        name.swapcase(): f"'{name.swapcase()}' already means '{name}'",
    }.items():
        with pytest.raises(SettingError, match=f"{words}; choose another name, or give replace=True"):
            registry.add(taken, mine)
    assert registry[name] is not mine


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_name_is_answered_with_the_nearest(kind):
    registry, name, wrong = KINDS[kind]
    with pytest.raises(SettingError, match=f"there is no {kind} '{wrong}'; did you mean '{name}'"):
        registry.find(wrong)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dialect"])
def test_a_name_can_be_replaced_if_that_is_said(kind):
    registry, name, _ = KINDS[kind]
    places = list(registry)
    registry.add(name, mine, replace=True)
    assert registry[name] is mine
    assert sorted(registry) == sorted(places)


@pytest.mark.parametrize("name", ["P@3", "P(k=3)", "two words", ""])
def test_a_name_is_one_word(name):
    with pytest.raises(SettingError):
        METRICS.add(name, mine)


def test_a_metric_of_ones_own_never_takes_a_name_of_ours_by_accident():
    with pytest.raises(SettingError, match="'r' already means 'Recall'"):

        @cf.metric("r")
        def ratings(judged):
            return judged.n_hits

    assert str(Metric.of("R@1")) == "Recall@1"
    with pytest.raises(SettingError, match="'prec' already means 'P'"):
        cf.metric("Sharpness", aliases=("prec",))(mine)
    assert "Sharpness" not in METRICS


def test_an_alias_that_is_replaced_is_taken_away_from_its_metric_alone():
    cf.metric("R", replace=True)(mine)
    assert Metric.of("r@1").definition.function is mine
    assert str(Metric.of("recall@1")) == "Recall@1"


def test_aliases_go_with_the_metric_that_is_replaced():
    cf.metric("Recall", replace=True)(mine)
    with pytest.raises(SettingError, match="there is no metric 'R'"):
        Metric.of("R@1")


def test_the_same_definition_may_be_run_again_as_in_a_notebook():
    def define(k, aliases):
        @cf.metric("TopShare", aliases=aliases)
        def top_share(judged):
            return np.full(judged.n_lists, k)

        return top_share

    define(1.0, ("Top", "First"))
    second = define(2.0, ("Top",))
    assert Metric.of("top").definition.function is second
    with pytest.raises(SettingError, match="no metric 'First'"):
        Metric.of("First")
    with pytest.raises(SettingError, match="'top' already means 'TopShare'"):
        cf.metric("top")(second)


def test_a_gain_of_ones_own_takes_no_name_of_ours():
    with pytest.raises(SettingError, match="'Binary' already means 'binary'"):
        cf.gain("Binary")(mine)
    cf.gain("cube")(lambda ratings: ratings**3)
    assert str(Metric.of("nDCG(gain=cube)@5")) == "nDCG(gain=cube)@5"


def test_tools_and_what_they_mean_by_a_metric_are_registered_once():
    with pytest.raises(SettingError, match="there is already a dialect 'lenskit'"):
        Tool("lenskit", "LensKit", "0", Users.JUDGED)
    with pytest.raises(SettingError, match="'p' already means 'P'"):
        TOOLS["lenskit"].dialect("p", "precision", "the same")(mine)


def test_a_scenario_can_be_added():
    tail = Scenario("half", "items", False, "half the items missing")
    SCENARIOS.add("half", tail)
    assert scenario("half") is tail


def test_functions_and_dataclasses_are_checked_by_the_same_rules():
    shapes = Registry("shape")

    @shapes.register
    def circle(canvas, *, radius: Annotated[float, Limits(above=0)] = 1.0, style: Literal["thin", "bold"] = "thin"):
        return (canvas, radius, style)

    @shapes.register("box", aliases=["square"])
    @dataclass
    class Box:
        radius: float = field(default=1.0, metadata={"limits": Limits((float,), above=0)})
        style: str = field(default="thin", metadata={"limits": Limits((str,), ("thin", "bold"))})

    assert shapes.call("circle(style=bold)", "canvas", radius=2, colour="red") == ("canvas", 2, "bold")
    assert shapes.call("square(radius=3)") == Box(3)
    assert shapes.signatures() == ["circle(radius=1, style=thin)", "box(radius=1, style=thin)"]
    for name in ("circle", "box"):
        for wrong, problem in {
            "radiu=1": f"{name} has no parameter 'radiu'; did you mean 'radius'?",
            "radius=0": f"radius=0 of {name} is out of range; give a number above 0",
            "radius=inf": f"radius=inf of {name} is out of range; give a finite number",
            "radius=wide": f"radius=wide of {name} is not a number",
            "style=bald": f"style=bald of {name} is not one of thin, bold; did you mean 'bold'?",
        }.items():
            with pytest.raises(SettingError) as error:
                shapes.spelling(f"{name}({wrong})")
            assert str(error.value) == problem
        with pytest.raises(SettingError, match=f"{name}@3 has a cut-off, which {name} does not take"):
            shapes.spelling(f"{name}@3")


def test_a_spelling_has_its_parameters_in_one_order_and_needs_those_without_a_default():
    pairs = Registry("pair", Entry)

    @pairs.register
    def pair(subject, first, second: int | None = None, flag: bool = False):
        return subject

    assert pairs.spelling("pair(flag=true, first=1)") == Spelling("pair", (("first", 1), ("flag", True)))
    assert pairs.spelling("pair", offered=("first",)) == Spelling("pair")
    assert pairs.spelling("pair(first=x, second=none)").parameters == (("first", "x"), ("second", None))
    with pytest.raises(SettingError, match=r"pair needs first; write pair\(first=..., second=none, flag=false\)"):
        pairs.spelling("pair")
    with pytest.raises(SettingError, match=r"second=1\.5 of pair is not a whole number"):
        pairs.spelling("pair(first=1, second=1.5)")
    with pytest.raises(SettingError, match="flag=1 of pair is neither true nor false"):
        pairs.spelling("pair(first=1, flag=1)")


@pytest.mark.parametrize(
    ("spelling", "problem"),
    [
        ("RBP(p=1)", "p=1 of RBP is out of range; give a number below 1"),
        (
            "nDCG(gain=expp)@10",
            "gain=expp of nDCG is not one of rating, binary, relevant, exp, expfull, exprelevant, exp1, exp1full; "
            "did you mean 'exp'?",
        ),
        ("nDCG(gain=exp, dialect=ranks)", "there is no dialect 'ranks'; did you mean 'ranx'?"),
        ("nDCG(gain=exp1, dialect=ranx)", "gain=exp1 of nDCG(dialect=ranx) is not one of binary, rating, exp"),
        ("ERR(rmax=most)", "rmax=most of ERR is not one of dataset, user or a number"),
        ("IPS(clip=2)", "clip=2 of IPS is out of range; give a number at most 1"),
        ("P(rel=high)@10", "rel=high of P is not a number"),
        ("P(condensed=1)@10", "condensed=1 of P is neither true nor false"),
        ("P(k=10)", "P has no parameter 'k'; known: condensed, dialect, rel"),
        ("Rprec@10", "Rprec@10 has a cut-off, which Rprec does not take; leave out '@'"),
        ("Coverage", "Coverage needs a cut-off; write Coverage@10"),
        ("P@2147483648", "the cut-off of P@2147483648 is too large; give at most @2147483647"),
    ],
)
def test_a_metric_is_refused_when_it_is_spelled_not_when_it_is_computed(spelling, problem):
    with pytest.raises(SettingError) as error:
        Metric.of(spelling)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("spelling", "problem"),
    [
        ("trimmed(share=0.5)", "share=0.5 of trimmed is out of range; give a number below 0.5"),
        ("geometric(epsilon=0)", "epsilon=0 of geometric is out of range; give a number above 0"),
        ("geometric(form=adjustd)", "is not one of trec_eval, adjusted, skipping; did you mean 'adjusted'?"),
        ("weighted(by=judge)", "weighted(by=judge) cannot be read; write by=judged, relevant or train, or a column"),
        ("mean(k=3)", "mean has no parameter 'k'; it takes none"),
        ("mean@3", "mean@3 has a cut-off, which mean does not take; leave out '@'"),
    ],
)
def test_a_wrong_average_is_one_line(spelling, problem):
    with pytest.raises(SettingError) as error:
        Average.of(spelling)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("registry", "spelling", "problem"),
    [
        (filters.registry, "k_core(k=half)", "k=half of k_core is not a whole number"),
        (filters.registry, "sample(share=many)", "share=many of sample is not a number"),
        (splits, "random(exact=1)", "exact=1 of random is neither true nor false"),
        (SIGNIFICANCE_TESTS, "permutation(resamples=few)", "resamples=few of permutation is not a whole number"),
    ],
)
def test_the_kind_of_a_parameter_is_checked_before_anything_is_computed(registry, spelling, problem):
    with pytest.raises(SettingError) as error:
        registry.spelling(spelling)
    assert problem in str(error.value)


def test_an_alias_of_a_significance_test_is_spelled_by_its_name():
    assert str(SIGNIFICANCE_TESTS.spelling("fisher(resamples=10)")) == "permutation(resamples=10)"
    assert {"t", "log_t", "fisher"}.isdisjoint(SIGNIFICANCE_TESTS)
