"""`Leads`: which of two systems leads in each universe, by how much, and whether significantly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.terms import Singles, Terms

Floats = NDArray[np.float64]

# If all users differ by the same amount, d_z is infinite, but influences need a finite number.
_LARGEST_EFFECT = 1000.0
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Leads:
    """Which system leads in each universe, for one pair of systems.

    Parameters
    ----------
    difference
        The first average minus the second, as shown.
    relative
        The difference divided by the second average; NaN where that is 0.
    z
        Σx/√Σx², with x of `Terms`.
    d_z
        mean(x)/sd(x), the standardised paired difference.
    p
        Student's two-sided p of mean(x)/(sd(x)/√n), not corrected for the number of universes.
    lead
        1 if the first system is better, −1 if the second is, 0 if they are equal.
    significant
        Whether the leader is significantly better: p is below α, and d_z has the sign of the lead. The signs can differ
        if the average is not a sum over users, such as a median, since p is that of the mean difference.
    """

    difference: Floats
    relative: Floats
    z: Floats
    d_z: Floats
    p: Floats
    lead: NDArray[np.int8]
    significant: NDArray[np.bool_]


def leads_of(
    x: Singles, terms: Terms, averages: Floats, lower_is_better: NDArray[np.bool_], alpha: float = 0.05
) -> Leads:
    """Return which system leads, from x (universes × users) and the averages (two systems × universes) as shown."""
    difference = averages[0] - averages[1]
    relative = np.divide(difference, np.abs(averages[1]), out=np.full(len(difference), np.nan), where=averages[1] != 0)
    z = z_of(x)
    d_z = effect_of(z, terms.users)
    p = p_of(d_z, terms.users)
    # Sums in another order may differ in their last digits, which does not count as a lead.
    equal = np.abs(difference) <= _ROUNDING * np.abs(averages).max(axis=0)
    lead = np.where(equal, 0, np.sign(np.where(lower_is_better, -difference, difference))).astype(np.int8)
    return Leads(difference, relative, z, d_z, p, lead, (p < alpha) & (np.sign(d_z) == lead))


def z_of(x: Singles) -> Floats:
    """Return Σx/√Σx² of each row; 0 if all values are 0.

    Examples
    --------
    >>> z_of(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist()
    [1.4, 0.0]
    """
    sums = x.sum(axis=1, dtype=np.float64)
    squares = np.einsum("uv,uv->u", x, x, dtype=np.float64)
    return np.divide(sums, np.sqrt(squares), out=np.zeros(len(x)), where=squares > 0)


def effect_of(z: Floats, users: NDArray[np.int64]) -> Floats:
    """Return d_z = mean(x)/sd(x) from z of n users: z √((n − 1)/n) / √(n − z²); 0 for a single user.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0, 4.0]])
    >>> effect_of(z_of(x), np.array([3])).round(6).item(), round(x.mean() / x.std(ddof=1), 6).item()
    (1.527525, 1.527525)
    """
    n = np.maximum(users, 1).astype(np.float64)
    scale = np.sqrt((n - 1) / n)
    rest = np.maximum(n - z**2, (np.abs(z) * scale / _LARGEST_EFFECT) ** 2)
    effect: Floats = z * scale / np.sqrt(np.where(rest > 0, rest, 1.0))
    return effect


def p_of(d_z: Floats, users: NDArray[np.int64]) -> Floats:
    """Return Student's two-sided p-value of d_z with n users; 1 for a single user."""
    from scipy.special import stdtr

    p: Floats = np.where(users > 1, 2 * stdtr(np.maximum(users - 1, 1), -np.abs(d_z) * np.sqrt(users)), 1.0)
    return p


def critical_z(users: NDArray[np.int64], alpha: float = 0.05) -> Floats:
    """Return the |z| from which Student's p is below α: signs do not change Σx², so it is the same for all draws.

    With t the critical value of n − 1 degrees of freedom, z = t √(n/(n − 1 + t²)); infinite for a single user.

    Examples
    --------
    >>> z = critical_z(np.array([20]))
    >>> p_of(effect_of(z, np.array([20])), np.array([20])).round(12).tolist()
    [0.05]
    """
    from scipy.special import stdtrit

    n = np.maximum(users, 2).astype(np.float64)
    t = stdtrit(n - 1, 1 - alpha / 2)
    critical: Floats = np.where(users > 1, t * np.sqrt(n / (n - 1 + t**2)), np.inf)
    return critical
