"""Recommenders, one family per file."""

from cranfield._registry import import_modules

# The baselines come first in lists of systems.
from cranfield.recommenders import baselines as _baselines  # noqa: F401
from cranfield.recommenders.epochs import CheckpointError, EpochModel
from cranfield.recommenders.least_squares import SparkFactors, SparkLeastSquares, vectors
from cranfield.recommenders.matrices import largest
from cranfield.recommenders.model import CannotKeepError, Model, setting
from cranfield.recommenders.protocol import (
    Function,
    GivesLists,
    ImplicitModel,
    Recommender,
    ScikitModel,
    ScoresPairs,
    as_array,
    as_recommender,
    checked_scores,
    fit_takes,
    from_profiles,
    named_systems,
    pair_scores,
    predicts_ratings,
    system_name,
)
from cranfield.recommenders.registry import SYSTEMS, displayed_name, recommender, register, system_among
from cranfield.recommenders.saving import can_be_kept, read_model, save_model
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
    "predicts_ratings",
    "read_model",
    "recommender",
    "register",
    "save_model",
    "setting",
    "system_among",
    "system_name",
    "vectors",
]

import_modules(__name__, __path__)
