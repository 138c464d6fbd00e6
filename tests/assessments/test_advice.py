from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from cranfield import SettingError
from cranfield._streams import stream
from cranfield.assessments import advice as advice_module
from cranfield.assessments.advice import Advice, Evidence, advise


def signs(values):
    first, second = np.triu_indices(values.shape[-1], 1)
    return np.sign(values[..., first] - values[..., second]).astype(np.int8)


@pytest.fixture(scope="module")
def evidence():
    """Three metrics of six systems: one firm, one that wavers, one that is random."""
    rng = np.random.default_rng(0)
    truth = np.linspace(0.1, 0.6, 6)
    noise = np.array([0.0, 0.08, 5.0])[:, None]
    whole = truth + noise * rng.normal(size=(1, 3, 6)) * 0.2
    samples = truth + noise * rng.normal(size=(30, 3, 6))
    apart = np.array([[1.0] * 15, [1.0] * 8 + [0.0] * 7, [0.0] * 15])
    candidates = tuple(("mean", name) for name in ("firm", "wavering", "random"))
    return Evidence(candidates, 6, apart, signs(whole), {"ratings": signs(samples)}, {"ratings": np.zeros(30, int)})


def test_without_resampling_the_criteria_are_the_plain_ones(evidence):
    power, robust, agreement = evidence.judge(np.ones((1, 6)))[0]
    np.testing.assert_allclose(power, [1.0, 8 / 15, 0.0])
    a, b = evidence.whole[0].astype(float), evidence.samples["ratings"].astype(float)
    np.testing.assert_allclose(robust, (a * b).mean(axis=2).mean(axis=0))  # no ties: tau is the mean of s·s'
    assert agreement[0] == pytest.approx(((a[0] * a[1]).mean() + (a[0] * a[2]).mean()) / 2)


def test_power_is_the_share_of_the_pairs_that_could_be_tested(evidence):
    apart = evidence.apart.copy()
    apart[0, :5], apart[1] = np.nan, np.nan
    powers = replace(evidence, apart=apart).judge(np.array([[1.0] * 6, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]]))[:, 0]
    np.testing.assert_array_equal(powers, [[1.0, np.nan, 0.0], [np.nan, np.nan, 0.0]])


def test_ties_count_as_in_scipys_tau_b():
    rng = np.random.default_rng(5)
    whole, sample = rng.integers(0, 3, (2, 1, 1, 7)) / 2
    evidence = Evidence(
        (("mean", "m"),), 7, np.zeros((1, 21)), signs(whole), {"users": signs(sample)}, {"users": np.zeros(1, int)}
    )
    expected = stats.kendalltau(whole.ravel(), sample.ravel()).statistic
    assert evidence.judge(np.ones((1, 7)))[0, 1, 0] == pytest.approx(expected)


def test_a_system_drawn_twice_counts_twice_and_is_not_compared_with_its_copy(evidence):
    counts = np.array([2.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    copies = np.repeat(np.arange(6), counts.astype(int))
    first, second = np.triu_indices(len(copies), 1)
    place = {pair: k for k, pair in enumerate(zip(*np.triu_indices(6, 1)))}
    pairs = [place[copies[a], copies[b]] for a, b in zip(first, second) if copies[a] != copies[b]]
    power, robust, _ = evidence.judge(counts[None])[0]
    np.testing.assert_allclose(power, evidence.apart[:, pairs].mean(axis=1))
    a, b = evidence.whole[0].astype(float)[:, pairs], evidence.samples["ratings"].astype(float)[:, :, pairs]
    np.testing.assert_allclose(robust, (a * b).mean(axis=2).mean(axis=0))


def test_the_firm_metric_is_recommended_and_surely_so(evidence):
    advice = advise(evidence)
    assert advice.best == ("firm", "mean")
    assert advice.frame()["metric"].to_list() == ["firm", "wavering", "random"]
    row = advice.frame().row(0, named=True)
    assert row["first"] > 0.9
    assert row["lower"] <= row["score"] <= row["upper"] + 1e-12
    assert row["score"] == pytest.approx((row["significant"] + row["ratings"]) / 2)
    clear = replace(advice, rows=_apart(advice.rows), systems=8).fact
    first = round(100 * row["first"], 1)
    assert str(clear) == (
        f"Trust firm most on these data. This is sure: it comes first in {first:g} % of 200 draws of the systems."
    )
    for limit in advice.limits:
        assert limit in str(advice)


def test_fewer_than_eight_systems_or_a_lead_that_may_be_chance_are_no_clear_choice(evidence):
    few = replace(advise(evidence), rows=_apart(advise(evidence).rows))
    assert few.unclear == "6 systems are too few (at least eight)"
    near = few.rows.with_columns(lead_lower=pl.when(pl.col("metric") == "wavering").then(-0.01).otherwise(0.01))
    unclear = replace(few, rows=near, systems=8)
    assert [rival.metric for rival in unclear.fact.level] == ["wavering"]
    assert unclear.sentence() == f"No clear choice: firm scores highest, but {unclear.unclear}."
    assert replace(few, systems=8).unclear == ""


def _apart(rows):
    """Return rows in which the lead of the best one is no chance."""
    return rows.with_columns(lead_lower=pl.lit(0.01))


def test_a_lead_is_judged_in_the_same_draws_of_the_systems():
    """Scores that go up and down together have intervals that overlap, and a clear order."""
    rng = np.random.default_rng(2)
    first, second = np.triu_indices(20, 1)
    easy = np.where((first < 10) & (second >= 10), 1.0, rng.random(190) < 0.3)
    better = np.where(rng.random(190) < 0.3, 1.0, easy)
    ordered = np.ones((1, 2, 190), dtype=np.int8)
    evidence = Evidence((("mean", "better"), ("mean", "other")), 20, np.stack([better, easy]), ordered, {}, {})
    advice = advise(evidence)
    best, other = advice.rows.iter_rows(named=True)
    assert (best["metric"], best["lead_lower"]) == ("better", 0.0)
    assert best["lower"] < other["upper"]
    assert other["lead_lower"] > 0
    assert advice.unclear == ""
    drawn = advice_module.draws_of_systems(20, 200, stream(0, "assess", "advice", 20))
    scores = evidence.judge(drawn)[:, 0]
    assert other["lead_lower"] == pytest.approx(np.quantile(scores[:, 0] - scores[:, 1], 0.01))


def test_significant_pairs_are_not_called_discriminative_power_which_is_the_sum_of_p_values(evidence):
    assert "power" not in str(replace(advise(evidence), systems=8))


def test_agreement_with_other_metrics_is_shown_and_does_not_count(evidence):
    advice = advise(evidence)
    assert "agreement" in advice.frame().columns
    assert "agreement" not in advice.criteria
    with pytest.raises(SettingError, match="there is no criterion 'agreement' to weight"):
        advise(evidence, {"agreement": 1})
    # Metrics that resemble each other agree, but they order the systems of small test sets no better.
    copies = [0, 1, 2, 1, 1, 1]
    crowd = Evidence(
        tuple(("mean", f"m{k}") for k in range(6)),
        6,
        evidence.apart[copies],
        evidence.whole[:, copies],
        {"ratings": evidence.samples["ratings"][:, copies]},
        evidence.folds,
    )
    assert advise(crowd).best == ("m0", "mean")


def test_it_is_said_over_which_weights_and_sizes_the_first_stays_first():
    rng = np.random.default_rng(1)
    truth = np.linspace(0.1, 0.6, 8)
    # The first metric is firm on large test sets, the second on small ones; the first tells more pairs apart.
    noise = np.array([[0.01, 0.3]] * 20 + [[0.3, 0.25]] * 20)[:, :, None]
    samples = signs(truth + noise * rng.normal(size=(40, 2, 8)))
    whole, sizes = signs(np.broadcast_to(truth, (1, 2, 8))), np.repeat([0.9, 0.1], 20)
    apart = np.array([[1.0] * 20 + [0.0] * 8, [1.0] * 14 + [0.0] * 14])
    names = (("mean", "one"), ("mean", "two"))
    given = Evidence(names, 8, apart, whole, {"ratings": samples}, {"ratings": np.zeros(40, int)}, {"ratings": sizes})
    advice = advise(given)
    assert advice.best[0] == "one"
    first = [advise(given, weights).best[0] for weights in ({"ratings": 0}, {"ratings": 2}, {"significant": 2})]
    alone = advise(given, {"significant": 0}).best[0]
    same = 2 * (alone == "one") + sum(
        2 * (first[0] == "one") if k == 0 else name == "one" for k, name in enumerate(first)
    )
    assert advice.holds["weights"] == (same, 6)
    large, small = (
        advise(replace(given, samples={"ratings": samples[part]}, folds={"ratings": np.zeros(20, int)}, sizes={})).best[
            0
        ]
        for part in (sizes > 0.5, sizes < 0.5)
    )
    assert advice.holds["sizes"] == ((large == "one") + (small == "one"), 2)
    assert advice.facts()[1].holds == advice.holds


def test_how_many_systems_would_decide_follows_from_the_spread_over_draws():
    drawn = np.array([[0.8, 0.5, 0.9], [0.6, 0.5, 0.4], [0.7, 0.8, 0.6]])
    error = np.std([0.8 - 0.9, 0.6 - 0.4, 0.7 - 0.6], ddof=1)
    score = np.array([0.8, 0.3, 0.7])
    assert advice_module._needed(score, drawn, 10) == int(np.ceil(10 * (1.96 * error / 0.1) ** 2))
    assert advice_module._needed(np.array([0.8, 0.8, 0.1]), drawn, 10) is None
    assert advice_module._needed(score[:1], drawn[:, :1], 10) is None


def test_the_candidates_of_an_advice_keep_the_order_of_its_rows():
    columns = {"metric": ["a", "b", "c"], "average": ["mean", "median", "mean"], "significant": [0.5] * 3}
    ends = {"score": [0.5, 0.4, 0.4], "lead_lower": [0.0, 0.02, -0.01]}
    rows = pl.DataFrame({**columns, **ends, "first": [0.2, 0.1, 0.7]})
    choice = Advice(rows, {"significant": 1.0}, ("significant",), 10, 8).fact
    assert [(rival.metric, rival.average, rival.first) for rival in choice.candidates] == [
        ("a", "mean", 0.2),
        ("b", "median", 0.1),
        ("c", "mean", 0.7),
    ]
    assert choice.equal == 1
    assert choice.level == choice.candidates[2:]
    assert str(choice) == "No clear choice: a scores highest, but its lead over c may be chance."


def test_a_first_place_that_is_shared_counts_in_equal_parts_and_is_not_called_sure(evidence):
    twins = replace(evidence, apart=evidence.apart[[0, 0, 2]], samples={}, folds={})
    alike = advise(twins)
    assert alike.frame()["first"].to_list() == [0.5, 0.5, 0.0]
    assert alike.fact.equal == 2
    assert alike.sentence() == "No clear choice: firm and wavering score the same on these data."
    assert advise(evidence).frame()["first"].sum() == pytest.approx(1.0)


def test_what_is_no_mapping_no_number_of_draws_and_no_seed_is_refused(evidence):
    for weights in (["significant"], "significant", 5):
        with pytest.raises(SettingError, match="give a mapping"):
            advise(evidence, weights)
    for wrong in ({"draws": 0}, {"draws": 2.5}, {"draws": "many"}, {"seed": -1}, {"seed": "x"}):
        with pytest.raises(SettingError, match="is not a whole number"):
            advise(evidence, **wrong)


def test_weights_are_shares_of_each_other_however_large(evidence):
    large, small = (advise(evidence, dict.fromkeys(evidence.criteria, w)).frame() for w in (1e308, 1e-300))
    assert large["score"].to_list() == small["score"].to_list() == advise(evidence).frame()["score"].to_list()


def test_the_weights_are_the_users(evidence):
    only_significant = advise(evidence, {"ratings": 0})
    assert only_significant.frame()["score"].to_list() == pytest.approx([1.0, 8 / 15, 0.0])
    assert only_significant.criteria == ("significant",)
    with pytest.raises(SettingError, match="did you mean 'ratings'"):
        advise(evidence, {"rating": 2})
    with pytest.raises(SettingError, match="at least 0"):
        advise(evidence, {"significant": -1})
    with pytest.raises(SettingError, match="no criterion"):
        advise(evidence, {"significant": 0, "ratings": 0, "agreement": 0})


def test_the_same_seed_gives_the_same_advice_and_many_samples_are_thinned(evidence, monkeypatch):
    assert advise(evidence, seed=3).frame().equals(advise(evidence, seed=3).frame())
    monkeypatch.setattr(advice_module, "_CELLS", 200)
    thin = evidence.thinned()
    assert len(thin.samples["ratings"]) == len(thin.folds["ratings"]) == 5
    np.testing.assert_allclose(evidence.judge(np.ones((1, 6)))[0, 0], [1.0, 8 / 15, 0.0])


def test_a_metric_that_orders_nothing_agrees_with_nothing():
    nothing = Evidence(
        (("mean", "flat"),), 3, np.zeros((1, 3)), np.zeros((1, 1, 3), np.int8),
        {"ratings": np.zeros((2, 1, 3), np.int8)}, {"ratings": np.zeros(2, int)},
    )  # fmt: skip
    advice = advise(nothing)
    assert advice.frame()["score"].item() == 0.0
    assert "agreement" not in advice.criteria


def test_few_samples_are_not_thinned(evidence):
    thinned = evidence.thinned()
    assert np.array_equal(thinned.samples["ratings"], evidence.samples["ratings"])
    assert np.array_equal(thinned.folds["ratings"], evidence.folds["ratings"])
