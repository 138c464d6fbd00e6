"""Rank and error: the worked examples of Aftab and Ramampiaro (2022), and loops written from the definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.judgments import Judgments, judge
from cranfield.measures import measure
from cranfield.metrics import Metric
from cranfield.rankings import read_run
from cranfield.rankings.calibration import Calibration

# Section V-C: ratings and predictions as printed, DCSE, WDCSE and SDCSE computed from equations (11) to (14). The paper
# prints 1 − SDCSE as 0.15 (a typo for .015), 0.29, 0.35 and 0.35 (the value of the third example again).
EXAMPLES = [
    ([3, 3, 4, 3, 5], [5, 5, 4, 4, 4], 10, 7.3412, 7.4544, 0.9848),
    ([4, 3, 2, 2, 1], [5, 5, 5, 4, 4], 27, 13.2281, 18.7879, 0.7041),
    ([5, 5, 4, 4, 4], [5, 3, 2, 1, 1], 26, 11.8815, 18.4011, 0.6457),
    ([1, 1, 1, 1, 1], [1, 1, 1, 0, 0], 2, 0.8175, 1.6309, 0.5013),
]


def _judged(truth, predicted):
    rows = {"user": [1] * len(truth), "item": list(range(len(truth))), "rank": list(range(1, len(truth) + 1))}
    run = read_run(pl.DataFrame({**rows, "prediction": [float(p) for p in predicted]}), name="run")
    return judge(run, Judgments.of(Ratings.of([1] * len(truth), list(range(len(truth))), truth), 4.0))


@pytest.mark.parametrize(("truth", "predicted", "cse", "dcse", "wdcse", "sdcse"), EXAMPLES)
def test_the_worked_examples(truth, predicted, cse, dcse, wdcse, sdcse):
    judged = _judged(truth, predicted)
    found = [Metric.of(name)(judged)[0] for name in ("CSE", "DCSE", "WDCSE", "SDCSE", "SDCSEacc")]
    np.testing.assert_allclose(found, [cse, dcse, wdcse, sdcse, 1 - sdcse], atol=6e-5)


@given(data=st.data(), n=st.integers(1, 9), margin=st.sampled_from([0.0, 0.5, 1.0]))
def test_each_equals_its_definition(data, n, margin, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test)
    names = ["CSE", "DCSE", "WDCSE", "SDCSE", "RMSE", "MAE", "UpSell", "DownSell", "PerfectSell"]
    expected = {name: [] for name in names}
    for user in sorted(test):
        scores = run.get(user, {})
        pairs = [(test[user][item], scores[item]) for item in ranked(scores) if item in test[user]][:n]
        squares = [(y - p) ** 2 for y, p in pairs]
        dcse, wdcse = (
            sum(se / math.log2(k + 1) for k, se in enumerate(some, 1))
            for some in (squares, sorted(squares, reverse=True))
        )
        values = [sum(squares), dcse, wdcse, dcse / wdcse if wdcse else 0.0]
        if pairs:
            values += [math.sqrt(sum(squares) / len(pairs)), sum(abs(y - p) for y, p in pairs) / len(pairs)]
            values += [sum(p > y + margin for y, p in pairs) / len(pairs)]
            values += [sum(p < y - margin for y, p in pairs) / len(pairs)]
            values += [sum(abs(y - p) <= margin for y, p in pairs) / len(pairs)]
        for name, value in zip(names, values if pairs else [math.nan] * len(names)):
            expected[name].append(value)
    for name in names:
        spelling = f"{name}(margin={margin})@{n}" if name.endswith("Sell") else f"{name}@{n}"
        same(Metric.of(spelling)(judged), expected[name], spelling)


@pytest.mark.parametrize("predicted", [1.1, 1.9, float(np.float32(2.1)), 2.9])
def test_an_error_of_just_the_margin_is_within_it(predicted):
    judged = _judged([round(predicted)], [predicted])
    values = [Metric.of(f"{name}(margin=0.1)")(judged).item() for name in ("UpSell", "DownSell", "PerfectSell")]
    assert values == [0.0, 0.0, 1.0]


def test_items_are_ordered_by_prediction_and_not_by_the_list():
    assert Metric.of("DCSE")(_judged([1, 5], [1, 3])).tolist() == [4.0]


def test_an_item_without_prediction_plays_no_part():
    judged = _judged([1, 5, 3], [1, 3, 3])
    predictions = np.array([1.0, np.nan, 3.0])
    judged = replace(judged, source=replace(judged.run, predictions=predictions))
    assert Metric.of("CSE")(judged).tolist() == [0.0]
    assert Metric.of("PooledRMSE")(judged) == 0.0


def test_scaling_all_errors_leaves_sdcse_as_it_is():
    truth = np.array([5.0, 3.0, 4.0, 1.0])
    errors = np.array([0.5, 0.25, 0.5, 0.125])
    small, large = (Metric.of("SDCSE")(_judged(list(truth), list(truth - f * errors)))[0] for f in (0.5, 1.0))
    assert small == pytest.approx(large)


@pytest.mark.parametrize("ties", ["trec_eval", "average"])
def test_ranks_are_never_taken_for_predicted_ratings(ties):
    run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 1]})
    with pytest.raises(SettingError, match="needs predicted ratings"):
        measure({"mine": run}, Ratings.of([1, 1], [7, 8], [3, 4]), ["P@1", "RMSE"], ties=ties)


def test_a_run_without_predictions_and_scores_is_an_error():
    judged = _judged([1, 5], [1, 3])
    judged = replace(judged, source=replace(judged.run, predictions=None, scores=None))
    with pytest.raises(SettingError, match="SDCSE needs predicted ratings, and the run run has neither"):
        Metric.of("SDCSE")(judged)
    with pytest.raises(SettingError, match="margin=-1"):
        Metric.of("UpSell(margin=-1)")(_judged([1, 5], [1, 3]))


def test_a_list_without_a_judged_item_has_no_error_rather_than_one_of_0():
    test = Ratings.of(["u", "v"], ["a", "a"], [5, 5])
    run = pl.DataFrame({"user": ["u", "v"], "item": ["a", "b"], "prediction": [4.0, 4.0]})
    names = ["MAE", "RMSE", "CSE", "SDCSE", "SDCSEacc", "UpSell", "DownSell", "PerfectSell"]
    scores = measure({"s": run}, test, names)
    assert np.isnan(scores.values[0, :, 1]).all()
    assert scores.average(undefined="zero")[0] == pytest.approx(scores.values[0, :, 0])


# Laws of SDCSE over random predictions, on scales of any range and on clicks.

SCALES = st.sampled_from([(1, 5), (1, 10), (0, 1), (-10, 10)])


@st.composite
def predicted(draw, least=1):
    """Draw ratings and predictions of one list, the predictions descending and apart from each other."""
    low, high = draw(SCALES)
    ratings = draw(st.lists(st.integers(low, high), min_size=least, max_size=8))
    predictions = draw(st.lists(st.integers(4 * low, 4 * high), min_size=len(ratings), max_size=len(ratings)))
    return ratings, sorted((p / 4 for p in predictions), reverse=True)


def _sdcse(truth, predictions, spelling="SDCSE"):
    return float(Metric.of(spelling)(_judged(truth, predictions))[0])


@given(lists=predicted())
def test_sdcse_is_from_0_to_1_and_0_exactly_where_every_prediction_is_right(lists):
    truth, predictions = lists
    value = _sdcse(truth, predictions)
    assert 0.0 <= value <= 1.0
    assert (value == 0.0) == (truth == predictions)
    assert _sdcse(truth, truth) == 0.0
    assert _sdcse(truth, predictions, "SDCSEacc") == 1.0 - value
    assert _sdcse(truth, predictions, "MSDCSE") == value


@given(lists=predicted(), factor=st.sampled_from([0.125, 0.5, 2.0, 1024.0]))
def test_scaling_all_errors_changes_nothing_as_long_as_the_order_stays(lists, factor):
    truth, predictions = np.array(lists[0], dtype=float), np.array(lists[1])
    scaled = truth + factor * (predictions - truth)
    assume((np.diff(scaled) <= 0).all())
    assert _sdcse(truth.tolist(), scaled.tolist()) == pytest.approx(_sdcse(*lists), rel=1e-12)


def test_shifting_all_predictions_changes_it():
    # Errors of 0 and 1 become errors of 1 and 2: the list is no longer ideal.
    assert _sdcse([5, 2], [5, 3]) == pytest.approx(1 / math.log2(3))
    assert _sdcse([5, 2], [6, 4]) == pytest.approx((1 + 4 / math.log2(3)) / (4 + 1 / math.log2(3)))


@given(lists=predicted(least=2), data=st.data())
def test_items_of_equal_prediction_keep_the_order_of_the_list(lists, data):
    truth, level = lists[0], data.draw(st.integers(-2, 2))
    errors = [(y - level) ** 2 for y in truth]
    discounted = sum(error / math.log2(k + 1) for k, error in enumerate(errors, 1))
    assert _sdcse(truth, [level] * len(truth), "DCSE") == pytest.approx(discounted)


@given(lists=predicted(), n=st.integers(1, 8))
def test_a_cutoff_looks_at_the_first_items_alone(lists, n):
    truth, predictions = lists
    assert _sdcse(truth, predictions, f"SDCSE@{n}") == pytest.approx(_sdcse(truth[:n], predictions[:n]))


# Where SDCSE prefers the visibly worse model: (truth, the better predictions, the worse ones).
MISLEADING = {
    "small errors that fall, and large ones that grow": ([4, 4, 4], [4.3, 4.2, 4.1], [4.0, 2.5, 1.0]),
    "a tiny error at the top alone, and every item wrong": ([5, 4, 3], [5.01, 4.0, 3.0], [4.0, 2.0, 0.5]),
    "the same, but for a last item that is far off": ([5, 5, 5], [4.0, 3.9, 3.8], [4.0, 3.9, 1.0]),
    "a slight overestimate, and a constant for all": ([5, 4, 3], [5.2, 4.1, 3.0], [4.0, 4.0, 4.0]),
}


@pytest.mark.parametrize("case", MISLEADING)
def test_sdcse_prefers_a_model_that_is_visibly_worse(case):
    truth, better, worse = MISLEADING[case]
    assert _sdcse(truth, better, "RMSE") < _sdcse(truth, worse, "RMSE")
    assert _sdcse(truth, better, "DCSE") < _sdcse(truth, worse, "DCSE")
    assert _sdcse(truth, worse) < _sdcse(truth, better)


def test_a_list_of_one_wrong_item_scores_1_whatever_its_error():
    assert [_sdcse([5], [p]) for p in (4.99, 1.0)] == [1.0, 1.0]


def test_lists_of_the_papers_introduction():
    """Section I: AP cannot tell the first pair apart under a threshold of 3, nor nDCG the second; others can."""

    def of(grades, spelling):
        judged = _judged(grades, range(len(grades), 0, -1))
        return float(Metric.of(spelling)(judged)[0])

    first, second = [5, 5, 3, 3, 3], [3, 3, 5, 5, 5]
    assert of(first, "AP(rel=3)") == of(second, "AP(rel=3)") == 1.0
    assert of(first, "nDCG") == 1.0 > of(second, "nDCG")
    low, high = [3, 3, 3, 2], [5, 5, 4, 4, 3]
    assert of(low, "nDCG") == of(high, "nDCG") == 1.0
    assert of(low, "DCG") < of(high, "DCG")


# Items without a rating.


def _full():
    """Judge a list of four items, the first and the third rated, 5 and 1, and predicted 4 and 2."""
    run = pl.DataFrame({"user": [1] * 4, "item": [*"abcd"], "score": [4.0, 3.5, 2.0, 1.0]})
    return judge(read_run(run, name="run"), Ratings.of([1, 1], ["a", "c"], [5, 1]))


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("CSE", 2.0),
        ("CSE@1", 1.0),
        ("DCSE", 1 + 1 / math.log2(3)),
        ("DCSE(condensed=false)", 1 + 1 / 2),
        ("DCSE(condensed=false)@2", 1.0),
        ("WDCSE(condensed=false)", 1 + 1 / math.log2(3)),
        ("DCSE(unrated=3)", 1 + 0.25 / math.log2(3) + 1 / 2 + 4 / math.log2(5)),
        ("CSE(unrated=0)@2", 1 + 3.5**2),
        ("RMSE(condensed=false)", 1.0),
        ("MAE(unrated=3)", (1 + 0.5 + 1 + 2) / 4),
        ("PooledMAE(unrated=3)", (1 + 0.5 + 1 + 2) / 4),
        ("UpSell(condensed=false, margin=0.5)", 0.5),
        ("UpSell(unrated=3, margin=0.4)", 2 / 4),
        ("PooledUpSell(margin=0.5)", 0.5),
        ("PooledDownSell(margin=0.5)", 0.5),
        ("PooledPerfectSell(margin=1)", 1.0),
    ],
)
def test_items_without_a_rating_are_left_out_keep_their_place_or_get_a_rating(spelling, value):
    assert np.ravel(Metric.of(spelling)(_full())).tolist() == pytest.approx([value])


@given(data=st.data(), n=st.integers(1, 6), unrated=st.none() | st.integers(0, 3))
def test_full_lists_equal_their_definition(data, n, unrated, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    expected = []
    for user in sorted(test):
        scores = run.get(user, {})
        order = ranked(scores)[:n]
        ratings = [test[user].get(item, unrated) for item in order]
        squares = [0.0 if y is None else (y - scores[item]) ** 2 for y, item in zip(ratings, order)]
        dcse, wdcse = (
            sum(se / math.log2(k + 1) for k, se in enumerate(some, 1))
            for some in (squares, sorted(squares, reverse=True))
        )
        rated = any(rating is not None for rating in ratings)
        expected.append((dcse / wdcse if wdcse else 0.0) if rated else math.nan)
    parameters = "condensed=false" if unrated is None else f"unrated={unrated}"
    same(Metric.of(f"SDCSE({parameters})@{n}")(judged_of(run, test)), expected)


# The margin.


def test_the_margin_is_half_a_step_of_the_scale_unless_given():
    halves = _judged([4.5, 3, 2], [4.2, 3.2, 2.0])  # steps of 1.5 and 1
    assert Metric.of("PerfectSell")(halves).tolist() == [1.0]
    stars = _judged([4.5, 4, 2], [4.2, 4.2, 2.0])  # steps of a half star
    assert Metric.of("PerfectSell")(stars).tolist() == pytest.approx([2 / 3])
    assert (
        Metric.of("PerfectSell(margin=half)")(stars).tolist() == Metric.of("PerfectSell(margin=0.25)")(stars).tolist()
    )


def test_the_spread_of_residuals_is_the_margin_where_a_calibration_measured_it():
    judged = _judged([5, 3], [4.0, 3.0])
    with pytest.raises(SettingError, match="margin=spread is the spread of residuals on a validation part, and run"):
        Metric.of("UpSell(margin=spread)")(judged)
    calibration = Calibration("own", (), (), 10, "held out", 0.9)
    for spread, share in ((0.9, 0.5), (1.0, 0.0)):
        run = replace(judged.run, calibration=replace(calibration, spread=spread))
        assert Metric.of("DownSell(margin=spread)")(judged.fresh(source=run)).tolist() == [share]


@pytest.mark.parametrize("name", ["CSE", "DCSE", "WDCSE", "SDCSE", "UpSell", "DownSell", "RMSE", "MAE"])
def test_lower_is_better_for_errors(name):
    assert Metric.of(name).definition.lower_is_better


@pytest.mark.parametrize("name", ["SDCSEacc", "PerfectSell"])
def test_higher_is_better_for_shares_without_error(name):
    assert not Metric.of(name).definition.lower_is_better
