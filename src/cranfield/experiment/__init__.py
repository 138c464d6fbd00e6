"""Experiments: what takes the whole line, from ratings to measured lists."""

from cranfield.experiment.search import Range, Search, Trial, search

__all__ = ["Range", "Search", "Trial", "search"]
