"""Discriminative power, against its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import InputError, SettingError
from cranfield.assessments import discriminative_power
from cranfield.comparisons import compare
from cranfield.facts.scores import InFold, ReadAs, Unranked
from cranfield.measures import join_folds
from cranfield.measures.scores import Scores
from cranfield.tables import Vocabulary


def scores_of(values, ids=None, metrics=None):
    values = np.asarray(values, dtype=float)
    n_systems, n_metrics, n = values.shape
    users = Vocabulary.of(np.arange(n) if ids is None else ids)
    ones = np.ones(n, dtype=np.int64)
    return Scores(
        tuple(f"s{k}" for k in range(n_systems)),
        tuple(metrics or (f"m{k}" for k in range(n_metrics))),
        values,
        np.ones((n_systems, n), dtype=bool),
        users.codes(np.arange(n) if ids is None else ids),
        users,
        ones,
        ones,
        (False,) * n_metrics,
    )


def _world(systems=6, n=150, seed=0):
    """Two metrics of the same systems, the second noisier."""
    rng = np.random.default_rng(seed)
    truth = rng.gamma(1, 0.2, n) * np.linspace(0.8, 1.2, systems)[:, None]
    sharp, dull = (truth + rng.normal(0, noise, (systems, n)) for noise in (0.02, 0.4))
    return np.stack([dull, sharp], axis=1)


def test_dp_is_the_sum_over_unordered_pairs():
    scores = scores_of(_world())
    result = discriminative_power(scores)
    p = compare(scores, correction="none").frame(detail=True)
    for row in result.frame().iter_rows(named=True):
        own = p.filter(pl.col("metric") == row["metric"])["p"]
        assert row["pairs"] == 15
        assert row["dp"] == pytest.approx(own.sum())
        assert row["median_p"] == pytest.approx(own.median())
        assert row["significant"] == pytest.approx((own < 0.05).mean())


def test_the_sharper_metric_is_ranked_first():
    result = discriminative_power(scores_of(_world()))
    assert result.frame()["metric"].to_list() == ["m1", "m0"]
    assert result.frame()["rank"].to_list() == [1, 2]
    assert str(result).startswith("m1 tells the systems apart best: DP ")
    assert "<table>" in result._repr_html_()


def test_the_curve_decreases_keeps_all_pairs_and_draws_twenty():
    result = discriminative_power(scores_of(_world(8)))
    whole = result.curve("m0", first=None)
    assert len(whole) == 28
    assert whole["place"].to_list() == list(range(1, 29))
    assert whole["p"].is_sorted(descending=True)
    assert len(result.curve("m0")) == 20
    assert result.curve("m0")["p"].sum() <= whole["p"].sum()
    assert whole["p"].sum() == pytest.approx(result.frame().filter(pl.col("metric") == "m0")["dp"].item())


def test_sakais_share_and_required_difference_follow_their_definition():
    from cranfield._streams import stream

    values, n, draws = _world(3, 40), 40, 200
    result = discriminative_power(scores_of(values), resamples=draws, seed=4).frame().sort("metric")
    chosen = (stream(4, "compare", "bootstrap").random((draws, n)) * n).astype(int)
    for m in range(2):
        shares, required = [], []
        for a, b in ((0, 1), (0, 2), (1, 2)):
            z = values[a, m] - values[b, m]
            w = (z - z.mean())[chosen]
            t = np.abs(w.mean(axis=1)) / (w.std(axis=1, ddof=1) / np.sqrt(n))
            shares.append((t >= abs(z.mean()) / (z.std(ddof=1) / np.sqrt(n))).mean() < 0.05)
            required.append(abs(w.mean(axis=1))[np.argsort(-t, kind="stable")[int(draws * 0.05) - 1]])
        assert result["asl_significant"][m] == pytest.approx(np.mean(shares))
        assert result["required_difference"][m] == pytest.approx(max(required))


def test_a_pair_is_significant_where_its_asl_is_below_alpha_and_not_where_it_is_alpha():
    values = _world(2, 40)[:, :1]
    way = {"significance": "bootstrap(plus_one=false)", "resamples": 64, "seed": 4}
    asl = compare({"a": values[0, 0], "b": values[1, 0]}, **way).frame(detail=True)["p"].item()
    assert 0 < asl < 1
    for alpha, share in ((asl, 0.0), (asl + 1 / 128, 1.0)):
        row = discriminative_power(scores_of(values), resamples=64, alpha=alpha, seed=4).frame().row(0, named=True)
        assert row["asl_significant"] == share


def test_the_bootstrap_finds_nothing_where_there_is_one_user_or_none():
    alone = discriminative_power(scores_of([[[0.5]], [[0.2]], [[0.1]]]), resamples=50)
    assert alone.frame()["asl_significant"].item() == 0.0
    apart = scores_of([[[0.5, 0.3, np.nan, np.nan]], [[np.nan, np.nan, 0.4, 0.2]], [[0.1, 0.2, 0.3, 0.4]]])
    row = discriminative_power(apart, undefined="leave out", resamples=50).frame().row(0, named=True)
    assert row["pairs"] == 0
    assert np.isnan(row["asl_significant"])


def test_without_resamples_there_is_no_bootstrap():
    scores = scores_of(_world())
    with_it, without = discriminative_power(scores, resamples=20), discriminative_power(scores, resamples=0)
    assert without.frame().equals(with_it.frame().drop("asl_significant", "required_difference"))
    assert without.curve(first=None).equals(with_it.curve(first=None))
    assert "ASL" in str(with_it)
    assert "ASL" not in str(without)
    with pytest.raises(SettingError, match="resamples=-1 is not a whole number of at least 0"):
        discriminative_power(scores, resamples=-1)


class TestFolds:
    def folds(self):
        """Two folds that share half of their users, whose ids are text in one of them."""
        values = _world(4, 100)
        return [scores_of(values[:, :, :60], np.arange(60)), scores_of(values[:, :, 40:] + 0.1, np.arange(30, 90))]

    def test_a_user_is_averaged_over_the_folds_it_appears_in(self):
        one, two = self.folds()
        result = discriminative_power([one, two], folds="average")
        users = {}
        for fold, start in ((one, 0), (two, 30)):
            for k in range(60):
                users.setdefault(start + k, []).append(fold.values[:, :, k])
        means = np.stack([np.mean(users[user], axis=0) for user in sorted(users)], axis=2)
        assert means.shape[2] == 90
        expected = discriminative_power(scores_of(means)).frame()
        assert result.frame()["dp"].to_list() == pytest.approx(expected["dp"].to_list(), abs=1e-9)
        assert "90 users have 120 lists, averaged by user first" in str(result)

    def test_pooled_lists_are_cases_of_their_own(self):
        one, two = self.folds()
        result = discriminative_power([one, two], folds="pool")
        pooled = scores_of(np.concatenate([one.values, two.values], axis=2))
        assert result.frame().equals(discriminative_power(pooled).frame())

    def test_each_fold_by_itself(self):
        one, two = self.folds()
        frame = discriminative_power([one, two], folds="each").frame()
        assert frame["fold"].to_list() == [1, 1, 2, 2]
        alone = discriminative_power(two).frame()
        assert frame.filter(pl.col("fold") == 2).drop("fold").equals(alone)

    def test_ids_of_different_types_meet(self):
        one, two = self.folds()
        as_text = replace(two, user_ids=Vocabulary.of([str(k) for k in range(30, 90)]))
        short = replace(two, user_ids=Vocabulary(pl.Series(range(30, 90), dtype=pl.UInt32)))
        assert len(join_folds([one, short]).user_ids) == len(join_folds([one, as_text]).user_ids) == 90

    def test_joined_folds_have_all_that_each_of_them_has(self):
        ratings = cf.simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings
        parts = [
            cf.measure(
                cf.recommend(split, ["popularity", "knn"], length=5), split.test, ["P@5", "ItemCoverage@5"],
                threshold=4, lists="condensed", bounds=True,
            )
            for split in cf.splits.k_fold(ratings, k=2, seed=1)
        ]  # fmt: skip
        parts = [replace(part, notes=(ReadAs(()), Unranked("a", k / 7))) for k, part in enumerate(parts)]
        joined = join_folds(parts)
        rows, each = joined.frame(by="list"), [part.frame() for part in parts]
        of_system = pl.col("metric") == "ItemCoverage@5"
        for column in ("mean", "filled", "item_coverage"):
            means = np.mean([frame.filter(of_system)[column].to_numpy() for frame in each], axis=0)
            assert rows.filter(of_system)[column].to_list() == pytest.approx(means.tolist()), column
        lists = [part.n_lists for part in parts]
        for column in ("mean", "least", "most"):
            values = [frame.filter(~of_system)[column].to_numpy() for frame in each]
            weighed = np.average(values, axis=0, weights=lists)
            assert rows.filter(~of_system)[column].to_list() == pytest.approx(weighed.tolist()), column
        assert "condensed lists; relevant from 4" in joined.table().caption
        assert joined.notes == (ReadAs(()), *(InFold(Unranked("a", k / 7), k + 1) for k in range(2)))
        of_repetitions = tuple(InFold(Unranked("a", k / 7), None, k + 1) for k in range(2))
        assert join_folds(parts, [0, 1]).notes[1:] == of_repetitions
        assert joined.step.settings["folds"] == 2

    def test_folds_with_other_systems_or_metrics_are_refused(self):
        one, two = self.folds()
        with pytest.raises(InputError, match="fold 2 has other metrics"):
            discriminative_power([one, replace(two, metrics=("m0", "x"))])
        with pytest.raises(InputError, match="there are no folds"):
            discriminative_power([])


def test_systems_that_are_all_alike_have_the_largest_dp():
    values = np.repeat(np.random.default_rng(0).random((1, 1, 20)), 3, axis=0)
    row = discriminative_power(scores_of(values)).frame().row(0, named=True)
    assert (row["dp"], row["median_p"], row["significant"], row["asl_significant"]) == (3.0, 1.0, 0.0, 0.0)
    assert row["required_difference"] == 0.0


def test_cut_offs_are_just_metrics():
    values = np.concatenate([_world(4, 80, seed) for seed in range(2)], axis=1)
    result = discriminative_power(
        scores_of(values, metrics=["P@5", "P@10", "P@50", "P@100"]), significance="t", metrics=["P@5", "P@50"]
    )
    assert set(result.frame()["metric"]) == {"P@5", "P@50"}


def test_an_unknown_way_with_folds_is_told():
    with pytest.raises(SettingError, match="folds='mean' is not one of"):
        discriminative_power(scores_of(_world(2)), folds="mean")


def test_values_by_system_will_do_and_what_is_no_scores_is_refused():
    values = {"a": [0.9, 0.8, 0.7, 0.9], "b": [0.1, 0.2, 0.3, 0.3]}
    assert discriminative_power(values, resamples=0).frame()["dp"].item() == 0.125
    with pytest.raises(InputError, match="cannot be compared"):
        discriminative_power(5)
