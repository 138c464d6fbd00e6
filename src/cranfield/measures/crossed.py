"""The errors of averages: over users, or over users crossed with repetitions; their p-values and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._roots import enclosed
from cranfield.measures.averages import Values
from cranfield.metrics import power_for

# Eigenvalues below this share of the largest are 0.
_ZERO = 1e-9
# The nodes of the quadrature, and the chances that are too small to matter beside it.
_NODES, _NEGLIGIBLE = 64, 1e-17
# Many degrees of freedom, which cannot be told from infinitely many.
_MOST_DEGREES = 1e9
# An interval's reach is found to within this share of itself.
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of averages, one per row, and what follows from them.

    The error of a mean over n users has n − 1 degrees of freedom. If users are crossed with repetitions (`crossed`),
    its variance is the sum of two parts, and the part between repetitions may have very few degrees of freedom.
    """

    error: Values  # the standard error of the average, including the spread between repetitions
    users_error: Values  # the standard error over users alone, as if another split or seed would change nothing
    users_degrees: Values  # its degrees of freedom, n − 1
    spread: Values | None  # the standard deviation of the averages between repetitions; None without repetitions
    repetitions_error: Values  # the spread divided by √m; 0 without repetitions
    residual_error: Values  # the part of it that is due to noise of each user in each repetition
    repetitions_degrees: int  # m − 1

    @classmethod
    def over_users(cls, error: Values, n: Values) -> Errors:
        """Return the errors of means over n users."""
        none = np.zeros(np.shape(error))
        return cls(error, error, np.maximum(n - 1, 1.0), None, none, none, 1)

    @classmethod
    def crossed(cls, cells: Values) -> Errors:
        """Return the error of the mean over users of each user's mean over repetitions.

        The model is y_ur = μ + U_u + R_r + E_ur: users and repetitions (new splits, new seeds) are both drawn at random
        and crossed. With n users and m repetitions the variance of the mean is σ_U²/n + σ_R²/m + σ_E²/(nm). It is
        estimated by the analysis of variance, V = V_U + max(V_R − V_E, 0), where V_U is the variance of the users'
        means over n, V_R that of the repetitions' effects over m, and V_E that of the residuals over nm (Searle,
        Casella and McCulloch, Variance Components, 1992, chapter 4). The error is never below √V_U, the one over users
        alone. Users may be missing in some repetitions: the effects of repetitions are then those of least squares, and
        V_E has the mean of 1/m_u in place of 1/m. The cells are rows × users × repetitions, NaN if a user has no value;
        users without any are left out.
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
            spread = effects.std(axis=1, ddof=min(1, m - 1))
            repetitions, noise = spread**2 / m, residual * thin / n**2
            variances = (users + np.maximum(repetitions - noise, 0.0), users, repetitions, noise)
            error, users_error, repetitions_error, residual_error = (
                np.where(n > 1, np.ldexp(np.sqrt(variance), power), np.nan) for variance in variances
            )
        spread, degrees = np.ldexp(spread, power), np.maximum(n - 1, 1.0)
        return cls(error, users_error, degrees, spread, repetitions_error, residual_error, max(m - 1, 1))

    @classmethod
    def together(cls, parts: list[Errors]) -> Errors:
        """Concatenate the errors of several blocks of rows over the same repetitions."""
        names = ("error", "users_error", "users_degrees", "spread", "repetitions_error", "residual_error")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**columns, repetitions_degrees=parts[0].repetitions_degrees)

    def p(self, difference: Values) -> Values:
        """Return the two-sided p-value of each difference from 0; NaN where there is no error.

        Over users alone it is that of Student's t with n − 1 degrees of freedom. With m repetitions it is

            p = E[ P(|T| ≥ |d| / √(V_U + B)) ],  B = max(V_R W − V_E, 0),  W = (m − 1) / χ²_{m−1},

        the generalised fiducial form of the Behrens-Fisher problem (Fisher 1935; Weerahandi 1995): what is known of the
        variance between repetitions is that of m − 1 degrees of freedom, less the noise V_E that V_U has too. T has the
        degrees of freedom of V_U + B if B is known, (n − 1) (1 + B/V_U)². So p is that of n − 1 degrees of freedom
        where repetitions are alike, that of m − 1 where only they differ, and a little too large in between. It does
        not get small if m effects happen to lie close together, as with Satterthwaite's degrees of freedom.
        """
        with np.errstate(invalid="ignore"):
            unit = np.fmax(self.users_error, self.repetitions_error)
            unit = np.where(unit > 0, unit, 1.0)
            users, repetitions, residual = (
                (part / unit) ** 2 for part in (self.users_error, self.repetitions_error, self.residual_error)
            )
        degrees = (self.users_degrees, self.repetitions_degrees)
        p = _fiducial(np.abs(difference) / unit, users, repetitions, residual, *degrees)
        return np.where(np.isnan(self.error), np.nan, np.where(difference == 0, 1.0, p))

    def reach(self, level: float | Values) -> Values:
        """Return the half width of the intervals at 1 − ``level``: the difference whose p-value is the level."""
        from scipy.special import ndtri, stdtrit

        degrees = (self.users_degrees, self.repetitions_degrees)
        alone = stdtrit(degrees[0], 1 - np.asarray(level) / 2) * self.users_error
        if not self.repetitions_error.any():
            return np.asarray(alone)
        # Bonferroni's bound on the sum of both parts.
        apart = [stdtrit(freedom, 1 - np.asarray(level) / 4) for freedom in degrees]
        far = 1.01 * (apart[0] * self.users_error + apart[1] * self.repetitions_error)
        at_level = ndtri(level)

        def beyond(share: Values) -> Values:
            """Return how far p of this share of the bound is above the level in normal deviates."""
            return np.asarray(ndtri(np.clip(np.nan_to_num(self.p(share * far)), 1e-300, 1 - 1e-16)) - at_level)

        with np.errstate(invalid="ignore"):
            near, whole = np.where(far > 0, alone / far, 0.0), np.ones(len(far))
        share = enclosed(beyond, near, whole, np.maximum(beyond(near), 0.0), beyond(whole), np.full(len(far), _CLOSE))[
            1
        ]
        return np.where(self.repetitions_error > 0, share * far, alone)

    def degrees(self, level: float | Values, reach: Values) -> Values:
        """Return the degrees of freedom with which Student's t has the given `reach` at this level."""
        from scipy.special import stdtr

        if not self.repetitions_error.any():
            return self.users_degrees
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.error > 0, reach / self.error, np.nan)
        low, high = np.full(t.shape, np.log(0.1)), np.full(t.shape, np.log(_MOST_DEGREES))
        for _ in range(50):
            middle = (low + high) / 2
            more = 2 * stdtr(np.exp(middle), -t) > level
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return np.where((self.repetitions_error > 0) & ~np.isnan(t), np.exp(low), self.users_degrees)

    @staticmethod
    def cells(values: Values, users: NDArray[Any], repetitions: NDArray[Any]) -> Values:
        """Return rows × users × repetitions: the means of the values of lists without NaN; NaN if there is no list."""
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


def _fiducial(size: Values, users: Values, repetitions: Values, noise: Values, n1: Values, m1: int) -> Values:
    """Return `Errors.p` from differences and variances in any unit: the mean over log χ², by Gauss's quadrature.

    Where χ² is so large that B is 0, and where it is so small that p is 1, its distribution function takes the place of
    the quadrature.
    """
    from scipy.special import chdtr, chdtrc, chdtri, gammaincinv, gammaln

    alone = _p_given(size, users, np.zeros(size.shape), n1)
    with np.errstate(divide="ignore", invalid="ignore"):
        large = np.fmin(chdtri(m1, _NEGLIGIBLE), m1 * repetitions / noise)
        small = np.fmax(m1 * repetitions / (noise + 1e8 * size**2), 2 * gammaincinv(m1 / 2, 1e-8 * alone))
    small, large = np.fmax(small, 1e-300), np.fmax(large, 1e-300)
    low, high = np.log(np.minimum(small, large)), np.log(large)
    nodes, weights = _nodes()
    half = (high - low)[:, None] / 2
    log_chi = low[:, None] + half * (1 + nodes)
    chi = np.exp(log_chi)
    density = np.exp(m1 / 2 * (log_chi - np.log(2)) - chi / 2 - gammaln(m1 / 2))
    between = np.maximum(m1 * repetitions[:, None] / chi - noise[:, None], 0.0)
    given = _p_given(size[:, None], users[:, None], between, n1[:, None])
    p = chdtr(m1, np.exp(low)) + (half * given * density) @ weights + alone * chdtrc(m1, large)
    return np.where(repetitions > 0, np.minimum(p, 1.0), alone)


@cache
def _nodes() -> tuple[Values, Values]:
    return np.polynomial.legendre.leggauss(_NODES)


def _p_given(size: Values, users: Values, between: Values, n1: Values) -> Values:
    """Return the p-value of a difference if the variance ``between`` repetitions is known."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.fmin(n1 * (1 + between / users) ** 2, _MOST_DEGREES)
        t = np.where(size == 0, 0.0, size / np.sqrt(users + between))
    return np.asarray(2 * stdtr(degrees, -t))
