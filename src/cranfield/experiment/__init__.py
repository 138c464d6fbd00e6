"""Experiments: what takes the whole line, from ratings to measured lists."""

from cranfield.experiment.decisions import Decisions
from cranfield.experiment.experiment import Experiment
from cranfield.experiment.file import new_experiment, read_experiment
from cranfield.experiment.results import Results
from cranfield.experiment.run import run
from cranfield.experiment.search import Range, Search, Trial, search
from cranfield.experiment.source import Source
from cranfield.experiment.system import System

__all__ = [
    "Decisions",
    "Experiment",
    "Range",
    "Results",
    "Search",
    "Source",
    "System",
    "Trial",
    "new_experiment",
    "read_experiment",
    "run",
    "search",
]
