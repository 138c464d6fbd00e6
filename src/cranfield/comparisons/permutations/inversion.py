"""How likely two sign patterns are to have the same sum, which an inversion without a common step cannot detect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.comparisons.permutations.enumeration import drawn_sums
from cranfield.comparisons.sample import ROUNDING, Floats, slices_of_users

# This many random patterns form 2^23 pairs, which detect probabilities above about 2e-7.
_PATTERNS = 4096
# Subsets of these numbers of users are tried first; if one has no ties, all users are taken to have none.
_USERS = (64, 512)
# Up to this many users, the sign of each is drawn; above, the number of plus signs among the users of each size, for
# the sizes that most users have.
_MOST_SIGNS, _MOST_SIZES = 4096, 256


def tie_chance(ordered: Floats, slack: float, step: float = 0.0) -> float:
    """Return the probability that two sign patterns give the same |Σ ±d_u|, for ascending, non-zero differences.

    ``slack`` is how far rounding may move the sum of any of the differences, so |Σ ±d_u| moves by twice that.

    Few distinct values give many equal sums, even without a common step: with one relevant item nDCG is 1 or 1/log₂ 3
    or ..., and patterns with the same count of each value have the same sum. Random patterns are drawn, and the pairs
    with equal sums are counted. Ties are at least as common among fewer users, so a subset may be enough to show
    that ties are rare; the same holds for a subset of the sizes. With a step h, any sums on that lattice tie with
    probability 2h / σ√π; this is not reported.
    """
    for users in _USERS:
        if users < len(ordered):
            drawn = ordered[np.linspace(0, len(ordered) - 1, users).astype(np.intp)]
            if _met(drawn, slack, step) == 0.0:
                return 0.0
    return _met(ordered, slack, step)


def _met(d: Floats, slack: float, step: float) -> float:
    sums = np.sort(np.abs(_random_sums(d) if len(d) <= _MOST_SIGNS else _sums_of_sizes(d)))
    starts = np.flatnonzero(np.diff(sums, prepend=-np.inf) > 2 * slack)
    runs = np.diff(starts, append=len(sums)).astype(np.float64)
    chance = float((runs * (runs - 1)).sum()) / (_PATTERNS * (_PATTERNS - 1))
    on_the_lattice = 2 * step / float(np.sqrt(np.pi * (d**2).sum()))
    return chance if chance > 2 * on_the_lattice else 0.0


def _random_sums(d: Floats) -> Floats:
    """Return Σ ±d_u under random patterns: a random byte selects one of the 256 sums of each eight users."""
    eights = np.append(d, np.zeros(-len(d) % 8)).reshape(-1, 8)
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    sums = np.zeros(_PATTERNS)
    # The number is rounded up to a power of 2, so that pairs with different numbers of users share the cached draws.
    for eight, byte in zip(eights, _bytes(1 << (len(eights) - 1).bit_length())):
        sums += (signs * eight).sum(axis=1)[byte]
    return sums


def _sums_of_sizes(ordered: Floats) -> Floats:
    """Return Σ ±d_u under random patterns, over the users of the most common sizes."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > ROUNDING * ordered)
    counts = np.diff(starts, append=len(ordered))
    most = np.argsort(-counts, kind="stable")[:_MOST_SIZES]
    return drawn_sums(ordered[starts[most]], counts[most], _PATTERNS, stream(0, "compare", "ties"))


@cache
def _bytes(rows: int) -> NDArray[np.uint8]:
    """Return rows of random bytes, one byte per pattern; the same in every call."""
    raw = stream(0, "compare", "ties").bit_generator.random_raw(rows * _PATTERNS // 8)
    return np.asarray(raw, dtype="<u8").view(np.uint8).reshape(rows, _PATTERNS)


REACH = 9.0
"""The sum runs over 0 < θ < REACH / σ, and S is assumed to lie within REACH σ."""
FAR = 8.5
"""Sums beyond FAR σ have p < 5e-16 (Hoeffding) and are not computed by inversion."""
P_ROUNDING = 1e-13
"""Rounding error of any p-value computed here."""

_NODES = 26  # δ σ = REACH / 26 < 2π / (FAR + REACH)
_TERMS = 36
_TAU = (np.arange(_NODES) + 0.5) / _NODES
# Beyond the end of the sum, φ is checked up to this many times the end and up to this many times the slowest period.
_WATCHED_REACHES, _WATCHED_PERIODS = 16, 64
_WATCHED_NODES, _WATCHED_USERS = 4096, 100
_SAFETY = 10
# Maximum number of nodes, and of cosines (distinct differences × nodes); more nodes if differences are mostly equal.
_MOST_NODES, _MOST_COSINES = 8192, 1 << 27
_MOST_NODES_IF_EQUAL, _MOST_COSINES_IF_EQUAL = 1 << 20, 1 << 24
# A difference is large if it is this many standard deviations of the others; the signs of 12 large ones are enumerated.
_LARGE, _MOST_LARGE = 0.5, 12
# Differences are mostly equal if there are this many users per distinct difference.
_EQUAL = 16


def _log_cos_coefficients() -> Floats:
    """Return c_m of −log cos x = Σ c_m x^2m, c_m = (4^m − 1) ζ(2m) / (m π^2m)."""
    from scipy.special import zeta

    m = np.arange(1, _TERMS + 1)
    coefficients: Floats = (4.0**m - 1) * zeta(2.0 * m) / (m * np.pi ** (2.0 * m))
    return coefficients


def invert(d: Floats, s: Floats, step: float = 0.0) -> Floats:
    """Return P(|S| ≥ s) for each row of absolute differences ``d`` (pairs × users), for s ≤ FAR σ.

    The sum of log cos over users is taken from the power sums Σ d_u^2m, which cost one multiplication per user and
    term; the few users (at most REACH²) with d_u REACH > σ are added one by one.
    """
    sigma = np.sqrt(np.einsum("pu,pu->p", d, d))
    first, *others = (CosineSums.of(d[:, part], sigma) for part in slices_of_users(d.shape[1]))
    return sum(others, first).invert(s, sigma, step)


@dataclass(frozen=True, eq=False)
class CosineSums:
    """The terms of log φ at the nodes of `invert`, as sums over users: sums over parts of the users can be added."""

    powers: Floats  # pairs × terms: Σ x^2m over the users with x = d REACH / σ of at most 1
    log_cosines: Floats  # pairs × nodes: Σ log|cos(x τ)| over the other users
    negative: Floats  # how many of their cosines are negative

    @classmethod
    def of(cls, d: Floats, sigma: Floats) -> CosineSums:
        """Compute the sums of absolute differences (pairs × users), with the σ of all users."""
        x = d * (REACH / sigma)[:, None]
        rows, columns = np.nonzero(x > 1.0)
        large = x[rows, columns]
        x[rows, columns] = 0.0

        np.square(x, out=x)
        power, sums = x.copy(), np.empty((len(d), _TERMS))
        for m in range(_TERMS):
            sums[:, m] = power.sum(axis=1)
            if m + 1 < _TERMS:
                power *= x

        cosines = np.cos(large[:, None] * _TAU)
        log_cosines, negative = np.zeros((len(d), _NODES)), np.zeros((len(d), _NODES))
        np.add.at(log_cosines, rows, np.log(np.maximum(np.abs(cosines), 1e-300)))
        np.add.at(negative, rows, cosines < 0)
        return cls(sums, log_cosines, negative)

    def __add__(self, other: CosineSums) -> CosineSums:
        return CosineSums(
            self.powers + other.powers, self.log_cosines + other.log_cosines, self.negative + other.negative
        )

    def invert(self, s: Floats, sigma: Floats, step: float = 0.0) -> Floats:
        """Return P(|S| ≥ s) of each pair, for s ≤ FAR σ."""
        log_phi = -(self.powers * _log_cos_coefficients()) @ _TAU ** (2 * np.arange(1, _TERMS + 1)[:, None])
        phi = np.exp(log_phi + self.log_cosines) * (1 - 2 * (self.negative % 2))
        theta = _TAU * (REACH / sigma)[:, None]
        return 1 - (2 * REACH / _NODES / np.pi) * (phi * _kernel(theta, s[:, None], step)).sum(axis=1) / sigma


def few_large(ordered: Floats) -> int:
    """Return how many of ascending differences are large beside all smaller ones together; 0 if these are too many."""
    top = ordered[-_MOST_LARGE - 1 :]
    below = (ordered[: -len(top)] ** 2).sum() + np.append(0.0, np.cumsum(top[:-1] ** 2))
    large = np.flatnonzero((top > _LARGE * np.sqrt(below)) & (below > 0))
    return len(top) - int(large[0]) if len(large) and large[0] > 0 else 0


def invert_apart(ordered: Floats, large: int, s: float, slack: float, step: float = 0.0) -> tuple[float, float, float]:
    """Return P(|S| ≥ s), its error and that by ties for one pair, of which a few ``large`` differences hide the others.

    For every sum c of the signed large differences, the other differences have to add up to T ≥ s − c or T ≤ −s − c.
    c and −c are equally likely, so P(|S| ≥ s) is the mean of 2 P(T ≥ s − c), with T by inversion. Where s − c is far
    from every T, the probability is 0 or 1 without an error.
    """
    others, sums = ordered[:-large], np.zeros(1)
    for size in ordered[-large:]:
        sums = np.concatenate([sums - size, sums + size])
    sigma = float(np.sqrt((others**2).sum()))
    enough = s - sums
    # P(T ≥ −x) is the probability of T < x, the next sum below which is 2h lower.
    least = np.where(enough > 0, enough, 2 * step - enough)
    near = np.clip(least, 0.0, FAR * sigma)
    tails = CosineSums.of(others[None], np.array([sigma])).invert(near, np.full(len(near), sigma), step) / 2
    tails = np.where(least > FAR * sigma, 0.0, tails)
    in_reach = float((np.abs(enough) <= FAR * sigma + 2 * slack).mean())
    missed = in_reach * left_over(others, REACH / sigma, step) if in_reach else 0.0
    if 4 * step * REACH > np.pi * sigma:  # so few users that the lattice ends before the nodes, or soon after
        missed = in_reach
    tied = in_reach * left_to_ties(others, slack, step) if in_reach else 0.0
    return float(2 * np.where(enough > 0, tails, 1 - tails).mean()), missed + P_ROUNDING, tied


def _kernel(theta: Any, s: Any, step: float) -> Floats:
    value: Floats = np.sin(s * theta) / theta if step == 0 else step * np.sin((s - step) * theta) / np.sin(step * theta)
    return value


def left_over(ordered: Floats, end: float, step: float = 0.0) -> float:
    """Return how much the nodes beyond ``end`` may add to the p-value of ascending, non-zero differences.

    This is (2/π) ∫ |φ(θ)| / θ dθ, by a sum over nodes from ``end`` to 16 times ``end`` or 64 half periods of the
    largest difference, whichever is further. At each node, |φ| is at most the product over any subset of the users: if
    the differences have many distinct sizes, a hundred users, spread over the sizes, are multiplied out, and of the
    others those with d_u θ < π/2 contribute exp(−d_u² θ² / 2). φ is not evaluated between these nodes, so the sum is
    multiplied by ten; tests check this against enumeration. `left_to_ties` covers φ further out.
    """
    sizes, counts = np.unique(ordered, return_counts=True)
    far = max(_WATCHED_REACHES * end, _WATCHED_PERIODS * np.pi / sizes[-1])
    if step:
        far = min(far, np.pi / (2 * step))
    spacing = 0.5 / np.sqrt((counts * sizes**2).sum())
    is_cheap = (far - end) / spacing * len(sizes) <= _MOST_COSINES_IF_EQUAL
    if is_cheap and mostly_equal(ordered):
        # All users are multiplied out, at nodes so close that no peak is missed.
        theta = np.arange(end + spacing / 2, far, spacing)
        phi = _size_of_phi(sizes, counts, theta)
    else:
        theta, phi, spacing = _phi_of_some(ordered, sizes, counts, end, far)
    # On a lattice, 1/θ approximates h / sin(hθ), which is at most π/2 times as large.
    missed = (1.0 if step else 2 / np.pi) * spacing * (phi / theta).sum()
    return _SAFETY * float(missed)


def _size_of_phi(sizes: Floats, counts: NDArray[np.int64], theta: Floats) -> Floats:
    """Return |φ| at nodes in single precision, which is enough for a bound."""
    logs = np.zeros(len(theta), dtype=np.float32)
    for size, count in zip(sizes.astype(np.float32), counts.astype(np.float32)):
        cosines = np.cos(size * theta.astype(np.float32))
        logs += count * np.log(np.maximum(np.abs(cosines, out=cosines), 1e-30, out=cosines), out=cosines)
    return np.exp(logs.astype(np.float64))


def _phi_of_some(
    ordered: Floats, sizes: Floats, counts: NDArray[np.int64], end: float, far: float
) -> tuple[Floats, Floats, float]:
    """Return nodes between ``end`` and ``far``, an upper bound on |φ| at each, and their spacing; see `left_over`."""
    watched = np.linspace(0, len(sizes) - 1, min(len(sizes), _WATCHED_USERS)).astype(np.intp)
    # One user of each size, and further users in proportion if there are fewer sizes.
    users = np.linspace(0, len(ordered) - 1, _WATCHED_USERS - len(watched)).astype(np.intp)
    more = np.bincount(np.searchsorted(np.cumsum(counts), users, side="right"), minlength=len(sizes))
    times = np.minimum(1 + more, counts)[watched]
    d = np.repeat(sizes[watched], times)
    spacing = max(0.5 / np.sqrt((d**2).sum()), (far - end) / _WATCHED_NODES)
    theta = np.arange(end + spacing / 2, far, spacing)
    squares = counts * sizes**2
    squares[watched] -= times * sizes[watched] ** 2
    smaller = np.searchsorted(sizes, np.pi / 2 / theta)
    below = np.where(smaller > 0, np.cumsum(squares, out=squares)[smaller - 1], 0.0)
    # Users × nodes, in single precision: a product down the columns is many times faster than along the rows.
    cosines = np.multiply.outer(d.astype(np.float32), theta.astype(np.float32))
    np.cos(cosines, out=cosines)
    phi = np.abs(np.multiply.reduce(cosines, axis=0)) * np.exp(-0.5 * theta**2 * np.maximum(below, 0.0))
    return theta, phi, spacing


def left_to_ties(ordered: Floats, slack: float, step: float = 0.0) -> float:
    """Return how much equal sums may add to the p-value of ascending, non-zero differences.

    Inversion without a step counts a tie at the observed sum as one half. If many sums are equal, φ also has peaks far
    beyond the range that `left_over` checks. Half the probability that two sums are equal is multiplied by ten here
    too, since ties are likelier at some sums than at others. Sums within rounding of each other are equal; ``slack`` is
    how far rounding may move a sum.
    """
    return _SAFETY * tie_chance(ordered, slack, step) / 2


def mostly_equal(ordered: Floats) -> bool:
    """Return whether ascending differences have few distinct sizes, as those of two-valued metrics and a margin."""
    return bool(_EQUAL * (1 + np.count_nonzero(np.diff(ordered))) <= len(ordered))


def invert_further(d: Floats, s: float, step: float, tolerance: float) -> tuple[float, float]:
    """Return P(|S| ≥ s) and its error for one pair whose φ is not negligible at 9/σ.

    It is the same sum over more nodes, doubled until the error is within ``tolerance`` or there are 8,192 nodes: more
    if there are few distinct differences, and fewer if there are very many large ones.
    """
    ordered, sigma = np.sort(d), float(np.sqrt((d**2).sum()))
    sizes, counts = np.unique(ordered, return_counts=True)
    delta = 2 * np.pi / (s + REACH * sigma)
    large = int(np.count_nonzero(sizes * delta * _MOST_NODES > 1))
    most = min(_MOST_NODES, _MOST_COSINES // max(large, 1))
    if mostly_equal(ordered):
        most = min(_MOST_NODES_IF_EQUAL, max(_MOST_COSINES_IF_EQUAL // len(sizes), most))
    phi, total, done, error = _Phi(sizes, counts), 0.0, 0, np.inf
    nodes, last = 64, most
    if step:  # θ ends at π/2h, and the nodes fill that range evenly
        last = int(np.ceil(np.pi / (2 * step * delta)))
        delta = np.pi / (2 * step * last)
    while error > tolerance and done < min(last, most):
        nodes, at_once = min(nodes, last), max(64, nodes // 16)
        for start in range(done, nodes, at_once):
            theta = (np.arange(start, min(start + at_once, nodes), dtype=np.float64) + 0.5) * delta
            total += float((phi.at(theta) * _kernel(theta, s, step)).sum())
        done, nodes = nodes, 2 * nodes
        error = 0.0 if step and done == last else left_over(ordered, done * delta, step)
    return 1 - (2 * delta / np.pi) * total, error + P_ROUNDING


class _Phi:
    """φ of differences of some ascending sizes and the number of users that have each.

    log cos of small angles is taken from power sums, which serve many nodes, and that of others one by one.
    """

    def __init__(self, sizes: Floats, counts: NDArray[np.int64]) -> None:
        self._sizes, self._counts = sizes, counts
        self._upto, self._small, self._powers = 0.0, 0, np.zeros(_TERMS)

    def at(self, theta: Floats) -> Floats:
        """Return φ at ascending nodes."""
        if theta[-1] > self._upto:
            self._sum_powers(2 * theta[-1])
        log_phi = -(self._powers * _log_cos_coefficients()) @ (theta / self._upto) ** (
            2 * np.arange(1, _TERMS + 1)[:, None]
        )
        negative = np.zeros(len(theta), dtype=np.int64)
        at_once = max(1, (1 << 18) // len(theta))
        for start in range(self._small, len(self._sizes), at_once):
            part = slice(start, start + at_once)
            logs, are_negative = _log_cosines(np.multiply.outer(theta, self._sizes[part]))
            log_phi += (logs * self._counts[part]).sum(axis=1)
            negative += (are_negative * self._counts[part]).sum(axis=1)
        phi: Floats = np.exp(log_phi) * (1 - 2 * (negative % 2))
        return phi

    def _sum_powers(self, upto: float) -> None:
        """Sum the powers of the angles that are at most 1 up to a node."""
        self._upto, self._small = upto, int(np.searchsorted(self._sizes * upto, 1.0, side="right"))
        squares = (self._sizes[: self._small] * upto) ** 2
        power = self._counts[: self._small].astype(np.float64)
        for m in range(_TERMS):
            power *= squares
            self._powers[m] = power.sum()


def _log_cosines(angles: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return log|cos x|, and where cos x is negative.

    Near 1, the logarithm of a rounded cosine has an absolute error of 1e-16, which many equal differences multiply;
    log(1 − sin² x) / 2 has not.
    """
    cosines = np.cos(angles)
    sines = np.sin(angles, out=angles)
    with np.errstate(divide="ignore"):
        near = 0.5 * np.log1p(-np.square(sines, out=sines))
    logs = np.where(np.abs(cosines) > 0.5, near, np.log(np.maximum(np.abs(cosines), 1e-300)))
    return logs, cosines < 0


_FEW_SIZES = 3  # that are looked at first
_VANISHED = -70.0  # the logarithm of a φ that changes no sum


def invert_lattice(counts: Floats, multiples: Floats, s: Floats, n_nodes: int) -> Floats:
    """Return P(|S| ≥ s) for integer differences by summing over every node of the lattice.

    The ``counts``, pairs × distinct sizes, say how many users have a difference of so many steps; the ``multiples`` are
    these sizes, ``s`` the observed sums, both in steps, and ``n_nodes`` the nodes in 0 < θ < π/2 (`lattice_nodes`).
    """
    inside = np.zeros(len(counts))
    size = max(1, (1 << 20) // len(multiples))
    few = np.argsort(-counts.min(axis=0), kind="stable")[:_FEW_SIZES]
    for start in range(0, n_nodes, size):
        theta = (np.arange(start, min(start + size, n_nodes)) + 0.5) * (np.pi / 2 / n_nodes)
        # Where the commonest sizes alone make φ vanish, the others need not be looked at: nearly everywhere, for many.
        matter = (counts[:, few] @ _log_cosines(np.multiply.outer(multiples[few], theta))[0]).max(axis=0) > _VANISHED
        theta = theta[matter]
        log_cosines, are_negative = _log_cosines(np.multiply.outer(multiples, theta))
        log_phi = counts @ log_cosines
        negative = counts @ are_negative.astype(np.float64)
        phi = np.exp(log_phi) * (1 - 2 * (negative % 2))
        inside += (phi * _kernel(theta[None, :], s[:, None], 1.0)).sum(axis=1)
    return 1 - inside / n_nodes


def lattice_nodes(s: Floats, sigma: Floats) -> int:
    """Return how many nodes in 0 < θ < π/2 keep every pair's error below 1e-17 (all in steps)."""
    return int(np.ceil(((s + REACH * sigma).max() + 2) / 4))


def smallest(n: NDArray[np.int64]) -> Floats:
    """Return the smallest p-value possible with ``n`` non-zero differences, 2^(1−n), or the smallest float."""
    return np.exp2(np.minimum(np.maximum(1.0 - n, -1022.0), 0.0))
