"""Data: ratings read, described, filtered, fetched and simulated (decision A1)."""

from cranfield.data import filters, simulate
from cranfield.data.description import Description, describe, gini
from cranfield.data.long_tail import celma
from cranfield.data.ratings import Ratings
from cranfield.data.reading import read
from cranfield.data.vocabulary import UNKNOWN, Vocabulary
from cranfield.data.writing import write

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
