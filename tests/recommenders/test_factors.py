"""MF with a pointwise loss: its step, by hand."""

from __future__ import annotations

import numpy as np

from cranfield.data import Ratings
from cranfield.recommenders import recommender


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_an_epoch_is_the_gradient_of_the_logistic_loss_by_hand():
    """Each of two users rated one of two items, so that the item that is drawn for a rating is the other one."""
    train = Ratings.of(["a", "b"], ["x", "y"])
    spelling = "mf-pointwise(factors=3, epochs={}, rate=0.1, negatives=2, regularization=0.3, spread=0.5)"
    model = recommender(spelling.format(1))
    numbers, epoch = model._start(train)
    after, loss = epoch(numbers, 0)
    matches = []
    for order in ([0, 1], [1, 0]):
        now = {name: values.astype(np.float64) for name, values in numbers.items()}
        total = 0.0
        for user in order:
            for item, label in ((user, 1), (1 - user, 0), (1 - user, 0)):
                p, q = now["users"][user].copy(), now["items"][item].copy()
                score = now["bias"][0] + now["user_bias"][user] + now["item_bias"][item] + p @ q
                total -= np.log(_sigmoid(score)) if label else np.log(1 - _sigmoid(score))
                gap = label - _sigmoid(score)
                now["users"][user] += 0.1 * (gap * q - 0.3 * p)
                now["items"][item] += 0.1 * (gap * p - 0.3 * q)
                for bias, place in (("bias", 0), ("user_bias", user), ("item_bias", item)):
                    now[bias][place] += 0.1 * (gap - 0.3 * now[bias][place])
        matches.append(
            all(np.allclose(now[name], after[name], atol=1e-6) for name in now)
            and np.isclose(total / 6, loss, rtol=0.05)
        )
    assert any(matches)


def test_the_loss_falls_and_rated_items_come_first(world):
    train = world.compact()
    model = recommender("mf-pointwise(factors=8, epochs=200, rate=0.1, regularization=0)").fit(train)
    assert model.history[-1]["loss"] < 0.3 * model.history[0]["loss"]
    scores, rated = model.score(np.arange(train.n_users)), train.matrix().toarray() > 0
    assert all(scores[u][rated[u]].mean() > scores[u][~rated[u]].mean() for u in range(train.n_users))


def test_a_user_who_rated_everything_has_nothing_to_draw():
    model = recommender("mf-pointwise(epochs=2)").fit(Ratings.of(["a"] * 3, ["x", "y", "z"]))
    assert np.isfinite(model.score([0])).all()


def test_all_items_are_drawn_if_wanted_even_rated_ones():
    """One user rated the only item, so that an epoch with all items drags its score down again, and one without not."""
    train = Ratings.of(["a"], ["x"])
    up, down = (
        recommender(f"mf-pointwise(epochs=1, negatives=3, rate=0.1, spread=0.01, others={others})").fit(train)
        for others in ("unrated", "all")
    )
    assert up.score([0])[0, 0] > 0 > down.score([0])[0, 0]


def test_users_below_the_threshold_have_scores_of_their_bias_alone(world):
    scores = recommender("mf-pointwise(epochs=2, threshold=4)").fit(world).score([1])
    assert np.isfinite(scores[0, world.item_counts > 0]).all()
