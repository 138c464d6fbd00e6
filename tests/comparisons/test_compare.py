"""`compare`: which users count, what the result says, and what bad input is told."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import CranfieldError, InputError, SettingError
from cranfield.comparisons import Comparison, compare
from cranfield.measures.scores import Scores
from cranfield.tables import Vocabulary


def scores_of(values, metrics=None, *, covered=None, users=None, lower=None, judged=None, systems=None):
    values = np.asarray(values, dtype=float)
    if values.ndim == 2:
        values = values[:, None, :]
    n_systems, n_metrics, n = values.shape
    users = np.arange(n, dtype=np.int32) if users is None else np.asarray(users, dtype=np.int32)
    weights = np.ones(n, dtype=np.int64) if judged is None else np.asarray(judged, dtype=np.int64)
    return Scores(
        systems=tuple(systems or ("knn", "pop", "slim", "mf")[:n_systems]),
        metrics=tuple(metrics or ("P@10", "nDCG@10", "RMSE")[:n_metrics]),
        values=values,
        covered=np.ones((n_systems, n), dtype=bool) if covered is None else np.asarray(covered),
        users=users,
        user_ids=Vocabulary.of(np.arange(int(users.max(initial=0)) + 1)),
        judged=weights,
        relevant=weights,
        lower_is_better=tuple(lower or (False,) * n_metrics),
    )


def _world(systems=4, metrics=2, n=300, seed=0):
    rng = np.random.default_rng(seed)
    user = rng.gamma(1, 0.2, n)
    skill = np.array([1.0, 0.7, 1.02, 0.98])[:systems, None, None]
    return np.clip(user * skill * rng.gamma(3, 1 / 3, (systems, metrics, n)), 0, 1)


def test_there_is_a_row_for_every_metric_and_unordered_pair():
    frame = compare(scores_of(_world())).frame(detail=True)
    assert len(frame) == 2 * 6
    assert frame.columns[:8] == ["metric", "system_a", "system_b", "mean_a", "mean_b", "difference", "lower", "upper"]
    assert {*zip(frame["system_a"], frame["system_b"])} >= {("knn", "pop"), ("slim", "mf")}


def test_a_baseline_is_the_second_of_every_pair():
    frame = compare(scores_of(_world()), baseline="pop", metrics="P@10").frame(detail=True)
    assert frame["system_a"].to_list() == ["knn", "slim", "mf"]
    assert frame["system_b"].to_list() == ["pop"] * 3


def test_differences_intervals_and_counts_are_those_of_the_values():
    from scipy.stats import t

    values = _world(2, 1)
    row = compare(scores_of(values)).frame(detail=True).row(0, named=True)
    d = values[0, 0] - values[1, 0]
    error = d.std(ddof=1) / np.sqrt(300)
    assert row["difference"] == pytest.approx(d.mean())
    assert (row["lower"], row["upper"]) == pytest.approx(t.interval(0.95, 299, d.mean(), error))
    assert row["effect"] == pytest.approx(d.mean() / d.std(ddof=1))
    assert row["effect_lower"] < row["effect"] < row["effect_upper"]
    assert (row["wins"], row["ties"], row["losses"]) == ((d > 0).sum(), (d == 0).sum(), (d < 0).sum())
    assert row["superiority"] == pytest.approx((row["wins"] + row["ties"] / 2) / 300)


@pytest.mark.parametrize("worlds", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_effect_intervals_hold_as_often_as_they_say(worlds):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(worlds):
        d = rng.normal(0.3, 1, 60)
        row = compare({"a": d, "b": np.zeros(60)}, significance="t").frame(detail=True).row(0, named=True)
        held += row["effect_lower"] <= 0.3 <= row["effect_upper"]
    assert held / worlds == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / worlds))


def test_where_lower_is_better_the_lower_system_wins():
    values = _world(2, 1)
    plain = compare(scores_of(values)).frame(detail=True).row(0, named=True)
    errors = compare(scores_of(values, ["RMSE"], lower=[True]))
    row = errors.frame(detail=True).row(0, named=True)
    assert plain["better"] == "knn"
    assert row["better"] == "pop"
    assert (row["wins"], row["losses"]) == (plain["losses"], plain["wins"])
    assert row["superiority"] == pytest.approx(1 - plain["superiority"])
    assert row["p"] == plain["p"]
    assert errors.verdict[0].startswith("RMSE: pop beats knn by ")
    assert errors.letters()["system"].to_list() == ["pop", "knn"]
    assert errors.equivalence(10.0)["no_worse"].item()


def test_reduced_coverage_compares_all_pairs_over_the_users_that_every_system_serves():
    values = _world(3, 1)
    covered = np.ones((3, 300), dtype=bool)
    covered[0, :40] = covered[1, 30:60] = False
    values[~covered[:, None, :]] = 0
    full, common = (compare(scores_of(values, covered=covered), coverage=name) for name in ("full", "reduced"))
    assert full.frame(detail=True)["n"].to_list() == [300] * 3
    assert common.frame(detail=True)["n"].to_list() == [240] * 3
    every = covered.all(axis=0)
    d = values[0, 0, every] - values[1, 0, every]
    assert common.averages[:, 0] == pytest.approx(values[:, 0, every].mean(axis=1))
    assert common.frame(detail=True)["difference"][0] == pytest.approx(d.mean())
    assert common.frame(detail=True)["p"][0] == pytest.approx(
        compare({"a": d, "b": 0 * d}).frame(detail=True)["p"].item(), abs=1e-12
    )
    assert "users without a list: knn 40, pop 30" in str(full)
    assert str(common.population) == "over the 240 of 300 users that all 3 systems serve"
    assert all(str(common.population) in one for one in (common.verdict[0], common.caption, str(common)))
    two = compare(scores_of(np.concatenate([values, values], axis=1), covered=covered), coverage="reduced")
    assert two.verdict[0].startswith(f"P@10, {common.population}: ")


def test_a_note_on_undefined_values_counts_the_users_that_are_compared():
    values = _world(3, 1)
    covered = np.ones((3, 300), dtype=bool)
    covered[0, :40] = False
    values[:, :, 30:50] = np.nan
    notes = [compare(scores_of(values, covered=covered), coverage=name).notes for name in ("full", "reduced")]
    assert [note[0].partition(": ")[2] for note in notes] == [
        "undefined for 20 users, counted as 0",
        "undefined for 10 users, counted as 0",
    ]


def test_the_sentence_the_averages_and_the_pairs_are_over_the_same_users():
    # "pop" is best over its own users, since it only serves the easy ones; over the users of both it is worst.
    values = np.array([[[0.5] * 50 + [0.2] * 50], [[0.4] * 50 + [0.9] * 50], [[0.6] * 50 + [0.3] * 50]])
    values += np.random.default_rng(0).normal(0, 0.01, values.shape)
    covered = np.ones((3, 100), dtype=bool)
    covered[0, 50:] = covered[2, 50:] = False
    result = compare(scores_of(values, covered=covered), coverage="reduced")
    best, *_ = result.letters()["system"]
    means = {row["system_a"]: row["mean_a"] for row in result.frame(detail=True).iter_rows(named=True)}
    told = {row["system"]: row["mean"] for row in result.as_dict()["averages"]}
    assert best == result.systems[2]
    assert f" {best} is best: " in result.verdict[0]
    assert all(told[system] == pytest.approx(mean) for system, mean in means.items())
    assert result.as_dict()["population"] == str(result.population)


def test_undefined_values_count_as_zero_or_are_left_out_and_the_result_says_so():
    values = _world(2, 1)
    values[:, :, :25] = np.nan
    zero, left = (compare(scores_of(values), undefined=how) for how in ("zero", "leave out"))
    assert (zero.frame(detail=True)["n"].item(), left.frame(detail=True)["n"].item()) == (300, 275)
    assert left.frame(detail=True)["mean_a"].item() == pytest.approx(
        zero.frame(detail=True)["mean_a"].item() * 300 / 275
    )
    assert zero.frame(detail=True)["p"].item() == pytest.approx(left.frame(detail=True)["p"].item(), abs=1e-12)
    assert "undefined for 25 users, counted as 0" in str(zero)
    assert "undefined for 25 users, left out" in str(left)


def test_undefined_errors_are_never_counted_as_zero():
    values = _world(2, 1)
    values[0, :, :25] = np.nan
    result = compare(scores_of(values, ["RMSE"], lower=[True]))
    assert result.frame(detail=True)["n"].item() == 275
    assert "left out" in str(result)


def test_undefined_values_of_one_system_are_left_out_for_all_so_that_the_best_one_is_the_one_that_wins():
    # The first has values only for the easy users, so its own average is the highest; over these users it is worst.
    values = np.repeat([[[0.6], [0.1]], [[0.8], [0.1]], [[0.7], [0.1]]], [10, 40], axis=1).reshape(3, 1, 50)
    values += np.random.default_rng(0).normal(0, 0.01, values.shape)
    values[0, :, 10:] = np.nan
    result = compare(scores_of(values), undefined="leave out")
    worst, best, second = result.systems
    assert result.letters()["system"].to_list() == [best, second, worst]
    assert result.averages[:, 0] == pytest.approx(values[:, 0, :10].mean(axis=1))
    assert f" {best} is best: " in result.verdict[0]
    assert result.frame(detail=True)["n"].to_list() == [10] * 3


def test_a_system_without_any_value_does_not_take_the_users_of_the_others_away():
    values = _world(3, 1)
    values[0] = np.nan
    result = compare(scores_of(values, ["RMSE"], lower=[True]))
    assert result.frame(detail=True)["n"].to_list() == [0, 0, 300]


def test_a_users_lists_are_averaged_first_unless_lists_are_asked_for():
    values, users = _world(2, 1), np.repeat(np.arange(100), 3)
    by_user, by_list = (compare(scores_of(values, users=users), by=by) for by in ("user", "list"))
    means = values.reshape(2, 100, 3).mean(axis=2)
    assert by_user.frame(detail=True)["n"].item() == 100
    assert by_user.frame(detail=True)["p"].item() == pytest.approx(
        compare(dict(zip("ab", means))).frame(detail=True)["p"].item()
    )
    assert by_list.frame(detail=True)["n"].item() == 300
    assert "100 users have 300 lists, averaged by user first" in str(by_user)


def test_weighted_and_geometric_averages_are_those_of_the_scores():
    rng = np.random.default_rng(3)
    scores = scores_of(_world(3, 2), judged=rng.integers(1, 30, 300))
    for average in ("mean", "weighted(by=judged)", "geometric", "geometric(form=adjusted, epsilon=0.01)"):
        result = compare(scores, average=average, significance="t")
        assert result.averages == pytest.approx(scores.average(average))
        row = result.frame(detail=True).row(0, named=True)
        assert row["difference"] == pytest.approx(row["mean_a"] - row["mean_b"])
        assert row["lower"] < row["difference"] < row["upper"]


def test_intervals_of_geometric_differences_are_near_the_bootstraps():
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(0, 0.5, 2000), rng.lognormal(0.1, 0.5, 2000)
    row = compare({"a": a, "b": b}, average="geometric").frame(detail=True).row(0, named=True)
    draws = rng.integers(0, 2000, (1000, 2000))
    resampled = np.exp(np.log(a)[draws].mean(axis=1)) - np.exp(np.log(b)[draws].mean(axis=1))
    assert [row["lower"], row["upper"]] == pytest.approx(np.quantile(resampled, [0.025, 0.975]).tolist(), abs=0.008)


@pytest.mark.parametrize("significance", ["student", "permutation", "bootstrap", "tukey", "wilcoxon"])
@pytest.mark.parametrize("correction", ["max_t", "none", "holm"])
def test_geometric_means_are_compared_as_the_means_of_logarithms_are(significance, correction):
    if (significance, correction) in {("tukey", "max_t"), ("tukey", "holm"), ("wilcoxon", "max_t")}:
        pytest.skip("this correction is not for this test")
    rng = np.random.default_rng(5)
    logs = {f"s{k}": 0.1 * k + rng.normal(size=60) for k in range(4)}
    options = {"significance": significance, "correction": correction}
    plain = compare(logs, **options).frame(detail=True)
    result = compare({name: np.exp(row) for name, row in logs.items()}, average="geometric", **options)
    shown, b = result.frame(detail=True), result.frame(detail=True)["mean_b"]
    for name in ("p", "p_corrected", "effect", "effect_lower", "degrees", "wins", "n"):
        assert shown[name].to_list() == pytest.approx(plain[name].to_list(), rel=1e-6), name
    for name in ("difference", "lower", "upper", "standard_error"):
        assert shown[name].to_list() == pytest.approx((b * (plain[name].exp() - 1)).to_list(), rel=1e-6), name
    for name in ("lower", "upper"):
        assert shown[f"relative_{name}"].to_list() == pytest.approx((plain[name].exp() - 1).to_list(), rel=1e-6)
    assert shown["better"].to_list() == plain["better"].to_list()


def test_power_equivalence_and_gates_of_geometric_means_are_those_of_logarithms():
    rng = np.random.default_rng(6)
    logs = {"a": 3.04 + 0.1 * rng.normal(size=200), "b": 3 + 0.1 * rng.normal(size=200)}
    plain, result = compare(logs), compare({name: np.exp(row) for name, row in logs.items()}, average="geometric")
    b = result.frame(detail=True)["mean_b"].item()
    size = b * np.expm1(0.02)
    powers = [plain.power(0.02), result.power(size)]
    assert powers[1]["power"].item() == pytest.approx(powers[0]["power"].item())
    assert powers[1]["users_needed"].item() == powers[0]["users_needed"].item()
    smallest = [frame["smallest_difference"].item() for frame in powers]
    assert smallest[1] == pytest.approx(b * np.expm1(smallest[0]))
    same = [plain.equivalence(np.log1p(0.05)), result.equivalence(0.05, relative=True)]
    assert same[1]["upper"].item() == pytest.approx(b * np.expm1(same[0]["upper"].item()))
    above, below = plain.equivalence(np.log1p(0.06)), plain.equivalence(-np.log1p(-0.06))
    expected = max(above["p_equivalent"].item(), below["p_no_worse"].item())
    assert result.equivalence(0.06 * b)["p_equivalent"].item() == pytest.approx(expected)
    gates = [
        plain.no_worse("a", than="b", by=-np.log(0.98)).frame().row(0, named=True),
        result.no_worse("a", than="b", by="2%").frame().row(0, named=True),
    ]
    assert gates[1]["p"] == pytest.approx(gates[0]["p"])
    assert gates[1]["limit"] == pytest.approx(np.expm1(gates[0]["limit"]), abs=1e-5)
    assert gates[1]["users_if_equal"] == gates[0]["users_if_equal"]
    better = [one.better("a", than="b").frame().row(0, named=True) for one in (plain, result)]
    assert better[1]["limit"] == pytest.approx(np.expm1(better[0]["limit"]), abs=1e-5)
    assert better[1]["users_needed"] == better[0]["users_needed"]


def test_with_many_zeros_p_values_and_intervals_of_geometric_means_agree():
    rng = np.random.default_rng(8)
    for _ in range(5):
        values = {f"s{k}": np.where(rng.random(60) < 0.5 - 0.1 * k, 0.0, rng.beta(2, 3, 60)) for k in range(4)}
        for form in ("geometric", "geometric(form=adjusted, epsilon=0.01)"):
            result = compare(values, average=form)
            rows = result.frame(detail=True)
            differs = (rows["lower"] > 0) | (rows["upper"] < 0)
            assert rows["significant"].to_list() == differs.to_list()
            assert differs.to_list() == ((rows["relative_lower"] > 0) | (rows["relative_upper"] < 0)).to_list()
            assert not result.doubts


def test_subsets_say_how_often_fewer_users_would_have_sufficed():
    values = _world(3, 2)
    result = compare(scores_of(values), significance="t", subsets=40, subset_size=0.5)
    rejected = result.frame(detail=True).filter(pl.col("metric") == "P@10")["rejected"].to_list()
    assert all(0 <= share <= 1 for share in rejected)
    assert rejected[0] == 1.0  # knn and pop differ a lot
    assert rejected[1] < 1.0  # knn and slim hardly differ
    assert "rejected" not in compare(scores_of(values)).frame(detail=True).columns


def test_the_same_result_whatever_the_order_of_the_users():
    values = _world(3, 1)
    order = np.random.default_rng(0).permutation(300)
    assert compare(scores_of(values)).frame(detail=True)["p"].to_list() == pytest.approx(
        compare(scores_of(values[:, :, order])).frame(detail=True)["p"].to_list(), abs=1e-12
    )


def test_plain_values_and_frames_are_compared_too():
    values = _world(2, 1)[:, 0]
    by_dict = compare({"a": values[0], "b": values[1]}).frame(detail=True)
    assert compare(pl.DataFrame({"a": values[0], "b": values[1]})).frame(detail=True).equals(by_dict)
    import pandas as pd

    labelled = pd.DataFrame({"user": range(300), "a": values[0], "b": values[1]})
    assert compare(labelled).frame(detail=True).equals(by_dict)


def test_raw_and_corrected_p_values_stand_side_by_side():
    frame = compare(scores_of(_world(4, 1)), correction="bonferroni").frame(detail=True)
    assert frame["p_corrected"].to_list() == pytest.approx(np.minimum(frame["p"].to_numpy() * 6, 1).tolist())
    assert (frame["significant"] == (frame["p_corrected"] < 0.05)).all()


def test_the_correction_runs_over_the_pairs_of_one_metric():
    values = _world(3, 2)
    both = compare(scores_of(values)).frame(detail=True).filter(pl.col("metric") == "P@10")
    assert (
        both["p_corrected"].to_list()
        == compare(scores_of(values), metrics=["P@10"]).frame(detail=True)["p_corrected"].to_list()
    )


@pytest.mark.parametrize("average", ["mean", "weighted(by=judged)"])
def test_tukey_shows_the_averages_of_the_users_that_it_tests(average):
    values = _world(3, 1, n=40)[:, 0]
    values[0, :5], values[1, 5:12] = np.nan, np.nan
    scores = scores_of(values, lower=(True,), judged=np.arange(1, 41))
    row = compare(scores, significance="tukey(resamples=99)", average=average).frame(detail=True).row(0, named=True)
    weights = np.arange(13, 41) if average != "mean" else None
    expected = np.average(values[0, 12:] - values[1, 12:], weights=weights)
    assert row["n"] == 28
    assert row["difference"] == pytest.approx(expected)
    assert (row["lower"] + row["upper"]) / 2 == pytest.approx(expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("test", ["permutation", "student", "bootstrap(resamples=9)", "tukey(resamples=9)"])
def test_a_subset_of_users_without_weight_rejects_nothing(test):
    scores = scores_of(_world(2, 1, n=4), judged=[0, 0, 0, 9])
    result = compare(scores, significance=test, average="weighted(by=judged)", subsets=8, subset_size=0.25)
    assert result.frame(detail=True)["rejected"].item() == 0.0


def test_tukey_is_not_corrected_twice():
    result = compare(scores_of(_world(3, 1)), significance="tukey(resamples=200)")
    assert result.correction == "none"
    assert result.frame(detail=True)["p"].to_list() == result.frame(detail=True)["p_corrected"].to_list()
    for correction in ("holm", "bonferroni"):
        with pytest.raises(SettingError, match="would correct twice"):
            compare(scores_of(_world(3, 1)), significance="tukey(resamples=20)", correction=correction)


class TestDisplay:
    def result(self, **options) -> Comparison:
        return compare(scores_of(_world()), **options)

    def test_the_sentence_names_the_leaders_and_who_is_worse(self):
        first, others = self.result().verdict
        assert first.startswith("P@10: slim, mf and knn lead, undecided among them")
        assert first.endswith("; pop is worse.")
        assert others == "slim is level at the top by both metrics."

    def test_two_systems_get_one_whole_sentence(self):
        result = compare(scores_of(_world(2, 1)))
        (row,) = result.frame(detail=True).iter_rows(named=True)
        assert result.verdict[0].startswith(f"P@10: knn beats pop by {100 * row['relative']:.0f} % (")

    def test_no_difference_is_said_as_such(self):
        said = compare({"a": [0.1, 0.2], "b": [0.2, 0.1]}).verdict[0]
        assert said.startswith("value: Neither a nor b is shown to be better (")
        assert "; these 2 users could have shown " in said
        same = compare({"a": [0.5, 0.2], "b": [0.5, 0.2]}).verdict
        assert same == ["value: a and b have the same value for each of 2 users."]

    def test_a_baseline_is_named(self):
        first, others = self.result(baseline="pop").verdict
        assert first.startswith("P@10: slim beats pop by ")
        assert first.endswith("; mf and knn are better too.")
        assert others == "nDCG@10 agrees."

    def test_many_pairs_are_shown_by_system_with_letters(self):
        rng = np.random.default_rng(0)
        values = {f"s{k}": rng.random(50) + k / 10 for k in range(10)}
        result = compare(values)
        text = str(result)
        assert "share a letter" in text
        assert "<sup>a</sup>" in result._repr_html_()
        assert len(text.splitlines()) < 25

    def test_the_matrix_is_symmetric_for_p_and_antisymmetric_for_differences(self):
        result = self.result()
        p = result.matrix("P@10").drop("system").to_numpy()
        d = result.matrix("P@10", show="difference").drop("system").to_numpy()
        assert np.allclose(p, p.T, equal_nan=True)
        assert np.allclose(d, -d.T, equal_nan=True)
        assert np.isnan(np.diag(p)).all()

    def test_letters_are_in_the_latex_table_and_names_are_escaped(self):
        result = compare(scores_of(_world(2, 1), systems=["a_b", "50%"]))
        text = result.to_latex()
        assert r"a\_b" in text
        assert r"50\%" in text
        assert "$^{a}$" in text
        assert result.letters()["letters"].to_list() == ["a", "b"]

    @pytest.mark.parametrize(("alpha", "level"), [(0.05, "95%"), (0.005, "99.5%")])
    def test_the_level_of_the_intervals_is_told_as_it_was_asked_for(self, alpha, level):
        assert f"{level} interval" in self.result(alpha=alpha).table().header

    def test_the_table_shows_effects_with_two_decimals(self):
        result = compare({"a": [0.5, 0.7, 0.9, 0.4], "b": [0.1, 0.5, 0.8, 0.6]})
        d = np.array([0.4, 0.2, 0.1, -0.2])
        shown = result.table().rows[0][result.table().header.index("d_z")]
        assert shown == f"+{d.mean() / d.std(ddof=1):.2f}"

    @pytest.mark.parametrize("n", [2, 3, 4, 20, 400])
    @pytest.mark.parametrize("mean", [-1.5, 0.0, 0.2, 1.5])
    def test_the_interval_of_an_effect_is_that_of_the_noncentral_t(self, n, mean):
        from scipy import stats

        d = np.random.default_rng(n).normal(mean, 1, n)
        row = compare({"a": d, "b": 0 * d}, significance="student", alpha=0.1).frame(detail=True).row(0, named=True)
        t = np.sqrt(n) * d.mean() / d.std(ddof=1)
        chances = [stats.nct.cdf(t, n - 1, np.sqrt(n) * row[f"effect_{end}"]) for end in ("lower", "upper")]
        assert chances == pytest.approx([0.95, 0.05], abs=1e-7)

    def test_the_interval_of_an_effect_of_identical_systems_is_around_0(self):
        row = compare({"a": [0.5] * 9, "b": [0.5] * 9}, significance="student").frame(detail=True).row(0, named=True)
        assert (row["effect_lower"], row["effect_upper"]) == pytest.approx((-1.959964 / 3, 1.959964 / 3), rel=1e-6)

    def test_letters_need_every_pair(self):
        with pytest.raises(SettingError, match="leave out the baseline"):
            self.result(baseline="pop").letters()
        assert r"\toprule" in self.result(baseline="pop").to_latex()

    def test_html_is_escaped(self):
        html = compare(scores_of(_world(2, 1), systems=["<script>", "b"]))._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html

    def test_the_result_is_ready_for_json(self):
        told = json.loads(json.dumps(compare({"a": [0.5], "b": [0.25]}).as_dict()))
        assert told["settings"]["significance"] == "permutation"
        assert told["rows"][0]["lower"] is None

    def test_how_each_p_value_was_found_is_in_the_frame(self):
        frame = self.result().frame(detail=True)
        assert set(frame["method"]) <= {"lattice", "inversion", "saddlepoint", "enumeration"}
        assert (frame["error_bound"] <= 1e-6).all()


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        ({"a": [0.1]}, {}, "1 system to compare; give two or more"),
        ({}, {}, "no systems to compare"),
        ({"a": [], "b": []}, {}, "no users to compare over"),
        ({"a": [0.1, 0.2], "b": [0.1]}, {}, "different numbers of users (a 2, b 1)"),
        ({"a": [0.1], "b": ["x"]}, {}, "the values of 'b' are not numbers"),
        ({"a": [0.1], "b": [np.inf]}, {}, "value of b is infinite for user 0"),
        ({"a": [1e308], "b": [-1e308]}, {}, "value of a is 1e+308, too large to sum, for user 0"),
        ([0.1, 0.2], {}, "a list cannot be compared"),
        ({"a": [0.1], "b": [0.2]}, {"significance": "permutaton"}, "did you mean 'permutation'?"),
        ({"a": [0.1], "b": [0.2]}, {"significance": "wilcoxon(zero=pratt)"}, "did you mean 'zeros'?"),
        ({"a": [0.1], "b": [0.2]}, {"significance": "t", "method": "exact"}, "student has no parameter 'method'"),
        ({"a": [0.1], "b": [0.2]}, {"method": "excat"}, "did you mean 'exact'?"),
        (
            {"a": [0.1], "b": [0.2]},
            {"resamples": 0},
            "resamples=0 of permutation is out of range; give a number at least 1",
        ),
        ({"a": [0.1], "b": [0.2]}, {"correction": "holmes"}, "did you mean 'holm'?"),
        ({"a": [0.1], "b": [0.2]}, {"alpha": 5}, "alpha=5 is not a share"),
        ({"a": [0.1], "b": [0.2]}, {"baseline": "aa"}, "did you mean 'a'?"),
        ({"a": [0.1], "b": [0.2]}, {"metrics": ["values"]}, "did you mean 'value'?"),
        ({"a": [0.1], "b": [0.2]}, {"coverage": "ful"}, "coverage='ful' is not one of full, reduced"),
        (
            {"a": [0.1], "b": [0.2]},
            {"significance": "permutation(plus_one=maybe)"},
            "plus_one=maybe of permutation is neither true nor false",
        ),
        (
            {"a": [0.1], "b": [0.2]},
            {"significance": "log_student(epsilon=0)", "average": "geometric"},
            "epsilon=0 must be above 0",
        ),
        ({"a": [0.1], "b": [0.2]}, {"average": "median"}, "cannot be compared by their median"),
        (
            {"a": [0.1], "b": [0.2]},
            {"average": "median", "significance": "sign"},
            "better for more users, set average='mean' and significance='sign'",
        ),
        ({"a": [0.1], "b": [0.2]}, {"average": "meen"}, "did you mean 'mean'?"),
        ({"a": [0.1], "b": [0.2]}, {"subsets": 3, "subset_size": 2}, "subset_size=2 is not a share"),
        (
            {"a": [0.1], "b": [0.2]},
            {"significance": "permutation(resamples=10)", "resamples": 20},
            "contradict each other",
        ),
        *(
            ({"a": [0.1], "b": [0.2]}, options, "is out of range; give a number at most 1e+07")
            for options in (
                {"resamples": 10**12},
                {"significance": f"bootstrap(resamples={10**12})"},
                {"significance": "tukey(resamples=10000001)"},
            )
        ),
        (
            {"a": [0.1], "b": [0.2]},
            {"subsets": 10**12},
            "subsets=1000000000000 is too large; give at most 10,000,000",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(values, options, told):
    with pytest.raises(CranfieldError) as error:
        compare(values, **options)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_system_named_twice_is_told():
    with pytest.raises(InputError, match="'knn' is listed twice"):
        compare(scores_of(_world(2, 1), systems=["knn", "knn"]))


def test_weights_of_zero_are_told():
    with pytest.raises(InputError, match="all weights are 0"):
        compare(scores_of(_world(2, 1), judged=np.zeros(300)), average="weighted(by=judged)")


def test_systems_without_common_users_have_no_p_value():
    covered = np.array([[True, True, False, False], [False, False, True, True], [True] * 4])
    result = compare(scores_of(np.random.default_rng(0).random((3, 4)), covered=covered), coverage="reduced")
    row = result.frame(detail=True).row(0, named=True)
    assert row["n"] == 0
    assert np.isnan(row["p"])
    assert not row["significant"]
    assert str(result)


def test_a_metric_of_whole_systems_is_left_out_and_named():
    from dataclasses import replace

    overall = np.array([[np.nan, 0.5], [np.nan, 0.7]])
    scores = replace(scores_of(_world(2, 2), ["P@10", "coverage"]), overall=overall)
    result = compare(scores)
    assert result.metrics == ("P@10",)
    assert "not compared (one value per system and none per user): coverage" in str(result)
    with pytest.raises(SettingError, match="coverage has one value per system"):
        compare(scores, metrics=["coverage"])


@pytest.mark.parametrize("wrong", [{"metrics": []}, {"baseline": 3}, {"seed": -1}, {"seed": "x"}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(SettingError):
        compare({"a": [0.1, 0.2], "b": [0.3, 0.1]}, significance="bootstrap", **wrong)


def test_a_users_weight_is_the_sum_over_their_lists():
    users, judged = [0, 0, 0, 1, 2, 2], [1, 2, 9, 4, 3, 3]
    values = np.random.default_rng(3).random((2, 6))
    row = (
        compare(scores_of(values, users=users, judged=judged), average="weighted(by=judged)")
        .frame(detail=True)
        .row(0, named=True)
    )
    weights = [1 + 2 + 9, 4, 3 + 3]
    for name, lists in zip("ab", values):
        means = [lists[:3].mean(), lists[3], lists[4:].mean()]
        assert row[f"mean_{name}"] == pytest.approx(np.average(means, weights=weights))


class TestValuesThatAreLeftOut:
    """An average is over the users of its system, whoever else is measured; a comparison is over those of all."""

    def scores(self, lists_per_user=1) -> Scores:
        rng = np.random.default_rng(5)
        values = rng.random((3, 1, 40)) + np.arange(3)[:, None, None] / 4
        for system, share in enumerate((0.5, 0.2, 0.0)):
            values[system, 0, rng.random(40) < share] = np.nan
        users = np.repeat(np.arange(40 // lists_per_user), lists_per_user).astype(np.int32)
        return scores_of(values, ["RMSE"], users=users, lower=(True,))

    @pytest.mark.parametrize("lists_per_user", [1, 2])
    def test_an_average_does_not_depend_on_the_other_systems(self, lists_per_user):
        scores = self.scores(lists_per_user)
        alone = [
            replace(scores, systems=(name,), values=scores.values[[s]], covered=scores.covered[[s]])
            for s, name in enumerate(scores.systems)
        ]
        assert scores.average(by="user").tolist() == [part.average(by="user").tolist()[0] for part in alone]
        for column in ("lists", "undefined"):
            own = [part.frame(by="user")[column].item() for part in alone]
            assert scores.frame(by="user")[column].to_list() == own

    @pytest.mark.parametrize("lists_per_user", [1, 2])
    def test_a_comparison_is_over_the_lists_with_a_value_of_every_system(self, lists_per_user):
        scores = self.scores(lists_per_user)
        common = scores.of_lists(~np.isnan(scores.values).any(axis=(0, 1)))
        result = compare(scores)
        assert common.average(by="user") == pytest.approx(result.averages)
        assert result.frame(detail=True)["n"].unique().to_list() == [common.n_users]

    def test_each_table_says_over_whom_it_is(self):
        assert "each system over the users for whom it has a value (knn 20, pop 32, slim 40)" in str(self.scores())
        alike = scores_of(np.array([[[0.1, np.nan, 0.3]], [[0.2, np.nan, 0.1]]]), ["RMSE"], lower=(True,))
        assert "over the 2 users for whom each system has a value" in str(alike)


def test_the_users_of_a_frame_are_its_column_and_their_order_does_not_matter():
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"user": np.arange(12_000), "a": random.random(12_000), "b": random.random(12_000)})
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=2)
    assert compare(frame).frame(detail=True).equals(compare(mixed).frame(detail=True))


def test_text_is_not_a_value():
    with pytest.raises(InputError, match="the values of 'b' are not numbers"):
        compare(pl.DataFrame({"a": [0.1, 0.2], "b": ["0.3", "0.1"]}))


def test_a_bootstrap_test_of_many_users_draws_blocks():
    u = np.arange(30_000)
    a = ((17 * u + u // 11) % 11) / 10
    b = np.clip(a + ((u**2 % 7) - 2.7) / 400, 0, 1)
    drawn, student = (
        compare({"a": a, "b": b}, significance=test, correction="none").frame(detail=True)
        for test in ("bootstrap", "t")
    )
    assert drawn["method"].item() == "bootstrap, 10,000 blocks of users"
    for end in ("lower", "upper"):
        assert drawn[end].item() == pytest.approx(student[end].item(), rel=0.1)


def test_the_caption_names_the_metrics_that_leave_users_out_although_others_count_0():
    test = cf.Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [5, 1, 5])
    runs = {"a": {"ann": ["x"], "bob": ["y", "x"]}, "b": {"ann": ["y"], "bob": ["x", "y"]}}
    scores = cf.measure(runs, test, ["P@1", "AntiRR"], threshold=4)
    assert "undefined count as 0, but are left out by AntiRR;" in cf.compare(scores).caption
    assert "undefined are left out;" in cf.compare(scores, metrics=["AntiRR"]).caption
    assert "undefined count as 0;" in cf.compare(scores, metrics=["P@1"]).caption


def test_neither_system_is_better_by_a_metric_that_only_describes_lists():
    values = _world(2, 1)
    result = compare(scores_of(np.concatenate([values, values], axis=1), metrics=["P@10", "RepeatShare@10"]))
    assert result.frame(detail=True)["significant"].to_list() == [True, True]
    assert result.frame(detail=True)["better"].to_list() == ["knn", None]
    said = compare(scores_of(values, metrics=["RepeatShare@10"])).verdict
    assert said == ["RepeatShare@10: knn has the highest value and pop the lowest; neither is better."]
