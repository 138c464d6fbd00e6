"""`Fold`: a set of systems on one test set, to be studied on smaller ones, and all that its results depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._code_hash import made_of
from cranfield._errors import SettingError
from cranfield._progress import Progress
from cranfield._version import __version__
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.robustness import Robustness, Sampling
from cranfield.assessments.scenarios import Scenario
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.data import Ratings
from cranfield.measures.context import Context
from cranfield.measures.definition import Metric
from cranfield.measures.inputs import as_judgments, as_runs, as_test
from cranfield.measures.judging import judge
from cranfield.measures.judgments import NegativeGrades
from cranfield.measures.measuring import measure
from cranfield.measures.scores import Scores
from cranfield.rankings.lists import Ties
from cranfield.rankings.run import Run


class Fold:
    """One set of systems on one test set, measured and ready to be studied on smaller test sets.

    `assess_folds` makes one for each fold; a study that keeps its parts in its own way can use it by itself.

    Parameters
    ----------
    runs, test, metrics, threshold, condensed, ties, train, similarity, negative_grades
        As for `measure`.
    sampling
        What is asked of every smaller test set.
    undefined
        What a list counts for which a metric is undefined: ``zero`` or ``leave out``.

    Examples
    --------
    >>> import cranfield as cf
    >>> from cranfield.assessments import SCENARIOS
    >>> from cranfield.measures.averages import Average
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 4, 5])
    >>> runs = {"one": {"ann": ["x", "y"], "bob": ["x", "y"]}, "two": {"ann": ["z", "y"], "bob": ["z", "x"]}}
    >>> fold = Fold(runs, test, [Metric.of("P@2")], Sampling((Average.of("mean"),), samples=10))
    >>> fold.whole.tolist(), fold.n_samples([SCENARIOS["ratings"]], {"ratings": [1.0, 0.5]})
    ([[[0.75, 0.5]]], 11)
    """

    def __init__(
        self,
        runs: Any,
        test: Any,
        metrics: Sequence[Metric],
        sampling: Sampling,
        *,
        threshold: float | None = None,
        condensed: bool = False,
        undefined: str = "zero",
        ties: Ties = "trec_eval",
        train: Ratings | None = None,
        similarity: Any = None,
        negative_grades: NegativeGrades = "judged",
    ) -> None:
        self._runs, self._test, self._sampling = as_runs(runs, ties), as_test(test), sampling
        if len(self._runs) < 2:
            raise SettingError("an assessment compares orders of systems; give at least two runs")
        # Measuring first: it says what is wrong with a metric, a run or the test set before any sample is drawn.
        self.scores: Scores = measure(
            self._runs, self._test, metrics, threshold=threshold, condensed=condensed, train=train,
            similarity=similarity, negative_grades=negative_grades,
        )  # fmt: skip
        judgments = as_judgments(self._runs, self._test, threshold, negative_grades)
        self._negative_grades = negative_grades
        judged = [judge(run, judgments, Context(train, similarity))[0] for run in self._runs]
        self._masked = MaskedScores([one.condensed() for one in judged] if condensed else judged, metrics, undefined)
        self._robustness = Robustness(self._masked, sampling)
        self._condensed, self._undefined, self._train, self._similarity = condensed, undefined, train, similarity

    @property
    def whole(self) -> NDArray[np.float64]:
        """The averages × metrics × systems of the whole test set."""
        return self._robustness.averages

    @property
    def slow(self) -> tuple[str, ...]:
        """The metrics that are measured one by one, not by the compiled walk."""
        return self._masked.slow

    def n_samples(self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]]) -> int:
        """Return how many test sets a study has; ``sizes`` are by the scenario's name."""
        return sum(self._robustness.n_samples(way, size) for way in scenarios for size in sizes[way.name])

    def study(
        self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]], bar: Progress, chunks: Chunks
    ) -> pl.DataFrame:
        """Return the samples of all scenarios and sizes; finished pairs of them are kept in ``chunks``."""
        inputs = self._inputs()
        return pl.concat([self._robustness.study(way, sizes[way.name], bar, chunks, inputs) for way in scenarios])

    def _inputs(self) -> dict[str, Any]:
        """Return all that the samples depend on, beside scenario and size."""
        asked = {key: value for key, value in asdict(self._sampling).items() if key != "averages"}
        return {
            "version": __version__,
            "test": self._test.fingerprint,
            "threshold": self._masked.judgments.threshold,
            "condensed": self._condensed,
            "negative_grades": self._negative_grades,
            "runs": [_fingerprint(run) for run in self._runs],
            "train": None if self._train is None else self._train.fingerprint,
            "similarity": made_of(self._similarity),
            "metrics": [(str(metric), made_of(metric.definition.function)) for metric in self._masked.metrics],
            "averages": [str(kind) for kind in self._sampling.averages],
            "undefined": self._undefined,
            **asked,
        }


def _fingerprint(run: Run) -> str:
    """Return a hash of the lists of a run, with its ids."""
    digest = hashlib.sha256(run.name.encode())
    for vocabulary in (run.user_ids, run.item_ids):
        digest.update("\x1f".join(vocabulary.text.to_list()).encode() + b"\x1e")
    for array in (run.users, run.indptr, run.items, run.scores, run.predictions, run.ranks, run.lengths):
        digest.update(b"\x1e" if array is None else np.ascontiguousarray(array).tobytes())
    digest.update(run.ties.encode())
    return digest.hexdigest()[:16]
