"""The metrics, one family a file; importing this registers them."""

from cranfield.measures.metrics import agreement, beyond, diversity, error, graded, incomplete, popularity, ranking

__all__ = ["agreement", "beyond", "diversity", "error", "graded", "incomplete", "popularity", "ranking"]
