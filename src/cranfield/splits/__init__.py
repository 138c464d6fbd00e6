"""Splits: which ratings to train on and which to test on (decision A2)."""

from cranfield._registry import import_modules
from cranfield.splits.by_chance import random
from cranfield.splits.by_item import train_per_item, uniform_test
from cranfield.splits.by_popularity import percentiles, popularity_groups
from cranfield.splits.by_time import temporal
from cranfield.splits.by_user import leave_out, per_user
from cranfield.splits.by_windows import Windows, rolling
from cranfield.splits.checking import SplitCheck, check_split, side_by_side
from cranfield.splits.files import write
from cranfield.splits.folds import Folds, k_fold
from cranfield.splits.held_out import cold_items, cold_users, strong_generalisation
from cranfield.splits.methods import apply, registry
from cranfield.splits.provided import predefined
from cranfield.splits.split import Split
from cranfield.splits.truths import Truth
from cranfield.splits.without_head import tail_test

__all__ = [
    "Folds",
    "Split",
    "SplitCheck",
    "Truth",
    "Windows",
    "apply",
    "check_split",
    "cold_items",
    "cold_users",
    "k_fold",
    "leave_out",
    "per_user",
    "percentiles",
    "popularity_groups",
    "predefined",
    "random",
    "registry",
    "rolling",
    "side_by_side",
    "strong_generalisation",
    "tail_test",
    "temporal",
    "train_per_item",
    "uniform_test",
    "write",
]

import_modules(__name__, __path__)
