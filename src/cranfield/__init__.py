"""cranfield: compare recommender systems offline, and know how far to trust the answer.

The functions follow the order of an evaluation: `read`, `filters`, `splits`, `recommend`, `read_run`, `judge`,
`measure`, `compare`, `bias`, `assess`. `experiments` runs all of them from one file, `audit` asks whether the winner
survives other decisions, and `write_report` makes the page.
"""

from cranfield import _starting

_starting.guard()

# ruff: noqa: E402
from importlib import import_module as _import
from typing import TYPE_CHECKING, Any

from cranfield import _errors as errors
from cranfield import simulate, splits
from cranfield._errors import CranfieldError, CranfieldWarning, InputError, SettingError
from cranfield._settings import settings
from cranfield._version import __version__
from cranfield.assessments import Assessment, assess, discriminative_power
from cranfield.comparisons import (
    Comparison,
    SegmentComparison,
    add_judgments,
    compare,
    compare_segments,
    suggest_judgments,
    tipping_points,
)
from cranfield.data import Ratings, counts_to_ratings, describe, filters, read, write
from cranfield.judgments import Judged, judge, read_judged, write_judged
from cranfield.measures import (
    Scores,
    Segments,
    examine_predictions,
    measure,
    measure_segments,
)
from cranfield.metrics import Metric, gain, metric
from cranfield.rankings import Run, calibrate, read_run, read_runs, read_test, recommend, write_run
from cranfield.recommenders import Recommender
from cranfield.splits import Split, SplitCheck, check_split

if TYPE_CHECKING:
    from cranfield import datasets, experiments
    from cranfield.across import compare_datasets
    from cranfield.audits import audit
    from cranfield.biases import bias, correct_sampled, density, estimate, ratio_to_random
    from cranfield.experiments import run
    from cranfield.measures import compare_tools
    from cranfield.reports import write_report

__all__ = [
    "Assessment",
    "Comparison",
    "CranfieldError",
    "CranfieldWarning",
    "InputError",
    "Judged",
    "Metric",
    "Ratings",
    "Recommender",
    "Run",
    "Scores",
    "SegmentComparison",
    "Segments",
    "SettingError",
    "Split",
    "SplitCheck",
    "__version__",
    "add_judgments",
    "assess",
    "audit",
    "bias",
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
    "errors",
    "estimate",
    "examine_predictions",
    "experiments",
    "filters",
    "gain",
    "judge",
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
    "run",
    "settings",
    "simulate",
    "splits",
    "suggest_judgments",
    "tipping_points",
    "write",
    "write_judged",
    "write_report",
    "write_run",
]


# Rarely needed names are imported on first use, from these packages; a package itself is named by None.
_LATER = {
    **dict.fromkeys(("datasets", "experiments"), None),
    **dict.fromkeys(("bias", "correct_sampled", "density", "estimate", "ratio_to_random"), "biases"),
    "audit": "audits",
    "run": "experiments",
    "compare_datasets": "across",
    "compare_tools": "measures",
    "write_report": "reports",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cranfield' has no attribute {name!r}", name=name)
    package = _import(f"cranfield.{_LATER[name] or name}")
    return package if _LATER[name] is None else getattr(package, name)


def __dir__() -> list[str]:
    return sorted(__all__)
