"""Experiments: what takes the whole line, from ratings to verdicts, by one file."""

from cranfield.experiment.decisions import Decisions
from cranfield.experiment.diff import Difference, diff
from cranfield.experiment.experiment import Experiment
from cranfield.experiment.file import new_experiment, read_experiment
from cranfield.experiment.plan import Plan, plan
from cranfield.experiment.results import Results
from cranfield.experiment.run import run
from cranfield.experiment.schema import schema
from cranfield.experiment.search import Range, Search, Trial, search
from cranfield.experiment.show import Shown, show
from cranfield.experiment.source import Source
from cranfield.experiment.system import System
from cranfield.experiment.tuning import Tuning

__all__ = [
    "Decisions",
    "Difference",
    "Experiment",
    "Plan",
    "Range",
    "Results",
    "Search",
    "Shown",
    "Source",
    "System",
    "Trial",
    "Tuning",
    "diff",
    "new_experiment",
    "plan",
    "read_experiment",
    "run",
    "schema",
    "search",
    "show",
]
