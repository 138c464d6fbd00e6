"""The stages of an experiment, each an object that calls the functions a user would call.

`STAGES` lists them in order; `run`, `plan`, `show`, `diff`, the card and the progress display walk that list. To add a
stage, write a subclass of `Stage` and name it here.
"""

from typing import Any

from cranfield.experiments.pipeline import Stage
from cranfield.experiments.stages.data import DATA, SPLITS, decided, draws, split_of
from cranfield.experiments.stages.documents import CARD, EXPERIMENT, Report
from cranfield.experiments.stages.lists import JUDGED, RUNS, SCORES, lists_of
from cranfield.experiments.stages.models import CALIBRATED, MODELS, SEARCHES
from cranfield.experiments.stages.results import ASSESS, RESULTS, SEGMENTS, options_of

STAGES: tuple[Stage[Any], ...] = (
    *(EXPERIMENT, DATA, SPLITS, SEARCHES, MODELS, CALIBRATED),
    *(RUNS, JUDGED, SCORES, RESULTS, SEGMENTS, ASSESS, CARD),
)
"""The stages of this package in order. Packages that depend on it add the audit and the report, which comes last."""

ORDER = (*(stage.name for stage in STAGES), "audit", Report.name)
"""The names of all stages in order, including those of packages that depend on this one."""

__all__ = [
    "ASSESS",
    "CALIBRATED",
    "CARD",
    "DATA",
    "EXPERIMENT",
    "JUDGED",
    "MODELS",
    "ORDER",
    "RESULTS",
    "RUNS",
    "SCORES",
    "SEARCHES",
    "SEGMENTS",
    "SPLITS",
    "STAGES",
    "Report",
    "decided",
    "draws",
    "lists_of",
    "options_of",
    "split_of",
]
