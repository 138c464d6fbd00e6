"""Ranking: the users served, the items a list may hold, the fill of gaps, and files of ranked lists (B1, B2, C1)."""

from cranfield.rankings.calibrating import HeldOut, calibrate, hold_out, predicts_ratings
from cranfield.rankings.calibration import CALIBRATIONS, Calibration
from cranfield.rankings.cells import taken_apart
from cranfield.rankings.files import system_name
from cranfield.rankings.fill import fill_system
from cranfield.rankings.fitting import fit_each, fitted
from cranfield.rankings.groups import named_groups
from cranfield.rankings.lists import Gaps, ListOrder, Ties, first_rank, lengths_of, ranks_of_whole, stable_argsort
from cranfield.rankings.names import file_name
from cranfield.rankings.numbers import MISSING
from cranfield.rankings.qrels import read_test
from cranfield.rankings.ranged import HeldOutTable, RunTables, refuse_text_options
from cranfield.rankings.ranker import Ranker, rank
from cranfield.rankings.ranking import Ranking, RankingOptions
from cranfield.rankings.rated import RatedRanker
from cranfield.rankings.read import check_names, check_system_names, is_one_source, read_run, read_runs
from cranfield.rankings.recommending import decided, recommend, recommend_each, timed_each
from cranfield.rankings.run import Run
from cranfield.rankings.serving import EVERYONE, Serving, measured_ratings
from cranfield.rankings.several import rank_under, rank_with, rankers_for
from cranfield.rankings.spark_lists import recommend_on_spark
from cranfield.rankings.targets import Drawn, Targets
from cranfield.rankings.write import write_run

__all__ = [
    "CALIBRATIONS",
    "EVERYONE",
    "MISSING",
    "Calibration",
    "Drawn",
    "Gaps",
    "HeldOut",
    "HeldOutTable",
    "ListOrder",
    "Ranker",
    "Ranking",
    "RankingOptions",
    "RatedRanker",
    "Run",
    "RunTables",
    "Serving",
    "Targets",
    "Ties",
    "calibrate",
    "check_names",
    "check_system_names",
    "decided",
    "file_name",
    "fill_system",
    "first_rank",
    "fit_each",
    "fitted",
    "hold_out",
    "is_one_source",
    "lengths_of",
    "measured_ratings",
    "named_groups",
    "predicts_ratings",
    "rank",
    "rank_under",
    "rank_with",
    "rankers_for",
    "ranks_of_whole",
    "read_run",
    "read_runs",
    "read_test",
    "recommend",
    "recommend_each",
    "recommend_on_spark",
    "refuse_text_options",
    "stable_argsort",
    "system_name",
    "taken_apart",
    "timed_each",
    "write_run",
]
