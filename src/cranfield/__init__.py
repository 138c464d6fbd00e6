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

from cranfield import simulate, splits
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
    labelling_curve,
    suggest_judgments,
    tipping_points,
)
from cranfield.data import Ratings, counts_to_ratings, describe, filters, read, write
from cranfield.judgments import Judged, judge, read_judged, save_judged
from cranfield.measures import (
    Scores,
    Segments,
    by_popularity,
    examine_predictions,
    measure,
    measure_segments,
    risk,
    standardise,
)
from cranfield.metrics import Metric, bounds, gain, known_metrics, metric
from cranfield.rankings import Run, Targets, calibrate, read_run, read_runs, read_test, recommend, write_run
from cranfield.recommenders import Recommender
from cranfield.splits import Split, SplitCheck, check_split
from cranfield.tables import Vocabulary

if TYPE_CHECKING:
    from cranfield import datasets, experiments
    from cranfield.across import compare_datasets
    from cranfield.audits import audit
    from cranfield.biases import bias, correct_sampled, density, estimate, expected_over_draws, ratio_to_random
    from cranfield.measures import compare_tools
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
    "add_judgments",
    "assess",
    "assess_folds",
    "audit",
    "bias",
    "bounds",
    "by_popularity",
    "calibrate",
    "check_split",
    "compare",
    "compare_datasets",
    "compare_segments",
    "compare_tools",
    "correct_sampled",
    "counts_to_ratings",
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
    "labelling_curve",
    "measure",
    "measure_segments",
    "metric",
    "ratio_to_random",
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
    "suggest_judgments",
    "tipping_points",
    "write",
    "write_report",
    "write_run",
]


# Rarely needed names are imported on first use, from these packages; a package itself is named by None.
_LATER = {
    **dict.fromkeys(("datasets", "experiments"), None),
    **dict.fromkeys(
        ("bias", "correct_sampled", "density", "estimate", "expected_over_draws", "ratio_to_random"), "biases"
    ),
    "audit": "audits",
    "compare_datasets": "across",
    "compare_tools": "measures",
    "write_report": "reports",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cranfield' has no attribute {name!r}", name=name)
    package = importlib.import_module(f"cranfield.{_LATER[name] or name}")
    return package if _LATER[name] is None else getattr(package, name)
