"""Experiments: everything from ratings to verdicts, described by one file."""

from cranfield.experiments.decisions import DECISIONS, Decisions, checked_value
from cranfield.experiments.differences import Difference, diff
from cranfield.experiments.encoding import (
    Vocabularies,
    read_run,
    read_scores,
    run_facts,
    save_run,
    save_scores,
    scores_table,
)
from cranfield.experiments.experiment import Experiment, System
from cranfield.experiments.file import PRESETS, new_experiment, read_experiment
from cranfield.experiments.folders import Shown, Spare, clean, show
from cranfield.experiments.inputs import catalogue_digest, filtered, input_checksum
from cranfield.experiments.json_schema import schema
from cranfield.experiments.pipeline import OUT, Pipeline, Size, Stage, Stages, Unit, silent
from cranfield.experiments.planning import Plan, about, plan
from cranfield.experiments.results import Measured, Results
from cranfield.experiments.reviewing import Review, review
from cranfield.experiments.running import experiment_and_folder, run
from cranfield.experiments.searching import Range, Search, Trial, Tuning, search
from cranfield.experiments.source import SIMULATIONS, Source
from cranfield.experiments.stages import DATA, JUDGED, MODELS, RUNS, SEARCHES, SPLITS
from cranfield.experiments.stages.assess import ASSESS, options_of
from cranfield.experiments.stages.data import decided, draws, split_of
from cranfield.experiments.stages.lists import lists_of
from cranfield.experiments.user_code import own_metrics

__all__ = [
    "ASSESS",
    "DATA",
    "DECISIONS",
    "JUDGED",
    "MODELS",
    "OUT",
    "PRESETS",
    "RUNS",
    "SEARCHES",
    "SIMULATIONS",
    "SPLITS",
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
    "Stages",
    "System",
    "Trial",
    "Tuning",
    "Unit",
    "Vocabularies",
    "about",
    "catalogue_digest",
    "checked_value",
    "clean",
    "decided",
    "diff",
    "draws",
    "experiment_and_folder",
    "filtered",
    "input_checksum",
    "lists_of",
    "new_experiment",
    "options_of",
    "own_metrics",
    "plan",
    "read_experiment",
    "read_run",
    "read_scores",
    "review",
    "run",
    "run_facts",
    "save_run",
    "save_scores",
    "schema",
    "scores_table",
    "search",
    "show",
    "silent",
    "split_of",
]
