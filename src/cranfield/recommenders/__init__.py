"""Recommenders, one family a file."""

import importlib
import pkgutil

from cranfield.recommenders.adapters import Function, ImplicitModel, ScikitModel, as_recommender
from cranfield.recommenders.kept import can_be_kept, read_model, save_model
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.protocol import GivesLists, Recommender
from cranfield.recommenders.registry import SYSTEMS, recommender, register, signatures

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
    "read_model",
    "recommender",
    "register",
    "save_model",
    "setting",
    "signatures",
]

# A system registers itself where it is defined. Modules with an underscore hold compiled loops, which load numba.
for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")
