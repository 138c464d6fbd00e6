"""Splits: which ratings to train on and which to test on (decision A2)."""

from cranfield._registry import import_modules
from cranfield.splits.by_chance import random
from cranfield.splits.by_item import train_per_item, uniform_test
from cranfield.splits.by_popularity import percentiles, popularity_groups
from cranfield.splits.by_time import temporal
from cranfield.splits.by_user import leave_out, per_user
from cranfield.splits.by_windows import Windows, rolling
from cranfield.splits.check_facts import gap_days
from cranfield.splits.check_findings import PROMISES
from cranfield.splits.checking import SplitCheck, check_split, recorded_steps, side_by_side, split_folders
from cranfield.splits.files import write
from cranfield.splits.folds import Folds, k_fold
from cranfield.splits.held_out import cold_items, cold_users, strong_generalisation
from cranfield.splits.item_groups import read_item_groups
from cranfield.splits.methods import apply, registry
from cranfield.splits.provided import predefined
from cranfield.splits.split import Split, Splits
from cranfield.splits.splitting import Splitting, split_phrase
from cranfield.splits.truths import Truth
from cranfield.splits.without_head import tail_test

__all__ = [
    "PROMISES",
    "Folds",
    "Split",
    "SplitCheck",
    "Splits",
    "Splitting",
    "Truth",
    "Windows",
    "apply",
    "check_split",
    "cold_items",
    "cold_users",
    "gap_days",
    "k_fold",
    "leave_out",
    "per_user",
    "percentiles",
    "popularity_groups",
    "predefined",
    "random",
    "read_item_groups",
    "recorded_steps",
    "registry",
    "rolling",
    "side_by_side",
    "split_folders",
    "split_phrase",
    "strong_generalisation",
    "tail_test",
    "temporal",
    "train_per_item",
    "uniform_test",
    "write",
]

import_modules(__name__, __path__)
