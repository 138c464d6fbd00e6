"""Corrections of metrics that were measured among sampled items."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import cranfield as cf
from cranfield.biases import correct_runs, correct_sampled
from cranfield.biases.sampled_metrics import _chances


def _sampled(full, m, n, seed, replacement=False):
    rng = np.random.default_rng(seed)
    if replacement:
        return 1 + rng.binomial(m, (full - 1) / n)
    return 1 + rng.hypergeometric(full - 1, n - (full - 1), m)


def test_the_chance_of_a_sampled_rank_is_hypergeometric_or_binomial():
    grid = np.arange(1, 32, dtype=float)
    for replacement in (False, True):
        found = _chances(7, 30, grid, replacement)
        for k, rank in enumerate(grid.astype(int)):
            law = stats.binom(7, (rank - 1) / 30) if replacement else stats.hypergeom(30, rank - 1, 7)
            np.testing.assert_allclose(found[:, k], law.pmf(np.arange(8)), atol=1e-12)


def test_a_hit_among_99_is_likely_far_below_the_top_of_the_catalogue():
    # MovieLens 1M without the 165 training items of a user
    hit = _chances(99, 3541, np.array([200.0, 370.0]), False)[:10].sum(axis=0)
    assert hit.round(2).tolist() == [0.95, 0.41]


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("m", [20, 99])
def test_the_interval_holds_the_value_on_the_whole_catalogue(m, replacement):
    n, rng = 300, np.random.default_rng(m)
    inside = 0
    for seed in range(2):
        full = np.minimum(1 + rng.geometric(0.02, 800), n + 1)
        ranks = _sampled(full, m, n, seed, replacement)
        result = correct_sampled(
            ranks, ["HitRate@10", "nDCG@10", "RR"], sampled=m, candidates=n, replacement=replacement
        )
        truth = [(full <= 10).mean(), ((full <= 10) / np.log2(full + 1)).mean(), (1 / full).mean()]
        inside += sum(
            low - 1e-9 <= value <= high + 1e-9
            for value, low, high in zip(truth, result.frame()["lower"], result.frame()["upper"])
        )
    assert inside == 6


def test_with_almost_all_items_sampled_the_value_is_identified_and_right():
    full = 1 + np.random.default_rng(0).integers(0, 60, 3000)
    ranks = _sampled(full, 98, 100, 1)
    row = correct_sampled(ranks, "HitRate@10", sampled=98, candidates=100).frame().row(0, named=True)
    assert row["identified"]
    assert row["estimate"] == pytest.approx((full <= 10).mean(), abs=0.02)


def test_with_few_items_sampled_it_is_not_identified():
    full = 1 + np.random.default_rng(0).geometric(0.02, 500)
    result = correct_sampled(_sampled(np.minimum(full, 1001), 10, 1000, 1), "HitRate@10", sampled=10, candidates=1000)
    assert not result.frame()["identified"][0]
    assert "not identified" in result.table().text()


def test_the_corrected_metric_of_krichene_and_rendle_has_less_bias_than_the_sampled_one():
    full = 1 + np.random.default_rng(2).integers(0, 301, 4000)  # all full ranks are equally likely, as assumed
    ranks = _sampled(full, 50, 300, 5)
    row = (
        correct_sampled(ranks, "nDCG@10", sampled=50, candidates=300, estimator="bv", gamma=0.01)
        .frame()
        .row(0, named=True)
    )
    truth = ((full <= 10) / np.log2(full + 1)).mean()
    assert abs(row["estimate"] - truth) < 0.3 * abs(row["sampled"] - truth)


def test_numbers_may_differ_between_rows():
    rng = np.random.default_rng(4)
    n = rng.integers(180, 220, 900)
    m = np.where(rng.random(900) < 0.5, 30, 60)
    full = np.minimum(1 + rng.geometric(0.05, 900), n)
    ranks = 1 + rng.hypergeometric(full - 1, n - (full - 1), m)
    frame = pl.DataFrame({"user": range(900), "item": range(900), "rank": ranks, "sampled": m, "candidates": n})
    row = correct_sampled(frame, "HitRate@10").frame().row(0, named=True)
    assert row["lower"] <= (full <= 10).mean() <= row["upper"]


@pytest.mark.parametrize(
    ("ranks", "options", "message"),
    [
        ([1, 2], {"sampled": 9}, "candidates is missing"),
        ([1, 12], {"sampled": 9, "candidates": 100}, "the rank 12"),
        ([0, 1], {"sampled": 9, "candidates": 100}, "the rank 0"),
        ([1.5], {"sampled": 9, "candidates": 100}, "does not hold whole numbers"),
        ([], {"sampled": 9, "candidates": 100}, "no sampled ranks"),
        ([1], {"sampled": 9, "candidates": 5}, "cannot be sampled without replacement"),
        ([1], {"sampled": 9, "candidates": 50, "metrics": "bpref"}, "bpref is not a metric of a single rank"),
        ([1], {"sampled": 9, "candidates": 50, "gamma": 0, "estimator": "bv"}, "gamma=0 must be above 0"),
    ],
)
def test_bad_input_is_refused(ranks, options, message):
    with pytest.raises(cf.CranfieldError, match=message):
        correct_sampled(ranks, **options)


def test_one_relevant_runs_are_sampled_ranks_among_the_candidates_of_their_users(split):
    options = {"relevant": "one", "threshold": 4, "length": "all"}
    full = cf.recommend(split, ["popularity", "random"], **options)
    drawn = cf.recommend(split, ["popularity", "random"], nonrelevant=12, **options)
    truth = cf.measure(full, split.test, "HitRate@3", threshold=4).average(by="list")[:, 0]
    results = correct_runs(drawn, split.test, "HitRate@3", train=split.train, threshold=4)
    assert list(results) == ["popularity", "random"]
    for result, value in zip(results.values(), truth):
        row = result.frame().row(0, named=True)
        assert row["lower"] - 1e-9 <= value <= row["upper"] + 1e-9
        assert row["sampled"] > value


def test_items_that_are_not_ranked_count_0():
    ranks = np.ones(300)
    plain, fewer = (
        correct_sampled(ranks, "HitRate@10", sampled=99, candidates=100, unranked=u).frame().row(0, named=True)
        for u in (0, 100)
    )
    for name in ("sampled", "estimate", "lower", "upper"):
        assert fewer[name] == pytest.approx(0.75 * plain[name])


@pytest.mark.parametrize(
    ("lists", "train", "message"), [("all", True, "only lists of one relevant item"), ("one", False, "give train=")]
)
def test_runs_that_cannot_be_corrected_are_refused(lists, train, message, split):
    runs = cf.recommend(split, "popularity", relevant=lists, nonrelevant=5, threshold=4)
    with pytest.raises(cf.SettingError, match=message):
        correct_runs(runs, split.test, train=split.train if train else None, threshold=4)


@pytest.mark.slow
def test_intervals_hold_the_value_of_the_whole_catalogue_on_movielens_1m(real_data):
    split = cf.splits.random(cf.read(real_data("ml-1m.parquet")), train=0.8, seed=0)
    systems = ["popularity", "puresvd(factors=20)", "average", "random"]
    options = {"relevant": "one", "threshold": 5, "length": "all"}
    metrics = ["HitRate@10", "nDCG@10"]
    truth = cf.measure(cf.recommend(split, systems, **options), split.test, metrics, threshold=5).average(by="list")
    inside = []
    for m in (20, 99, 500):
        drawn = cf.recommend(split, systems, nonrelevant=m, seed=m, **options)
        for values, result in zip(
            truth, correct_runs(drawn, split.test, metrics, train=split.train, threshold=5).values()
        ):
            frame = result.frame()
            inside += [low <= value <= high for value, low, high in zip(values, frame["lower"], frame["upper"])]
            assert (frame["sampled"] > values).all()
            if m < 100:
                assert not frame["identified"].any()
    assert len(inside) == 24
    assert sum(inside) >= 23


@pytest.mark.slow
def test_the_order_of_the_ncf_benchmark_turns_round_on_the_whole_catalogue_and_is_not_identified(real_data):
    """Definitions 8.4: HR@10 of EASE is .7177 and .6969 among 99 sampled items, .1089 and .1121 among all."""
    ratings, given = cf.read(real_data("ml-1m.parquet")), pl.read_parquet(real_data("ml-1m-ncf-negatives.parquet"))
    users, wanted = ratings.user_ids.codes(given["user"]), ratings.item_ids.codes(given["item"])
    others = np.stack([ratings.item_ids.codes(given["negatives"].arr.get(k)) for k in range(99)], axis=1)
    width = ratings.n_items
    held = np.isin(ratings.users.astype(np.int64) * width + ratings.items, users.astype(np.int64) * width + wanted)
    train = ratings.keep(~held)
    among, whole = {}, {}
    for penalty in (300, 1000):
        model = cf.recommenders.recommender(f"ease(l2={penalty})").fit(train)
        ranks, full, candidates = [], [], []
        for start in range(0, len(users), 1000):
            part = slice(start, start + 1000)
            scores = np.nan_to_num(np.asarray(model.score(users[part]), dtype=np.float64), nan=-1e9)
            own = scores[np.arange(len(scores)), wanted[part]][:, None]
            ranks.append(1 + (np.take_along_axis(scores, others[part].astype(np.int64), axis=1) >= own).sum(axis=1))
            for row, user in enumerate(users[part]):
                scores[row, train.items[train.indptr[user] : train.indptr[user + 1]]] = -np.inf
            full.append((scores >= own).sum(axis=1))
            candidates.append(np.isfinite(scores).sum(axis=1) - 1)
        frame = pl.DataFrame({"rank": np.concatenate(ranks), "candidates": np.concatenate(candidates)})
        row = correct_sampled(frame, "HitRate@10", sampled=99).frame().row(0, named=True)
        among[penalty], whole[penalty] = row["sampled"], (np.concatenate(full) <= 10).mean()
        assert row["lower"] <= whole[penalty] <= row["upper"]
        assert not row["identified"]
    assert among == pytest.approx({300: 0.6969, 1000: 0.7177}, abs=5e-4)
    assert whole == pytest.approx({300: 0.1121, 1000: 0.1089}, abs=5e-4)
