"""The study of observed and true preferences on a small world, against its definitions by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import SettingError, simulate
from cranfield._figures import definition
from cranfield.biases import estimate
from cranfield.cli import main
from cranfield.cli.replicate import observed_and_judged
from cranfield.data import READING
from cranfield.splits import truths
from cranfield.studies import canamares_castells2018, replicate
from cranfield.studies.canamares_castells2018 import orders
from cranfield.studies.canamares_castells2018.designs import (
    OBSERVED_P1,
    TRUE_NDCG,
    TRUE_P1,
    Sums,
    discovery,
    published_sums,
    resampled,
)
from cranfield.studies.canamares_castells2018.exhibits import PRINTED
from cranfield.studies.canamares_castells2018.orders import TruePairs, order_scores
from cranfield.studies.canamares_castells2018.protocols import FULL_LISTS, Readings, estimator_sums

SYSTEMS = ["random", "popularity", "average(damping=2)", "knn(k=10)"]


@pytest.fixture(scope="module")
def pair():
    """Return what is known among the judgments of random items, and all judgments."""
    world = simulate.world(users=60, items=50, ratings=900, relevance_bias=1.2, seed=4, times=False)
    grades, ratings = world.preference(), world.ratings
    judged = np.random.default_rng(1).random(grades.shape) < 0.4
    known = np.zeros(grades.shape, dtype=bool)
    known[ratings.users, ratings.items] = True

    def those(mask):
        users, items = np.nonzero(mask)
        codes = users.astype(np.int32), items.astype(np.int32)
        return cf.Ratings.from_codes(ratings.user_ids, ratings.item_ids, *codes, grades[mask], name="small")

    return those(known & judged), those(judged)


@pytest.fixture(scope="module")
def few_worlds():
    """Simulate one small world instead of many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "KNOBS", {"popularity_bias": (1.0,)})
        patch.setattr(orders, "BASE", {**orders.BASE, "users": 60, "items": 50, "ratings": 1_000})
        cheap = {name: f"average(damping={place})" for place, name in enumerate(canamares_castells2018.TOIS)}
        patch.setattr(canamares_castells2018, "TOIS", cheap)
        yield


@pytest.fixture(scope="module")
def run_again(pair, few_worlds, tmp_path_factory):
    out = tmp_path_factory.mktemp("truth") / "out"
    known, judged = pair
    return replicate("canamares-castells2018", judged, known=known, out=out, seeds=1, systems=SYSTEMS, figures=False)


def test_the_published_number_is_the_mean_over_folds_of_the_mean_over_users_with_training_ratings(pair):
    known, judged = pair
    sums = published_sums(known, judged, "actual", False, 4.0, 3)
    means = []
    for fold in range(5):
        with pytest.warns(cf.CranfieldWarning):
            truth = truths.published(known, judged, fold=fold, seed=3)
        (run,) = cf.recommend(truth.train, {"popularity": "popularity(threshold=4)"}, 10, min_ratings=1)
        values = cf.measure(run, truth.judged, ["P@1", "nDCG(gain=exprelevant)@10"], threshold=4).values[0]
        means.append(np.nan_to_num(values).sum(axis=1) / np.count_nonzero(truth.train.user_counts))
    place = sums.systems.index("popularity")
    expected = np.mean(means, axis=0)
    assert [sums.means(TRUE_P1)[place], sums.means(TRUE_NDCG)[place]] == pytest.approx(expected.tolist())


def test_the_optimal_observed_ranking_leads_on_the_observed_test_set(pair):
    sums = published_sums(*pair, "actual", False, 4.0, 0)
    values = dict(zip(sums.systems, sums.means(OBSERVED_P1)))
    assert max(values, key=values.get) == "optimal observed ranking"


def test_every_printed_number_stands_beside_one_of_this_run(run_again):
    frame = run_again.exhibit("table-1-published").frame
    assert frame["printed"].drop_nulls().len() == len(PRINTED.table("2018"))
    inside = pl.col("value").is_between(pl.col("lower") - 1e-12, pl.col("upper") + 1e-12)
    assert frame.select(inside.mean()).item() > 0.9


def test_all_systems_stand_under_three_designs_with_intervals(run_again):
    frame = run_again.exhibit("table-3-designs").frame
    assert set(frame["system"]) == set(SYSTEMS)
    assert frame.filter(pl.col("number").str.starts_with("weighted"))["lower"].is_not_nan().all()
    assert frame["number"].n_unique() == 6


def test_every_protocol_is_scored_under_every_discovery(run_again):
    frame = run_again.exhibit("table-5-orders").frame
    assert frame["variant"].unique().sort().to_list() == ["actual", "item-independent", "relevance-independent"]
    assert frame["protocol"].n_unique() == 8
    assert frame.select((pl.col("winner_lower") <= pl.col("winner_upper")).all()).item()
    assert frame.filter(pl.col("tau").is_not_nan()).select((pl.col("tau").abs() <= 1).all()).item()


def test_every_discovery_and_every_draw_has_numbers_of_its_own(run_again):
    names = ("table-1-published", "table-2-relevance-independent", "table-2-item-independent")
    frames = [run_again.exhibit(name).frame.filter(pl.col("number") == f"published {TRUE_NDCG}") for name in names]
    drawn = [part for frame in frames[1:] for part in frame.partition_by("drawn")]
    values = {tuple(frame["value"].round(12)) for frame in [frames[0], *drawn]}
    assert len(values) == 5
    margins = {finding.deciding.margin for finding in run_again.claims if "P@10 on full lists" in finding.claim}
    assert len(margins) > 1


def test_worlds_are_scored_and_drawn(run_again):
    frame = run_again.exhibit("figure-2-worlds").frame
    assert frame["knob"].unique().to_list() == ["popularity_bias"]
    assert frame.select((pl.col("winner_lower") <= pl.col("winner") + 1e-9).all()).item()
    assert frame.select((pl.col("winner_upper") >= pl.col("winner") - 1e-9).all()).item()
    above, below = definition(run_again.exhibit("figure-2-worlds").draw())["vconcat"]
    assert len(above["hconcat"]) == len(below["hconcat"]) == 1
    assert definition(run_again.exhibit("figure-1-orders").draw())["layer"]


def test_the_report_speaks_of_the_flaw(run_again):
    text = (run_again.folder / "report.md").read_text()
    assert "known pairs are judged about five times less often" in text
    claims = run_again.frame()["claim"].to_list()
    assert "random half: popularity is below random" in claims
    assert "design of 2021: the orders by observed and by true P@10 agree" in claims


def test_judgments_of_other_pairs_than_those_observed_are_taken_as_they_are(few_worlds, tmp_path):
    world = simulate.world(users=60, items=50, ratings=900, seed=4, times=False)
    test = world.random_test(12)
    options = {"seeds": 1, "systems": SYSTEMS[:3], "figures": False}
    found = replicate("canamares-castells2018", test, known=world.ratings, out=tmp_path / "out", **options)
    assert found.exhibit("table-5-orders").frame["variant"].unique().to_list() == ["given"]
    assert "table-1-published" not in [exhibit.name for exhibit in found.exhibits]


def test_the_study_needs_to_know_what_was_observed(pair, tmp_path):
    with pytest.raises(SettingError, match="a column known"):
        replicate("canamares-castells2018", pair[1], out=tmp_path / "out", figures=False)


def test_a_misspelled_system_is_refused_before_anything_is_trained(pair, tmp_path):
    known, judged = pair
    with pytest.raises(SettingError, match="popularty"):
        replicate(
            "canamares-castells2018", judged, known=known, out=tmp_path / "out", systems=["popularty", "random"],
            figures=False,
        )  # fmt: skip


def test_other_studies_take_no_known(pair, tmp_path):
    known, judged = pair
    with pytest.raises(SettingError, match="takes no known"):
        replicate("valcarce2018", judged, known=known, out=tmp_path / "out", figures=False)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_column_known_of_a_file_says_what_was_observed(pair, tmp_path, ending):
    known, judged = pair
    rows = judged.frame().join(known.frame().with_columns(known=pl.lit(1)), on=["user", "item", "rating"], how="left")
    rows = rows.with_columns(pl.col("known").fill_null(0))
    path = tmp_path / f"small.{ending}"
    if ending == "csv":
        rows.write_csv(path)
    else:
        rows.with_columns(pl.col("known") == 1).write_parquet(path)
    observed, everything = observed_and_judged(str(path), dict(READING))
    assert observed.frame().equals(known.frame())
    assert everything.frame().equals(judged.frame())


def test_the_column_split_of_a_parquet_file_names_the_parts(tmp_path):
    rows = {"user": [1, 1, 2], "item": [5, 6, 5], "rating": [4, 1, 3], "split": ["train", "test", "test"]}
    pl.DataFrame(rows).write_parquet(tmp_path / "coat.parquet")
    observed, judged = observed_and_judged(str(tmp_path / "coat.parquet"), dict(READING))
    assert observed.frame().rows() == [(1, 5, 4.0)]
    assert judged.frame().rows() == [(1, 6, 1.0), (2, 5, 3.0)]
    pl.DataFrame({**rows, "split": ["a", "b", "b"]}).write_parquet(tmp_path / "odd.parquet")
    with pytest.raises(SettingError, match="must hold only train and test"):
        observed_and_judged(str(tmp_path / "odd.parquet"), dict(READING))


def test_the_command_says_that_a_file_has_no_column_known(pair, tmp_path, capsys):
    pair[1].frame().write_csv(tmp_path / "small.csv")
    with pytest.raises(SystemExit) as ended:
        main(["replicate", "canamares-castells2018", "--data", str(tmp_path / "small.csv")])
    assert ended.value.code == 2
    assert "there is no column 'known'" in capsys.readouterr().err


def test_discovery_independent_of_relevance_gives_items_the_rates_of_others(pair):
    known, judged = pair
    chances = discovery(known, judged, "relevance-independent", 4.0, 1, unrated=False)
    assert (chances == chances[0]).all()
    assert sorted(chances[0]) == pytest.approx(sorted(known.item_counts / judged.item_counts))


@pytest.mark.parametrize("unrated", [False, True])
def test_discovery_independent_of_items_has_one_rate_for_what_is_liked_and_one_for_the_rest(pair, unrated):
    known, judged = pair
    chances = discovery(known, judged, "item-independent", 4.0, 1, unrated=unrated)
    liked = int((judged.values >= 4).sum())
    found = int((known.values >= 4).sum())
    expected = [(len(known) - found) / ((chances.size if unrated else len(judged)) - liked), found / liked]
    assert np.unique(chances) == pytest.approx(sorted(expected))


def test_pairs_without_a_judgment_become_known_with_a_rating_of_0_only_where_all_pairs_are_drawn(pair):
    seen, everything = resampled(*pair, "item-independent", 4.0, 1, unrated=True)
    assert (seen.values == 0).any()
    assert len(everything) > len(pair[1])
    _, judged = resampled(*pair, "item-independent", 4.0, 1, unrated=False)
    assert judged.frame().equals(pair[1].frame())


def _readings(values, truth):
    values = np.asarray(values, dtype=float)
    return Readings(
        ("a", "b", "c"), ((FULL_LISTS, "P@10"),), np.array([1.0]), values[None], np.ones_like(values)[None], truth
    )


def test_orders_are_scored_on_pairs_that_differ_in_truth():
    rng = np.random.default_rng(1)
    truth = np.array([[0.9], [0.1], [0.1]]) + rng.normal(0, 0.05, (3, 60))
    right = _readings(truth, truth)
    wrong = replace(right, signs=np.array([-1.0]))
    pairs = TruePairs.of(truth)
    assert sorted(zip(pairs.better.tolist(), pairs.worse.tolist())) == [(0, 1), (0, 2)]
    assert order_scores([right], resamples=20)["tau"].to_list() == [1.0]
    assert order_scores([wrong], resamples=20)["tau"].to_list() == [-1.0]
    assert order_scores([wrong], resamples=20)["winner"].to_list() == [0.0]


def test_sums_give_the_mean_over_folds_of_the_mean_over_users():
    values = np.array([[[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]]])
    served = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    sums = Sums(("x",), ("a",), values, served)
    assert sums.means("x").tolist() == [pytest.approx((1 / 2 + 2 / 3) / 2)]
    assert Sums.of_arrays(sums.arrays(""), "").means("x").tolist() == sums.means("x").tolist()


def test_estimates_are_those_of_the_library():
    world = simulate.world(users=40, items=40, ratings=900, min_profile=12, seed=4, times=False)
    split = cf.splits.per_user(world.ratings, train=0.7, seed=1)
    runs = cf.recommend(split, ["popularity", "knn(k=10)"], length=10)
    above, below = estimator_sums(runs, split, 4.0, 0)
    own = above.sum(axis=2) / below.sum(axis=2)
    frame = estimate(runs, split.test, train=split.train, threshold=4, resamples=1).frame().filter(metric="P@10")
    for number, name in enumerate(("IPS", "SNIPS", "DR (item mean)", "DR (svd)")):
        expected = [frame.filter(system=run.name, estimator=name)["estimate"].item() for run in runs]
        assert own[number].tolist() == pytest.approx(expected), name


def test_a_precision_and_its_interval_are_at_most_1_though_weighted_judgments_can_make_them_more():
    sums = Sums(("P@1 if all were judged",), ("one", "two"), np.array([[[[2.0, 1.5]], [[0.5, 0.0]]]]), np.ones((1, 2)))
    assert sums.means("P@1 if all were judged").tolist() == [1.75, 0.25]
    value, lower, upper = sums.precision("P@1 if all were judged")
    assert value.tolist() == [1.0, 0.25]
    assert (lower.max(), upper.max()) == (1.0, 1.0)
