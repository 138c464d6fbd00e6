"""cranfield: compare recommender systems offline, and know how far to trust the answer.

The functions stand in the order in which an evaluation goes: `read`, `filters`, `split`, `recommend`, `read_run`,
`measure`, `compare`, `assess`; `experiment` runs all of them from one file, and `write_report` makes the page.
"""

from cranfield import _starting

_starting.guard()

# ruff: noqa: E402
import importlib
from typing import TYPE_CHECKING, Any

from cranfield import split
from cranfield._errors import (
    CranfieldError,
    CranfieldWarning,
    DownloadError,
    ImpossibleSplitError,
    InputError,
    MissingExtraError,
    SettingError,
)
from cranfield._settings import settings
from cranfield._version import __version__
from cranfield.assess import Assessment, assess, assess_folds, discriminative_power
from cranfield.compare import Comparison, compare
from cranfield.data import Ratings, Vocabulary, celma, describe, filters, read, simulate, write
from cranfield.measure import (
    Metric,
    Scores,
    bounds,
    by_popularity,
    gain,
    known_metrics,
    measure,
    metric,
    risk,
    standardise,
)
from cranfield.rank import Run, Targets, read_run, read_runs, read_test, recommend, write_run
from cranfield.recommend import Recommender
from cranfield.split import Split

if TYPE_CHECKING:
    from cranfield import experiment
    from cranfield.data import datasets
    from cranfield.measure.dialects import dialects
    from cranfield.report import write_report

__all__ = [
    "Assessment",
    "Comparison",
    "CranfieldError",
    "CranfieldWarning",
    "DownloadError",
    "ImpossibleSplitError",
    "InputError",
    "Metric",
    "MissingExtraError",
    "Ratings",
    "Recommender",
    "Run",
    "Scores",
    "SettingError",
    "Split",
    "Targets",
    "Vocabulary",
    "__version__",
    "assess",
    "assess_folds",
    "bounds",
    "by_popularity",
    "celma",
    "compare",
    "datasets",
    "describe",
    "dialects",
    "discriminative_power",
    "experiment",
    "filters",
    "gain",
    "known_metrics",
    "measure",
    "metric",
    "read",
    "read_run",
    "read_runs",
    "read_test",
    "recommend",
    "risk",
    "settings",
    "simulate",
    "split",
    "standardise",
    "write",
    "write_report",
    "write_run",
]


# What few need is imported only by those who ask for it.
_LATER = {
    "datasets": ("cranfield.data.datasets", None),
    "dialects": ("cranfield.measure.dialects", "dialects"),
    "experiment": ("cranfield.experiment", None),
    "write_report": ("cranfield.report", "write_report"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cranfield' has no attribute {name!r}")
    module, attribute = _LATER[name]
    found = importlib.import_module(module)
    return found if attribute is None else getattr(found, attribute)
