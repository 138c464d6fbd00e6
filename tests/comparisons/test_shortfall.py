"""The verdict where some users have no list."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield.comparisons.samples import as_scores
from cranfield.facts import comparison as comparison_facts

USERS = 100


@pytest.fixture
def test_ratings():
    return cf.Ratings.of([f"u{user:03}" for user in range(USERS)], ["x"] * USERS)


def _lists(users, missed=1_000):
    """Return lists that hold the relevant item, but for every ``missed``-th user."""
    return {f"u{user:03}": ["y"] if user % missed == 1 else ["x"] for user in users}


def _runs():
    return {
        "popularity": _lists(range(USERS), 4),
        "ease": {**_lists(range(36)), "u001": ["x"]},
        "bprmf": _lists(range(36)),
    }


def _served(result):
    return [fact for fact in result.doubts if isinstance(fact, comparison_facts.Served)]


def test_the_shortfall_stands_in_the_verdict_with_another_answer_among_common_users(test_ratings):
    compared = cf.compare(cf.measure(_runs(), test_ratings, "P@1"), unjudged="ignore")
    common = cf.compare(cf.measure(_runs(), test_ratings, "P@1"), coverage="reduced", unjudged="ignore")
    best, shortfall = compared.verdict
    assert best.startswith("P@1: popularity is best: ease is ")
    assert shortfall.startswith(
        "ease and bprmf serve 36 % of the users; a user without a list counts as an empty list. Among the 36 of "
        "100 users that all 3 systems serve: P@1: ease and bprmf lead, "
    )
    assert shortfall.endswith(common.verdict[0].partition(" serve: ")[2])
    assert json.loads(json.dumps(compared.as_dict()))["verdict"] == compared.verdict
    assert compared.doubts[0].brief == "0 to 64 % of users get no list; without them the answer is another one"


def test_where_the_answer_among_common_users_is_the_same_it_is_not_repeated(test_ratings):
    runs = {"a": _lists(range(36)), "b": _lists(range(36), 2)}
    (served,) = _served(cf.compare(cf.measure(runs, test_ratings, "P@1")))
    assert served.among_them is None
    assert str(served).endswith(". Among the 36 of 100 users that both systems serve, the answer is the same.")
    assert served.brief == "64 % of users get no list"


def test_where_nothing_is_relevant_that_is_said_once(test_ratings):
    verdict = cf.compare(cf.measure(_runs(), test_ratings, ["nDCG@1", "P@1"], threshold=2)).verdict
    assert [sentence for sentence in verdict if "nothing can be said" in sentence] == [
        "P@1: nothing can be said, since no test rating is 2 or more; the highest is 1."
    ]


def test_systems_that_serve_the_same_users_are_not_told_apart_by_them(test_ratings):
    runs = {"a": _lists(range(36)), "b": _lists(range(36), 2)}
    (shortfall,) = _served(cf.compare(cf.measure(runs, test_ratings, "P@1")))
    assert str(shortfall).startswith("Both systems serve the same 36 % of the users; ")


def test_users_who_are_served_in_part_are_counted_by_their_lists():
    covered = np.array([[True, True, True, False], [True, True, True, True]])
    values = np.array([[[1.0, 0.0, 1.0, 0.0]], [[0.0, 1.0, 1.0, 1.0]]])
    scores = replace(as_scores({"a": values[0, 0], "b": values[1, 0]}), covered=covered, users=np.int32([0, 0, 1, 1]))
    (shortfall,) = _served(cf.compare(scores))
    assert str(shortfall).startswith("a serves 75 % of the lists; ")


def test_where_nobody_is_served_by_all_that_is_said(test_ratings):
    runs = {"a": _lists(range(36)), "b": _lists(range(36, USERS), 2)}
    (shortfall,) = _served(cf.compare(cf.measure(runs, test_ratings, "P@1")))
    assert str(shortfall).startswith("a serves 36 % and b serves 64 % of the users; ")
    assert str(shortfall).endswith(", and there is no user that both systems serve.")


def test_without_a_shortfall_nothing_is_said(test_ratings):
    runs = {"a": _lists(range(USERS)), "b": _lists(range(USERS), 2)}
    assert cf.compare(cf.measure(runs, test_ratings, "P@1"), unjudged="ignore").doubts == []
    assert cf.compare(cf.measure(_runs(), test_ratings, "P@1"), coverage="reduced", unjudged="ignore").doubts == []
    assert np.array_equal(cf.measure(runs, test_ratings, "P@1").user_coverage, [1.0, 1.0])


def test_what_holds_among_common_users_is_left_out_where_nobody_reads_it(test_ratings, monkeypatch):
    from cranfield.comparisons.comparing import Comparing, compare_scores
    from cranfield.measures.averaging import Averaging

    scores = cf.measure(_runs(), test_ratings, "P@1")
    told, silent = (
        compare_scores(scores, Comparing(unjudged="ignore"), Averaging(), among_served=among) for among in (True, False)
    )
    assert told.doubts
    assert silent.doubts == []
    assert told.frame(detail=True).equals(silent.frame(detail=True))
    monkeypatch.setattr("cranfield.comparisons.comparing._shortfall", None)
    assert cf.discriminative_power(scores).frame().height == 1
