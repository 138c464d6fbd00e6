"""NeuMF and its halves (He et al. 2017), and LC-NN, crossed with the context (Beutel et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield.data import About
from cranfield.recommenders.model import setting
from cranfield.recommenders.networks import (
    SIDES,
    PointwiseNetwork,
    Weights,
    context_vector,
    context_weights,
    dense,
    rectified,
)
from cranfield.recommenders.registry import register


@dataclass
class CollaborativeFiltering(PointwiseNetwork):
    """The parts of NeuMF: a weighted product of two vectors, and a tower of layers over two others.

    A context goes into the tower: the sum of the vectors of its columns is concatenated with those of the user and the
    item.
    """

    parts: ClassVar[tuple[str, ...]]
    """The parts that it has: ``product``, ``tower`` or both."""

    def _layers(self) -> list[int]:
        """Return the width of each layer; the first is the concatenation of the vectors of user and item."""
        depth = getattr(self, "depth", 0)
        return [self.factors << (depth - level) for level in range(depth + 1)]

    def _initial(self, draw: np.random.Generator, sizes: Mapping[About, int]) -> dict[str, NDArray[np.float32]]:
        layers = self._layers()
        weights = {"bias": np.zeros(len(self.parts) if self._apart else 1, dtype=np.float32)}
        halves = {"product": self.factors, "tower": layers[0] // 2}
        for about, size in sizes.items():
            for part in self.parts:
                small = draw.standard_normal((size, halves[part])) * 0.01
                weights[f"{about}.{part} embedding"] = small.astype(np.float32)
            if "tower" in self.parts:
                weights[f"{about}.first"] = dense(draw, layers[0], layers[1])[: halves["tower"]]
            if about in self._contexts:
                weights |= context_weights(self._contexts[about], self.factors, draw, about)
                weights[f"{about}.context first"] = dense(draw, self.factors, layers[1])
        if "tower" in self.parts:
            weights |= {f"layer {level + 1}": dense(draw, *pair) for level, pair in enumerate(pairwise(layers[1:]))}
            weights |= {f"offset {level}": np.zeros(width, np.float32) for level, width in enumerate(layers[1:])}
        width = self.factors * len(self.parts)
        weights["output"] = (draw.standard_normal(width) / np.sqrt(width)).astype(np.float32)
        return weights

    def _side(self, w: Weights, about: str, embedded: Mapping[str, Any], context: tuple[Any, ...]) -> dict[str, Any]:
        sides = {}
        if "product" in self.parts:
            sides["product"] = embedded[f"{about}.product embedding"]
        if "tower" in self.parts:
            sides["tower"] = embedded[f"{about}.tower embedding"] @ w[f"{about}.first"]
            if context:
                sides["tower"] = sides["tower"] + context_vector(w, about, context) @ w[f"{about}.context first"]
        return sides

    def _joined(self, w: Weights, user: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
        if self._apart:
            # Each part has learned to score by itself, so halving both keeps the scale of the scores.
            return sum(self._alone(w, user, item)) / len(self.parts)
        return sum(self._parts(w, user, item), w["bias"])

    def _alone(self, w: Weights, user: Mapping[str, Any], item: Mapping[str, Any]) -> list[Any]:
        """Return the scores of each part."""
        return [scores + w["bias"][place] for place, scores in enumerate(self._parts(w, user, item))]

    def _parts(self, w: Weights, user: Mapping[str, Any], item: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the contribution of each part to the scores."""
        if "product" in self.parts:
            yield (user["product"] * item["product"]) @ w["output"][: self.factors]
        if "tower" in self.parts:
            hidden = rectified(user["tower"] + item["tower"] + w["offset 0"])
            for level in range(1, len(self._layers()) - 1):
                hidden = rectified(hidden @ w[f"layer {level}"] + w[f"offset {level}"])
            yield hidden @ w["output"][-self.factors :]


@register("neumf")
class NeuralFactors(CollaborativeFiltering):
    r"""Neural matrix factorisation: a product of vectors and a multi-layer perceptron, joined by a last layer.

    .. math::
        x_{ui} = h \cdot \bigl[p_u \odot q_i ; \; φ_L(\cdots φ_1([p'_u ; q'_i]))\bigr] + b, \qquad
        φ_l(z) = \max(0, W_l z + b_l)

    (X. He, L. Liao, H. Zhang, L. Nie, X. Hu and T.-S. Chua 2017, Neural collaborative filtering, WWW). The tower halves
    its width from layer to layer, down to ``factors``. With ``pretraining``, the product and the tower are first
    trained separately, and then together, starting with half of the score each, as in the paper. NaN for users and
    items without training ratings, except for users whose context is known.

    Parameters
    ----------
    factors, depth
        The length of the vectors of the product and of the last layer, and the number of layers of the tower: with 8
        factors and 3 layers its widths are 64, 32, 16 and 8, where 64 is the width of the vectors of the user and the
        item.
    epochs, pretraining, rate, batch
        The number of passes, how many of them train the product and the tower separately, the learning rate of Adam,
        and the number of examples per step. None means at most 20 epochs if a validation part can stop the training;
        otherwise half of the average number of ratings per user, from 2 to 20.
    negatives, threshold
        For rankings: the number of items drawn from outside the profile for each rating in every epoch, and the lowest
        rating that counts; None for all.
    regularization
        λ, the weight of the squared vectors of the examples.
    target
        ``ranking`` learns to distinguish rated items from others, by cross-entropy; ``rating`` to predict ratings, by
        squared error.
    context
        Whose features are used: ``users``, ``items`` or ``both``; none by default.
    patience
        With a validation part: stop after this many epochs without improvement; 0 for never.
    seed
        Seed of the initial weights, the order of the examples and the drawn items.
    """

    parts = ("product", "tower")

    depth: int = setting(3, low=1, high=10)
    pretraining: int = setting(0, low=0)
    context: str | None = setting(None, choices=tuple(SIDES), or_none=str)


@register("gmf")
class GeneralizedFactors(CollaborativeFiltering):
    r"""Generalised matrix factorisation: NeuMF with only the product of vectors.

    .. math:: x_{ui} = h \cdot (p_u \odot q_i) + b

    Parameters
    ----------
    factors, epochs, rate, batch, negatives, regularization, target, threshold, patience, seed
        As of ``neumf``.
    """

    parts = ("product",)


@register("mlp")
class TowerOfLayers(CollaborativeFiltering):
    r"""Multi-layer perceptron: NeuMF with only the tower of layers over the vectors of user and item.

    .. math:: x_{ui} = h \cdot φ_L(\cdots φ_1([p'_u ; q'_i])) + b

    Parameters
    ----------
    factors, depth, epochs, rate, batch, negatives, regularization, target, context, threshold, patience, seed
        As of ``neumf``.
    """

    parts = ("tower",)

    depth: int = setting(3, low=1, high=10)
    context: str | None = setting(None, choices=tuple(SIDES), or_none=str)


@register("lc-nn")
class LatentCross(PointwiseNetwork):
    r"""Latent cross: a network over the vectors of user and item whose hidden layer is multiplied by the context.

    .. math::
        h = \max\bigl(0, W [p_u ; q_i ; p_u \odot q_i] + b\bigr), \qquad
        h' = \Bigl(1 + \sum_c w_c\Bigr) \odot h, \qquad
        x_{ui} = v \cdot \max(0, W' h' + b') + b''

    where c runs over the columns of the context and w_c is the vector of a category, or that of a number times the
    number (A. Beutel, P. Covington, S. Jain, C. Xu, J. Li, V. Gatto and E. H. Chi 2018, Latent cross: making use of
    context in recurrent recommender systems, WSDM). Without a context h' is h. Aftab and Ramampiaro (2022) use it over
    a convolutional network whose wiring they do not give; here the network under the cross is dense. NaN for users and
    items without training ratings, except for users whose context is known.

    Parameters
    ----------
    factors, hidden
        The length of the vectors, and the width of the hidden layers.
    epochs, rate, batch, negatives, regularization, target, context, threshold, patience, seed
        As of ``neumf``.
    """

    factors: int = setting(16, low=1)
    hidden: int = setting(64, low=1)
    context: str | None = setting(None, choices=tuple(SIDES), or_none=str)

    def _initial(self, draw: np.random.Generator, sizes: Mapping[About, int]) -> dict[str, NDArray[np.float32]]:
        first = dense(draw, 3 * self.factors, self.hidden).reshape(3, self.factors, self.hidden)
        weights = {"product.first": first[2], "layer": dense(draw, self.hidden, self.hidden)}
        for about, size, own in (("user", sizes["user"], first[0]), ("item", sizes["item"], first[1])):
            weights[f"{about}.embedding"] = (draw.standard_normal((size, self.factors)) * 0.1).astype(np.float32)
            weights[f"{about}.first"] = own
            if about in self._contexts:
                weights |= context_weights(self._contexts[about], self.hidden, draw, about)
        weights["output"] = (draw.standard_normal(self.hidden) / np.sqrt(self.hidden)).astype(np.float32)
        weights |= {name: np.zeros(self.hidden, dtype=np.float32) for name in ("offset 0", "offset 1")}
        weights["bias"] = np.zeros(1, dtype=np.float32)
        return weights

    def _side(self, w: Weights, about: str, embedded: Mapping[str, Any], context: tuple[Any, ...]) -> dict[str, Any]:
        vectors = embedded[f"{about}.embedding"]
        sides = {"vectors": vectors, "hidden": vectors @ w[f"{about}.first"]}
        return {**sides, "cross": context_vector(w, about, context)} if context else sides

    def _joined(self, w: Weights, user: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
        product = (user["vectors"] * item["vectors"]) @ w["product.first"]
        hidden = rectified(user["hidden"] + item["hidden"] + product + w["offset 0"])
        crosses = [side["cross"] for side in (user, item) if "cross" in side]
        if crosses:
            hidden = hidden * (1 + sum(crosses))
        return rectified(hidden @ w["layer"] + w["offset 1"]) @ w["output"] + w["bias"]
