"""The effect of every pair of systems on every dataset, with its standard error over users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.comparisons import Sample, moments
from cranfield.measures import Errors

Floats = NDArray[np.float64]

SCALES = ("ratio", "difference", "effect")

# With fewer users that have a value other than 0, the logarithm of a ratio is biased.
FEWEST_USERS = 20


@dataclass(frozen=True, eq=False)
class DatasetEffects:
    """Systems on datasets by one metric: averages, the effect of each pair, and its standard error over users.

    An effect is above 0 where the first system is better: the logarithm of the ratio of the two averages (``ratio``),
    their difference (``difference``), or the standardised paired difference (``effect``).
    """

    metric: str
    lower_is_better: bool
    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    means: Floats  # systems × datasets; NaN where a system has no result
    first: NDArray[np.intp]  # the indices of the two systems of each pair
    second: NDArray[np.intp]
    scales: tuple[str, ...]  # of each pair: a ratio needs averages above 0
    effects: Floats  # pairs × datasets; NaN where one of the two has no result
    errors: Floats  # the same; NaN where the users' values are not known
    users: NDArray[np.int64]  # of each dataset; 0 where they are not known
    thin: tuple[str, ...] = ()  # datasets in which a system has a value other than 0 for very few users
    without_error: tuple[str, ...] = ()  # datasets without two users that all systems have a value for
    bounded: bool = False  # whether the errors are upper bounds, from those of each system by itself

    def take(self, pairs: NDArray[np.intp] | Sequence[int]) -> DatasetEffects:
        """Return some of the pairs."""
        names = ("first", "second", "effects", "errors")
        scales = tuple(self.scales[pair] for pair in pairs)
        return replace(self, scales=scales, **{name: getattr(self, name)[pairs] for name in names})

    def by_family(self, families: Mapping[str, str]) -> DatasetEffects:
        """Return the datasets of a family as one: the averages of their effects and of their errors.

        The average of a system is the geometric mean of its averages, or the mean where one of them is not above 0.
        """
        names = tuple(dict.fromkeys(families.get(name, name) for name in self.datasets))
        if len(names) == len(self.datasets):
            return replace(self, datasets=names)
        members = [[d for d, name in enumerate(self.datasets) if families.get(name, name) == own] for own in names]
        columns = [(self.means[:, own], self.effects[:, own], self.errors[:, own]) for own in members]
        return replace(
            self,
            datasets=names,
            means=np.stack([_centre(means) for means, _, _ in columns], axis=1),
            effects=np.stack([_mean_of_known(effects) for _, effects, _ in columns], axis=1),
            errors=np.stack(
                [np.where(np.isnan(y).all(axis=1), np.nan, _mean_of_known(s, y)) for _, y, s in columns], axis=1
            ),
            users=np.array([self.users[own].max() for own in members]),
        )


def _mean_of_known(values: Floats, known: Floats | None = None) -> Floats:
    """Return the mean of each row over the values that are known; NaN if there are none."""
    counted = ~np.isnan(values if known is None else known)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counted, values, 0.0).sum(axis=1) / counted.sum(axis=1))


def _centre(means: Floats) -> Floats:
    above = ~(means <= 0).any(axis=1)
    logarithms = np.log(np.where(means > 0, means, np.nan))
    return np.where(above, np.exp(_mean_of_known(logarithms)), _mean_of_known(means))


def effects_of_means(
    metric: str,
    systems: Sequence[str],
    datasets: Sequence[str],
    means: Floats,
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    *,
    errors: Floats | None = None,
    scale: str = "ratio",
    lower_is_better: bool = False,
) -> DatasetEffects:
    """Return the effects from averages alone, with the standard errors of averages if they are known.

    The error of a ratio is √((s_a/A)² + (s_b/B)²), an upper bound if users' values correlate positively.
    """
    if scale == "effect":
        raise InputError("effect sizes need the users' values", remedy="use scale='ratio' or 'difference'")
    a, b = (means[place] for place in pairs)
    scales = _scales_of(a, b, scale)
    effects, spread = np.empty(a.shape), np.full(a.shape, np.nan)
    of_each = np.full(means.shape, np.nan) if errors is None else errors
    for pair, own in enumerate(scales):
        units = (a[pair], b[pair]) if own == "ratio" else (1.0, 1.0)
        # A missing average beside one of 0 has no ratio.
        with np.errstate(divide="ignore", invalid="ignore"):
            effects[pair] = np.log(a[pair] / b[pair]) if own == "ratio" else a[pair] - b[pair]
            spread[pair] = np.hypot(*(of_each[place[pair]] / unit for place, unit in zip(pairs, units)))
    users, sign = np.zeros(len(datasets), dtype=np.int64), -1.0 if lower_is_better else 1.0
    return DatasetEffects(
        metric, lower_is_better, tuple(systems), tuple(datasets), means, *pairs, scales, sign * effects + 0.0, spread,
        users, bounded=errors is not None,
    )  # fmt: skip


def _scales_of(a: Floats, b: Floats, scale: str) -> tuple[str, ...]:
    """Return the scale of each pair: a ratio becomes a difference where an average is not above 0."""
    none = np.atleast_1d(((a <= 0) & ~np.isnan(b) | (b <= 0) & ~np.isnan(a)).any(axis=1))
    return tuple("difference" if scale == "ratio" and without else scale for without in none)


def effects_of_samples(
    samples: Mapping[str, Sample],
    systems: Sequence[str],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    scale: str = "ratio",
) -> DatasetEffects:
    """Return the effects from the users' values: one sample for each dataset, over the users that `compare` uses."""
    some = next(iter(samples.values()))
    means = np.full((len(systems), len(samples)), np.nan)
    counts, thin, without_error = np.zeros(len(samples), dtype=np.int64), [], []
    for d, (name, sample) in enumerate(samples.items()):
        known = sample.counted.any(axis=1)
        counts[d] = int(sample.counted[known].all(axis=0).sum()) if known.any() else 0
        if counts[d] < 2:
            without_error.append(name)
            continue
        averages = dict(zip(sample.systems, sample.system_averages))
        means[:, d] = [averages.get(system, np.nan) for system in systems]
        if (np.count_nonzero(np.nan_to_num(sample.values[known]), axis=1) < FEWEST_USERS).any():
            thin.append(name)
    a, b = (means[place] for place in pairs)
    scales = _scales_of(a, b, scale)
    effects, errors = np.full(a.shape, np.nan), np.full(a.shape, np.nan)
    for d, sample in enumerate(samples.values()):
        places = {system: s for s, system in enumerate(sample.systems)}
        for pair in np.flatnonzero(~np.isnan(a[:, d] + b[:, d])):
            own = (places[systems[pairs[0][pair]]], places[systems[pairs[1][pair]]])
            effects[pair, d], errors[pair, d] = _effect(sample, *own, scales[pair])
    sign = -1.0 if some.lower_is_better else 1.0
    return DatasetEffects(
        some.metric, some.lower_is_better, tuple(systems), tuple(samples), means, *pairs, scales,
        sign * effects + 0.0, errors, counts, tuple(thin), tuple(without_error),
    )  # fmt: skip


def _effect(sample: Sample, first: int, second: int, scale: str) -> tuple[float, float]:
    """Return the effect of a pair on a dataset and its standard error.

    With x_u the influence of a user on the effect, the error is sd(x)/√n: a_u/A − b_u/B for a ratio, a_u − b_u for a
    difference, and z_u − (d/2)(z_u² − 1) for the effect size d = mean/sd, with z_u the standardised difference. With
    repetitions, the error of a ratio or a difference is that over users crossed with repetitions.
    """
    means = sample.system_averages[[first, second]]
    if scale == "effect":
        alone = replace(sample, first=np.array([first]), second=np.array([second]))
        n, mean, sd = (float(part[0]) for part in moments(alone.influences(slice(0, 1))))
        size = mean / sd if sd > 0 else 0.0 if mean == 0 else np.nan
        z = (alone.influences(slice(0, 1)) - mean) / (sd if sd > 0 else 1.0)
        influence = z - size / 2 * (z**2 - 1)
        return size, float(moments(influence)[2][0]) / np.sqrt(n)
    # The influences on an average or, for geometric means, on a logarithm; divided by the average, those on its own.
    units = 1 / means if scale == "ratio" else np.ones(2)
    if sample.geometric:
        units = units * (means + sample.shift)
    size = float(np.log(means[0] / means[1]) if scale == "ratio" else means[0] - means[1])
    if sample.cells is not None:
        alone = replace(sample, values=sample.values[[first, second]], cells=sample.cells[[first, second]],
                        systems=("a", "b"))  # fmt: skip
        cells = alone.system_cells() * units[:, None, None]
        return size, float(Errors.crossed(cells[:1] - cells[1:]).error[0])
    counted = sample.counted[first] & sample.counted[second]
    of_first, of_second = (
        unit * sample.system_influence(place)[counted] for unit, place in zip(units, (first, second))
    )
    n, _, sd = (float(part[0]) for part in moments((of_first - of_second)[None]))
    scale_of_values = float(np.abs(of_first).max(initial=0.0))
    return size, 0.0 if sd <= 1e-12 * scale_of_values else sd / np.sqrt(n)
