"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.measure.scores import Scores

__all__ = ["Scores"]
