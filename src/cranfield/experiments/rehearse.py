"""A rehearsal on a handful of ratings: finds misspelt names and missing libraries before the long work starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import polars as pl

from cranfield import _checks as check
from cranfield import splits
from cranfield._errors import MissingExtraError, SettingError
from cranfield._own_code import may_be_called
from cranfield._registry import parse
from cranfield._terminal import unheard
from cranfield.comparisons import as_scores, compare
from cranfield.data import Ratings
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.pipeline import Pipeline
from cranfield.experiments.searching import Range, search
from cranfield.experiments.stages.assess import options_of
from cranfield.measures import Average, Scores, measure
from cranfield.rankings import Calibration, recommend
from cranfield.splits import Split, random


def rehearse(line: Pipeline) -> None:
    """Try the test, the metrics, and the systems that have not been trained yet."""
    decisions, few = line.decisions, _few()
    known = line.store.before()
    compare(_two(decisions), **{**decisions.comparing.as_dict(), **decisions.tested.as_dict(), "baseline": None})
    # Metrics may need predicted ratings and their spread; the values do not matter here.
    spread = Calibration("own", (), (), 2, "a rehearsal", 1.0)
    runs = [
        replace(run, predictions=run.scores, calibration=spread) for run in recommend(few, ["popularity", "random"])
    ]
    metrics = [metric for metric in decisions.metrics if may_be_called(metric)]
    if metrics:
        with _forgiving():
            measure(runs, few.test, train=few.train, **{**decisions.measuring.as_dict(), "metrics": metrics})
    trained = {record.made_of["system"] for name, record in known.items() if name.startswith("models/")}
    for spelling in {system.spelling for system in line.experiment.systems} - trained - {None}:
        if not may_be_called(spelling):
            continue
        with _forgiving(), unheard():
            recommend(few, spelling, fill=decisions.fill)
    for system in line.experiment.systems:
        if (tuning := system.tuning) is None or not may_be_called(system.spelling):
            continue
        metric = tuning.metric if tuning.metric is not None and may_be_called(tuning.metric) else "P@1"
        first = {name: values if isinstance(values, Range) else values[:1] for name, values in tuning.space.items()}
        with _forgiving(), unheard():
            search(few, str(system.spelling), first, metric, trials=tuning.trials and 1, threshold=4)
    if line.experiment.assess is not None and not any(name.startswith("assess/") for name in known):
        from cranfield.assessments import assess

        options = options_of(line.experiment)
        options["metrics"] = [metric for metric in options["metrics"] if may_be_called(metric)] or ["P@1"]
        check.whole("samples", options.get("samples", 1))
        with _forgiving():
            assess(runs, few.test, threshold=decisions.measuring.threshold, **{**options, "samples": 1})


@contextmanager
def _forgiving() -> Iterator[None]:
    """Raise only errors that the user can fix; others may be due to the small number of ratings."""
    try:
        yield
    except (SettingError, MissingExtraError):
        raise
    except Exception:
        return


def _two(decisions: Decisions) -> Scores:
    """Return the scores of two systems; one is the baseline of the average, if it has one."""
    base = str(dict(parse(decisions.average).parameters).get("baseline", "a"))
    scores = as_scores({base: [0.1, 0.5, 0.3, 0.2], f"not {base}": [0.2, 0.1, 0.4, 0.3]})
    groups = np.arange(scores.n_lists, dtype=np.int16) % 2 if _has_groups(decisions) else None
    names = () if groups is None else ("0", "1")
    column = pl.DataFrame({"user": [str(user) for user in range(scores.n_lists)], "value": [1.0] * scores.n_lists})
    weights = Average.of(decisions.average).weights or ""
    trained = np.ones(scores.n_lists, dtype=np.int64)
    return replace(scores, trained=trained, groups=groups, group_names=names, user_columns={weights: column})


def _has_groups(decisions: Decisions) -> bool:
    """Whether lists may be in groups: time windows, or popularity groups of lists for one relevant item."""
    split = parse(decisions.split).name
    if split == "rolling":
        return True
    return decisions.relevant == "one" and (split == "percentiles" or split not in splits.__all__)


def _few() -> Split:
    pairs = [(user, item) for user in range(12) for item in range(8) if (user + item) % 3]
    users, items = zip(*pairs)
    return random(Ratings.of(list(users), list(items), [1 + (u * i) % 5 for u, i in pairs]), train=0.5)
