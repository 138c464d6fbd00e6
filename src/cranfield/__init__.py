"""cranfield: compare recommender systems offline, and know how far to trust the answer.

The functions follow the order of an evaluation: `read`, `filters`, `splits`, `recommend`, `read_run`, `judge`,
`measure`, `compare`, `bias`, `assess`. `experiments` runs all of them from one file, `audit` asks whether the winner
survives other decisions, and `write_report` makes the page.
"""

from cranfield import _starting

_starting.guard()

# ruff: noqa: E402
import importlib
from typing import TYPE_CHECKING, Any

from cranfield import splits
from cranfield._errors import (
    CranfieldError,
    CranfieldWarning,
    DownloadError,
    ImpossibleSplitError,
    InputError,
    MissingExtraError,
    OwnCodeError,
    SettingError,
)
from cranfield._settings import settings
from cranfield._version import __version__
from cranfield.assessments import Assessment, assess, assess_folds, discriminative_power
from cranfield.comparisons import (
    Comparison,
    SegmentComparison,
    add_judgments,
    compare,
    compare_segments,
    label,
    labelling_curve,
    tipping_points,
)
from cranfield.data import Ratings, Vocabulary, celma, describe, filters, read, simulate, write
from cranfield.measures import (
    Judged,
    Metric,
    Scores,
    Segments,
    bounds,
    by_popularity,
    examine_predictions,
    gain,
    judge,
    known_metrics,
    measure,
    measure_segments,
    metric,
    read_judged,
    risk,
    save_judged,
    standardise,
)
from cranfield.rankings import Run, Targets, calibrate, read_run, read_runs, read_test, recommend, write_run
from cranfield.recommenders import Recommender
from cranfield.splits import Split, SplitCheck, check_split

if TYPE_CHECKING:
    from cranfield import experiments
    from cranfield.audits.auditing import audit
    from cranfield.biases import bias, correct_sampled, density, estimate, expected_over_draws, times_random
    from cranfield.data import datasets
    from cranfield.measures.dialects import across_tools
    from cranfield.reports import write_report

__all__ = [
    "Assessment",
    "Comparison",
    "CranfieldError",
    "CranfieldWarning",
    "DownloadError",
    "ImpossibleSplitError",
    "InputError",
    "Judged",
    "Metric",
    "MissingExtraError",
    "OwnCodeError",
    "Ratings",
    "Recommender",
    "Run",
    "Scores",
    "SegmentComparison",
    "Segments",
    "SettingError",
    "Split",
    "SplitCheck",
    "Targets",
    "Vocabulary",
    "__version__",
    "across_tools",
    "add_judgments",
    "assess",
    "assess_folds",
    "audit",
    "bias",
    "bounds",
    "by_popularity",
    "calibrate",
    "celma",
    "check_split",
    "compare",
    "compare_segments",
    "correct_sampled",
    "datasets",
    "density",
    "describe",
    "discriminative_power",
    "estimate",
    "examine_predictions",
    "expected_over_draws",
    "experiments",
    "filters",
    "gain",
    "judge",
    "known_metrics",
    "label",
    "labelling_curve",
    "measure",
    "measure_segments",
    "metric",
    "read",
    "read_judged",
    "read_run",
    "read_runs",
    "read_test",
    "recommend",
    "risk",
    "save_judged",
    "settings",
    "simulate",
    "splits",
    "standardise",
    "times_random",
    "tipping_points",
    "write",
    "write_report",
    "write_run",
]


# Rarely needed names are imported on first use.
_LATER = {
    "datasets": ("cranfield.data.datasets", None),
    "across_tools": ("cranfield.measures.dialects", "across_tools"),
    "audit": ("cranfield.audits.auditing", "audit"),
    "bias": ("cranfield.biases", "bias"),
    "correct_sampled": ("cranfield.biases", "correct_sampled"),
    "density": ("cranfield.biases", "density"),
    "estimate": ("cranfield.biases", "estimate"),
    "expected_over_draws": ("cranfield.biases", "expected_over_draws"),
    "experiments": ("cranfield.experiments", None),
    "times_random": ("cranfield.biases", "times_random"),
    "write_report": ("cranfield.reports", "write_report"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cranfield' has no attribute {name!r}", name=name)
    module, attribute = _LATER[name]
    imported = importlib.import_module(module)
    return imported if attribute is None else getattr(imported, attribute)
