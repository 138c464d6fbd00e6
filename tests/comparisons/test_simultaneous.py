"""Simultaneous intervals: those of all pairs of a metric hold together as often as they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import stdtrit

from cranfield._errors import SettingError
from cranfield.comparisons import compare, intervals
from cranfield.comparisons.effects import effects, outcomes_of
from cranfield.comparisons.intervals import largest_statistics
from cranfield.comparisons.samples import as_scores, make_samples
from cranfield.measures import Averaging

MEANS = np.array([0.30, 0.30, 0.32, 0.33, 0.36])


def pair_level(sample, alpha, seed):
    return largest_statistics(sample, outcomes_of(sample)[1], seed).level(alpha)


def _world(rng, users):
    """Values of five systems on the same users, skewed and correlated, with known means."""
    user = rng.gamma(2.0, 0.5, users)
    return {f"s{k}": mean * user * rng.gamma(4.0, 0.25, users) for k, mean in enumerate(MEANS)}


def _held(worlds, users):
    """Return in which share of worlds the intervals of all pairs hold at once: simultaneous ones, and single ones."""
    rng, held = np.random.default_rng(4), np.zeros(2)
    for _ in range(worlds):
        (sample,), _ = make_samples(as_scores(_world(rng, users)), Averaging(by="user"))
        true = MEANS[sample.first] - MEANS[sample.second]
        for k, level in enumerate((pair_level(sample, 0.05, 0), None)):
            found = effects(sample, outcomes_of(sample), 0.05, level)
            held[k] += ((found.lower <= true) & (true <= found.upper)).all()
    return held / worlds


def test_intervals_of_all_pairs_hold_together_as_often_as_they_say():
    together, alone = _held(50, 100)
    assert together == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 50))
    assert alone < 0.85


@pytest.mark.slow
def test_intervals_of_all_pairs_hold_together_in_many_worlds():
    assert _held(2000, 400)[0] == pytest.approx(0.95, abs=0.015)


def test_corrected_p_values_have_simultaneous_intervals_and_uncorrected_ones_single_intervals():
    values = _world(np.random.default_rng(1), 200)
    for significance in ("student", "permutation", "bootstrap", "wilcoxon"):
        together, alone = (compare(values, significance=significance, correction=one) for one in (None, "none"))
        width = [one.frame(detail=True)["upper"] - one.frame(detail=True)["lower"] for one in (together, alone)]
        assert (width[0] > 1.15 * width[1]).all()
        assert "hold for all pairs of a metric at once" in together.intervals
        assert "for each pair separately" in alone.intervals
    # Percentages and effect sizes belong to the same family.
    for name in ("relative", "effect"):
        wide, narrow = (
            one.frame(detail=True)[f"{name}_upper"] - one.frame(detail=True)[f"{name}_lower"]
            for one in (together, alone)
        )
        assert (wide > 1.15 * narrow).all()


def test_two_systems_have_the_interval_of_student():
    values = _world(np.random.default_rng(2), 80)
    row = compare({name: values[name] for name in ("s0", "s4")}).frame(detail=True).row(0, named=True)
    reach = stdtrit(79, 0.975) * row["standard_error"]
    assert row["upper"] - row["difference"] == pytest.approx(reach)


def test_the_level_of_a_pair_lies_between_bonferroni_and_alone_and_is_the_same_for_the_same_seed():
    (sample,), _ = make_samples(as_scores(_world(np.random.default_rng(3), 100)), Averaging(by="user"))
    level = pair_level(sample, 0.05, 7)
    assert 0.05 / sample.n_pairs <= level < 0.05
    assert level == pair_level(sample, 0.05, 7)
    assert level == pytest.approx(pair_level(sample, 0.05, 8), rel=0.2)


def test_equal_systems_and_single_users_do_not_upset_the_level():
    same = {"a": [0.5, 0.5, 0.1], "b": [0.5, 0.5, 0.1], "c": [0.2, 0.9, 0.3]}
    frame = compare(same).frame(detail=True)
    assert frame.filter(system_a="a", system_b="b")["upper"].item() == 0.0
    one_user = compare({"a": [0.5], "b": [0.4], "c": [0.3]}).frame(detail=True)
    assert one_user["lower"].is_nan().all()


def test_pairs_over_different_users_have_the_same_level_as_over_the_same_ones(monkeypatch):
    values = _world(np.random.default_rng(5), 200)
    (same,), _ = make_samples(as_scores(values), Averaging(by="user"))
    more = np.pad(same.values, ((0, 0), (0, 1)), constant_values=0.3)
    more[0, -1] = np.nan
    other = replace(same, values=more)
    assert not other.same_users
    monkeypatch.setattr(intervals, "_PAIRS_AT_ONCE", 3)
    assert pair_level(other, 0.05, 0) == pytest.approx(pair_level(same, 0.05, 0), rel=0.2)


def test_many_users_are_flipped_in_blocks(monkeypatch):
    (sample,), _ = make_samples(as_scores(_world(np.random.default_rng(6), 600)), Averaging(by="user"))
    whole = pair_level(sample, 0.05, 0)
    monkeypatch.setattr("cranfield.comparisons.sample.MOST_BLOCKS", 150)
    blocks = pair_level(sample, 0.05, 0)
    assert stdtrit(599, 1 - blocks / 2) == pytest.approx(stdtrit(599, 1 - whole / 2), rel=0.05)


@pytest.mark.parametrize("average", ["weighted(by=judged)", "geometric"])
def test_influences_of_systems_are_those_of_pairs(average):
    scores = as_scores(_world(np.random.default_rng(8), 50))
    object.__setattr__(scores, "judged", np.arange(1, 51))
    (sample,), _ = make_samples(scores, Averaging(by="user", average=average))
    rows, pairs = sample.system_influences(), slice(0, sample.n_pairs)
    middle = sample.tested_difference(*sample.averages(pairs))
    assert rows[sample.first] - rows[sample.second] == pytest.approx(sample.influences(pairs) - middle[:, None])


@pytest.mark.parametrize("significance", ["student", "permutation", "bootstrap(resamples=999)"])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_letters_corrected_p_values_and_intervals_agree(significance, alpha):
    rng = np.random.default_rng(11)
    for _ in range(4):
        result = compare(_world(rng, 60), significance=significance, alpha=alpha)
        frame = result.frame(detail=True)
        includes = (frame["lower"] <= 0) & (frame["upper"] >= 0)
        assert frame["significant"].to_list() == (~includes).to_list()
        assert (frame["p_corrected"] >= frame["p"]).all()
        assert not result.doubts


def test_the_corrected_p_value_is_the_share_of_flips_whose_largest_statistic_reaches_that_of_the_pair():
    values = _world(np.random.default_rng(12), 80)
    (sample,), _ = make_samples(as_scores(values), Averaging(by="user"))
    largest = largest_statistics(sample, outcomes_of(sample)[1], 0)
    frame = compare(values, significance="student").frame(detail=True)
    t = np.abs(frame["difference"] / frame["standard_error"]).to_numpy()
    share = [(1 + (largest.values >= one).sum()) / 5001 for one in t]
    assert frame["p_corrected"].to_list() == pytest.approx(np.minimum(share, 10 * frame["p"].to_numpy()))


def _largest_of_all_resamples(values):
    """Return the largest |t| over all pairs in each of the n^n resamples of the users, and |t| of every pair."""
    values = np.array(list(values.values()))
    first, second = np.triu_indices(len(values), 1)
    d = values[first] - values[second]
    n = d.shape[1]
    drawn = (d - d.mean(axis=1, keepdims=True))[:, np.array(list(product(range(n), repeat=n)))]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(drawn.mean(axis=2)) / (drawn.std(axis=2, ddof=1) / np.sqrt(n))
    observed = np.abs(d.mean(axis=1)) / (d.std(axis=1, ddof=1) / np.sqrt(n))
    return np.nan_to_num(t, posinf=np.inf).max(axis=0), observed


@pytest.mark.parametrize("systems", [2, 3, 5])
def test_the_bootstrap_corrects_by_the_largest_studentised_statistic_of_its_resamples(systems):
    values = dict(list(_world(np.random.default_rng(15), 5).items())[:systems])
    largest, t = _largest_of_all_resamples(values)
    frame = compare(values, significance="bootstrap", resamples=20_000, alpha=0.2).rows
    share = np.array([(largest >= one - 1e-9).mean() for one in t])
    assert frame["p_corrected"].to_numpy() == pytest.approx(share, abs=4 * 0.5 / np.sqrt(20_000))
    assert (frame["p_corrected"] >= frame["p"]).all()
    reach = (frame["upper"] - frame["difference"]) / frame["standard_error"]
    assert reach.to_numpy() == pytest.approx(np.quantile(largest, 0.8), rel=0.03)


def _rejected(significance, worlds, users):
    """Return in which share of worlds some pair of five skewed systems with equal means differs significantly."""
    rng, size, rejected = np.random.default_rng(16), np.array([0.5, 1, 2, 8, 32])[:, None], 0
    for _ in range(worlds):
        values = dict(zip("abcde", rng.beta(0.2 * size, 0.8 * size, (5, users))))
        rejected += compare(values, significance=significance).rows["significant"].any()
    return rejected / worlds


@pytest.mark.slow
def test_resamples_keep_the_level_of_skewed_differences_of_ten_users_and_flips_do_not():
    assert _rejected("bootstrap", 400, 10) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert _rejected("permutation", 400, 10) > 0.12


def test_too_few_resamples_for_the_level_give_intervals_that_exclude_nothing():
    result = compare(_world(np.random.default_rng(17), 20), significance="bootstrap(resamples=9)")
    assert ((result.rows["lower"] < 0) & (result.frame()["upper"] > 0)).all()
    assert not result.rows["significant"].any()


@pytest.mark.parametrize("significance", ["wilcoxon", "sign", "log_student"])
def test_tests_of_something_else_than_averages_are_corrected_by_holm(significance):
    values = _world(np.random.default_rng(13), 40)
    assert compare(values, significance=significance).correction == "holm"
    with pytest.raises(SettingError, match="correction='max_t' is for tests of averages"):
        compare(values, significance=significance, correction="max_t")
