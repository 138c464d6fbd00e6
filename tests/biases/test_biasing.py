"""How much of an evaluation is popularity."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._settings import settings
from cranfield.biases import Bias
from cranfield.biases.biasing import partial_correlation
from cranfield.facts import bias as bias_facts


@pytest.fixture(scope="module")
def world():
    return cf.simulate.world(150, 100, 4_000, seed=1)


@pytest.fixture(scope="module")
def found(world):
    return cf.bias(world.ratings, ["popularity", "random", "ease"], groups=4, nonrelevant=10)


@pytest.fixture(scope="module")
def given(world):
    split = cf.splits.random(world.ratings, seed=1)
    runs = cf.recommend(split, ["ease", "random"], length=100)
    return cf.bias(runs=runs, test=split.test, train=split.train, groups=4, metric="nDCG@5"), split, runs


def test_every_protocol_measures_every_system(found, given):
    for bias in (found, given[0]):
        assert [protocol.name for protocol in bias.protocols] == ["AR", "P1R", "U1R", "UAR"]
        assert bias.orders.height == 4 * len(bias.protocols[0].scores.systems)
        assert set(bias.orders["place"]) == {1, 2, 3}


def test_popularity_is_added_to_given_lists(given):
    bias, split, runs = given
    assert bias.protocols[0].scores.systems == ("ease", "random", "popularity")
    popularity = cf.recommend(split, "popularity", length=100)
    plain = cf.measure([*runs, *popularity], split.test, "nDCG@5").average()[:, 0]
    assert bias.shares["mean"].to_list() == plain.tolist()
    assert bias.shares["reached"].to_list() == (plain[2] / plain).tolist()


def test_judged_lists_are_enough_also_where_the_training_set_has_ids_of_its_own(given):
    bias, split, runs = given
    train = cf.Ratings.of([9_999, *split.train.frame()["user"]], [1, *split.train.frame()["item"]])
    judged = [cf.judge(run, split.test) for run in runs]
    for of_training in (split.train, train):
        again = cf.bias(runs=judged, test=split.test, train=of_training, groups=4, metric="nDCG@5")
        assert again.protocols[0].scores.values.tolist() == bias.protocols[0].scores.values.tolist()
    with pytest.raises(cf.SettingError, match="whole lists"):
        cf.bias(runs=[lists.condensed() for lists in judged], test=split.test, train=split.train)


def test_a_neutral_protocol_takes_much_of_the_advantage_of_popularity_away(found):
    means = {(row["protocol"], row["system"]): row["mean"] for row in found.orders.iter_rows(named=True)}
    plain = means["AR", "popularity"] / means["AR", "random"]
    for name in ("P1R", "U1R", "UAR"):
        assert means[name, "popularity"] / means[name, "random"] < 0.75 * plain


def test_what_popularity_explains_is_measured_as_stated(given):
    bias, split, runs = given
    row = bias.shares.row(0, named=True)
    counts = split.train.item_counts
    tested = np.flatnonzero(split.test.user_counts)
    top = [runs[0].items[runs[0].indptr[k] :][:5] for k, user in enumerate(runs[0].users) if user in tested]
    assert row["recommended"] == pytest.approx(counts[np.concatenate(top)].mean() / counts.mean())
    assert bias.shares.row(2, named=True)["partial_correlation"] == pytest.approx(1.0)
    assert bias.shares.row(1, named=True)["partial_correlation"] < row["partial_correlation"]


def test_partial_correlation_is_that_of_the_residuals():
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    x, y = z + rng.normal(size=200), 2 * z + rng.normal(size=200)
    rxy, rxz, ryz = np.corrcoef(x, y)[0, 1], np.corrcoef(x, z)[0, 1], np.corrcoef(y, z)[0, 1]
    expected = (rxy - rxz * ryz) / np.sqrt((1 - rxz**2) * (1 - ryz**2))
    assert partial_correlation(x, y, z) == pytest.approx(expected)
    assert np.isnan(partial_correlation(np.ones(5), np.arange(5.0), np.zeros(5)))


def test_conclusions_compare_the_tests_of_the_protocols(found):
    for row in found.conclusions.iter_rows(named=True):
        pair = (row["system_a"], row["system_b"])
        frame = found.comparisons[row["protocol"]].frame()
        own = frame.filter(system_a=pair[0], system_b=pair[1]).row(0, named=True)
        assert row["neutral"] == (own["better"] if own["significant"] else None)
        kinds = {"is reversed": (True, True), "is lost": (True, False), "appears": (False, True)}
        if row["change"] != "stays":
            assert kinds[row["change"]] == (row["chosen"] is not None, row["neutral"] is not None)


def test_it_says_what_it_found_and_what_cannot_be_known(found, monkeypatch):
    answer, _, *lines = str(found).splitlines()
    assert answer == found.verdict[0]
    assert sum(line.startswith("· ") for line in lines) == 5
    monkeypatch.setattr(settings, "details", True)
    text = str(found)
    assert "Ranking by popularity alone reaches" in text
    assert "Under U1R (each relevant item alone" in text
    assert "cannot be seen from ratings" in text
    assert "Precision as Bellogín" in text


def test_precision_is_predicted_beside_what_is_measured(found, given):
    for bias in (found, given[0]):
        assert bias.predicted["system"].to_list() == ["a random ranking", "popularity", "popularity"]
        assert bias.predicted["measured"][0] == bias.density.rho
        assert bias.predicted["predicted"][0] == pytest.approx(bias.density.sigma * bias.density.delta)
        assert isinstance(bias.departures[0], bias_facts.SizesDiffer)
        assert "Precision as Bellogín" in bias.tables()["predicted"].caption
    assert found.predicted["measured"][1] == found.shares["mean"][0]


def test_estimates_stand_beside_where_propensities_are_asked_for(given):
    _, split, runs = given
    bias = cf.bias(runs=runs, test=split.test, train=split.train, groups=4, propensities="logistic", clip=0.01)
    assert bias.estimates.propensities.kind == "logistic"
    assert set(bias.estimates.frame["system"]) == {"ease", "random", "popularity"}
    assert "DR (svd)" in bias.tables()["estimates"].text()


def test_positive_ratings_alone_get_the_caveat_of_the_paper(world):
    likes = world.ratings.frame()
    ones = cf.Ratings.of(likes["user"].to_list(), likes["item"].to_list())
    bias = cf.bias(ones, ["popularity", "random"], groups=4, nonrelevant=10)
    assert bias_facts.PopularityRemark("nothing below the threshold") in bias.caveats


def test_lists_that_end_early_are_said_to(world):
    split = cf.splits.random(world.ratings, seed=1)
    runs = cf.recommend(split, "ease", length=10)
    bias = cf.bias(runs=runs, test=split.test, train=split.train, groups=4)
    assert bias.caveats[-1].longest == 10
    assert bias.caveats[-1].protocols == ("P1R", "U1R", "UAR")


def test_short_lists_of_popular_items_are_not_worse_than_random_under_neutral_protocols(world):
    split = cf.splits.random(world.ratings, seed=1)
    runs = cf.recommend(split, "random", length=10)
    found = cf.bias(runs=runs, test=split.test, train=split.train, groups=4, metric="P@3")
    means = {(row["protocol"], row["system"]): row for row in found.orders.iter_rows(named=True)}
    for name in ("P1R", "U1R", "UAR"):
        assert means[name, "popularity"]["upper"] > means[name, "random"]["mean"]


def test_a_metric_without_expectations_has_no_neutral_protocols_on_given_lists(given):
    _, split, runs = given
    found = cf.bias(runs=runs, test=split.test, train=split.train, metric="ERR@5")
    assert [protocol.name for protocol in found.protocols] == ["AR"]
    assert isinstance(found.notes[0], bias_facts.NoteOn)
    assert found.notes[0].names == ()
    assert bias_facts.PopularityRemark("no neutral protocol") in found.facts()


def test_protocols_that_are_not_possible_are_left_out_and_the_reason_is_given(world):
    bias = cf.bias(world.ratings, "random", groups=50, nonrelevant=99)
    assert [protocol.name for protocol in bias.protocols] == ["AR", "U1R", "UAR"]
    assert bias_facts.GroupsTooSmall(50, world.ratings.n_items // 50, 100, drawn=True) in bias.notes
    few = cf.Ratings.of([1, 1, 2, 2, 3, 3, 4], ["a", "b", "a", "c", "a", "d", "e"])
    bias = cf.bias(few, ["popularity", "random"], groups=2, nonrelevant=1, seed=3, metric="P@1")
    assert [note.names for note in bias.notes] == [("U1R", "UAR")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either ratings to train systems on, or runs"),
        ({"runs": {"a": {1: ["x"]}}, "test": {1: {"x": 1}}}, "popularity is counted in the training ratings"),
        ({"runs": {"a": {1: ["x"]}}}, "against test ratings"),
        ({"data": 3}, "int is not ratings"),
        ({"data": 3, "clip": 0.1}, "clip=0.1 does nothing without propensities"),
        (
            {
                "data": cf.Ratings.of([1, 2, 3, 4] * 4, list("aaaabbbbccccdddd")),
                "systems": "popularity",
                "metric": "P@1",
            },
            "give two or more",
        ),
        ({"data": 3, "metric": "P"}, "not a metric of lists with a cut-off"),
        ({"data": 3, "metric": "ItemCoverage@5"}, "not a metric of lists"),
    ],
)
def test_what_cannot_be_answered_is_refused(options, message):
    with pytest.raises(cf.CranfieldError, match=message):
        cf.bias(**options)


_B = {"b": ("P1R",)}


@pytest.mark.parametrize(
    ("better", "places", "others"),
    [
        ("b", (2, 1), (_B, _B, {})),
        (None, (2, 1), ({}, _B, {})),
        (None, (1, 1), ({}, {}, _B)),
        (None, (1, 2), ({}, {}, {})),
    ],
)
def test_the_verdict_opens_with_what_becomes_of_the_winner(better, places, others):
    comparison = SimpleNamespace(
        frame=lambda: pl.DataFrame(
            {"system_a": ["a"], "system_b": ["b"], "better": [better or "a"], "significant": [better is not None]}
        )
    )
    protocols = tuple(SimpleNamespace(name=name, scores=SimpleNamespace(systems=("a", "b"))) for name in ("AR", "P1R"))
    orders = pl.DataFrame(
        {"protocol": ["AR", "AR", "P1R", "P1R"], "system": ["a", "b"] * 2, "place": [1, 2, *places]},
    )
    nothing = dict.fromkeys(("shares", "groups", "ratios", "density", "predicted"))
    answer = Bias(
        "P@10", 4.0, "a", protocols=protocols, comparisons={"P1R": comparison}, notes=(), caveats=(), **nothing
    )
    answer.__dict__["orders"] = orders
    assert list(answer._on_winner()) == [bias_facts.WinnerWithoutPopularity(("a",), ("P1R",), *others)]


def test_lists_in_which_everything_is_a_hit_are_not_measured(world, given):
    with pytest.raises(cf.SettingError, match="nonrelevant=5 makes lists of 6 items"):
        cf.bias(world.ratings, "random", nonrelevant=5)
    _, split, runs = given
    bias = cf.bias(runs=runs, test=split.test, train=split.train, groups=20)
    assert bias_facts.GroupsTooSmall(20, 5, 10, drawn=False) in bias.notes
    assert "P1R" not in [protocol.name for protocol in bias.protocols]
