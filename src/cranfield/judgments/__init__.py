"""Judged lists: runs joined with test ratings, of which only the judged items are kept."""

from cranfield.judgments.context import (
    NONE,
    TRAIN,
    Cataloguing,
    Context,
    Draw,
    Drawing,
    RunFacts,
    catalogue_ids,
    is_no_catalogue,
    sum_of_counts,
)
from cranfield.judgments.joining import one_relevant, tied_ranks
from cranfield.judgments.judged import Entries, Judged
from cranfield.judgments.judged_files import JudgedTable, read_judged, without_runs, write_judged
from cranfield.judgments.judging import Groups, as_judged, as_runs, as_test, group_of_lists, judge, judged_by, with_live
from cranfield.judgments.judgments import Judgments, NegativeGrades, notes_on_negative_grades, nothing_judged, once
from cranfield.judgments.plausibility import accepted, check_inputs, check_tallies, same_file
from cranfield.judgments.tallies import IdCounts, RatingsTally, SystemTally, counted_items, digests

__all__ = [
    "NONE",
    "TRAIN",
    "Cataloguing",
    "Context",
    "Draw",
    "Drawing",
    "Entries",
    "Groups",
    "IdCounts",
    "Judged",
    "JudgedTable",
    "Judgments",
    "NegativeGrades",
    "RatingsTally",
    "RunFacts",
    "SystemTally",
    "accepted",
    "as_judged",
    "as_runs",
    "as_test",
    "catalogue_ids",
    "check_inputs",
    "check_tallies",
    "counted_items",
    "digests",
    "group_of_lists",
    "is_no_catalogue",
    "judge",
    "judged_by",
    "notes_on_negative_grades",
    "nothing_judged",
    "once",
    "one_relevant",
    "read_judged",
    "same_file",
    "sum_of_counts",
    "tied_ranks",
    "with_live",
    "without_runs",
    "write_judged",
]
