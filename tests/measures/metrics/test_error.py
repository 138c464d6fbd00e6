"""Rank and error: the worked examples of Aftab and Ramampiaro (2022), and loops written from the definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.measures import Judgments, Metric, judge, measure
from cranfield.rankings import read_run

# Section V-C: ratings and predictions as printed, DCSE, WDCSE and SDCSE computed from equations (11) to (14). The paper
# prints 1 − SDCSE as 0.15 (a slip of .015), 0.29, 0.35 and 0.35 (that of the third example again).
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
