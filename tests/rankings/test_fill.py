"""The scores of what fills a list, against the formula item by item."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.rankings.fill import filled
from cranfield.recommenders import Recommender


class Given(Recommender):
    """A system with scores of its own for every user."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=float)

    def fit(self, train):
        return self

    def score(self, users):
        return self.scores[users]


def _filled(scores, fill):
    scores = np.asarray(scores, dtype=float)
    return filled(scores, Given(fill), np.arange(len(scores), dtype=np.int32))


def test_a_filled_score_is_the_formula():
    rng = np.random.default_rng(3)
    scores, fill = rng.normal(0, 5, (6, 9)), rng.normal(size=(6, 9))
    scores[rng.random((6, 9)) < 0.4] = np.nan
    fill[:, 2] = np.nan
    for found, own, second in zip(_filled(scores, fill), scores, fill):
        low, best, worst = np.nanmin(own), np.nanmax(second), np.nanmin(second)
        below = low - max(1.0, abs(low)) * (1 + (best - second) / (best - worst))
        assert found == pytest.approx(np.where(np.isnan(own), below, own), nan_ok=True)


def test_a_fill_that_has_one_score_for_all_items_fills_them_all():
    assert _filled([[np.nan, 3.0, np.nan]], [[7.0, 7.0, 7.0]]).tolist() == [[0.0, 3.0, 0.0]]


def test_a_list_without_any_score_is_filled_below_0_and_one_without_a_fill_keeps_its_gaps():
    nothing = [np.nan, np.nan, np.nan]
    found = _filled([nothing, [np.nan, 5.0, np.nan]], [[1.0, 2.0, 3.0], nothing])
    assert found == pytest.approx(np.array([[-2.0, -1.5, -1.0], [np.nan, 5.0, np.nan]]), nan_ok=True)
