"""NeuMF and its halves against Cornac's and RecBole's, trained in PyTorch: the same weights, scores and steps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cranfield.data import Ratings
from cranfield.recommenders import recommender

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def ratings():
    rated = np.random.default_rng(4).random((20, 15)) < 0.4
    return Ratings.of(*np.nonzero(rated))


def _cornac(ratings, model):
    """Return Cornac's network, its logit, its last layer, and the tables of users and items and layers of its parts."""
    networks = pytest.importorskip("cornac.models.ncf.backend_pt")
    sizes, layers = (ratings.n_users, ratings.n_items), tuple(model._layers())
    if model.parts == ("product",):
        network = networks.GMF(*sizes, model.factors)
    elif model.parts == ("tower",):
        network = networks.MLP(*sizes, layers)
    else:
        network = networks.NeuMF(*sizes, model.factors, layers)
    halves = {"product": getattr(network, "gmf", network), "tower": getattr(network, "mlp", network)}
    tables = {part: (halves[part].user_embedding, halves[part].item_embedding) for part in model.parts}
    tower = halves["tower"].mlp_model if "tower" in model.parts else []
    return network, lambda users, items: torch.logit(network(users, items)), network.logit, tables, tower


def _recbole(ratings, model):
    """Return the same of RecBole's network, which has both halves and leaves out the one that is not wanted."""
    networks = pytest.importorskip("recbole.model.general_recommender")
    layers = list(model._layers()) if "tower" in model.parts else [2, 1]
    config = {
        "USER_ID_FIELD": "user",
        "ITEM_ID_FIELD": "item",
        "NEG_PREFIX": "neg_",
        "LABEL_FIELD": "label",
        "device": "cpu",
        "mf_embedding_size": model.factors,
        "mlp_embedding_size": layers[0] // 2,
        "mlp_hidden_size": layers[1:],
        "dropout_prob": 0.0,
        "mf_train": "product" in model.parts,
        "mlp_train": "tower" in model.parts,
        "use_pretrain": False,
        "mf_pretrain_path": None,
        "mlp_pretrain_path": None,
    }
    sizes = {"user": ratings.n_users, "item": ratings.n_items}
    network = networks.NeuMF(config, SimpleNamespace(num=sizes.get))
    tables = {
        "product": (network.user_mf_embedding, network.item_mf_embedding),
        "tower": (network.user_mlp_embedding, network.item_mlp_embedding),
    }
    tower = network.mlp_layers.mlp_layers if "tower" in model.parts else []
    return network, network.forward, network.predict_layer, {part: tables[part] for part in model.parts}, tower


def _places(output, tables, tower):
    """Return where each of our weights is in their network: part of a tensor that may be transposed."""
    places = {"output": output.weight.data[0], "bias": output.bias.data}
    for part, (users, items) in tables.items():
        places[f"user.{part} embedding"], places[f"item.{part} embedding"] = users.weight.data, items.weight.data
    for level, layer in enumerate(layer for layer in tower if hasattr(layer, "weight")):
        weights, places[f"offset {level}"] = layer.weight.data.T, layer.bias.data
        if level:
            places[f"layer {level}"] = weights
        else:
            half = len(weights) // 2
            places["user.first"], places["item.first"] = weights[:half], weights[half:]
    return places


@pytest.mark.neural
@pytest.mark.parametrize("peer", [_cornac, _recbole])
@pytest.mark.parametrize("name", ["gmf", "mlp", "neumf"])
def test_scores_and_an_epoch_are_those_of_other_libraries(ratings, name, peer):
    model = recommender(f"{name}(factors=4, epochs=1, batch=32, rate=0.01, negatives=2)", seed=1)
    network, logits, *parts = peer(ratings, model)
    numbers, epoch = model._start(ratings)
    places = _places(*parts)
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
            loss = _loss(network, users[batch], items[batch], labels[batch])
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
        theirs = logits(torch.from_numpy(users), torch.from_numpy(items)).numpy()
    np.testing.assert_allclose(scores.reshape(-1), theirs, atol=1e-4)


def _loss(network, users, items, labels):
    """Return the loss that their programs minimise: RecBole's own, and the cross-entropy of what Cornac predicts."""
    if hasattr(network, "calculate_loss"):
        return network.calculate_loss({"user": users, "item": items, "label": labels})
    return torch.nn.functional.binary_cross_entropy(network(users, items), labels)
