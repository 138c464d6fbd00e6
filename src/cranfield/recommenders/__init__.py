"""Recommenders, one family per file."""

from cranfield._registry import import_modules
from cranfield.recommenders.adapters import Function, ImplicitModel, ScikitModel, as_recommender
from cranfield.recommenders.kept import can_be_kept, read_model, save_model
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.protocol import GivesLists, Recommender
from cranfield.recommenders.registry import SYSTEMS, displayed_name, recommender, register, signatures

__all__ = [
    "SYSTEMS",
    "Function",
    "GivesLists",
    "ImplicitModel",
    "Model",
    "Recommender",
    "ScikitModel",
    "as_recommender",
    "can_be_kept",
    "displayed_name",
    "read_model",
    "recommender",
    "register",
    "save_model",
    "setting",
    "signatures",
]

import_modules(__name__, __path__)
