"""Splits: what to learn from and what to judge by (decision A2)."""

from cranfield.split.split import Split

__all__ = ["Split"]
