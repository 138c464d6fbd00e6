"""ρ, σ, δ and t against loops over the target sets."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases import density

DESIGNS = [
    {},
    {"keep_seen": True},
    {"candidates": "test"},
    {"nonrelevant": 5},
    {"unrated": 4},
    {"lists": "condensed"},
    {"relevant": "one", "nonrelevant": 6},
    {"relevant": "one", "candidates": "test"},
]


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_sizes_and_relevant_items_are_those_of_the_lists_that_are_ranked(design, split):
    (run,) = cf.recommend(split, "random", length="all", threshold=4, **design)
    found = density(split, threshold=4, **design)
    liked = {user: set() for user in range(split.test.n_users)}
    for user, item, value in zip(split.test.users, split.test.items, split.test.values):
        if value >= 4:
            liked[int(user)].add(int(item))
    if design.get("relevant") == "one":
        assert found.sizes.tolist() == run.lengths.tolist()
        assert set(found.relevant.tolist()) == {1}
        return
    tested = set(np.flatnonzero(split.test.user_counts).tolist())
    lists = [
        (int(user), run.items[run.indptr[k] : run.indptr[k + 1]])
        for k, user in enumerate(run.users)
        if int(user) in tested
    ]
    assert found.sizes.tolist() == [len(items) for _, items in lists]
    assert found.relevant.tolist() == [len(liked[user] & set(items.tolist())) for user, items in lists]
    assert found.rho == pytest.approx(np.mean([len(liked[u] & set(i.tolist())) / len(i) for u, i in lists if len(i)]))


def test_sigma_delta_and_t_are_those_of_the_paper(split):
    found = density(split, threshold=4)
    ratings, test = len(split.train) + len(split.test), len(split.test)
    positive = int((split.train.values >= 4).sum() + (split.test.values >= 4).sum())
    users = int(np.count_nonzero(split.test.user_counts))
    t = 1 / np.mean(1 / found.sizes)
    assert found.sigma == test / ratings
    assert found.t == pytest.approx(t)
    assert found.delta == pytest.approx(positive / (t * users))
    assert found.predicted_random == pytest.approx(found.sigma * found.delta)
    assert density(split, threshold=4, relevant="one", nonrelevant=6).predicted_random == pytest.approx(1 / 7)


def test_random_precision_is_rho_to_sampling_error(split):
    found = density(split, threshold=4)
    runs = cf.recommend(split, {f"random {k}": f"random(seed={k})" for k in range(60)}, length=5, jobs=1)
    means = cf.measure(runs, split.test, "P@5", threshold=4).average()[:, 0]
    assert abs(means.mean() - found.rho) < 4 * means.std(ddof=1) / np.sqrt(len(means))


@pytest.mark.parametrize("system", ["popularity", "random", "average"])
def test_at_full_depth_every_system_has_the_precision_rho(system, split):
    (run,) = cf.recommend(split, system, length="all", fill="random")
    measured = cf.measure(run, split.test, "P", threshold=4).average().item()
    assert measured == pytest.approx(density(split, threshold=4).rho)


def test_training_ratings_alone_are_refused(split):
    with pytest.raises(cf.SettingError, match="not a split"):
        density(split.train)
