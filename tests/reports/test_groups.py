"""The page shows averages by group, and draws how they moved over windows of time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cranfield as cf
from cranfield import compare
from cranfield.comparisons.samples import as_scores
from cranfield.measures import Averaging
from cranfield.measures.joining import join_folds
from cranfield.reports.html_page import Reported
from cranfield.reports.sections.groups import by_group, windows


def test_the_section_shows_averages_verdicts_and_interactions(make_scores, evil):
    scores = make_scores(metrics=("P@5",))
    ids = scores.user_ids.all.to_list()
    segments = scores.segments({user: evil[0] if place % 2 else "b" for place, user in enumerate(ids)})
    section = by_group([cf.compare_segments(segments, significance="student")], Averaging(), 0.95)
    assert section.title == "Does it hold in every group?"
    assert section.html.startswith("<p>By given, ")
    assert '<th scope="row" data-key="b">b</th><td class="number">20</td>' in section.more
    assert evil[0] not in section.html
    assert set(section.tables) == {"segments-given", "segments-given-pairs", "segments-given-interactions"}
    assert 'id="figure-segments-given"' in section.html
    assert "the best of a group in colour." in section.html
    assert section.more.count("<tr>") == 1 + 2 + 1 + 2 * len(scores.systems)


def test_scores_that_are_not_compared_have_averages_alone(make_scores):
    scores = make_scores(metrics=("P@5",))
    segments = scores.segments(dict(zip(scores.user_ids.all.to_list(), "ab" * 20)))
    section = by_group([segments], Averaging(), 0.95)
    assert "<caption>How systems stand in each group" not in section.more
    assert "<p>" not in section.html
    assert set(section.tables) == {"segments-given"}


def test_without_groups_there_is_no_section():
    assert by_group([], Averaging(), 0.95) is None


def test_the_page_says_how_many_users_of_a_group_are_compared():
    test = cf.Ratings.of(list(range(10)), ["x"] * 10)
    runs = {"a": {u: ["x", "y"] for u in range(10)}, "b": {u: ["y", "x"] for u in range(10) if u % 5 < 3}}
    scores = cf.measure(runs, test, "EPC@1", train=cf.Ratings.of([20, 20, 21], ["x", "y", "x"]))
    compared = cf.compare_segments(scores.segments({u: f"g{u // 5}" for u in range(10)}))
    more = by_group([compared], Averaging(), 0.95).more
    assert ">3</td>" in more
    assert ">5</td>" not in more


def _reported(number):
    rng = np.random.default_rng(1)
    folds = [
        as_scores({"<a>": rng.random(9) + 0.2, "b": rng.random(9)}).in_window(f"2001-01-0{k + 1}")
        for k in range(number)
    ]
    scores, averaging = join_folds(folds), Averaging(groups="equal" if number > 1 else "pooled")
    comparison = compare(scores, **averaging.as_dict())
    return Reported(scores, comparison, None, averaging, 0.95, (), ())


def test_the_section_has_a_line_over_time_a_table_and_the_sentences():
    section = windows(_reported(3))
    assert section.title == "Does it hold over time?"
    assert 'data-save-figure="windows-1"' in section.html
    assert "&lt;a&gt; leads in all 3 windows" in section.html
    assert "<a>" not in section.html
    assert section.tables["windows"].height == 6
    assert section.tables["windows-won"].row(0, named=True)["won"] == 3


def test_a_page_without_windows_has_no_such_section():
    reported = _reported(1)
    assert windows(reported) is None
    assert windows(replace(reported, scores=as_scores({"a": [0.1], "b": [0.2]}))) is None
