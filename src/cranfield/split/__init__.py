"""Splits: what to learn from and what to judge by (decision A2)."""

from cranfield.split.files import write
from cranfield.split.folds import Folds, k_fold
from cranfield.split.given import given
from cranfield.split.methods import apply, registry
from cranfield.split.per_item import train_per_item, uniform_test
from cranfield.split.per_user import leave_out, per_user
from cranfield.split.percentiles import percentiles, popularity_groups
from cranfield.split.random import random
from cranfield.split.split import Split
from cranfield.split.temporal import temporal

__all__ = [
    "Folds",
    "Split",
    "apply",
    "given",
    "k_fold",
    "leave_out",
    "per_user",
    "percentiles",
    "popularity_groups",
    "random",
    "registry",
    "temporal",
    "train_per_item",
    "uniform_test",
    "write",
]
