"""Ranking: who is served, what a list may hold, what fills the gaps, and files of ranked lists (B1, B2, C1)."""

from cranfield.rankings.names import file_name
from cranfield.rankings.qrels import read_test
from cranfield.rankings.read import read_run, read_runs
from cranfield.rankings.recommending import recommend, recommend_each
from cranfield.rankings.run import Run
from cranfield.rankings.targets import Targets
from cranfield.rankings.write import write_run

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
