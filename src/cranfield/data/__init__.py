"""Data: ratings in, described, filtered, fetched and simulated (decision A1)."""

from cranfield.data import filters, simulate
from cranfield.data.celma import celma
from cranfield.data.describe import Description, describe, gini
from cranfield.data.ratings import Ratings
from cranfield.data.read import read
from cranfield.data.vocabulary import UNKNOWN, Vocabulary
from cranfield.data.write import write

__all__ = [
    "UNKNOWN",
    "Description",
    "Ratings",
    "Vocabulary",
    "celma",
    "describe",
    "filters",
    "gini",
    "read",
    "simulate",
    "write",
]
