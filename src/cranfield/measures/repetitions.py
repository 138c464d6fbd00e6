"""Users crossed with repetitions: the error of an average over users measured on several splits and seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.metrics import power_for

Values = NDArray[np.float64]

# Eigenvalues below this share of the largest are 0.
_ZERO = 1e-9


@dataclass(frozen=True, eq=False)
class Crossed:
    """The errors of averages over users and repetitions, one per row.

    Parameters
    ----------
    error
        The standard error of the average, including the spread between repetitions.
    degrees
        Its degrees of freedom (Satterthwaite).
    spread
        The standard deviation of the averages between repetitions.
    users_error
        The standard error over users alone, as if another split or seed would change nothing.
    """

    error: Values
    degrees: Values
    spread: Values
    users_error: Values


def crossed(cells: Values) -> Crossed:
    """Return the error of the mean over users of each user's mean over repetitions.

    The model is y_ur = μ + U_u + R_r + E_ur: users and repetitions (new splits, new seeds) are both drawn at random and
    crossed. With n users and m repetitions the variance of the mean is σ_U²/n + σ_R²/m + σ_E²/(nm). It is estimated by
    the analysis of variance, V = V_E + max(V_U − V_E, 0) + max(V_R − V_E, 0), where V_U is the variance of the users'
    means over n, V_R that of the repetitions' effects over m, and V_E that of the residuals over nm; no variance is
    negative. Degrees of freedom are Satterthwaite's (1946), V² / (V_U²/(n−1) + V_R²/(m−1) + V_E²/ν_E), and lie between
    those of repetitions and those of users (Searle, Casella and McCulloch, Variance Components, 1992, chapter 4). The
    error is never below the one over users alone. Users may be missing in some repetitions: the effects of repetitions
    are then those of least squares, and V_E has the mean of 1/m_u in place of 1/m.

    Parameters
    ----------
    cells
        Rows × users × repetitions, NaN if a user has no value; users without any are left out.

    Examples
    --------
    >>> cells = np.array([[[0.1, 0.3], [0.2, 0.4], [0.3, 0.5]]])
    >>> found = crossed(cells)
    >>> found.error.round(3).tolist(), found.spread.round(3).tolist()
    ([0.115], [0.141])
    """
    power = power_for(cells)
    cells = np.ldexp(cells, -power)
    present = ~np.isnan(cells)
    times = present.sum(axis=2)
    n = (times > 0).sum(axis=1).astype(np.float64)
    m = cells.shape[2]
    filled = np.where(present, cells, 0.0)
    per_user = np.divide(filled.sum(axis=2), times, out=np.full(times.shape, np.nan), where=times > 0)
    effects = _repetition_effects(np.where(present, cells - per_user[:, :, None], 0.0), present, times)
    effect_of_cell = np.where(present, effects[:, None, :], 0.0)
    shared = np.divide(effect_of_cell.sum(axis=2), times, out=np.zeros(times.shape), where=times > 0)
    residuals = np.where(present, cells - per_user[:, :, None] - effect_of_cell + shared[:, :, None], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        free = present.sum(axis=(1, 2)) - n - m + 1
        residual = np.where(free > 0, (residuals**2).sum(axis=(1, 2)) / np.maximum(free, 1), 0.0)
        thin = np.divide(1.0, times, out=np.zeros(times.shape), where=times > 0).sum(axis=1)
        centred = np.where(times > 0, per_user - np.nansum(per_user, axis=1, keepdims=True) / n[:, None], 0.0)
        users = (centred**2).sum(axis=1) / (n - 1) / n
        spread = effects.std(axis=1, ddof=1)
        repetitions, noise = spread**2 / m, residual * thin / n**2
        variance = noise + np.maximum(users - noise, 0.0) + np.maximum(repetitions - noise, 0.0)
        parts = users**2 / (n - 1) + repetitions**2 / (m - 1) + noise**2 / np.maximum(free, 1)
        degrees = np.clip(variance**2 / parts, np.minimum(n - 1, m - 1), n - 1)
    degrees = np.where(np.isnan(degrees), np.maximum(n - 1, 1), np.maximum(degrees, 1))
    error, users_error = (np.where(n > 1, np.sqrt(squared_error), np.nan) for squared_error in (variance, users))
    return Crossed(np.ldexp(error, power), degrees, np.ldexp(spread, power), np.ldexp(users_error, power))


def cells_of(values: Values, users: NDArray[Any], repetitions: NDArray[Any]) -> Values:
    """Return rows × users × repetitions: the means of the values of lists without NaN; NaN if there is no list.

    Examples
    --------
    >>> cells_of(np.array([[0.2, 0.4, 0.6]]), np.array([7, 7, 9]), np.array([0, 1, 1])).tolist()
    [[[0.2, 0.4], [nan, 0.6]]]
    """
    _, user = np.unique(users, return_inverse=True)
    n, m = int(user.max(initial=-1)) + 1, int(repetitions.max(initial=-1)) + 1
    place, counted = user * m + repetitions, ~np.isnan(values)
    totals, counts = (
        np.array([np.bincount(place, row, n * m) for row in table])
        for table in (np.where(counted, values, 0.0), counted.astype(np.float64))
    )
    with np.errstate(invalid="ignore"):
        means: Values = totals / counts
    return means.reshape(len(values), n, m)


def _repetition_effects(deviations: Values, present: NDArray[np.bool_], times: NDArray[np.int64]) -> Values:
    """Return rows × repetitions: least-squares effects on the deviations from users' means; their sum is 0."""
    marks = present.astype(np.float64)
    share = np.divide(1.0, times, out=np.zeros(times.shape), where=times > 0)
    together = np.einsum("pur,pus,pu->prs", marks, marks, share)
    counts = marks.sum(axis=1)
    normal = counts[:, :, None] * np.eye(present.shape[2]) - together
    # Because of rounding, the smallest eigenvalue is not exactly 0.
    inverse = np.linalg.pinv(normal, rcond=_ZERO, hermitian=True)
    effects: Values = np.einsum("prs,ps->pr", inverse, deviations.sum(axis=1))
    return effects - effects.mean(axis=1, keepdims=True)
