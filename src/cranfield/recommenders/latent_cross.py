"""LC-NN: a network whose hidden layer is crossed with the context (Beutel et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import About
from cranfield.recommenders.context import SIDES
from cranfield.recommenders.model import setting
from cranfield.recommenders.networks import Weights, dense, rectified
from cranfield.recommenders.pointwise_networks import PointwiseNetwork, context_vector, context_weights
from cranfield.recommenders.registry import register


@register("lc-nn")
@dataclass
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
