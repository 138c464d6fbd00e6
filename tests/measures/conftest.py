"""Small worlds of lists and test ratings, with ties, gaps and unknown items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from cranfield import Ratings
from cranfield.measures import Judgments, judge
from cranfield.rankings import read_run

ITEMS = st.integers(0, 12)


@pytest.fixture(scope="session")
def worlds():
    """Draw (run, test): dictionaries of user → item → score or rating; some test users have no list."""
    scores = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0])
    lists = st.dictionaries(st.integers(0, 4), st.dictionaries(ITEMS, scores, min_size=1), min_size=1)
    profiles = st.dictionaries(ITEMS, st.integers(0, 5), min_size=1, max_size=9)
    return st.tuples(lists, st.dictionaries(st.integers(0, 5), profiles, min_size=1))


@pytest.fixture(scope="session")
def ratings_of():
    """Make ratings of a dictionary of user → item → rating."""

    def make(profiles):
        rows = [(user, item, value) for user, profile in profiles.items() for item, value in profile.items()]
        return Ratings.of(*(list(column) for column in zip(*rows)))

    return make


@pytest.fixture(scope="session")
def judged_of(ratings_of):
    """Meet a run (user → item → score) with a test set (user → item → rating)."""

    def make(run, test, threshold=1.0, ties="trec_eval", train=None, similarity=None):
        train = train if train is None or isinstance(train, Ratings) else ratings_of(train)
        run = read_run(run, name="run", ties=ties)
        return judge(run, Judgments.of(ratings_of(test), float(threshold)), train=train, similarity=similarity)

    return make


@pytest.fixture(scope="session")
def ranked():
    """Order a list as trec_eval does: by score, then by item id as text, both descending."""

    def order(scores):
        return sorted(scores, key=lambda item: (scores[item], str(item)), reverse=True)

    return order


@pytest.fixture(scope="session")
def same():
    """Assert equality to 1e-12, NaN being equal to NaN."""

    def check(found, expected, note=None):
        np.testing.assert_allclose(
            np.asarray(found, dtype=float), np.asarray(expected, dtype=float), rtol=1e-11, atol=1e-12, err_msg=str(note)
        )

    return check
