"""Splits: which ratings to train on and which to test on (decision A2).

Examples
--------
>>> import cranfield as cf
>>> cf.splits.random(cf.Ratings.of([1] * 4, list("abcd")), exact=True, test=0.5)
Split(random: train 2, test 2)
"""

from cranfield._registry import import_modules
from cranfield.splits.by_chance import Folds, k_fold, leave_out, per_user, random
from cranfield.splits.by_item import percentiles, popularity_groups, tail_test, train_per_item, uniform_test
from cranfield.splits.by_session import sessions
from cranfield.splits.by_time import rolling, temporal
from cranfield.splits.checking import PROMISES, SplitCheck, check_split, read_part, side_by_side
from cranfield.splits.cold_start import cold_items, cold_users, strong_generalisation
from cranfield.splits.files import read_item_groups, recorded_steps, split_folders, write
from cranfield.splits.part_counts import gap_days
from cranfield.splits.parts import predefined
from cranfield.splits.split import (
    LIKE_TEST,
    REPEATS,
    Split,
    Splits,
    Splitting,
    apply,
    counted_test,
    registry,
    split_phrase,
)
from cranfield.splits.truths import Truth
from cranfield.splits.validating import follows_training, for_validation, validation_words

__all__ = [
    "LIKE_TEST",
    "PROMISES",
    "REPEATS",
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
    "counted_test",
    "follows_training",
    "for_validation",
    "gap_days",
    "k_fold",
    "leave_out",
    "per_user",
    "percentiles",
    "popularity_groups",
    "predefined",
    "random",
    "read_item_groups",
    "read_part",
    "recorded_steps",
    "registry",
    "rolling",
    "sessions",
    "side_by_side",
    "split_folders",
    "split_phrase",
    "strong_generalisation",
    "tail_test",
    "temporal",
    "train_per_item",
    "uniform_test",
    "validation_words",
    "write",
]

import_modules(__name__, __path__)
