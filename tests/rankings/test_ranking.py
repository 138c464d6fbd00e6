"""How scores become lists, as a group of decisions."""

from __future__ import annotations

import pytest

from cranfield import SettingError
from cranfield.rankings import Ranking
from cranfield.recommenders import recommender


def test_a_value_has_one_form():
    assert Ranking(fill=None, nonrelevant=None, length=None) == Ranking(length="all")
    assert Ranking(fill="knn( k=5 )").fill == "knn(k=5)"
    assert (Ranking(length="all").most(7), Ranking(length=5.0).most(7)) == (7, 5)


def test_a_system_may_be_the_fill():
    popularity = recommender("popularity")
    assert Ranking(fill=popularity).fill is popularity


def test_the_test_ratings_and_the_threshold_are_needed_where_lists_depend_on_them():
    assert Ranking().needs_test is None
    assert Ranking(lists="condensed").needs_test == "lists='condensed'"
    assert Ranking(nonrelevant=5, threshold=4).needs_test == "nonrelevant=5"
    assert Ranking(unrated=0).needs_test == "unrated=0"
    assert [Ranking(relevant=one, threshold=4).needs_relevance for one in ("all", "one")] == [False, True]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fill": "populrity"}, "fill='populrity': there is no system 'populrity'; did you mean 'popularity'?"),
        ({"fill": 5}, "5 is not a system"),
        ({"length": 0}, "length=0 is neither 'all' nor a whole number of at least 1"),
        ({"nonrelevant": "some"}, "nonrelevant='some' is neither 'all' nor a whole number"),
        ({"unrated": -1}, "unrated=-1 is neither 'all' nor a whole number of at least 0"),
        ({"unrated": 5, "nonrelevant": 5, "threshold": 4}, "nonrelevant=5 asks for others; leave one of them out"),
        ({"unrated": 5, "lists": "condensed"}, "lists='condensed' asks for others"),
        ({"unrated": 5, "relevant": "one", "threshold": 4}, "relevant='one' asks for others"),
        ({"unrated": 5, "keep_seen": True}, "keep_seen=True asks for others"),
        ({"candidates": "group"}, "set relevant='one'"),
        ({"relevant": "one", "threshold": None}, "give a threshold, such as threshold=4"),
        ({"threshold": float("nan")}, "threshold=nan is not a number"),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises(SettingError) as error:
        Ranking(**options)
    assert said in str(error.value)
