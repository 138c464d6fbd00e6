"""Ranking: who is served, what a list may hold, what fills the gaps, and files of ranked lists (B1, B2, C1)."""

from cranfield.rank.names import file_name
from cranfield.rank.qrels import read_test
from cranfield.rank.read import read_run, read_runs
from cranfield.rank.recommend import recommend, recommend_each
from cranfield.rank.run import Run
from cranfield.rank.targets import Targets
from cranfield.rank.write import write_run

__all__ = [
    "Run",
    "Targets",
    "file_name",
    "read_run",
    "read_runs",
    "read_test",
    "recommend",
    "recommend_each",
    "write_run",
]
