"""Experiments: everything from ratings to verdicts, described by one file.

Examples
--------
>>> import tempfile
>>> import cranfield as cf
>>> tiny = {"data": {"tiny": {"simulate": "world(users=60, items=40, ratings=900)"}}}
>>> plan = cf.experiments.plan(tiny, tempfile.mkdtemp())
"""

from cranfield.experiments import stages
from cranfield.experiments.decisions import DECISIONS, Decisions, checked_value
from cranfield.experiments.differences import Difference, diff
from cranfield.experiments.experiment import Experiment, System
from cranfield.experiments.file import new_experiment, read_experiment
from cranfield.experiments.inputs import catalogue_digest, filtered, input_checksum, own_metrics
from cranfield.experiments.json_schema import schema
from cranfield.experiments.pipeline import OUT, Pipeline, Size, Stage, Unit
from cranfield.experiments.presets import PRESETS
from cranfield.experiments.results import Measured, Results, Shown, Spare, clean, show
from cranfield.experiments.reviewing import Review, review
from cranfield.experiments.running import Plan, experiment_and_folder, plan, run
from cranfield.experiments.searching import Tuning, search
from cranfield.experiments.source import SIMULATIONS, Source
from cranfield.experiments.trials import Range, Search, Trial

__all__ = [
    "DECISIONS",
    "OUT",
    "PRESETS",
    "SIMULATIONS",
    "Decisions",
    "Difference",
    "Experiment",
    "Measured",
    "Pipeline",
    "Plan",
    "Range",
    "Results",
    "Review",
    "Search",
    "Shown",
    "Size",
    "Source",
    "Spare",
    "Stage",
    "System",
    "Trial",
    "Tuning",
    "Unit",
    "catalogue_digest",
    "checked_value",
    "clean",
    "diff",
    "experiment_and_folder",
    "filtered",
    "input_checksum",
    "new_experiment",
    "own_metrics",
    "plan",
    "read_experiment",
    "review",
    "run",
    "schema",
    "search",
    "show",
    "stages",
]
