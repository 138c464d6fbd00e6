"""Propensities: the probability that a pair of a user and an unseen item is in the test part.

Their sum over all unseen pairs of the test users is the number of test ratings. They are fitted on the training ratings
alone: a random part of these is held out, with the same share as the test part has of all ratings, and the model that
predicts it is used for the test part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.splits import Split
from cranfield.tables import UNKNOWN

Floats = NDArray[np.float64]
PropensityKind = Literal["popularity", "logistic"]

PROPENSITY_KINDS = get_args(PropensityKind)
"""The models of propensities that can be fitted."""

_SMOOTH = 0.5  # added to every count, so that unseen events are not impossible
_STEPS = 60


@dataclass(frozen=True, eq=False)
class Propensities:
    """The probability that each pair is in the test part.

    Parameters
    ----------
    kind
        ``popularity``: p = min(1, a (n_i + ½)^β (n_u + ½)^b), a power law of the training ratings of item and user;
        ``logistic``: the logistic function of the same logarithms; ``column``: as given.
    item_part, user_part, shift
        The summands of the logarithm (or log-odds) of p: β log(n_i + ½), b log(n_u + ½), and a constant.
    exponents
        β and b; NaN if propensities are given.
    total
        The sum over all unseen pairs of test users: the number of test ratings. NaN if propensities are given.
    by_user
        The part of that sum for each user.
    given
        The propensities of pairs, if given.
    """

    kind: str
    item_part: Floats
    user_part: Floats
    shift: float
    exponents: tuple[float, float]
    total: float
    by_user: Floats
    given: Ratings | None = None

    def of(self, users: NDArray[Any], items: NDArray[Any]) -> Floats:
        """Return p of pairs, by their codes; NaN for a pair that is not given. An unknown item has no ratings."""
        if self.given is not None:
            places = self.given.places(users, items)
            return np.where(places >= 0, self.given.values.astype(np.float64)[places], np.nan)
        lowest = self.exponents[0] * np.log(_SMOOTH)
        item = np.where(np.asarray(items) == UNKNOWN, lowest, self.item_part[items])
        return _LINKS[self.kind](self.shift + self.user_part[users] + item)


def _capped(logarithm: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(logarithm, 0.0)))


def _logistic(odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0))))


_LINKS: dict[str, Callable[[Floats], Floats]] = {"popularity": _capped, "logistic": _logistic}


def fit_propensities(
    split: Split, kind: PropensityKind = "popularity", *, exponent: float | None = None, seed: int = 0
) -> Propensities:
    """Fit propensities on the training ratings of a split.

    Parameters
    ----------
    split
        The split. Only the users and the number of ratings of its test part are used.
    kind
        ``popularity`` or ``logistic``; see `Propensities`.
    exponent
        β, if it should not be fitted: 1 means that an item is observed in proportion to its popularity, 0 that all
        items are equally likely.
    seed
        Fixes which training ratings are held out for the fit.
    """
    check.one_of("kind", kind, PROPENSITY_KINDS)
    train, test = split.train, split.test
    if len(train) == 0 or len(test) == 0:
        raise SettingError("propensities need training and test ratings; one of them is empty")
    share = len(test) / (len(train) + len(test))
    held_out = stream(check.whole("seed", seed, at_least=0), "propensities").random(len(train)) < share
    if not held_out.any() or held_out.all():
        raise SettingError(f"{len(train):,} training ratings are too few to fit propensities; give a column of them")
    exponents = _fitted(train, held_out, kind)
    if exponent is not None:
        exponents = (check.number("exponent", exponent), exponents[1])
    item_part = exponents[0] * np.log(train.item_counts + _SMOOTH)
    user_part = exponents[1] * np.log(train.user_counts + _SMOOTH)
    users = np.flatnonzero(test.user_counts)
    shift, by_user = _calibrated(train, users, item_part, user_part, float(len(test)), _LINKS[kind])
    return Propensities(kind, item_part, user_part, shift, exponents, float(by_user.sum()), by_user)


def given_propensities(values: Ratings, split: Split) -> Propensities:
    """Return given propensities: ratings whose values, above 0 and at most 1, are the probabilities of the pairs."""
    wrong = np.flatnonzero(~((values.values > 0) & (values.values <= 1)))
    if len(wrong):
        row = wrong[:1]
        user, item = values.user_ids.ids(values.users[row])[0], values.item_ids.ids(values.items[row])[0]
        raise InputError(
            f"the propensity of user {user} and item {item} is {values.values[row].item():g}, and {len(wrong):,} in "
            "all are not above 0 and at most 1",
            remedy="give probabilities, and leave pairs that cannot be observed out of the test set",
        )
    nothing = np.zeros(0)
    known = Propensities("column", nothing, nothing, 0.0, (np.nan, np.nan), np.nan, nothing, _over(values, split))
    missing = int(np.isnan(known.of(split.test.users, split.test.items)).sum())
    if missing:
        raise InputError(
            f"{missing:,} of {len(split.test):,} test ratings have no propensity",
            remedy="give one for every test rating",
        )
    return known


def _over(values: Ratings, split: Split) -> Ratings:
    """Return given propensities in the codes of the split; unknown pairs are left out."""
    user_ids, item_ids = split.test.user_ids, split.test.item_ids
    users, items = user_ids.recoded(values.users, values.user_ids), item_ids.recoded(values.items, values.item_ids)
    known = (users != UNKNOWN) & (items != UNKNOWN)
    return Ratings.from_codes(user_ids, item_ids, users[known], items[known], values.values[known])


def _fitted(train: Ratings, held_out: NDArray[np.bool_], kind: str) -> tuple[float, float]:
    """Return the exponents of item and user that best predict the held-out ratings from the others."""
    kept_items = np.bincount(train.items[~held_out], minlength=train.n_items)
    kept_users = np.bincount(train.users[~held_out], minlength=train.n_users)
    items, users = _groups(kept_items), _groups(kept_users)
    pairs = np.outer(users.counts, items.counts).astype(np.float64)
    np.subtract.at(pairs, (users.of[train.users[~held_out]], items.of[train.items[~held_out]]), 1.0)
    events = np.zeros_like(pairs)
    np.add.at(events, (users.of[train.users[held_out]], items.of[train.items[held_out]]), 1.0)
    item, user = np.log(items.values + _SMOOTH), np.log(users.values + _SMOOTH)
    ones = np.ones_like(pairs)
    design = np.stack([ones, ones * item[None, :], ones * user[:, None]], axis=-1).reshape(-1, 3)
    open_cells = pairs.reshape(-1) > 0
    coefficients = _regression(design[open_cells], events.reshape(-1)[open_cells], pairs.reshape(-1)[open_cells], kind)
    return float(coefficients[1]), float(coefficients[2])


def _regression(design: Floats, events: Floats, pairs: Floats, kind: str) -> Floats:
    """Fit events ~ pairs · link(design · θ) by Newton's method: Poisson with a log link, or logistic."""
    # The coefficient of a constant covariate stays 0, for example if all counts are equal.
    spread = design.max(axis=0) > design.min(axis=0)
    # Centred, so that the constant and the coefficients are not correlated.
    centre = np.average(design, axis=0, weights=pairs)
    part = np.column_stack([np.ones(len(design)), (design - centre)[:, spread]])
    theta = np.zeros(part.shape[1])
    share = max(float(events.sum()), 0.5) / float(pairs.sum())
    theta[0] = np.log(share) if kind == "popularity" else np.log(share / (1.0 - share))
    likelihood = _log_likelihood(part @ theta, events, pairs, kind)
    for _ in range(_STEPS):
        linear = part @ theta
        mean = np.exp(linear) if kind == "popularity" else _logistic(linear)
        weight = pairs * (mean if kind == "popularity" else mean * (1.0 - mean))
        hessian = (part * weight[:, None]).T @ part + 1e-9 * np.eye(part.shape[1])
        step = np.linalg.solve(hessian, part.T @ (events - pairs * mean))
        # The step is halved until the likelihood increases: a full step may overshoot.
        while (new := _log_likelihood(part @ (theta + step), events, pairs, kind)) < likelihood:
            if np.abs(step).max() <= 1e-12:
                break
            step = step / 2.0
        theta, likelihood = theta + step, new
        if np.abs(step).max() < 1e-9:
            break
    coefficients = np.zeros(design.shape[1])
    coefficients[spread] = theta[1:]
    return coefficients


def _log_likelihood(linear: Floats, events: Floats, pairs: Floats, kind: str) -> float:
    """Return the log-likelihood up to a constant."""
    with np.errstate(over="ignore"):
        if kind == "popularity":
            return float(events @ linear - pairs @ np.exp(linear))
        return float(events @ linear - pairs @ np.logaddexp(0.0, linear))


class _Groups(NamedTuple):
    """Users or items grouped by number: the distinct numbers, their counts, and the group of each user or item."""

    values: NDArray[Any]
    counts: NDArray[np.int64]
    of: NDArray[np.int64]


def _groups(numbers: NDArray[Any]) -> _Groups:
    values, of, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return _Groups(values, counts, of.reshape(-1))


def _calibrated(
    train: Ratings,
    users: NDArray[np.int64],
    item_part: Floats,
    user_part: Floats,
    total: float,
    link: Callable[[Floats], Floats],
) -> tuple[float, Floats]:
    """Return the constant for which the unseen pairs of test users sum to ``total``, and the sum of each user."""
    items, tested = _groups(item_part), _groups(user_part[users])
    logs = (tested.values[:, None] + items.values).reshape(-1)
    counts = np.outer(tested.counts, items.counts).astype(np.float64).reshape(-1)
    is_tested = np.zeros(train.n_users, dtype=np.bool_)
    is_tested[users] = True
    own = is_tested[train.users]
    seen = user_part[train.users[own]] + item_part[train.items[own]]
    low, high = -200.0 - float(logs.max()), 200.0 - float(logs.min())
    for _ in range(200):
        middle = (low + high) / 2.0
        expected = float(counts @ link(logs + middle)) - float(link(seen + middle).sum())
        low, high = (middle, high) if expected < total else (low, middle)
        if high - low < 1e-13 * max(1.0, abs(low)):
            break
    sums = link(high + tested.values[:, None] + items.values) @ items.counts.astype(np.float64)
    by_user = np.zeros(train.n_users)
    by_user[users] = sums[tested.of]
    chances = link(high + user_part[train.users] + item_part[train.items])
    by_user -= np.where(by_user > 0, np.bincount(train.users, weights=chances, minlength=train.n_users), 0.0)
    return high, by_user
