"""The exact permutation test of users that are stored in parts, by passes over the parts.

The first pass adds up Σ d, Σ d² and the rounding error for every pair. The differences of pairs with few of them are
collected and tested as in memory. The other pairs need more passes: counts on the lattice, or Σ log|cos(d_u θ)| and the
parity of negative factors at the nodes of the inversion. The smallest p-values need one pass for each step towards the
saddlepoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cranfield.comparisons.permutations import inversion
from cranfield.comparisons.permutations.exact import TINY, Block
from cranfield.comparisons.permutations.inversion import CosineSums, PhiSums
from cranfield.comparisons.permutations.lattice import common_step, fits
from cranfield.comparisons.permutations.saddlepoint import TailSearch, TailSums, tail_search
from cranfield.comparisons.sample import Differences, Floats, Sample, vague
from cranfield.comparisons.verdict import Verdict
from cranfield.measures.scores import Scores

if TYPE_CHECKING:
    from cranfield.comparisons.part_samples import ComparedParts, SampleParts

# Maximum number of differences of a pair that are collected: all of them, or those of the users with the smallest keys.
_HELD, _MORE_HELD = 512, 4096
# Lattice tables (nodes × distinct sizes) above this size cost more than inversion.
_TABLE = 20_000_000
# Σ d² is kept by size of the differences: the number of sizes per power of 2 below the largest, and of powers of 2.
_SIZES, _OCTAVES = 8, 48


def exact_by_passes(compared: ComparedParts, tolerance: float) -> list[Verdict]:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) of every pair of every metric."""
    steps = [sums.common_step for sums in compared.first]
    sums: list[SignSums] = compared.parts.sum(SignSums.of, list(zip(compared.units, steps)))
    metrics = [
        _Metric(place, unit, step if of_pairs.fits else 0.0, of_pairs)
        for place, (unit, step, of_pairs) in enumerate(zip(compared.units, steps, sums))
    ]
    _settle(compared.parts, metrics, tolerance)
    verdicts = []
    for metric, sample in zip(metrics, compared.samples):
        p = np.clip(metric.p, inversion.smallest(metric.sums.n.astype(np.int64)), 1.0)
        verdicts.append(Verdict(np.where(sample.n > 0, p, np.nan), metric.method, metric.error))
    return verdicts


def _differences(sample: Sample, pairs: slice, unit: float) -> Differences:
    """Return differences in units of a power of 2."""
    return Differences(*(part / unit for part in sample.rounded_differences(pairs)))


@dataclass(frozen=True, eq=False)
class SignSums:
    """The sums of the first pass for every pair: see `Differences` and `Block`.

    ``fits`` is whether all values are multiples of the common step, and ``multiple`` how many times larger the step of
    the pair's own differences is.
    """

    s: Floats
    n: Floats
    size: Floats
    squares: Floats
    slack: Floats
    hidden: Floats
    smallest: Floats
    largest: Floats
    multiple: NDArray[np.int64]
    fits: bool

    @classmethod
    def of(cls, sample: Sample, _: Scores, argument: tuple[float, float]) -> SignSums:
        """Compute the sums of a part; the arguments are the unit and the common step."""
        unit, step = argument
        on_lattice = bool(step) and fits(sample.tested, step)
        parts = []
        for pairs in sample.blocks():
            differences = _differences(sample, pairs, unit)
            d = np.abs(differences.d)
            multiple = np.zeros(len(d), dtype=np.int64)
            if on_lattice:
                multiple = np.gcd.reduce(np.rint(d * (unit / step)).astype(np.int64), axis=1)
            parts.append(
                (
                    differences.d.sum(axis=1),
                    np.count_nonzero(d, axis=1).astype(np.float64),
                    d.sum(axis=1),
                    np.einsum("pu,pu->p", d, d),
                    differences.slack,
                    differences.hidden,
                    differences.smallest,
                    d.max(axis=1, initial=0.0),
                    multiple,
                )
            )
        columns = {name: np.concatenate(column) for name, column in zip(_OF_PAIRS, zip(*parts))}
        return cls(**columns, fits=on_lattice)

    def __add__(self, other: SignSums) -> SignSums:
        return SignSums(
            **{name: getattr(self, name) + getattr(other, name) for name in _OF_PAIRS[:6]},
            smallest=np.minimum(self.smallest, other.smallest),
            largest=np.maximum(self.largest, other.largest),
            multiple=np.gcd(self.multiple, other.multiple),
            fits=self.fits and other.fits,
        )


_OF_PAIRS = ("s", "n", "size", "squares", "slack", "hidden", "smallest", "largest", "multiple")


class _Metric:
    """The pairs of one metric, whose p-values are filled in; pairs without a method are still open."""

    def __init__(self, place: int, unit: float, step: float, sums: SignSums) -> None:
        self.place, self.unit, self.step, self.sums = place, unit, step / unit, sums
        near = (np.abs(sums.s) <= sums.slack) & ~vague(sums.smallest, sums.slack, sums.hidden)
        self.s = np.where(near, 0.0, np.abs(sums.s))
        self.sigma = np.sqrt(sums.squares)
        self.p, self.error = np.ones(len(self.s)), np.zeros(len(self.s))
        self.method = np.full(len(self.s), None, dtype=object)
        self.method[self.s == 0] = "equal means"
        self.method[sums.n == 0] = "identical"
        self.spectrum: Spectrum | None = None
        self.places: dict[int, int] = {}

    @property
    def open(self) -> NDArray[np.intp]:
        return np.flatnonzero([method is None for method in self.method])

    def settle(self, pair: Any, p: Any, error: Any, method: Any) -> None:
        self.p[pair], self.error[pair], self.method[pair] = p, error, method


def _settle(parts: SampleParts, metrics: Sequence[_Metric], tolerance: float) -> None:
    """Fill in every p-value."""
    few = [metric.open[metric.sums.n[metric.open] <= _HELD] for metric in metrics]
    _as_in_memory(parts, metrics, few, _HELD, tolerance)
    far = [metric.open[metric.s[metric.open] > inversion.FAR * metric.sigma[metric.open]] for metric in metrics]
    _approximate_the_tail(parts, metrics, far)
    _invert_on_the_lattice(parts, [metric for metric in metrics if metric.step])
    unsettled = _invert(parts, metrics, tolerance)
    held = [pairs[metric.sums.n[pairs] <= _MORE_HELD] for metric, pairs in zip(metrics, unsettled)]
    _as_in_memory(parts, metrics, held, _MORE_HELD, tolerance)
    for metric, pairs in zip(metrics, unsettled):
        for pair in pairs[metric.sums.n[pairs] > _MORE_HELD]:
            _invert_further(parts, metric, int(pair), tolerance)
    by_sums = ("lattice", "inversion")
    tiny = [np.flatnonzero((metric.p < TINY) & np.isin(metric.method, by_sums)) for metric in metrics]
    _approximate_the_tail(parts, metrics, tiny)


def _asked(metrics: Sequence[_Metric], of_metric: Sequence[Any], parts: SampleParts) -> list[Any]:
    """Return one argument for each metric of the samples, None for metrics that are not needed."""
    arguments: list[Any] = [None] * len(parts.metrics)
    for metric, argument in zip(metrics, of_metric):
        arguments[metric.place] = argument
    return arguments


@dataclass(frozen=True, eq=False)
class Held:
    """Differences of some pairs, with their noise, for the ``most`` users with the smallest keys."""

    keys: list[NDArray[np.uint64]]
    d: list[Floats]
    noise: list[Floats]
    most: int

    @classmethod
    def of(cls, sample: Sample, _: Scores, argument: tuple[float, NDArray[np.intp], int]) -> Held:
        """Collect the differences of a part; the arguments are the unit, the pairs, and how many to keep of each."""
        unit, pairs, most = argument
        keys = np.arange(sample.n_users, dtype=np.uint64) if sample.keys is None else sample.keys
        held: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for pair in pairs:
            d, noise, _hidden = _differences(sample, slice(pair, pair + 1), unit)
            kept = np.flatnonzero(d[0])
            kept = kept[np.argsort(keys[kept], kind="stable")[:most]]
            for column, values in zip(held, (keys[kept], d[0, kept], noise[0, kept])):
                column.append(values)
        return cls(*held, most)

    def __add__(self, other: Held) -> Held:
        keys = [np.concatenate(both) for both in zip(self.keys, other.keys)]
        order = [np.argsort(of_pair, kind="stable")[: self.most] for of_pair in keys]

        def merged(mine: list[Any], theirs: list[Any]) -> list[Any]:
            return [np.concatenate(both)[kept] for both, kept in zip(zip(mine, theirs), order)]

        return Held(merged(self.keys, other.keys), merged(self.d, other.d), merged(self.noise, other.noise), self.most)


def _as_in_memory(
    parts: SampleParts, metrics: Sequence[_Metric], pairs: Sequence[NDArray[np.intp]], most: int, tolerance: float
) -> None:
    """Collect the differences of pairs that have few, and test them as in memory."""
    if not any(len(of_metric) for of_metric in pairs):
        return
    arguments = [
        (metric.unit, of_metric, most) if len(of_metric) else None for metric, of_metric in zip(metrics, pairs)
    ]
    held = parts.sum(Held.of, _asked(metrics, arguments, parts))
    for metric, of_metric in zip(metrics, pairs):
        for place, pair in enumerate(of_metric):
            of_pair = held[metric.place]
            differences = Differences(
                of_pair.d[place][None], of_pair.noise[place][None], metric.sums.hidden[pair : pair + 1]
            )
            block = Block(differences, metric.step).solve(tolerance)
            metric.settle(pair, block.p[0], block.error[0], block.method[0])


def _approximate_the_tail(parts: SampleParts, metrics: Sequence[_Metric], pairs: Sequence[NDArray[np.intp]]) -> None:
    """Approximate very small p-values by a saddlepoint; each step of the search, for all pairs, is one pass."""
    searches: dict[tuple[_Metric, int], TailSearch] = {}
    points: dict[tuple[_Metric, int], tuple[float, bool]] = {}
    for metric, of_metric in zip(metrics, pairs):
        for pair in of_metric.tolist():
            step = metric.step * int(metric.sums.multiple[pair]) if metric.step else _own_step(parts, metric, pair)
            known = {"n": metric.sums.n, "size": metric.sums.size, "squares": metric.sums.squares}
            of_pair = {name: float(values[pair]) for name, values in known.items()}
            searches[metric, pair] = tail_search(float(metric.s[pair]), step, **of_pair)
    sent: dict[tuple[_Metric, int], TailSums | None] = dict.fromkeys(searches)
    while sent:
        points = {}
        for place, sums in sent.items():
            metric, pair = place
            try:
                points[place] = next(searches[place]) if sums is None else searches[place].send(sums)
            except StopIteration as end:
                metric.settle(pair, end.value, max(TINY, metric.error[pair]), "saddlepoint")
        sent = _tail_pass(parts, points) if points else {}


def _tail_pass(
    parts: SampleParts, points: Mapping[tuple[_Metric, int], tuple[float, bool]]
) -> dict[tuple[_Metric, int], TailSums | None]:
    """Return the sums of all pairs that need some."""
    by_metric: dict[_Metric, list[tuple[int, float, bool]]] = {}
    for (metric, pair), question in points.items():
        by_metric.setdefault(metric, []).append((pair, *question))
    questions = [(metric.unit, of_metric) for metric, of_metric in by_metric.items()]
    results = parts.sum(_tail_sums, _asked(list(by_metric), questions, parts))
    return {
        (metric, pair): results[metric.place].of_pairs[place]
        for metric, of_metric in by_metric.items()
        for place, (pair, *_) in enumerate(of_metric)
    }


@dataclass(frozen=True)
class _OfPairs:
    """Sums of several pairs, which are added pair by pair."""

    of_pairs: list[TailSums]

    def __add__(self, other: _OfPairs) -> _OfPairs:
        return _OfPairs([mine + theirs for mine, theirs in zip(self.of_pairs, other.of_pairs)])


def _tail_sums(sample: Sample, _: Scores, argument: tuple[float, list[tuple[int, float, bool]]]) -> _OfPairs:
    unit, questions = argument
    sums = []
    for pair, t, is_solved in questions:
        d = np.abs(_differences(sample, slice(pair, pair + 1), unit).d[0])
        sums.append(TailSums.of(d[d > 0], t, is_solved))
    return _OfPairs(sums)


def _own_step(parts: SampleParts, metric: _Metric, pair: int) -> float:
    """Return the common step of one pair's differences if the values have none; 0 if there is none either."""
    held = parts.sum(Held.of, _asked([metric], [(metric.unit, np.array([pair]), _HELD)], parts))[metric.place]
    step = common_step(np.abs(held.d[0]), held.noise[0])
    if step is None:
        return 0.0
    arguments = _asked([metric], [(metric.unit, pair, step)], parts)
    return step if parts.sum(_misfits, arguments)[metric.place] == 0 else 0.0


def _misfits(sample: Sample, _: Scores, argument: tuple[float, int, float]) -> int:
    """Return how many differences of a pair are not multiples of a step."""
    unit, pair, step = argument
    d, noise, _hidden = _differences(sample, slice(pair, pair + 1), unit)
    sizes = np.abs(d[0])
    off = np.abs(sizes - step * np.rint(sizes / step)) > np.maximum(noise[0], 1e-14 * sizes)
    return int(np.count_nonzero(off))


def _invert_on_the_lattice(parts: SampleParts, metrics: Sequence[_Metric]) -> None:
    arguments: list[Any] = []
    for metric in metrics:
        wide = metric.sums.largest / metric.step
        pairs = metric.open[wide[metric.open] < _TABLE]
        arguments.append(
            (metric.unit, metric.step, pairs, int(wide[pairs].max(initial=0.0)) + 2) if len(pairs) else None
        )
    if not any(argument is not None for argument in arguments):
        return
    counts = parts.sum(_lattice_counts, _asked(metrics, arguments, parts))
    for metric, argument in zip(metrics, arguments):
        for place, pair in enumerate(() if argument is None else argument[2]):
            own = counts[metric.place][place]
            sizes = np.flatnonzero(own[1:]) + 1
            s = np.rint(metric.s[pair : pair + 1] / metric.step)
            nodes = inversion.lattice_nodes(s, metric.sigma[pair : pair + 1] / metric.step)
            if nodes * len(sizes) <= _TABLE:
                p = inversion.invert_lattice(own[None, sizes].astype(float), sizes.astype(float), s, nodes)
                metric.settle(pair, p[0], inversion.ROUNDING, "lattice")


def _lattice_counts(
    sample: Sample, _: Scores, argument: tuple[float, float, NDArray[np.intp], int]
) -> NDArray[np.int64]:
    """Return pairs × sizes: how many differences are of each number of steps."""
    unit, step, pairs, width = argument
    rows = []
    for pair in pairs:
        d = np.abs(_differences(sample, slice(pair, pair + 1), unit).d[0])
        rows.append(np.bincount(np.rint(d / step).astype(np.int64), minlength=width))
    return np.stack(rows)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The sums that the inversion of some pairs and its error bound need.

    ``squares`` is pairs × sizes: Σ d² of the differences of each size, the largest first.
    """

    cosines: CosineSums
    squares: Floats
    held: Held

    @classmethod
    def of(cls, sample: Sample, scores: Scores, argument: tuple[float, NDArray[np.intp], Floats, Floats]) -> Spectrum:
        """Compute the sums of a part; the arguments are the unit, the pairs, their σ and their largest difference."""
        unit, pairs, sigma, largest = argument
        cosines, squares = [], []
        for place, pair in enumerate(pairs):
            d = np.abs(_differences(sample, slice(pair, pair + 1), unit).d)
            cosines.append(CosineSums.of(d, sigma[place : place + 1]))
            d = d[d > 0]
            size = np.minimum(_SIZES * np.log2(largest[place] / d), _SIZES * _OCTAVES).astype(np.intp)
            squares.append(np.bincount(np.maximum(size, 0), d**2, _SIZES * _OCTAVES + 1))
        columns = (
            np.concatenate([getattr(of_pair, name) for of_pair in cosines])
            for name in ("powers", "log_cosines", "negative")
        )
        return cls(CosineSums(*columns), np.stack(squares), Held.of(sample, scores, (unit, pairs, _HELD)))

    def __add__(self, other: Spectrum) -> Spectrum:
        return Spectrum(self.cosines + other.cosines, self.squares + other.squares, self.held + other.held)

    def below(self, place: int, largest: float) -> Any:
        """Return a function that gives a lower bound on Σ d² of the differences below a size."""
        upto = np.append(0.0, np.cumsum(self.squares[place, ::-1]))
        # The k-th part from the end ends below the largest difference over 2^((_SIZES·_OCTAVES − k) / _SIZES).
        ends = largest * np.exp2(-(_SIZES * _OCTAVES - np.arange(len(upto) - 1)) / _SIZES)

        def squares_below(sizes: Floats) -> Floats:
            return upto[np.searchsorted(ends, sizes, side="left")]

        return squares_below


def _invert(parts: SampleParts, metrics: Sequence[_Metric], tolerance: float) -> list[NDArray[np.intp]]:
    """Invert the characteristic function of the open pairs; return the pairs that need more nodes."""
    arguments = [
        (metric.unit, metric.open, metric.sigma[metric.open], metric.sums.largest[metric.open])
        if len(metric.open)
        else None
        for metric in metrics
    ]
    unsettled = [np.zeros(0, dtype=np.intp) for _ in metrics]
    if not any(argument is not None for argument in arguments):
        return unsettled
    spectra = parts.sum(Spectrum.of, _asked(metrics, arguments, parts))
    for number, (metric, argument) in enumerate(zip(metrics, arguments)):
        if argument is None:
            continue
        spectrum, pairs = spectra[metric.place], argument[1]
        p = spectrum.cosines.invert(metric.s[pairs], metric.sigma[pairs], metric.step)
        for place, pair in enumerate(pairs):
            error = _missed(spectrum, place, metric, int(pair), inversion.REACH / metric.sigma[pair])
            error += inversion.ROUNDING + _left_to_ties(spectrum, place, metric, int(pair))
            metric.settle(pair, p[place], error, "inversion")
        unsettled[number] = pairs[metric.error[pairs] > tolerance]
        metric.spectrum, metric.places = spectrum, {int(pair): place for place, pair in enumerate(pairs)}
    return unsettled


def _ordered(spectrum: Spectrum, place: int, largest: float) -> Floats:
    """Return the sorted sizes of the collected differences and the largest difference."""
    ordered = np.sort(np.abs(spectrum.held.d[place]))
    return ordered if ordered[-1] == largest else np.append(ordered, largest)


def _missed(spectrum: Spectrum, place: int, metric: _Metric, pair: int, end: float) -> float:
    """Return how much the nodes beyond ``end`` may add to a p-value."""
    largest = float(metric.sums.largest[pair])
    ordered = _ordered(spectrum, place, largest)
    return inversion.left_over(ordered, end, metric.step, spectrum.below(place, largest))


def _left_to_ties(spectrum: Spectrum, place: int, metric: _Metric, pair: int) -> float:
    """Return how much equal sums may add to a p-value; equal sums are at least as common among fewer users."""
    ordered = _ordered(spectrum, place, float(metric.sums.largest[pair]))
    return inversion.left_to_ties(ordered, float(metric.sums.slack[pair]), metric.step)


def _invert_further(parts: SampleParts, metric: _Metric, pair: int, tolerance: float) -> None:
    """Sum over more nodes where φ is not negligible, 64 per pass."""
    spectrum, place = metric.spectrum, metric.places[pair]
    assert spectrum is not None  # it was inverted before
    tied = _left_to_ties(spectrum, place, metric, pair)
    if tied > tolerance:
        return

    def phi(theta: Floats) -> Floats:
        arguments = _asked([metric], [(metric.unit, pair, theta)], parts)
        return np.asarray(parts.sum(_phi_sums, arguments)[metric.place].phi)

    def missed(end: float) -> float:
        return _missed(spectrum, place, metric, pair, end)

    p, error = inversion.further(phi, metric.sigma[pair], metric.s[pair], metric.step, tolerance, missed)
    metric.settle(pair, p, error + tied, "inversion")


def _phi_sums(sample: Sample, _: Scores, argument: tuple[float, int, Floats]) -> PhiSums:
    unit, pair, theta = argument
    d = np.abs(_differences(sample, slice(pair, pair + 1), unit).d[0])
    d = d[d > 0]
    total = PhiSums(np.zeros(len(theta)), np.zeros(len(theta), dtype=np.int64))
    for start in range(0, len(d), 1 << 14):
        total = total + PhiSums.of(d[start : start + (1 << 14)], theta)
    return total
