"""Data: ratings in, described, filtered, fetched and simulated (decision A1)."""

from cranfield.data import filters, simulate
from cranfield.data.celma import celma
from cranfield.data.ratings import Ratings
from cranfield.data.read import read
from cranfield.data.vocabulary import UNKNOWN, Vocabulary
from cranfield.data.write import write

__all__ = ["UNKNOWN", "Ratings", "Vocabulary", "celma", "filters", "read", "simulate", "write"]
