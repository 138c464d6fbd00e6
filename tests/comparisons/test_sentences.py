"""The verdict: one sentence on the main metric, relative differences, and what a null result could have shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from cranfield.comparisons import compare
from cranfield.comparisons.samples import as_scores, make_samples
from cranfield.measures import Averaging

RNG = np.random.default_rng(3)
HARD = RNG.beta(2, 5, 600)
NOISE = {name: RNG.normal(0, 0.02, 600) for name in ("ease", "svd", "tuned", "popularity")}
VALUES = {
    name: np.clip(HARD * skill + NOISE[name], 0, 1)
    for name, skill in (("ease", 1.0), ("svd", 1.0), ("tuned", 1.0), ("popularity", 0.75))
}


def test_systems_that_do_not_differ_lead_together_and_the_others_are_worse():
    (said,) = compare(VALUES).verdict
    opening, _, rest = said.partition(" lead, undecided among them")
    assert all(name in opening for name in ("ease", "svd", "tuned"))
    assert rest.endswith("; popularity is worse.")
    assert "is best" not in said


def test_a_system_that_beats_all_others_is_best_by_the_lead_over_the_next():
    values = {name: VALUES[name] for name in ("ease", "popularity")} | {"last": 0.5 * VALUES["popularity"]}
    result = compare(values)
    loss = result.main.pair("popularity", "ease").loss
    assert result.verdict == [f"value: ease is best: popularity is {loss} worse ({loss.ends}, p < 0.0001), last too."]


NAMES = ["a", "user kNN", "DecayKNN (ours)", "knn(k=100, similarity=cosine, overlap=0)", "a system with a long name"]


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(k, marks=pytest.mark.slow) for k in range(20, 120))])
def test_the_answer_has_at_most_25_words_whatever_the_systems_are_called(seed):
    rng = np.random.default_rng(seed)
    systems = int(rng.integers(2, 12))
    names = [f"{rng.choice(NAMES)} {k}" if rng.random() < 0.5 else f"s{k}" for k in range(systems)]
    users = int(rng.integers(1, 60))
    base = rng.beta(1, 3, users) * (rng.random(users) < rng.choice([0.2, 1.0]))
    values = {
        name: np.round(base + rng.choice([0, 0, 0.1]) * rng.random() + rng.normal(0, 0.1, users), 2) for name in names
    }
    baseline = names[0] if rng.random() < 0.5 else None
    significance = str(rng.choice(["permutation", "wilcoxon", "sign"]))
    result = compare(values, baseline=baseline, significance=significance)
    words = sum(len(name.split()) - 1 for name in names if name in result.main.answer)
    assert len(result.main.answer.split()) <= 25 + words, result.main.answer
    assert " more" not in result.main.answer.replace("for more users", "")


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_calls_better_and_worse_what_the_rows_do(seed):
    rng = np.random.default_rng(seed)
    base = rng.beta(1, 3, 200)
    values = {f"s{k}": base + 0.02 * k * rng.integers(-1, 2) + rng.normal(0, 0.1, 200) for k in range(5)}
    result = compare(values, baseline="s0")
    against, answer = result.main.against, result.main.answer
    better = result.frame(detail=True).filter(better="s1").height
    assert (against["s1"] == "better") == (better > 0)
    kinds = list(against.values())
    if not kinds.count("better"):
        assert "beats s0" not in answer
    if kinds.count("worse") == 4:
        assert answer.startswith("s0 beats all 4 others; ")
    if kinds.count("better"):
        best = max((name for name in against if against[name] == "better"), key=lambda name: values[name].mean())
        assert answer.startswith(f"{best} beats s0 by ")


@pytest.mark.parametrize("systems", [2, 3, 6])
@pytest.mark.parametrize("baseline", [None, "s0", "s1"])
@pytest.mark.parametrize("step", [0.0, 0.05])
def test_the_numbers_of_the_answer_are_those_of_the_figure_and_the_table(systems, baseline, step):
    rng = np.random.default_rng(1)
    base = rng.beta(2, 5, 400)
    values = {f"s{k}": np.clip(base + step * k + rng.normal(0, 0.1, 400), 0, 1) for k in range(systems)}
    result = compare(values, baseline=baseline)
    shown = {row[2].lstrip("+-") for row in result.differences().rows}
    said = result.main.answer.partition("; these ")[0]
    assert set(re.findall(r"(?:by|is) ([\d.]+ %)", said)) <= shown
    assert result.main.reference == (baseline or (min(values, key=lambda name: values[name].mean()) if systems == 2
                                                  else max(values, key=lambda name: values[name].mean())))  # fmt: skip


def test_a_rank_test_that_favours_the_lower_average_says_so():
    a, b = [0.2] * 30 + [0.9] * 2, [0.1] * 30 + [0.99 * 3] * 2
    (said, *_) = compare({"a": a, "b": b}, significance="sign").verdict
    assert said.startswith("value: a beats b for more users (30 against 2, p ")
    assert said.endswith("), though not on average.")


def test_relative_differences_are_those_of_the_averages_and_their_intervals_hold_them():
    row = compare({name: VALUES[name] for name in ("ease", "popularity")}).frame(detail=True).row(0, named=True)
    assert row["relative"] == pytest.approx(row["difference"] / row["mean_b"])
    assert row["relative_lower"] < row["relative"] < row["relative_upper"]
    # Close to the interval by the delta method.
    a, b = VALUES["ease"], VALUES["popularity"]
    error = (a / b.mean() - a.mean() * b / b.mean() ** 2).std(ddof=1) / np.sqrt(600)
    assert row["relative_upper"] - row["relative_lower"] == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_a_base_that_is_nearly_0_has_no_relative_difference():
    row = (
        compare({"a": [1.0, 0.5, 0.2], "b": [5e-323, 0, 5e-323]}, significance="student")
        .frame(detail=True)
        .row(0, named=True)
    )
    assert np.isnan(row["relative"])
    assert np.isnan(row["relative_lower"])


@pytest.mark.parametrize("worlds", [30, pytest.param(600, marks=pytest.mark.slow)])
def test_relative_intervals_hold_as_often_as_they_say(worlds):
    rng, held = np.random.default_rng(0), 0
    for _ in range(worlds):
        b = rng.beta(2, 5, 200)
        a = np.clip(b * rng.gamma(20, 0.06, 200), 0, None)
        row = compare({"a": a, "b": b}, significance="t").frame(detail=True).row(0, named=True)
        held += row["relative_lower"] <= 0.2 <= row["relative_upper"]
    assert held / worlds == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / worlds))


@pytest.mark.parametrize("average", ["mean", "weighted(by=judged)"])
def test_a_relative_interval_ends_where_the_second_system_times_the_ratio_does_not_differ(average):
    scores = as_scores({name: VALUES[name] for name in ("ease", "popularity")})
    scores = replace(scores, judged=np.arange(1, scores.n_lists + 1))
    options = {"average": average, "significance": "student"}
    row = compare(scores, **options).frame(detail=True).row(0, named=True)
    for end in ("relative_lower", "relative_upper"):
        values = scores.values * np.array([1, 1 + row[end]])[:, None, None]
        assert compare(replace(scores, values=values), **options).frame(detail=True)["p"].item() == pytest.approx(
            0.05, rel=1e-6
        )


def test_relative_intervals_are_over_the_users_of_the_pair():
    values = {name: VALUES[name].copy() for name in ("ease", "popularity")}
    values["ease"][:200], values["popularity"][550:] = np.nan, np.nan
    both = {name: column[200:550] for name, column in values.items()}
    rows = [compare(of, undefined="leave out").frame(detail=True).row(0, named=True) for of in (values, both)]
    assert rows[0]["relative_lower"] == pytest.approx(rows[1]["relative_lower"])
    (sample,), _ = make_samples(as_scores(values), Averaging(undefined="leave out"))
    sample = replace(sample, values=np.stack(list(values.values())))
    assert not sample.same_users
    (alone,), _ = make_samples(as_scores(both), Averaging())
    assert np.ravel(sample.covariance()) == pytest.approx(np.ravel(alone.covariance()))


def test_the_covariance_of_averages_is_that_of_the_users():
    (sample,), _ = make_samples(as_scores(VALUES), Averaging())
    expected = np.cov(sample.values) / sample.n_users
    a, b = sample.first, sample.second
    for variance, places in zip(sample.covariance(), ((a, a), (a, b), (b, b))):
        assert variance == pytest.approx(expected[places])


def test_there_is_no_relative_difference_where_the_base_is_0_or_values_are_negative():
    zero = compare({"a": [0.5, 0.2, 0.9], "b": [0.0, 0.0, 0.0]})
    below = compare({"a": [0.5, 0.2, 0.9], "b": [0.4, -0.1, 0.3]})
    for result in (zero, below):
        assert np.isnan(result.frame(detail=True)["relative"].item())
        assert "%" not in result.verdict[0]


def test_a_null_result_says_its_interval_and_what_could_have_been_shown():
    values = {name: np.round(VALUES[name], 1) for name in ("ease", "svd")}
    result = compare(values)
    (said,) = result.verdict
    lead = result.main.pair(*result.main.means)
    smallest = 100 * result.power()["smallest_difference"].item() / lead.base
    first, second = result.main.means
    assert said.startswith(f"value: Neither {first} nor {second} is shown to be better ({lead.ends}, p = ")
    assert said.endswith(f"; these 600 users could have shown {smallest:.1f} %.")


def test_the_main_metric_comes_first_and_what_the_others_say_second():
    scores = as_scores({name: VALUES[name] for name in ("ease", "svd", "popularity")})
    clear = scores.values.copy()
    clear[1] *= 0.9
    both = replace(
        scores,
        metrics=("P@10", "RR"),
        values=np.concatenate([clear, scores.values], axis=1),
        lower_is_better=(False, False),
    )
    first, others = compare(both).verdict
    assert first.startswith("P@10: ease is best: svd is ")
    assert others == "ease is first by 1 of 2 metrics, level at the top by RR."


def test_metrics_that_describe_lists_have_no_say_in_who_is_first():
    scores = as_scores({name: VALUES[name] for name in ("ease", "popularity")})
    turned = 1 - scores.values
    both = replace(scores, metrics=("EPC@10", "P@10"), values=np.concatenate([turned, scores.values], axis=1),
                   lower_is_better=(False, False))  # fmt: skip
    result = compare(both)
    assert result.main.metric == "P@10"
    assert len(result.verdict) == 1
    assert result.of_metric("EPC@10")["better"].item() is None
    assert not [cell for row in result.summary().cells() for cell in row[1:2] if cell.best]


def test_against_a_baseline_the_other_metrics_are_named_where_they_say_something_else():
    scores = as_scores({name: VALUES[name] for name in ("ease", "svd", "popularity")})
    other = scores.values.copy()
    other[1] *= 0.5
    both = replace(scores, metrics=("P@10", "RR"), values=np.concatenate([scores.values, other], axis=1),
                   lower_is_better=(False, False))  # fmt: skip
    assert compare(both, baseline="ease").verdict[1] == "Against ease, svd is worse by RR."
    same = replace(both, values=np.concatenate([scores.values, scores.values], axis=1))
    assert compare(same, baseline="ease").verdict[1] == "RR agrees."


def test_where_lower_is_better_the_lead_is_how_much_lower():
    scores = replace(as_scores({"a": VALUES["ease"], "b": VALUES["popularity"]}), lower_is_better=(True,))
    (said,) = compare(scores).verdict
    row = compare(scores).frame(detail=True).row(0, named=True)
    share = 1 - row["mean_b"] / row["mean_a"]
    assert said.startswith(f"value: b beats a by {100 * share:.0f} % (")


@pytest.mark.parametrize(("worse", "words"), [(["c"], "c is level"), (["c", "d"], "c and d are level")])
def test_systems_that_the_best_beats_and_a_noisy_second_does_not_are_level_with_some(worse, words):
    draw = np.random.default_rng(2)
    base, noise = draw.normal(0, 0.01, 400), draw.normal(0, 3, 400)
    values = {"a": base + 0.5, "noisy": base + 0.45 + noise - noise.mean()}
    values |= {name: draw.normal(0.3 - 0.01 * place, 0.01, 400) for place, name in enumerate(worse)}
    assert f"{words} with some of them." in compare(values, significance="student").verdict[0]


def test_json_holds_the_verdict():
    result = compare(VALUES)
    assert json.loads(json.dumps(result.as_dict()))["verdict"] == result.verdict


def test_nobody_has_the_best_average_where_all_have_the_same():
    said = compare({name: [0.0] * 20 for name in "abc"}).verdict[0]
    assert said == "value: a, b and c have the same value for each of 20 users."
    turned = compare({"a": [0.1, 0.3, 0.2], "b": [0.3, 0.1, 0.2], "c": [0.2, 0.3, 0.1]}).verdict[0]
    assert turned == "value: All 3 systems have the same average, 0.2000."


def test_a_system_without_values_is_named_and_does_not_lead():
    low, high = np.random.default_rng(0).random((2, 50))
    systems = {"none": np.full(50, np.nan), "low": low, "high": high + 0.5}
    said = compare(systems, undefined="leave out").verdict[0]
    assert said.startswith("value: high beats low by ")
    assert said.endswith(" It is undefined for every user of none.")
    assert "nan" not in said


def test_one_user_gives_no_interval():
    assert compare({"a": [0.5], "b": [0.2]}).verdict == ["value: Neither a nor b is shown to be better (p = 1)."]


def test_a_significant_difference_whose_interval_includes_0_is_explained():
    noise = np.random.default_rng(0).normal(0, 0.1, (4, 200))
    noise -= noise.mean(axis=1, keepdims=True)
    systems = {name: 0.5 + gain + row for name, gain, row in zip("abcd", (0.0, 0.024, 0.3, 0.6), noise)}
    result = compare(systems, correction="holm")
    row = result.frame(detail=True).row(0, named=True)
    assert row["significant"]
    assert row["lower"] < 0 < row["upper"]
    assert [fact.sentence for fact in result.doubts] == [
        "value: a and b differ significantly although the interval includes 0: it is by max-|t|, the p-value by holm."
    ]
    agreeing = compare(systems)
    assert not agreeing.doubts
    assert not agreeing.frame(detail=True).row(0, named=True)["significant"]


def test_a_difference_that_is_not_significant_although_its_interval_leaves_0_out_is_explained():
    result = compare({"a": [0.5, 0.51, 0.49, 0.52], "b": [0.1, 0.1, 0.1, 0.1]})
    assert result.frame(detail=True)["p"].item() == 0.125
    assert [fact.sentence for fact in result.doubts] == [
        "value: a and b do not differ significantly although the interval does not include 0: it is by Student's t, "
        "the p-value by the permutation test."
    ]


def test_the_largest_difference_names_the_better_system_first_whatever_the_order_of_the_systems():
    values = dict(zip("abc", np.random.default_rng(0).random((3, 30))))
    backwards = dict(reversed(values.items()))
    assert compare(values).verdict == compare(backwards).verdict


def test_the_table_of_pairs_has_the_interval_of_the_relative_difference(monkeypatch):
    from cranfield._settings import settings

    result = compare(VALUES, baseline="popularity")
    row = result.frame(detail=True).row(0, named=True)
    ends = f"[{100 * row['relative_lower']:+.1f}, {100 * row['relative_upper']:+.1f}]"
    assert ends in result.table().text()
    assert ends not in str(result)
    monkeypatch.setattr(settings, "details", True)
    assert ends in str(result)
    none = compare({"a": [0.0, 0.0, 0.1], "b": [0.0, 0.0, 0.0]}).table()
    assert none.rows[0][none.header.index("relative")] == "–"


def test_the_sentence_the_table_and_the_figure_have_the_same_p_value_and_interval():
    result = compare(VALUES, baseline="popularity")
    lead = result.main.pair("ease", "popularity")
    (row,) = [row for row in result.overview().cells() if row[0].text == "ease"]
    assert [cell.text for cell in row[2:5]] == [lead.signed, lead.ends, "<0.0001"]
    assert result.differences().rows[0][2:5] == [cell.text for cell in result.overview().cells()[0][2:5]]
    best = next(iter(result.main.means))
    top = result.main.pair(best, "popularity")
    assert f"{best} beats popularity by {top} ({top.ends}, p < 0.0001)" in result.verdict[0]
    assert top.row["p_corrected"] >= top.row["p"]


def test_against_a_baseline_significant_averages_have_daggers():
    result = compare(VALUES, baseline="popularity")
    marks = {row[0].text: row[1].raised for row in result.summary().cells()}
    assert marks == {"ease": "†", "svd": "†", "tuned": "†", "popularity": ""}
    assert "† significantly better, ‡ significantly worse than popularity" in result.summary().caption
    assert {row[0].text: row[1].raised for row in compare(VALUES, baseline="ease").summary().cells()}[
        "popularity"
    ] == "‡"
    assert "$^{\\dag{}}$" in result.to_latex()


def test_where_nobody_is_first_alone_that_is_said():
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
    said = compare(scores).verdict[1]
    assert said == "b is level at the top by P@10, behind by RR (c leads)."


def test_the_best_of_most_metrics_is_named_where_nobody_is_level_with_it():
    rng = np.random.default_rng(4)
    values = rng.random((2, 1, 100)) + np.array([[0.5, 0.5, 0], [0, 0, 0.5]])[:, :, None]
    scores = replace(
        as_scores(dict(zip("ab", values[:, 0]))),
        metrics=("P@5", "P@10", "RR"),
        values=values,
        lower_is_better=(False,) * 3,
    )
    assert compare(scores).verdict[1] == "a is first by 2 of 3 metrics, behind by RR (b leads)."


def test_an_interval_of_a_share_without_an_end_or_beyond_a_hundred_times_is_not_shown():
    rng = np.random.default_rng(3)
    a, b = rng.random(40), np.zeros(40)
    b[0] = 0.2  # its average does not differ from 0
    row = compare({"a": a, "b": b}).frame(detail=True).row(0, named=True)
    assert row["relative"] > 50
    assert np.isnan([row["relative_lower"], row["relative_upper"]]).all()
    row = compare({"a": a, "b": np.full(40, 0.001)}).frame(detail=True).row(0, named=True)
    assert row["lower"] > 100 * row["mean_b"]
    assert np.isnan([row["relative_lower"], row["relative_upper"]]).all()


def test_averages_that_four_decimals_cannot_show_have_more():
    rng = np.random.default_rng(2)
    result = compare({"a": rng.random(50) * 4e-5, "b": -rng.random(50) * 1e-5})
    assert re.match(r"value: a beats b by 0\.0000\d+ \(0\.0000\d+ to ", result.verdict[0])


@pytest.mark.parametrize("seed", range(5))
def test_a_relative_interval_includes_0_exactly_if_the_absolute_one_does(seed):
    rng = np.random.default_rng(seed)
    user = rng.beta(1, 4, 60)
    values = {f"s{k}": np.clip(user + 0.02 * k + rng.normal(0, 0.2, 60), 0, None) for k in range(8)}
    rows = compare(values, significance="student").frame(detail=True)
    for lower, upper, low, high in rows.select("lower", "upper", "relative_lower", "relative_upper").iter_rows():
        assert (lower <= 0 <= upper) == (low <= 0 <= high) or 0.0 in (low, high)
        assert lower <= 0 or low >= 0
        assert upper >= 0 or high <= 0


def test_no_end_of_an_interval_is_minus_0():
    rng = np.random.default_rng(0)
    user = rng.beta(2, 5, 400)
    values = {name: user + rng.normal(0, 0.00001, 400) for name in "abc"}
    assert not re.search(r"-0(\.0+)?[ ,\])]", str(compare(values)))


def _with_undefined(*undefined: bool):
    """Scores of three systems by as many metrics, of which some are undefined for everybody."""
    values = np.random.default_rng(1).random((3, len(undefined), 40)) + np.arange(3)[:, None, None]
    values[:, np.array(undefined)] = np.nan
    several = (False,) * len(undefined)
    metrics = tuple(f"P@{k}" for k in range(1, len(undefined) + 1))
    return replace(as_scores(dict(zip("abc", values[:, 0]))), metrics=metrics, values=values, lower_is_better=several)


def test_metrics_of_which_nothing_can_be_said_are_named_together_and_do_not_open_the_verdict():
    first, others, nothing = compare(_with_undefined(True, False, True, False)).verdict
    assert first.startswith("P@2: c is best")
    assert others == "c is first by both metrics."
    assert nothing.startswith("P@1 and P@3: nothing can be said")
    assert nothing.endswith(", since there is no user for whom it is defined for every system.")
    (only, nothing) = compare(_with_undefined(True, False)).verdict
    assert only.startswith("P@2: c is best")
    assert nothing.startswith("P@1: nothing can be said")


def test_against_a_baseline_what_the_users_could_have_shown_is_said_once():
    rng = np.random.default_rng(3)
    user = 1 + rng.random(80)
    values = {f"s{k}": user + rng.normal(0, 0.1 + 0.02 * k, 80) for k in range(4)}
    (said,) = compare(values, baseline="s0").verdict
    assert said.startswith("value: No system is shown to differ from s0; these 80 users could have shown ")
    assert re.search(r"shown [\d.]+ to [\d.]+ %\.$", said)


def test_what_the_intervals_of_the_pairs_are_is_said():
    result = compare({f"s{k}": RNG.random(30) for k in range(3)}, significance="student")
    assert f"· in brackets: {result.intervals}" in result.table().text()
    assert result.as_dict()["intervals"] == result.intervals


def test_one_user_gives_no_interval_of_either_kind():
    row = compare({"a": [0.9], "b": [0.8]}).frame(detail=True).row(0, named=True)
    assert row["relative"] == pytest.approx(0.125)
    assert np.isnan([row["lower"], row["upper"], row["relative_lower"], row["relative_upper"]]).all()


def test_the_end_of_an_interval_near_0_does_not_read_as_0():
    a = [0.34, 0.625, 0.54, 0.97, 0.82, 0.75, 0.315, 0.31]
    b = [0.26, 0.62, 0.48, 1.0, 0.79, 0.66, 0.32, 0.16]
    compared = compare({"a": a, "b": b})
    (row,) = compared.frame(detail=True).iter_rows(named=True)
    assert -0.005 < row["relative_lower"] < 0
    assert row["relative_upper"] > 0.1
    ends = f"({100 * row['relative_lower']:.1f} to {100 * row['relative_upper']:.1f} %"
    assert ends in compared.verdict[0]


# By the sign test a is better than b for 80 of 100 users, and b has more than twice its average.
RANKS = {
    "a": np.r_[np.full(80, 0.2), np.zeros(20)],
    "b": np.r_[np.full(80, 0.19), np.full(20, 0.9)],
    "c": np.full(100, 0.01),
}


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        (None, "a is best: it beats c and b for more users (p < 0.0001) though not on average."),
        ("a", "a beats both others, b for more users (p < 0.0001), though not on average."),
        ("b", "a beats b for more users (80 against 20, p < 0.0001), though not on average; c is worse."),
    ],
)
def test_a_rank_test_never_gives_a_winner_a_negative_lead_and_never_praises_who_is_beaten(baseline, said):
    assert compare(RANKS, significance="sign", baseline=baseline).main.answer == said


def test_a_rank_test_that_goes_round_in_circles_has_no_winner():
    values = np.array([[0.9, 0.5, 0.1], [0.1, 0.9, 0.5], [0.5, 0.1, 0.9]])
    circle = {name: np.repeat(column, 60) for name, column in zip("abc", values.T)}
    assert compare(circle, significance="sign").main.answer.endswith("none is best.")


def test_systems_that_are_equal_for_every_user_are_not_said_to_be_undecided():
    twins = {"ease": VALUES["ease"], "again": VALUES["ease"].copy(), "popularity": VALUES["popularity"]}
    assert compare(twins).main.answer == "ease and again lead, equal for every user; popularity is worse."


def test_a_lead_and_its_interval_have_one_unit():
    # Few users give "poor" a value at all, so that its ratio has no interval and its difference has one.
    poor = np.where(np.arange(600) < 2, 0.5, 0.0)
    result = compare({"ease": VALUES["ease"], "poor": poor})
    assert np.isnan(result.frame(detail=True)["relative_upper"].item())
    assert "%" not in result.main.answer
    assert "%" not in str(result.paragraph).partition("Differences are tested")[0]


def test_what_users_could_have_shown_is_said_for_the_corrected_test():
    values = {f"s{k}": HARD + np.random.default_rng(k).normal(0, 0.1, 600) for k in range(8)}
    alone, corrected = (compare(values, correction=name).main.rows[0] for name in ("none", "max_t"))
    half = (corrected["upper"] - corrected["lower"]) / 2
    assert corrected["smallest_difference"] > 1.2 * alone["smallest_difference"]
    assert corrected["smallest_difference"] == pytest.approx(half + 0.8424 * corrected["standard_error"], rel=1e-3)


@pytest.mark.slow
def test_a_difference_that_could_have_been_shown_is_shown_in_four_cases_of_five():
    rng, shown = np.random.default_rng(0), 0
    for seed in range(200):
        base = rng.normal(0.5, 0.1, 150)
        values = {f"s{k}": base + rng.normal(0, 0.1, 150) for k in range(8)}
        smallest = compare(values, baseline="s0", significance="student", seed=seed).main.rows[0]["smallest_difference"]
        values["s1"] = base + smallest + rng.normal(0, 0.1, 150)
        rows = compare(values, baseline="s0", significance="student", seed=seed).main.rows
        shown += next(row["better"] == "s1" for row in rows if "s1" in (row["system_a"], row["system_b"]))
    assert 0.72 < shown / 200 < 0.88  # by the plain t-test at α it would be 0.58


def test_tukeys_relative_intervals_hold_for_all_pairs_like_its_p_values():
    rng = np.random.default_rng(5)
    values = {f"s{k}": np.clip(HARD + 0.004 * k + rng.normal(0, 0.05, 600), 0, 1) for k in range(6)}
    result = compare(values, significance="tukey(resamples=999)")
    for row in result.main.rows:
        assert (row["relative_lower"] > 0 or row["relative_upper"] < 0) == (row["lower"] > 0 or row["upper"] < 0)
    assert "without correction" not in result.caption + str(result.paragraph)
    assert "hold for all comparisons at once" in str(result.paragraph)


def test_a_metric_that_only_describes_has_no_results_paragraph():
    from dataclasses import replace

    from cranfield.comparisons.samples import as_scores

    scores = replace(as_scores({name: VALUES[name] for name in ("ease", "popularity")}), metrics=("EPC@10",))
    result = compare(scores)
    assert result.paragraph is None
    assert result.main.answer == "ease has the highest value and popularity the lowest; neither is better."
