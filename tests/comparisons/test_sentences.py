"""The verdict: tiers, relative differences, and what a null result could have shown."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from cranfield.comparisons import compare

RNG = np.random.default_rng(3)
HARD = RNG.beta(2, 5, 600)
NOISE = {name: RNG.normal(0, 0.02, 600) for name in ("ease", "svd", "tuned", "popularity")}
VALUES = {
    name: np.clip(HARD * skill + NOISE[name], 0, 1)
    for name, skill in (("ease", 1.0), ("svd", 1.0), ("tuned", 1.0), ("popularity", 0.75))
}


def test_systems_that_do_not_differ_are_level_and_beat_the_others_together():
    (said,) = compare(VALUES).verdict
    opening, _, rest = said.partition("; they beat ")
    assert all(name in opening for name in ("ease", "svd", "tuned", "are level at the top"))
    assert "largest difference 0.00" in opening
    assert rest.startswith("popularity by at least 0.0")
    assert "is best" not in said


def test_relative_differences_are_those_of_the_averages_and_their_intervals_hold_them():
    row = compare({name: VALUES[name] for name in ("ease", "popularity")}).frame().row(0, named=True)
    assert row["relative"] == pytest.approx(row["difference"] / row["mean_b"])
    assert row["relative_lower"] < row["relative"] < row["relative_upper"]
    # Close to the interval by the delta method.
    a, b = VALUES["ease"], VALUES["popularity"]
    error = (a / b.mean() - a.mean() * b / b.mean() ** 2).std(ddof=1) / np.sqrt(600)
    assert row["relative_upper"] - row["relative_lower"] == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_a_base_that_is_nearly_0_has_no_relative_difference():
    row = compare({"a": [1.0, 0.5, 0.2], "b": [5e-323, 0, 5e-323]}, significance="student").frame().row(0, named=True)
    assert np.isnan(row["relative"])
    assert np.isnan(row["relative_lower"])


@pytest.mark.parametrize("worlds", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_relative_intervals_hold_as_often_as_they_say(worlds):
    rng, held = np.random.default_rng(0), 0
    for _ in range(worlds):
        b = rng.beta(2, 5, 200)
        a = np.clip(b * rng.gamma(20, 0.06, 200), 0, None)
        row = compare({"a": a, "b": b}, significance="t").frame().row(0, named=True)
        held += row["relative_lower"] <= 0.2 <= row["relative_upper"]
    assert held / worlds == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / worlds))


def test_relative_intervals_are_the_same_for_the_same_seed():
    one, other = (compare(VALUES, seed=5).frame() for _ in range(2))
    assert one["relative_lower"].to_list() == other["relative_lower"].to_list()


def test_many_users_are_drawn_in_blocks_with_the_interval_of_the_users(monkeypatch):

    whole = compare(VALUES).frame()
    monkeypatch.setattr("cranfield.comparisons.sample.MOST_BLOCKS", 200)
    blocks = compare(VALUES).frame()
    widths = [frame["relative_upper"] - frame["relative_lower"] for frame in (whole, blocks)]
    assert widths[0].to_list() == pytest.approx(widths[1].to_list(), rel=0.2)


def test_there_is_no_relative_difference_where_the_base_is_0_or_values_are_negative():
    zero = compare({"a": [0.5, 0.2, 0.9], "b": [0.0, 0.0, 0.0]})
    below = compare({"a": [0.5, 0.2, 0.9], "b": [0.4, -0.1, 0.3]})
    for result in (zero, below):
        assert np.isnan(result.frame()["relative"].item())
        assert "%" not in result.verdict[0]


def test_a_null_result_says_its_interval_how_many_users_tie_and_what_could_have_been_seen():
    values = {name: np.round(VALUES[name], 1) for name in ("ease", "svd")}
    result = compare(values)
    row, smallest = result.frame().row(0, named=True), result.power()["smallest_difference"].item()
    (said,) = result.verdict
    assert said.startswith("value: there is no significant difference between ")
    assert f"equal for {row['ties']} of 600 users" in said
    assert f"a single test of these users shows a difference of {smallest:.4f} (" in said


def test_over_several_metrics_one_sentence_stands_first():
    from dataclasses import replace

    from cranfield.comparisons.samples import as_scores

    scores = as_scores({name: VALUES[name] for name in ("ease", "svd", "popularity")})
    clear = scores.values.copy()
    clear[1] *= 0.9
    both = replace(
        scores,
        metrics=("P@10", "RR"),
        values=np.concatenate([clear, scores.values], axis=1),
        lower_is_better=(False, False),
    )
    result = compare(both)
    overall, first, second = result.verdict
    assert overall == "ease is first by 1 of 2 metrics, level with svd by RR."
    assert first.startswith("P@10: ease is best (")
    assert second.startswith("RR: ")


def test_where_lower_is_better_the_lead_is_how_much_lower():
    from dataclasses import replace

    from cranfield.comparisons.samples import as_scores

    scores = replace(as_scores({"a": VALUES["ease"], "b": VALUES["popularity"]}), lower_is_better=(True,))
    (said,) = compare(scores).verdict
    row = compare(scores).frame().row(0, named=True)
    share = 1 - row["mean_b"] / row["mean_a"]
    assert f"b ({row['mean_b']:.4f}) is better than a ({row['mean_a']:.4f}) by {row['difference']:.4f} [" in said
    assert f", {100 * share:.0f} % [" in said


@pytest.mark.parametrize(("worse", "words"), [(["c"], "c is level"), (["c", "d"], "c and d are level")])
def test_systems_that_the_best_beats_and_a_noisy_second_does_not_are_level_with_some(worse, words):
    draw = np.random.default_rng(2)
    base, noise = draw.normal(0, 0.01, 400), draw.normal(0, 3, 400)
    values = {"a": base + 0.5, "noisy": base + 0.45 + noise - noise.mean()}
    values |= {name: draw.normal(0.3 - 0.01 * place, 0.01, 400) for place, name in enumerate(worse)}
    assert f"{words} with some of them only" in compare(values, significance="student").verdict[0]


def test_json_holds_the_verdict():
    result = compare(VALUES)
    assert json.loads(json.dumps(result.as_dict()))["verdict"] == result.verdict == result.sentences()


def test_nobody_has_the_best_average_where_all_have_the_same():
    said = compare({name: [0.0] * 20 for name in "abc"}).verdict[0]
    assert said == "value: all 3 systems have the same value for every user, 0.0000 on average."
    turned = compare({"a": [0.1, 0.3, 0.2], "b": [0.3, 0.1, 0.2], "c": [0.2, 0.3, 0.1]}).verdict[0]
    assert turned.startswith("value: all 3 systems have the same average, 0.2000. The largest difference, between a ")
    assert "best" not in said
    assert "power" not in said


def test_a_system_without_values_is_named_and_does_not_lead():
    low, high = np.random.default_rng(0).random((2, 50))
    systems = {"none": np.full(50, np.nan), "low": low, "high": high + 0.5}
    said = compare(systems, undefined="leave out").verdict[0]
    assert said.startswith("value: high (")
    assert said.endswith(" It is undefined for every user of none.")
    assert "nan" not in said


def test_one_user_gives_no_interval():
    assert "0.3000, +150 % (too few users for an interval)" in compare({"a": [0.5], "b": [0.2]}).verdict[0]


def test_a_significant_difference_whose_interval_includes_0_is_explained():
    noise = np.random.default_rng(0).normal(0, 0.1, (4, 200))
    noise -= noise.mean(axis=1, keepdims=True)
    systems = {name: 0.5 + gain + row for name, gain, row in zip("abcd", (0.0, 0.024, 0.3, 0.6), noise)}
    result = compare(systems, correction="holm")
    row = result.frame().row(0, named=True)
    assert row["significant"]
    assert row["lower"] < 0 < row["upper"]
    assert [fact.sentence for fact in result.remarks] == [
        "value: a and b differ significantly although the interval includes 0: it is by max-|t|, the p-value by holm."
    ]
    agreeing = compare(systems)
    assert not agreeing.remarks
    assert not agreeing.frame().row(0, named=True)["significant"]


def test_a_difference_that_is_not_significant_although_its_interval_leaves_0_out_is_explained():
    result = compare({"a": [0.5, 0.51, 0.49, 0.52], "b": [0.1, 0.1, 0.1, 0.1]})
    assert result.frame()["p"].item() == 0.125
    assert [fact.sentence for fact in result.remarks] == [
        "value: a and b do not differ significantly although the interval does not include 0: it is by Student's t, "
        "the p-value by the permutation test."
    ]


def test_the_largest_difference_names_the_better_system_first_whatever_the_order_of_the_systems():
    values = dict(zip("abc", np.random.default_rng(0).random((3, 30))))
    backwards = dict(reversed(values.items()))
    assert compare(values).verdict == compare(backwards).verdict


def test_the_table_of_pairs_has_the_interval_of_the_relative_difference():
    result = compare(VALUES, baseline="popularity")
    row = result.frame().row(0, named=True)
    ends = f"[{100 * row['relative_lower']:+.1f}, {100 * row['relative_upper']:+.1f}]"
    for form in (result.table().text(), result.markdown(), result.latex(), str(result)):
        assert ends in form.replace("\\", "")
    none = compare({"a": [0.0, 0.0, 0.1], "b": [0.0, 0.0, 0.0]}).table()
    assert none.rows[0][none.header.index("relative")] == "–"


def test_level_systems_have_the_size_of_their_largest_difference_once():
    said = compare(VALUES).verdict[0]
    size = said.partition("largest difference ")[2].partition(",")[0]
    assert said.count(size) == 1
    assert ". The largest difference, between " in said


def test_where_nobody_is_first_alone_the_first_sentence_says_so():
    from dataclasses import replace

    from cranfield.comparisons.samples import as_scores

    rng = np.random.default_rng(4)
    user = rng.beta(2, 5, (1, 400))
    first = np.concatenate([user, user, user - 0.1]) + rng.normal(0, 0.01, (3, 400))
    second = np.concatenate([user, user - 0.1, user]) + rng.normal(0, 0.01, (3, 400))
    scores = replace(
        as_scores(dict(zip("abc", first))),
        metrics=("P@10", "RR"),
        values=np.stack([first, second], axis=1),
        lower_is_better=(False, False),
    )
    said = compare(scores).verdict[0]
    assert said == "No system is first alone by any of 2 metrics: a is level with b by P@10 and with c by RR."


def test_the_best_of_most_metrics_is_named_where_nobody_is_level_with_it():
    from dataclasses import replace

    from cranfield.comparisons.samples import as_scores

    rng = np.random.default_rng(4)
    values = rng.random((2, 1, 100)) + np.array([[0.5, 0.5, 0], [0, 0, 0.5]])[:, :, None]
    scores = replace(
        as_scores(dict(zip("ab", values[:, 0]))),
        metrics=("P@5", "P@10", "RR"),
        values=values,
        lower_is_better=(False,) * 3,
    )
    assert compare(scores).verdict[0] == "a is first by 2 of 3 metrics, not at the top by RR."


def test_an_interval_of_a_share_beyond_a_hundred_times_is_not_shown():
    from cranfield.comparisons.intervals import Relative

    wide = Relative(np.array([1.0, 1.0]), np.array([0.5, 0.5]), np.array([1.6, 1.6])).widened(np.array([2.0, 60.0]))
    assert not np.isnan(wide.upper[0])
    assert np.isnan([wide.lower[1], wide.upper[1]]).all()


def test_averages_that_four_decimals_cannot_show_have_more():
    rng = np.random.default_rng(2)
    (said,) = compare({"a": rng.random(50) * 4e-5, "b": rng.random(50) * 1e-5}).verdict
    means = [float(text) for text in re.findall(r"[ab] \((0\.0000\d+)\)", said)]
    assert len(means) == 2
    assert means[0] > 2 * means[1] > 0
    assert "[0.0000, " not in said


@pytest.mark.parametrize("seed", range(5))
def test_a_relative_interval_includes_0_exactly_if_the_absolute_one_does(seed):
    rng = np.random.default_rng(seed)
    user = rng.beta(1, 4, 60)
    values = {f"s{k}": np.clip(user + 0.02 * k + rng.normal(0, 0.2, 60), 0, None) for k in range(8)}
    rows = compare(values, significance="student").frame()
    for lower, upper, low, high in rows.select("lower", "upper", "relative_lower", "relative_upper").iter_rows():
        assert (lower <= 0 <= upper) == (low <= 0 <= high) or 0.0 in (low, high)
        assert lower <= 0 or low >= 0
        assert upper >= 0 or high <= 0


def test_no_end_of_an_interval_is_minus_0():
    rng = np.random.default_rng(0)
    user = rng.beta(2, 5, 400)
    values = {name: user + rng.normal(0, 0.00001, 400) for name in "abc"}
    assert not re.search(r"-0(\.0+)?[ ,\]]", " ".join(compare(values).verdict))


def _with_undefined(*undefined: bool):
    """Scores of three systems by as many metrics, of which some are undefined for everybody."""
    from dataclasses import replace

    from cranfield.comparisons.samples import as_scores

    values = np.random.default_rng(1).random((3, len(undefined), 40)) + np.arange(3)[:, None, None]
    values[:, np.array(undefined)] = np.nan
    several = (False,) * len(undefined)
    metrics = tuple(f"P@{k}" for k in range(1, len(undefined) + 1))
    return replace(as_scores(dict(zip("abc", values[:, 0]))), metrics=metrics, values=values, lower_is_better=several)


def test_metrics_of_which_nothing_can_be_said_are_named_together_and_do_not_open_the_verdict():
    first, *others = compare(_with_undefined(True, False, True, False)).verdict
    assert first == "c is best by both metrics that can be measured."
    assert [said.partition(":")[0] for said in others] == ["P@2", "P@4", "P@1 and P@3"]
    assert others[-1].endswith(": nothing can be said, since there is no user for whom it is defined for every system.")
    (only, nothing) = compare(_with_undefined(True, False)).verdict
    assert only.startswith("P@2: c is best")
    assert nothing.startswith("P@1: nothing can be said")


def test_against_a_baseline_what_the_users_could_have_shown_is_said_once():
    rng = np.random.default_rng(3)
    user = 1 + rng.random(80)
    values = {f"s{k}": user + rng.normal(0, 0.1 + 0.02 * k, 80) for k in range(4)}
    (said,) = compare(values, baseline="s0").verdict
    assert said.startswith(
        "value: of 3 systems none is better than s0 and none is worse; no significant difference from it: s1 ("
    )
    assert said.count("power 0.8") == 1
    assert re.search(r"shows a difference of [\d.]+ \([\d.]+ %\) to [\d.]+ \([\d.]+ %\) with power 0.8\.$", said)


def test_what_brackets_hold_is_said_however_long_the_comparison_is():
    for systems in (3, 9):
        result = compare({f"s{k}": RNG.random(30) for k in range(systems)}, significance="student")
        assert f"· in brackets: {result.intervals}" in str(result)
        assert result.as_dict()["intervals"] == result.intervals


def test_one_user_gives_no_interval_of_either_kind():
    row = compare({"a": [0.9], "b": [0.8]}).frame().row(0, named=True)
    assert row["relative"] == pytest.approx(0.125)
    assert np.isnan([row["lower"], row["upper"], row["relative_lower"], row["relative_upper"]]).all()


def test_the_end_of_an_interval_near_0_does_not_read_as_0():
    a = [0.33, 0.61, 0.53, 0.96, 0.81, 0.74, 0.3, 0.3]
    b = [0.26, 0.62, 0.48, 1.0, 0.79, 0.66, 0.32, 0.16]
    compared = compare({"a": a, "b": b})
    (row,) = compared.frame().iter_rows(named=True)
    assert -0.005 < row["relative_lower"] < 0
    assert row["relative_upper"] > 0.1
    ends = f"[{100 * row['relative_lower']:.1f}, {100 * row['relative_upper']:.1f}]"
    assert ends in compared.verdict[0]
