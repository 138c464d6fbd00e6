"""Windows of time: users are crossed with them, and each window counts the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cranfield import compare
from cranfield.comparisons.by_segment import window_leads
from cranfield.comparisons.samples import as_scores
from cranfield.measures import Averaging
from cranfield.measures.joining import join_folds
from cranfield.tables import Vocabulary

MEANS = Averaging(groups="equal")


def _window(start, users, a, b):
    scores = as_scores({"a": a, "b": b})
    return replace(scores, user_ids=Vocabulary.of(users)).in_window(start)


def _joined(seed=0, windows=3, shift=0.1):
    """Return scores of windows with different users, and the same as rows (window, user, difference)."""
    rng = np.random.default_rng(seed)
    folds, rows = [], []
    for window in range(windows):
        users = sorted(rng.choice(8, size=4 + window % 3, replace=False).tolist())
        a, b = rng.random(len(users)) + shift, rng.random(len(users))
        folds.append(_window(f"2001-01-0{window + 1}", users, a, b))
        rows += [(window, user, x - y) for user, x, y in zip(users, a, b)]
    return join_folds(folds), rows


def test_the_average_is_the_mean_of_the_windows_means():
    scores, rows = _joined()
    means = [np.mean([d for w, _, d in rows if w == window]) for window in range(3)]
    a, b = scores.average(MEANS)[:, 0]
    assert a - b == pytest.approx(np.mean(means))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_user_has_one_sign_for_all_windows(seed):
    scores, rows = _joined(seed)
    sizes = {window: sum(w == window for w, *_ in rows) for window in range(3)}
    users = sorted({user for _, user, _ in rows})
    share = [sum(d / (3 * sizes[w]) for w, u, d in rows if u == user) for user in users]
    seen = abs(sum(share))
    sums = [abs(sum(s * d for s, d in zip(signs, share))) for signs in product((-1, 1), repeat=len(users))]
    expected = np.mean(np.array(sums) >= seen - 1e-12)
    comparison = compare(scores, significance="permutation", groups="equal")
    assert comparison.frame(detail=True)["p"][0] == pytest.approx(expected)


def test_the_windows_are_in_order_with_their_own_averages():
    scores, rows = _joined()
    assert scores.windows == ("2001-01-01", "2001-01-02", "2001-01-03")
    frame = scores.by_group(MEANS)
    first = frame.filter(group="2001-01-01")
    a, b = first["mean"].to_list()
    assert a - b == pytest.approx(np.mean([d for w, _, d in rows if w == 0]))
    assert first["lists"].to_list() == [4, 4]


def test_scores_without_windows_have_none():
    scores = as_scores({"a": [0.1, 0.2], "b": [0.3, 0.1]})
    assert scores.windows == ()
    assert window_leads(scores, Averaging()) == []


def _leads(*means):
    folds = [_window(f"day {k}", [1, 2], [a, a], [b, b]) for k, (a, b) in enumerate(means)]
    (lead,) = window_leads(join_folds(folds), MEANS)
    return lead


def test_a_stable_lead_is_said_to_be_stable_without_a_p_value_below_six_windows():
    lead = _leads((0.4, 0.3), (0.5, 0.3), (0.6, 0.5))
    assert (lead.best, lead.won, lead.lost, lead.p) == ("a", 3, 0, None)
    assert "the winner is stable: a leads in all 3 windows" in lead.sentence
    assert "no p-value with fewer than 6 windows" in lead.sentence


def test_a_latest_window_that_disagrees_is_named():
    lead = _leads((0.9, 0.3), (0.9, 0.3), (0.4, 0.5))
    assert lead.leaders == ("a", "a", "b")
    assert "the latest window disagrees: a leads over all windows and in 2 of 3, but b leads" in lead.sentence


def test_six_windows_have_the_p_value_of_a_sign_test():
    lead = _leads(*[(0.5, 0.3)] * 6)
    assert lead.p == pytest.approx(2 / 64)
    lead = _leads(*[(0.5, 0.3)] * 5, (0.2, 0.3))
    assert lead.p == pytest.approx(14 / 64)
