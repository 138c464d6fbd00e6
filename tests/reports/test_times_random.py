"""Times random on the page."""

from __future__ import annotations

import cranfield as cf
from cranfield.reports.sections.times_random import beside_random


def test_the_section_has_a_row_per_system_and_what_random_scores():
    train = cf.Ratings.of([1, 2, 2, 2], ["a", "b", "c", "d"])
    runs = {"<i>": {1: ["b", "c"]}, "other": {1: ["c", "b"]}}
    section = beside_random(cf.ratio_to_random(runs, cf.Ratings.of([1], ["b"]), ["P@1", "RR"], train=train))
    assert "&lt;i&gt;" in section.html
    assert "a random ranking" in section.html
    assert 'data-key="3.0"' in section.html
    assert section.tables["times-random"]["times_random"].to_list() == [3.0, 2.0, 0.0, 1.0]
