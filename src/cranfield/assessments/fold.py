"""`Fold`: a set of systems on one test set, to be studied on smaller test sets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._own_code import code_hash
from cranfield._terminal import Progress
from cranfield._version import __version__
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.robustness import Robustness, Sampling
from cranfield.assessments.scenarios import Scenario
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.data import Ratings
from cranfield.judgments import Context, Judged, NegativeGrades
from cranfield.measures import Engine, Measuring, Undefined, judged_and_measured
from cranfield.rankings import Gaps, Ties


class Fold:
    """One set of systems on one test set, measured and ready to be studied on smaller test sets.

    `assess_folds` makes one for each fold; a study that stores its parts in another way can use it directly.

    Parameters
    ----------
    runs, test, ties, gaps, train, similarity, negative_grades, strict, engine, memory
        As for `measure`.
    measuring
        What is measured: metrics, threshold, kind of lists.
    sampling
        How smaller test sets are drawn and studied.
    undefined
        What to do with lists for which a metric is undefined: ``zero`` or ``leave out``.

    Examples
    --------
    >>> import cranfield as cf
    >>> from cranfield.assessments import SCENARIOS
    >>> from cranfield.measures.averages import Average
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 4, 5])
    >>> runs = {"one": {"ann": ["x", "y"], "bob": ["x", "y"]}, "two": {"ann": ["z", "y"], "bob": ["z", "x"]}}
    >>> measuring = Measuring(metrics="P@2", threshold=None)
    >>> fold = Fold(runs, test, measuring, Sampling((Average.of("mean"),), samples=10))
    >>> fold.whole.tolist(), fold.n_samples([SCENARIOS["ratings"]], {"ratings": [1.0, 0.5]})
    ([[[0.75, 0.5]]], 11)
    """

    def __init__(
        self,
        runs: Any,
        test: Any,
        measuring: Measuring,
        sampling: Sampling,
        *,
        undefined: Undefined = "zero",
        ties: Ties | None = None,
        gaps: Gaps = "keep",
        train: Ratings | None = None,
        similarity: Any = None,
        negative_grades: NegativeGrades = "judged",
        strict: bool = False,
        engine: Engine = "auto",
        memory: str | int | None = None,
    ) -> None:
        context = Context(train, similarity)
        # Measuring comes first, so that errors in a metric, a run or the test set are reported before samples are
        # drawn.
        judged, self.scores = judged_and_measured(
            runs, test, measuring, context, ties=ties, gaps=gaps, negative_grades=negative_grades, strict=strict,
            engine=engine, memory=memory,
        )  # fmt: skip
        if len(judged) < 2:
            raise SettingError("an assessment compares orders of systems; give at least two runs")
        if any(lists.draw is not None for lists in judged):
            raise SettingError("an assessment looks at lists that were drawn; set draws='sampled'")
        views = [lists.condensed() for lists in judged] if measuring.lists == "condensed" else judged
        self._masked = MaskedScores(views, measuring.wanted, undefined)
        self._robustness = Robustness(self._masked, sampling)
        self._judged, self._measuring, self._sampling, self._context = judged, measuring, sampling, context
        self._undefined = undefined

    @property
    def whole(self) -> NDArray[np.float64]:
        """The averages × metrics × systems of the whole test set."""
        return self._robustness.averages

    @property
    def slow(self) -> tuple[str, ...]:
        """The metrics that are measured one by one instead of by the compiled walk."""
        return self._masked.slow

    def n_samples(self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]]) -> int:
        """Return the number of test sets in a study; ``sizes`` are by name of the scenario."""
        return sum(self._robustness.n_samples(way, size) for way in scenarios for size in sizes[way.name])

    def study(
        self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]], bar: Progress, chunks: Chunks
    ) -> pl.DataFrame:
        """Return the samples of all scenarios and sizes; finished combinations are stored in ``chunks``."""
        inputs = self._inputs() if chunks.keeps else {}
        return pl.concat([self._robustness.study(way, sizes[way.name], bar, chunks, inputs) for way in scenarios])

    def _inputs(self) -> dict[str, Any]:
        """Return everything that the samples depend on, except scenario and size."""
        settings = {key: value for key, value in asdict(self._sampling).items() if key != "averages"}
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
            "averages": [str(kind) for kind in self._sampling.averages],
            "undefined": self._undefined,
            **settings,
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
