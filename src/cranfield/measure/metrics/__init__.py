"""The metrics, one family a file; importing this registers them."""

from cranfield.measure.metrics import graded, incomplete, ranking

__all__ = ["graded", "incomplete", "ranking"]
