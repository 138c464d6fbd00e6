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
    return cf.bias(world.ratings, ["popularity", "random", "ease"], groups=4, nonrelevant=10, splits=3)


@pytest.fixture(scope="module")
def given(world):
    split = cf.splits.random(world.ratings, seed=1)
    runs = cf.recommend(split, ["ease", "random"], length=100)
    return cf.bias(runs=runs, test=split.test, train=split.train, groups=4, metric="nDCG@5"), split, runs


def test_what_is_relevant_follows_from_training_and_test_ratings_as_in_measure():
    """The test ratings alone, 1 to 3, would have the threshold 3."""
    test = cf.Ratings.of([1, 2, 3], [3, 2, 1], [1, 2, 3])
    train = cf.Ratings.of([1, 1, 2, 2, 3, 3], [1, 2, 1, 3, 4, 5], [1, 5, 2, 4, 3, 5])
    runs = {"mine": {1: [3, 4], 2: [2, 4], 3: [1, 2]}}
    assert cf.measure(runs, test, "P@1", train=train).step.settings["threshold"] == 4
    with pytest.raises(cf.CranfieldError, match="no test rating is 4 or more"):
        cf.bias(runs=runs, test=test, train=train, metric="P@1")


def test_every_protocol_measures_every_system(found, given):
    for bias in (found, given[0]):
        assert [protocol.name for protocol in bias.protocols] == ["AR", "1R", "P1R", "U1R", "AR-NN", "UAR"]
        assert bias.orders.height == 6 * len(bias.protocols[0].scores.systems)
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
        frame = found.comparisons[row["protocol"]].frame(detail=True)
        own = frame.filter(system_a=pair[0], system_b=pair[1]).row(0, named=True)
        assert row["after"] == (own["better"] if own["significant"] else None)
        kinds = {"is reversed": (True, True), "is lost": (True, False), "appears": (False, True)}
        if row["change"] != "stays":
            assert kinds[row["change"]] == (row["before"] is not None, row["after"] is not None)


def test_it_says_what_it_found_and_what_cannot_be_known(found, monkeypatch):
    answer, _, *lines = str(found).splitlines()
    assert answer == found.verdict[0]
    assert sum(line.startswith("· ") for line in lines) == 5
    monkeypatch.setattr(settings, "details", True)
    text = str(found)
    assert "Ranking by popularity alone reaches" in text
    assert "Under U1R (as 1R, with the same number of test ratings per item) the order agrees with that of 1R" in text
    assert "cannot be seen from ratings" in text
    assert "Precision as Bellogín" in text


def test_precision_is_predicted_beside_what_is_measured(found, given):
    for bias in (found, given[0]):
        assert bias.predicted["system"].to_list() == ["a random ranking", "popularity", "popularity"]
        assert bias.predicted["measured"][0] == bias.density.rho
        assert bias.predicted["predicted"][0] == pytest.approx(bias.density.sigma * bias.density.delta)
        assert isinstance(bias.departures[0], bias_facts.SizesDiffer)
        assert "Precision as Bellogín" in bias.tables()["predicted"].caption
    _, split, _ = given
    (run,) = cf.recommend(split, "popularity", length=100)
    assert given[0].predicted["measured"][1] == cf.measure(run, split.test, "P@5").average().item()


def test_estimates_stand_beside_where_propensities_are_asked_for(given):
    _, split, runs = given
    bias = cf.bias(runs=runs, test=split.test, train=split.train, groups=4, propensities="logistic", clip=0.01)
    assert bias.estimates.propensities.kind == "logistic"
    assert set(bias.estimates.frame()["system"]) == {"ease", "random", "popularity"}
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
    assert bias.caveats[-1].protocols == ("1R", "P1R", "U1R", "AR-NN", "UAR")


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
    trained = cf.bias(split.train, ["popularity", "random"], metric="ERR@5", splits=1)
    assert [protocol.name for protocol in trained.protocols] == ["AR"]


def test_protocols_that_are_not_possible_are_left_out_and_the_reason_is_given(world):
    bias = cf.bias(world.ratings, "random", groups=50, nonrelevant=99, splits=1)
    assert [protocol.name for protocol in bias.protocols] == ["AR", "1R", "U1R", "AR-NN", "UAR"]
    assert bias_facts.GroupsTooSmall(50, world.ratings.n_items // 50, 10, drawn=False) in bias.notes
    with_few = cf.bias(world.ratings, "random", groups=4, nonrelevant=30, splits=1)
    assert bias_facts.GroupsTooSmall(4, world.ratings.n_items // 4, 31, drawn=True) in with_few.notes
    few = cf.Ratings.of([1, 1, 2, 2, 3, 3, 4], ["a", "b", "a", "c", "a", "d", "e"])
    bias = cf.bias(few, ["popularity", "random"], groups=2, nonrelevant=1, seed=3, metric="P@1", splits=1)
    assert ("U1R", "AR-NN", "UAR") in [getattr(note, "names", ()) for note in bias.notes]
    assert [protocol.name for protocol in bias.protocols] == ["AR", "1R", "P1R"]


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


def _stub(places, better, error=0.0):
    """An answer with the places of a and b under each protocol, and who is significantly better."""
    protocols = tuple(SimpleNamespace(name=name, scores=SimpleNamespace(systems=("a", "b"))) for name in places)
    comparisons = {
        name: SimpleNamespace(
            rows=pl.DataFrame(
                {
                    "system_a": "a",
                    "system_b": "b",
                    "better": better.get(name, "a"),
                    "significant": name in better,
                    "difference": {"a": 1.0, "b": -1.0}.get(better.get(name), 0.0),
                    "standard_error": error,
                }
            ),
            alpha=0.05,
        )
        for name in places
    }
    rows = [(name, system, place) for name, pair in places.items() for system, place in zip("ab", pair)]
    nothing = dict.fromkeys(("shares", "groups", "ratios", "density", "predicted"))
    answer = Bias("P@10", 4.0, "a", protocols=protocols, comparisons=comparisons, notes=(), caveats=(), **nothing)
    answer.__dict__["orders"] = pl.DataFrame(rows, schema=["protocol", "system", "place"], orient="row")
    return answer


@pytest.mark.parametrize(
    ("places", "better", "found"),
    [
        # What changes from AR to 1R is the design's doing, whatever comes after.
        ([(1, 2), (2, 1), (2, 1)], {"AR": "a", "1R": "b", "P1R": "b"}, ({"b": ("1R",)}, {}, {})),
        ([(1, 2), (1, 2), (2, 1)], {"AR": "a", "1R": "a", "P1R": "b"}, ({}, {"b": ("P1R",)}, {})),
        ([(1, 2), (2, 1), (1, 2)], {"AR": "a", "1R": "b", "P1R": "a"}, ({"b": ("1R",)}, {"a": ("P1R",)}, {})),
        ([(1, 2), (1, 2), (2, 1)], {}, ({}, {}, {"b": ("P1R",)})),
        ([(1, 2), (1, 2), (1, 1)], {}, ({}, {}, {"b": ("P1R",)})),
        ([(1, 2), (2, 1), (2, 1)], {"AR": "a"}, ({}, {}, {"b": ("1R",)})),
        ([(1, 2), (1, 2), (1, 2)], {"AR": "a"}, ({}, {}, {})),
    ],
)
def test_the_verdict_opens_with_what_is_responsible_for_another_winner(places, better, found):
    protocols = ("AR", "1R", "P1R")
    (said,) = _stub(dict(zip(protocols, places)), better)._on_winner()
    assert said == bias_facts.WinnerWithoutPopularity(("a",), ("1R", "P1R"), *found)


def test_only_what_changes_from_the_control_is_attributed_to_popularity():
    places = dict.fromkeys(("AR", "1R", "P1R", "U1R", "AR-NN", "UAR"), (1, 2))
    better = {"AR": "a", "1R": "b", "P1R": "b", "UAR": "a"}
    answer = _stub(places, better)
    assert answer.changes.select("protocol", "control", "before", "after", "change", "cause").rows() == [
        ("U1R", "1R", "b", None, "is lost", "popularity"),
        ("UAR", "AR-NN", None, "a", "appears", "popularity"),
        ("1R", "AR", "a", "b", "is reversed", "design"),
        ("AR-NN", "AR", "a", None, "is lost", "design"),
    ]
    count, *spelled = answer._on_changes()
    assert count == bias_facts.ChangedConclusions(1, 1, 0, 1)
    assert spelled == [
        bias_facts.ChangedConclusion("b", "a", "1R", ("U1R",), "is lost"),
        bias_facts.ChangedConclusion("a", "b", "AR-NN", ("UAR",), "appears"),
        bias_facts.ChangedConclusion("a", "b", "AR", ("1R",), "is reversed"),
        bias_facts.ChangedConclusion("a", "b", "AR", ("AR-NN",), "is lost"),
    ]


def test_a_conclusion_that_is_lost_by_about_the_same_difference_is_not_attributed_to_popularity():
    better = {"AR": "a", "1R": "a", "P1R": "a"}
    answer = _stub(dict.fromkeys(("AR", "1R", "P1R", "U1R"), (1, 2)), better, error=0.6)
    assert answer.changes.select("protocol", "change", "cause").rows() == [("U1R", "is lost", "unclear")]
    assert list(answer._on_changes()) == [bias_facts.ChangedConclusions(0, 0, 1, 1)]


@pytest.fixture(scope="module")
def uneven():
    """Items that are equally popular, light users whom one system serves, and heavy users whom the other serves."""
    items, rng = [f"i{k:02}" for k in range(40)], np.random.default_rng(0)
    wanted = {f"light{k:02}": rng.choice(items, 1).tolist() for k in range(60)}
    wanted |= {f"much{k:02}": rng.choice(items, 8, replace=False).tolist() for k in range(30)}
    train = cf.Ratings.of([f"old{k}" for k in range(5) for _ in items], items * 5)
    test = cf.Ratings.of(*zip(*((user, item) for user, own in wanted.items() for item in own)))
    split = cf.splits.predefined(train, test, overlap="test")
    lists = {"of light": {}, "of heavy": {}}
    for user, own in wanted.items():
        rest = [item for item in items if item not in own]
        served, other = ("of light", "of heavy") if user.startswith("light") else ("of heavy", "of light")
        lists[served][user], lists[other][user] = [*own, *rest], [*rest, *own]
    return lists, split


def _of_uneven(uneven, **options):
    lists, split = uneven
    return cf.bias(runs=lists, test=split.test, train=split.train, metric="RR@5", groups=2, threshold=1, **options)


def test_where_popularity_has_no_part_the_design_is_said_to_change_the_winner(uneven):
    found = _of_uneven(uneven)
    assert {protocol.name for protocol in found.protocols} == set(bias_facts.SAYS)
    assert found.verdict[0].startswith(
        "The winner depends on the design: of light as measured, of heavy where popularity keeps its advantage"
    )
    assert set(found.changes["cause"]) == {"design"}


def test_averaged_by_user_one_relevant_designs_count_light_users_as_much(uneven):
    found = _of_uneven(uneven, by="user")
    assert found.verdict[0].startswith("of light is first as measured")
    assert "popularity" not in set(found.changes["cause"])
    assert "P1R" not in found.comparisons
    means = {row["system"]: row["mean"] for row in found.orders.filter(protocol="1R").iter_rows(named=True)}
    assert means["of light"] == pytest.approx(60 / 90, abs=0.02)
    by_list = {row["system"]: row["mean"] for row in _of_uneven(uneven).orders.filter(protocol="1R").to_dicts()}
    assert by_list["of heavy"] == pytest.approx(240 / 300, abs=0.02)


def test_where_only_popularity_is_in_the_test_it_is_said_to_decide():
    world = cf.simulate.world(300, 200, 9_000, popularity_bias=3, taste=0.3, seed=1)
    split = cf.splits.random(world.ratings, train=0.8, seed=1)

    class Truth:
        def fit(self, train):
            return self

        def score(self, users):
            return world.preference()[users]

    runs = cf.recommend(split, {"truth": Truth(), "popularity": "popularity"}, length="all")
    found = cf.bias(runs=runs, test=split.test, train=split.train)
    assert found.verdict[0] == (
        "The winner depends on popularity: popularity as measured, truth without its advantage."
    )
    assert found.orders.filter(protocol="1R", place=1)["system"].to_list() == ["popularity"]


class _Taste:
    """Ranks by taste and noise; users and items are numbered."""

    def __init__(self, taste, error, seed):
        self.seen = taste + np.random.default_rng(seed).normal(size=taste.shape) * error

    def fit(self, train):
        self.items = np.array(train.item_ids.ids(np.arange(train.n_items)).to_list())
        self.ids = np.array(train.user_ids.ids(np.arange(train.n_users)).to_list())
        return self

    def score(self, users):
        return self.seen[np.ix_(self.ids[users], self.items)]


def _causes_in_a_world_of_equally_popular_items(seed):
    rng, taste = np.random.default_rng(seed), np.random.default_rng([seed, 0]).normal(size=(200, 120))
    active = np.minimum(rng.geometric(1 / 12, 200) + 3, 60)
    users, items = np.repeat(np.arange(200), active), np.concatenate([rng.permutation(120)[:n] for n in active])
    ratings = cf.Ratings.of(users, items, np.clip(np.round(3.5 + taste[users, items]), 1, 5))
    split = cf.splits.random(ratings, train=0.6, seed=seed)
    systems = {f"error {error}": _Taste(taste, error, [seed, k]) for k, error in enumerate((1.0, 1.1, 2.0), start=1)}
    runs = cf.recommend(split, systems, length="all")
    found = cf.bias(runs=runs, test=split.test, train=split.train, groups=4, metric="nDCG@10")
    return set(found.changes.filter(pl.col("system_b") != "popularity")["cause"])


@pytest.mark.parametrize("worlds", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_where_all_items_are_equally_popular_no_change_is_attributed_to_popularity(worlds):
    causes = [_causes_in_a_world_of_equally_popular_items(seed) for seed in range(worlds)]
    assert sum("popularity" in found for found in causes) <= 0.05 * worlds
    assert sum("unclear" in found for found in causes) > 0.3 * worlds  # significance alone would say otherwise


def test_lists_in_which_everything_is_a_hit_are_not_measured(world, given):
    with pytest.raises(cf.SettingError, match="nonrelevant=5 makes lists of 6 items"):
        cf.bias(world.ratings, "random", nonrelevant=5)
    _, split, runs = given
    bias = cf.bias(runs=runs, test=split.test, train=split.train, groups=20)
    assert bias_facts.GroupsTooSmall(20, 5, 10, drawn=False) in bias.notes
    assert "P1R" not in [protocol.name for protocol in bias.protocols]


@pytest.mark.slow
def test_on_movielens_plain_1r_already_reverses_knn_and_wrmf_so_popularity_is_not_blamed(real_data):
    found = cf.bias(cf.read(real_data("ml-1m.parquet")), ["knn", "wrmf"], threshold=5, splits=1)
    pairs = found.changes.filter(system_a="knn", system_b="wrmf").select("protocol", "before", "after", "cause").rows()
    assert ("1R", "knn", "wrmf", "design") in pairs
    assert ("UAR", "knn", "wrmf", "popularity") in pairs
    assert {protocol for protocol, *_, cause in pairs if cause == "popularity"} == {"UAR"}
    (among,) = [note.nonrelevant for note in found.notes if isinstance(note, bias_facts.Levelled)]
    assert among == pytest.approx(1_700, abs=20)  # the paper's |N_u|, section 6.3
