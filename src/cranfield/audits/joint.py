"""The joint test: what all universes of a question say together about two systems.

Given the trained models and independent users, the null hypothesis is that E[x_u] = 0 in every universe. Swapping two
systems for a user turns the sign of x_u in every universe at once, so one matrix of user signs times users × universes
gives the joint distribution of all z = Σx/√Σx² (`Terms`). Four statistics of the distinct universes are tested:

- ``median``: |median z|;
- ``net``: the share of universes where one system is significantly better minus the share where the other is, absolute;
- ``either``: the share of universes where one is significantly better, one way or the other;
- ``largest``: max |z| (r₀/r)², with r = mean |x|³/(mean x²)^{3/2} and r₀ the smallest r of the universes. Where a few
  users decide, r is large and the signs of x are far from symmetric; a plain max |z| would pick these universes and
  reject too often. r does not change with signs.

p = (1 + #{T* ≥ T})/(1 + B). Rejecting says that the systems differ somewhere, not who leads; where decisions turn the
winner round, ``median`` and ``net`` see nothing and ``either`` does. Nothing is said about retraining, unless the
observed z are divided by what seeds add to the spread of users (`cranfield.audits.chance.spread_by_chance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._progress import progress
from cranfield._random import stream
from cranfield.audits.leads import Floats, critical_z
from cranfield.audits.terms import Singles
from cranfield.recommenders.work import blas_threads, in_threads

DRAWS = 10_000
"""How many times the signs are drawn, by default."""

STATISTICS = ("median", "net", "either", "largest")
CHANCES = tuple(f"{what} of {over}" for over in ("cells", "universes") for what in ("leads", "significantly", "either"))

# A block of draws is one product with one thread, so that the sums do not depend on the number of threads.
_BLOCK = 250
# What rounding may add to a statistic: a draw that comes so near to the observed one counts as equal.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Scope:
    """Universes that are looked at together.

    Parameters
    ----------
    universes
        Their numbers.
    weights
        What each counts in shares of cells; they sum to 1.
    """

    universes: NDArray[np.int64]
    weights: Floats


@dataclass(frozen=True)
class JointTest:
    """What the universes of a scope say together, and what chance gives.

    Parameters
    ----------
    universes, draws
        How many distinct universes were tested, and with how many draws.
    observed, p
        The four statistics and their p-values, by name.
    retrained
        The p-values with the spread of chance options added to that of users; None without chance options.
    expected
        The mean of each statistic under the null.
    often
        Shares that the draws reach in 5 % of the cases, by what is counted (`CHANCES`): of the cells and of the
        distinct universes, those that one system leads, whichever it is; leads significantly; and those that are
        significant one way or the other.
    """

    universes: int
    draws: int
    observed: dict[str, float]
    p: dict[str, float]
    retrained: dict[str, float] | None
    expected: dict[str, float]
    often: dict[str, float]


def joint_tests(
    x: Singles,
    users: NDArray[np.int64],
    scopes: Sequence[Scope],
    *,
    spread: Floats | None = None,
    draws: int = DRAWS,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[JointTest]:
    """Test the universes of each scope jointly, x being universes × users; all scopes see the same signs.

    With ``spread``, a number of at least 1 per universe, the observed z divided by it are tested as well.
    """
    squares = np.einsum("uv,uv->u", x, x, dtype=np.float64)
    unit = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(x)), where=squares > 0).astype(np.float32)
    columns = np.multiply(x, unit[:, None]).T  # z of a draw is its signs times these
    critical = critical_z(users, alpha).astype(np.float32)
    heaviness = _heaviness(x, squares, users)

    def block(number: int) -> list[Floats]:
        z = user_signs(columns.shape[0], number, seed) @ columns
        return [_statistics(z, critical, heaviness, scope) for scope in scopes]

    numbers = range(-(-draws // _BLOCK))
    with progress("Joint test", total=len(numbers), unit="blocks") as bar, blas_threads(1):
        blocks = in_threads(block, numbers, bar)
        # In a block of the same shape: a draw without any swap then gives the very same numbers.
        z = (np.ones((_BLOCK, columns.shape[0]), dtype=np.float32) @ columns)[:1]
    spread_z = None if spread is None else (z / spread).astype(np.float32)
    tests = []
    for place, scope in enumerate(scopes):
        drawn = np.concatenate([parts[place] for parts in blocks])[:draws]
        spread_out = None if spread_z is None else _statistics(spread_z, critical, heaviness, scope)[0]
        tests.append(_tested(_statistics(z, critical, heaviness, scope)[0], spread_out, drawn, scope))
    return tests


def user_signs(n_users: int, block: int, seed: int = 0) -> Singles:
    """Return a block of draws × users: 1 or −1, each with probability one half; the same for all pairs of systems."""
    width = -(-n_users // 8)
    data = stream(seed, "audit", "signs", block).integers(0, 256, (_BLOCK, width), dtype=np.uint8)
    signs: Singles = np.unpackbits(data, axis=1, count=n_users).astype(np.float32)
    signs *= 2
    signs -= 1
    return signs


def _heaviness(x: Singles, squares: Floats, users: NDArray[np.int64]) -> Floats:
    """Return for each universe r = mean |x|³/(mean x²)^{3/2}: 1 if all users differ alike, large if a few decide."""
    # Row by row, and summed by NumPy itself: the same bytes for any number of threads.
    cubes = np.array([np.power(np.abs(row, dtype=np.float64), 3).sum() for row in x])
    root = np.sqrt(np.maximum(users, 1))
    return np.divide(cubes * root, squares**1.5, out=np.ones(len(x)), where=squares > 0)


def _statistics(z: Singles, critical: Singles, heaviness: Floats, scope: Scope) -> Floats:
    """Return draws × 10: the four statistics, and the shares of `CHANCES`."""
    if len(scope.universes) < z.shape[1]:
        z, critical, heaviness = z[:, scope.universes], critical[scope.universes], heaviness[scope.universes]
    regular = np.square(heaviness.min() / heaviness).astype(np.float32)
    n, weights = z.shape[1], scope.weights.astype(np.float32)
    marks = (z > 0, z < 0, z >= critical, z <= -critical)
    of_cells = [mark.astype(np.float32) @ weights for mark in marks]
    of_universes = [mark.sum(axis=1) / n for mark in marks]
    _, _, ahead, behind = of_universes
    columns = [np.abs(np.median(z, axis=1)), np.abs(ahead - behind), ahead + behind, (np.abs(z) * regular).max(axis=1)]
    for first, second, better, worse in (of_cells, of_universes):
        columns += [np.maximum(first, second), np.maximum(better, worse), better + worse]
    return np.column_stack(columns).astype(np.float64)


def _tested(observed: Floats, spread_out: Floats | None, drawn: Floats, scope: Scope) -> JointTest:
    four = len(STATISTICS)
    often = np.sort(drawn, axis=0)[-max(1, int(0.05 * len(drawn)))]
    return JointTest(
        len(scope.universes),
        len(drawn),
        dict(zip(STATISTICS, observed[:four].tolist())),
        _p_values(observed, drawn),
        None if spread_out is None else _p_values(spread_out, drawn),
        dict(zip(STATISTICS, drawn[:, :four].mean(axis=0).tolist())),
        dict(zip(CHANCES, np.minimum(often[four:], 1.0).tolist())),
    )


def _p_values(observed: Floats, drawn: Floats) -> dict[str, float]:
    four = len(STATISTICS)
    reached = (drawn[:, :four] >= observed[:four] * (1 - _ROUNDING)).sum(axis=0)
    return dict(zip(STATISTICS, ((1 + reached) / (1 + len(drawn))).tolist()))
