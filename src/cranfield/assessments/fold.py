"""`Fold`: a set of systems on one test set, and whether smaller test sets put the systems in the same order.

Two orders of systems are compared by Kendall's tau-b, which is undefined (NaN) if all systems are equal in either; such
samples are counted and excluded from means.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._files import whole_file
from cranfield._numbers import to_decimals
from cranfield._own_code import code_hash
from cranfield._polars import scan_parquet, write_parquet
from cranfield._terminal import Progress
from cranfield._version import __version__
from cranfield.assessments.scenarios import Scenario
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.data import Ratings
from cranfield.judgments import Context, Judged
from cranfield.measures import Average, Measuring, Undefined, judged_and_measured
from cranfield.metrics import Paired
from cranfield.recommenders import blas_threads, in_threads

Correlation = Literal["tau-b", "tau-ap"]
_MOST_DECIMALS = 15


@dataclass(frozen=True)
class Sampling:
    """How smaller test sets are drawn and studied."""

    averages: tuple[Average, ...]  # how the values of the lists become one number per system
    correlation: Correlation = "tau-b"  # the correlation between two orders of systems: ``tau-b`` or ``tau-ap``
    # The number of decimals to which averages are rounded before systems are ordered: 12 only removes rounding
    # errors, so that ties are found; rec_eval prints 4.
    decimals: int = 12
    alpha: float = 0.05  # the level of significance of the verdicts
    samples: int = 50  # the number of samples per size in random scenarios, and the seed that fixes them
    seed: int = 0


def rounded_to(decimals: object) -> int:
    """Check and return the number of decimals to which averages are rounded."""
    places = _checks.whole("decimals", decimals, at_least=0)
    if places > _MOST_DECIMALS:
        raise SettingError(f"decimals={decimals!r} is more than a number holds; give at most {_MOST_DECIMALS}")
    return places


class Chunks:
    """A folder of chunks, or none: a name has hashes of inputs and of bytes, so wrong and damaged ones are not used."""

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)

    @property
    def keeps(self) -> bool:
        """Whether there is a folder to store chunks in."""
        return self._folder is not None

    def get(self, name: str, inputs: Mapping[str, Any], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return the stored chunk of ``inputs``, or make and store it."""
        if self._folder is None:
            return make()
        key = hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()[:16]
        named = re.compile(rf"{re.escape(name)}-{key}-([0-9a-f]{{16}})\.parquet")
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if chunk := named.fullmatch(path.name):
                content = path.read_bytes()
                if _digest(content) == chunk[1]:
                    return scan_parquet(io.BytesIO(content)).collect()
                path.unlink(missing_ok=True)  # it is damaged
        frame = make()
        buffer = io.BytesIO()
        write_parquet(frame, buffer)
        with whole_file(self._folder / f"{name}-{key}-{_digest(buffer.getvalue())}.parquet") as temporary:
            temporary.write_bytes(buffer.getvalue())
        return frame


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class SmallerTest:
    """The result of one smaller test set."""

    averages: NDArray[np.float64]  # averages × metrics × systems
    verdicts: NDArray[np.int8]  # metrics × pairs: which system is significantly better
    ratings: int
    users: int


def measured(masked: MaskedScores, mask: NDArray[np.bool_], sampling: Sampling) -> SmallerTest:
    """Measure the systems on the judgments in ``mask``."""
    n_systems, n_metrics = len(masked.judged), len(masked.metrics)
    averages = np.full((len(sampling.averages), n_metrics, n_systems), np.nan)
    better = np.zeros((n_metrics, n_systems * (n_systems - 1) // 2), dtype=np.int8)
    users = 0
    for part in masked.parts(mask) if mask.any() else ():
        users = len(part.judged)
        for a, average in enumerate(sampling.averages):
            averages[a, part.places] = part.averages(average)
        if part.overall is None:
            for m, values in zip(part.places, part.values):
                better[m] = verdicts(values, sampling.alpha) * (-1 if masked.metrics[m].lower_is_better else 1)
    return SmallerTest(averages, better, int(np.count_nonzero(mask)), users)


class Fold:
    """One set of systems on one test set, measured and ready to be studied on smaller test sets.

    `assess_folds` makes one for each fold; a study that stores its parts in another way can use it directly. ``runs``,
    ``test``, ``train``, ``similarity`` and other options are as for `measure`; lists for which a metric is undefined
    count as ``zero`` or are left out (``leave out``).
    """

    def __init__(
        self,
        runs: Any,
        test: Any,
        measuring: Measuring,
        sampling: Sampling,
        *,
        undefined: Undefined = "zero",
        train: Ratings | None = None,
        similarity: Any = None,
        **options: Any,
    ) -> None:
        self._context = Context(train, similarity)
        # Measuring comes first, so that errors in metrics, runs or the test set are reported before samples are drawn.
        self._judged, self.scores = judged_and_measured(runs, test, measuring, self._context, **options)
        if len(self._judged) < 2:
            raise SettingError("an assessment compares orders of systems; give at least two runs")
        if any(lists.draw is not None for lists in self._judged):
            raise SettingError("an assessment looks at lists that were drawn; set draws='sampled'")
        views = [lists.condensed() for lists in self._judged] if measuring.lists == "condensed" else self._judged
        self._masked = MaskedScores(views, measuring.wanted, undefined)
        self._measuring, self._sampling, self._undefined = measuring, sampling, undefined
        self._whole = measured(self._masked, np.ones(len(self._masked.judgments), dtype=np.bool_), sampling)
        self.whole = self._whole.averages  # averages × metrics × systems
        self.slow = self._masked.slow  # metrics that are measured one by one instead of by the compiled walk

    def n_samples(self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]]) -> int:
        """Return the number of test sets in a study; ``sizes`` are by name of the scenario."""
        return sum(self._n_samples(way, size) for way in scenarios for size in sizes[way.name])

    def _n_samples(self, scenario: Scenario, size: float) -> int:
        """Return the number of samples of a size; the whole test set has one."""
        return 1 if size == 1.0 else scenario.n_samples(self._sampling.samples)

    def study(
        self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]], bar: Progress, chunks: Chunks
    ) -> pl.DataFrame:
        """Return one row per scenario, size, sample, average and metric; finished sizes are stored in ``chunks``."""
        inputs, frames = self._inputs() if chunks.keeps else {}, []
        for way in scenarios:
            for size in sizes[way.name]:
                made_of, before = {**inputs, "scenario": way.name, "size": size}, bar.done
                frames.append(chunks.get(f"{way.name}-{size:g}", made_of, partial(self._chunk, way, size, bar)))
                if bar.done == before:
                    bar.advance(self._n_samples(way, size))
        return pl.concat(frames)

    def _chunk(self, scenario: Scenario, size: float, bar: Progress) -> pl.DataFrame:
        sampling, masked = self._sampling, self._masked

        def sampled(sample: int) -> SmallerTest:
            return measured(masked, scenario.mask(masked.judgments, size, sample, sampling.seed), sampling)

        # Each sample has its own random stream, so threads do not matter; those of BLAS would change the last digits.
        with blas_threads(1):
            samples = in_threads(sampled, range(self._n_samples(scenario, size)), bar)
        return self._rows(scenario, size, samples)

    def _rows(self, scenario: Scenario, size: float, samples: Sequence[SmallerTest]) -> pl.DataFrame:
        """Return one row per sample, average and metric: how it compares with the whole test set."""
        metrics, sampling = self._masked.metrics, self._sampling
        values = np.stack([test.averages for test in samples])
        n_samples, n_averages, n_metrics, n_systems = values.shape
        # For ordering systems, averages are rounded and higher is better.
        signs = np.array([-1.0 if metric.lower_is_better else 1.0 for metric in metrics])[:, None]
        now = to_decimals(values, sampling.decimals) * signs
        whole = np.broadcast_to(to_decimals(self.whole, sampling.decimals) * signs, values.shape)
        cells, of_sample = n_samples * n_averages * n_metrics, n_averages * n_metrics
        verdicts, before = np.stack([test.verdicts for test in samples]), self._whole.verdicts
        missing = np.array([test.ratings == 0 for test in samples])[:, None, None]  # a hashed mask may be empty

        def defined(shares: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(missing, np.nan, shares.reshape(-1, n_averages, n_metrics)).reshape(-1)

        def of_verdicts(fall: NDArray[np.bool_]) -> NDArray[np.float64]:
            """Return, for every average, the share of the significant verdicts on the whole test set that fall so."""
            with np.errstate(invalid="ignore"):
                share = np.count_nonzero(fall & (before != 0), axis=2) / np.count_nonzero(before, axis=1)
            return defined(np.repeat(share[:, None], n_averages, axis=1))

        taus = correlations(whole.reshape(-1, n_systems), now.reshape(-1, n_systems), sampling.correlation)
        return pl.DataFrame(
            {
                "scenario": [scenario.name] * cells,
                "size": [size] * cells,
                "sample": np.repeat(np.arange(n_samples), of_sample),
                "average": np.tile(np.repeat([str(average) for average in sampling.averages], n_metrics), n_samples),
                "metric": [str(metric) for metric in metrics] * (n_samples * n_averages),
                "ratings": np.repeat([test.ratings for test in samples], of_sample),
                "users": np.repeat([test.users for test in samples], of_sample),
                "tau": defined(taus),
                "flipped": defined(flipped(whole, now)),
                "verdicts_lost": 1.0 - of_verdicts(verdicts == before),
                "verdicts_reversed": of_verdicts(verdicts == -before),
                "values": values.reshape(-1, n_systems),
            },
            schema_overrides={"values": pl.Array(pl.Float64, n_systems)},
        )

    def _inputs(self) -> dict[str, Any]:
        """Return everything that the samples depend on, except scenario and size."""
        judgments, train = self._masked.judgments, self._context.train
        return {
            "version": __version__,
            "test": judgments.fingerprint or None,
            "threshold": judgments.threshold,
            "lists": self._measuring.lists,
            "negative_grades": judgments.negative_grades,
            "runs": [_fingerprint(lists) for lists in self._judged],
            "train": None if train is None else train.fingerprint,
            "similarity": code_hash(self._context.similarity),
            "metrics": [(str(metric), code_hash(metric.definition.function)) for metric in self._masked.metrics],
            "undefined": self._undefined,
            **asdict(self._sampling),
            "averages": [str(kind) for kind in self._sampling.averages],
        }


def _fingerprint(judged: Judged) -> str:
    """Return a hash of the lists of a run with its ids, or of the judged items if the run is not available."""
    run = judged.run
    digest = hashlib.sha256(b"" if run is None else f"{run.name}\x1e{run.ties}\x1e".encode())
    arrays: list[NDArray[Any] | None] = [judged.lists, judged.ranks, judged.pointers, judged.lengths, judged.tied_from]
    if run is not None:
        for vocabulary in (run.user_ids, run.item_ids):
            digest.update("\x1f".join(vocabulary.text.to_list()).encode() + b"\x1e")
        arrays = [run.users, run.indptr, run.items, run.scores, run.predictions, run.ranks, run.lengths]
    for array in arrays:
        digest.update(b"\x1e" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def correlations(truth: NDArray[np.float64], estimate: NDArray[np.float64], kind: str = "tau-b") -> NDArray[np.float64]:
    """Return the rank correlation of each row of systems' averages with its row of the truth."""
    rows, width = truth.shape
    pairs = Paired(np.repeat(np.arange(rows), width), rows, truth.reshape(-1), estimate.reshape(-1))
    return pairs.kendall_tau_b() if kind == "tau-b" else pairs.tau_ap()


def flipped(truth: NDArray[np.float64], estimate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the pairs ordered by the truth that are reversed, not tied; NaN if it orders no pair."""
    first, second = np.triu_indices(truth.shape[-1], 1)
    then, now = (np.sign(averages[..., first] - averages[..., second]) for averages in (truth, estimate))
    with np.errstate(invalid="ignore"):
        share: NDArray[np.float64] = np.count_nonzero(then * now < 0, axis=-1) / np.count_nonzero(then, axis=-1)
    return share


def verdicts(values: NDArray[np.float64], alpha: float) -> NDArray[np.int8]:
    """Return, for every pair of systems in the order of ``np.triu_indices``, which one is significantly larger.

    It is 1 for the first, -1 for the second, and 0 if Student's paired t-test does not reject at ``alpha``
    (uncorrected). ``values`` are systems × lists; lists where any system has no value are left out. Without any spread,
    any difference is significant. With fewer than two lists, none is. The exact tests of `compare` cost milliseconds
    per pair, which is too much for thousands of test sets; the sums of this test are one matrix product for all pairs,
    and with hundreds of users the tests hardly differ.
    """
    from scipy.special import stdtrit

    if np.isnan(values.sum(axis=1)).any():
        values = values[:, ~np.isnan(values).any(axis=0)]
    n, (first, second) = values.shape[1], np.triu_indices(len(values), 1)
    if n < 2:
        return np.zeros(len(first), dtype=np.int8)
    largest = float(np.abs(values).max())
    if largest > 0 and not 1e-100 < largest < 1e100:  # squares would overflow or underflow
        values = np.ldexp(values, -np.frexp(largest)[1])
    sums, products = values.sum(axis=1), values @ values.T
    squares = np.diagonal(products)
    whole = squares[first] + squares[second]
    difference = (sums[first] - sums[second]) / n
    spread = whole - 2.0 * products[first, second] - n * difference**2
    # Remainders of the sums of squares that are only rounding are neither a spread nor a difference.
    spread = np.where(spread > 1e-13 * whole, spread, 0.0)
    difference = np.where(np.abs(difference) > 1e-13 * np.sqrt(whole), difference, 0.0)
    needed = float(stdtrit(n - 1, 1.0 - alpha / 2.0)) * np.sqrt(spread / (n - 1) / n)
    return np.where(np.abs(difference) > needed, np.sign(difference), 0.0).astype(np.int8)
