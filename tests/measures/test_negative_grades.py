"""Grades below 0 in relevance judgments: judged, not judged, or pooled and not judged."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.assessments import assess
from cranfield.facts import scores as scores_facts
from cranfield.measures import by_popularity, measure
from cranfield.measures.other_tools import compare_tools
from cranfield.rankings import read_test

QRELS = {"t1": {"a": 1, "b": -1, "c": 0, "d": 2, "e": -2}, "t2": {"a": -1, "b": 1}}
RUNS = {"run": {"t1": ["b", "x", "a", "c", "e", "d"], "t2": ["a", "b"]}}
_EPSILON = 1e-5


def _values(reading, *metrics):
    return measure(RUNS, QRELS, list(metrics), threshold=1, negative_grades=reading).values[0]


def test_unjudged_is_as_if_the_grades_were_not_there():
    metrics = ["bpref", "infAP", "infAP(pool=judged)", "nDCG", "RBPresidual", "Unjudged", "AP(condensed=true)"]
    without = {user: {item: g for item, g in grades.items() if g >= 0} for user, grades in QRELS.items()}
    np.testing.assert_array_equal(_values("unjudged", *metrics), measure(RUNS, without, metrics, threshold=1).values[0])


def test_pooled_differs_from_unjudged_in_infap_of_the_judged_pool_alone():
    metrics = ["bpref", "infAP", "nDCG", "RBPresidual", "Unjudged", "AP(condensed=true)", "infAP(pool=judged)"]
    unjudged, pooled = _values("unjudged", *metrics), _values("pooled", *metrics)
    np.testing.assert_array_equal(pooled[:-1], unjudged[:-1])

    def term(rank, pool, relevant, judged):
        return 1 / rank + pool / rank * (relevant + _EPSILON) / (judged + 2 * _EPSILON)

    first = (term(3, 1, 0, 0) + term(6, 4, 1, 2)) / 2
    assert pooled[-1] == pytest.approx([first, term(2, 1, 0, 0)], abs=1e-12)
    assert unjudged[-1] == pytest.approx([(1 / 3 + term(6, 2, 1, 2)) / 2, 1 / 2], abs=1e-12)


def test_the_pool_above_an_item_survives_a_cut_off_and_tied_scores():
    runs = {"run": {"t1": {"b": 2.0, "x": 2.0, "a": 1.0, "c": 1.0}, "t2": {"b": 1.0}}}
    for ties in ("trec_eval", "average"):
        found = measure(
            runs,
            QRELS,
            ["infAP(pool=judged)@4", "infAP(pool=judged)@1"],
            threshold=1,
            ties=ties,
            negative_grades="pooled",
        ).values[0, :, 0]
        # With equal scores the larger id comes first: x, b, c, a.
        assert found == pytest.approx([(1 / 4 + 2 / 4 * _EPSILON / (1 + 2 * _EPSILON)) / 2, 0.0], abs=1e-12)


def test_they_stay_judged_by_default_and_a_note_says_so():
    np.testing.assert_array_equal(_values("judged", "bpref"), measure(RUNS, QRELS, "bpref", threshold=1).values[0])
    for reading in ("judged", "unjudged", "pooled"):
        notes = measure(RUNS, QRELS, "bpref", threshold=1, negative_grades=reading).notes
        assert scores_facts.GradesBelowZero(3, without=0, reading=reading) in notes


def test_ratings_on_a_scale_around_0_are_not_remarked_on():
    test = cf.Ratings.of(["t1", "t1"], ["a", "b"], [-3.5, 2.0])
    notes = measure(RUNS, test, "bpref").notes
    assert not any(isinstance(note, scores_facts.GradesBelowZero) for note in notes)


def test_a_user_with_nothing_else_is_not_measured_and_a_note_says_so():
    qrels = {**QRELS, "t3": {"a": -1}}
    scores = measure(RUNS, qrels, "AP", threshold=1, negative_grades="unjudged")
    assert scores.n_lists == 2
    assert scores_facts.GradesBelowZero(4, without=1, reading="unjudged") in scores.notes
    with pytest.raises(SettingError, match="nothing is judged"):
        measure(RUNS, {"t1": {"a": -1}}, "AP", negative_grades="pooled")


def test_every_verb_that_takes_a_test_set_takes_the_reading():
    test = read_test(QRELS)
    frame = compare_tools(RUNS, test, "AP", threshold=1, lists="condensed", negative_grades="unjudged")
    assert (
        frame["value"][0]
        == measure(RUNS, test, "AP", threshold=1, lists="condensed", negative_grades="unjudged").average()
    )
    options = {"train": test, "groups": 1, "threshold": 1}
    assert by_popularity(RUNS, test, "bpref", negative_grades="unjudged", **options)["ratings"].to_list() == [4]
    runs = {"one": RUNS["run"], "two": {"t1": ["d", "b", "a"], "t2": ["b"]}}
    metrics = ["infAP(pool=judged)@6", "bpref@6"]
    found = assess(
        runs, test, metrics, threshold=1, scenarios="ratings", sizes=[1.0], samples=2, negative_grades="pooled"
    ).frame("values")
    expected = measure(runs, test, metrics, threshold=1, negative_grades="pooled").average()
    assert sorted(found["value"].to_list()) == pytest.approx(sorted(expected.ravel()))


def test_another_reading_is_refused():
    with pytest.raises(SettingError, match="negative_grades='spam' is not one of judged, unjudged, pooled"):
        measure(RUNS, QRELS, "AP", negative_grades="spam")
