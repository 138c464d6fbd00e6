"""Experiments: everything from ratings to verdicts, described by one file."""

from cranfield.experiments.cleaning import Spare, clean
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.differences import Difference, diff
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.file import new_experiment, read_experiment
from cranfield.experiments.json_schema import schema
from cranfield.experiments.planning import Plan, plan
from cranfield.experiments.results import Results
from cranfield.experiments.reviewing import Review, review
from cranfield.experiments.running import run
from cranfield.experiments.searching import Range, Search, Trial, search
from cranfield.experiments.showing import Shown, show
from cranfield.experiments.source import Source
from cranfield.experiments.system import System
from cranfield.experiments.tuning import Tuning

__all__ = [
    "Decisions",
    "Difference",
    "Experiment",
    "Plan",
    "Range",
    "Results",
    "Review",
    "Search",
    "Shown",
    "Source",
    "Spare",
    "System",
    "Trial",
    "Tuning",
    "clean",
    "diff",
    "new_experiment",
    "plan",
    "read_experiment",
    "review",
    "run",
    "schema",
    "search",
    "show",
]
