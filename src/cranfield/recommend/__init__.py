"""Recommenders, one family a file."""

from cranfield.recommend.adapters import Function, ImplicitModel, ScikitModel, as_recommender
from cranfield.recommend.recommender import Recommender
from cranfield.recommend.registry import SYSTEMS, recommender, signatures

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
