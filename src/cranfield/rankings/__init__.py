"""Ranking: the users served, the items a list may hold, the fill of gaps, and files of ranked lists (B1, B2, C1)."""

from cranfield.rankings.calibrating import calibrate
from cranfield.rankings.fitting import fit_each
from cranfield.rankings.names import file_name
from cranfield.rankings.qrels import read_test
from cranfield.rankings.ranker import rank
from cranfield.rankings.ranking import Ranking
from cranfield.rankings.read import read_run, read_runs
from cranfield.rankings.recommending import recommend, recommend_each
from cranfield.rankings.run import Run
from cranfield.rankings.serving import Serving
from cranfield.rankings.several import rank_under
from cranfield.rankings.targets import Targets
from cranfield.rankings.write import write_run

__all__ = [
    "Ranking",
    "Run",
    "Serving",
    "Targets",
    "calibrate",
    "file_name",
    "fit_each",
    "rank",
    "rank_under",
    "read_run",
    "read_runs",
    "read_test",
    "recommend",
    "recommend_each",
    "write_run",
]
