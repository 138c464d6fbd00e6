"""Ranking: who is served, what a list may hold, what fills the gaps, and files of ranked lists (B1, B2, C1)."""

from cranfield.rank.run import Run

__all__ = ["Run"]
