"""Grades below 0: how many there are, and notes on how they were read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cranfield._numbers import count_text
from cranfield.data import Ratings
from cranfield.judgments.judgments import NegativeGrades


def notes_on_negative_grades(test: Ratings, reading: NegativeGrades) -> Iterator[str]:
    """Yield notes on grades below 0, if they come from relevance judgments or were not read as judged."""
    count, without = negative_grades_of(test)
    is_qrels = bool(test.history) and test.history[-1].settings.get("format") == "qrels"
    if reading == "judged" and count and is_qrels:
        grades = f"{count_text(count, 'test grade')} below 0, read as"
        yield f"{grades} judged and not relevant; some collections mean pooled and not judged: see negative_grades"
    elif reading != "judged":
        yield from on_unread_grades(count, without, reading)


def negative_grades_of(test: Ratings) -> tuple[int, int]:
    """Return the number of grades below 0, and of users with only such grades."""
    negative = test.values < 0
    if not negative.any():
        return 0, 0
    without = np.count_nonzero(test.user_counts) - np.count_nonzero(test.keep(~negative).user_counts)
    return int(negative.sum()), int(without)


def on_unread_grades(count: int, without: int, reading: NegativeGrades) -> Iterator[str]:
    """Yield a note on grades below 0 that are not judged, and on users with only such grades."""
    if not count:
        return
    grades = f"{count_text(count, 'test grade')} below 0, read as"
    many = "1 test user has no other grade and is" if without == 1 else f"{without:,} test users have no other and are"
    gone = f"; {many} not measured" if without else ""
    yield f"{grades} {'not judged' if reading == 'unjudged' else 'pooled and not judged'}{gone}"
