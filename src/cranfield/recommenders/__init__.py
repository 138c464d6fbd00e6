"""Recommenders, one family per file."""

from cranfield._registry import import_modules

# The baselines come first in lists of systems.
from cranfield.recommenders import baselines as _baselines  # noqa: F401
from cranfield.recommenders.adapters import (
    Function,
    ImplicitModel,
    ScikitModel,
    as_array,
    as_recommender,
    checked_scores,
    named_systems,
    system_name,
)
from cranfield.recommenders.epochs import CheckpointError, EpochModel
from cranfield.recommenders.kept import can_be_kept, read_model, save_model
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.pairs import pair_scores
from cranfield.recommenders.profiles import from_profiles
from cranfield.recommenders.protocol import GivesLists, Recommender, ScoresPairs, fit_takes
from cranfield.recommenders.registry import SYSTEMS, displayed_name, recommender, register, signatures, system_among
from cranfield.recommenders.selection import largest
from cranfield.recommenders.spark_als import SparkFactors, SparkLeastSquares, vectors
from cranfield.recommenders.state import CannotKeepError
from cranfield.recommenders.work import blas_threads, blocks, each, in_threads, one_ahead

__all__ = [
    "SYSTEMS",
    "CannotKeepError",
    "CheckpointError",
    "EpochModel",
    "Function",
    "GivesLists",
    "ImplicitModel",
    "Model",
    "Recommender",
    "ScikitModel",
    "ScoresPairs",
    "SparkFactors",
    "SparkLeastSquares",
    "as_array",
    "as_recommender",
    "blas_threads",
    "blocks",
    "can_be_kept",
    "checked_scores",
    "displayed_name",
    "each",
    "fit_takes",
    "from_profiles",
    "in_threads",
    "largest",
    "named_systems",
    "one_ahead",
    "pair_scores",
    "read_model",
    "recommender",
    "register",
    "save_model",
    "setting",
    "signatures",
    "system_among",
    "system_name",
    "vectors",
]

import_modules(__name__, __path__)
