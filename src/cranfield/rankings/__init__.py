"""Ranking: the users served, the items a list may hold, the fill of gaps, and files of ranked lists (B1, B2, C1)."""

from cranfield.rankings.calibration import CALIBRATIONS, Calibration, HeldOut, calibrate
from cranfield.rankings.columns import named_groups
from cranfield.rankings.decisions import Ranking, RankingOptions, Serving, measured_ratings
from cranfield.rankings.fitting import fit_each, fitted
from cranfield.rankings.lists import Gaps, Ties, ranks_of_whole, stable_argsort
from cranfield.rankings.qrels import read_test
from cranfield.rankings.ranged import HeldOutTable, RunTables
from cranfield.rankings.ranker import Ranker, RatedRanker, rank
from cranfield.rankings.reading import check_system_names, is_one_source, read_run, read_runs
from cranfield.rankings.recommending import (
    decided,
    rank_under,
    rank_with,
    rankers_for,
    recommend,
    recommend_to_files,
    timed_each,
)
from cranfield.rankings.run import Run, write_run
from cranfield.rankings.sources import RunReading, file_name
from cranfield.rankings.spark_lists import recommend_on_spark
from cranfield.rankings.targets import Drawn, Targets
from cranfield.rankings.top import fill_system

__all__ = [
    "CALIBRATIONS",
    "Calibration",
    "Drawn",
    "Gaps",
    "HeldOut",
    "HeldOutTable",
    "Ranker",
    "Ranking",
    "RankingOptions",
    "RatedRanker",
    "Run",
    "RunReading",
    "RunTables",
    "Serving",
    "Targets",
    "Ties",
    "calibrate",
    "check_system_names",
    "decided",
    "file_name",
    "fill_system",
    "fit_each",
    "fitted",
    "is_one_source",
    "measured_ratings",
    "named_groups",
    "rank",
    "rank_under",
    "rank_with",
    "rankers_for",
    "ranks_of_whole",
    "read_run",
    "read_runs",
    "read_test",
    "recommend",
    "recommend_on_spark",
    "recommend_to_files",
    "stable_argsort",
    "timed_each",
    "write_run",
]
