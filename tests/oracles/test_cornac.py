"""NeuMF and its halves against Cornac's, which are trained in PyTorch: the same weights, scores and steps."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.data import Ratings
from cranfield.recommenders import recommender

torch = pytest.importorskip("torch")
networks = pytest.importorskip("cornac.models.ncf.backend_pt")


@pytest.fixture(scope="module")
def ratings():
    rated = np.random.default_rng(4).random((20, 15)) < 0.4
    return Ratings.of(*np.nonzero(rated))


def _theirs(name, ratings, model):
    """Return Cornac's network and where each of our weights is in it: part of a tensor that may be transposed."""
    sizes, layers = (ratings.n_users, ratings.n_items), tuple(model._layers())
    if name == "gmf":
        network = networks.GMF(*sizes, model.factors)
    elif name == "mlp":
        network = networks.MLP(*sizes, layers)
    else:
        network = networks.NeuMF(*sizes, model.factors, layers)
    halves = {"product": getattr(network, "gmf", network), "tower": getattr(network, "mlp", network)}
    places = {"output": network.logit.weight.data[0], "bias": network.logit.bias.data}
    for part in model.parts:
        places[f"user.{part} embedding"] = halves[part].user_embedding.weight.data
        places[f"item.{part} embedding"] = halves[part].item_embedding.weight.data
    if "tower" in model.parts:
        linear = [layer for layer in halves["tower"].mlp_model if hasattr(layer, "weight")]
        half = layers[0] // 2
        places["user.first"], places["item.first"] = linear[0].weight.data.T[:half], linear[0].weight.data.T[half:]
        for level, layer in enumerate(linear):
            places[f"offset {level}"] = layer.bias.data
            if level:
                places[f"layer {level}"] = layer.weight.data.T
    return network, places


@pytest.mark.neural
@pytest.mark.parametrize("name", ["gmf", "mlp", "neumf"])
def test_scores_and_an_epoch_are_those_of_cornac(ratings, name):
    model = recommender(f"{name}(factors=4, epochs=1, batch=32, rate=0.01, negatives=2)", seed=1)
    numbers, epoch = model._start(ratings)
    network, places = _theirs(name, ratings, model)
    assert set(places) == {weight.removeprefix("w.") for weight in numbers if weight.startswith("w.")}
    for weight, place in places.items():
        place.copy_(torch.from_numpy(np.array(numbers[f"w.{weight}"])))
    adam = torch.optim.Adam([*network.parameters()], lr=0.01, eps=1e-8)
    losses = []
    for columns in model._drawn(ratings, 0):
        users, items, labels = (torch.from_numpy(np.ascontiguousarray(column)) for column in columns)
        for first in range(0, len(users), 32):
            batch = slice(first, first + 32)
            adam.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy(network(users[batch], items[batch]), labels[batch])
            loss.backward()
            adam.step()
            losses.append(float(loss.detach()) * len(labels[batch]))
    after, loss = epoch(numbers, 0)
    assert loss == pytest.approx(sum(losses) / (3 * len(ratings)), rel=1e-5)
    for weight, place in places.items():
        np.testing.assert_allclose(after[f"w.{weight}"], place.numpy(), atol=2e-5)
    model._take(after)
    scores = model._score(np.arange(ratings.n_users))
    users, items = np.divmod(np.arange(scores.size), ratings.n_items)
    with torch.no_grad():
        theirs = torch.logit(network(torch.from_numpy(users), torch.from_numpy(items))).numpy()
    np.testing.assert_allclose(scores.reshape(-1), theirs, atol=1e-4)
