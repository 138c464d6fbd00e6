"""cranfield: compare recommender systems offline, and know how far to trust the answer.

The functions stand in the order in which an evaluation goes: `read`, `filters`, `split`, `recommend`, `read_run`,
`measure`, `compare`.
"""

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
    from cranfield.data import datasets
    from cranfield.measure.dialects import dialects

__all__ = [
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
    "bounds",
    "by_popularity",
    "celma",
    "compare",
    "datasets",
    "describe",
    "dialects",
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
    "write_run",
]


def __getattr__(name: str) -> Any:
    # What few need (what downloads, what other tools mean) is imported only by those who ask for it.
    if name == "datasets":
        import cranfield.data.datasets as datasets

        return datasets
    if name == "dialects":
        from cranfield.measure.dialects import dialects

        return dialects
    raise AttributeError(f"module 'cranfield' has no attribute {name!r}")
