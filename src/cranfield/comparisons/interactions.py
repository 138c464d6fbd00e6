"""Whether the difference between two systems is not the same inside and outside a group: a test of the interaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.comparisons.errors import moments, p_of_t
from cranfield.comparisons.p_values import holm
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.samples import distinct_users, make_samples
from cranfield.measures import Averaging, Errors, Scores, Segments

# A difference of averages smaller than this is rounding error and has no sign.
_ROUNDING = 1e-12
_CROSSED = ", users crossed with repetitions"
# With up to this many users on a side, their p-value is that of random divisions of all users, of which so many are
# drawn: differences that are 0 for most users are far from normal in a small group.
_FEW, _DIVISIONS = 200, 10_000
# If users are crossed with repetitions, they cannot be divided anew; groups of fewer users are not tested.
_LEAST = 10

_SCHEMA: Mapping[str, Any] = {
    **dict.fromkeys(("metric", "system_a", "system_b", "group"), pl.String),
    **dict.fromkeys(("inside", "outside"), pl.Float64),
    **dict.fromkeys(("n_inside", "n_outside"), pl.Int64),
    **dict.fromkeys(("interaction", "standard_error", "p"), pl.Float64),
    "turns": pl.Boolean,
    "test": pl.String,
}


def interactions(
    segments: Segments,
    averaging: Averaging,
    *,
    metrics: Sequence[str] | None = None,
    baseline: str | None = None,
    alpha: float,
) -> pl.DataFrame:
    """Return, for each metric, pair of systems and group, the difference inside the group and outside it.

    If no user is on both sides, as in groups of users, the test is Welch's test of two independent samples (1947), with
    the degrees of freedom of Welch and Satterthwaite; with at most 200 users on a side, it is the permutation test with
    Welch's t (`divided_anew`). If users are on both sides, as in groups of items, it is Student's paired test of the
    difference inside minus the difference outside, over the users who are on both. The values of users are their
    influences on the average (`Sample.influences`). If users were measured in several repetitions, the error includes
    the spread between repetitions (`Errors`). A user who is in the group in only some of the repetitions, such as a
    light user, is on both sides but not paired; with fewer than 10 users on a side there is no test. p-values are
    corrected by Holm's procedure over all groups and pairs of a metric; two groups that are each other's complement
    count once.

    Columns: ``metric, system_a, system_b, group``; the differences (a − b) ``inside`` and ``outside`` with the numbers
    of users ``n_inside, n_outside``; ``interaction`` = inside − outside over the users that are tested (for geometric
    means, of the logarithms of the ratios), its ``standard_error``, ``p``, ``p_corrected`` and ``significant``
    (p_corrected < α); ``turns``, whether the order of the two systems inside is the opposite of the order outside; and
    the ``test``.
    """
    by_user = averaging.with_(by="user", groups="pooled")
    frames: list[pl.DataFrame] = []
    for name in segments.names:
        inside, outside = segments.group(name), segments.scores.outside(name)
        if not (has_weight(inside, averaging) and has_weight(outside, averaging)):
            continue
        samples_in, _ = make_samples(inside, by_user, metrics=metrics, baseline=baseline)
        samples_out, _ = make_samples(outside, by_user, metrics=metrics, baseline=baseline)
        users_in, users_out = distinct_users(inside), distinct_users(outside)
        frames += [_rows(name, inner, outer, users_in, users_out) for inner, outer in zip(samples_in, samples_out)]
    rows = pl.concat(frames or [pl.DataFrame(schema=_SCHEMA)])
    parts = rows.partition_by("metric", maintain_order=True) or [rows]
    return pl.concat(_corrected(part, segments.names, alpha) for part in parts)


def has_weight(scores: Scores, averaging: Averaging) -> bool:
    """Whether any list counts in an average: with weights by relevant items, a group may have no weight."""
    weights = scores.weights(averaging.kind)
    return weights is None or bool(weights.any())


def _rows(
    group: str, inside: Sample, outside: Sample, users_in: NDArray[np.int32], users_out: NDArray[np.int32]
) -> pl.DataFrame:
    _, *places = np.intersect1d(users_in, users_out, return_indices=True)
    place_in, place_out = places
    is_paired = _is_paired(inside, outside, place_in, place_out)
    parts = []
    for pairs in inside.blocks():
        x, y = inside.influences(pairs), outside.influences(pairs)
        (n_in, mean_in, sd_in), (n_out, mean_out, sd_out) = moments(x), moments(y)
        if is_paired:
            n, difference, sd = moments(x[:, place_in] - y[:, place_out])
            error, degrees = sd / np.sqrt(np.maximum(n, 1)), n - 1
        else:
            difference, (error, degrees) = mean_in - mean_out, _welch(n_in, sd_in, n_out, sd_out)
        if inside.cells is not None and outside.cells is not None:
            sides = _as_long(inside.cell_influences(pairs), outside.cell_influences(pairs))
            cells = sides[0][:, place_in] - sides[1][:, place_out] if is_paired else _unpaired(*sides, *places)
            over_both = Errors.crossed(cells)
            error, p = over_both.error, over_both.p(difference)
        else:
            p = p_of_t(difference, error, degrees + 1)
        few = np.minimum(n_in, n_out)
        if inside.cells is not None and not is_paired:
            degrees = np.where(few < _LEAST, 0.0, degrees)
        p = np.where(np.isnan(difference) | (degrees <= 0), np.nan, p)
        if inside.cells is None and not is_paired:
            permuted = np.flatnonzero((few > 1) & (few <= _FEW))
            p[permuted] = divided_anew(x[permuted], y[permuted])
        shown = (
            side.in_units(mean, side.averages(pairs)[1]) for side, mean in ((inside, mean_in), (outside, mean_out))
        )
        parts.append((*shown, n_in, n_out, difference, error, p))
    mean_in, mean_out, n_in, n_out, difference, error, p = (np.concatenate(column) for column in zip(*parts))
    first, second = ([inside.systems[place] for place in places] for places in (inside.first, inside.second))
    signs = [np.where(np.abs(mean) <= _ROUNDING, 0.0, np.sign(mean)) for mean in (mean_in, mean_out)]
    return pl.DataFrame(
        {
            "metric": [inside.metric] * len(p),
            "system_a": first,
            "system_b": second,
            "group": [group] * len(p),
            "inside": mean_in,
            "outside": mean_out,
            "n_inside": n_in.astype(np.int64),
            "n_outside": n_out.astype(np.int64),
            "interaction": difference,
            "standard_error": error,
            "p": p,
            "turns": signs[0] * signs[1] < 0,
            "test": _tests(is_paired, inside.cells is not None, np.minimum(n_in, n_out)),
        },
        schema=_SCHEMA,
    )


def _tests(is_paired: bool, is_crossed: bool, few: Floats) -> list[str]:
    """Return the name of the test of each pair."""
    name = ("paired t" if is_paired else "Welch's t") + _CROSSED * is_crossed
    permuted = [not (is_paired or is_crossed) and 1 < n <= _FEW for n in few]
    return [f"permutation of {name}" if is_permuted else name for is_permuted in permuted]


def divided_anew(inside: Floats, outside: Floats) -> Floats:
    """Return, for pairs × users on two sides, how often Welch's |t| of a random division is at least the observed one.

    The divisions have sides of the same sizes; the observed one is among them. The test is exact if the differences of
    both sides are distributed alike, and right for many users if only their means are equal (Janssen 1997). NaN is a
    user who does not count.
    """
    from scipy import sparse

    # Whichever of two groups of the same size is inside, the divisions are the same.
    few, many = sorted((inside, outside), key=lambda side: (side.shape[1], float(np.nansum(side))))
    values, p = np.concatenate([few, many], axis=1), np.empty(len(inside))
    patterns, pattern = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    for place, counted in enumerate(patterns):
        pairs, n, size = pattern.ravel() == place, int(counted[: few.shape[1]].sum()), int(counted.sum())
        drawn = _drawn_users(n, size).ravel()
        rows = np.repeat(np.arange(_DIVISIONS), n)
        side = sparse.csr_array((np.ones(len(rows)), (rows, drawn)), shape=(_DIVISIONS, size))
        t = _sizes_of_t(side, n, values[np.ix_(pairs, counted)])
        p[pairs] = (t >= t[0] * (1 - _ROUNDING)).mean(axis=0)
    return p


def _drawn_users(n: int, size: int) -> NDArray[np.int64]:
    """Return divisions × n: which of ``size`` users are on a side; the first n in the first division (Floyd 1987)."""
    draws = stream(0, "segments", "divisions").random((_DIVISIONS, n))
    drawn = np.empty((_DIVISIONS, n), dtype=np.int64)
    for place, last in enumerate(range(size - n, size)):
        drawn[:, place] = draws[:, place] * (last + 1)
        taken = (drawn[:, :place] == drawn[:, place, None]).any(axis=1)
        drawn[taken, place] = last
    drawn[0] = np.arange(n)
    return drawn


def _sizes_of_t(side: Any, n: int, values: Floats) -> Floats:
    """Return divisions × pairs: Welch's |t|, given which users of each division are on the side of ``n`` users."""
    values = values - values.mean(axis=1, keepdims=True)
    others = values.shape[1] - n
    total, squares = side @ values.T, side @ (values**2).T
    spread = np.maximum(squares - total**2 / n, 0.0) / (n * (n - 1))
    rest = np.maximum((values**2).sum(axis=1) - squares - total**2 / others, 0.0) / (others * max(others - 1, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.abs(total / n + total / others) / np.sqrt(spread + rest), posinf=1e300))


def _is_paired(inside: Sample, outside: Sample, place_in: NDArray[np.intp], place_out: NDArray[np.intp]) -> bool:
    """Return whether users are on both sides at once: in groups of users, they may change sides between repetitions."""
    if inside.cells is None or outside.cells is None:
        return len(place_in) > 0
    sides = _as_long(inside.cells[:1], outside.cells[:1])
    return bool((~np.isnan(sides[0][0, place_in]) & ~np.isnan(sides[1][0, place_out])).any())


def _as_long(inside: Floats, outside: Floats) -> tuple[Floats, Floats]:
    """Return both arrays padded to the same number of repetitions."""
    times = max(inside.shape[2], outside.shape[2])
    padded = [
        np.pad(cells, ((0, 0), (0, 0), (0, times - cells.shape[2])), constant_values=np.nan)
        for cells in (inside, outside)
    ]
    return padded[0], padded[1]


def _unpaired(inside: Floats, outside: Floats, place_in: NDArray[np.intp], place_out: NDArray[np.intp]) -> Floats:
    """Return pairs × users × repetitions: values whose mean is the interaction and whose spread gives its error.

    With n of N users inside, the value is N/n times the deviation of a user inside from the mean inside, minus the same
    for users outside, plus the difference of the means. A user who is inside in only some repetitions counts as inside
    by the share of these.
    """
    present = [~np.isnan(cells) for cells in (inside, outside)]
    times = [side.sum(axis=2) for side in present]
    shares = [(side > 0).astype(np.float64) for side in times]
    met = times[0][:, place_in] + times[1][:, place_out]
    shares[0][:, place_in] = times[0][:, place_in] / np.maximum(met, 1)
    shares[1][:, place_out] = times[1][:, place_out] / np.maximum(met, 1)
    counts = [np.maximum(share.sum(axis=1), 1e-9) for share in shares]
    per_user = [
        np.where(side, cells, 0.0).sum(axis=2) / np.maximum(number, 1)
        for cells, side, number in zip((inside, outside), present, times)
    ]
    means = [(share * values).sum(axis=1) / n for share, values, n in zip(shares, per_user, counts)]
    total = counts[0] + counts[1]
    spread_in, spread_out = (
        ((total / n)[:, None, None] * (cells - mean[:, None, None]))
        for cells, mean, n in zip((inside, outside), means, counts)
    )
    spread_in[:, place_in] = np.where(present[0][:, place_in], spread_in[:, place_in], -spread_out[:, place_out])
    others = np.delete(-spread_out, place_out, axis=1)
    return np.concatenate([spread_in, others], axis=1) + (means[0] - means[1])[:, None, None]


def _welch(n_in: Floats, sd_in: Floats, n_out: Floats, sd_out: Floats) -> tuple[Floats, Floats]:
    """Return the standard error of a difference of two means and its degrees of freedom; 0 if it has none."""
    parts = [sd**2 / np.maximum(n, 1) for n, sd in ((n_in, sd_in), (n_out, sd_out))]
    spread = parts[0] ** 2 / np.maximum(n_in - 1, 1) + parts[1] ** 2 / np.maximum(n_out - 1, 1)
    total = parts[0] + parts[1]
    smallest = np.minimum(n_in, n_out) - 1
    degrees = np.divide(total**2, spread, out=np.array(smallest, dtype=np.float64), where=spread > 0)
    return np.sqrt(total), np.where(smallest > 0, degrees, 0.0)


def _corrected(rows: pl.DataFrame, groups: Sequence[str], alpha: float) -> pl.DataFrame:
    """Return the rows of a metric with p-values corrected over its groups and pairs."""
    p = rows["p"].to_numpy()
    if len(groups) == 2:
        once = holm(p[: len(p) // 2])
        corrected = np.concatenate([once, once])
    else:
        corrected = holm(p)
    columns = [name for name in rows.columns if name != "p"]
    place = columns.index("turns")
    return rows.with_columns(p_corrected=corrected, significant=corrected < alpha).select(
        *columns[:place], "p", "p_corrected", "significant", *columns[place:]
    )
