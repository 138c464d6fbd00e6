"""One fold of an assessment: a set of systems on one test set, and all that its results depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import SettingError
from cranfield._progress import Progress
from cranfield._version import __version__
from cranfield.assess._chunks import Chunks
from cranfield.assess.masked import MaskedScores
from cranfield.assess.robustness import Asked, Robustness
from cranfield.assess.scenarios import Scenario
from cranfield.data import Ratings
from cranfield.measure._inputs import as_judgments, as_runs, as_test
from cranfield.measure.context import Context
from cranfield.measure.judge import judge
from cranfield.measure.measure import measure
from cranfield.measure.metric import Metric
from cranfield.measure.scores import Scores
from cranfield.rank.lists import Ties
from cranfield.rank.run import Run


class Fold:
    """One set of systems on one test set, ready to be studied."""

    def __init__(
        self,
        runs: Any,
        test: Any,
        metrics: Sequence[Metric],
        asked: Asked,
        undefined: str,
        ties: Ties,
        train: Ratings | None,
        measuring: Mapping[str, Any],
    ) -> None:
        self._runs, self._test, self._asked, self._undefined = as_runs(runs, ties), as_test(test), asked, undefined
        if len(self._runs) < 2:
            raise SettingError("an assessment compares orders of systems; give at least two runs")
        # Measuring first: it says what is wrong with a metric, a run or the test set before any sample is drawn.
        self.scores: Scores = measure(self._runs, self._test, metrics, train=train, **measuring)
        judgments = as_judgments(self._runs, self._test, measuring["threshold"])
        context = Context(train, measuring["similarity"])
        judged = [judge(run, judgments, context)[0] for run in self._runs]
        self._condensed = measuring["condensed"]
        self.masked = MaskedScores(
            [one.condensed() for one in judged] if self._condensed else judged, metrics, undefined
        )
        self._train, self._similarity = train, measuring["similarity"]
        self.robustness = Robustness(self.masked, asked)

    def study(
        self, ways: Sequence[Scenario], grids: Mapping[str, Sequence[float]], bar: Progress, chunks: Chunks
    ) -> pl.DataFrame:
        """Return the samples of all scenarios and sizes."""
        inputs = self._inputs()
        return pl.concat([self.robustness.study(way, grids[way.name], bar, chunks, inputs) for way in ways])

    def _inputs(self) -> dict[str, Any]:
        """Return all that the samples depend on, beside scenario and size."""
        asked = {key: value for key, value in asdict(self._asked).items() if key != "averages"}
        return {
            "version": __version__,
            "test": self._test.fingerprint,
            "threshold": self.masked.judgments.threshold,
            "condensed": self._condensed,
            "runs": [_fingerprint(run) for run in self._runs],
            "train": None if self._train is None else self._train.fingerprint,
            "similarity": _code(self._similarity),
            "metrics": [(str(metric), _code(metric.definition.function)) for metric in self.masked.metrics],
            "averages": [str(kind) for kind in self._asked.averages],
            "undefined": self._undefined,
            **asked,
        }


def _code(what: Any) -> str:
    """Return a hash of an array or of a function's code, so that what a changed metric gives is computed anew."""
    code = getattr(what, "__code__", None)
    if code is not None:
        told = code.co_code + repr([str(one) for one in code.co_consts]).encode()
    else:
        told = b"" if what is None else np.ascontiguousarray(what).tobytes()
    return hashlib.sha256(told).hexdigest()[:16]


def _fingerprint(run: Run) -> str:
    """Return a hash of the lists of a run, with its ids."""
    digest = hashlib.sha256(run.name.encode())
    for vocabulary in (run.user_ids, run.item_ids):
        digest.update("\x1f".join(vocabulary.all.cast(pl.String).to_list()).encode() + b"\x1e")
    for array in (run.users, run.indptr, run.items, run.scores, run.ranks, run.lengths):
        digest.update(b"\x1e" if array is None else np.ascontiguousarray(array).tobytes())
    digest.update(run.ties.encode())
    return digest.hexdigest()[:16]
