"""The stages of an experiment, each an object that calls the functions a user would call.

`STAGES` lists them in order; `run`, `plan`, `show`, `diff`, the card and the progress display walk that list. To add a
stage, write a file with a subclass of `Stage` and name it here.
"""

from typing import Any

from cranfield.experiments.stage import Stage
from cranfield.experiments.stages.assess import ASSESS
from cranfield.experiments.stages.calibrations import CALIBRATED
from cranfield.experiments.stages.card import CARD
from cranfield.experiments.stages.data import DATA
from cranfield.experiments.stages.experiment import EXPERIMENT
from cranfield.experiments.stages.judged import JUDGED
from cranfield.experiments.stages.models import MODELS
from cranfield.experiments.stages.report import Report
from cranfield.experiments.stages.results import RESULTS
from cranfield.experiments.stages.runs import RUNS
from cranfield.experiments.stages.scores import SCORES
from cranfield.experiments.stages.searches import SEARCHES
from cranfield.experiments.stages.segments import SEGMENTS
from cranfield.experiments.stages.splits import SPLITS

STAGES: tuple[Stage[Any], ...] = (
    EXPERIMENT,
    DATA,
    SPLITS,
    SEARCHES,
    MODELS,
    CALIBRATED,
    RUNS,
    JUDGED,
    SCORES,
    RESULTS,
    SEGMENTS,
    ASSESS,
    CARD,
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
]
