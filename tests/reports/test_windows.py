"""The page draws how averages moved over windows of time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cranfield import compare
from cranfield.comparisons.samples import as_scores
from cranfield.measures import Averaging
from cranfield.measures.folds import join_folds
from cranfield.measures.windows import in_window
from cranfield.reports.section import Reported
from cranfield.reports.sections.windows import windows


def _reported(number):
    rng = np.random.default_rng(1)
    folds = [
        in_window(as_scores({"<a>": rng.random(9) + 0.2, "b": rng.random(9)}), f"2001-01-0{k + 1}")
        for k in range(number)
    ]
    scores, averaging = join_folds(folds), Averaging(groups="equal" if number > 1 else "pooled")
    comparison = compare(scores, **averaging.as_dict())
    return Reported(scores, comparison, None, averaging, 0.95, (), ())


def test_the_section_has_a_line_over_time_a_table_and_the_sentences():
    section = windows(_reported(3))
    assert section.title == "Window by window"
    assert 'data-save-figure="windows-1"' in section.html
    assert "&lt;a&gt; leads in all 3 windows" in section.html
    assert "<a>" not in section.html
    assert section.tables["windows"].height == 6
    assert section.tables["windows-won"].row(0, named=True)["won"] == 3


def test_a_page_without_windows_has_no_such_section():
    reported = _reported(1)
    assert windows(reported) is None
    assert windows(replace(reported, scores=as_scores({"a": [0.1], "b": [0.2]}))) is None
