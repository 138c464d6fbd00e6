"""Recommenders, one family a file."""

from cranfield.recommenders.adapters import Function, ImplicitModel, ScikitModel, as_recommender
from cranfield.recommenders.protocol import Recommender
from cranfield.recommenders.registry import SYSTEMS, recommender, signatures

__all__ = [
    "SYSTEMS",
    "Function",
    "ImplicitModel",
    "Recommender",
    "ScikitModel",
    "as_recommender",
    "recommender",
    "signatures",
]
