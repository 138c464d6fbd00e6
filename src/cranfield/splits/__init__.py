"""Splits: which ratings to train on and which to test on (decision A2)."""

from cranfield._registry import import_modules
from cranfield.splits.by_chance import Folds, k_fold, leave_out, per_user, random
from cranfield.splits.by_item import percentiles, popularity_groups, tail_test, train_per_item, uniform_test
from cranfield.splits.by_time import rolling, temporal
from cranfield.splits.check_findings import PROMISES
from cranfield.splits.checking import SplitCheck, check_split, gap_days, side_by_side
from cranfield.splits.cold_start import cold_items, cold_users, strong_generalisation
from cranfield.splits.files import read_item_groups, recorded_steps, split_folders, write
from cranfield.splits.provided import predefined
from cranfield.splits.split import Split, Splits, apply, registry
from cranfield.splits.splitting import Splitting, split_phrase
from cranfield.splits.truths import Truth

__all__ = [
    "PROMISES",
    "Folds",
    "Split",
    "SplitCheck",
    "Splits",
    "Splitting",
    "Truth",
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
