"""Judged lists: runs joined with test ratings, of which only the judged items are kept."""

from cranfield.judgments._once import once
from cranfield.judgments.catalogue import NONE, TRAIN, Cataloguing, catalogue_ids, is_no_catalogue, with_live
from cranfield.judgments.context import Context
from cranfield.judgments.draws import Draw, Drawing
from cranfield.judgments.inputs import as_judgments, as_runs, as_test, refuse_closing
from cranfield.judgments.joining import count_hits, one_relevant, tied_ranks
from cranfield.judgments.judged import Entries, Judged
from cranfield.judgments.judged_files import read_judged, save_judged
from cranfield.judgments.judged_table import JudgedTable, without_runs
from cranfield.judgments.judging import Groups, judge, judged_by, judgments_under
from cranfield.judgments.judgments import Judgments, NegativeGrades, nothing_judged
from cranfield.judgments.negative_grades import negative_grades_of, notes_on_negative_grades, on_unread_grades
from cranfield.judgments.plausibility import (
    COPY,
    ENOUGH_FOR_A_COPY,
    NO_ITEMS,
    accepted,
    check_inputs,
    is_copy,
    named_once,
    on_few_met,
    on_items,
    on_no_hits,
    on_seen,
    on_shared,
    on_swapped,
    refuse_other_users,
    same_file,
    same_lists_note,
    shared_ratings,
)
from cranfield.judgments.ranked import Ranked

__all__ = [
    "COPY",
    "ENOUGH_FOR_A_COPY",
    "NONE",
    "NO_ITEMS",
    "TRAIN",
    "Cataloguing",
    "Context",
    "Draw",
    "Drawing",
    "Entries",
    "Groups",
    "Judged",
    "JudgedTable",
    "Judgments",
    "NegativeGrades",
    "Ranked",
    "accepted",
    "as_judgments",
    "as_runs",
    "as_test",
    "catalogue_ids",
    "check_inputs",
    "count_hits",
    "is_copy",
    "is_no_catalogue",
    "judge",
    "judged_by",
    "judgments_under",
    "named_once",
    "negative_grades_of",
    "notes_on_negative_grades",
    "nothing_judged",
    "on_few_met",
    "on_items",
    "on_no_hits",
    "on_seen",
    "on_shared",
    "on_swapped",
    "on_unread_grades",
    "once",
    "one_relevant",
    "read_judged",
    "refuse_closing",
    "refuse_other_users",
    "same_file",
    "same_lists_note",
    "save_judged",
    "shared_ratings",
    "tied_ranks",
    "with_live",
    "without_runs",
]
