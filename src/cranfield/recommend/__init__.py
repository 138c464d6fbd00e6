"""Recommenders, one family a file."""

from cranfield.recommend.recommender import Recommender

__all__ = ["Recommender"]
